// SPDX-License-Identifier: BSD-2-Clause
/*
 * The page of `heapsonde export --to html`: what is shown, and what happens when somebody
 * chooses something else.
 *
 * In:   the JSON in the element #data, made by user/export/html.c; the elements of page.html.
 * Out:  the page. All text from the capture goes into it as text, never as markup.
 */
import "./page.css";
import { showAbout } from "./about.js";
import * as estimate from "./estimate.js";
import { Graph } from "./graph.js";
import { showSites } from "./sites.js";
import { METRICS, Tables } from "./tables.js";
import { drawTimeline } from "./timeline.js";

const $ = (id) => document.getElementById(id);
const element = $("data");
const data = JSON.parse(element.textContent);
element.remove(); // the text takes as much memory as what was made of it

/* Where nothing was sampled, the rate that was asked for says how little may have been missed. */
data.rate = data.rate || Number((data.header || {}).rate) || 0;

const tables = new Tables(data);
const TITLES = {
  allocated: "Allocated",
  live: "Live",
  promoted: "Promoted",
  survivors: data.survived === 1 ? "Survived a cycle" : `Survived ${data.survived} cycles`,
};
const TITLE_HELP = {
  allocated: "All that was allocated during the recording",
  live: "Not known to be dead when the recording ended",
  promoted: "Copied from the minor to the major heap",
  survivors: "Lived through so many major collection cycles, dead since or not",
};
const state = { metric: METRICS.find((m) => m.startsWith(data.metric)) || "allocated", unit: "words", domain: null, search: "" };

function format(words) {
  return state.unit === "bytes" ? estimate.bytes(words) : `${estimate.words(words)}`;
}

function figure(words) {
  return state.unit === "bytes" ? format(words) : `${format(words)} words`;
}

/* ---- one frame ---- */

function label(node) {
  const words = tables.totals[state.metric].words;

  return `${tables.label(node)}, ${figure(words[node])}, ${estimate.percent(words[node], words[0])}`;
}

function figureOf(metric, node) {
  const { words, blocks, variance } = tables.amount(metric, node);
  const [low, high] = estimate.interval(words, variance, data.rate);
  const span = document.createElement("span");

  span.className = metric === state.metric ? "now" : "";
  span.dataset.metric = metric;
  span.append(`${TITLES[metric]} `, Object.assign(document.createElement("b"), { textContent: figure(words) }));
  span.append(` (${format(low)} – ${format(high)}), ${estimate.words(blocks)} blocks`);
  if (metric === state.metric) span.append(`, ${estimate.percent(words, tables.wholes[metric].words)}`);
  return span;
}

/* node: null for the one that is zoomed into. */
function look(node) {
  if (node === null) node = graph.root;
  const name = Object.assign(document.createElement("div"), { className: "name", textContent: tables.name(node) });
  const figures = Object.assign(document.createElement("div"), { className: "figures" });

  name.append(Object.assign(document.createElement("small"), { textContent: tables.place(node) }));
  figures.append(...METRICS.filter(isKnown).map((m) => figureOf(m, node)));
  $("details").replaceChildren(name, figures);
  $("details").dataset.node = node;
}

/* ---- all of it ---- */

const graph = new Graph($("graph"), tables, { label, onZoom: zoomed, onLook: look });

function zoomed() {
  const { least, isCut } = graph.pruned;

  $("reset").disabled = graph.root === 0;
  $("pruned").textContent = isCut ? `Frames under ${figure(least)} or far down are not drawn; zoom in to see them.` : "";
  look(null);
}

function drawGraph() {
  const found = state.search ? tables.search(state.search, state.metric) : null;
  const whole = tables.wholes[state.metric].words;

  graph.draw(state.metric, graph.root, found);
  $("found").textContent = found
    ? `${found.count.toLocaleString("en")} frames, ${figure(found.words)}, ${estimate.percent(found.words, whole)}`
    : "";
  zoomed();
}

function drawSites() {
  const view = { tables, metric: state.metric, format, rate: data.rate, titles: TITLES };

  showSites($("sites"), $("sites-rest"), view, (name) => {
    $("search").value = state.search = name;
    drawGraph();
    $("graph-section").scrollIntoView();
  });
}

function drawAll() {
  drawGraph();
  drawTimeline($("timeline"), $("moment"), data, format);
  drawSites();
}

/* ---- what can be chosen ---- */

/* What the capture does not tell cannot be looked at: it would seem to be nothing. */
function isKnown(metric) {
  if (metric === "survivors") return data.follows && data.tells_cycles;
  return data.follows || (metric !== "live" && metric !== "promoted");
}

function radios(fieldset, name, options, onChange) {
  for (const [value, title] of options) {
    const input = Object.assign(document.createElement("input"), { type: "radio", name, value });
    const box = document.createElement("label");

    box.title = TITLE_HELP[value] || "";
    input.disabled = !isKnown(value);
    input.checked = state[name] === value;
    input.addEventListener("change", () => {
      state[name] = value;
      onChange();
    });
    box.append(input, Object.assign(document.createElement("span"), { textContent: title }));
    fieldset.append(box);
  }
}

function domains() {
  const whole = tables.wholes.allocated.words;

  $("domain").append(new Option("all", ""));
  for (const d of tables.domains) {
    const words = tables.whole(tables.cells.allocated.words, d);
    $("domain").append(new Option(`${d < 0 ? "others" : d} (${estimate.percent(words, whole)})`, d));
  }
  $("domain").addEventListener("change", (e) => {
    state.domain = e.target.value === "" ? null : Number(e.target.value);
    tables.select(state.domain);
    graph.root = 0;
    drawGraph();
    drawSites();
  });
}

/* Search when typing pauses, not at every key. */
function search() {
  let timer = 0;

  $("search").addEventListener("input", (e) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      state.search = e.target.value.trim();
      drawGraph();
    }, 150);
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && !/^(INPUT|SELECT)$/.test(e.target.tagName)) {
      e.preventDefault();
      $("search").focus();
    }
  });
}

function controls() {
  radios($("metric"), "metric", METRICS.map((m) => [m, TITLES[m]]), () => {
    drawGraph();
    drawSites();
  });
  radios($("unit"), "unit", [["words", "Words"], ["bytes", "Bytes"]], drawAll);
  domains();
  search();
  $("reset").addEventListener("click", () => graph.zoom(0, true));
}

function onResize() {
  let width = window.innerWidth;
  let timer = 0;

  window.addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (window.innerWidth !== width) drawAll();
      width = window.innerWidth;
    }, 100);
  });
}

if (data.view === "timeline") document.body.classList.add("timeline-first");
showAbout(data);
controls();
drawAll();
onResize();
