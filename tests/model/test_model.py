"""Thousands of histories of ticks, faults and people; every one follows from its seed.

A failing one prints its seed: ``python -m perf.model --seed SEED`` plays it again, line by line.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.model.history import Failed, run
from tests.model.mutants import Mutant
from tests.model.mutants_of_verdicts import MUTANTS
from tests.model.world import Violation, World
from troop import faults

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
    terminated = [f"terminated by {method}" for method in faults.names()]
    often = ("CLAIMED", "TERMINATED", "RECOVERED", "LEASHED", *terminated)
    sometimes = ("UNRECOVERED", "ABANDONED", "GROUP_DELETED", "refused: switched", "refused: stale", "already-today")
    assert all(counts[event] >= 50 for event in often), counts
    assert all(counts[event] for event in sometimes), counts
    assert sum(counts[how] for how in terminated) > HISTORIES / PARTS / 2


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

RARE = {"sweep_is_hasty"}
"""Defects that so many may not show; ``python -m perf.model --mutants`` searches for them as well."""

SEEDS = {
    "nothing_says_that_the_day_has_had_its_claim": 117,
    "no_cap_condition": 1874,
    "owners_undercut_the_lowest_minimum": 135,
    "claims_never_end": 81,
    "every_try_is_the_first": 68,
    "attempts_do_not_hold_up_an_end": 342,
    "a_repeated_call_finds_its_own_work_foreign": 100,
    "closing_needs_no_status": 120,
    "sweep_is_hasty": 1531,
    "sweep_ignores_the_instance": 253,
    "sweep_knows_no_lifecycle_hooks": 871,
}
"""Defect -> the history that is played first, as the first one that shows it. After a change of histories it may show
nothing: then the test searches, which takes longer, and ``python -m perf.model --mutants`` prints the new seed.
"""


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.__name__ not in RARE], ids=lambda m: m.__name__)
def test_defect_is_detected(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)

    def search() -> None:
        for seed in (SEEDS.get(mutant.__name__, 0), *range(MOST)):
            run(seed, prepare=MUTANTS[mutant])

    with pytest.raises(Failed):
        search()


def test_every_seed_is_of_a_defect() -> None:
    assert SEEDS.keys() <= {mutant.__name__ for mutant in MUTANTS}
