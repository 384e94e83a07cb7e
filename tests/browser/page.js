// SPDX-License-Identifier: BSD-2-Clause
/*
 * page.js PAGE JSONL: does the page show what the records say?
 *
 * In:   a page of `heapsonde export --to html`; the same capture as JSON lines. In it at
 *       least one frame of the first stack has a sibling. SCREENSHOTS, a prefix for
 *       pictures (optional); see browser.js.
 * Out:  one line a check on stdout; exit 1 with the reason at the first that fails.
 */
"use strict";

const assert = require("node:assert/strict");
const { newPage, openFile, assertNothingWrong, waitFor, run } = require("./browser.js");
const { expected } = require("./expected.js");

/* Numbers in the page have nine digits. */
const CLOSE = 1e-7;
/* What prune.js does not draw; and how far a drawn width may be off. */
const MIN_PX = 0.5;

function isClose(a, b) {
  return Math.abs(a - b) <= CLOSE * Math.max(1, Math.abs(a), Math.abs(b));
}

async function drawn(page) {
  await waitFor(page, "the graph", () => !!document.querySelector("#graph svg[data-drawn]"));
}

/* The frames of the graph: { path, words, width, node, classes, focused }. */
async function frames(page) {
  await drawn(page);
  return page.evaluate(() =>
    Array.from(document.querySelectorAll("#graph svg g"), (g) => {
      const names = [];
      for (let d = g.__data__; d.parent; d = d.parent) names.unshift(d.data.name);
      return {
        path: names.join("\n"),
        words: Number(g.dataset.words),
        width: Number(g.querySelector("rect").getAttribute("width")),
        node: Number(g.dataset.node),
        classes: Array.from(g.classList),
        focused: g === document.activeElement,
      };
    })
  );
}

/* Do something in the page that draws the graph anew, and wait until it has. */
async function redraw(page, what, ...args) {
  await page.evaluate(() => document.querySelector("#graph svg")?.setAttribute("data-old", ""));
  await page.evaluate(what, ...args);
  await waitFor(page, "another graph", () => {
    const svg = document.querySelector("#graph svg");
    return svg ? !svg.hasAttribute("data-old") && "drawn" in svg.dataset : !!document.querySelector("#graph").textContent;
  });
}

const chooseMetric = (name) => document.querySelector(`input[name=metric][value=${name}]`).click();
const canChoose = (name) => !document.querySelector(`input[name=metric][value=${name}]`).disabled;
const clickNode = (node) => document.querySelector(`#graph g[data-node="${node}"]`).dispatchEvent(new MouseEvent("click"));
function chooseDomain(value) {
  const select = document.getElementById("domain");
  select.value = value;
  select.dispatchEvent(new Event("change"));
}
function searchFor(text) {
  const input = document.getElementById("search");
  input.value = text;
  input.dispatchEvent(new Event("input"));
}

/* Words, widths and number of frames are those of the records. */
function checkGraph(list, sums) {
  const all = list.find((f) => f.path === "");
  const visible = Array.from(sums.byPath.values()).filter((w) => (w / sums.total) * all.width >= MIN_PX);

  assert(isClose(all.words, sums.total), `all: ${all.words} words, not ${sums.total}`);
  for (const f of list) {
    const words = f.path ? sums.byPath.get(f.path) : sums.total;
    assert(words !== undefined, `a frame that no stack has: ${f.path}`);
    assert(isClose(f.words, words), `${f.path}: ${f.words} words, not ${words}`);
    const width = (words / sums.total) * all.width;
    assert(Math.abs(f.width - width) < 0.1, `${f.path}: ${f.width} px wide, not ${width}`);
  }
  assert.equal(list.length, visible.length + 1, "number of frames");
  return list.length;
}

async function checkMetrics(page, sums) {
  for (const name of ["live", "promoted", "allocated"]) {
    /* What the capture does not tell cannot be chosen. */
    if (!(await page.evaluate(canChoose, name))) {
      console.log(`${name}: not known`);
      continue;
    }
    if (!(sums.metrics[name].total > 0)) continue;
    await redraw(page, chooseMetric, name);
    console.log(`${name}: ${checkGraph(await frames(page), sums.metrics[name])} frames`);
  }
}

async function checkDomains(page, sums) {
  const { total, byDomain } = sums.metrics.allocated;

  for (const domain of sums.domains) {
    await redraw(page, chooseDomain, String(domain));
    const all = (await frames(page)).find((f) => f.path === "");
    assert(isClose(all.words, byDomain.get(domain)), `domain ${domain}: ${all.words}, not ${byDomain.get(domain)}`);
  }
  await redraw(page, chooseDomain, "");
  assert(isClose((await frames(page))[0].words, total));
  console.log(`domains: ${sums.domains.length}`);
}

async function checkZoom(page) {
  const before = await frames(page);
  const full = before.find((f) => f.path === "").width;
  const target = before.find((f) => f.width < 0.9 * full && f.width > 0.05 * full);

  assert(target, "no frame to zoom into: another program is needed");
  await redraw(page, clickNode, target.node);
  const after = await frames(page);
  assert(Math.abs(after.find((f) => f.node === target.node).width - full) < 0.1, "the frame clicked is not as wide as the graph");
  for (const f of after)
    assert(
      target.path.startsWith(f.path) || f.path.startsWith(target.path),
      `a frame that is neither above nor below: ${f.path}`
    );
  assert(await page.evaluate((path) => document.getElementById("details").innerText.includes(path), target.path.split("\n").pop().split("  ")[0]));
  await redraw(page, () => document.getElementById("reset").click());
  assert.equal((await frames(page)).length, before.length);
  console.log("zoom: by click, and back");
}

async function checkSearch(page) {
  const before = await frames(page);
  const leaf = before.reduce((a, b) => (b.path.split("\n").length > a.path.split("\n").length ? b : a));
  const wanted = leaf.path.split("\n").pop().split("  ")[0];
  const own = (f) => f.path.split("\n").pop().replace("  ", " ").toLowerCase();
  const hits = before.filter((f) => f.path && own(f).includes(wanted.toLowerCase()));

  await redraw(page, searchFor, wanted);
  const after = await frames(page);
  assert.deepEqual(
    after.filter((f) => f.classes.includes("match")).map((f) => f.path).sort(),
    hits.map((f) => f.path).sort()
  );
  assert.match(await page.evaluate(() => document.getElementById("found").textContent), /frames, .* %/);
  await redraw(page, searchFor, "");
  assert.equal((await frames(page)).filter((f) => f.classes.includes("match")).length, 0);
  console.log(`search: ${hits.length} frames`);
}

async function checkKeyboard(page) {
  const focused = async () => (await frames(page)).find((f) => f.focused);

  await page.evaluate(() => document.querySelector("#graph g[tabindex='0']").focus());
  assert.equal((await focused()).path, "");
  await page.keyboard.press("ArrowDown");
  const child = await focused();
  assert.equal(child.path.split("\n").length, 1);
  assert.notEqual(child.path, "");
  await page.keyboard.press("Enter");
  assert.equal((await focused()).node, child.node);
  assert.equal(await page.evaluate(() => document.getElementById("reset").disabled), false);
  await page.keyboard.press("Escape");
  assert.equal((await focused()).path, "");
  assert.equal(await page.evaluate(() => document.getElementById("reset").disabled), true);
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "search");
  assert.equal(await page.evaluate(() => document.activeElement.value), "");
  console.log("keyboard: down, zoom, out, search");
}

async function checkRest(page) {
  const steps = await page.evaluate(() => Array.from(document.querySelectorAll("#timeline path[data-steps]"), (p) => Number(p.dataset.steps)));
  const text = await page.evaluate(() => document.body.innerText);

  assert.equal(steps.length, 2, "live and rate are drawn");
  assert(steps.every((n) => n >= 1), `steps: ${steps}`);
  assert(await page.evaluate(() => document.querySelectorAll("#sites tbody tr").length > 0), "no sites");
  assert.match(text, /Blocks from before are in no figure/);
  assert.match(await page.title(), / – heapsonde$/);
  await redraw(page, () => document.querySelector("input[name=unit][value=bytes]").click());
  assert.match(await page.evaluate(() => document.getElementById("details").innerText), /\d ([KMGT]i)?B/);
  await redraw(page, () => document.querySelector("input[name=unit][value=words]").click());
  console.log(`timeline: ${steps} steps`);
}

/* A name that is markup must have stayed a name. */
async function checkNoMarkup(page) {
  const odd = await page.evaluate(() => document.querySelectorAll("body script, img, iframe, object, embed, a, [onerror], [onload]").length);

  assert.equal(odd, 1, "elements beside the page's own script");
  assert.equal(await page.evaluate(() => window.pwned), undefined);
}

async function pictures(browser, file) {
  const prefix = process.env.SCREENSHOTS;

  if (!prefix) return;
  for (const [width, height, scheme] of [[1280, 800, "light"], [1280, 800, "dark"], [800, 600, "light"]]) {
    const page = await newPage(browser, { width, height, scheme });
    await openFile(page, file);
    await drawn(page);
    await page.screenshot({ path: `${prefix}-${width}-${scheme}.png` });
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert(wider <= 0, `at ${width} px the page is ${wider} px too wide`);
    await page.close();
  }
}

async function main(browser) {
  const [file, jsonl] = process.argv.slice(2);
  const sums = expected(jsonl);
  const page = await newPage(browser);

  await openFile(page, file);
  console.log(`allocated: ${checkGraph(await frames(page), sums.metrics.allocated)} frames`);
  await checkNoMarkup(page);
  await checkMetrics(page, sums);
  await checkDomains(page, sums);
  await checkZoom(page);
  await checkSearch(page);
  await checkRest(page);
  await checkKeyboard(page);
  await pictures(browser, file);
  assertNothingWrong(page);
}

run(main);
