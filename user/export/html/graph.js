// SPDX-License-Identifier: BSD-2-Clause
/*
 * The flame graph, drawn by d3-flame-graph.
 *
 * In:   Tables; what is shown, set by page.js.
 * Out:  an SVG in which frames can be clicked, and walked through with the keyboard. Calls
 *       onZoom(node) and onLook(node or null, which is: none in particular).
 *
 * The library never sees the whole tree: at each zoom it gets what is wide enough to be
 * seen (prune.js), with the callers above it as frames that it calls faded.
 */
import flamegraph from "d3-flame-graph";
import { select } from "d3-selection";

import { prune } from "./prune.js";

const ROW_PX = 20;

export class Graph {
  /* element: to draw in. label(node): text for people who hear it. */
  constructor(element, tables, { label, onZoom, onLook }) {
    Object.assign(this, { element, tables, label, onZoom, onLook });
    this.root = 0;
    this.found = null;
    element.addEventListener("keydown", (e) => this.onKey(e));
    element.addEventListener("focusin", (e) => this.look(e.target));
    element.addEventListener("focusout", () => this.onLook(null));
  }

  /* Draw for this metric. root: the node to zoom into; found: of Tables.search, or null. */
  draw(metric, root = this.root, found = this.found) {
    const width = Math.max(200, Math.floor(this.element.clientWidth));

    Object.assign(this, { metric, root, found });
    this.pruned = prune(this.tables, root, metric, width);
    /* Anew, because the library keeps the first tree's height and scale. */
    this.element.replaceChildren();
    this.frames = null;
    if (!(this.tables.totals[metric].words[root] > 0)) {
      this.element.textContent = "Nothing here.";
      return;
    }
    this.chart = flamegraph()
      .width(width)
      .cellHeight(ROW_PX)
      .inverted(true)
      .transitionDuration(0)
      .setLabelHandler((d) => this.label(d.data.node))
      .setDetailsHandler(() => {})
      .onHover((d) => this.onLook(d.data.node));
    select(this.element).datum(this.pruned.tree).call(this.chart);
    this.finish();
  }

  /* What the library leaves to us: classes, the keyboard, and the height without a title. */
  finish() {
    const svg = select(this.element).select("svg");
    const { tables, found } = this;
    let deepest = 0;

    this.frames = svg.selectAll("g");
    this.frames.each(function (d) {
      const node = d.data.node;
      deepest = Math.max(deepest, d.depth);
      this.classList.add(tables.style(node));
      if (found) this.classList.add(found.is[node] ? "match" : found.holds[node] ? "path" : "miss");
    });
    this.frames
      .attr("role", "button")
      .attr("tabindex", (d) => (d.data.node === this.root ? 0 : -1))
      .attr("aria-label", (d) => this.label(d.data.node))
      .attr("data-node", (d) => d.data.node)
      .attr("data-words", (d) => tables.totals[this.metric].words[d.data.node])
      .on("click", (e, d) => this.zoom(d.data.node)) // not the library's, which zooms what it has
      .on("mouseleave", () => this.onLook(null));
    svg
      .attr("height", (deepest + 1) * ROW_PX + 2)
      .attr("role", "group")
      .attr("aria-label", "Flame graph");
    this.complete(svg.node(), this.chart.width());
  }

  /*
   * The library lets widths and labels come in by transitions of a quarter of a second,
   * whatever it is told. Here they are there at once. data-drawn: ms since navigation began.
   */
  complete(svg, width) {
    this.frames.select("rect").interrupt().attr("width", (d) => (d.x1 - d.x0) * width);
    this.frames.select(".d3-flame-graph-label").interrupt().text((d) => d.data.name);
    requestAnimationFrame(() => requestAnimationFrame(() => {
      svg.dataset.drawn = Math.round(performance.now());
    }));
  }

  zoom(node, focus = false) {
    this.draw(this.metric, node);
    this.onZoom(node);
    if (focus) this.focusOn((d) => d.data.node === node);
  }

  look(element) {
    const d = select(element).datum();
    if (d && d.data) this.onLook(d.data.node);
  }

  focusOn(test) {
    const frame = this.frames && this.frames.filter(test).node();
    if (!frame) return;
    this.frames.attr("tabindex", -1);
    frame.setAttribute("tabindex", 0);
    frame.focus();
  }

  /* Where an arrow key leads from a frame: down to its widest callee, up to its caller, along its row. */
  static neighbour(d, key) {
    const siblings = d.parent ? d.parent.children : [d];
    const at = siblings.indexOf(d);

    return {
      ArrowDown: d.children && d.children[0],
      ArrowUp: d.parent,
      ArrowLeft: siblings[at - 1],
      ArrowRight: siblings[at + 1],
    }[key];
  }

  onKey(e) {
    const d = select(e.target).datum();
    if (!d || !d.data || e.ctrlKey || e.altKey || e.metaKey) return;
    const next = Graph.neighbour(d, e.key);

    if (e.key.startsWith("Arrow")) {
      if (next) this.focusOn((x) => x === next);
    } else if (e.key === "Enter" || e.key === " ") {
      this.zoom(d.data.node, true);
    } else if (e.key === "Escape" && this.root) {
      this.zoom(this.tables.parent[this.root], true);
    } else {
      return;
    }
    e.preventDefault();
  }
}
