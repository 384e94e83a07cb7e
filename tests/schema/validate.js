// SPDX-License-Identifier: BSD-2-Clause
/*
 * validate.js SCHEMA FILE: is FILE as its JSON schema demands?
 *
 * In:   the schema; a JSON file; NODE_PATH, where ajv is (scripts/npm-modules tests/schema).
 * Out:  exit 0, or 1 with what is wrong on stderr.
 */
"use strict";

const fs = require("node:fs");
const Ajv = require("ajv");

const [schema, file] = process.argv.slice(2).map((path) => JSON.parse(fs.readFileSync(path, "utf8")));
/* Not strict: that is about how schemas are written, and this one is not ours. */
const validate = new Ajv({ strict: false, allErrors: true }).compile(schema);

if (!validate(file)) {
  console.error(validate.errors.slice(0, 20));
  process.exitCode = 1;
}
