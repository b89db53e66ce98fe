// Standing fleets, newest first: nodes, expiry and cost; those that ended are folded up.

import { get } from "./api.js";
import { badge, fill, h, leftOut, loading, name, problem, table } from "./dom.js";
import { cost, kind, moment, money, share, who, words } from "./format.js";

const PAGE = 50;

const COLUMNS = [
  { label: "Fleet", cell: (fleet) => [name(fleet.name), h("small", { class: "source" }, h("code", {}, fleet.fleet))] },
  { label: "Status", cell: (fleet) => [badge(words(fleet.status), kind(fleet.status)), fleet.reason && h("small", { class: "source" }, name(fleet.reason.split("\n")[0]))] },
  { label: "Nodes ready", cell: (fleet) => !fleet.ended_at && fleet.roles.map((role) => h("p", {}, name(role.role), ` ${role.ready} of ${role.desired}`, purchases(role))) },
  { label: "Started", cell: (fleet) => [moment(fleet.at), h("small", { class: "source", title: fleet.requested_by }, "by ", name(who(fleet.requested_by)))] },
  { label: "Expires", cell: (fleet) => !fleet.ended_at && moment(fleet.expires_at) },
  { label: "Cost", number: true, cell: (fleet) => [cost(fleet), saving(fleet.cost)] },
];
const ENDED = COLUMNS.filter(({ label }) => !["Nodes ready", "Expires"].includes(label));

/** How the nodes in service were bought, for a role with spot nodes or a backup. */
function purchases(role) {
  return (role.spot > 0 || role.backup) && h("small", { class: "source" }, `${role.spot} on spot, ${role.on_demand} on demand`);
}

/** What spot nodes have saved, once that is known. */
function saving(bill) {
  if (!bill || bill.on_demand === undefined || bill.on_demand === null) return null;
  return h("small", { class: "source" }, `${money(bill.on_demand - bill.amount, bill.currency)} saved by spot`);
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
