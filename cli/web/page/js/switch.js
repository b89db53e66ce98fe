// The switch of the deployment in the page's header: its state, halt and resume.

import { change, get } from "./api.js";
import { ask, once } from "./dialogs.js";
import { badge, field, fill, flash, h, skeleton } from "./dom.js";
import { stamp } from "./freshness.js";
import { clock, halter, moment, sentence, who } from "./format.js";

const EVERY = 30_000;
const OLD = 90_000; // milliseconds, after which the state of the switch is marked as old

const SENTENCE = {
  halted: "Halted: no rolls, no hits.",
  leashed: "Leashed: a dry run that decides and records, but hits nothing.",
  unleashed: "Unleashed: hits instances.",
};
const BRIEFLY = {
  halted: "no rolls, no hits",
  leashed: "dry run: decides and records, hits nothing",
  unleashed: "hits instances",
};
const state = (now) => (now.halted ? "halted" : now.leashed ? "leashed" : "unleashed");
const ALREADY = { true: "Already halted.", false: "Already resumed." };
// Unleashed is the dangerous state: never green. Halted and leashed are safe.
const KIND = { halted: "quiet", leashed: "info", unleashed: "live" };

const place = () => document.getElementById("switch");

let known; // the last state of the switch, and `at`: its time
let unreadable = false; // whether the last attempt failed
let turns = 0; // changes by this page: responses to requests before a change are outdated
const label = h("span", {});
const age = h("span", { class: "age" });
const means = h("span", { class: "means muted small" });
const retry = h("button", { type: "button", class: "retry", onclick: () => refresh() }, "Check again");
// The element stays the same, so that a refresh does not take its focus.
const button = h("button", { type: "button", onclick: () => once(button.dataset.act === "resume" ? resume : halt) });

/** Shows the switch, and refreshes it while the page is visible. */
export async function watch() {
  await refresh();
  setInterval(() => document.hidden || document.querySelector("dialog[open], .locked") || refresh(), EVERY);
  document.addEventListener("visibilitychange", () => document.hidden || refresh());
}

async function refresh(then = draw, failed = drawUnknown) {
  const mine = turns;
  try {
    const now = await get("switch");
    if (mine === turns) then(now);
  } catch (error) {
    if (mine === turns) failed(error);
  }
}

function draw(now) {
  known = { ...now, at: new Date() };
  unreadable = false;
  const { by, reason } = halter(now);
  const people = [by && `, by ${who(by)}`, reason && `: ${reason}`];
  const because = now.itself ? [`; the deployment halted itself: ${now.itself.why}`] : now.halted ? people : [];
  const text = [BRIEFLY[state(now)], ...because].filter(Boolean).join("");
  show(state(now), KIND[state(now)], text, { resume: now.halted, loud: now.halted });
}

/** Halting needs no state: it works even if the switch cannot be read. */
function drawUnknown(error) {
  unreadable = true;
  const text = known ? `as of ${clock(known.at)}: ${BRIEFLY[state(known)]}. The current state cannot be read.` : `Cannot read the switch: ${error.message}`;
  show(known ? state(known) : "unknown", known && state(known) === "unleashed" ? "live" : "warn", text, { unread: error.message, loud: true });
}

function show(status, kind, text, { resume = false, loud = false, unread = "" }) {
  fill(label, badge(status, kind), age);
  if (known) stamp(place(), known.at, OLD);
  fill(means, text);
  means.title = retry.title = unread;
  retry.hidden = !unread;
  place().classList.toggle("loud", loud);
  button.dataset.act = resume ? "resume" : "halt";
  button.className = resume ? "primary" : "danger";
  const words = resume ? "Resume …" : "Halt …";
  if (button.textContent !== words) fill(button, words);
  if (!place().contains(button)) fill(place(), label, means, retry, button);
  place().classList.toggle("unread", Boolean(unread));
  dispatchEvent(new Event("troop-switch-read"));
}

/** The halt that the deployment gave itself, with a function that opens the dialog which resumes; null without one, undefined if the switch cannot be read. */
export const itself = () => (!known || unreadable ? undefined : known.itself ? { halt: known.itself, resume: () => once(resume) } : null);

/**
 * The switch as a tile of the overview, which follows the header. Unleashing is a matter of the command.
 * @param {Element} more what else the tile contains
 */
export function switchTile(signal, more) {
  const title = h("h2", { id: "tile-switch" }, "Chaos", h("span", { class: "age" }));
  const content = h("div", {});
  const leashing = h("button", { type: "button", onclick: () => once(leash) }, "Leash …");
  const tile = h("section", { class: "tile", "aria-labelledby": "tile-switch" }, title, content, more, leashing);
  const update = () => {
    const which = known && state(known);
    fill(content, known ? [h("p", {}, badge(which, KIND[which])), h("p", {}, sentence(BRIEFLY[which])), changed(known) && h("p", { class: "muted small" }, changed(known))] : unreadable ? h("p", { class: "muted" }, "Not read yet.") : skeleton(2));
    leashing.hidden = !known || known.leashed;
    if (known) stamp(tile, known.at, OLD);
    tile.classList.toggle("unread", unreadable);
  };
  update();
  addEventListener("troop-switch-read", update, { signal });
  return tile;
}

const since = (now) => h("p", { class: "muted" }, SENTENCE[state(now)], changed(now));

const changed = (now) => {
  const [what, { at, by, reason }] = [now.halt ? " Halted " : " Changed ", halter(now)];
  return [
    now.itself && [" The deployment halted itself on ", moment(now.itself.at), ": ", sentence(now.itself.why)],
    at ? [what, moment(at), " by ", who(by), reason && `: ${reason}`, "."] : reason && [what, "directly in the table: ", reason, "."],
  ];
};

async function halt() {
  await turn({
    title: "Halt everything?",
    yes: "Halt",
    danger: true,
    target: { halted: true },
    describe: (now) => [
      h("p", {}, "Rolls and hits stop at once, pending claims are abandoned, and running faults are asked to end. Recovery checks and benchmarks continue."),
      now && since(now),
    ],
    done: "Halted: no hits until someone resumes.",
  });
}

async function resume() {
  await turn({
    title: "Resume?",
    yes: "Resume",
    target: { halted: false },
    describe: (now) => [
      h("p", {}, now.leashed ? "The deployment is leashed. From the next tick on, it decides and records, but hits nothing." : "The deployment is unleashed. From the next tick on, it hits instances."),
      since(now),
      now.halt_id && h("p", {}, "It is halted with other deployments. ", h("code", {}, `troop resume --all --halt ${now.halt_id}`), " resumes all of them."),
      now.itself && h("p", {}, "Broken units stay out of chaos until their owners return them. Those of the last hour no longer count toward another halt."),
    ],
    done: "Resumed: decisions continue with the next tick.",
  });
}

async function leash() {
  await turn({
    title: "Leash?",
    yes: "Leash",
    target: { leashed: true },
    describe: (now) => [
      h("p", {}, "From now on, ticks decide and record, but hit nothing. To unleash again, use ", h("code", {}, "troop unleash"), "."),
      now && since(now),
    ],
    done: "Leashed: a dry run until someone unleashes.",
  });
}

async function turn({ title, yes, danger, target, describe, done }) {
  const reason = h("input", { maxlength: "256", autocomplete: "off", name: "reason" });
  const status = h("div", {}, describe(known));
  const display = (now) => {
    draw(now);
    const already = target.leashed ? now.leashed && "Already leashed." : now.halted === target.halted && ALREADY[String(now.halted)];
    fill(status, already ? [h("p", {}, h("strong", {}, already)), since(now)] : describe(now));
  };
  if (target.halted || target.leashed) refresh(display); // halting and leashing do not wait for the state
  else {
    try {
      display(await get("switch")); // the dialog must say what resuming leads to
    } catch (error) {
      flash(error.message);
      return;
    }
    if (!known.halted) {
      flash(ALREADY.false);
      return;
    }
  }
  const content = [status, field("Reason (recorded)", reason)];
  let after;
  const confirmed = await ask({
    title,
    yes,
    danger,
    content,
    act: async () => {
      const text = reason.value.trim();
      turns += 1;
      after = await change("PATCH", "switch", { ...target, ...(text && { reason: text }) });
    },
    conflict: async () => {
      display(await get("switch"));
      return content;
    },
  });
  if (!confirmed) return;
  draw(after);
  flash(done);
  button.focus();
  dispatchEvent(new CustomEvent("troop-switched", { detail: after }));
}
