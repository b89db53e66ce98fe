// The switch of the whole deployment, in the page's head: what it says, halt and resume.

import { change, get } from "./api.js";
import { ask, once } from "./dialogs.js";
import { badge, field, fill, flash, h } from "./dom.js";
import { moment, who } from "./format.js";

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
const KIND = { halted: "bad", leashed: "info", unleashed: "good" };

const place = () => document.getElementById("switch");

/** Shows it, and goes on looking while somebody looks. */
export async function watch() {
  await look();
  setInterval(() => document.hidden || document.querySelector("dialog[open], .locked") || look(), EVERY);
  document.addEventListener("visibilitychange", () => document.hidden || look());
}

async function look() {
  try {
    draw(await get("switch"));
  } catch (error) {
    fill(place(), badge("switch unknown", "warn"), h("button", { type: "button", title: error.message, onclick: look }, "Look again"));
  }
}

function draw(now) {
  const label = state(now);
  // The button stays the same element, so that whoever stands on it is not thrown off by a look.
  const before = place().querySelector("button[data-act]");
  const act = now.halted ? "resume" : "halt";
  if (before?.dataset.act === act && place().dataset.state === label) return;
  place().dataset.state = label;
  const about = [BRIEFLY[label], now.halted && now.changed_by && `, by ${who(now.changed_by)}`, now.halted && now.reason && `: ${now.reason}`].filter(Boolean).join("");
  const button = h(
    "button",
    { type: "button", "data-act": act, class: now.halted ? "primary" : "danger", onclick: () => once(now.halted ? resume : halt) },
    now.halted ? "Resume …" : "Halt …",
  );
  fill(place(), badge(label, KIND[label]), h("span", { class: "means muted small" }, about), button);
}

const since = (now) =>
  h(
    "p",
    { class: "muted" },
    SAID[state(now)],
    now.changed_at && [" Changed ", moment(now.changed_at), " by ", who(now.changed_by), now.reason && `: ${now.reason}`, "."],
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
      since(now),
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
  let now;
  try {
    now = await get("switch");
  } catch (error) {
    flash(error.message);
    return;
  }
  if (now.halted === wanted.halted) {
    draw(now);
    flash(now.halted ? "It has been halted already." : "It has been resumed already.");
    return;
  }
  const content = (seen) => [told(seen), field("Why (goes on record)", reason)];
  let after;
  const was = await ask({
    title,
    yes,
    danger,
    content: content(now),
    act: async () => {
      const text = reason.value.trim();
      after = await change("PATCH", "switch", { ...wanted, ...(text && { reason: text }) });
    },
    conflict: async () => content(await get("switch")),
  });
  if (!was) return;
  draw(after);
  flash(done);
  place().querySelector("button")?.focus();
  dispatchEvent(new CustomEvent("troop-switched", { detail: after }));
}
