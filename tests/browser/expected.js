// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a page must show, added up from JSON lines (docs/records.md), apart from all of
 * heapsonde's own sums.
 *
 * In:   a file of JSON lines, whole.
 * Out:  expected(file): { metrics: { allocated, live, promoted: { total, byDomain, byPath } },
 *       domains }. Amounts in words; a path is the names of its frames, outermost first,
 *       joined by newlines; amounts of paths are inclusive.
 */
"use strict";

const fs = require("node:fs");

/* The page shows these as U+FFFD: they move the cursor, turn text round or hide it. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

const NAME_MAX = 300;

function clean(name) {
  return (name.length > NAME_MAX ? name.slice(0, NAME_MAX) + "…" : name).replace(UNSEEN, "\ufffd");
}

function frameName(frame) {
  const name = frame.function === null ? "(unknown)" : clean(frame.function) || "(no name)";
  const place = frame.file === null ? "" : frame.line ? `${clean(frame.file)}:${frame.line}` : clean(frame.file);

  return place ? `${name}  ${place}` : name;
}

function pathOf(stacks, id) {
  if (id === null) return ["(stack lost)"];
  return id === 0 ? ["(no OCaml frame)"] : stacks.get(id);
}

function addUp(blocks, stacks, isCounted) {
  const out = { total: 0, byDomain: new Map(), byPath: new Map() };
  const add = (map, key, words) => map.set(key, (map.get(key) || 0) + words);

  for (const block of blocks) {
    if (!isCounted(block)) continue;
    out.total += block.words;
    add(out.byDomain, block.domain, block.words);
    const path = pathOf(stacks, block.stack);
    for (let i = 1; i <= path.length; i++) add(out.byPath, path.slice(0, i).join("\n"), block.words);
  }
  return out;
}

function expected(file) {
  const stacks = new Map();
  const blocks = new Map();
  const rates = new Map();
  let rate = 0;

  for (const line of fs.readFileSync(file, "utf8").split("\n")) {
    if (!line) continue;
    const r = JSON.parse(line);
    const block = blocks.get(r.id);
    if (r.type === "profile") rate = rate || r.rate;
    else if (r.type === "rate") rates.set(r.domain, r.rate);
    else if (r.type === "stack") stacks.set(r.id, r.frames.map(frameName).reverse());
    else if (r.type.startsWith("alloc_"))
      blocks.set(r.id, { words: r.n_samples / (rates.get(r.domain) || rate), domain: r.domain, stack: r.stack, live: r.tracked, promoted: false });
    else if (block && r.type === "promote") block.promoted = true;
    else if (block && (r.type.startsWith("dealloc_") || r.type === "unknown")) block.live = false;
  }
  const all = Array.from(blocks.values());
  return {
    metrics: {
      allocated: addUp(all, stacks, () => true),
      live: addUp(all, stacks, (b) => b.live),
      promoted: addUp(all, stacks, (b) => b.promoted),
    },
    domains: Array.from(new Set(all.map((b) => b.domain))).sort((a, b) => a - b),
  };
}

module.exports = { expected };
