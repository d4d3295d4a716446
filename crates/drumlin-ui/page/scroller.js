// A list of which only what can be seen is in the page, for any number of rows.
//
// Browsers do not take elements higher than some tens of millions of pixels. A longer list has a scroll bar of a fixed range over which
// its rows are spread; the wheel and keys still move it row by row.

import { el } from "./element.js";

const EXTENT_MAX = 8_000_000;

export class Scroller {
  /**
   * @param {HTMLElement} frame The element that scrolls.
   * @param {number} rowHeight
   * @param {(index: number) => HTMLElement} make Makes the element of a row.
   * @param {(first: number, count: number) => void} [want] Called with the rows that are seen.
   * @param {number} [header] The height of what stays at the top.
   */
  constructor(frame, rowHeight, make, want = () => {}, header = 0) {
    this.frame = frame;
    this.rowHeight = rowHeight;
    this.make = make;
    this.want = want;
    this.header = header;
    this.total = 0;
    /** The row at the top, with what of it is above. */
    this.position = 0;
    /** @type {Map<number, HTMLElement>} */
    this.rows = new Map();
    this.extent = el("div", { class: "extent" });
    frame.classList.add("scroller");
    frame.append(this.extent);
    this.waiting = false;
    /** What a scroll event is expected to find, where this has set it. */
    this.setTo = -1;
    frame.addEventListener("scroll", () => this.scrolled(), { passive: true });
    frame.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
    this.observer = new ResizeObserver(() => this.later());
    this.observer.observe(frame);
  }

  get height() {
    return Math.max(0, this.frame.clientHeight - this.header);
  }

  /** How many whole rows can be seen. */
  get page() {
    return Math.max(1, Math.floor(this.height / this.rowHeight));
  }

  get spread() {
    return this.total * this.rowHeight > EXTENT_MAX;
  }

  get last() {
    return Math.max(0, this.total - this.height / this.rowHeight);
  }

  /** Changes the number of rows, and makes all of them again. @param {number} total */
  reset(total) {
    this.total = total;
    this.extent.style.height = `${Math.min(total * this.rowHeight, EXTENT_MAX) + this.header}px`;
    this.position = Math.min(this.position, this.last);
    this.clear();
    this.place();
    this.draw();
  }

  /** Makes the rows that are seen again. */
  clear() {
    this.rows.forEach((row) => row.remove());
    this.rows.clear();
  }

  /** Makes one row again, if it is there. @param {number} index */
  refresh(index) {
    const row = this.rows.get(index);
    if (!row) return;
    const made = this.make(index);
    [made.style.transform, made.style.top] = [row.style.transform, row.style.top];
    const focused = row.contains(document.activeElement);
    row.replaceWith(made);
    this.rows.set(index, made);
    return focused;
  }

  /** Brings a row into view. @param {number} index */
  show(index) {
    const whole = this.height / this.rowHeight;
    if (index < this.position) this.position = index;
    else if (index + 1 > this.position + whole) this.position = Math.max(0, index + 1 - whole);
    else return this.draw();
    this.place();
    this.draw();
  }

  /** How far the scroll bar goes. Not by what the frame says, which rows at the edge may extend. */
  get range() {
    return Math.min(this.total * this.rowHeight, EXTENT_MAX) + this.header - this.frame.clientHeight;
  }

  /** Moves the scroll bar to where the list is. */
  place() {
    const range = this.range;
    const top = this.spread ? (this.last > 0 ? this.position / this.last * range : 0) : this.position * this.rowHeight;
    this.frame.scrollTop = top;
    this.setTo = this.frame.scrollTop;
  }

  scrolled() {
    if (Math.abs(this.frame.scrollTop - this.setTo) >= 1) {
      const top = this.frame.scrollTop;
      this.position = this.spread ? Math.min(1, top / Math.max(1, this.range)) * this.last : top / this.rowHeight;
      this.setTo = -1;
    }
    this.later();
  }

  /** @param {WheelEvent} event */
  wheeled(event) {
    if (!this.spread || event.ctrlKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
    event.preventDefault();
    const rows = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? event.deltaY / this.rowHeight : event.deltaY;
    this.position = Math.min(Math.max(0, this.position + rows), this.last);
    this.place();
    this.later();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  draw() {
    if (this.height === 0) return;
    const first = Math.max(0, Math.floor(this.position));
    const end = Math.min(this.total, Math.ceil(this.position + this.height / this.rowHeight) + 1);
    for (const [index, row] of this.rows) {
      // What has the focus stays, so that keys go on to work.
      if ((index < first || index >= end) && !row.contains(document.activeElement)) {
        row.remove();
        this.rows.delete(index);
      }
    }
    const top = this.frame.scrollTop + this.header;
    for (let index = first; index < end; index += 1) {
      if (!this.rows.has(index)) {
        const row = this.make(index);
        this.frame.append(row);
        this.rows.set(index, row);
      }
    }
    for (const [index, row] of this.rows) {
      const at = this.spread ? top + (index - this.position) * this.rowHeight : index * this.rowHeight + this.header;
      row.style.transform = `translateY(${at - this.header}px)`;
      row.style.top = `${this.header}px`;
    }
    if (end > first) this.want(first, end - first);
  }
}
