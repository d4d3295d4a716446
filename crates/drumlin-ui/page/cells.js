// Draws row groups as cells in their blocks. Only the part that is seen is drawn, so that any number of cells can be scrolled over.

import { el } from "./element.js";

/**
 * @typedef {{ block: Block, table: number, kind: string, group: number, bytes: number, rows: number, dead: number, born: number,
 *   time: number | null, needed: string, version: number | null, records: number, planned: string | null, window: number | null,
 *   x: number, y: number }} Cell
 * @typedef {{ block: string, bytes: number, live: number, inline: boolean, repacked: boolean, cells: Cell[], x: number, y: number,
 *   width: number, height: number }} Block
 */

const GAP = 2;
const PAD = 6;
const LABEL = 20;

/** Blocks and cells from the server's rows of numbers. @param {any[]} blocks @returns {Block[]} */
export function unpack(blocks) {
  return blocks.map((told) => {
    /** @type {Block} */
    const block = { ...told, cells: [], x: 0, y: 0, width: 0, height: 0 };
    block.cells = told.cells.map((/** @type {any[]} */ c) => ({
      block, table: c[0], kind: c[1], group: c[2], bytes: c[3], rows: c[4], dead: c[5], born: c[6], time: c[7], needed: c[8],
      version: c[9], records: c[10], planned: c[11], window: c[12], x: 0, y: 0,
    }));
    return block;
  });
}

/** The colours of the page. */
function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ground: of("ground"), raised: of("raised"), line: of("line-strong"), text: of("quiet"), plan: of("plan"), focus: of("focus"),
    newest: of("newest"), version: of("listed"), snapshot: of("snapshot"), trash: of("trash"), nothing: of("nothing"),
    dead: [of("dead-0"), of("dead-1")], age: [of("age-0"), of("age-1")],
  };
}

/** A colour between two. @param {string[]} ends @param {number} share */
function between(ends, share) {
  const parts = ends.map((end) => [1, 3, 5].map((at) => parseInt(end.slice(at, at + 2), 16)));
  return `rgb(${parts[0].map((from, at) => Math.round(from + (parts[1][at] - from) * share)).join(" ")})`;
}

export class Cells {
  /** @param {(cell: Cell | null) => void} tell Called with the cell that is pointed at or reached by keys. */
  constructor(tell) {
    this.tell = tell;
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.extent = el("div", { class: "extent" });
    this.element = el("div", {
      class: "scroller", tabindex: 0, role: "application", "aria-roledescription": "map of row groups",
      "aria-label": "Row groups by block; arrow keys go from cell to cell",
    }, this.extent, this.canvas);
    /** @type {Block[]} */
    this.blocks = [];
    /** @type {Cell[]} */
    this.cells = [];
    this.mode = "needed";
    this.plan = true;
    /** @type {Cell | null} */
    this.at = null;
    this.now = 0;
    /** The edge of a cell: the fewer there are, the larger. */
    this.size = 24;
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    this.element.addEventListener("pointermove", (event) => this.pointed(event));
    this.element.addEventListener("keydown", (event) => this.pressed(event));
    this.element.addEventListener("focus", () => { if (!this.at) this.go(0); });
    new ResizeObserver(() => this.arrange()).observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  /** @param {Block[]} blocks @param {number} now */
  show(blocks, now) {
    this.blocks = blocks;
    this.cells = blocks.flatMap((block) => block.cells);
    this.now = now;
    const oldest = this.cells.reduce((least, cell) => Math.min(least, cell.time ?? now), now);
    this.oldest = Math.max(1, now - oldest);
    this.at = null;
    this.size = this.cells.length < 300 ? 24 : this.cells.length < 2000 ? 18 : 13;
    this.arrange();
  }

  /** Places blocks in lines, and cells in blocks. */
  arrange() {
    const wide = this.element.clientWidth - 16;
    if (wide <= 40) return;
    const SIZE = this.size;
    let [x, y, line] = [8, 8, 0];
    for (const block of this.blocks) {
      const most = Math.max(1, Math.floor((wide - 2 * PAD + GAP) / (SIZE + GAP)));
      const columns = Math.min(block.cells.length, Math.max(2, Math.min(most, Math.ceil(Math.sqrt(block.cells.length) * 1.6))));
      const lines = Math.ceil(block.cells.length / columns);
      block.width = Math.max(Math.max(columns, 1) * (SIZE + GAP) - GAP, 62) + 2 * PAD;
      block.height = lines * (SIZE + GAP) - GAP + 2 * PAD + LABEL;
      if (x + block.width > wide && x > 8) { x = 8; y += line + 8; line = 0; }
      [block.x, block.y] = [x, y];
      block.cells.forEach((cell, at) => {
        cell.x = x + PAD + (at % columns) * (SIZE + GAP);
        cell.y = y + PAD + LABEL + Math.floor(at / columns) * (SIZE + GAP);
      });
      x += block.width + 8;
      line = Math.max(line, block.height);
    }
    this.extent.style.height = `${y + line + 8}px`;
    this.draw();
  }

  draw() {
    const { clientWidth: width, clientHeight: height, scrollTop: top } = this.element;
    const scale = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    const pen = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    const colour = colours();
    pen.setTransform(scale, 0, 0, scale, 0, -top * scale);
    pen.font = "10px ui-monospace, monospace";
    pen.textBaseline = "middle";
    for (const block of this.blocks) {
      if (block.y + block.height < top || block.y > top + height) continue;
      pen.fillStyle = colour.raised;
      pen.fillRect(block.x, block.y, block.width, block.height);
      pen.strokeStyle = this.plan && block.repacked ? colour.plan : colour.line;
      pen.setLineDash(block.inline ? [3, 3] : []);
      pen.lineWidth = this.plan && block.repacked ? 2 : 1;
      pen.strokeRect(block.x + 0.5, block.y + 0.5, block.width - 1, block.height - 1);
      pen.setLineDash([]);
      pen.fillStyle = colour.text;
      pen.fillText(block.block, block.x + PAD, block.y + 10, block.width - 2 * PAD);
      // How much of the block is in use.
      const wide = block.width - 2 * PAD;
      pen.fillStyle = colour.trash;
      pen.fillRect(block.x + PAD, block.y + LABEL - 2, wide, 3);
      pen.fillStyle = colour.text;
      pen.fillRect(block.x + PAD, block.y + LABEL - 2, wide * Math.min(1, block.live / Math.max(1, block.bytes)), 3);
      for (const cell of block.cells) {
        if (cell.y + this.size >= top && cell.y <= top + height) this.drawCell(pen, cell, colour);
      }
    }
    this.element.dataset.cells = String(this.cells.length);
  }

  /** @param {CanvasRenderingContext2D} pen @param {Cell} cell @param {ReturnType<typeof colours>} colour */
  drawCell(pen, cell, colour) {
    const { x, y } = cell;
    const SIZE = this.size;
    if (this.mode === "dead") pen.fillStyle = between(colour.dead, cell.dead / Math.max(1, cell.rows));
    else if (this.mode === "age") pen.fillStyle = between(colour.age, Math.min(1, (this.now - (cell.time ?? this.now)) / (this.oldest ?? 1)));
    else pen.fillStyle = colour[/** @type {"newest"} */ (cell.needed)];
    pen.fillRect(x, y, SIZE, SIZE);
    // In any colouring, the height of the notch is the dead share.
    if (this.mode !== "dead" && cell.dead > 0) {
      pen.fillStyle = colour.ground;
      pen.globalAlpha = 0.72;
      const dead = Math.max(2, Math.round(SIZE * cell.dead / cell.rows));
      pen.fillRect(x, y, SIZE, dead);
      pen.globalAlpha = 1;
    }
    if (cell.kind !== "group") {
      pen.fillStyle = colour.ground;
      pen.fillRect(x + 5, y + 5, SIZE - 10, SIZE - 10);
    }
    if (this.plan && cell.planned) {
      pen.strokeStyle = colour.plan;
      pen.lineWidth = 2;
      pen.strokeRect(x + 1, y + 1, SIZE - 2, SIZE - 2);
    }
    if (cell === this.at) {
      pen.strokeStyle = colour.focus;
      pen.lineWidth = 2;
      pen.strokeRect(x - 1, y - 1, SIZE + 2, SIZE + 2);
    }
  }

  /** @param {PointerEvent} event */
  pointed(event) {
    const SIZE = this.size;
    const box = this.element.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top + this.element.scrollTop];
    const block = this.blocks.find((b) => x >= b.x && x < b.x + b.width && y >= b.y && y < b.y + b.height);
    const cell = block?.cells.find((c) => x >= c.x && x < c.x + SIZE && y >= c.y && y < c.y + SIZE);
    if (cell && cell !== this.at) {
      this.at = cell;
      this.tell(cell);
      this.draw();
    }
  }

  /** @param {number} index */
  go(index) {
    const cell = this.cells[Math.max(0, Math.min(index, this.cells.length - 1))];
    if (!cell) return;
    this.at = cell;
    const { clientHeight, scrollTop } = this.element;
    if (cell.y - LABEL - PAD < scrollTop) this.element.scrollTop = cell.y - LABEL - PAD;
    else if (cell.y + this.size > scrollTop + clientHeight) this.element.scrollTop = cell.y + this.size + PAD - clientHeight;
    this.tell(cell);
    this.draw();
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const index = this.at ? this.cells.indexOf(this.at) : 0;
    const block = this.at ? this.blocks.indexOf(this.at.block) : 0;
    const of = (/** @type {number} */ n) => this.cells.indexOf(this.blocks[Math.max(0, Math.min(n, this.blocks.length - 1))]?.cells[0]);
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowRight: () => this.go(index + 1), ArrowLeft: () => this.go(index - 1), ArrowDown: () => this.go(of(block + 1)),
      ArrowUp: () => this.go(of(block - 1)), Home: () => this.go(0), End: () => this.go(this.cells.length - 1),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}
