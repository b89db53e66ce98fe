// A tab of its own for a run's report: asks where it is, waits while it is made, and goes there.

import { get } from "./api.js";
import { fill, heading, loading } from "./dom.js";

const TRIES = 36;

export async function show(main, signal, run) {
  fill(main, heading("Report"), loading("the report"));
  const { url } = await find(main, signal, run);
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
