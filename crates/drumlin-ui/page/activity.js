// Who works with the store and what is kept: snapshots, the trash, sessions, holds, projections and triggers.

import { button, el, named, notice, plainTable, shown } from "./element.js";
import { bytes, count, counted, time } from "./figures.js";
import { get, isAborted, post, reason } from "./server.js";

/** @typedef {import("./element.js").Child} Child */

export class ActivityView {
  /** @param {boolean} write @param {(path: string) => void} changed */
  constructor(write, changed) {
    this.write = write;
    this.changed = changed;
    this.error = el("div", { class: "error", role: "alert", hidden: true });
    this.body = el("div", { class: "body" });
    this.dialog = el("dialog", { "aria-label": "Projection" });
    this.element = el("section", { class: "panel", "aria-label": "Activity" }, this.error, this.body, this.dialog);
  }

  async show() {
    try {
      const told = await get("/api/activity");
      this.error.hidden = true;
      this.body.replaceChildren(el("div", { class: "columns" }, ...this.parts(told)));
    } catch (error) {
      if (!isAborted(error)) this.fail(error);
    }
  }

  /** @param {unknown} error */
  fail(error) {
    this.error.textContent = reason(error);
    this.error.hidden = false;
  }

  /** @param {any} told */
  parts(told) {
    const part = (/** @type {string} */ name, /** @type {string[]} */ headings, /** @type {any} */ list, /** @type {(item: any) => Child[]} */ row) => {
      const more = list.total > list.items.length && el("p", { class: "quiet" }, `the first ${count(list.items.length)} of ${count(list.total)}`);
      const body = list.total === 0 ? el("p", { class: "quiet" }, "none") : plainTable(name, headings, list.items.map(row));
      return el("section", { "aria-label": name }, el("h2", {}, `${name} (${count(list.total)})`), body, more);
    };
    return [
      part("Snapshots", ["Name", "Taken (UTC)", "#Tables"], told.snapshots, (s) => [named(s.name), time(s.time), count(s.tables)]),
      part("Trash", ["Table", "Dropped (UTC)", "#Rows", "#Size", ...(this.write ? ["Action"] : [])], told.trash, (item) => [named(item.path), time(item.time), count(item.rows),
        bytes(item.bytes), ...(this.write ? [button("Undrop", () => this.undrop(item.path), { "aria-label": `Undrop ${shown(item.path)}` })] : [])]),
      part("Sessions", ["Session", "Last commit (UTC)", "State"], told.sessions, (s) => [s.session, time(s.time), s.own ? "this process" : s.ended ? "ended" : "may write"]),
      part("Leases and staged jobs", ["Hold", "Job", "Last beat (UTC)", "#Life"], told.holds, (hold) => [hold.hold, hold.job === null ? "lease" : shown(hold.job),
        time(hold.beat), `${count(hold.life_seconds)} s`]),
      part("Presences", ["Presence", "Name", "Since (UTC)", "#Life"], told.presences, (p) => [p.number, named(p.name), time(p.began), `${count(p.life_seconds)} s`]),
      part("Projections", ["Name", "Pattern", "#Entries", "Action"], told.projections, (p) => [named(p.name), named(p.pattern), count(p.entries),
        button("Show", () => this.projection(p.name), { "aria-label": `Show ${shown(p.name)}` })]),
      part("Durable triggers", ["Name", "Pattern", "Called up to", "By session"], told.triggers, (t) => [named(t.name), named(t.pattern),
        `commit ${count(t.done)}`, t.session === 0 ? "none" : t.session]),
      part("Triggers of this process", ["Name"], told.passing_triggers, (trigger) => [named(trigger)]),
      part("Failures of triggers", ["Trigger", "Commit", "Path", "Error"], told.failures, (f) => [named(f.trigger), count(f.seq), named(f.path), named(f.error)]),
    ];
  }

  /** @param {string} path */
  async undrop(path) {
    try {
      await post("/api/undrop", { path });
      notice(`${shown(path)} is back`);
      await this.show();
      this.changed(path);
    } catch (error) {
      this.fail(error);
    }
  }

  /** @param {string} name */
  async projection(name) {
    try {
      const { total, entries } = await get("/api/projection", { name });
      const rows = entries.map((/** @type {any} */ entry) => [shown(entry.key), named(entry.path), shown(entry.value)]);
      this.dialog.replaceChildren(el("h1", {}, named(name)), el("p", { class: "quiet" }, counted(total, "entry")),
        plainTable("Entries", ["Key", "Node", "Value"], rows), el("form", { method: "dialog" }, el("button", {}, "Close")));
      this.dialog.showModal();
    } catch (error) {
      this.fail(error);
    }
  }
}
