// SPDX-License-Identifier: BSD-2-Clause
/*
 * The capture as typed arrays, and sums over the tree of callers.
 *
 * In:   the JSON that user/export/html.c writes (docs/html.md).
 * Out:  class Tables. Nodes are numbers; node 0 stands above all stacks, and a node comes
 *       after its parent, so that loops over all nodes need no recursion.
 */

export const METRICS = ["allocated", "live", "promoted", "survivors"];

const AMOUNTS = ["words", "blocks", "variance"];

/* What would move the cursor, turn the text round or hide it; names come from anywhere. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const NAME_MAX = 300;

function clean(text) {
  if (text.length > NAME_MAX) text = text.slice(0, NAME_MAX) + "…";
  return text.replace(UNSEEN, "\ufffd");
}

/* Whose code a frame is, for its colour. */
function kindOf(name, file) {
  if (file === null) return "other";
  return /^(Stdlib|Caml)/.test(name) ? "stdlib" : "program";
}

/* One of three shades, the same for all functions of a module. */
function shadeOf(name) {
  const module = name.split(".")[0];
  let hash = 0;

  for (let i = 0; i < module.length; i++) hash = (hash * 31 + module.charCodeAt(i)) | 0;
  return Math.abs(hash) % 3;
}

export class Tables {
  constructor(data) {
    this.data = data;
    this.strings = data.strings.map(clean);
    this.readFrames(data.frames);
    this.readNodes(data.nodes);
    this.readCells(data.cells);
    this.select(null);
  }

  readFrames(flat) {
    const n = flat.length / 3;

    this.frames = new Array(n);
    for (let i = 0; i < n; i++) {
      const file = flat[3 * i + 1] < 0 ? null : this.strings[flat[3 * i + 1]];
      const line = flat[3 * i + 2];
      const name = flat[3 * i] < 0 ? "(unknown)" : this.strings[flat[3 * i]] || "(no name)";
      this.frames[i] = {
        name,
        place: file === null ? "" : line ? `${file}:${line}` : file,
        style: `${kindOf(name, file)}-${shadeOf(name)}`,
      };
    }
  }

  readNodes(nodes) {
    const n = nodes.up.length;

    this.n = n;
    this.parent = new Uint32Array(n);
    this.frame = Int32Array.from(nodes.frame);
    this.depth = new Uint32Array(n);
    for (let i = 1; i < n; i++) {
      this.parent[i] = i - nodes.up[i];
      this.depth[i] = this.depth[this.parent[i]] + 1;
    }
    /* Children of i: children[firstChild[i]] to children[firstChild[i + 1] - 1]. */
    this.firstChild = new Uint32Array(n + 2);
    for (let i = 1; i < n; i++) this.firstChild[this.parent[i] + 2]++;
    for (let i = 1; i < n + 2; i++) this.firstChild[i] += this.firstChild[i - 1];
    this.children = new Uint32Array(n);
    for (let i = 1; i < n; i++) this.children[this.firstChild[this.parent[i] + 1]++] = i;
  }

  readCells(cells) {
    const ratio = cells.variance_ratio;

    this.cellNode = Uint32Array.from(cells.node);
    this.cellDomain = Int32Array.from(cells.domain);
    this.domains = Array.from(new Set(cells.domain)).sort((a, b) => (a < 0) - (b < 0) || a - b);
    this.cells = {};
    for (const m of METRICS) {
      const words = Float64Array.from(cells[m].words);
      this.cells[m] = {
        words,
        blocks: Float64Array.from(cells[m].blocks),
        variance: ratio === null ? Float64Array.from(cells[m].variance) : words.map((w) => w * ratio),
      };
    }
  }

  /*
   * Sums for one domain, or for all (null): this.totals[metric].words[node] and so on. Each
   * array is made when it is first asked for: there are millions of nodes, and the first
   * picture needs one array of twelve.
   */
  select(domain) {
    this.domain = domain;
    this.totals = {};
    this.wholes = {};
    for (const m of METRICS) {
      const cells = this.cells[m];
      this.totals[m] = {};
      this.wholes[m] = {};
      for (const what of AMOUNTS) {
        let total = null;
        Object.defineProperty(this.totals[m], what, { get: () => (total = total || this.sum(cells[what], domain)) });
        this.wholes[m][what] = this.whole(cells[what], domain);
      }
    }
  }

  /* { words, blocks, variance } of a node. */
  amount(metric, node) {
    if (node === 0) return this.wholes[metric];
    return Object.fromEntries(AMOUNTS.map((what) => [what, this.totals[metric][what][node]]));
  }

  whole(values, domain) {
    let sum = 0;

    for (let i = 0; i < values.length; i++) if (domain === null || this.cellDomain[i] === domain) sum += values[i];
    return sum;
  }

  sum(values, domain) {
    const total = new Float64Array(this.n);

    for (let i = 0; i < values.length; i++)
      if (domain === null || this.cellDomain[i] === domain) total[this.cellNode[i]] += values[i];
    for (let i = this.n - 1; i > 0; i--) total[this.parent[i]] += total[i];
    return total;
  }

  name(node) {
    return node ? this.frames[this.frame[node]].name : "all";
  }

  place(node) {
    return node ? this.frames[this.frame[node]].place : "";
  }

  /* Both. Callers differ by line, so the line is what tells a frame from its neighbour. */
  label(node) {
    const place = this.place(node);

    return place ? `${this.name(node)}  ${place}` : this.name(node);
  }

  style(node) {
    return node ? this.frames[this.frame[node]].style : "all";
  }

  /*
   * Sites, the biggest by a metric first, as numbers of frames; those that have none are
   * left out. A site is the innermost frame of a stack. this.siteSums(metric) has their sums.
   */
  sites(metric) {
    const { words } = this.siteSums(metric);

    return Array.from(words.keys())
      .filter((frame) => words[frame] > 0)
      .sort((a, b) => words[b] - words[a] || a - b);
  }

  /* { words, variance }, by frame: of the stacks that end there. */
  siteSums(metric) {
    const sums = { words: new Float64Array(this.frames.length), variance: new Float64Array(this.frames.length) };
    const { words, variance } = this.cells[metric];

    for (let i = 0; i < this.cellNode.length; i++) {
      const frame = this.frame[this.cellNode[i]];
      if (frame < 0 || (this.domain !== null && this.cellDomain[i] !== this.domain)) continue;
      sums.words[frame] += words[i];
      sums.variance[frame] += variance[i];
    }
    return sums;
  }

  /*
   * Which nodes have the text in their function or place, case ignored: { is: by node,
   * holds: by node, itself or one of its descendants, words, count }. words: of all stacks
   * with such a node, each counted once.
   */
  search(text, metric) {
    const wanted = text.toLowerCase();
    const frames = this.frames.map((f) => `${f.name} ${f.place}`.toLowerCase().includes(wanted));
    const is = new Uint8Array(this.n);
    const holds = new Uint8Array(this.n);
    const below = new Uint8Array(this.n); // below a match, or one
    const total = this.totals[metric].words;
    let words = 0;
    let count = 0;

    for (let i = 1; i < this.n; i++) {
      is[i] = frames[this.frame[i]] ? 1 : 0;
      if (is[i] && total[i] > 0) count++;
      if (is[i] && !below[this.parent[i]]) words += total[i];
      below[i] = is[i] | below[this.parent[i]];
    }
    for (let i = this.n - 1; i > 0; i--) {
      holds[i] |= is[i];
      holds[this.parent[i]] |= holds[i];
    }
    return { is, holds, words, count };
  }
}
