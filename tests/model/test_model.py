"""Thousands of histories of ticks, faults and people; every one follows from its seed.

A failing one prints its seed: ``python -m perf.model --seed SEED`` plays it again, line by line.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.model.history import TERMINATIONS, Failed, run
from tests.model.mutants import Mutant
from tests.model.mutants_of_verdicts import MUTANTS
from tests.model.world import Violation, World

HISTORIES = 3000 if os.environ.get("TROOP_EXHAUSTIVE") else 1500
"""Almost every defect shows in a fifth of them, see ``SEEDS``; ``make test-all`` plays twice as many."""

PARTS = HISTORIES // 750
"""Parts run beside one another where there is more than one core."""


@pytest.mark.parametrize("part", range(PARTS))
def test_no_history_breaks_a_rule(part: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(part, HISTORIES, PARTS):
        counts += run(seed).seen
    # What histories are made of: a model in which nothing happens would prove nothing.
    terminated = [f"terminated by {method}" for method in TERMINATIONS]
    ends = ("token answered", "event lost", "verdict HELD", "verdict BROKEN", "recovery known in time")
    often = ("CLAIMED", "TERMINATED", "RECOVERED", "LEASHED", *terminated, *ends)
    refused = ("refused: switched", "refused: stale", "already-today")
    stopped = ("UNRECOVERED", "verdict UNKNOWN", "halted itself", "stopped by an alarm")
    sometimes = ("ABANDONED", "GROUP_DELETED", *refused, *stopped)
    assert all(counts[event] >= 50 for event in often), counts
    assert all(counts[event] for event in sometimes), counts
    assert sum(counts[how] for how in terminated) > HISTORIES / PARTS / 2
    assert counts["recovery known late"] < 0.05 * counts["recovery known in time"], "at most 1 % of events are lost"


def test_a_history_is_the_same_every_time() -> None:
    for seed in range(10):
        first, second = run(seed, traced=True), run(seed, traced=True)
        assert first.trace
        assert first == second


def test_a_failing_history_says_how_to_see_it_again() -> None:
    def break_it(world: World) -> None:
        def refuse() -> None:
            raise Violation("something that must not be")

        world.checks.at_rest = refuse  # type: ignore[method-assign]

    with pytest.raises(Failed, match=r"seed 7: something that must not be\nreplay: python -m perf\.model --seed 7"):
        run(7, prepare=break_it)


MOST = 5000
"""Histories in which a defect is searched."""

SEEDS = {
    "owners_undercut_the_lowest_minimum": 303,
    "claims_never_end": 1862,
    "time_is_checked_only_before_the_attempt": 115,
    "halt_is_not_looked_at_before_the_call": 290,
    "every_try_is_the_first": 65,
    "a_repeated_call_finds_its_own_work_foreign": 179,
    "abandonment_uses_up_no_day": 230,
    "sweep_trusts_its_clock": 114,
    "sweep_ignores_the_instance": 400,
    "sweep_knows_no_lifecycle_hooks": 95,
    "keys_are_not_remembered": 142,
    "keys_count_only_before_the_claim": 914,
    "flaps_are_not_seen": 290,
    "changes_of_alarms_are_not_seen": 131,
    "missing_data_is_good_news": 290,
    "alarms_get_no_time_to_go_off": 71,
    "least_time_is_from_the_end_of_a_check": 138,
    "sweeps_give_no_verdict": 148,
    "hours_never_end": 613,
    "verdicts_at_one_time_count_once": 968,
    "no_cap_condition": 77,
    "own_halt_is_not_in_the_claim": 2241,
    "good_verdicts_end_the_halt": 427,
    "stopped_events_are_attempted_again": 121,
}
"""Defect -> the history that is played first, as the first one that shows it. After a change of histories it may show
nothing: then the test searches, which takes longer, and ``python -m perf.model --mutants`` prints the new seed.
"""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__)
def test_defect_is_detected(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)

    def search() -> None:
        for seed in (SEEDS.get(mutant.__name__, 0), *range(MOST)):
            run(seed, prepare=MUTANTS[mutant])

    with pytest.raises(Failed):
        search()


def test_every_seed_is_of_a_defect() -> None:
    assert SEEDS.keys() <= {mutant.__name__ for mutant in MUTANTS}
