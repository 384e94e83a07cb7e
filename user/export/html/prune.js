// SPDX-License-Identifier: BSD-2-Clause
/*
 * As much of the tree as can be seen.
 *
 * In:   Tables, the node that is zoomed into, the width of the graph.
 * Out:  a tree for the library: { node, name, value, children, fade }. A capture has
 *       100,000 stacks and more; a window has a thousand pixels.
 */

/* Narrower frames cannot be seen. */
const MIN_PX = 0.5;
/* More frames than this take an SVG too long. The widest are shown. */
const FRAMES_MAX = 1500;
/* Of a recursion, say. Zoom in for more. */
const LEVELS_MAX = 150;
/* Callers of the frame that is zoomed into, above it. */
const CALLERS_MAX = 12;

/* Nodes below `root` that are at least this wide and not too deep, parents first. */
function wideNodes(tables, root, words, least) {
  const found = [root];

  for (let at = 0; at < found.length; at++) {
    const node = found[at];
    if (tables.depth[node] - tables.depth[root] >= LEVELS_MAX) continue;
    for (let i = tables.firstChild[node]; i < tables.firstChild[node + 1]; i++) {
      const child = tables.children[i];
      if (words[child] >= least && words[child] > 0) found.push(child);
    }
  }
  return found;
}

/* The least width, in words, that keeps the widest FRAMES_MAX. A parent is as wide as its children. */
function leastOf(nodes, words, least) {
  if (nodes.length <= FRAMES_MAX) return least;
  const sorted = Float64Array.from(nodes, (n) => words[n]).sort();
  const at = sorted[sorted.length - FRAMES_MAX];

  /* Those of equal width all go if they are too many. */
  return sorted.length - sorted.indexOf(at) > 2 * FRAMES_MAX ? at * (1 + 1e-9) : at;
}

/*
 * { tree, least, isCut }: least, in words: narrower frames are left out; isCut: there are
 * such, or deeper ones.
 */
export function prune(tables, root, metric, widthPx) {
  const words = tables.totals[metric].words;
  const visible = (words[root] * MIN_PX) / widthPx;
  let nodes = wideNodes(tables, root, words, visible);
  const least = leastOf(nodes, words, visible);
  const made = new Map();

  nodes = nodes.filter((n) => n === root || words[n] >= least);
  for (const node of nodes) {
    const item = { node, name: tables.label(node), value: words[node], children: [] };
    made.set(node, item);
    if (node !== root) made.get(tables.parent[node]).children.push(item);
  }
  for (const item of made.values()) item.children.sort((a, b) => b.value - a.value || a.node - b.node);
  return { tree: withCallers(tables, root, made.get(root)), least, isCut: isCut(tables, words, made) };
}

function isCut(tables, words, made) {
  for (const node of made.keys())
    for (let i = tables.firstChild[node]; i < tables.firstChild[node + 1]; i++)
      if (words[tables.children[i]] > 0 && !made.has(tables.children[i])) return true;
  return false;
}

/* Above the frame its callers, as wide as it is; where they are many one stands for several. */
function withCallers(tables, root, tree) {
  const callers = [];

  for (let node = root; node !== 0; ) {
    node = tables.parent[node];
    callers.push(node);
  }
  const hidden = callers.length > CALLERS_MAX ? callers.splice(CALLERS_MAX - 2, callers.length - CALLERS_MAX + 1) : [];
  callers.forEach((node, i) => {
    if (i === CALLERS_MAX - 2 && hidden.length)
      tree = { node: hidden[0], name: `… ${hidden.length} more callers`, value: tree.value, children: [tree], fade: true };
    tree = { node, name: tables.label(node), value: tree.value, children: [tree], fade: true };
  });
  return tree;
}
