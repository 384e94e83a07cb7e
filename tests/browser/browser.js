// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the tests in a browser share: a Chromium without a network.
 *
 * In:   CHROMIUM, the browser's path (/usr/bin/chromium); NODE_PATH, where puppeteer-core
 *       is (scripts/npm-modules tests/browser).
 * Out:  functions. A page that asks for anything but files, or that complains on its
 *       console, has failed, and so has the test.
 */
"use strict";

const assert = require("node:assert/strict");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

/* Anything that takes longer hangs. Not a limit on how fast a page is. */
const DEADLINE_MS = 120000;

function puppeteer() {
  try {
    return require("puppeteer-core");
  } catch (e) {
    throw new Error("puppeteer-core is missing: use tests/browser/run", {
      cause: e,
    });
  }
}

async function launch() {
  return puppeteer().launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    headless: true,
    protocolTimeout: DEADLINE_MS,
    args: [
      "--no-sandbox", // tests run as root, and what they open is ours
      "--disable-dev-shm-usage", // containers have a small /dev/shm
      "--use-angle=swiftshader", // WebGL without a graphics card, for speedscope
      "--enable-unsafe-swiftshader",
      "--host-resolver-rules=MAP * ~NOTFOUND",
    ],
  });
}

/*
 * A tab that notes in page.wrong what a page of ours may not do. options: width and
 * height of the window (px), scheme ("light", "dark").
 */
async function newPage(browser, options = {}) {
  const page = await browser.newPage();
  page.wrong = [];
  page.setDefaultTimeout(DEADLINE_MS);
  await page.setViewport({ width: options.width || 1280, height: options.height || 800 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: options.scheme || "light" }]);
  page.on("request", (r) => {
    if (!/^(file|data|blob|about):/.test(r.url())) page.wrong.push(`asked for ${r.url()}`);
  });
  page.on("dialog", (d) => {
    page.wrong.push(`says: ${d.message()}`);
    d.dismiss().catch(() => {});
  });
  page.on("pageerror", (e) => page.wrong.push(`exception: ${e.stack || e}`));
  page.on("console", (m) => {
    if (m.type() === "error" || m.type() === "warn") page.wrong.push(`console: ${m.text()}`);
  });
  return page;
}

/* Open a file in a tab. */
async function openFile(page, file, hash = "") {
  await page.goto(pathToFileURL(path.resolve(file)).href + hash, { timeout: DEADLINE_MS });
}

function assertNothingWrong(page) {
  assert.deepEqual(page.wrong, []);
}

/* Wait until test(args) holds in the page; fails at once when something goes wrong there. */
async function waitFor(page, what, test, ...args) {
  const end = Date.now() + DEADLINE_MS;

  while (!(await page.evaluate(test, ...args))) {
    assertNothingWrong(page);
    assert(Date.now() < end, `waited ${DEADLINE_MS} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/*
 * Run a test: body(browser), and the browser is gone afterwards, however it ended. Exit
 * status 1 and the reason on stderr if it failed.
 */
async function run(body) {
  let browser;
  try {
    browser = await launch();
    await body(browser);
  } catch (e) {
    console.error(e.stack || String(e));
    if (e.cause) console.error(String(e.cause));
    process.exitCode = 1;
  } finally {
    if (browser) await browser.close();
  }
}

module.exports = { DEADLINE_MS, newPage, openFile, assertNothingWrong, waitFor, run };
