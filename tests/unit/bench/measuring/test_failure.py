"""Planned faults: windows have each operation of the drivers' logs once, and verdicts follow the expectation."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.bench.measuring.request_log import BEGIN, Request, load, recorded, steady, stopped
from tests.unit.report import sample_failures as samples
from troop.bench.definition.planned_fault import Expectation
from troop.bench.measuring import failure
from troop.bench.measuring.failure import FAILED, REFUSED, Happened, Load
from troop.measure import operations
from troop.measure.empty import STEP
from troop.measure.operations import UNFINISHED, Operation
from troop.measure.recorder import Recorder

SECONDS, RATE = 60.0, 200
SURE = {"rate_chance_s": None, "p99_chance_s": None}
"""Of a time until something is back, if chance has no part in it."""


def lost(at: float, until: float, micros: int = 400_000) -> list[Request]:
    """A load of which half fails from a moment on; the other half is slow for three seconds more."""
    rest = [one._replace(kind="reset") if n % 2 else one for n, one in enumerate(steady(until, RATE, since=at))]
    slow = [one._replace(micros=micros) for one in steady(until + 3, RATE, since=until)]
    return [*steady(at, RATE), *rest, *slow, *steady(SECONDS, RATE, since=until + 3)]


def entry(requests: list[Request], happened: Happened, set_rate: float | None = RATE) -> dict[str, Any]:
    (one,) = failure.entries([happened], load(requests, SECONDS, set_rate))
    return one


# ------------------------------------------------------------------ exactness

_KINDS = st.sampled_from(["", "reset", "http-503", UNFINISHED])
_MORE = st.lists(st.builds(Request, st.floats(-15, 70), st.integers(1, 3_000_000), _KINDS), max_size=60)


@settings(max_examples=150, deadline=None)
@given(_MORE, _MORE, st.floats(20, 45), st.floats(0, 1, exclude_max=True), st.integers(0, 9))
def test_windows_are_those_of_the_drivers_logs(
    some: list[Request], more: list[Request], at: float, shift: float, down: int
) -> None:
    """Wherever in a second the fault and the measured time begin. Two drivers; each logs its own requests."""
    begin, end = BEGIN + shift, BEGIN + shift + SECONDS
    base = [one for one in steady(SECONDS + 10) if not at < one.ended < at + down]
    logs = [[*base, *(one for one in some if one.ended > at or not one.kind)], [*base, *more]]
    parts = [recorded(one, SECONDS, begin, warm_up=10) for one in logs]
    (one,) = failure.entries([stopped(at)], Load(parts, begin, SECONDS))
    if not one["windows"]["before"]:
        assert one["verdict"] == "UNKNOWN"
        return
    log = [one for one in (*logs[0], *logs[1]) if begin - 10 <= BEGIN + one.ended < end]
    counted, following = Counter[str](), math.ceil(begin)
    for name, its in one["windows"].items():
        if its is None:
            assert name == "after"
            continue
        since = BEGIN + at + its["from"]
        assert since == pytest.approx(following, abs=0.002), "windows follow one another"
        following = round(since + its["seconds"], 3)
        naive = [
            one for one in log if round(since) <= BEGIN + one.ended < (following if following < end - 0.01 else end)
        ]
        good = sorted(one.micros / 1000 for one in naive if not one.kind)
        assert its["count"] == len(good)
        assert its["errors"] == Counter(one.kind for one in naive if one.kind)
        for percent, key in ((50, "p50_ms"), (99, "p99_ms"), (100, "max_ms")):
            exact = good[max(1, math.ceil(percent * len(good) / 100)) - 1] if good else None
            assert its[key] is exact is None or exact <= its[key] <= exact * 17 / 16 + 0.001
        if name != "before":
            counted.update(its["errors"])
    assert following == pytest.approx(end, abs=0.002)
    assert one["unfinished"] == counted[UNFINISHED]
    assert one["failed"] == counted.total() - counted[UNFINISHED]
    total = Counter(one.kind for one in log if one.kind and math.floor(BEGIN + at) <= BEGIN + one.ended)
    assert counted == total


_ANSWERS = st.dictionaries(st.integers(300, 1199), st.tuples(st.floats(0, 20), st.sampled_from(["", "timeout"])))
"""Seconds that requests take, and the kinds of their errors, by the number of the request; others take 5 ms."""


@settings(max_examples=40, deadline=None)
@given(_ANSWERS, st.floats(15, 45))
def test_requests_count_when_they_end_and_take_time_since_they_were_due(
    tmp_path_factory: pytest.TempPathFactory, answers: dict[int, tuple[float, str]], at: float
) -> None:
    """Through the recorder of a script; its clock is that of the log."""
    clock, log = [BEGIN], []
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(STEP, "1")
        recorder = Recorder(tmp_path_factory.mktemp("results"), BEGIN, SECONDS, lambda: clock[0])
        for n, due in enumerate(BEGIN + 0.02 + n / 20 for n in range(1200)):
            took, kind = answers.get(n, (0.005, ""))
            log.append((due + took, took, due, kind))
        for clock[0], took, due, kind in sorted(log):
            if kind:
                recorder.error("get", kind, due=due)
            else:
                recorder.ok("get", min(took, 0.001), due=due)
        merged = operations.parse(json.loads(recorder.write().read_text())["operations"])
    (one,) = failure.entries([stopped(at)], Load([*merged.values()], BEGIN, SECONDS))
    for its in filter(None, one["windows"].values()):
        begin = round(BEGIN + at + its["from"])
        naive = [(took, kind) for end, took, _, kind in log if begin <= end < begin + round(its["seconds"])]
        assert (its["count"], its["errors"].get("timeout", 0)) == (
            sum(not kind for _, kind in naive),
            sum(bool(kind) for _, kind in naive),
        )
        longest = max((1000 * took for took, kind in naive if not kind), default=None)
        assert its["max_ms"] == pytest.approx(longest, rel=1 / 16, abs=0.002)


def test_operations_of_the_second_of_the_fault_belong_to_the_window_during() -> None:
    requests = [
        *steady(SECONDS, RATE),
        Request(29.99, kind="early"),
        Request(30.1, kind="reset"),
        Request(30.9, kind="reset"),
    ]
    windows = entry(requests, stopped(30.5))["windows"]
    assert [windows[name]["errors"] for name in ("before", "during", "after")] == [{"early": 1}, {"reset": 2}, {}]
    assert [windows[name]["from"] for name in ("before", "during", "after")] == [-30.5, -0.5, 0.5]
    assert [windows[name]["count"] for name in ("before", "during", "after")] == [6000, 200, 5800]


def test_several_faults_each_have_the_operations_up_to_the_next() -> None:
    two = [stopped(15.2, number=1), stopped(40.7, number=2)]
    requests = [*steady(SECONDS), *(Request(at, kind="reset") for at in (15.1, 16.0, 39.9, 40.1, 59.5))]
    one, other = failure.entries(two[::-1], load(requests, SECONDS))[::-1]
    assert (one["number"], one["failed"], other["failed"]) == (1, 3, 2)
    assert one["windows"]["after"]["from"] + one["windows"]["after"]["seconds"] == pytest.approx(40 - 15.2)
    assert other["windows"]["before"]["from"] == pytest.approx(26 - 40.7)


def test_a_fault_that_failed_on_its_way_ends_the_figures_of_the_one_before() -> None:
    """Nobody knows how much of it happened: a script may fail after it has stopped its server."""
    expect = Expectation(rate_back_within=10)
    two = [stopped(15, expect), replace(stopped(40, number=2), outcome=FAILED, why="exit code 1", began_at=None)]
    requests = [*steady(40), *steady(SECONDS, 10, since=40)]
    one, other = failure.entries(two, load(requests, SECONDS, set_rate=None))
    assert (one["verdict"], one["windows"]["after"]["seconds"], other["outcome"]) == ("HELD", 24, FAILED)
    refused = [two[0], replace(two[1], outcome=REFUSED)]
    assert failure.entries(refused, load(requests, SECONDS, set_rate=None))[0]["verdict"] == "BROKEN"


def test_the_window_before_begins_some_time_after_a_fault_that_is_never_over() -> None:
    """The load is steady again on another level, because a server is gone for good."""
    half = [one for n, one in enumerate(steady(SECONDS, since=15)) if n % 2]
    two = [stopped(15, number=1), replace(stopped(40, number=2))]
    one, other = failure.entries(two, load([*steady(15), *half], SECONDS, set_rate=None))
    assert (one["back"]["rate_s"], one["windows"]["after"]) == (None, None)
    assert (other["windows"]["before"]["from"], other["rate_before"], other["back"]["rate_s"]) == (-15, 10, 0)


# ------------------------------------------------------------------ figures


def test_rate_and_p99_are_back_separately_and_the_rest_is_counted() -> None:
    one = entry(lost(20.25, 30.25), stopped(20.25))
    assert one["back"] == {"rate_s": 10.75, "p99_s": 13.75, **SURE}
    assert one["sentence"] == (
        "1 of 3 servers stopped at 0:20: the rate was back after 10.8 s, p99 after 13.8 s; 1,000 operations failed."
    )
    assert (one["failed"], one["unfinished"], one["fewer"], one["fewer_is_estimate"]) == (1000, 0, 1000, False)
    assert (one["verdict"], one["reasons"], one["rate_before"]) == (None, [], RATE)
    assert [one["windows"][name]["seconds"] for name in ("before", "during", "after")] == [20, 14, 26]


def test_a_fault_that_nobody_notices() -> None:
    one = entry(steady(SECONDS, RATE), stopped(20.5, lasts=10), set_rate=None)
    assert one["back"] == {"rate_s": 0, "p99_s": 0, **SURE}
    assert one["windows"]["during"]["seconds"] == 11, "it lasts until its end"
    assert (one["fewer"], one["fewer_is_estimate"]) == (0, True)
    assert one["sentence"] == (
        "1 of 3 servers paused for 10 s at 0:20: the rate did not fall, p99 did not rise; no operation failed."
    )


def test_a_rate_that_falls_again_is_not_back() -> None:
    later = [one for one in lost(20, 24) if not 40 < one.ended < 42]
    assert entry(later, stopped(20))["back"]["rate_s"] == 22
    late = [one for one in lost(20, 24) if not one.ended > 57]
    one = entry(late, stopped(20))
    assert (one["back"], one["windows"]["after"]) == ({"rate_s": None, "p99_s": 7, **SURE}, None)
    assert one["windows"]["during"]["seconds"] == 40
    assert "the rate was not back within 40.0 s, p99 was back after 7.0 s" in one["sentence"]


@pytest.mark.parametrize(("healed", "back"), [(54, None), (51, None), (50, 30)])
def test_load_is_back_only_if_ten_seconds_follow(healed: int, back: int | None) -> None:
    """After a permanent fall, the last seconds can pass by chance."""
    half = [one for n, one in enumerate(steady(healed, RATE, since=20)) if n % 2]
    late = [one._replace(micros=400_000) for one in half]
    after = steady(SECONDS, RATE, since=healed)
    one = entry([*steady(20, RATE), *late, *after], stopped(20, Expectation(rate_back_within=30)))
    assert one["back"] == {"rate_s": back, "p99_s": back, **SURE}
    assert one["verdict"] == ("BROKEN" if back is None else "HELD")
    assert ("not back within 40.0 s" in one["sentence"]) == (back is None)


@pytest.mark.parametrize(("measured", "is_known"), [(29, False), (30, True)])
def test_no_figure_is_stated_of_a_fault_that_few_seconds_follow(measured: int, is_known: bool) -> None:
    (one,) = failure.entries([stopped(20)], load(steady(measured), measured))
    assert one["unjudged"] == (None if is_known else "only 9.0 s follow it")
    assert one["back"]["rate_s"] == (0 if is_known else None)


def test_unfinished_operations_are_apart_from_those_that_failed() -> None:
    one = entry([*lost(20, 25), *[Request(59.9, kind=UNFINISHED)] * 3], stopped(20))
    assert (one["failed"], one["unfinished"]) == (500, 3)
    assert one["sentence"].endswith("; 500 operations failed, and 3 did not end.")


def test_errors_without_a_kind_by_second_have_the_only_kind_or_are_others() -> None:
    """Some scripts count errors by second, and not their kinds."""
    operation = recorded(lost(20, 25), SECONDS)
    operation.per_second.kinds = None
    for errors, kind in (({"reset": 500}, "reset"), ({"reset": 499, "tls": 1}, "other")):
        (one,) = failure.entries([stopped(20)], Load([replace(operation, errors=errors)], BEGIN, SECONDS))
        assert one["windows"]["during"]["errors"] == {kind: 500}


# ------------------------------------------------------------------ verdicts


@pytest.mark.parametrize(
    ("expect", "verdict", "reasons"),
    [
        (Expectation(rate=0.5, rate_back_within=11, p99_back_within=14, failed_at_most=1000), "HELD", []),
        (Expectation(rate_back_within=10), "BROKEN", ["rate back after 10.8 s; expected within 10 s"]),
        (Expectation(p99_back_within=13), "BROKEN", ["p99 back after 13.8 s; expected within 13 s"]),
        (Expectation(failed_at_most=999), "BROKEN", ["1,000 operations failed; expected at most 999"]),
        (
            Expectation(rate=0.7, failed_at_most=999),
            "BROKEN",
            [
                "54.5% of the rate before during the fault; expected at least 70.0%",
                "1,000 operations failed; expected at most 999",
            ],
        ),
        (Expectation(share=0.4, rate_back_within=1), "HELD", []),
    ],
)
def test_the_verdict_is_on_the_expectation(expect: Expectation, verdict: str, reasons: list[str]) -> None:
    one = entry(lost(20.25, 30.25), stopped(20.25, expect))
    assert (one["verdict"], one["reasons"]) == (verdict, reasons)
    assert one["expect"]["share"] == one["share"] == expect.share
    assert (" (expected " in one["sentence"]) == (verdict == "BROKEN")


def test_slow_operations_after_a_loss_do_not_dilute_it() -> None:
    """For three seconds nothing succeeds; what follows is slow for 25 s more, and misses no operation."""
    rest = [one._replace(micros=400_000 if one.ended < 48 else 5_000) for one in steady(SECONDS, RATE, since=23)]
    one = entry([*steady(20, RATE), *rest], stopped(20, Expectation(rate=0.5)))
    assert (one["back"], one["windows"]["during"]["seconds"]) == ({"rate_s": 3, "p99_s": 28, **SURE}, 28)
    assert (one["rate_during"], one["verdict"]) == (0, "BROKEN")


@pytest.mark.parametrize(
    ("within", "verdict"),
    [(25, "BROKEN"), (30, "BROKEN"), (31, "UNKNOWN")],
)
def test_missing_recovery_is_broken_if_the_window_was_long_enough(within: int, verdict: str) -> None:
    """The rate never comes back in the 40 s that are measured; the last 10 s do not tell."""
    one = entry(
        [one for one in steady(SECONDS, RATE) if one.ended < 20], stopped(20, Expectation(rate_back_within=within))
    )
    assert one["verdict"] == verdict
    assert (one["failed"], one["fewer"]) == (0, 8000)


def uneven(rate: int, micros: int = 5_000) -> list[Request]:
    """So few operations that chance explains a loss: from 20 to 24 s every fourth fails, and two are slow."""
    seconds = [rate + (-1, 1, 0, 1, -1)[at % 5] for at in range(int(SECONDS))]
    every = [Request(at + (n + 0.5) / count) for at, count in enumerate(seconds) for n in range(count)]
    hit = [n for n, one in enumerate(every) if 20 < one.ended < 24]
    for n in hit[::4]:
        every[n] = every[n]._replace(kind="reset")
    for n in hit[1:26:24]:
        every[n] = every[n]._replace(micros=micros)
    return every


@pytest.mark.parametrize(
    ("rate", "within", "verdict", "words"),
    [
        (10, 3, "UNKNOWN", "the rate fell to 75.0%, which chance can explain at 10.0 operations a second (expected"),
        (10, 4, "HELD", "the rate fell to 75.0%, which chance can explain at 10.0 operations a second; p99 did not"),
        (
            20,
            3,
            "UNKNOWN",
            "the rate was back after 1.0 to 4.0 s (expected within 3 s: too few operations to tell), p99",
        ),
        (200, 3, "BROKEN", "the rate was back after 4.0 s (expected within 3 s), p99 did not rise"),
    ],
)
def test_an_expectation_that_chance_may_hold_is_unknown(rate: int, within: int, verdict: str, words: str) -> None:
    one = entry(uneven(rate), stopped(20, Expectation(rate_back_within=within)), rate)
    assert words in one["sentence"]
    assert (one["verdict"], one["back"]["rate_chance_s"]) == (verdict, None if rate == 200 else 4)
    assert one["windows"]["during"]["seconds"] == 4, "its rate is the one in the sentence"
    if verdict == "UNKNOWN":
        why = f"too few operations to tell: until 4.0 s, chance can explain rate; expected back within {within} s"
        assert (one["reasons"], one["unjudged"]) == ([why], None)


def test_a_rate_that_is_whole_in_its_first_second_can_fall_by_chance() -> None:
    """Operations are missing from 21 to 24 s; the five seconds from 21 s on make up for it."""
    rest = [one for n, one in enumerate(steady(SECONDS)) if not (21 < one.ended < 24 and n % 20 < 4)]
    one = entry([*rest, *(Request(25.5),) * 8], stopped(20, Expectation(rate_back_within=1)), 20)
    assert "the rate fell to 88.0%, which chance can explain" in one["sentence"]


@pytest.mark.parametrize(("within", "verdict"), [(1, "UNKNOWN"), (3, "HELD")])
def test_a_p99_that_rose_by_chance_has_no_silent_verdict(within: int, verdict: str) -> None:
    one = entry(uneven(10, micros=983_000), stopped(20, Expectation(share=0.1, p99_back_within=within)), 10)
    assert "p99 rose to " in one["sentence"]
    assert " ms, which chance can explain at 10.0 operations a second" in one["sentence"]
    assert (one["verdict"], one["back"]["p99_s"]) == (verdict, 0)


def test_the_rate_of_a_fault_that_nobody_notices_is_of_more_than_a_second() -> None:
    """Of 20 operations a second, 5 are missing in one by chance."""
    requests = [one for n, one in enumerate(steady(SECONDS)) if not (20 < one.ended < 21 and n % 4 == 0)]
    one = entry([*requests, *(Request(21.5),) * 5], stopped(20, Expectation(rate=0.8)), 20)
    assert (one["verdict"], one["rate_during"]) == ("HELD", 20)


@pytest.mark.parametrize(
    ("outcome", "sentence"),
    [
        (REFUSED, "Stop 1 of servers at 0:20: refused, because the window of web is closed."),
        (FAILED, "Stop 1 of servers at 0:20: failed, because the window of web is closed."),
    ],
)
def test_no_figure_is_stated_about_a_fault_that_did_not_happen(outcome: str, sentence: str) -> None:
    one = entry(
        steady(SECONDS), replace(stopped(20), outcome=outcome, why="the window of web is closed", began_at=None)
    )
    assert (one["verdict"], one["sentence"], one["reasons"]) == ("UNKNOWN", sentence, [one["why"]])
    assert one["unjudged"] == one["why"]
    assert not any(one["windows"].values())


def figures(one: dict[str, Any]) -> list[Any]:
    return [*one["windows"].values(), *one["back"].values(), one["failed"], one["unfinished"], one["fewer"]]


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (Operation(errors={"failed": 3}), "a tool does not count operations and errors by second"),
        (replace(recorded(steady(SECONDS), SECONDS), over_time=None), "not all times over time are on record"),
    ],
)
def test_no_figure_is_stated_without_counts_and_times_by_second(operation: Operation, reason: str) -> None:
    parts = [recorded(steady(SECONDS), SECONDS), operation]
    (one,) = failure.entries([stopped(20, Expectation(failed_at_most=9))], Load(parts, BEGIN, SECONDS))
    assert (one["verdict"], one["reasons"], set(figures(one))) == ("UNKNOWN", [reason], {None})
    assert one["unjudged"] == reason
    assert one["sentence"] == f"1 of 3 servers stopped at 0:20: unknown, because {reason}."


@pytest.mark.parametrize(
    ("expect", "verdict", "reasons", "noted"),
    [
        (None, None, [], ""),
        (Expectation(rate_back_within=30), "HELD", [], ""),
        (
            Expectation(failed_at_most=0, rate_back_within=30),
            "UNKNOWN",
            ["failures are not counted by this tool"],
            " (expected at most 0)",
        ),
    ],
)
def test_failures_that_a_tool_does_not_count_are_unknown(
    expect: Expectation | None, verdict: str | None, reasons: list[str], noted: str
) -> None:
    """Beside a tool that counts them; and as results are stored."""
    parts = {"a": recorded(steady(SECONDS), SECONDS), "b": recorded([one for one in lost(20, 30) if not one.kind], 60)}
    parts["b"].counts_failures = False
    stored = operations.parse(json.loads(json.dumps(operations.document_of(parts))))
    merged = operations.Operation()
    for operation in stored.values():
        merged.add(operation)
    for its in ([*stored.values()], [merged]):
        (one,) = failure.entries([stopped(20, expect)], Load(its, BEGIN, SECONDS))
        assert (one["failed"], one["unfinished"], one["verdict"], one["reasons"]) == (None, None, verdict, reasons)
        assert {window["errors"] for window in one["windows"].values()} == {None}
        assert one["back"]["rate_s"] > 0
        assert one["sentence"].endswith(f"; failures are not counted by this tool{noted}.")
        assert one["unjudged"] == (reasons[0] if reasons else None)


def test_documents_say_only_of_tools_without_failures_that_they_do_not_count_them() -> None:
    assert "counts_failures" not in Operation().document()
    with pytest.raises(operations.OperationsError, match="counts_failures must be true or false"):
        operations.parse({"get": {**Operation().document(), "counts_failures": 0}})


def test_no_figure_is_stated_after_an_unsteady_window() -> None:
    """A loaded machine fakes it: the load was disturbed before the fault."""
    one = entry([one for one in lost(20, 30) if not 5 < one.ended < 8], stopped(20, Expectation(failed_at_most=9)))
    assert (one["verdict"], set(figures(one)), one["rate_before"]) == ("UNKNOWN", {None}, None)
    assert one["reasons"] == ["the rate before was 85.0% of the set rate of 200/s"]
    assert one["unjudged"] is None, "the load is the reason"


def test_the_end_of_a_fault_is_no_disturbance_before_the_next() -> None:
    document = samples.simulated((60, 10), (150, 25), (192, 5), measured=240)
    happened = [samples.stopped(60), samples.stopped(150, 2), samples.stopped(192, 3)]
    first, second, third = samples.with_faults(document, *happened)["faults"]
    assert [one["verdict"] for one in (first, second, third)] == ["HELD", "BROKEN", "HELD"]
    over = 60 + first["windows"]["after"]["from"]
    assert 150 + second["windows"]["before"]["from"] == pytest.approx(over + 10, abs=1)
    assert third["windows"]["before"]["seconds"] == 10, "less time to settle, because the next fault is near"


@pytest.mark.parametrize(
    ("after", "expect", "verdict"),
    [
        (steady(SECONDS, 170, since=20), Expectation(rate_back_within=10), "BROKEN"),
        (steady(SECONDS, 190, since=20), Expectation(rate_back_within=10), "HELD"),
        ([Request(20.5 + 2.5 * n, 10_000_000) for n in range(16)], Expectation(p99_back_within=10), "BROKEN"),
        (
            [one._replace(micros=400_000 if n % 45 == 0 else 5_000) for n, one in enumerate(steady(60, 200, since=20))],
            Expectation(p99_back_within=10),
            "BROKEN",
        ),
    ],
)
def test_all_seconds_to_the_end_show_a_loss_that_few_do_not(
    after: list[Request], expect: Expectation, verdict: str
) -> None:
    """The rate varies by 15 from second to second, so that 5 s of 170 a second may be 5 s of 190 by chance."""
    uneven = [
        one for second in range(20) for one in steady(second + 1, RATE + (15, -15)[second % 2], since=float(second))
    ]
    assert entry([*uneven, *after], stopped(20, expect), set_rate=None)["verdict"] == verdict
