// The tab of a run's report: requests its address, waits while it is created, and opens it.

import { get } from "./api.js";
import { fill, h, heading, loading, problem } from "./dom.js";
import { reportStatus } from "./report_status.js";

const TRIES = 36;

export async function show(main, signal, run) {
  fill(main, heading("Report"), loading("the report"));
  let url;
  try {
    ({ url } = await find(main, signal, run));
  } catch (error) {
    if (error.status !== 404) throw error;
    const retry = () => show(main, signal, run).catch((later) => signal.aborted || fill(main, heading("Report"), problem(later, retry)));
    const alert = problem(error, retry);
    const status = reportStatus(run, `the run ${run}`, signal, { begun: () => alert.remove(), done: retry });
    fill(main, heading("Report"), alert, h("div", { class: "buttons" }, status.button), status.message);
    status.refresh();
    return;
  }
  if (!/^https?:$/.test(new URL(url, location.href).protocol)) throw new Error("The API returned no address of the report.");
  location.replace(url);
}

/** Requests the report's address. Right after a run's end the report is not ready: then the response says when to try again. */
async function find(main, signal, run) {
  for (let left = TRIES; ; left -= 1) {
    try {
      return await get(`ui/report/${encodeURIComponent(run)}`, {}, signal);
    } catch (error) {
      if (!error.retryAfter || left === 0) throw error;
      main.querySelector(".loading").textContent = `${error.message} This page checks again every few seconds …`;
      await new Promise((resolve) => setTimeout(resolve, error.retryAfter * 1000));
    }
  }
}
