// A run's report as it is made: when that was, having it made anew, and what becomes of that.

import { change, get } from "./api.js";
import { ask, once } from "./dialogs.js";
import { fill, flash, h, name } from "./dom.js";
import { moment, sentence } from "./format.js";

const [FIRST, LATE, WORST] = [2_000, 15_000, 60_000]; // milliseconds until the next look: at first, in the end, after errors
const PATIENCE = 17 * 60_000; // the function may take three times five minutes

// By run, kept while the page is open: whoever comes back to a run finds what has become of it.
const asked = new Map();

const address = (run) => `benchmarks/${encodeURIComponent(run)}/report`;

/** When the report was made, and its etag; null when there is none, or with `soon` when it is about to come. */
async function made(run, signal) {
  try {
    return await get(`ui/report/${encodeURIComponent(run)}/made`, {}, signal);
  } catch (error) {
    if (error.status !== 404) throw error;
    return error.again ? { soon: true } : null;
  }
}

/** Whether what is there now is what was asked for. Who asks soon after somebody else gets what that one asked for. */
export function isNew(now, { before, requested_at }) {
  if (!now || now.soon) return false;
  return now.etag !== (before?.etag ?? null) || new Date(now.created_at) > new Date(requested_at);
}

/**
 * What there is to be seen and done about the report of a run that has ended.
 * @param {string} run
 * @param {string} title what people call it
 * @param {AbortSignal} signal
 * @param {object} [then]
 * @param {function} [then.begun] is called when it has been asked for
 * @param {function} [then.done] is called when a report that was waited for is there
 * @returns {{button: Element, said: Element, look: function}} `look` begins to look
 */
export function making(run, title, signal, { begun, done } = {}) {
  const said = h("p", { class: "muted", id: "made", role: "status" });
  const button = h("button", { type: "button", onclick: () => asked.has(run) || once(question) });
  const state = { now: undefined, wait: FIRST, began: Date.now(), trouble: "", fresh: false };
  let timer;
  let shown;
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : waits() && look()), { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  label();

  const waits = () => asked.has(run) || Boolean(state.now?.soon);

  function label() {
    const going = asked.has(run);
    button.setAttribute("aria-disabled", String(going)); // it keeps the focus, which one that is disabled would lose
    const none = state.now === null || state.now?.soon;
    fill(button, going ? "The report is being made" : none ? "Make the report …" : "Make the report anew …");
  }

  /** Says it once: what is said again at each look would be read aloud each time. */
  function tell(key, ...words) {
    if (shown === key) return;
    shown = key;
    fill(said, words);
  }

  function draw() {
    label();
    const { now, trouble } = state;
    const going = asked.get(run);
    if (trouble) tell(trouble, `Whether the report is there cannot be told: ${trouble} Looks again.`);
    else if (going) tell(`asked ${going.requested_at}`, "Asked for ", moment(going.requested_at), ": the report is made in the background, which takes seconds, of very many cells minutes. ", going.before ? "The one that is there stays until then." : "");
    else if (!now) tell("none", "There is no report of this run (any more).");
    else if (now.soon) tell("soon", "The report of this run is about to come: this page looks again by itself.");
    else tell(`made ${now.etag}`, state.fresh ? "The new report is there, made " : "Report made ", moment(now.created_at), ".");
  }

  async function look() {
    clearTimeout(timer);
    const waited = waits();
    try {
      state.now = await made(run, signal);
      state.trouble = "";
    } catch (error) {
      if (signal.aborted) return;
      state.trouble = sentence(error.message);
      state.wait = Math.min(WORST, state.wait * 2);
      if (error.status === 401) return;
      if (!waited) {
        tell(error.message, state.trouble);
        return;
      }
    }
    if (signal.aborted) return;
    const going = asked.get(run);
    if (going && isNew(state.now, going)) {
      asked.delete(run);
      state.fresh = true;
    }
    draw();
    if (waited && !waits() && state.now) done?.();
    if (!waits()) return;
    if (Date.now() - (going?.began ?? state.began) > PATIENCE) {
      asked.delete(run);
      label();
      tell("late", "The report is not there yet. Look again in some minutes; if it is still missing, or the old one, the log of the function Report says why.");
      return;
    }
    if (!state.trouble) state.wait = Math.min(LATE, state.wait * 1.5);
    if (!document.hidden) timer = setTimeout(look, state.wait);
  }

  async function question() {
    let before;
    try {
      before = await made(run, signal);
    } catch (error) {
      if (!signal.aborted) flash(error.message);
      return;
    }
    let answer;
    const there = before && !before.soon;
    const sent = await ask({
      title: there ? "Make the report anew?" : "Make the report?",
      yes: there ? "Make it anew" : "Make it",
      content: [
        h("p", {}, "The report of ", name(title), " is made in the background, of what is kept of the run and by the version of Troop that is deployed now. That takes seconds, of very many cells minutes. You need not stay here."),
        there
          ? h("p", {}, "The one that is there was made ", moment(before.created_at), "; the new one takes its place. What was measured stays as it is.")
          : h("p", {}, before?.soon ? "The first one is about to come by itself." : "There is none now."),
      ],
      act: async () => {
        answer = await change("POST", address(run));
      },
    });
    if (!sent) return;
    asked.set(run, { before: there ? before : null, requested_at: answer.requested_at, began: Date.now() });
    Object.assign(state, { now: before, wait: FIRST, trouble: "", fresh: false });
    draw();
    begun?.();
    if (!signal.aborted) timer = setTimeout(look, FIRST);
  }

  return { button, said, look };
}
