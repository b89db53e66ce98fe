// The tab of a comparison of two runs: the command computes it, and the tab opens it.

import { filtersOf } from "./address.js";
import { get } from "./api.js";
import { fill, heading, loading, problem } from "./dom.js";

export async function show(main, signal) {
  fill(main, heading("Comparison"), loading("the comparison"));
  try {
    const { url } = await get("ui/comparison", filtersOf({ a: "", b: "" }), signal);
    location.replace(url);
  } catch (error) {
    if (!signal.aborted) fill(main, heading("Comparison"), problem(error, () => show(main, signal)));
  }
}
