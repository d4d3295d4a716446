// Rows in columns, of which only what can be seen is in the page; cells are reached by keys.

import { el, shown } from "./element.js";
import { Scroller } from "./scroller.js";

/** @typedef {import("./server.js").Column} Column */
/** @typedef {string | number | boolean | null} Value */
/**
 * Where rows come from. Of a row that has changed `before` has the old values, which are shown beside the new ones; `nothing` is said
 * if there are no rows.
 * @typedef {{
 *   total: number, columns: Column[], row: (index: number) => Value[] | null, want: (first: number, count: number) => void,
 *   class?: (index: number) => string, before?: (index: number) => Value[] | null, nothing?: string, sort?: { column: string, descending: boolean } | null,
 *   sortBy?: (column: string) => void, open?: (row: number, column: number) => void }} Source
 */

const HEADER = 40;

/** A value as its cell shows it. @param {Value} value */
const text = (value) => (value === null ? "null" : shown(String(value)));

export class Grid {
  /** @param {HTMLElement} frame @param {string} label */
  constructor(frame, label) {
    this.frame = frame;
    /** @type {Source} */
    this.source = { total: 0, columns: [], row: () => null, want: () => {} };
    /** Row -1 is that of the headings. */
    this.at = { row: 0, column: 0 };
    /** The longest texts seen, by column. @type {number[]} */
    this.longest = [];
    frame.classList.add("grid");
    frame.setAttribute("role", "grid");
    frame.setAttribute("aria-label", label);
    frame.setAttribute("aria-readonly", "true");
    this.header = el("div", { class: "row header", role: "row", "aria-rowindex": 1 });
    frame.append(this.header);
    /** To be put below the frame. */
    this.nothing = el("p", { class: "empty", role: "status" });
    this.scroller = new Scroller(frame, 24, (index) => this.make(index), (first, n) => this.source.want(first, n), HEADER);
    frame.addEventListener("keydown", (event) => this.pressed(event));
    frame.addEventListener("dblclick", (event) => this.opened(event));
    frame.addEventListener("focus", () => this.focus(this.at.row, this.at.column));
  }

  /** Shows nothing, until another source comes. */
  clear() {
    this.at = { row: 0, column: 0 };
    this.scroller.position = 0;
    this.show({ total: 0, columns: [], row: () => null, want: () => {} });
  }

  /** Shows another source. @param {Source} source */
  show(source) {
    const wider = source.columns.length !== this.source.columns.length;
    this.source = source;
    this.nothing.textContent = source.total === 0 ? source.nothing ?? "" : "";
    this.frame.classList.toggle("short", this.nothing.textContent !== "");
    this.at.row = Math.min(this.at.row, Math.max(0, source.total - 1));
    if (wider) this.at.column = 0;
    this.frame.setAttribute("aria-rowcount", String(source.total + 1));
    this.frame.setAttribute("aria-colcount", String(source.columns.length + 1));
    this.longest = source.columns.map((column) => column.name.length + 1);
    this.measure(0, 40);
    const heading = this.header.contains(document.activeElement);
    this.head();
    if (heading) this.focus(-1, this.at.column);
    this.frame.tabIndex = source.total > 0 ? -1 : 0;
    const focused = this.frame.contains(document.activeElement);
    this.scroller.reset(source.total);
    if (focused) this.focus(this.at.row, this.at.column);
  }

  /** Makes the rows again that have arrived. @param {number} first @param {number} n */
  arrived(first, n) {
    this.measure(first, n);
    for (let index = first; index < first + n; index += 1) {
      if (this.scroller.refresh(index)) this.focus(this.at.row, this.at.column);
    }
  }

  /** Finds widths by the headings and some rows; those of rows that come later only grow. @param {number} first @param {number} n */
  measure(first, n) {
    for (let index = first; index < Math.min(first + n, this.source.total); index += 1) {
      const before = this.source.before?.(index);
      this.source.row(index)?.forEach((value, at) => {
        const old = before && !Object.is(before[at], value) ? `${text(before[at])} → ` : "";
        this.longest[at] = Math.max(this.longest[at], old.length + text(value).length);
      });
    }
    const widths = this.source.columns.map((column, at) => {
      const wide = Math.max(this.longest[at] * 7.4 + 20, Math.min(column.type.length * 6, 120), 64);
      return `${Math.min(wide, 380)}px`;
    });
    const numbers = `${Math.max(String(this.source.total).length * 8 + 20, 44)}px`;
    this.frame.style.setProperty("--columns", [numbers, ...widths].join(" "));
  }

  head() {
    const { columns, sort, sortBy } = this.source;
    const cells = columns.map((column, at) => {
      const sorted = sort?.column === column.name;
      const mark = sorted ? (sort?.descending ? " ↓" : " ↑") : "";
      const name = sortBy
        ? el("button", { type: "button", tabindex: -1, title: "sort", onclick: () => sortBy(column.name) }, shown(column.name) + mark)
        : el("strong", {}, shown(column.name));
      return el("div", {
        class: "cell", role: "columnheader", "aria-colindex": at + 2, tabindex: -1, title: `${shown(column.name)}: ${column.type}`,
        "aria-sort": sorted ? (sort?.descending ? "descending" : "ascending") : null,
      }, name, el("span", { class: "type" }, column.type));
    });
    this.header.replaceChildren(el("div", { class: "cell at", role: "columnheader", "aria-colindex": 1 }, "row"), ...cells);
  }

  /** @param {number} index */
  make(index) {
    const values = this.source.row(index);
    const before = this.source.before?.(index);
    const row = el("div", { class: `row ${this.source.class?.(index) ?? ""}`, role: "row", "aria-rowindex": index + 2 });
    row.append(el("div", { class: "cell at", role: "rowheader", "aria-colindex": 1 }, index));
    this.source.columns.forEach((column, at) => {
      const value = values ? values[at] : undefined;
      const number = column.kind === "number" ? " number" : "";
      const here = index === this.at.row && at === this.at.column;
      const changed = before && !Object.is(before[at], value);
      const parts = value === undefined ? ["…"] : changed ? [el("del", {}, text(before[at])), " → ", el("ins", {}, text(value))] : [text(value)];
      row.append(el("div", {
        class: `cell${number}${changed ? " changed" : value === null ? " null" : ""}`, role: "gridcell", "aria-colindex": at + 2, tabindex: here ? 0 : -1,
        onfocus: () => this.activate(index, at),
      }, ...parts));
    });
    return row;
  }

  /** The element of a cell. @param {number} row @param {number} column */
  cell(row, column) {
    const of = row < 0 ? this.header : this.scroller.rows.get(row);
    return /** @type {HTMLElement | undefined} */ (of?.children[column + 1]);
  }

  /** @param {number} row @param {number} column */
  activate(row, column) {
    this.cell(this.at.row, this.at.column)?.setAttribute("tabindex", "-1");
    this.at = { row, column };
    this.cell(row, column)?.setAttribute("tabindex", "0");
  }

  /** @param {number} row @param {number} column */
  focus(row, column) {
    row = Math.max(-1, Math.min(row, this.source.total - 1));
    column = Math.max(0, Math.min(column, this.source.columns.length - 1));
    this.activate(row, column);
    if (row >= 0) this.scroller.show(row);
    const cell = this.cell(row, column);
    cell?.focus({ preventScroll: true });
    cell?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.scroller.scrolled();
  }

  /** @param {MouseEvent} event */
  opened(event) {
    const cell = /** @type {HTMLElement | null} */ (/** @type {HTMLElement} */ (event.target).closest("[role=gridcell]"));
    if (!cell) return;
    cell.focus();
    this.source.open?.(this.at.row, this.at.column);
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const { row, column } = this.at;
    const far = event.ctrlKey || event.metaKey;
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowDown: () => this.focus(far ? this.source.total - 1 : row + 1, column),
      ArrowUp: () => this.focus(far ? 0 : row - 1, column),
      ArrowRight: () => this.focus(row, far ? this.source.columns.length - 1 : column + 1),
      ArrowLeft: () => this.focus(row, far ? 0 : column - 1),
      PageDown: () => this.focus(Math.max(0, row) + this.scroller.page, column),
      PageUp: () => this.focus(Math.max(0, row - this.scroller.page), column),
      Home: () => this.focus(far ? 0 : row, 0),
      End: () => this.focus(far ? this.source.total - 1 : row, this.source.columns.length - 1),
      Enter: () => {
        if (row < 0) this.source.sortBy?.(this.source.columns[column].name);
        else this.source.open?.(row, column);
      },
    };
    const act = keys[event.key];
    if (!act || event.altKey) return;
    event.preventDefault();
    act();
  }
}
