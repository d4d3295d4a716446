// The map: how row groups lie in blocks, who needs them, what a checkpoint would do with them, and what it did.

import { button, el, named, notice, plainTable, shown } from "./element.js";
import { bytes, count, counted, percent, span } from "./figures.js";
import { Cells, unpack } from "./cells.js";
import { get, isAborted, Latest, post, reason } from "./server.js";

const MODES = /** @type {const} */ ([["needed", "who needs it"], ["dead", "dead share"], ["age", "age"]]);
const HELD = /** @type {const} */ ([
  ["history", "older versions and snapshots"], ["trash", "the trash"], ["readers", "blocks that wait for a reclaim"],
  ["fragments", "unused parts of blocks in use"],
]);
const NEEDED = /** @type {Record<string, string>} */ ({
  newest: "the newest version", version: "an older version", snapshot: "a snapshot alone", trash: "the trash", nothing: "nobody",
});

/** Whether the server changes the store. */
let writes = false;

/** @param {boolean} write */
export function allowWrites(write) {
  writes = write;
}

export class LayoutView {
  /** @param {boolean} whole Whether it is of the whole store. */
  constructor(whole) {
    this.whole = whole;
    this.path = "";
    this.latest = new Latest();
    /** The layouts before and after the last checkpoint. @type {{ before: any, after: any } | null} */
    this.pair = null;
    this.cells = new Cells((cell) => this.tell(cell));
    this.error = el("div", { class: "error", role: "alert", hidden: true });
    this.told = el("output", { "aria-live": "polite" });
    this.legend = el("div", { class: "legend" });
    this.cell = el("output", { "aria-live": "polite", class: "about" });
    this.side = el("div", { class: "side" });
    this.run = button("Run a checkpoint", () => this.checkpoint(), { class: "main", hidden: true });
    this.again = button("Refresh", () => this.show(this.path));
    this.which = el("fieldset", { hidden: true, class: "which" });
    const name = whole ? "colour" : "colour-of-table";
    const modes = el("fieldset", {}, el("legend", {}, "Colour by"), ...MODES.map(([id, text]) => el("label", {},
      el("input", { type: "radio", name, value: id, checked: id === "needed", onchange: () => this.colour(id) }), text)));
    const plan = el("label", {}, el("input", {
      type: "checkbox", checked: true,
      onchange: (/** @type {Event} */ event) => { this.cells.plan = /** @type {HTMLInputElement} */ (event.target).checked; this.cells.draw(); },
    }), "plan");
    const bar = el("div", { class: "bar" }, modes, plan, this.told, el("span", { class: "space" }), this.which, this.again, this.run);
    this.element = el("section", { class: "panel", "aria-label": "Map" }, bar, el("div", { class: "bar" }, this.legend), this.error,
      el("div", { class: "map" }, el("div", { class: "cells" }, this.cells.element), this.side));
    this.colour("needed");
  }

  /** Another table comes: nothing of the one before stays. */
  begin() {
    this.latest.next();
    this.path = this.told.textContent = "";
    this.pair = null;
    this.error.hidden = this.which.hidden = true;
    this.side.replaceChildren();
    this.cells.show([], 0);
  }

  /** @param {string} path */
  async show(path) {
    if (path !== this.path) {
      this.pair = null;
      this.which.hidden = true;
    }
    this.path = path;
    this.run.hidden = !writes;
    try {
      this.draw(await get("/api/layout", { path }, this.latest.next()));
    } catch (error) {
      if (!isAborted(error)) this.fail(error);
    }
  }

  /** @param {unknown} error */
  fail(error) {
    this.error.textContent = reason(error);
    this.error.hidden = false;
  }

  /** @param {string} mode */
  colour(mode) {
    this.cells.mode = mode;
    const swatch = (/** @type {string} */ name, /** @type {string} */ text) => el("span", {}, el("i", { class: name }), text);
    const parts = mode === "needed" ? Object.entries(NEEDED).map(([name, text]) => swatch(name, text))
      : mode === "dead" ? [el("span", {}, "no dead rows "), el("i", { class: "dead" }), el("span", {}, "all dead")]
        : [el("span", {}, "old "), el("i", { class: "age" }), el("span", {}, "new")];
    const dead = mode === "dead" ? [] : [el("span", {}, "faded: dead rows")];
    this.legend.replaceChildren(...parts, ...dead, swatch("planned", "a checkpoint rewrites it"), el("span", {}, "dashed: block in the log"), el("span", {}, "bar: share of a block in use"));
    this.cells.draw();
  }

  /** @param {any} layout */
  draw(layout) {
    this.error.hidden = true;
    this.layout = layout;
    this.cells.show(unpack(layout.blocks), layout.time);
    const cells = this.cells.cells;
    const left = layout.complete ? "" : ` (the first of ${counted(layout.row_groups, "row group")}; choose a table to see the others)`;
    const empty = layout.blocks.length === 0;
    this.told.textContent = empty ? "There are no row groups." : `${counted(cells.length, "cell")} in ${counted(layout.blocks.length, "block")}${left}`;
    this.element.dataset.seq = layout.seq;
    this.cell.replaceChildren(el("p", { class: "quiet" }, empty ? "none" : "Point at a cell, or go through them by arrow keys."));
    this.side.replaceChildren(...this.compared(), el("h2", {}, "Row group"), this.cell, el("h2", {}, "Why space is held"), this.held(layout),
      el("h2", {}, "What a checkpoint would do"), this.plan(layout));
  }

  /** @param {any} layout */
  held(layout) {
    const most = Math.max(1, ...HELD.map(([name]) => layout.holding[name]));
    return el("div", { class: "held" }, ...HELD.flatMap(([name, text]) => {
      const measure = el("i", {});
      measure.style.width = `${100 * layout.holding[name] / most}%`;
      return [el("span", {}, text), el("span", { class: "measure" }, measure), el("span", { class: "number" }, bytes(layout.holding[name]))];
    }));
  }

  /** @param {any} layout */
  plan(layout) {
    const windows = layout.tables.flatMap((/** @type {any} */ table) => (table.plan?.windows ?? []).map((/** @type {any} */ window) => ({ table, window })));
    const repacked = layout.blocks.filter((/** @type {any} */ block) => block.repacked).length;
    if (windows.length === 0 && repacked === 0) return el("p", { class: "quiet" }, "Nothing is worth rewriting.");
    const list = plainTable("Windows", ["Table", "Why", "#Groups", "#Dead", "#Gain"], windows.slice(0, 200).map((/** @type {any} */ { table, window }) => [
      named(table.path), window.reason, `${count(window.inputs)} → ${count(window.outputs)}`, count(window.dead), bytes(window.gained),
    ]));
    const more = windows.length > 200 && el("p", { class: "quiet" }, `and ${count(windows.length - 200)} more`);
    const moved = repacked > 0 && el("p", {}, `${counted(repacked, "block")} would be emptied into others.`);
    return el("div", {}, windows.length > 0 && list, more, moved);
  }

  /** @param {import("./cells.js").Cell | null} cell */
  tell(cell) {
    if (!cell) return;
    const table = this.layout.tables[cell.table];
    const kind = { group: "row group", below: "layer below a patch", history: "rows replaced between versions", index: "part of an index" }[cell.kind] ?? cell.kind;
    const needed = cell.version === null ? NEEDED[cell.needed] : `${NEEDED[cell.needed]}: v${cell.version}`;
    const facts = /** @type {[string, string][]} */ ([
      ["table", shown(table.path) + (table.home === "tree" ? "" : ` (in ${table.home === "trash" ? "the trash" : "snapshots alone"})`)],
      ["what", cell.kind === "history" || cell.kind === "index" ? kind : `${kind} ${cell.group}`], ["block", cell.block.block], ["size", bytes(cell.bytes)],
      ["rows", `${count(cell.rows)}, ${count(cell.dead)} dead (${percent(cell.dead, cell.rows)})`],
      ["since", `v${cell.born}${cell.time === null ? "" : `, ${span(this.layout.time - cell.time)} before the last commit`}`],
      ["needed by", needed], ["plan", cell.planned ? `${cell.planned}, window ${cell.window}` : "stays as it is"],
    ]);
    if (cell.records > 1) facts.push(["shared", `by ${count(cell.records)} records`]);
    this.cell.replaceChildren(el("dl", { class: "facts2" }, ...facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
  }

  /** What the last checkpoint did. */
  compared() {
    if (!this.pair) return [];
    const figures = (/** @type {any} */ layout) => {
      const cells = layout.blocks.flatMap((/** @type {any} */ block) => block.cells);
      const sum = (/** @type {number} */ at) => cells.reduce((/** @type {number} */ n, /** @type {any[]} */ cell) => n + cell[at], 0);
      const size = layout.blocks.reduce((/** @type {number} */ n, /** @type {any} */ block) => n + block.bytes, 0);
      return [count(cells.length), count(layout.blocks.length), count(sum(5)), bytes(sum(3)), bytes(size), bytes(layout.condemned_bytes)];
    };
    const [before, after] = [figures(this.pair.before), figures(this.pair.after)];
    const names = ["row groups", "blocks", "dead rows", "row groups' size", "blocks' size", "waits for a reclaim"];
    return [el("h2", {}, "What the checkpoint did"), plainTable("What the checkpoint did", ["What", "#Before", "#After"],
      names.map((name, at) => [name, before[at], after[at]]))];
  }

  async checkpoint() {
    this.run.disabled = true;
    this.told.textContent = "checkpoint …";
    try {
      const { path, layout: before } = this;
      const report = await post("/api/checkpoint", {});
      notice(report.text);
      if (path !== this.path) return;
      const after = await get("/api/layout", { path }, this.latest.next());
      this.pair = { before, after };
      const radio = (/** @type {string} */ text, /** @type {any} */ layout, /** @type {boolean} */ checked) => el("label", {},
        el("input", { type: "radio", name: "which", checked, onchange: () => this.draw(layout) }), text);
      this.which.replaceChildren(el("legend", {}, "Show"), radio("before", before, false), radio("after", after, true));
      this.which.hidden = false;
      this.draw(after);
    } catch (error) {
      if (!isAborted(error)) this.fail(error);
    } finally {
      this.run.disabled = false;
    }
  }
}
