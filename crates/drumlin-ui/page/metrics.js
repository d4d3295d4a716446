// Figures by name, as monitoring sees them.

import { button, el, plainTable } from "./element.js";
import { bytes, count } from "./figures.js";
import { get, isAborted, reason, text } from "./server.js";

/** How often the figures are asked for again. */
const EVERY = 5000;

export class MetricsView {
  constructor() {
    this.error = el("div", { class: "error", role: "alert", hidden: true });
    this.body = el("div", { class: "body" });
    this.told = el("span", { class: "note" }, "for Prometheus: GET /metrics with the token as a bearer token");
    this.dialog = el("dialog", { "aria-label": "Prometheus text" });
    this.element = el("section", { class: "panel", "aria-label": "Metrics" },
      el("div", { class: "bar" }, this.told, el("span", { class: "space" }), button("As text", () => this.asText())), this.error, this.body, this.dialog);
    /** @type {Map<string, number>} */
    this.before = new Map();
  }

  async show() {
    clearTimeout(this.timer);
    try {
      const { metrics } = await get("/api/metrics");
      this.error.hidden = true;
      const rows = metrics.map((/** @type {any} */ { name, help, value, kind, mean }) => {
        const change = value - (this.before.get(name) ?? value);
        const size = /_bytes(_total)?$/.test(name) ? bytes(value) : count(value);
        const told = mean === null ? size : `${size}, ${(mean * 1000).toPrecision(3)} ms each`;
        return [el("span", { class: "mono" }, name), help, kind, told, change === 0 ? "" : `${change > 0 ? "+" : ""}${count(change)}`];
      });
      this.before = new Map(metrics.map((/** @type {any} */ { name, value }) => [name, value]));
      this.body.replaceChildren(plainTable("Metrics", ["Name", "What it is", "Kind", "#Value", "#Change"], rows));
    } catch (error) {
      if (isAborted(error)) return;
      this.error.textContent = reason(error);
      this.error.hidden = false;
    }
    this.timer = setTimeout(() => { if (this.element.isConnected) this.show(); }, EVERY);
  }

  async asText() {
    const value = el("pre", { class: "value", tabindex: 0 }, await text("/metrics").catch(reason));
    this.dialog.replaceChildren(value, el("form", { method: "dialog" }, el("button", {}, "Close")));
    this.dialog.showModal();
  }
}
