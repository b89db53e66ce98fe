// The switch of the whole deployment, in the page's head: what it says, halt and resume.

import { change, get } from "./api.js";
import { ask, once } from "./dialogs.js";
import { badge, field, fill, flash, h } from "./dom.js";
import { clock, moment, who } from "./format.js";

const EVERY = 30_000;

const SAID = {
  halted: "Halted: nothing is rolled, nothing is terminated.",
  leashed: "Leashed: it decides and records, and terminates nothing.",
  unleashed: "Unleashed: it terminates instances.",
};
const BRIEFLY = {
  halted: "nothing is rolled, nothing is terminated",
  leashed: "decides and records, terminates nothing",
  unleashed: "terminates instances",
};
const state = (now) => (now.halted ? "halted" : now.leashed ? "leashed" : "unleashed");
const ALREADY = { true: "It has been halted already.", false: "It has been resumed already." };
const KIND = { halted: "bad", leashed: "info", unleashed: "good" };

const place = () => document.getElementById("switch");

let known; // the switch as it was read last, and `at`: when
let turns = 0; // changes from here: what was asked before one says how it was before
const label = h("span", {});
const means = h("span", { class: "means muted small" });
const again = h("button", { type: "button", class: "again", onclick: () => look() }, "Look again");
// It stays the same element, so that whoever stands on it is not thrown off by a look.
const button = h("button", { type: "button", onclick: () => once(button.dataset.act === "resume" ? resume : halt) });

/** Shows it, and goes on looking while somebody looks. */
export async function watch() {
  await look();
  setInterval(() => document.hidden || document.querySelector("dialog[open], .locked") || look(), EVERY);
  document.addEventListener("visibilitychange", () => document.hidden || look());
}

async function look(then = draw, failed = drawUnknown) {
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
  const by = [now.changed_by && `, by ${who(now.changed_by)}`, now.reason && `: ${now.reason}`];
  const said = [BRIEFLY[state(now)], ...(now.halted ? by : [])].filter(Boolean).join("");
  show(state(now), KIND[state(now)], said, { resume: now.halted, loud: now.halted });
}

/** Halting needs no look: what cannot be read can still be turned off. */
function drawUnknown(error) {
  const said = known ? `as of ${clock(known.at)}: ${BRIEFLY[state(known)]}. It cannot be read now.` : `The switch cannot be read: ${error.message}`;
  show(known ? state(known) : "unknown", "warn", said, { unread: error.message, loud: true });
}

function show(text, kind, said, { resume = false, loud = false, unread = "" }) {
  fill(label, badge(text, kind));
  fill(means, said);
  means.title = again.title = unread;
  again.hidden = !unread;
  place().classList.toggle("loud", loud);
  button.dataset.act = resume ? "resume" : "halt";
  button.className = resume ? "primary" : "danger";
  const words = resume ? "Resume …" : "Halt …";
  if (button.textContent !== words) fill(button, words);
  if (!place().contains(button)) fill(place(), label, means, again, button);
}

const since = (now) =>
  h(
    "p",
    { class: "muted" },
    SAID[state(now)],
    now.changed_at
      ? [" Changed ", moment(now.changed_at), " by ", who(now.changed_by), now.reason && `: ${now.reason}`, "."]
      : now.reason && [" Changed in the table by hand: ", now.reason, "."],
  );

async function halt() {
  const reason = h("input", { maxlength: "256", autocomplete: "off", name: "reason" });
  await turn({
    title: "Halt everything?",
    yes: "Halt",
    danger: true,
    wanted: { halted: true },
    told: (now) => [
      h("p", {}, "At once nothing is rolled and nothing is terminated any more; claims that were made are not carried out. Recoveries are still watched, and benchmarks go on."),
      now && since(now),
    ],
    reason,
    done: "Halted: nothing is terminated until somebody resumes.",
  });
}

async function resume() {
  const reason = h("input", { maxlength: "256", autocomplete: "off", name: "reason" });
  await turn({
    title: "Resume?",
    yes: "Resume",
    wanted: { halted: false },
    told: (now) => [
      h("p", {}, now.leashed ? "It is leashed: from its next tick on it will decide and record, and terminate nothing." : "It is unleashed: from its next tick on it will terminate instances."),
      since(now),
    ],
    reason,
    done: "Resumed: it goes on from its next tick.",
  });
}

async function turn({ title, yes, danger, wanted, told, reason, done }) {
  const said = h("div", {}, told(known));
  const tell = (now) => {
    draw(now);
    fill(said, now.halted === wanted.halted ? [h("p", {}, h("strong", {}, ALREADY[String(now.halted)])), since(now)] : told(now));
  };
  if (wanted.halted) look(tell); // nobody waits for it
  else {
    try {
      tell(await get("switch")); // into what it is resumed must be known
    } catch (error) {
      flash(error.message);
      return;
    }
    if (!known.halted) {
      flash(ALREADY.false);
      return;
    }
  }
  const content = [said, field("Why (goes on record)", reason)];
  let after;
  const was = await ask({
    title,
    yes,
    danger,
    content,
    act: async () => {
      const text = reason.value.trim();
      turns += 1;
      after = await change("PATCH", "switch", { ...wanted, ...(text && { reason: text }) });
    },
    conflict: async () => {
      tell(await get("switch"));
      return content;
    },
  });
  if (!was) return;
  draw(after);
  flash(done);
  button.focus();
  dispatchEvent(new CustomEvent("troop-switched", { detail: after }));
}
