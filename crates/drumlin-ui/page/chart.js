// A column over another, drawn from buckets that the server makes: a band from the least to the greatest value, and the mean.

import { el, shown, svg } from "./element.js";
import { label, ticks, zones } from "./axis.js";
import { count, counted } from "./figures.js";
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
    const chosen = [this.x, this.y].map((select) => select.value);
    this.x.replaceChildren(option("", "row number"), ...drawn.map((column) => option(column.name, shown(column.name))));
    this.y.replaceChildren(...drawn.map((column) => option(column.name, shown(column.name))));
    // Another version may lack a column that was chosen.
    if (this.path === info.path && chosen.every((name, at) => (at === 0 && name === "") || drawn.some((column) => column.name === name))) {
      [this.x.value, this.y.value] = chosen;
    } else {
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

  /** @param {{ x: import("./axis.js").Axis & { low: number, high: number }, y: import("./axis.js").Axis, rows: number, left_out: number, buckets: number[][] }} found */
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
    const told = `${name}: from ${label(low, found.y)} to ${label(high, found.y)}`;
    const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": told });
    for (const y of ticks(low, high, 6, found.y)) {
      drawing.append(svg("line", { class: "tick", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: up(y), y2: up(y) }));
    }
    drawing.append(svg("polygon", { class: "band", points: band.join(" ") }));
    drawing.append(svg("polyline", { class: "mean", points: buckets.map((b) => point(b[0], b[4])).join(" "), "vector-effect": "non-scaling-stroke" }));
    drawing.append(svg("line", { class: "axis", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: HEIGHT - EDGE.bottom, y2: HEIGHT - EDGE.bottom }));
    const cursor = svg("line", { class: "cursor", y1: EDGE.top, y2: HEIGHT - EDGE.bottom, visibility: "hidden" });
    drawing.append(cursor);
    const labels = this.labels(found, low, high, up);
    const read = el("output", { class: "quiet" }, `${counted(buckets.length, "bucket")}: the band is from the least to the greatest value, the line is the mean${zones(found.x, found.y)}`);
    drawing.addEventListener("pointermove", (event) => {
      const box = drawing.getBoundingClientRect();
      const x = found.x.low + ((event.clientX - box.left) / box.width * WIDTH - EDGE.left) / (WIDTH - EDGE.left - EDGE.right) * wide;
      const near = buckets.reduce((best, b) => (Math.abs(b[0] - x) < Math.abs(best[0] - x) ? b : best));
      cursor.setAttribute("x1", String(across(near[0])));
      cursor.setAttribute("x2", String(across(near[0])));
      cursor.setAttribute("visibility", "visible");
      read.textContent = `${label(near[0], found.x)}: ${counted(near[1], "value")} from ${label(near[2], found.y)} to `
        + `${label(near[3], found.y)}, mean ${label(near[4], found.y)}`;
    });
    const frame = el("div", { class: "drawn" }, drawing, ...labels);
    this.drawing.replaceChildren(frame, read);
    this.drawing.dataset.buckets = String(buckets.length);
  }

  /** Text beside the axes, which is not stretched with the drawing.
   * @param {{ x: import("./axis.js").Axis & { low: number, high: number }, y: import("./axis.js").Axis }} found
   * @param {number} low @param {number} high @param {(y: number) => number} up */
  labels(found, low, high, up) {
    const left = ticks(low, high, 6, found.y).map((y) => {
      const text = el("span", { class: "label left", "aria-hidden": "true" }, label(y, found.y));
      text.style.top = `${up(y) / HEIGHT * 100}%`;
      return text;
    });
    const below = ticks(found.x.low, found.x.high, 6, found.x).map((x) => {
      const text = el("span", { class: "label below", "aria-hidden": "true" }, label(x, found.x));
      const share = (x - found.x.low) / (found.x.high - found.x.low || 1);
      text.style.left = `${(EDGE.left + share * (WIDTH - EDGE.left - EDGE.right)) / WIDTH * 100}%`;
      return text;
    });
    return [...left, ...below];
  }
}
