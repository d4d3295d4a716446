// The versions of a table as a time line: what each did, how many rows it added and removed, and what its writer said.

import { button, el, named, plainTable, shown } from "./element.js";
import { count, counted, time } from "./figures.js";
import { get, isAborted, Latest, reason } from "./server.js";

/**
 * @typedef {{ version: number, seq: number, time: string, kind: string, rows: number, added: number | null, removed: number | null,
 *   message: string | null, writer: string | null, duration_micros: number | null, snapshots: string[] }} Version
 */

export class VersionsPanel {
  /** @param {(asOf: string) => void} read @param {(since: string, until: string) => void} compare */
  constructor(read, compare) {
    this.read = read;
    this.compare = compare;
    this.latest = new Latest();
    this.list = el("ol", { class: "line", "aria-label": "Versions, the newest first" });
    this.headings = el("div", { class: "headings of-versions", "aria-hidden": "true", hidden: true },
      ...["Version", "Kind", "Rows", "Turnover", "Added and removed", "Message, snapshots", "Time (UTC), writer", "Actions"].map((name) => el("span", {}, name)));
    this.more = button("Older versions", () => this.load(false), { hidden: true });
    this.error = el("div", { class: "error", role: "alert", hidden: true });
    this.held = el("div", {});
    this.element = el("div", { class: "panel" }, this.error, el("div", { class: "body" }, this.headings, this.list, this.more, this.held));
    /** @type {Version[]} */
    this.versions = [];
  }

  /** Another table comes: nothing of the one before stays. */
  begin() {
    this.latest.next();
    this.versions = [];
    this.headings.hidden = this.more.hidden = this.error.hidden = true;
    for (const part of [this.list, this.held]) part.replaceChildren();
  }

  /** @param {string} path @param {string} asOf */
  show(path, asOf) {
    this.path = path;
    this.asOf = asOf;
    this.versions = [];
    this.more.hidden = true;
    return this.load(true);
  }

  /** @param {boolean} again */
  async load(again) {
    try {
      const offset = again ? 0 : this.versions.length;
      const answer = await get("/api/versions", { path: this.path ?? "", offset, limit: 200 }, this.latest.next());
      this.versions = again ? answer.versions : [...this.versions, ...answer.versions];
      this.error.hidden = true;
      this.list.replaceChildren(...this.versions.map((version, at) => this.item(version, this.versions[at + 1])));
      this.headings.hidden = this.versions.length === 0;
      this.more.hidden = this.versions.length >= answer.total;
      this.held.replaceChildren(...this.snapshots(answer.snapshots));
    } catch (error) {
      if (isAborted(error)) return;
      this.error.textContent = reason(error);
      this.error.hidden = false;
    }
  }

  /** The snapshots that hold the table, by which versions are read that are not listed any more.
   * @param {{ name: string, time: string, version: number }[]} held */
  snapshots(held) {
    if (held.length === 0) return [];
    const rows = held.map(({ name, time: taken, version }) => [named(name), `v${version}`, time(taken),
      button("Rows", () => this.read(`snapshot:${name}`), { "aria-label": `Rows in snapshot ${shown(name)}` })]);
    return [el("h2", {}, "Held by snapshots"), plainTable("Snapshots that hold this table", ["Snapshot", "Version", "Taken (UTC)", "Action"], rows)];
  }

  /** Rows removed to the left, rows added to the right, by the root of their numbers so that small ones show. @param {Version} version */
  bar(version) {
    const most = Math.max(1, ...this.versions.flatMap((of) => [of.added ?? 0, of.removed ?? 0]));
    const part = (/** @type {string} */ name, /** @type {number | null} */ rows) => {
      const bar = el("i", { class: name });
      bar.style.width = `${rows ? Math.max(2, 50 * Math.sqrt(rows / most)) : 0}%`;
      return bar;
    };
    const [removed, added] = [part("removed", version.removed), part("added", version.added)];
    if (version.removed) {
      removed.style.marginLeft = `calc(50% - ${removed.style.width})`;
      added.style.marginLeft = "0";
    }
    return el("span", { class: "turned", "aria-hidden": "true" }, removed, added);
  }

  /** @param {Version} version @param {Version | undefined} before */
  item(version, before) {
    const turn = version.added === null
      ? el("span", { class: "turn quiet" }, "not counted")
      : el("span", { class: "turn" }, el("span", { class: "good" }, `+${count(version.added)}`),
        el("span", { class: "bad" }, `−${count(version.removed ?? 0)}`));
    const kind = ["delete", "write"].includes(version.kind) && (version.removed ?? 0) > 0 ? "removes"
      : version.kind === "alter" ? "alters" : "";
    const chosen = this.asOf === String(version.version) || (this.asOf === "" && version === this.versions[0]);
    const said = el("span", { class: "isolate" }, version.message ? shown(version.message) : "",
      ...version.snapshots.map((name) => el("span", { class: "tag", title: "held by a snapshot" }, shown(name))));
    const took = version.duration_micros === null ? "" : `, took ${(version.duration_micros / 1000).toFixed(1)} ms`;
    return el("li", { class: `${kind}${chosen ? " chosen" : ""}`, "data-version": version.version, title: `commit ${version.seq}${took}` },
      el("strong", {}, `v${version.version}`), el("span", {}, version.kind), el("span", { class: "number" }, counted(version.rows, "row")),
      this.bar(version), turn, said,
      el("span", { class: "quiet" }, time(version.time), version.writer ? el("span", { class: "isolate" }, ` ${shown(version.writer)}`) : ""),
      el("span", { class: "actions" },
        button("Rows", () => this.read(String(version.version)), { "aria-label": `Rows of version ${version.version}` }),
        before && button("Changes", () => this.compare(String(before.version), String(version.version)), {
          "aria-label": `Changes of version ${version.version}`,
        })));
  }
}
