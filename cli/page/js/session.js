// The token that every request needs: had once for the link's ticket, kept for this tab, and lent to other tabs.

const KEY = "troop-token";
const WAIT = 300; // milliseconds that other tabs may take
let token = null;
const others = new BroadcastChannel("troop");

others.addEventListener("message", ({ data }) => {
  if (data.ask && token) others.postMessage({ token });
});

/** The token; null when there is none to be had. Raises what the server says of a ticket that it refuses. */
export async function enter() {
  const found = /^#ticket=([\w-]+)$/.exec(location.hash);
  if (found) {
    history.replaceState(null, "", "#/units"); // so that it gets into no history
    return keep(await redeem(found[1]));
  }
  return keep(sessionStorage.getItem(KEY) ?? (await borrow()));
}

function keep(found) {
  token = found;
  if (found) sessionStorage.setItem(KEY, found);
  return found;
}

async function redeem(ticket) {
  const answer = await fetch("ui/session", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ticket }),
  });
  const body = await answer.json();
  if (!answer.ok) {
    const lent = sessionStorage.getItem(KEY) ?? (await borrow());
    if (lent) return lent;
    throw new Error(body.message);
  }
  return body.token;
}

function borrow() {
  return new Promise((resolve) => {
    const heard = ({ data }) => data.token && done(data.token);
    const done = (found) => {
      others.removeEventListener("message", heard);
      resolve(found);
    };
    others.addEventListener("message", heard);
    setTimeout(() => done(null), WAIT);
    others.postMessage({ ask: true });
  });
}

export const current = () => token;

/** It is none any more: the command was started anew. */
export function forget() {
  token = null;
  sessionStorage.removeItem(KEY);
}
