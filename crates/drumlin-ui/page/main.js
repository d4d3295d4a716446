// The page: its views, and which one is shown. What is shown stands in the fragment of the address.

import { byId, el, named, shown } from "./element.js";
import { bytes, compact, count, time } from "./figures.js";
import { ActivityView } from "./activity.js";
import { LayoutView, allowWrites } from "./layout.js";
import { Follower, LogView } from "./log.js";
import { MetricsView } from "./metrics.js";
import { admit, get, reason } from "./server.js";
import { TableView } from "./table.js";
import { Tree } from "./tree.js";

const VIEWS = /** @type {const} */ ([["tables", "Tables"], ["map", "Map"], ["log", "Log"], ["activity", "Activity"], ["metrics", "Metrics"]]);

/** The address of a view. @param {string} view @param {...string} parts */
const address = (view, ...parts) => `#/${[view, ...parts].map(encodeURIComponent).join("/")}`;

/** What the address names. */
function place() {
  return location.hash.replace(/^#\/?/, "").split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return ""; }
  });
}

class Page {
  /** @param {any} store */
  constructor(store) {
    allowWrites(store.write);
    const open = (/** @type {string} */ path) => { location.hash = address("tables", path, "rows", ""); };
    this.table = new TableView((path, tab, asOf) => { location.hash = address("tables", path, tab, asOf); });
    this.follower = new Follower();
    this.layout = new LayoutView(true);
    this.log = new LogView(this.follower, open);
    this.activity = new ActivityView(store.write, () => this.renew());
    this.metrics = new MetricsView();
    this.changed = false;
    /** Whether a commit did more than it tells, so that the table that is shown may have gone. */
    this.doubtful = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.tree = new Tree((node) => {
      if (node.table) open(node.path);
      else location.hash = address("nodes", node.path);
    }, store.nodes);
    this.tables = 0;
    /** Whether no table is chosen. */
    this.welcomes = false;
    this.figures(store);
    byId("uri").textContent = shown(store.uri);
    byId("uri").title = shown(store.uri);
    byId("mode").textContent = store.write ? "may change the store" : "read only";
    byId("mode").classList.toggle("writes", store.write);
    document.title = `${shown(store.uri.split("/").filter(Boolean).pop() ?? store.uri)} – Drumlin`;
    byId("views").replaceChildren(...VIEWS.map(([id, name]) => el("a", { href: address(id), "data-view": id }, name)));
    addEventListener("hashchange", () => this.show());
    this.follower.hearers.add((fresh) => this.heard(fresh));
  }

  async start() {
    await this.tree.load();
    this.follower.begun = this.tree.seq;
    this.show();
    this.follower.run();
  }

  /** @param {import("./log.js").Commit[]} fresh */
  heard(fresh) {
    if (fresh.length === 0) return;
    const [view, path, tab, asOf] = place();
    if (view === "tables" && path !== "") {
      // An older version stays as it is, unless the table goes or comes back.
      const follows = !asOf && ["rows", "versions"].includes(tab) || !this.table.lost.hidden;
      const moves = ["drop", "undrop", "move", "move away"];
      const cut = fresh.some((commit) => commit.count > commit.events.length);
      this.changed ||= follows && cut || fresh.some((commit) =>
        commit.events.some((event) => event.path === path && (follows || moves.includes(event.action))));
      this.doubtful ||= cut;
    }
    this.renew();
  }

  /** After a commit: the tree, the figures and the table that is shown, at most every half second. */
  renew() {
    if (this.timer) return;
    this.timer = setTimeout(async () => {
      this.timer = undefined;
      let again = this.changed;
      if (this.doubtful && !again) again = await get("/api/whereabouts", { path: this.table.path }).then(({ exists }) => !exists, () => false);
      this.changed = this.doubtful = false;
      if (again && place()[1] === this.table.path) this.table.show(this.table.path, this.table.tab, this.table.asOf);
      this.figures(await get("/api/store").catch(() => null));
      const focused = byId("tree").contains(document.activeElement);
      await this.tree.load();
      if (focused) this.tree.focus(this.tree.active);
      if (place()[0] === "activity") this.activity.show();
    }, 500);
  }

  /** @param {any} store */
  figures(store) {
    if (!store) return;
    const first = this.tables === 0 && store.tables > 0;
    this.tables = store.tables;
    if (first && this.welcomes) this.show();
    const figures = [["tables", compact(store.tables)], ["versions", compact(store.versions)], ["size", bytes(store.bytes)], ["commit", count(store.seq)]];
    byId("figures").replaceChildren(...figures.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
  }

  show() {
    const [view = "", path = "", tab = "rows", asOf = ""] = place();
    const known = view === "nodes" || VIEWS.some(([id]) => id === view) ? view : "tables";
    for (const link of byId("views").querySelectorAll("a")) {
      const here = link.dataset.view === (known === "nodes" ? "tables" : known);
      if (here) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const main = byId("view");
    const put = (/** @type {HTMLElement} */ element) => { if (main.firstElementChild !== element) main.replaceChildren(element); };
    this.tree.reveal(path);
    if (known === "map") { put(this.layout.element); this.layout.show(""); }
    else if (known === "log") { put(this.log.element); this.log.show(); }
    else if (known === "activity") { put(this.activity.element); this.activity.show(); }
    else if (known === "metrics") { put(this.metrics.element); this.metrics.show(); }
    else if (known === "nodes") put(this.node(path));
    else if (path !== "") { put(this.table.element); this.table.show(path, tab, asOf); }
    else put(this.welcome());
    this.welcomes = known === "tables" && path === "";
  }

  welcome() {
    if (this.tables === 0) {
      const how = "Tables are shown here as soon as they are written, such as by store.write(\"prices/AAPL\", frame).";
      return el("section", { class: "body" }, el("p", {}, "This store has no tables yet."), el("p", { class: "quiet" }, how));
    }
    const lines = [
      "Choose a table in the tree. Its rows, versions and differences are read from the store as you look at them.",
      "Keys: arrows move in the tree, the rows and the map; Enter opens a table or a whole value.",
    ];
    return el("section", { class: "body" }, ...lines.map((line) => el("p", { class: "quiet" }, line)));
  }

  /** @param {string} path */
  node(path) {
    const value = el("pre", { class: "value", tabindex: 0 }, "…");
    const facts = el("p", { class: "quiet" });
    get("/api/node", { path }).then((node) => {
      const ends = [node.presence !== null && `ends with presence ${node.presence}`, node.expires !== null && `ends by itself at ${time(node.expires)} (UTC)`];
      facts.textContent = [`payload version ${count(node.payload_version)}`, `commit ${count(node.seq)}`, ...ends.filter(Boolean)].join(", ");
      value.textContent = node.payload === null ? "no payload" : pretty(node.payload);
    }, (error) => { value.textContent = reason(error); });
    return el("section", { class: "body", "aria-label": "Node" }, el("h1", {}, named(path)), facts, value);
  }
}

/** JSON over several lines. @param {string} text */
function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

/** What is shown to those who lack the token. @param {string} text */
function locked(text) {
  byId("view").replaceChildren(el("div", { class: "locked" }, el("h1", {}, "This page is locked"), el("p", { class: "quiet" }, text)));
}

if (admit()) {
  get("/api/store").then((store) => new Page(store).start(), (error) => locked(reason(error)));
} else {
  locked("Open the address that was printed when the server was started: it has the token.");
}
