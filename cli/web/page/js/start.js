// The form that starts a benchmark run: of the catalogue, or of files on the user's machine.

import { filtersOf } from "./address.js";
import { change, get } from "./api.js";
import { ask, once } from "./dialogs.js";
import { field, fill, flash, h, heading, link, loading, name, problem, select } from "./dom.js";

const OWN = ""; // the value of the choice "my own files"; no benchmark has this name
const FILE = "benchmark.yaml";
const LARGEST = 2_500_000; // bytes of all files: as base64 in JSON they fit into a request

export async function show(main, signal) {
  fill(main, heading("Start a benchmark"), loading("the catalogue"));
  const { benchmarks } = await get("ui/catalogue", {}, signal);
  const { benchmark: wanted, again } = filtersOf({ benchmark: "", again: "" });
  const known = benchmarks.find((one) => one.name === wanted || one.title === wanted);
  let chosen = again ? (known?.name ?? OWN) : (known ?? benchmarks[0])?.name ?? OWN;
  let round = 0; // of estimates: a change of the form makes earlier ones invalid

  const about = h("p", { class: "muted" });
  const picked = h("input", { type: "file", name: "files", multiple: true });
  const files = field("Files", picked, `Choose ${FILE}, and the files beside it that nodes need.`);
  const size = h("input", { name: "size", autocomplete: "off", list: "sizes" });
  const sizes = h("datalist", { id: "sizes" });
  const changes = h("textarea", { name: "changes", rows: "3", spellcheck: "false" });
  const accept = h("input", { type: "checkbox", name: "accept" });
  const result = h("div", { "aria-live": "polite" });
  const choices = [...benchmarks.map((one) => [one.name, one.title]), [OWN, "My own files …"]];
  const form = h(
    "form",
    { class: "start", onsubmit: estimate, oninput: outdated },
    field("Benchmark", select(choices, chosen, choose)),
    about,
    files,
    field("Size", size, "A size of the file, or several with commas. Leave empty for the file's own values."),
    sizes,
    field("Changes", changes, "One KEY=VALUE in each line, such as parameters.threads=8."),
    h("label", { class: "check" }, accept, " Continue if the price of some nodes is unknown"),
    h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Check and estimate")),
  );
  fill(
    main,
    h("p", { class: "back" }, link("#/runs", "← Benchmarks")),
    heading(again ? "Start a benchmark again" : "Start a benchmark"),
    again && h("p", {}, "As the run ", link(`#/runs/${encodeURIComponent(again)}`, h("code", {}, again)), ". ", known ? "This is the current file of the catalogue. Enter the size and the changes of that run; its report lists them." : `The catalogue has no ${wanted}: choose its files.`),
    form,
    result,
  );
  choose(chosen);

  function choose(value) {
    chosen = value;
    const one = benchmarks.find((other) => other.name === value);
    files.hidden = Boolean(one);
    fill(about, one?.description ?? "");
    fill(sizes, (one?.sizes ?? []).map((other) => h("option", { value: other })));
  }

  function outdated() {
    round += 1;
    fill(result);
  }

  async function request() {
    const lines = changes.value.split("\n").map((line) => line.trim()).filter(Boolean);
    return { benchmark: chosen, files: chosen === OWN ? await contents(picked.files) : {}, size: size.value.trim() || null, changes: lines, accept_unknown_prices: accept.checked };
  }

  async function estimate(event) {
    event.preventDefault();
    outdated();
    const mine = round;
    fill(result, loading("the estimate"));
    try {
      const body = await request();
      const answer = await change("POST", "ui/benchmarks/estimate", body);
      if (mine !== round || signal.aborted) return;
      // One key for each estimate: a second attempt after a lost response starts no second run.
      fill(result, preview(answer, { ...body, key: crypto.randomUUID() }));
    } catch (error) {
      if (mine === round && !signal.aborted) fill(result, problem(error));
    }
  }

  function preview(answer, body) {
    return h(
      "section",
      { class: "why", "aria-labelledby": "estimate" },
      h("h2", { id: "estimate" }, answer.refused ? "This run would be refused" : "What would start"),
      h("p", { class: "answer" }, answer.what, "."),
      h("p", {}, h("strong", {}, `It is ${answer.cost}.`)),
      answer.warnings.map((text) => h("p", { class: "problem" }, text)),
      h("p", { class: "muted small" }, answer.copied),
      !answer.refused && h("div", { class: "buttons" }, h("button", { type: "button", class: "primary", onclick: () => once(() => begin(answer, body)) }, "Start the run …")),
    );
  }

  async function begin(answer, body) {
    let run;
    const done = await ask({
      title: "Start this run?",
      yes: "Start the run",
      content: [
        h("p", {}, name(answer.what), "."),
        h("p", {}, `It launches instances, which cost money: it is ${answer.cost}. Artifacts are uploaded first. You can stop the run at any time.`),
      ],
      act: async () => {
        run = await change("POST", "ui/benchmarks", body);
      },
    });
    if (!done) return;
    location.hash = `#/runs/${encodeURIComponent(run.run)}`;
    addEventListener("hashchange", () => setTimeout(() => flash(`${run.name} is starting.`)), { once: true });
  }
}

/** The chosen files by name, in base64. */
async function contents(list) {
  const all = [...list];
  if (!all.some((file) => file.name === FILE)) throw new Error(`Choose ${FILE}, and the files beside it that nodes need.`);
  if (all.reduce((sum, file) => sum + file.size, 0) > LARGEST) throw new Error("The files are too large. Make artifacts of the large ones, and use `troop bench run`.");
  return Object.fromEntries(await Promise.all(all.map(async (file) => [file.name, encoded(new Uint8Array(await file.arrayBuffer()))])));
}

const encoded = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
