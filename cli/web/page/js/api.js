// Requests to the local server, which signs them and forwards them to the API.

import { current, forget } from "./session.js";

const TRANSIENT = new Set([429, 503, 504]);
export const UNREACHABLE = "`troop ui` does not answer. It was stopped, or the connection to its machine is lost. Start it again, and open the link that it prints.";

/** A failed request. `status` is 0 without an answer; `message` says what to do; `retryAfter`: seconds until the next attempt, or null; `problems`: where the request is wrong. */
export class ApiError extends Error {
  constructor(status, message, retryAfter = null, problems = []) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
    this.problems = problems;
  }
}

/** Sends a GET; repeats it once after a transient error. */
export async function get(path, query = {}, signal = undefined) {
  try {
    return await send("GET", path, query, undefined, signal);
  } catch (error) {
    if (!TRANSIENT.has(error.status)) throw error;
    await new Promise((resolve) => setTimeout(resolve, 700));
    return send("GET", path, query, undefined, signal);
  }
}

/** Sends a change, and never repeats it. */
export const change = (method, path, body) => send(method, path, {}, body);

async function send(method, path, query, body, signal) {
  const parameters = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== ""));
  const headers = { "X-Troop-Token": current() ?? "", ...(body && { "Content-Type": "application/json" }) };
  const address = `${path}${parameters.size ? `?${parameters}` : ""}`;
  let response;
  try {
    response = await fetch(address, { method, headers, signal, cache: "no-store", body: body && JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, UNREACHABLE);
  }
  const json = await response.json().catch(() => null);
  if (response.ok) return json;
  if (response.status === 401) {
    forget();
    dispatchEvent(new Event("troop-locked"));
  }
  throw new ApiError(response.status, json?.message || `The server answered ${response.status} without a message.`, response.headers.get("Retry-After"), json?.problems ?? []);
}
