// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the page says of the capture itself.
 *
 * In:   the members of the data that come from the capture's own records (docs/records.md).
 *       Any of them may be missing or of another type: a capture may be cut, or a forgery.
 * Out:  the title, the facts under it, the notes.
 */
import { seconds } from "./estimate.js";

function text(x, fallback) {
  return typeof x === "string" && x ? x.slice(0, 300) : fallback;
}

function formatRate(rate) {
  if (!(rate > 0)) return "unknown";
  const log = -Math.log2(rate);

  if (rate === 1) return "every word";
  return Number.isInteger(log) ? `2^-${log} a word` : `${rate.toPrecision(6).replace(/\.?0+$/, "")} a word`;
}

function startOf(header) {
  const ms = (header.time + header.wall_offset) / 1e6;
  const date = new Date(ms);

  return Number.isNaN(date.getTime()) ? "unknown" : date.toISOString().replace("T", " ").slice(0, 19) + " UTC";
}

/* { total, causes }: records that are missing. */
function losses(lost) {
  const causes = Object.entries(lost || {}).filter(([, n]) => typeof n === "number" && n > 0);

  return { total: causes.reduce((sum, [, n]) => sum + n, 0), causes };
}

function facts(data) {
  const h = data.header || {};
  const { total, causes } = losses(data.lost);

  return [
    ["Process", `${h.pid ?? "unknown"}`],
    ["OCaml", text(h.ocaml, "unknown")],
    ["Since", startOf(h)],
    ["For", seconds(Math.max(0, data.last_s))],
    ["Sampled", formatRate(h.rate)],
    ["Records", data.events.toLocaleString("en")],
    ["Major cycles", data.cycles.toLocaleString("en")],
    ["Lost", total ? causes.map(([cause, n]) => `${n.toLocaleString("en")} ${cause}`).join(", ") : "nothing"],
  ];
}

function notes(data) {
  const out = ["Live means: of what was allocated since heapsonde attached. Blocks from before are in no figure."];

  if (!data.follows) out.push("Recorded with --track alloc: only what was allocated is known.");
  else if (!data.tells_cycles) out.push("The capture does not tell when major cycles ended: survivors are not known.");
  if (data.is_cut) out.push("The capture was cut off: the figures are as of its last record.");
  if (losses(data.lost).total) out.push("Records were lost, so the figures are too low or, where deaths were lost, live is too high.");
  if (data.nodes.is_cut) out.push("There are too many call stacks: some count for a caller.");
  return out;
}

export function showAbout(data) {
  const command = text((data.header || {}).command, text((data.header || {}).exe, text(data.input, "capture")));
  const about = document.getElementById("about");
  const noted = document.getElementById("notes");

  document.title = `${command} – heapsonde`;
  document.getElementById("title").textContent = command;
  for (const [name, value] of facts(data)) {
    const div = document.createElement("div");
    div.append(Object.assign(document.createElement("dt"), { textContent: name }));
    div.append(Object.assign(document.createElement("dd"), { textContent: value }));
    about.append(div);
  }
  noted.textContent = notes(data).join(" ");
}
