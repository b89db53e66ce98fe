// A tab of its own for a run's report: asks where it is, waits while it is made, and goes there.

import { get } from "./api.js";
import { fill, h, heading, loading, problem } from "./dom.js";
import { making } from "./made.js";

const TRIES = 36;

export async function show(main, signal, run) {
  fill(main, heading("Report"), loading("the report"));
  let url;
  try {
    ({ url } = await find(main, signal, run));
  } catch (error) {
    if (error.status !== 404) throw error;
    const anew = () => show(main, signal, run).catch((later) => signal.aborted || fill(main, heading("Report"), problem(later, anew)));
    const wrong = problem(error, anew);
    const its = making(run, `the run ${run}`, signal, { begun: () => wrong.remove(), done: anew });
    fill(main, heading("Report"), wrong, h("div", { class: "buttons" }, its.button), its.said);
    its.look();
    return;
  }
  if (!/^https?:$/.test(new URL(url, location.href).protocol)) throw new Error("The API tells no address of a report.");
  location.replace(url);
}

/** Right after a run's end its report is still being made: then the answer says when to ask again. */
async function find(main, signal, run) {
  for (let left = TRIES; ; left -= 1) {
    try {
      return await get(`ui/report/${encodeURIComponent(run)}`, {}, signal);
    } catch (error) {
      if (!error.again || left === 0) throw error;
      main.querySelector(".loading").textContent = `${error.message} Looks again every few seconds …`;
      await new Promise((resolve) => setTimeout(resolve, error.again * 1000));
    }
  }
}
