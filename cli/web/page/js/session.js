// The token that every request needs: obtained once for the link's ticket, stored for this tab, and shared with other tabs.

const KEY = "troop-token";
const WAIT = 300; // milliseconds in which other tabs must answer
let token = null;
const tabs = new BroadcastChannel("troop");

tabs.addEventListener("message", ({ data }) => {
  if (data.ask && token) tabs.postMessage({ token });
});

/** Returns the token; null if this tab cannot get one. Throws the server's message if it rejects the ticket. */
export async function enter() {
  const match = /^#ticket=([\w-]+)$/.exec(location.hash);
  if (match) {
    history.replaceState(null, "", "#/overview"); // the ticket must not enter the history
    return store(await redeem(match[1]));
  }
  return store(sessionStorage.getItem(KEY) ?? (await borrow()));
}

function store(value) {
  token = value;
  if (value) sessionStorage.setItem(KEY, value);
  return value;
}

async function redeem(ticket) {
  const response = await fetch("ui/session", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ticket }),
  });
  const body = await response.json();
  if (!response.ok) {
    const borrowed = sessionStorage.getItem(KEY) ?? (await borrow());
    if (borrowed) return borrowed;
    throw new Error(body.message);
  }
  return body.token;
}

function borrow() {
  return new Promise((resolve) => {
    const receive = ({ data }) => data.token && finish(data.token);
    const finish = (value) => {
      tabs.removeEventListener("message", receive);
      resolve(value);
    };
    tabs.addEventListener("message", receive);
    setTimeout(() => finish(null), WAIT);
    tabs.postMessage({ ask: true });
  });
}

export const current = () => token;

/** Deletes the token: after a restart of the command it is no longer valid. */
export function forget() {
  token = null;
  sessionStorage.removeItem(KEY);
}
