// SPDX-License-Identifier: BSD-2-Clause
/*
 * speedscope.js FILE [NAME...]: does speedscope show this profile?
 *
 * In:   a profile in a format that speedscope reads; names that must be in its table of
 *       functions; SCREENSHOT, where to put a picture (optional); see browser.js.
 * Out:  on stdout the title that speedscope gives the profile, then one line for each
 *       function of its table: total, self, name, separated by tabs. Exit 1 with the reason
 *       if it does not load, shows no function, or lacks a name.
 *
 * The application is the released one, from the npm package, on a file:// page.
 */
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { newPage, openFile, assertNothingWrong, waitFor, run } = require("./browser.js");

/* Where the package is: it exports nothing that could be required. */
function application() {
  for (const dir of (process.env.NODE_PATH || "").split(":")) {
    const file = path.join(dir, "speedscope/dist/release/index.html");
    if (dir && fs.existsSync(file)) return file;
  }
  throw new Error("speedscope is missing: use tests/browser/run");
}

/* The way in that speedscope's own command uses: a script that hands over the file. */
function writeLoader(dir, profile) {
  const loader = path.join(dir, "load.js");
  const content = fs.readFileSync(profile).toString("base64");
  fs.writeFileSync(
    loader,
    `speedscope.loadFileFromBase64(${JSON.stringify(path.basename(profile))}, ${JSON.stringify(content)})`
  );
  return loader;
}

/*
 * The rows of the table in the view "Sandwich". They are as many as fit the window. (Where
 * there are several profiles another table lists them, without percentages.)
 */
function tableRows() {
  return Array.from(document.querySelectorAll("table tr"))
    .map((tr) => Array.from(tr.querySelectorAll("td")).map((td) => td.innerText.trim()))
    .filter((cells) => cells.length >= 3 && cells[0].includes("%"));
}

async function main(browser) {
  const [profile, ...names] = process.argv.slice(2);
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "speedscope-"));

  assert(profile, "usage: speedscope.js FILE [NAME...]");
  try {
    const page = await newPage(browser, { width: 1280, height: 2400 });
    await openFile(page, application(), `#localProfilePath=${writeLoader(dir, profile)}`);
    /* This button is there once a profile has been read. An error comes as a dialogue. */
    await waitFor(page, "the profile", () => document.body.innerText.includes("Sandwich"));
    const title = await page.title();
    await page.keyboard.press("3");
    await waitFor(page, "the table", () =>
      Array.from(document.querySelectorAll("table tr td")).some((td) => td.innerText.includes("%"))
    );
    const rows = await page.evaluate(tableRows);
    if (process.env.SCREENSHOT) {
      await page.setViewport({ width: 1280, height: 800 });
      await page.keyboard.press("2");
      await new Promise((resolve) => setTimeout(resolve, 500)); // only for the picture
      await page.screenshot({ path: process.env.SCREENSHOT });
    }
    console.log(title);
    for (const row of rows) console.log(row.join("\t").replace(/\n/g, " "));
    assert(rows.length > 0, "speedscope shows no function");
    for (const name of names)
      assert(rows.some((row) => row[2].includes(name)), `${name} is not in speedscope's table`);
    assertNothingWrong(page);
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
}

run(main);
