// SPDX-License-Identifier: BSD-2-Clause
/*
 * hostile.js IN OUT: the same capture, with names that try to be more than names.
 *
 * In:   a capture as `record --format raw` writes it (docs/capture-format.md).
 * Out:  OUT, in which the functions and files of frames, and the command in the header, have
 *       names that would be markup, script, or controls if somebody let them.
 */
"use strict";

const fs = require("node:fs");

const NAMES = [
  "</script><script>window.pwned = 1</script>",
  "<img src=x onerror=window.pwned=1>",
  "<!--<script>",
  "]]>\"'\\`${window.pwned = 1}",
  "HEAPSONDE_DATA",
  "__proto__",
  "\u202edesrever\u2028\u200b",
  "\u0007\u001b[31mred\u009b",
  "",
  "constructor",
  "x".repeat(2000),
  "名前 🐫 \u{10ffff}",
].map((name) => Buffer.from(name));
NAMES.push(Buffer.from([0xff, 0xc0, 0x80, 0xed, 0xa0, 0x80, 0x41])); // not UTF-8

const KIND_JSON = 1;
const KIND_FRAME = 3;
const HAS_FUNCTION = 2;
const HAS_FILE = 4;

let next = 0;

/* Each name that is there becomes the next hostile one. */
function renameFrame(payload) {
  const n = payload.readUInt32LE(8);
  const parts = [payload.subarray(0, 16)];
  let at = 16;

  for (let i = 0; i < n; i++) {
    const fixed = Buffer.from(payload.subarray(at, at + 32));
    const flags = fixed.readUInt32LE(20);
    const name = flags & HAS_FUNCTION ? NAMES[next++ % NAMES.length] : Buffer.alloc(0);
    const file = flags & HAS_FILE ? NAMES[next++ % NAMES.length] : Buffer.alloc(0);
    at += 32 + fixed.readUInt32LE(24) + fixed.readUInt32LE(28);
    fixed.writeUInt32LE(name.length, 24);
    fixed.writeUInt32LE(file.length, 28);
    parts.push(fixed, name, file);
  }
  return Buffer.concat(parts);
}

function renameJson(payload) {
  const object = JSON.parse(payload.toString());

  if (object.type === "header") object.command = NAMES[0].toString();
  return Buffer.from(JSON.stringify(object));
}

function chunk(kind, payload) {
  const head = Buffer.alloc(8);

  head.writeUInt32LE(kind, 0);
  head.writeUInt32LE(payload.length, 4);
  return Buffer.concat([head, payload, Buffer.alloc((8 - (payload.length % 8)) % 8)]);
}

function main() {
  const [input, output] = process.argv.slice(2);
  const bytes = fs.readFileSync(input);
  const out = [bytes.subarray(0, 16)];

  for (let at = 16; at < bytes.length; ) {
    const kind = bytes.readUInt32LE(at);
    const size = bytes.readUInt32LE(at + 4);
    const payload = bytes.subarray(at + 8, at + 8 + size);
    const renamed = kind === KIND_FRAME ? renameFrame(payload) : kind === KIND_JSON ? renameJson(payload) : payload;
    out.push(chunk(kind, renamed));
    at += 8 + Math.ceil(size / 8) * 8;
  }
  if (next < NAMES.length) throw new Error(`only ${next} names in the capture, too few for all ${NAMES.length}`);
  fs.writeFileSync(output, Buffer.concat(out));
}

main();
