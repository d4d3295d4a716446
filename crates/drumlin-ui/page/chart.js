// A column over another, drawn from buckets that the server makes: a band from the least to the greatest value, and the mean.

import { el, shown, svg } from "./element.js";
import { compact, count, counted } from "./figures.js";
import { get, isAborted, Latest, reason } from "./server.js";

const WIDTH = 1000;
const HEIGHT = 420;
const EDGE = { left: 74, right: 14, top: 12, bottom: 30 };

export class ChartPanel {
  constructor() {
    this.latest = new Latest();
    this.path = "";
    this.asOf = "";
    this.x = el("select", { "aria-label": "Across", onchange: () => this.load() });
    this.y = el("select", { "aria-label": "Upwards", onchange: () => this.load() });
    this.where = el("input", { type: "search", placeholder: "Filter", "aria-label": "Filter of the chart", onchange: () => this.load() });
    this.told = el("output", { "aria-live": "polite" });
    this.error = el("div", { class: "error", role: "alert", hidden: true });
    this.drawing = el("div", { class: "chart" });
    const bar = el("div", { class: "bar" }, el("label", {}, "Draw", this.y), el("label", {}, "over", this.x),
      el("span", { class: "grow" }, this.where), this.told);
    this.element = el("div", { class: "panel" }, bar, this.error, this.drawing);
  }

  /** Another table comes: what is typed from now on is of that. */
  begin() {
    this.latest.next();
    this.path = "";
    this.where.value = this.told.textContent = "";
    this.error.hidden = true;
    for (const part of [this.x, this.y, this.drawing]) part.replaceChildren();
  }

  /** @param {{ path: string, columns: { name: string, kind: string }[], sort: string[] }} info @param {string} asOf */
  show(info, asOf) {
    const drawn = info.columns.filter((column) => column.kind === "number" || column.kind === "time");
    const option = (/** @type {string} */ value, /** @type {string} */ text) => el("option", { value }, text);
    if (this.path !== info.path) {
      this.x.replaceChildren(option("", "row number"), ...drawn.map((column) => option(column.name, shown(column.name))));
      this.y.replaceChildren(...drawn.map((column) => option(column.name, shown(column.name))));
      const across = drawn.find((column) => info.sort.includes(column.name)) ?? drawn.find((column) => column.kind === "time");
      this.x.value = across?.name ?? "";
      this.y.value = drawn.find((column) => column.name !== across?.name && column.kind === "number")?.name ?? drawn[0]?.name ?? "";
    }
    this.path = info.path;
    this.asOf = asOf;
    if (drawn.length === 0) {
      this.drawing.replaceChildren(el("p", { class: "empty" }, "This table has no column of numbers or times to draw."));
      return;
    }
    this.load();
  }

  async load() {
    if (this.path === "") return;
    const signal = this.latest.next();
    this.error.hidden = true;
    this.told.textContent = "reading …";
    try {
      const query = { path: this.path, as_of: this.asOf, x: this.x.value, y: this.y.value, where: this.where.value.trim(), buckets: 600 };
      this.draw(await get("/api/chart", query, signal));
    } catch (error) {
      if (isAborted(error)) return;
      this.told.textContent = "";
      this.error.textContent = reason(error);
      this.error.hidden = false;
    }
  }

  /** @param {{ x: { kind: string, low: number, high: number }, y: { kind: string }, rows: number, left_out: number, buckets: number[][] }} found */
  draw(found) {
    const { buckets } = found;
    const without = found.left_out > 0 ? `, ${count(found.left_out)} of them without a number` : "";
    this.told.textContent = `${counted(found.rows, "row")}${without} in ${counted(buckets.length, "bucket")}`;
    if (buckets.length === 0) {
      this.drawing.replaceChildren(el("p", { class: "empty" }, "There is nothing to draw."));
      return;
    }
    let low = Math.min(...buckets.map((bucket) => bucket[2]));
    let high = Math.max(...buckets.map((bucket) => bucket[3]));
    if (low === high) { low -= 1; high += 1; }
    const wide = found.x.high - found.x.low || 1;
    const across = (/** @type {number} */ x) => EDGE.left + (x - found.x.low) / wide * (WIDTH - EDGE.left - EDGE.right);
    const up = (/** @type {number} */ y) => HEIGHT - EDGE.bottom - (y - low) / (high - low) * (HEIGHT - EDGE.top - EDGE.bottom);
    const point = (/** @type {number} */ x, /** @type {number} */ y) => `${across(x).toFixed(1)},${up(y).toFixed(1)}`;
    const band = [...buckets.map((b) => point(b[0], b[3])), ...[...buckets].reverse().map((b) => point(b[0], b[2]))];
    const name = `${shown(this.y.value)} over ${shown(this.x.value || "row number")}`;
    const told = `${name}: from ${label(low, found.y.kind)} to ${label(high, found.y.kind)}`;
    const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": told });
    for (const y of ticks(low, high, 6, found.y.kind)) {
      drawing.append(svg("line", { class: "tick", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: up(y), y2: up(y) }));
    }
    drawing.append(svg("polygon", { class: "band", points: band.join(" ") }));
    drawing.append(svg("polyline", { class: "mean", points: buckets.map((b) => point(b[0], b[4])).join(" "), "vector-effect": "non-scaling-stroke" }));
    drawing.append(svg("line", { class: "axis", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: HEIGHT - EDGE.bottom, y2: HEIGHT - EDGE.bottom }));
    const cursor = svg("line", { class: "cursor", y1: EDGE.top, y2: HEIGHT - EDGE.bottom, visibility: "hidden" });
    drawing.append(cursor);
    const labels = this.labels(found, low, high, up);
    const read = el("output", { class: "quiet" }, `${counted(buckets.length, "bucket")}: the band is from the least to the greatest value, the line is the mean`);
    drawing.addEventListener("pointermove", (event) => {
      const box = drawing.getBoundingClientRect();
      const x = found.x.low + ((event.clientX - box.left) / box.width * WIDTH - EDGE.left) / (WIDTH - EDGE.left - EDGE.right) * wide;
      const near = buckets.reduce((best, b) => (Math.abs(b[0] - x) < Math.abs(best[0] - x) ? b : best));
      cursor.setAttribute("x1", String(across(near[0])));
      cursor.setAttribute("x2", String(across(near[0])));
      cursor.setAttribute("visibility", "visible");
      read.textContent = `${label(near[0], found.x.kind)}: ${counted(near[1], "value")} from ${label(near[2], found.y.kind)} to `
        + `${label(near[3], found.y.kind)}, mean ${label(near[4], found.y.kind)}`;
    });
    const frame = el("div", { class: "drawn" }, drawing, ...labels);
    this.drawing.replaceChildren(frame, read);
    this.drawing.dataset.buckets = String(buckets.length);
  }

  /** Text beside the axes, which is not stretched with the drawing.
   * @param {{ x: { kind: string, low: number, high: number }, y: { kind: string } }} found
   * @param {number} low @param {number} high @param {(y: number) => number} up */
  labels(found, low, high, up) {
    const left = ticks(low, high, 6, found.y.kind).map((y) => {
      const text = el("span", { class: "label left", "aria-hidden": "true" }, label(y, found.y.kind));
      text.style.top = `${up(y) / HEIGHT * 100}%`;
      return text;
    });
    const below = ticks(found.x.low, found.x.high, 6, found.x.kind).map((x) => {
      const text = el("span", { class: "label below", "aria-hidden": "true" }, label(x, found.x.kind));
      const share = (x - found.x.low) / (found.x.high - found.x.low || 1);
      text.style.left = `${(EDGE.left + share * (WIDTH - EDGE.left - EDGE.right)) / WIDTH * 100}%`;
      return text;
    });
    return [...left, ...below];
  }
}

/** Round values within bounds. @param {number} low @param {number} high @param {number} most @param {string} kind @returns {number[]} */
export function ticks(low, high, most, kind) {
  const raw = (high - low) / most;
  if (!(raw > 0)) return [low];
  if (kind === "time") return times(low, high, raw);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw) ?? 10 * power;
  const found = [];
  for (let n = Math.ceil(low / step); n * step <= high + step * 1e-9; n += 1) found.push(n * step);
  return found;
}

/** Round times within bounds, which are in microseconds. @param {number} low @param {number} high @param {number} raw @returns {number[]} */
function times(low, high, raw) {
  const [second, day] = [1e6, 86400e6];
  const units = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10800, 21600, 43200].map((n) => n * second);
  const step = [...units, ...[1, 2, 5, 10, 30, 60, 90, 180].map((n) => n * day)].find((n) => n >= raw);
  const found = [];
  if (step && raw >= second) {
    for (let n = Math.ceil(low / step); n * step <= high; n += 1) found.push(n * step);
    return found;
  }
  if (!step) {
    const years = Math.ceil(raw / (365 * day));
    for (let year = new Date(low / 1000).getUTCFullYear() + 1; Date.UTC(year, 0) * 1000 <= high; year += years) found.push(Date.UTC(year, 0) * 1000);
    return found;
  }
  return ticks(low, high, 6, "number");
}

/** A value on an axis. @param {number} value @param {string} kind */
function label(value, kind) {
  if (kind === "time") {
    const date = new Date(value / 1000);
    return Number.isNaN(date.getTime()) ? String(value) : date.toISOString().replace("T", " ").replace(/(:00)?\.000Z$/, "").replace(" 00:00", "");
  }
  if (kind === "row") return count(Math.round(value));
  return Math.abs(value) >= 1e6 ? compact(value) : String(Number(value.toPrecision(6)));
}
