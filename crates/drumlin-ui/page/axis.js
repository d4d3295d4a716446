// Round values along an axis, and how values are written there; times as clocks in their zone show them.

import { compact, count } from "./figures.js";

/** @typedef {{ kind: string, zone?: string | null }} Axis */

/** Round values within bounds. @param {number} low @param {number} high @param {number} most @param {Axis} axis @returns {number[]} */
export function ticks(low, high, most, axis) {
  const raw = (high - low) / most;
  if (!(raw > 0)) return [low];
  if (axis.kind === "time") {
    // Round where the zone is. If its clocks are changed in between, the ticks after that are an hour off.
    const ahead = offset(low, axis.zone);
    return times(low + ahead, high + ahead, raw).map((at) => at - ahead);
  }
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw) ?? 10 * power;
  const found = [];
  for (let n = Math.ceil(low / step); n * step <= high + step * 1e-9; n += 1) found.push(n * step);
  return found;
}

/** Round times within bounds, which are in microseconds. @param {number} low @param {number} high @param {number} raw @returns {number[]} */
function times(low, high, raw) {
  const [second, day] = [1e6, 86400e6];
  const units = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10800, 21600, 43200].map((n) => n * second);
  const step = [...units, ...[1, 2, 5, 10, 30, 60, 90, 180].map((n) => n * day)].find((n) => n >= raw);
  const found = [];
  if (step && raw >= second) {
    for (let n = Math.ceil(low / step); n * step <= high; n += 1) found.push(n * step);
    return found;
  }
  if (!step) {
    const years = Math.ceil(raw / (365 * day));
    for (let year = new Date(low / 1000).getUTCFullYear() + 1; Date.UTC(year, 0) * 1000 <= high; year += years) found.push(Date.UTC(year, 0) * 1000);
    return found;
  }
  return ticks(low, high, 6, { kind: "number" });
}

/** @type {Map<string, Intl.DateTimeFormat | null>} */
const clocks = new Map();

/** By how much clocks in a zone are ahead of UTC, in microseconds; 0 without a zone, and in one that the browser does not know.
 * @param {number} micros @param {string | null | undefined} zone */
function offset(micros, zone) {
  const clock = zone ? clockOf(zone) : null;
  const seconds = Math.floor(micros / 1e6);
  if (!clock || Math.abs(seconds) > 8.64e12) return 0;
  /** @type {Record<string, number>} */
  const of = Object.fromEntries(clock.formatToParts(seconds * 1000).map(({ type, value }) => [type, Number(value)]));
  return Date.UTC(of.year, of.month - 1, of.day, of.hour, of.minute, of.second) * 1000 - seconds * 1e6;
}

/** @param {string} zone */
function clockOf(zone) {
  if (!clocks.has(zone)) {
    try {
      clocks.set(zone, new Intl.DateTimeFormat("en-US", {
        timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric",
      }));
    } catch {
      clocks.set(zone, null);
    }
  }
  return clocks.get(zone) ?? null;
}

/** In which zones times along axes are written, in words. @param {...Axis} axes */
export function zones(...axes) {
  const told = axes.flatMap(({ kind, zone }) => (kind === "time" && zone ? [clockOf(zone) ? zone : "UTC"] : []));
  return told.length === 0 ? "" : `; times in ${[...new Set(told)].join(" and ")}`;
}

/** A value on an axis. @param {number} value @param {Axis} axis */
export function label(value, axis) {
  if (axis.kind === "time") {
    const date = new Date((value + offset(value, axis.zone)) / 1000);
    return Number.isNaN(date.getTime()) ? String(value) : date.toISOString().replace("T", " ").replace(/(:00)?\.000Z$/, "").replace(" 00:00", "");
  }
  if (axis.kind === "row") return count(Math.round(value));
  return Math.abs(value) >= 1e6 ? compact(value) : String(Number(value.toPrecision(6)));
}
