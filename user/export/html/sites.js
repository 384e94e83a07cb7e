// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of allocation sites.
 *
 * In:   Tables; the metric to sort by; how amounts are written.
 * Out:  a table, whose rows lead to a search for their function.
 */
import { interval, percent } from "./estimate.js";
import { METRICS } from "./tables.js";

const SITES_MAX = 50;

function cell(kind, content, className) {
  const td = document.createElement(kind);

  if (className) td.className = className;
  td.append(content);
  return td;
}

function small(text) {
  return Object.assign(document.createElement("small"), { textContent: text });
}

function head(metric, titles) {
  const tr = document.createElement("tr");

  for (const m of METRICS) tr.append(cell("th", titles[m], m === metric ? "now" : "hide-narrow"));
  tr.append(cell("th", "Share", "now"), cell("th", "Site", "site"));
  return tr;
}

function siteCell(tables, frame, onPick) {
  const { name, place } = tables.frames[frame];
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
  const td = cell("td", button, "site");

  button.title = `${name} ${place}: search for it`;
  button.addEventListener("click", () => onPick(name));
  td.append(small(place));
  return td;
}

function amountCell(sums, frame, isNow, format, rate) {
  const td = cell("td", format(sums.words[frame]), isNow ? "now" : "hide-narrow");

  if (isNow) {
    const [low, high] = interval(sums.words[frame], sums.variance[frame], rate);
    td.append(" ", small(`(${format(low)} – ${format(high)})`));
  }
  return td;
}

/* view: { tables, metric, format, rate, titles }; onPick(name): a row was clicked. */
export function showSites(table, rest, view, onPick) {
  const { tables, metric } = view;
  const sites = tables.sites(metric);
  const sums = Object.fromEntries(METRICS.map((m) => [m, tables.siteSums(m)]));
  const whole = tables.wholes[metric].words;
  const body = document.createElement("tbody");
  const thead = document.createElement("thead");

  for (const frame of sites.slice(0, SITES_MAX)) {
    const tr = document.createElement("tr");
    for (const m of METRICS) tr.append(amountCell(sums[m], frame, m === metric, view.format, view.rate));
    tr.append(cell("td", percent(sums[metric].words[frame], whole), "now"), siteCell(tables, frame, onPick));
    body.append(tr);
  }
  thead.append(head(metric, view.titles));
  table.replaceChildren(thead, body);
  rest.textContent = sites.length > SITES_MAX ? `The biggest ${SITES_MAX} of ${sites.length.toLocaleString("en")} sites.` : "";
}
