"""Thousands of histories of ticks, faults and people; every one follows from its seed.

A failing one prints its seed: ``python -m perf.model --seed SEED`` plays it again, line by line.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.model.history import Failed, run
from tests.model.mutants import Mutant
from tests.model.mutants_on_demand import MUTANTS
from tests.model.world import Violation, World
from troop import faults

HISTORIES = 3000 if os.environ.get("TROOP_EXHAUSTIVE") else 1500
"""What is to be found is found within half of them, see ``QUICKLY``; ``make test-all`` plays the others as well."""

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
    assert all(counts[what] >= 50 for what in often), counts
    assert all(counts[what] for what in sometimes), counts
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


QUICKLY = 1500
"""Histories within which a defect is found. What hides longer is left to ``python -m perf.model --mutants``."""

HIDDEN = {
    "no_cap_condition",
    "attempts_do_not_hold_up_an_end",
    "halt_is_not_looked_at_before_the_call",
    "sweep_is_hasty",
}


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.__name__ not in HIDDEN], ids=lambda m: m.__name__)
def test_a_defect_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)

    def search() -> None:
        for seed in range(QUICKLY):
            run(seed, prepare=MUTANTS[mutant])

    with pytest.raises(Failed):
        search()
