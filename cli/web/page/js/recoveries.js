// The last recoveries of a unit: how long each took, stage by stage, whether that was slow, and its verdict.

import { DATE, ENOUGH, fitted, s, stepTo, table, tickText, time } from "./charts.js";
import { h } from "./dom.js";
import { count, day as shortDay, eventAddress, longDay, recoveryTime, words } from "./format.js";
import { SPANS } from "./stages.js";

const WIDE = 48; // pixels for a recovery, from which on each has its label
const MARK = { HELD: "M-5 0l3.5 4l6 -8", BROKEN: "M-4 -4l8 8m0 -8l-8 8", UNKNOWN: "M-5 0h10" };
const VERDICTS = { HELD: "hypothesis held", BROKEN: "hypothesis broken", UNKNOWN: "verdict unknown" };

const took = (one) => (one.seconds === null ? "not in time" : `${recoveryTime(one.seconds)}${one.slow ? ", slow" : ""}`);
const verdictOf = ({ verdict }) => (verdict ? VERDICTS[verdict] : "");
const inWords = (one) => [took(one), one.lasting && "after a lasting fault was over", verdictOf(one)].filter(Boolean).join(", ");
const spans = ({ stages }) => Object.entries(stages).map(([span, seconds]) => `${SPANS[span]} ${recoveryTime(seconds)}`);

/**
 * The last recoveries of a unit, side by side, against its usual time.
 * @param {Array<object>} points as ui/recoveries has them, oldest first; without `seconds`: not recovered in time
 * @param {number|null} usual seconds; null while too few recoveries are known
 * @param {Array<object>} changes as ui/recoveries has them: since when recoveries, and which stages, take another time
 */
export function recoveries(points, usual, changes = []) {
  const newest = points.toReversed();
  const to = (one, ...content) => h("a", { href: eventAddress(one.event_id) }, ...content);
  if (points.length < ENOUGH) return h("ul", { class: "states" }, newest.map((one) => h("li", {}, to(one, shortDay(one.day)), ": ", inWords(one))));
  const known = points.filter((one) => one.seconds !== null);
  const missing = points.length - known.length;
  const judged = Object.keys(VERDICTS).filter((value) => points.some(({ verdict }) => verdict === value));
  const seen = Object.keys(SPANS).filter((span) => known.some(({ stages }) => span in stages));
  const tally = judged.map((value) => `${count(points.filter(({ verdict }) => verdict === value).length)} ${words(value)}`);
  const slow = known.filter((one) => one.slow).length;
  const text = [`The last ${count(points.length)}: ${count(known.length)} ${known.length === 1 ? "recovery" : "recoveries"}, ${count(slow)} slow, ${count(missing)} not in time`, ...tally].join(", ");
  const drawn = fitted(text, (width) => picture(points, usual, width, { missing, judged: judged.length > 0 }));
  drawn.classList.add("last");
  return [
    changes.map((one) => h("p", { class: one.stage === "recovery" && one.after > one.before ? "problem" : "muted" },
      `${one.after > one.before ? "Slower" : "Faster"} since `, to(one, longDay(one.day)), `: ${SPANS[one.stage] ?? one.stage} ${recoveryTime(one.after)} in place of ${recoveryTime(one.before)}.`)),
    drawn,
    h("ul", { class: "key" },
      seen.map((span) => h("li", { class: span }, SPANS[span])),
      known.some(({ stages, lasting }) => !Object.keys(stages).length && !lasting) && h("li", { class: "whole" }, seen.length ? "stages not recorded" : "recovery"),
      known.some(({ lasting }) => lasting) && h("li", { class: "after" }, "after a lasting fault was over"),
      slow > 0 && h("li", { class: "slow" }, "slow recovery"),
      missing > 0 && h("li", { class: "lost" }, "not recovered in time"),
      usual === null ? h("li", {}, "5 recoveries by the same method give a usual time") : h("li", { class: "usual" }, `usual: ${recoveryTime(usual)}`),
      judged.map((value) => h("li", { class: value }, VERDICTS[value]))),
    table("Recoveries as a table", ["Day", "Recovery time", ...seen.map((span) => SPANS[span]), ...(judged.length ? ["Verdict"] : [])], newest.map((one) => [
      to(one, longDay(one.day)), took(one), ...seen.map((span) => (span in one.stages ? recoveryTime(one.stages[span]) : null)), ...(judged.length ? [one.verdict && words(one.verdict)] : []),
    ])),
  ];
}

function picture(points, usual, width, { missing, judged }) {
  const known = points.filter((one) => one.seconds !== null);
  const most = Math.max(...known.map((one) => one.seconds), usual ?? 0);
  const [left, top, bottom] = [52, missing ? 46 : 22, 168];
  const height = bottom + (judged ? 40 : 22);
  const slot = (width - left) / points.length;
  const step = stepTo(most);
  const end = Math.ceil(most / step) * step || 1;
  const y = (value) => bottom - (value / end) * (bottom - top);
  const middle = (index) => left + slot * (index + 0.5);
  const [wide, thick] = [slot > WIDE, Math.min(30, slot * 0.6)];
  const longest = points.findLastIndex((one) => one.seconds === most);

  /** A bar with a segment for each stage, or without any if they were not recorded. */
  function bar(one, at) {
    let below = 0;
    const segments = one.lasting ? [["after", one.seconds]] : Object.keys(one.stages).length ? Object.entries(one.stages) : [["whole", one.seconds]];
    const stack = segments.map(([span, seconds]) => {
      const rect = s("rect", { class: span, x: at - thick / 2, y: y(below + seconds), width: thick, height: Math.max(0, y(below) - y(below + seconds)) });
      below += seconds;
      return rect;
    });
    return [stack, one.slow && s("rect", { class: "frame", x: at - thick / 2 - 2.5, y: y(one.seconds) - 2.5, width: thick + 5, height: bottom - y(one.seconds) + 2.5 })];
  }

  const drawn = points.map((one, index) => {
    const at = middle(index);
    const lost = one.seconds === null;
    const labelled = !lost && (wide || index === longest || index === points.length - 1);
    return s(
      "g",
      { class: lost ? "lost" : one.slow ? "slow" : "bar" },
      s("title", {}, [`${longDay(one.day)}: ${inWords(one)}`, ...spans(one)].join("\n")),
      lost ? s("path", { d: `M${at - 5} 8l10 10m0 -10l-10 10` }) : bar(one, at),
      labelled && s("text", { x: at, y: y(one.seconds) - 7, "text-anchor": wide ? "middle" : index ? "end" : "start" }, recoveryTime(one.seconds)),
      one.verdict && s("path", { class: `verdict ${one.verdict}`, transform: `translate(${at} ${bottom + 14})`, d: MARK[one.verdict] }),
      (wide || (points.length - 1 - index) % 3 === 0) && s("text", { class: "day", x: at + (wide ? 0 : slot / 2), y: height - 4, "text-anchor": wide ? "middle" : "end" }, DATE.format(time(one.day))),
    );
  });
  const ticks = known.length ? Array.from({ length: Math.round(end / step) + 1 }, (_, n) => n * step) : [];
  return [[
    missing ? [s("rect", { class: "band", x: left, y: 0, width: width - left, height: 26 }), s("text", { x: 0, y: 10 }, "not in"), s("text", { x: 0, y: 23 }, "time")] : null,
    ticks.map((one) => [s("line", { class: "grid", x1: left, x2: width, y1: y(one), y2: y(one) }), s("text", { x: 0, y: y(one) + 4 }, tickText(one))]),
    judged ? s("text", { x: 0, y: bottom + 18 }, "verdict") : null,
    drawn,
    usual === null ? null : s("line", { class: "usual", x1: left, x2: width, y1: y(usual), y2: y(usual) }),
  ], height];
}
