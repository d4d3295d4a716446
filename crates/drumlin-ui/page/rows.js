// Rows of a version: a grid over any number of them, a filter and an order, both of which the store works out.

import { el, shown } from "./element.js";
import { count, counted } from "./figures.js";
import { Grid } from "./grid.js";
import { get, isAborted, Latest, reason, rows } from "./server.js";

/** @typedef {{ path: string, columns: { name: string, type: string, kind: string }[], rows: number, sort: string[] }} Info */

const PART = 200;
const PARTS_KEPT = 60;
/** The columns that the server sends at most. */
const COLUMNS_MAX = 100;

export class RowsPanel {
  constructor() {
    this.latest = new Latest();
    /** @type {Info | null} Null until it is known what the table is. */
    this.info = null;
    this.asOf = "";
    /** @type {Map<number, import("./server.js").Rows>} */
    this.parts = new Map();
    /** @type {Map<number, AbortController>} */
    this.asked = new Map();
    this.where = "";
    /** @type {{ column: string, descending: boolean } | null} */
    this.sort = null;
    this.input = el("input", {
      type: "search", placeholder: "Filter, such as close > 100 and sym in ('A', 'B')", "aria-label": "Filter of rows", spellcheck: "false",
    });
    this.told = el("output", { "aria-live": "polite" });
    this.ordered = el("span", { class: "note" });
    this.error = el("div", { class: "error", role: "alert", hidden: true });
    const frame = el("div", {});
    this.grid = new Grid(frame, "Rows");
    const form = el("form", {
      class: "bar",
      onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); this.filter(this.input.value.trim()); },
    }, el("span", { class: "grow" }, this.input), el("button", { type: "submit" }, "Filter"), this.told, this.ordered);
    this.element = el("div", { class: "panel" }, form, this.error, frame, this.grid.nothing);
    this.dialog = el("dialog", { "aria-label": "Value" });
    this.element.append(this.dialog);
  }

  /** Another table comes: nothing of the one before stays, and a filter that is typed from now on is one of the new table. */
  begin() {
    this.latest.next();
    this.info = null;
    this.where = this.input.value = "";
    this.sort = null;
    this.told.textContent = this.ordered.textContent = "";
    this.error.hidden = true;
    this.grid.clear();
  }

  /** Shows a version of a table. @param {Info} info @param {string} asOf */
  show(info, asOf) {
    this.info = info;
    this.asOf = asOf;
    // Another version may lack the column that another one was sorted by.
    if (!info.columns.some((column) => column.name === this.sort?.column)) this.sort = null;
    this.load();
  }

  /** @param {string} where */
  filter(where) {
    this.where = where;
    this.grid.scroller.position = 0;
    this.load();
  }

  /** The first choice is upwards, the second downwards, the third the order of the table. @param {string} column */
  sortBy(column) {
    if (this.sort?.column !== column) this.sort = { column, descending: false };
    else this.sort = this.sort.descending ? null : { column, descending: true };
    this.grid.scroller.position = 0;
    this.load();
  }

  get query() {
    const sort = this.sort ? { sort: this.sort.column, descending: this.sort.descending ? "1" : "" } : {};
    return { path: this.info?.path ?? "", as_of: this.asOf, where: this.where, ...sort };
  }

  async load() {
    const info = this.info;
    if (!info) return;
    const signal = this.latest.next();
    this.parts.clear();
    this.asked.clear();
    this.error.hidden = true;
    this.told.textContent = "counting …";
    const { path, as_of: asOf, where } = this.query;
    try {
      const [{ rows: total }, first] = await Promise.all([
        get("/api/count", { path, as_of: asOf, where }, signal),
        rows("/api/rows", { ...this.query, offset: 0, limit: PART }, signal),
      ]);
      this.parts.set(0, first);
      this.told.textContent = this.where ? `${counted(total, "row")} found` : counted(total, "row");
      const left = info.columns.length - first.columns.length;
      const order = this.sort
        ? `sorted here by ${shown(this.sort.column)}${this.sort.descending ? ", downwards" : ""} (at most 2,000,000 rows)`
        : info.sort.length > 0 ? `in the table's order: ${info.sort.map(shown).join(", ")}` : "in the order of insertion";
      this.ordered.textContent = left > 0 ? `${order}; the first ${COLUMNS_MAX} of ${count(info.columns.length)} columns` : order;
      this.grid.show({
        total, columns: first.columns, row: (index) => this.row(index), want: (at, n) => this.want(at, n),
        nothing: this.nothing(), sort: this.sort, sortBy: (column) => this.sortBy(column), open: (row, column) => this.open(row, column),
      });
    } catch (error) {
      if (!isAborted(error)) this.fail(error);
    }
  }

  /** What is said if there are no rows. */
  nothing() {
    if (this.where !== "") return "No row passes the filter.";
    if (this.asOf === "") return "This table has no rows.";
    return /^\d+$/.test(this.asOf) ? `Version ${this.asOf} has no rows.` : `The table has no rows as of ${shown(this.asOf)}.`;
  }

  /** @param {unknown} error */
  fail(error) {
    this.error.textContent = reason(error);
    this.error.hidden = false;
    this.told.textContent = "";
  }

  /** @param {number} index */
  row(index) {
    const part = this.parts.get(Math.floor(index / PART));
    const at = index % PART;
    return part && at < part.length ? part.columns.map((_, column) => part.at(at, column)) : null;
  }

  /** Asks for the rows that are seen, once the scrolling has paused; gives up what was asked for and is not seen any more.
   * @param {number} first @param {number} n */
  want(first, n) {
    clearTimeout(this.pause);
    const [from, to] = [Math.floor(first / PART), Math.floor((first + n - 1) / PART)];
    for (const [part, stop] of this.asked) if (part < from - 1 || part > to + 1) stop.abort();
    this.pause = setTimeout(() => {
      for (let part = from; part <= to; part += 1) this.ask(part);
    }, this.parts.size > 1 ? 40 : 0);
  }

  /** @param {number} part */
  async ask(part) {
    if (this.parts.has(part) || this.asked.has(part)) return;
    const stop = new AbortController();
    const all = this.latest.signal;
    all.addEventListener("abort", () => stop.abort());
    this.asked.set(part, stop);
    try {
      const found = await rows("/api/rows", { ...this.query, offset: part * PART, limit: PART }, stop.signal);
      if (all.aborted) return;
      this.parts.set(part, found);
      for (const old of this.parts.keys()) if (this.parts.size > PARTS_KEPT && old !== part) this.parts.delete(old);
      this.grid.arrived(part * PART, found.length);
    } catch (error) {
      if (!isAborted(error)) this.fail(error);
    } finally {
      if (this.asked.get(part) === stop) this.asked.delete(part);
    }
  }

  /** Shows a value as a whole. @param {number} row @param {number} column */
  async open(row, column) {
    const name = this.grid.source.columns[column].name;
    const value = el("pre", { class: "value", tabindex: 0 }, "…");
    const head = el("h1", {}, `${shown(name)}, row ${count(row)}`);
    const kind = el("p", { class: "quiet" }, this.grid.source.columns[column].type);
    this.dialog.replaceChildren(head, kind, value, el("form", { method: "dialog" }, el("button", {}, "Close")));
    this.dialog.addEventListener("close", () => this.grid.focus(row, column), { once: true });
    this.dialog.showModal();
    try {
      const found = await get("/api/cell", { ...this.query, row, of: name });
      value.textContent = found.value === null ? "null" : found.value;
      kind.textContent = `${found.type}${found.value === null ? "" : `, ${counted(found.value.length, "character")}`}`;
    } catch (error) {
      value.textContent = reason(error);
    }
  }
}

