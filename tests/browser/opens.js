// SPDX-License-Identifier: BSD-2-Clause
/*
 * opens.js PAGE...: do pages open, and how quickly?
 *
 * In:   pages of `heapsonde export --to html`; see browser.js.
 * Out:  for each, on stdout: the ms from the start of navigation to the first flame graph,
 *       its number of frames, and which section is first, separated by blanks. Exit 1 with
 *       the reason if one draws no graph or timeline, or complains.
 */
"use strict";

const assert = require("node:assert/strict");
const { newPage, openFile, assertNothingWrong, waitFor, run } = require("./browser.js");

async function main(browser) {
  for (const file of process.argv.slice(2)) {
    const page = await newPage(browser);
    await openFile(page, file);
    await waitFor(page, "the graph", () => !!document.querySelector("#graph svg[data-drawn]"));
    const { ms, count, first, steps } = await page.evaluate(() => ({
      ms: Number(document.querySelector("#graph svg").dataset.drawn),
      count: document.querySelectorAll("#graph svg g").length,
      first: Array.from(document.querySelectorAll("main section")).sort(
        (a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top
      )[0].id,
      steps: document.querySelectorAll("#timeline path[data-steps]").length,
    }));
    assert(count > 1, "no frames");
    assert.equal(steps, 2, "no timeline");
    assertNothingWrong(page);
    console.log(`${ms} ${count} ${first}`);
    await page.close();
  }
}

run(main);
