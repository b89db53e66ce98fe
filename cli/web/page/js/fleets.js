// Standing fleets, newest first: nodes, health, work, expiry and cost, and what to do about checks that fail; those that
// ended are folded up.

import { get } from "./api.js";
import { badge, fill, h, leftOut, loading, name, problem, table } from "./dom.js";
import { cost, count, duration, kind, moment, money, sentence, share, short, who, words } from "./format.js";

const PAGE = 50;

const COLUMNS = [
  { label: "Fleet", cell: (fleet) => [name(fleet.name), h("small", { class: "source" }, h("code", {}, fleet.fleet))] },
  { label: "Status", cell: (fleet) => [badge(words(fleet.status), kind(fleet.status)), fleet.reason && h("small", { class: "source" }, name(fleet.reason.split("\n")[0]))] },
  { label: "Nodes ready", cell: (fleet) => !fleet.ended_at && fleet.roles.map((role) => h("p", {}, name(role.role), ` ${role.ready} of ${role.desired}`, purchases(role))) },
  { label: "Health", wide: true, cell: (fleet) => !fleet.ended_at && health(fleet) },
  { label: "Work", wide: true, cell: (fleet) => work(fleet) },
  { label: "Expires", cell: (fleet) => [moment(fleet.expires_at), h("small", { class: "source", title: fleet.requested_by }, "started ", moment(fleet.at), " by ", name(who(fleet.requested_by)))] },
  { label: "Cost", number: true, cell: (fleet) => [cost(fleet), saving(fleet.cost)] },
];
const STARTED = { label: "Started", cell: (fleet) => [moment(fleet.at), h("small", { class: "source", title: fleet.requested_by }, "by ", name(who(fleet.requested_by)))] };
const ENDED = COLUMNS.flatMap((column) => (column.label === "Expires" ? [STARTED] : ["Nodes ready", "Health"].includes(column.label) ? [] : [column]));

/** How the nodes in service were bought, for a role with spot nodes or a backup. */
function purchases(role) {
  return (role.spot > 0 || role.backup) && h("small", { class: "source" }, `${role.spot} on spot, ${role.on_demand} on demand`);
}

const GRADE = { ok: "good", warn: "warn", fail: "bad" };
const COUNTED = ["ok", "warn", "fail", "silent", "new", "draining"];
const NAMED = 3; // nodes of a check

/** The nodes of each role by their health, and the last repairs; null for a fleet whose nodes do not report. */
function health({ health: roles = [], repaired = 0, withheld = [] }) {
  if (!roles.length && !withheld.length) return null;
  return [
    roles.map((role) => {
      const worst = role.fail || role.silent ? "fail" : role.warn ? "warn" : "ok";
      const numbers = COUNTED.filter((one) => role[one]).map((one) => `${count(role[one])} ${one}`);
      return h("p", {}, badge(worst, GRADE[worst]), " ", name(role.role), ` ${numbers.join(", ") || "no reports yet"}`);
    }),
    repaired > 0 && h("small", { class: "source" }, `${count(repaired)} ${repaired === 1 ? "repair" : "repairs"} in the last hour`),
    withheld.map((one) => h("small", { class: "source" }, name(one.role), ` do not grow: ${one.reason}`)),
  ];
}

/** The tasks of a fleet with a queue, by what became of them. */
function work({ work: tasks }) {
  if (!tasks) return null;
  const { submitted, done, waiting, in_work: running, dead, oldest_seconds: oldest, done_an_hour: rate } = tasks;
  const more = [oldest !== null && waiting > 0 && `the oldest waits for ${duration(oldest)}`, rate !== null && `${short(rate)} an hour`].filter(Boolean);
  return [
    h("p", {}, `${count(done)} of ${count(submitted)} done`),
    h("small", { class: "source" }, `${count(waiting)} waiting, ${count(running)} in work`),
    dead > 0 && h("p", {}, badge(`${count(dead)} dead`, "bad")),
    more.length > 0 && h("small", { class: "source" }, more.join("; ")),
    tasks.may_lack_tasks && h("p", {}, badge("may lack tasks", "warn"), h("small", { class: "source" }, "Some waited for more than 12 days, so SQS may have deleted them. They count as done: compare the results.")),
  ];
}

/**
 * What checks of a fleet have found, each with what to do, as items of a list.
 * @param {object} fleet
 * @param {boolean} urgent only what somebody must act on now
 */
export const findings = (fleet, urgent = false) =>
  fleet.ended_at
    ? []
    : (fleet.health ?? []).flatMap(({ role, checks }) =>
        checks
          .filter(({ status, actionable }) => (urgent ? status === "fail" && actionable : status !== "ok"))
          .map((check) => finding(fleet, role, check)),
      );

function finding(fleet, role, check) {
  const named = check.node_ids.slice(0, NAMED);
  const more = check.nodes - named.length;
  const where = [...named, more > 0 && `${count(more)} more`].filter(Boolean).join(", ");
  const value = check.value !== null && check.threshold !== null ? ` (${short(check.value)}, should be ${short(check.threshold)})` : "";
  const said = check.detail && `: ${sentence(check.detail + value)}`;
  return h(
    "li",
    { class: GRADE[check.status] },
    h(
      "div",
      {},
      h("p", {}, badge(check.status, GRADE[check.status]), " ", name(fleet.name), ", ", name(role), ", ", name(check.name), said),
      h("p", { class: "cure" }, check.todo ? sentence(check.todo) : "The check names no remedy.", where && ` Nodes: ${where}.`),
      h("p", { class: "cure" }, h("code", {}, `troop fleet status ${fleet.fleet}`)),
    ),
  );
}

/** What spot nodes have saved, once that is known. */
function saving(bill) {
  if (!bill || bill.on_demand === undefined || bill.on_demand === null) return null;
  return h("small", { class: "source" }, `${money(bill.on_demand - bill.amount, bill.currency)} saved by spot`);
}

/** The findings of all fleets; null without any. */
function attention(standing) {
  const items = standing.flatMap((fleet) => findings(fleet)).sort((one, other) => other.matches(".bad") - one.matches(".bad"));
  return items.length > 0 && h("div", { class: "urgent" }, h("h3", {}, "Checks that do not pass"), h("ul", {}, items));
}

/** A section of a view; empty without fleets. `load` reloads it, `clear` empties it. */
export function fleets(signal) {
  const element = h("section", { "aria-label": "Standing fleets" });
  let round = 0;

  async function load() {
    const mine = ++round;
    let rows = [];
    let cursor = "";
    await more();

    async function more() {
      if (rows.length) fill(element.lastChild, loading("fleets"));
      try {
        const page = await get("fleets", { limit: PAGE, cursor }, signal);
        if (mine !== round) return;
        [rows, cursor] = [[...rows, ...page.fleets], page.cursor];
        const buttons = h("div", { class: "buttons" }, cursor && h("button", { type: "button", onclick: more }, "Load more fleets"));
        const malformed = leftOut(page);
        const [standing, ended] = [rows.filter((one) => !one.ended_at), rows.filter((one) => one.ended_at)];
        const unfolded = element.querySelector("details")?.open;
        fill(element, (rows.length > 0 || malformed) && [
          h("h2", {}, "Standing fleets"),
          malformed,
          attention(standing),
          standing.length > 0 ? table("Standing fleets, newest first", COLUMNS, standing) : h("p", { class: "muted" }, "No fleet stands now."),
          ended.length > 0 && h("details", { open: unfolded }, h("summary", {}, share(ended.length, ended.length, "fleet", cursor), " that ended"), table("Fleets that ended, newest first", ENDED, ended)),
          buttons,
        ]);
      } catch (error) {
        if (!signal.aborted && mine === round) fill(element, h("h2", {}, "Standing fleets"), problem(error, load));
      }
    }
  }
  function clear() {
    round += 1; // drops pending responses
    fill(element);
  }
  return { element, load, clear };
}
