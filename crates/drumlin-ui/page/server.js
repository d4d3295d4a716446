// What is asked of the server. The token comes in the fragment of the address, which is sent to nobody, and goes in a header, which
// pages of other sites cannot send. It is kept for this tab alone.

import { tableFromIPC } from "./vendor/flechette.js";

const KEY = "drumlin-token";

/** Takes the token out of the address; returns whether there is one. */
export function admit() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", `${location.pathname}#/`);
  }
  return sessionStorage.getItem(KEY) !== null;
}

/** What the server refused, or failed to do. */
export class Refusal extends Error {
  /** @param {number} status @param {string} kind @param {string} message */
  constructor(status, kind, message) {
    super(message);
    this.status = status;
    this.kind = kind;
  }
}

/** @typedef {Record<string, string | number | string[] | null | undefined>} Query */

/** @param {string} path @param {Query} query */
function target(path, query) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) value.forEach((one) => words.append(name, one));
    else if (value !== null && value !== undefined && value !== "") words.append(name, String(value));
  }
  const text = words.toString();
  return text ? `${path}?${text}` : path;
}

/** @param {string} path @param {Query} query @param {RequestInit} [options] */
async function ask(path, query, options = {}) {
  const headers = { ...options.headers, Authorization: `Bearer ${sessionStorage.getItem(KEY)}` };
  const response = await fetch(target(path, query), { ...options, headers, credentials: "omit", cache: "no-store" });
  if (!response.ok) {
    const told = await response.json().catch(() => null);
    const error = told?.error ?? { kind: "Internal", message: `the server answered ${response.status}` };
    throw new Refusal(response.status, error.kind, error.message);
  }
  return response;
}

/**
 * An answer in JSON.
 * @param {string} path
 * @param {Query} [query]
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function get(path, query = {}, signal) {
  return (await ask(path, query, { signal })).json();
}

/** The questions of one place, of which only the last is of use: each gives up the one before. */
export class Latest {
  constructor() {
    this.stop = new AbortController();
  }

  get signal() {
    return this.stop.signal;
  }

  /** The signal of a new question. */
  next() {
    this.stop.abort();
    this.stop = new AbortController();
    return this.signal;
  }
}

/** An answer as text. @param {string} path */
export async function text(path) {
  return (await ask(path, {})).text();
}

/**
 * Rows.
 * @param {string} path
 * @param {Query} query
 * @param {AbortSignal} [signal]
 * @returns {Promise<Rows>}
 */
export async function rows(path, query, signal) {
  const response = await ask(path, query, { signal });
  const table = tableFromIPC(await response.arrayBuffer());
  return new Rows(table, response.headers.get("x-drumlin-more") === "1");
}

/** A change. @param {string} path @param {object} body @returns {Promise<any>} */
export async function post(path, body) {
  const options = { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  return (await ask(path, {}, options)).json();
}

/** Whether a request was given up because nobody waits for it. @param {unknown} error */
export const isAborted = (error) => error instanceof DOMException && error.name === "AbortError";

/** What went wrong, for people. @param {unknown} error @returns {string} */
export function reason(error) {
  if (error instanceof Refusal) return error.message;
  return error instanceof TypeError ? "the server does not answer; has it ended?" : String(error);
}

/** @typedef {{ name: string, type: string, kind: string }} Column */

/** Rows by columns. */
export class Rows {
  /** @param {import("./vendor/flechette.js").Table} table @param {boolean} more */
  constructor(table, more) {
    this.more = more;
    this.length = table.numRows;
    /** @type {Column[]} */
    this.columns = table.schema.fields.map((field) => ({
      name: String(field.name), type: field.metadata?.get("type") ?? "", kind: field.metadata?.get("kind") ?? "other",
    }));
    this.values = this.columns.map((_, at) => table.getChildAt(at));
  }

  /** A value. @param {number} row @param {number} column @returns {string | number | boolean | null} */
  at(row, column) {
    return this.values[column].at(row);
  }
}
