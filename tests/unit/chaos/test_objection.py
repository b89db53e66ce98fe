"""What the probe before a fault has read, and whether the fault may follow."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from troop.chaos.injection import Injection
from troop.chaos.probe import Probe, Reading
from troop.chaos.proof import objection
from troop.faults.latency import LATENCY, NETEM

CLEAN = Reading(boot="1", qdiscs=0, drops=0, stress=0, rollbacks=0, hosts=0, used=40.0)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _objection(missing: tuple[str, ...], installs: bool) -> str:
    probe = Probe(token="0" * 32, sent_at=NOW, answered_at=NOW, reading=replace(CLEAN, missing=missing))
    return objection(LATENCY, Injection(LATENCY.defaults(), installs=installs, before=probe))


@pytest.mark.parametrize(
    ("missing", "installs", "expected"),
    [
        ((), False, ""),
        (("stress-ng",), False, ""),  # another fault's
        (("tc", "jq"), False, "the instance has no tc, jq: install iproute-tc, jq in its image"),
        (("tc", "jq"), True, ""),
        (("tc", NETEM), True, "the instance has no sch_netem: install kernel-modules-extra in its image"),
    ],
)
def test_a_missing_program_is_refused_unless_the_document_installs_it(
    missing: tuple[str, ...], installs: bool, expected: str
) -> None:
    assert _objection(missing, installs) == expected
