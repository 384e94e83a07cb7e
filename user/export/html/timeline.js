// SPDX-License-Identifier: BSD-2-Clause
/*
 * Words over time: those alive, with the band that they lie in, and those allocated a second.
 *
 * In:   data.timeline (docs/html.md): steps of equal length, amounts in words.
 * Out:  an SVG, and the figures at the pointer as text.
 */
import { axisBottom, axisLeft } from "d3-axis";
import { scaleLinear } from "d3-scale";
import { pointer, select } from "d3-selection";
import { area, curveStepAfter, line } from "d3-shape";

import { interval, seconds } from "./estimate.js";

const MARGIN = { left: 72, right: 24, top: 20, bottom: 22 };
const LIVE_PX = 130;
const RATE_PX = 80;
/* Rates of shorter steps than this many to the width are noise. */
const RATE_BINS = 240;

/* [{ at, end, allocated, promoted, live, low, high }]: times in s. n at most `bins`, or all. */
function steps(timeline, rate, bins) {
  const n = timeline.live.length;
  const joined = bins ? Math.max(1, Math.ceil(n / bins)) : 1;
  const out = [];

  for (let i = 0; i < n; i += joined) {
    const last = Math.min(n, i + joined) - 1;
    const step = { at: timeline.begin_s + i * timeline.step_s, allocated: 0, promoted: 0 };
    for (let j = i; j <= last; j++) {
      step.allocated += timeline.allocated[j];
      step.promoted += timeline.promoted[j];
    }
    step.end = timeline.begin_s + (last + 1) * timeline.step_s;
    step.live = timeline.live[last];
    [step.low, step.high] = step.live > 0 ? interval(step.live, timeline.live_variance[last], rate) : [0, 0];
    step.rate = step.allocated / (step.end - step.at);
    out.push(step);
  }
  return out;
}

function axes(svg, x, y, top, height, format, caption) {
  const g = svg.append("g");
  const tick = (v) => format(v).replace(/\.0+(?=\D|$)/, "");

  g.append("g").attr("transform", `translate(${MARGIN.left},0)`).call(axisLeft(y).ticks(4).tickFormat(tick));
  g.append("g")
    .attr("transform", `translate(0,${top + height})`)
    .call(axisBottom(x).ticks(8).tickFormat((s) => `${s} s`));
  g.append("text").attr("class", "caption").attr("x", MARGIN.left).attr("y", top - 7).text(caption);
}

function drawLive(svg, x, data, format) {
  const y = scaleLinear([0, Math.max(1, ...data.map((s) => s.high))], [MARGIN.top + LIVE_PX, MARGIN.top]).nice(4);

  svg.append("path").attr("class", "band").attr("d", area((s) => x(s.end), (s) => y(s.low), (s) => y(s.high))(data));
  svg
    .append("path")
    .attr("class", "live")
    .attr("data-steps", data.length)
    .attr("d", line((s) => x(s.end), (s) => y(s.live))(data));
  axes(svg, x, y, MARGIN.top, LIVE_PX, format, "Live, of what was allocated since attaching");
}

function drawRate(svg, x, data, format) {
  const top = MARGIN.top + LIVE_PX + MARGIN.bottom + MARGIN.top;
  const y = scaleLinear([0, Math.max(1, ...data.map((s) => s.rate))], [top + RATE_PX, top]).nice(4);
  const last = data[data.length - 1];
  const closed = data.concat({ ...last, at: last.end });

  svg
    .append("path")
    .attr("class", "rate")
    .attr("data-steps", data.length)
    .attr("d", area((s) => x(s.at), y(0), (s) => y(s.rate)).curve(curveStepAfter)(closed));
  axes(svg, x, y, top, RATE_PX, format, "Allocated a second");
  return top + RATE_PX + MARGIN.bottom;
}

/* element: to draw in; moment: for the figures at the pointer; format: of amounts in words. */
export function drawTimeline(element, moment, data, format) {
  const { timeline, rate } = data;
  const all = steps(timeline, rate, 0);
  const width = Math.max(300, element.clientWidth);

  element.replaceChildren();
  moment.textContent = "";
  if (!all.length) {
    element.textContent = "Nothing was sampled.";
    return;
  }
  const x = scaleLinear([all[0].at, all[all.length - 1].end], [MARGIN.left, width - MARGIN.right]);
  const svg = select(element).append("svg").attr("role", "img");
  const peak = all.reduce((a, b) => (b.live > a.live ? b : a));
  const end = all[all.length - 1];

  svg.attr(
    "aria-label",
    `Live over ${seconds(end.end - all[0].at)}: at most ${format(peak.live)} at ${seconds(peak.end)}, ${format(end.live)} at the end`
  );
  drawLive(svg, x, all, format);
  const height = drawRate(svg, x, steps(timeline, rate, RATE_BINS), format);
  svg.attr("width", width).attr("height", height).attr("viewBox", `0 0 ${width} ${height}`);
  follow(svg, x, height, all, timeline, moment, format);
}

/* Say what was so at the pointer. */
function follow(svg, x, height, all, timeline, moment, format) {
  const cursor = svg.append("line").attr("class", "cursor").attr("y1", MARGIN.top).attr("y2", height - MARGIN.bottom).attr("visibility", "hidden");

  svg.on("mousemove", (e) => {
    const s = x.invert(pointer(e, svg.node())[0]);
    const step = all[Math.min(all.length - 1, Math.max(0, Math.floor((s - timeline.begin_s) / timeline.step_s)))];
    cursor.attr("visibility", "visible").attr("x1", x(step.end)).attr("x2", x(step.end));
    moment.textContent = `${seconds(step.end)}: live ${format(step.live)} (${format(step.low)} – ${format(step.high)}), allocated ${format(step.rate)}/s`;
  });
  svg.on("mouseleave", () => {
    cursor.attr("visibility", "hidden");
    moment.textContent = "";
  });
}
