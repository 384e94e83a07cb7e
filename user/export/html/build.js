// SPDX-License-Identifier: BSD-2-Clause
/*
 * build.js FOLDER: make the page that heapsonde puts its data into.
 *
 * In:   page.html, page.css and page.js beside this file; the libraries, in NODE_PATH
 *       (scripts/npm-modules user/export/html).
 * Out:  FOLDER/page.html, and FOLDER/page.h, the same as a C array. The script and the
 *       style are in it, their hashes in its policy, and the licences of all packages of
 *       which a part is in it. HEAPSONDE_DATA stands where the data goes, once.
 */
"use strict";

const crypto = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");
const esbuild = require("esbuild");

const MARK = "HEAPSONDE_DATA";

async function bundle() {
  const result = await esbuild.build({
    absWorkingDir: __dirname,
    entryPoints: ["page.js"],
    outdir: "out",
    nodePaths: (process.env.NODE_PATH || "").split(":"),
    bundle: true,
    minify: true,
    charset: "ascii",
    format: "iife",
    target: "es2020",
    legalComments: "inline",
    metafile: true,
    write: false,
    logLevel: "warning",
  });
  const text = (suffix) => result.outputFiles.find((f) => f.path.endsWith(suffix)).text;

  return { script: text(".js"), style: text(".css"), inputs: Object.keys(result.metafile.inputs) };
}

/* The folders of the packages that these files came from. */
function packagesOf(inputs) {
  const folders = new Set();

  for (const input of inputs) {
    const file = path.resolve(__dirname, input);
    const found = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file);
    if (found) folders.add(found[1]);
  }
  return Array.from(folders).sort();
}

function licenceOf(folder) {
  const { name, version, license } = JSON.parse(fs.readFileSync(path.join(folder, "package.json")));
  const files = fs.readdirSync(folder).filter((f) => /^(licen[cs]e|notice)/i.test(f));

  if (!files.length) throw new Error(`${name} comes without its licence`);
  const texts = files.map((f) => fs.readFileSync(path.join(folder, f), "utf8").trim());
  return `${name} ${version} (${license})\n\n${texts.join("\n\n")}\n`;
}

/* d3's pieces share most of their licence; one text stands for all that have the same. */
function licences(folders) {
  const byText = new Map();

  for (const folder of folders) {
    const [title, ...rest] = licenceOf(folder).split("\n\n");
    const text = rest.join("\n\n");
    byText.set(text, (byText.get(text) || []).concat(title));
  }
  return Array.from(byText, ([text, titles]) => `${titles.join("\n")}\n\n${text}`).join("\n----\n\n");
}

function escapeHtml(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function hash(text) {
  return "sha256-" + crypto.createHash("sha256").update(text).digest("base64");
}

function fill(page, parts) {
  /* Functions, so that no `$` in a part means anything. */
  for (const [mark, text] of Object.entries(parts)) {
    if (page.split(mark).length !== 2) throw new Error(`${mark} is not in page.html once`);
    page = page.replace(mark, () => text);
  }
  return page;
}

function toC(page) {
  const lines = ["/* Made by user/export/html/build.js from the files there. */", "static const unsigned char page_html[] = {"];
  const bytes = Buffer.from(page);

  for (let i = 0; i < bytes.length; i += 24) lines.push(Array.from(bytes.subarray(i, i + 24)).join(",") + ",");
  return lines.concat("};", "").join("\n");
}

async function main() {
  const out = process.argv[2];
  const { script, style, inputs } = await bundle();
  const page = fill(fs.readFileSync(path.join(__dirname, "page.html"), "utf8"), {
    HEAPSONDE_SCRIPT_HASH: hash(script),
    HEAPSONDE_STYLE_HASH: hash(style),
    HEAPSONDE_LICENCES: escapeHtml(licences(packagesOf(inputs))),
    HEAPSONDE_STYLE: style,
    HEAPSONDE_SCRIPT: script,
  });

  if (/<\/script/i.test(script) || /<\/style/i.test(style)) throw new Error("the bundle would end its element");
  if (page.split(MARK).length !== 2) throw new Error(`${MARK} is not in the page once`);
  fs.mkdirSync(out, { recursive: true });
  fs.writeFileSync(path.join(out, "page.html"), page);
  fs.writeFileSync(path.join(out, "page.h"), toC(page));
}

main().catch((e) => {
  console.error(`build.js: ${e.message}`);
  process.exit(1);
});
