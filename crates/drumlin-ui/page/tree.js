// The tree: a list of nodes in path order, of which parts are asked for as they come into view.

import { el, shown, byId } from "./element.js";
import { bytes, compact, count, counted } from "./figures.js";
import { Scroller } from "./scroller.js";
import { get, isAborted, Latest, reason } from "./server.js";

/**
 * @typedef {{ path: string, depth: number, children: number, table: boolean, payload: boolean, tables: number, rows?: number,
 *   bytes?: number, versions?: number, keyed?: boolean, error?: string }} Node
 */

const PART = 200;
/** A tree of more nodes opens folded. */
const FOLDED_FROM = 100;
const PARTS_KEPT = 40;

export class Tree {
  /** @param {(node: Node) => void} open Called with the node that was chosen. @param {number} nodes How many nodes the tree has. */
  constructor(open, nodes) {
    this.open = open;
    this.frame = byId("tree");
    this.input = /** @type {HTMLInputElement} */ (byId("filter"));
    this.filter = "";
    this.nothing = byId("nothing");
    /** Whether all nodes are folded but the exceptions, or none but those. */
    this.foldsAll = nodes > FOLDED_FROM;
    /** @type {Set<string>} */
    this.except = new Set();
    /** The node that was brought into view last. */
    this.revealed = "";
    /** The node that the next answer brings into view. */
    this.wanted = "";
    /** @type {Map<number, Node[]>} */
    this.parts = new Map();
    /** @type {Set<number>} */
    this.asked = new Set();
    this.active = 0;
    /** The commit of which the list is. */
    this.seq = 0;
    this.chosen = "";
    this.latest = new Latest();
    this.scroller = new Scroller(this.frame, 24, (index) => this.make(index), (first, n) => this.want(first, n));
    this.frame.addEventListener("keydown", (event) => this.pressed(event));
    this.frame.addEventListener("focus", () => this.focus(this.active));
    this.input.addEventListener("input", () => {
      this.filter = this.input.value.trim();
      this.active = 0;
      this.scroller.position = 0;
      this.load();
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" && this.scroller.total > 0) {
        event.preventDefault();
        this.focus(this.active);
      }
    });
  }

  /** Asks for the list again: after a commit, with another filter, with other nodes folded. */
  async load() {
    this.latest.next();
    this.asked.clear();
    const first = Math.floor(this.scroller.position / PART) * PART;
    try {
      const answer = await this.ask(first, this.wanted);
      this.wanted = "";
      this.seq = answer.seq;
      this.parts.clear();
      this.parts.set(first / PART, answer.nodes);
      this.active = answer.at ?? Math.min(this.active, Math.max(0, answer.total - 1));
      byId("matches").textContent = this.filter ? `${count(answer.matches)} found` : counted(answer.matches, "node");
      this.nothing.textContent = answer.total > 0 ? "" : this.filter ? "Nothing in the tree matches." : "There are no tables yet.";
      this.scroller.reset(answer.total);
      if (answer.at !== null) this.scroller.show(answer.at);
      this.frame.tabIndex = answer.total > 0 ? -1 : 0;
      this.frame.dataset.loaded = this.filter;
    } catch (error) {
      if (!isAborted(error)) byId("matches").textContent = reason(error);
    }
  }

  /** @param {number} offset @param {string} [at] A node of which the answer tells where it is. */
  ask(offset, at) {
    const except = [...this.except];
    const folding = this.filter ? {} : this.foldsAll ? { fold: "all", unfolded: except } : { folded: except };
    return get("/api/tree", { filter: this.filter, ...folding, offset, limit: PART, at }, this.latest.signal);
  }

  /** @param {string} path */
  isFolded(path) {
    return this.filter === "" && this.foldsAll !== this.except.has(path);
  }

  /** @param {string} path */
  turn(path) {
    if (!this.except.delete(path)) this.except.add(path);
  }

  /** @param {number} index @returns {Node | undefined} */
  node(index) {
    return this.parts.get(Math.floor(index / PART))?.[index % PART];
  }

  /** @param {number} first @param {number} n */
  async want(first, n) {
    for (let part = Math.floor(first / PART); part * PART < first + n; part += 1) {
      if (this.parts.has(part) || this.asked.has(part)) continue;
      this.asked.add(part);
      try {
        const answer = await this.ask(part * PART);
        this.parts.set(part, answer.nodes);
        if (this.parts.size > PARTS_KEPT) {
          const far = [...this.parts.keys()].sort((a, b) => Math.abs(b - part) - Math.abs(a - part))[0];
          this.parts.delete(far);
        }
        for (let at = 0; at < answer.nodes.length; at += 1) this.scroller.refresh(part * PART + at);
      } catch (error) {
        if (!isAborted(error)) byId("matches").textContent = reason(error);
      } finally {
        this.asked.delete(part);
      }
    }
  }

  /** @param {number} index @returns {HTMLElement} */
  make(index) {
    const node = this.node(index);
    const row = el("div", {
      class: "node", role: "treeitem", "aria-level": (node?.depth ?? 0) + 1, "aria-setsize": this.scroller.total,
      "aria-posinset": index + 1, tabindex: index === this.active ? 0 : -1,
      "aria-selected": String(node !== undefined && node.path === this.chosen),
      onclick: () => { this.active = index; this.act(index); },
      onfocus: () => { this.activate(index); },
    });
    if (!node) {
      row.append(el("span", { class: "name quiet" }, "…"));
      return row;
    }
    row.dataset.path = node.path;
    row.title = shown(node.path);
    row.style.paddingLeft = `${6 + Math.min(node.depth, 20) * 14}px`;
    const folds = node.children > 0 && !this.filter;
    if (node.children > 0) row.setAttribute("aria-expanded", String(!this.isFolded(node.path)));
    row.append(el("span", {
      class: "fold", "aria-hidden": "true",
      onclick: (/** @type {Event} */ event) => { if (folds) { event.stopPropagation(); this.fold(node); } },
    }, node.children === 0 ? "" : this.isFolded(node.path) ? "▶" : "▼"));
    const name = shown(node.path.slice(node.path.lastIndexOf("/") + 1));
    row.append(el("span", { class: `name ${node.table ? "table" : node.payload ? "payload" : "folder"}` }, ...this.marked(name)));
    if (node.table) {
      row.append(el("span", { class: "figure", title: "rows" }, node.rows === undefined ? "?" : compact(node.rows)));
      row.append(el("span", { class: "figure", title: "bytes" }, node.bytes === undefined ? "" : bytes(node.bytes)));
    } else if (node.children > 0 && node.tables > 0) {
      row.append(el("span", { class: "figure", title: "tables below" }, `${compact(node.tables)} ${node.tables === 1 ? "table" : "tables"}`));
    } else if (node.payload) {
      row.append(el("span", { class: "figure" }, "payload"));
    }
    return row;
  }

  /** A name with what the filter found in it. @param {string} name */
  marked(name) {
    const at = this.filter ? name.toLowerCase().indexOf(this.filter.toLowerCase()) : -1;
    if (at < 0) return [name];
    const end = at + this.filter.length;
    return [name.slice(0, at), el("mark", {}, name.slice(at, end)), name.slice(end)];
  }

  /** @param {number} index */
  act(index) {
    const node = this.node(index);
    if (!node) return;
    this.choose(node.path);
    if (node.table || node.payload) {
      this.revealed = node.path;
      this.open(node);
    } else if (node.children > 0 && !this.filter) this.fold(node);
  }

  /** Marks the node that is shown. @param {string} path */
  choose(path) {
    this.chosen = path;
    for (const row of this.scroller.rows.values()) row.setAttribute("aria-selected", String(row.dataset.path === path));
  }

  /** Marks the node that is shown, unfolds those above it and brings it into view; this once, so that what somebody folds stays
   * folded. @param {string} path */
  async reveal(path) {
    const known = path === this.revealed;
    this.revealed = path;
    this.choose(path);
    if (known || path === "") return;
    for (let end = path.indexOf("/"); end >= 0; end = path.indexOf("/", end + 1)) {
      if (this.foldsAll !== this.except.has(path.slice(0, end))) this.turn(path.slice(0, end));
    }
    this.wanted = path;
    await this.load();
  }

  /** @param {Node} node */
  fold(node) {
    this.turn(node.path);
    this.load().then(() => this.refocus());
  }

  refocus() {
    if (this.frame.contains(document.activeElement) || document.activeElement === document.body) this.focus(this.active);
  }

  /** @param {number} index */
  activate(index) {
    if (index === this.active) return;
    this.scroller.rows.get(this.active)?.setAttribute("tabindex", "-1");
    this.active = index;
    this.scroller.rows.get(index)?.setAttribute("tabindex", "0");
  }

  /** @param {number} index */
  focus(index) {
    this.activate(Math.max(0, Math.min(index, this.scroller.total - 1)));
    this.scroller.show(this.active);
    this.scroller.rows.get(this.active)?.focus({ preventScroll: true });
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const node = this.node(this.active);
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowDown: () => this.focus(this.active + 1),
      ArrowUp: () => this.focus(this.active - 1),
      PageDown: () => this.focus(this.active + this.scroller.page),
      PageUp: () => this.focus(this.active - this.scroller.page),
      Home: () => this.focus(0),
      End: () => this.focus(this.scroller.total - 1),
      Enter: () => this.act(this.active),
      " ": () => this.act(this.active),
      ArrowRight: () => {
        if (node && node.children > 0 && this.isFolded(node.path)) this.fold(node);
        else if (node && node.children > 0) this.focus(this.active + 1);
      },
      ArrowLeft: () => {
        if (node && node.children > 0 && !this.isFolded(node.path) && !this.filter) return this.fold(node);
        let above = this.active - 1;
        while (above > 0 && (this.node(above)?.depth ?? 0) >= (node?.depth ?? 0)) above -= 1;
        this.focus(above);
      },
    };
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }
}
