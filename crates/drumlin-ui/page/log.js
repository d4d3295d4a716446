// The commit log as it grows: the newest commits first.

import { button, el, named, shown } from "./element.js";
import { count, counted, time } from "./figures.js";
import { get, isAborted, reason } from "./server.js";

const KEPT = 500;

/** @typedef {{ kind: string, action: string, path: string, cause?: string | null, payload?: string | null,
 *   told?: string | null, tables?: number }} Event */
/** @typedef {{ seq: number, time: string, messages: string[], events: Event[], count: number }} Commit */

/** Follows the log for the whole page: all that show commits hear of them here. */
export class Follower {
  constructor() {
    /** @type {Commit[]} */
    this.commits = [];
    this.cut = false;
    this.seq = -1;
    /** The commit of which the page showed the tree first. */
    this.begun = 0;
    /** @type {Set<(fresh: Commit[]) => void>} */
    this.hearers = new Set();
    this.problem = "";
  }

  async run() {
    let pause = 500;
    for (;;) {
      try {
        const first = this.seq < 0;
        const query = first ? { limit: 100 } : { since: this.seq, wait: 1, limit: 200 };
        const answer = await get("/api/commits", query);
        this.seq = answer.seq;
        this.cut ||= first && answer.cut;
        this.problem = "";
        pause = 500;
        if (answer.commits.length > 0 || first) {
          this.commits = [...answer.commits.reverse(), ...this.commits].slice(0, KEPT);
          // The first answer may tell of commits that came after the tree.
          const fresh = answer.commits.filter((/** @type {Commit} */ commit) => !first || commit.seq > this.begun);
          this.hearers.forEach((hear) => hear(fresh));
        }
      } catch (error) {
        if (isAborted(error)) continue;
        this.problem = reason(error);
        this.hearers.forEach((hear) => hear([]));
        await new Promise((resolve) => setTimeout(resolve, pause));
        pause = Math.min(pause * 2, 15000);
      }
    }
  }
}

export class LogView {
  /** @param {Follower} follower @param {(path: string) => void} open */
  constructor(follower, open) {
    this.follower = follower;
    this.open = open;
    this.paused = false;
    this.filter = el("input", { type: "search", placeholder: "Filter by path or message", "aria-label": "Filter of commits", oninput: () => this.draw([]) });
    this.pause = button("Pause", () => this.toggle(), { "aria-pressed": "false" });
    this.told = el("output", {});
    this.error = el("div", { class: "error", role: "alert", hidden: true });
    this.nothing = el("p", { class: "empty", role: "status" });
    this.headings = el("div", { class: "headings of-commits", "aria-hidden": "true" },
      ...["Commit", "Time (UTC)", "What happened"].map((name) => el("span", {}, name)));
    this.list = el("ol", { class: "commits", "aria-label": "Commits, the newest first" });
    this.body = el("div", { class: "body log", tabindex: 0, "aria-label": "Commits" }, this.list);
    this.element = el("section", { class: "panel", "aria-label": "Log" },
      el("div", { class: "bar" }, el("span", { class: "grow" }, this.filter), this.told, this.pause), this.error, this.headings, this.nothing, this.body);
    follower.hearers.add((fresh) => { if (!this.paused && this.element.isConnected) this.draw(fresh); });
  }

  show() {
    this.draw([]);
  }

  toggle() {
    this.paused = !this.paused;
    this.pause.textContent = this.paused ? "Go on" : "Pause";
    this.pause.setAttribute("aria-pressed", String(this.paused));
    if (!this.paused) this.draw([]);
  }

  /** @param {Commit[]} fresh */
  draw(fresh) {
    const { commits, problem, cut, seq } = this.follower;
    this.error.textContent = problem;
    this.error.hidden = problem === "";
    const wanted = this.filter.value.trim().toLowerCase();
    const matches = (/** @type {Commit} */ commit) => wanted === ""
      || commit.messages.some((message) => message.toLowerCase().includes(wanted))
      || commit.events.some((event) => event.path.toLowerCase().includes(wanted));
    const seen = commits.filter(matches);
    this.told.textContent = `${count(seen.length)} of the last ${count(commits.length)} commits${cut ? "; a checkpoint has cut off earlier ones" : ""}`;
    this.headings.hidden = seen.length === 0;
    this.nothing.textContent = seen.length > 0 || seq < 0 ? "" : commits.length > 0 ? "No commit matches the filter."
      : cut ? "A checkpoint has cut off all commits so far. Those that come are shown here." : "There are no commits yet.";
    const arrived = new Set(fresh.map((commit) => commit.seq));
    this.list.replaceChildren(...seen.map((commit) => this.item(commit, arrived.has(commit.seq))));
  }

  /** @param {Commit} commit @param {boolean} fresh */
  item(commit, fresh) {
    const events = commit.events.map((event) => el("div", {},
      el("span", { class: `action ${event.action}` }, event.action), " ",
      event.kind === "table"
        ? el("button", { type: "button", class: "plain", onclick: () => this.open(event.path) }, named(event.path))
        : named(event.path),
      event.told ? el("span", { class: "quiet" }, ` ${event.told}`) : null,
      typeof event.tables === "number" ? el("span", { class: "quiet" }, ` ${counted(event.tables, "table")}`) : null,
      event.payload ? el("span", { class: "mono quiet isolate" }, ` ${shown(event.payload)}`) : null,
      event.cause ? el("span", { class: "quiet" }, ` (${event.cause})`) : null));
    if (commit.count > commit.events.length) events.push(el("div", { class: "quiet" }, `and ${count(commit.count - commit.events.length)} more`));
    if (events.length === 0) events.push(el("div", { class: "quiet" }, "a change of the store itself: its layout, its sessions, or a setting that has changed again since"));
    const said = commit.messages.map((message) => el("div", { class: "message isolate" }, shown(message)));
    return el("li", { class: fresh ? "new" : "", "data-seq": commit.seq }, el("span", { class: "number" }, count(commit.seq)),
      el("span", { class: "quiet" }, time(commit.time)), el("div", { class: "events" }, ...said, ...events));
  }
}
