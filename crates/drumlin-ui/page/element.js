// Elements made of text and attributes. Nothing that comes from a store is ever parsed: text becomes text nodes.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element with attributes, listeners (`on` and the event's name) and children. False and null attributes are left out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any>} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  dress(element, attributes);
  element.append(...children.filter((c) => c !== null && c !== undefined && c !== false).map((c) => c instanceof Node ? c : String(c)));
  return element;
}

/**
 * An element of SVG.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http:" + "//www.w3.org/2000/svg", tag);
  dress(element, attributes);
  element.append(...children.filter((c) => c !== null && c !== undefined && c !== false).map((c) => c instanceof Node ? c : String(c)));
  return /** @type {SVGElement} */ (element);
}

/**
 * @param {Element} element
 * @param {Record<string, any>} attributes
 */
function dress(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/**
 * Text from a store, with what cannot be seen or turns text around written as escapes.
 * @param {string} text
 * @returns {string}
 */
export function shown(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g, (c) =>
    c === "\n" ? "⏎" : c === "\t" ? "⇥" : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * A name as it is shown, which breaks between its words if it does not fit a line.
 * @param {string} text
 * @returns {HTMLElement}
 */
export function named(text) {
  const words = shown(text).split(/(?<=[/_.:-])(?=[^/_.:-])/);
  return el("span", { class: "isolate" }, ...words.flatMap((word, at) => (at === 0 ? [word] : [el("wbr"), word])));
}

/**
 * A button.
 * @param {string} text
 * @param {() => void} act
 * @param {Record<string, any>} [attributes]
 */
export function button(text, act, attributes = {}) {
  return el("button", { type: "button", onclick: act, ...attributes }, text);
}

/**
 * A table of text and elements; columns whose heading begins with `#` hold numbers.
 * @param {string} caption
 * @param {string[]} headings
 * @param {Child[][]} rows
 */
export function plainTable(caption, headings, rows) {
  const number = headings.map((heading) => heading.startsWith("#") ? "number" : null);
  const head = headings.map((heading, at) => el("th", { scope: "col", class: number[at] }, heading.replace(/^#/, "")));
  const body = rows.map((row) => el("tr", {}, ...row.map((cell, at) => el("td", { class: number[at] }, cell))));
  return el("table", { class: "plain", "aria-label": caption }, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body));
}

/**
 * The element with this id.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page lacks ${id}`);
  return found;
}

/**
 * Says something for a few seconds.
 * @param {string} text
 */
export function notice(text) {
  byId("notice").textContent = text;
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => { byId("notice").textContent = ""; }, 6000);
}
/** @type {ReturnType<typeof setTimeout> | undefined} */
notice.timer = undefined;
