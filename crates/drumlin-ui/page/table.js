// A table: what it is, its rows, versions, chart, differences, and where it lies.

import { el, named, plainTable, shown } from "./element.js";
import { bytes, count, counted, span, time } from "./figures.js";
import { get, isAborted, Latest, reason, Refusal } from "./server.js";
import { ChartPanel } from "./chart.js";
import { DifferencePanel } from "./difference.js";
import { LayoutView } from "./layout.js";
import { RowsPanel } from "./rows.js";
import { VersionsPanel } from "./versions.js";

const TABS = /** @type {const} */ ([
  ["rows", "Rows"], ["schema", "Schema"], ["versions", "Versions"], ["chart", "Chart"], ["changes", "Changes"], ["layout", "Map"],
]);

export class TableView {
  /** @param {(path: string, tab: string, asOf: string) => void} go */
  constructor(go) {
    this.go = go;
    this.latest = new Latest();
    this.tab = "rows";
    this.path = "";
    this.asOf = "";
    /** @type {[string, string]} */
    this.pair = ["", ""];
    this.title = el("h1", {});
    this.facts = el("div", { class: "facts" });
    this.tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "About this table" });
    this.error = el("div", { class: "error", role: "alert", hidden: true });
    /** Said instead of everything else if there is no such table. */
    this.lost = el("div", { class: "empty", role: "status", hidden: true });
    this.rows = new RowsPanel();
    this.chart = new ChartPanel();
    this.difference = new DifferencePanel();
    this.versions = new VersionsPanel((asOf) => this.go(this.path, "rows", asOf), (since, until) => {
      this.pair = [since, until];
      this.go(this.path, "changes", this.asOf);
    });
    this.schema = el("div", { class: "panel" });
    this.layout = new LayoutView(false);
    /** @type {Record<string, HTMLElement>} */
    this.panels = {
      rows: this.rows.element, schema: this.schema, versions: this.versions.element, chart: this.chart.element,
      changes: this.difference.element, layout: this.layout.element,
    };
    for (const [id, name] of TABS) {
      this.tabs.append(el("button", {
        type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}`, onclick: () => this.go(this.path, id, this.asOf),
      }, name));
      Object.entries({ id: `panel-${id}`, role: "tabpanel", "aria-labelledby": `tab-${id}` }).forEach(([n, v]) => this.panels[id].setAttribute(n, v));
    }
    this.tabs.addEventListener("keydown", (event) => this.pressed(event));
    this.element = el("section", { class: "panel", "aria-label": "Table" },
      el("div", { class: "head" }, this.title, this.facts, this.tabs), this.lost, this.error, ...Object.values(this.panels));
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const at = TABS.findIndex(([id]) => id === this.tab);
    const [next] = TABS[(at + step + TABS.length) % TABS.length];
    this.go(this.path, next, this.asOf);
    document.getElementById(`tab-${next}`)?.focus();
  }

  /** @param {string} path @param {string} tab @param {string} asOf */
  async show(path, tab, asOf) {
    if (path !== this.path) {
      this.begin();
      this.find(true);
    }
    [this.path, this.asOf] = [path, asOf];
    this.tab = TABS.some(([id]) => id === tab) ? tab : "rows";
    this.title.replaceChildren(named(path));
    for (const [id] of TABS) {
      const here = id === this.tab;
      const button = this.tabs.querySelector(`#tab-${id}`);
      button?.setAttribute("aria-selected", String(here));
      button?.setAttribute("tabindex", here ? "0" : "-1");
      this.panels[id].hidden = !here || !this.lost.hidden;
    }
    const signal = this.latest.next();
    try {
      const info = await get("/api/table", { path, as_of: asOf }, signal);
      this.error.hidden = true;
      this.find(true);
      this.describe(info);
      if (this.tab === "rows") this.rows.show(info, asOf);
      else if (this.tab === "schema") this.columns(info);
      else if (this.tab === "versions") await this.versions.show(path, asOf);
      else if (this.tab === "chart") this.chart.show(info, asOf);
      else if (this.tab === "changes") await this.difference.show(path, ...this.pair);
      else await this.layout.show(path);
    } catch (error) {
      if (isAborted(error)) return;
      // There is no such table, or none of its versions is the one that is asked for (any more).
      if (error instanceof Refusal && [404, 410].includes(error.status)) {
        this.begin();
        if (await this.missing(path, signal)) return;
      }
      this.error.textContent = reason(error);
      this.error.hidden = false;
    }
  }

  /** Another table comes, or none: nothing of the one before stays. */
  begin() {
    this.pair = ["", ""];
    this.facts.replaceChildren();
    this.schema.replaceChildren();
    this.error.hidden = true;
    for (const panel of [this.rows, this.versions, this.chart, this.difference, this.layout]) panel.begin();
  }

  /** Shows the panels, or what is said instead of them. @param {boolean} found */
  find(found) {
    this.lost.hidden = found;
    this.tabs.hidden = !found;
    for (const [id] of TABS) this.panels[id].hidden = !found || id !== this.tab;
  }

  /** Whether there is no table at a path any more, which is then said. @param {string} path @param {AbortSignal} signal */
  async missing(path, signal) {
    try {
      const { exists, dropped } = await get("/api/whereabouts", { path }, signal);
      if (exists) return false;
      const fate = dropped === null ? "" : ` It was dropped at ${time(dropped)} UTC and is in the trash, which the view Activity lists.`;
      this.lost.replaceChildren("There is no table at ", named(path), `.${fate}`);
      this.find(false);
      return true;
    } catch (error) {
      return isAborted(error);
    }
  }

  /** @param {any} info */
  describe(info) {
    const facts = [
      this.asOf === "" ? "newest version" : this.asOf.startsWith("snapshot:") ? `snapshot ${shown(this.asOf.slice(9))}` : `version ${shown(this.asOf)}`,
      counted(info.rows, "row"), counted(info.columns.length, "column"), counted(info.versions, "version"),
      counted(info.row_groups, "row group"), bytes(info.bytes), `keeps ${info.retention}`,
      info.keyed && `key ${info.sort.map(shown).join(", ")}`,
      !info.keyed && info.sort.length > 0 && `sorted by ${info.sort.map(shown).join(", ")}`,
      info.ttl && `rows expire ${info.ttl.after_micros > 0 ? `${span(info.ttl.after_micros)} after` : "at"} ${shown(info.ttl.column)}`,
      info.memory_keys > 0 && `${counted(info.memory_keys, "key")} in memory`,
    ].filter(Boolean);
    this.facts.replaceChildren(...facts.map((fact) => el("span", {}, fact)));
    if (this.asOf !== "") {
      this.facts.append(el("button", { type: "button", class: "plain", onclick: () => this.go(this.path, this.tab, "") }, "show the newest"));
    }
  }

  /** @param {any} info */
  columns(info) {
    const rows = info.columns.map((/** @type {any} */ column, /** @type {number} */ at) => {
      const order = info.sort.indexOf(column.name);
      const default_ = info.defaults.find((/** @type {[string, string]} */ [name]) => name === column.name);
      const place = order < 0 ? "" : `${info.keyed ? "key" : "sort"} ${order + 1}`;
      return [count(at), shown(column.name), el("span", { class: "mono" }, column.type),
        !column.nullable || info.not_null.includes(column.name) ? "not null" : "", place, default_ ? shown(String(default_[1])) : ""];
    });
    const table = plainTable("Columns", ["#", "Column", "Type", "Nulls", "Order", "Default"], rows);
    const checks = info.checks.map((/** @type {[string, string]} */ [name, text]) => [shown(name), el("span", { class: "mono" }, shown(text))]);
    const parts = [el("h2", {}, "Columns"), table];
    if (checks.length > 0) parts.push(el("h2", {}, "Checks"), plainTable("Checks", ["Name", "Predicate"], checks));
    const indexes = info.indexes.map((/** @type {{ name: string, columns: string[], where: string | null, entries: number, bytes: number, covered: number, row_groups: number }} */ index) => [
      shown(index.name), el("span", { class: "mono" }, shown(index.columns.join(", ") + (index.where ? ` where ${index.where}` : ""))),
      count(index.entries), bytes(index.bytes), `${count(index.covered)} of ${counted(index.row_groups, "row group")}`]);
    if (indexes.length > 0) parts.push(el("h2", {}, "Indexes"), plainTable("Indexes", ["Name", "Columns", "Entries", "Size", "Covers"], indexes));
    this.schema.replaceChildren(el("div", { class: "body" }, ...parts));
  }
}
