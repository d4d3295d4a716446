// Numbers, sizes and times as people read them.

const counts = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** @param {number} n */
export const count = (n) => counts.format(n);

/** A number in a few characters. @param {number} n */
export const compact = (n) => (Math.abs(n) < 10000 ? counts.format(n) : short.format(n));

/** A number and its noun. @param {number} n @param {string} noun */
export const counted = (n, noun) => `${counts.format(n)} ${n === 1 ? noun : noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`}`;

/** A size in bytes. @param {number} n */
export function bytes(n) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let at = 0;
  while (n >= 1000 && at < units.length - 1) { n /= 1000; at += 1; }
  return `${at === 0 ? n : n.toPrecision(3)} ${units[at]}`;
}

/** A time in RFC 3339 without what nobody reads. @param {string} text */
export const time = (text) => text.replace("T", " ").replace(/\.\d+Z$/, "").replace("Z", "");

/** A part of a whole. @param {number} part @param {number} whole */
export const percent = (part, whole) => (whole > 0 ? `${(100 * part / whole).toFixed(part > 0 && part / whole < 0.1 ? 1 : 0)} %` : "0 %");

/** How long ago, in words. @param {number} micros */
export function span(micros) {
  const seconds = Math.max(0, micros / 1e6);
  const units = /** @type {[number, string][]} */ ([[86400 * 365, "y"], [86400, "d"], [3600, "h"], [60, "min"]]);
  for (const [length, unit] of units) if (seconds >= length) return `${Math.floor(seconds / length)} ${unit}`;
  return `${Math.floor(seconds)} s`;
}
