// The rows in which two versions differ. A row that was updated is one row, with the old and the new value where they differ.

import { el } from "./element.js";
import { counted } from "./figures.js";
import { Grid } from "./grid.js";
import { get, isAborted, Latest, reason, rows } from "./server.js";

const CHANGE = "_change";
const UPDATE = "update";

/** The differences, in order: of an update the row before and the row after it, which come one after the other.
 * @param {import("./server.js").Rows} found @param {number} change
 * @returns {{ kind: string, row: number, before: number | null }[]} */
function paired(found, change) {
  const differences = [];
  for (let row = 0; row < found.length; row += 1) {
    const kind = String(found.at(row, change));
    if (kind !== "update_before") differences.push({ kind, row, before: null });
    else if (row + 1 < found.length) differences.push({ kind: UPDATE, row: ++row, before: row - 1 });
    // The last row of an answer that was cut between the two is left out.
  }
  return differences;
}

export class DifferencePanel {
  constructor() {
    this.latest = new Latest();
    this.since = el("select", { "aria-label": "From version", onchange: () => this.load() });
    this.until = el("select", { "aria-label": "To version", onchange: () => this.load() });
    this.told = el("output", { "aria-live": "polite" });
    this.error = el("div", { class: "error", role: "alert", hidden: true });
    const frame = el("div", {});
    this.grid = new Grid(frame, "Rows that differ");
    const bar = el("div", { class: "bar" }, el("label", {}, "From", this.since), el("label", {}, "to", this.until), this.told);
    this.element = el("div", { class: "panel" }, bar, this.error, frame, this.grid.nothing);
  }

  /** Another table comes: nothing of the one before stays. */
  begin() {
    this.latest.next();
    this.told.textContent = "";
    this.error.hidden = true;
    for (const part of [this.since, this.until]) part.replaceChildren();
    this.grid.clear();
  }

  /** @param {string} path @param {string} since @param {string} until */
  async show(path, since, until) {
    this.path = path;
    const { versions } = await get("/api/versions", { path, limit: 500 }, this.latest.next());
    const options = () => versions.map((/** @type {{ version: number, kind: string }} */ version) =>
      el("option", { value: version.version }, `v${version.version} ${version.kind}`));
    this.since.replaceChildren(...options());
    this.until.replaceChildren(...options());
    this.since.value = since || String((versions[1] ?? versions[0]).version);
    this.until.value = until || String(versions[0].version);
    await this.load();
  }

  async load() {
    const signal = this.latest.next();
    this.error.hidden = true;
    this.told.textContent = "comparing …";
    try {
      const query = { path: this.path, since: this.since.value, until: this.until.value, limit: 1000 };
      const found = await rows("/api/diff", query, signal);
      const change = found.columns.findIndex((column) => column.name === CHANGE);
      const columns = [change, ...found.columns.map((_, at) => at).filter((at) => at !== change)];
      const differences = paired(found, change);
      const of = (/** @type {string} */ kind) => differences.filter((difference) => difference.kind === kind).length;
      const parts = [`${of("insert")} inserted`, `${of("delete")} deleted`, `${of(UPDATE)} updated`];
      const total = differences.length;
      this.told.textContent = found.more ? `the first ${counted(total, "row")} that differ` : `${counted(total, "row")}: ${parts.join(", ")}`;
      const values = (/** @type {number} */ row, /** @type {string} */ kind) => columns.map((at) => (at === change ? kind : found.at(row, at)));
      this.grid.show({
        total, columns: columns.map((at) => found.columns[at]), want: () => {}, class: (index) => differences[index].kind,
        nothing: "The two versions have the same rows.", row: (index) => values(differences[index].row, differences[index].kind),
        before: (index) => {
          const { before, kind } = differences[index];
          return before === null ? null : values(before, kind);
        },
      });
    } catch (error) {
      if (isAborted(error)) return;
      this.told.textContent = "";
      this.error.textContent = reason(error);
      this.error.hidden = false;
    }
  }
}
