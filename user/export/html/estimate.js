// SPDX-License-Identifier: BSD-2-Clause
/*
 * Estimates for the page: the 95 % interval of a number of words, and how numbers are
 * written.
 *
 * In:   sums over samples, as user/track/estimate.h has them, and λ.
 * Out:  intervals, text.
 */

const Z = 1.959963984540054;

/* The bound of a Poisson mean, as gamma_quantile of user/track/estimate.c. */
function gammaQuantile(k, z) {
  const x = 1 - 1 / (9 * k) + z / (3 * Math.sqrt(k));

  return x > 0 ? k * x ** 3 : 0;
}

/* [low, high] in words, as amount__interval. rate: λ, for what was never seen. */
export function interval(words, variance, rate) {
  if (words <= 0) return [0, rate > 0 && rate < 1 ? 3.6888794541139363 / rate : 0];
  if (variance <= 0) return [words, words];
  const n = (words * words) / variance;
  const wordsPerSample = words / n;

  return [gammaQuantile(n, -Z) * wordsPerSample, gammaQuantile(n + 1, Z) * wordsPerSample];
}

/* Three digits and a prefix: 7, 812, 4.21k, 93.8M. */
function short(x, base, prefixes) {
  let i = 0;

  while (x >= (base === 1000 ? 999.5 : 1023.5) && i < prefixes.length - 1) {
    x /= base;
    i++;
  }
  const digits = i === 0 && Number.isInteger(x) ? 0 : x < 9.995 ? 2 : x < 99.95 ? 1 : 0;

  return [x.toFixed(digits), prefixes[i]];
}

export function words(x) {
  return short(x, 1000, ["", "k", "M", "G", "T", "P", "E"]).join("");
}

/* x: in words. */
export function bytes(x) {
  return short(8 * x, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]).join(" ");
}

export function percent(part, whole) {
  if (!(whole > 0)) return "–";
  const p = (100 * part) / whole;

  return (p >= 9.995 || p === 0 ? p.toFixed(p >= 99.95 || p === 0 ? 0 : 1) : p.toFixed(2)) + " %";
}

export function seconds(s) {
  if (s < 60) return `${s < 10 ? s.toFixed(2) : s.toFixed(1)} s`;
  const whole = Math.round(s);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];

  return parts.map((p, i) => (i ? String(p).padStart(2, "0") : p)).join(":");
}
