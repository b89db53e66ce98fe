// The form that starts a benchmark run: of the catalogue, or of files on the user's machine.

import { filtersOf, remember } from "./address.js";
import { change, get } from "./api.js";
import { ask, once } from "./dialogs.js";
import { field, fill, flash, h, heading, link, loading, name, problem, select } from "./dom.js";
import { count, minutes, sentence } from "./format.js";
import { benchmarkAddress, runAddress } from "./run_list.js";

const [NONE, OWN] = ["", "."]; // of the choice of a benchmark: nothing yet, and "my own files"; no benchmark has these names
const FILE = "benchmark.yaml";
const LARGEST = 2_500_000; // bytes of all files: as base64 in JSON they fit into a request
const AT_ONCE = 2; // estimates of sizes that are requested at a time
const DEFAULTS = { benchmark: NONE, size: "", again: "" }; // in the address
const WHOLE = ""; // the size of the file's own values

export async function show(main, signal) {
  fill(main, heading("Start a benchmark"), loading("the catalogue"));
  const { benchmarks } = await get("ui/catalogue", {}, signal);
  const wanted = filtersOf(DEFAULTS);
  const known = benchmarks.find((one) => one.name === wanted.benchmark || one.title === wanted.benchmark);
  let chosen = known?.name ?? (wanted.benchmark ? OWN : NONE);
  let files = {}; // of the user's machine, in base64 by name
  let form; // what can be chosen of the benchmark; undefined until it is loaded
  let [preferred, ...also] = wanted.size ? wanted.size.split(",") : [null]; // the chosen size, null for none; and further ones
  let choice = 0; // of a benchmark: responses about earlier ones are dropped
  let round = 0; // of estimates: a change of the form makes earlier ones invalid
  const estimates = new Map(); // by size
  const cards = new Map(); // { input, facts, element } by size
  const inputs = new Map(); // fields of parameters by name
  let [further, others, accept] = []; // the fields below
  const trouble = h("div", {});

  const about = h("div", {});
  const picked = h("input", { type: "file", name: "files", multiple: true, onchange: () => describe() });
  const picker = field("Files", picked, `Choose ${FILE}, and the files beside it that nodes need.`);
  const rest = h("div", { class: "start" });
  const result = h("div", { "aria-live": "polite" });
  fill(
    main,
    h("p", { class: "back" }, wanted.benchmark ? link(benchmarkAddress(known?.title ?? wanted.benchmark), "← ", name(known?.title ?? wanted.benchmark)) : link("#/benchmarks", "← Benchmarks")),
    heading(wanted.again ? "Start a benchmark again" : "Start a benchmark"),
    wanted.again && h("p", {}, "As the run ", link(runAddress(wanted.again), h("code", {}, wanted.again)), known && ". This is the current file of the catalogue. Enter the changes of that run; its report lists them."),
    wanted.benchmark && !known && h("p", {}, "The catalogue has no ", name(wanted.benchmark), ": choose its files."),
    h(
      "form",
      { class: "start", onsubmit: estimate, oninput: outdated },
      field("Benchmark", select([[NONE, "Choose …"], ...benchmarks.map((one) => [one.name, one.title]), [OWN, "My own files …"]], chosen, pick)),
      about, picker, rest,
    ),
    result,
  );

  /** Chooses another benchmark, for which the sizes of this one mean nothing. */
  function pick(value) {
    [preferred, also] = [null, []];
    choose(value);
  }

  function choose(value) {
    chosen = value;
    files = {};
    picker.hidden = chosen !== OWN;
    if (!wanted.again) remember({ ...DEFAULTS, benchmark: chosen !== OWN ? chosen : known ? "" : wanted.benchmark, size: [preferred, ...also].filter(Boolean).join(",") }, DEFAULTS, false);
    fill(about, chosen === NONE ? catalogue() : h("p", { class: "muted" }, benchmarks.find((one) => one.name === chosen)?.description));
    outdated();
    fill(rest);
    if (chosen !== NONE && chosen !== OWN) describe();
  }

  /** The benchmarks to choose from, while none is chosen. */
  const catalogue = () => h("ul", { class: "catalogue" }, benchmarks.map((one) => h("li", {}, link(`#/start?benchmark=${encodeURIComponent(one.name)}`, name(one.title)), h("p", { class: "muted small" }, one.description))));

  const base = () => ({ benchmark: chosen === OWN ? "" : chosen, files });

  /** Loads what can be chosen of the benchmark, and then what each size costs. */
  async function describe() {
    const mine = ++choice;
    form = undefined;
    estimates.clear();
    fill(rest, loading("sizes and parameters"));
    try {
      files = chosen === OWN ? await contents(picked.files) : {};
      const answer = await change("POST", "ui/benchmarks/form", base());
      if (mine !== choice || signal.aborted) return;
      form = answer;
      if (chosen === OWN) fill(about, h("p", { class: "muted" }, form.description));
      drawForm();
      await estimateSizes(mine);
    } catch (error) {
      if (mine === choice && !signal.aborted) fill(rest, problem(error));
    }
  }

  async function estimateSizes(mine) {
    const waiting = [...cards.keys()];
    let broken = null; // an error that concerns all sizes
    const work = async () => {
      while (waiting.length && !broken && mine === choice && !signal.aborted) {
        const size = waiting.shift();
        try {
          estimates.set(size, await change("POST", "ui/benchmarks/estimate", { ...base(), size: size || null, is_fresh: false }));
        } catch (error) {
          if (error.status === 400) estimates.set(size, { refused: [error.message], lacking: [], warnings: [], parameters: null });
          else broken = error;
        }
        if (mine === choice && !signal.aborted) drawCards();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (mine !== choice || signal.aborted) return;
    if (broken) fill(trouble, problem(broken, () => estimateSizes(mine)));
    drawCards();
    if (preferred === null) prefer(cheapest());
  }

  /** The cheapest size that the deployment admits, if possible with all artifacts on this machine; null without any. */
  function cheapest() {
    const admitted = [...estimates].filter(([, one]) => !one.refused.length && one.expected !== undefined);
    const whole = admitted.filter(([, one]) => !one.lacking.length);
    return (whole.length ? whole : admitted).toSorted(([, a], [, b]) => a.expected - b.expected)[0]?.[0] ?? null;
  }

  function prefer(size) {
    preferred = size;
    const card = cards.get(size);
    if (card) card.input.checked = true;
    drawDefaults();
  }

  function drawForm() {
    cards.clear();
    inputs.clear();
    fill(trouble);
    if (![WHOLE, ...form.sizes.map((one) => one.name)].includes(preferred)) preferred = null;
    for (const one of [{ name: WHOLE, about: form.sizes.length ? "without a size" : "" }, ...form.sizes]) {
      const id = `size-${cards.size}`;
      const facts = h("div", { class: "facts-line", id: `${id}-facts` }, h("span", { class: "muted" }, "…"));
      const input = h("input", { type: "radio", name: "size", value: one.name, required: true, "aria-labelledby": id, "aria-describedby": `${id}-about ${id}-facts`, checked: preferred === one.name, onchange: () => prefer(one.name) });
      cards.set(one.name, { input, facts, element: h("label", { class: "card" }, input, h("span", {}, h("strong", { id }, one.name === WHOLE ? "As in the file" : name(one.name)), one.about && h("small", { id: `${id}-about` }, one.about), facts)) });
    }
    for (const one of form.parameters) {
      const options = one.allowed.length && [["", one.default], ...one.allowed.map((value) => [value, value])];
      const input = options ? select(options, "", () => drawDefaults()) : h("input", { autocomplete: "off", spellcheck: "false", placeholder: one.default, oninput: () => drawDefaults() });
      inputs.set(one.name, input);
    }
    further = form.sizes.map((one) => h("input", { type: "checkbox", value: one.name, checked: also.includes(one.name) }));
    others = h("textarea", { name: "changes", rows: "3", spellcheck: "false" });
    accept = h("input", { type: "checkbox", name: "accept" });
    fill(
      rest,
      h("fieldset", {}, h("legend", {}, "Size"), trouble, h("div", { class: "cards" }, [...cards.values()].map((one) => one.element))),
      form.parameters.length > 0 && h("details", { class: "fold" }, h("summary", {}, "Parameters", h("span", { class: "muted", id: "changed" })),
        h("div", { class: "policy" }, form.parameters.map((one) => field(one.name, inputs.get(one.name), one.about)))),
      h("details", { class: "fold", open: also.length > 0 }, h("summary", {}, "More"),
        form.sizes.length > 1 && h("fieldset", {}, h("legend", {}, "Further sizes, applied after the chosen one"), h("div", { class: "chips" }, further.map((input) => h("label", { class: "check" }, input, name(input.value))))),
        field("Other changes", others, "One KEY=VALUE in each line, such as fleets.drivers.count=4."),
        h("label", { class: "check" }, accept, " Continue if the price of some nodes is unknown")),
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Check and estimate")),
    );
    drawDefaults();
  }

  function drawCards() {
    for (const [size, { facts, element }] of cards) {
      const one = estimates.get(size);
      if (!one) continue;
      element.classList.toggle("refused", one.refused.length > 0);
      fill(facts, one.nodes !== undefined && costs(one), one.refused.length ? h("span", { class: "wrong" }, "Refused: ", coded(sentence(one.refused[0])), one.refused.length > 1 && ` And ${count(one.refused.length - 1)} more.`) : missing(one));
    }
  }

  /** The artifacts that this machine lacks. */
  const missing = ({ lacking }) => lacking.length > 0 && h("span", { class: "lacking" }, `This machine lacks ${lacking.length === 1 ? "the artifact" : "the artifacts"} ${lacking.join(", ")}.`);

  /** Shows the values of parameters that apply in the chosen size, and how many the user has changed. */
  function drawDefaults() {
    const values = estimates.get(preferred)?.parameters;
    for (const { name: key, default: own } of form.parameters) {
      const input = inputs.get(key);
      const value = values?.[key] ?? own;
      if (input.matches("select")) fill(input.options[0], `${value} (default)`);
      else input.placeholder = value;
    }
    const changed = [...inputs.values()].filter((input) => input.value).length;
    const note = rest.querySelector("#changed");
    if (note) fill(note, changed ? `: ${count(changed)} of ${count(inputs.size)} changed` : `: ${count(inputs.size)}, all with their defaults`);
  }

  function outdated() {
    round += 1;
    fill(result);
  }

  function request() {
    const lines = others.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const set = [...inputs].filter(([, input]) => input.value).map(([key, input]) => `parameters.${key}=${input.value}`);
    const sizes = [preferred, ...further.filter((input) => input.checked && input.value !== preferred).map((input) => input.value)].filter(Boolean);
    return { ...base(), size: sizes.join(",") || null, changes: [...set, ...lines], accept_unknown_prices: accept.checked };
  }

  async function estimate(event) {
    event.preventDefault();
    if (!form) return;
    outdated();
    const mine = round;
    fill(result, loading("the estimate"));
    try {
      const body = request();
      const answer = await change("POST", "ui/benchmarks/estimate", body);
      if (mine !== round || signal.aborted) return;
      // One key for each estimate: a second attempt after a lost response starts no second run.
      fill(result, preview(answer, { ...body, key: crypto.randomUUID() }));
      result.scrollIntoView({ block: "nearest" });
    } catch (error) {
      if (mine === round && !signal.aborted) fill(result, problem(error));
    }
  }

  function preview(answer, body) {
    const refused = answer.refused.length > 0;
    return h(
      "section",
      { class: "why", "aria-labelledby": "estimate" },
      h("h2", { id: "estimate" }, refused ? "This run would be refused" : "What would start"),
      answer.refused.map((text) => h("p", { class: "problem" }, coded(sentence(text)))),
      h("p", { class: "answer" }, answer.what, "."),
      answer.cost && h("p", {}, h("strong", {}, `It is ${answer.cost}.`)),
      answer.warnings.map((text) => h("p", { class: "caution" }, sentence(text))),
      !refused && h("div", { class: "buttons" }, h("button", { type: "button", class: "primary", onclick: () => once(() => begin(answer, body)) }, "Start the run …")),
      h("details", {}, h("summary", {}, "Files"), h("p", { class: "muted small" }, answer.copied)),
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
    location.hash = runAddress(run.run);
    addEventListener("hashchange", () => setTimeout(() => flash(`${run.name} is starting.`)), { once: true });
  }

  choose(chosen);
}

/** A text of the API, whose commands are in backticks. */
const coded = (text) => text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));

/** Nodes, minutes and dollars of a size; without an estimate only the nodes. */
function costs({ nodes, seconds, amounts }) {
  const words = `${count(nodes)} ${nodes === 1 ? "node" : "nodes"}`;
  if (!amounts) return h("div", {}, words);
  return [h("div", {}, `${words} · about ${minutes(seconds)}`), h("div", {}, h("strong", {}, amounts[0]), h("span", { class: "muted" }, `, at most ${amounts[1]}`))];
}

/** The chosen files by name, in base64. */
async function contents(list) {
  const all = [...list];
  if (!all.some((file) => file.name === FILE)) throw new Error(`Choose ${FILE}, and the files beside it that nodes need.`);
  if (all.reduce((sum, file) => sum + file.size, 0) > LARGEST) throw new Error("The files are too large. Make artifacts of the large ones, and use `troop bench run`.");
  return Object.fromEntries(await Promise.all(all.map(async (file) => [file.name, encoded(new Uint8Array(await file.arrayBuffer()))])));
}

const encoded = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
