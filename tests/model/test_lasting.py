"""Thousands of histories of lasting faults, of which each follows from its seed.

A failing one prints its seed: ``python -m perf.model --lasting --seed SEED`` plays it again, line by line.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.model.history import Failed
from tests.model.lasting import run
from tests.model.mutants import Mutant
from tests.model.mutants_of_lasting import MUTANTS

HISTORIES = 2400 if os.environ.get("TROOP_EXHAUSTIVE") else 800
PARTS = HISTORIES // 400
MOST = 2000
"""Histories in which a defect is searched."""


@pytest.mark.parametrize("part", range(PARTS))
def test_no_history_breaks_a_rule(part: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(part, HISTORIES, PARTS):
        counts += run(seed).seen
    # What histories are made of: a model in which nothing happens would prove nothing.
    often = (
        "fault felt",
        "proof by probe",
        "RECOVERED",
        "backstop",
        "fault cancelled",
        "event lost",
        "inject answered",
    )
    ends = ("proof by replaced", "proof by gone", "ABANDONED", "UNRECOVERED", "verdict BROKEN")
    sometimes = ("fault ended early", "left unproven", "stopped by an alarm", "terminated by crash", *ends)
    assert all(counts[event] >= 50 for event in often), counts
    assert all(counts[event] for event in sometimes), counts
    assert counts["fault sent"] > HISTORIES / PARTS / 2


def test_a_history_is_the_same_every_time() -> None:
    for seed in range(5):
        first, second = run(seed, traced=True), run(seed, traced=True)
        assert first.trace
        assert first == second


SEEDS = {
    "lost_answers_are_sent_again": 214,
    "nothing_read_is_nothing_there": 118,
    "cancelled_commands_never_start": 378,
    "proofs_can_be_written_again": 45,
    "commands_end_twice": 25,
    "policies_are_not_looked_at_before_the_fault": 41,
    "alarms_are_not_looked_at_before_the_fault": 18,
    "instances_are_hit_twice": 25,
    "doubt_is_a_refusal": 214,
    "any_command_is_adopted": 58,
    "protected_instances_are_repaired": 19,
    "the_last_instance_is_repaired": 37,
    "sweeps_end_what_runs": 37,
}
"""Defect -> the history that is played first, as in :mod:`tests.model.test_model`."""


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
