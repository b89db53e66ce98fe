// Requests to this machine's own server, which signs them and passes them on.

import { current, forget } from "./session.js";

const AGAIN = new Set([429, 503, 504]);
const GONE = "`troop ui` does not answer: it was stopped, or the connection to its machine is gone. Start it again, and open the link that it prints.";

/** A refusal. `status` is 0 when nobody answered; the message says what to do; `again`: in how many seconds to ask again. */
export class ApiError extends Error {
  constructor(status, message, again = null) {
    super(message);
    this.status = status;
    this.again = again;
  }
}

/** GET; what is only for the moment is tried once more. */
export async function get(path, query = {}, signal = undefined) {
  try {
    return await send("GET", path, query, undefined, signal);
  } catch (error) {
    if (!AGAIN.has(error.status)) throw error;
    await new Promise((resolve) => setTimeout(resolve, 700));
    return send("GET", path, query, undefined, signal);
  }
}

/** A change: sent once, whatever comes of it. */
export const change = (method, path, body) => send(method, path, {}, body);

async function send(method, path, query, body, signal) {
  const parameters = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== ""));
  const headers = { "X-Troop-Token": current() ?? "", ...(body && { "Content-Type": "application/json" }) };
  const address = `${path}${parameters.size ? `?${parameters}` : ""}`;
  let answer;
  try {
    answer = await fetch(address, { method, headers, signal, cache: "no-store", body: body && JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, GONE);
  }
  const told = await answer.json().catch(() => null);
  if (answer.ok) return told;
  if (answer.status === 401) {
    forget();
    dispatchEvent(new Event("troop-locked"));
  }
  throw new ApiError(answer.status, told?.message || `The answer was ${answer.status}, and said nothing more.`, answer.headers.get("Retry-After"));
}
