// The rows in which two versions differ.

import { el } from "./element.js";
import { counted } from "./figures.js";
import { Grid } from "./grid.js";
import { get, isAborted, Latest, reason, rows } from "./server.js";

const CHANGE = "_change";

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
    this.element = el("div", { class: "panel" }, bar, this.error, frame);
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
      const kind = (/** @type {number} */ row) => String(found.at(row, change));
      const of = (/** @type {string[]} */ ...kinds) => {
        let n = 0;
        for (let row = 0; row < found.length; row += 1) n += kinds.includes(kind(row)) ? 1 : 0;
        return n;
      };
      const parts = [`${of("insert")} inserted`, `${of("delete")} deleted`, `${of("update_after")} updated`];
      this.told.textContent = found.more ? `the first ${counted(found.length, "row")} that differ` : `${counted(found.length, "row")}: ${parts.join(", ")}`;
      this.grid.show({
        total: found.length, columns: columns.map((at) => found.columns[at]), want: () => {},
        row: (index) => columns.map((at) => found.at(index, at)), class: kind,
      });
    } catch (error) {
      if (isAborted(error)) return;
      this.told.textContent = "";
      this.error.textContent = reason(error);
      this.error.hidden = false;
    }
  }
}
