// The report of a run: when it was created, and its creation on request.

import { change, get } from "./api.js";
import { ask, once } from "./dialogs.js";
import { fill, flash, h, name } from "./dom.js";
import { moment, sentence } from "./format.js";

const [FIRST, LATE, WORST] = [2_000, 15_000, 60_000]; // milliseconds until the next check: at first, later, after errors
const PATIENCE = 17 * 60_000; // the function can take three times five minutes

// By run, for as long as the page is open: someone who returns to a run sees the state of the request.
const requests = new Map();

const address = (run) => `benchmarks/${encodeURIComponent(run)}/report`;

/** Returns the report's creation time and etag; null without a report, or `{ soon: true }` if one is being created. */
async function metadata(run, signal) {
  try {
    return await get(`ui/report/${encodeURIComponent(run)}/metadata`, {}, signal);
  } catch (error) {
    if (error.status !== 404) throw error;
    return error.retryAfter ? { soon: true } : null;
  }
}

/** Whether the current report fulfils a request. A request shortly after somebody else's gets the report of the first. */
export function isNew(current, { before, requested_at }) {
  if (!current || current.soon) return false;
  return current.etag !== (before?.etag ?? null) || new Date(current.created_at) > new Date(requested_at);
}

/**
 * The controls for the report of a run that has ended.
 * @param {string} run
 * @param {string} title the run's name for people
 * @param {AbortSignal} signal
 * @param {object} [callbacks]
 * @param {function} [callbacks.begun] runs after a request for a report
 * @param {function} [callbacks.done] runs when the awaited report is available
 * @returns {{button: Element, message: Element, refresh: function}} `refresh` starts the checks
 */
export function reportStatus(run, title, signal, { begun, done } = {}) {
  const message = h("p", { class: "muted", id: "report-status", role: "status" });
  const button = h("button", { type: "button", onclick: () => requests.has(run) || once(question) });
  const state = { current: undefined, wait: FIRST, began: Date.now(), trouble: "", fresh: false };
  let timer;
  let shown;
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : waits() && refresh()), { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  label();

  const waits = () => requests.has(run) || Boolean(state.current?.soon);

  function label() {
    const pending = requests.has(run);
    button.setAttribute("aria-disabled", String(pending)); // unlike `disabled`, this keeps the focus
    const none = state.current === null || state.current?.soon;
    fill(button, pending ? "Creating the report …" : none ? "Create the report …" : "Recreate the report …");
  }

  /** Shows a message, unless it is shown already: screen readers would read a repeated message at each check. */
  function display(key, ...words) {
    if (shown === key) return;
    shown = key;
    fill(message, words);
  }

  function draw() {
    label();
    const { current, trouble } = state;
    const pending = requests.get(run);
    if (trouble) display(trouble, `Cannot check the report: ${trouble} This page will try again.`);
    else if (pending) display(`requested ${pending.requested_at}`, "Requested ", moment(pending.requested_at), ". Creating the report takes seconds, or minutes for very many cells. ", pending.before ? "The current report stays available until then." : "");
    else if (!current) display("none", "This run has no report.");
    else if (current.soon) display("soon", "The report is being created. This page checks again automatically.");
    else display(`created ${current.etag}`, state.fresh ? "The new report is ready, created " : "Report created ", moment(current.created_at), ".");
  }

  async function refresh() {
    clearTimeout(timer);
    const waited = waits();
    try {
      state.current = await metadata(run, signal);
      state.trouble = "";
    } catch (error) {
      if (signal.aborted) return;
      state.trouble = sentence(error.message);
      state.wait = Math.min(WORST, state.wait * 2);
      if (error.status === 401) return;
      if (!waited) {
        display(error.message, state.trouble);
        return;
      }
    }
    if (signal.aborted) return;
    const pending = requests.get(run);
    if (pending && isNew(state.current, pending)) {
      requests.delete(run);
      state.fresh = true;
    }
    draw();
    if (waited && !waits() && state.current) done?.();
    if (!waits()) return;
    if (Date.now() - (pending?.began ?? state.began) > PATIENCE) {
      requests.delete(run);
      label();
      display("late", "The report is not ready yet. Reload this page in a few minutes. If the report is still missing or old, read the log of the function Report.");
      return;
    }
    if (!state.trouble) state.wait = Math.min(LATE, state.wait * 1.5);
    if (!document.hidden) timer = setTimeout(refresh, state.wait);
  }

  async function question() {
    let before;
    try {
      before = await metadata(run, signal);
    } catch (error) {
      if (!signal.aborted) flash(error.message);
      return;
    }
    let response;
    const exists = before && !before.soon;
    const sent = await ask({
      title: exists ? "Recreate the report?" : "Create the report?",
      yes: exists ? "Recreate" : "Create",
      content: [
        h("p", {}, "The deployed version of Troop creates the report of ", name(title), " from its stored data. This takes seconds, or minutes for very many cells. It runs in the background: you can leave this page."),
        exists
          ? h("p", {}, "The new report replaces the current one, created ", moment(before.created_at), ". The measurements do not change.")
          : h("p", {}, before?.soon ? "The first report is already being created." : "There is no report now."),
      ],
      act: async () => {
        response = await change("POST", address(run));
      },
    });
    if (!sent) return;
    requests.set(run, { before: exists ? before : null, requested_at: response.requested_at, began: Date.now() });
    Object.assign(state, { current: before, wait: FIRST, trouble: "", fresh: false });
    draw();
    begun?.();
    if (!signal.aborted) timer = setTimeout(refresh, FIRST);
  }

  return { button, message, refresh };
}
