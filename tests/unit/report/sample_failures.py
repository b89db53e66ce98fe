"""Runs with planned faults, made up: each simulated request is counted as a collector would, and then merged."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

from tests.unit.report.sample_cells import changed
from tests.unit.report.sample_reports import HOSTILE
from troop.bench.definition.planned_fault import STEP_SECONDS, Expectation, PlannedFault
from troop.bench.measuring.failure import Happened, Load, entries
from troop.bench.results.figures import figures
from troop.measure import operations as ops
from troop.measure.collectors.window import Counted, Window
from troop.measure.empty import STEP
from troop.measure.merge import Merger
from troop.measure.summary import Summary
from troop.report import failures
from troop.report.document import Cell, Failure, Fleet, Money, Phase, Report, Run, Search
from troop.report.parts import Figures

START, WARM_UP = 1_795_187_100.25, 10
DRIVERS, RATE, MEASURED = 2, 180, 150
AT = 60
"""When the fault begins, in seconds from the start of the measured time."""


def simulated(
    *faults: tuple[float, float], seed: int = 1, measured: float = MEASURED, slow: float = 12, before: float = 1.0
) -> dict[str, Any]:
    """Merges what two drivers counted of an open loop: during a fault, some requests to one of two servers fail, and
    the others are slow until the queue has drained.

    Args:
        faults: when each begins, and how long it lasts; in seconds from the start of the measured time.
        slow: factor of times meanwhile.
        before: part of the requests that are sent before the first fault.
    """
    dice, merger = random.Random(seed), Merger()
    faults = faults or ((AT, 10),)
    for driver in range(DRIVERS):
        with patch.dict(os.environ, {STEP: str(STEP_SECONDS)}):
            counted = Counted(Window(START, START + measured, WARM_UP))
            counted.operation("get")
        for n in range(round((WARM_UP + measured) * RATE / DRIVERS)):
            due = n * DRIVERS / RATE - WARM_UP + driver / RATE
            if due < faults[0][0] and dice.random() > before:
                continue
            load = max(_load(due - at, lasts) for at, lasts in faults)
            took = dice.lognormvariate(math.log(0.018), 0.25) * (1 + slow * load)
            if load == 1 and dice.random() < 0.12:
                kind = "timeout" if dice.random() < 0.4 else "refused"
                counted.error("get", START + due + (1 if kind == "timeout" else 0.002), kind)
            else:
                counted.ok("get", START + due + took, round(took * 1e6))
        merger.add(
            Summary(
                node=f"i-0d{driver}",
                role="drivers",
                rank=driver,
                phase="measure",
                outcome="ok",
                started_at=START - WARM_UP - 1,
                ended_at=START + measured + 1,
                exit_code=0,
                measured_from=START,
                measured_seconds=float(measured),
                warm_up_seconds=float(WARM_UP),
                operations=counted.operations,
            )
        )
    return merger.document()


def _load(since: float, lasts: float) -> float:
    """How much a fault slows a request down: 1 while it lasts, then less and less."""
    return 0.0 if since < 0 else 1.0 if since < lasts else 0.8 * math.exp((lasts - since) / 0.7)


EXPECT = Expectation(rate=0.7, rate_back_within=20, p99_back_within=30, failed_at_most=500)


def stopped(at: float = AT, number: int = 1, **more: Any) -> Happened:
    """A server that was stopped, as planned."""
    fault = PlannedFault(round(at), "stop", role="servers", expect=EXPECT)
    node = {"id": "i-05", "role": "servers", "rank": 1, "zone": "eu-west-1b", "began_at": START + at + 0.02}
    moments = {"began_at": START + at + 0.02, **more}
    return replace(Happened(number, fault, "stop 1 of servers", ({**node, "ended_at": None},), 2), **moments)


def with_faults(document: Mapping[str, Any], *happened: Happened, **place: Any) -> dict[str, Any]:
    """Merged results with what the engine says of planned faults."""
    operations = list(ops.parse(document["roles"]["drivers"]["operations"]).values())
    load = Load(operations, START, document["measured_seconds"], RATE)
    return {**document, "faults": entries(happened or [stopped()], load), "generating": ["drivers"], **place}


def phase(document: Mapping[str, Any], **more: Any) -> Phase:
    """The phase of a report that is made of merged results with faults."""
    known = Figures.model_validate(figures(document))
    return Phase(
        phase="measure",
        nodes=4,
        measured_seconds=document["measured_seconds"],
        warm_up_seconds=WARM_UP,
        measured_from=datetime.fromtimestamp(START, UTC),
        targets={"drivers": RATE},
        operations=known.operations,
        series=known.series,
        faults=[Failure.model_validate(one) for one in document["faults"]],
        fallen=known.fallen,
        curve=known.curve,
        **more,
    )


def cell(*phases: Phase, number: int = 1, repetition: int = 1, searches: Sequence[Search] = (), **more: Any) -> Cell:
    return Cell(
        cell=f"c{number:03}",
        label=f"repetition {repetition}" if number > 1 or repetition > 1 else "",
        repetition=repetition,
        order=number,
        status="SUCCEEDED",
        fleets=[
            Fleet(role="servers", nodes=2, instance_type="c7g.large", load=False),
            Fleet(role="drivers", nodes=2, instance_type="c7g.large", load=True),
        ],
        phases=list(phases),
        searches=list(searches),
        fault_verdict=failures.cell_verdict(phases, searches),
        **more,
    )


def report(*cells: Cell, **more: Any) -> Report:
    began = datetime.fromtimestamp(START, UTC) - timedelta(minutes=5)
    return Report(
        created_at=began + timedelta(hours=1),
        created_by="0.3",
        cpu_is_busy=True,
        run=Run(run="20261120-093000-7c1f2a9e", name="ring", size="loss", status="SUCCEEDED", at=began),
        money=Money(expected=0.4, most=1.2),
        definition={"name": "ring"},
        cells=list(cells),
        **more,
    )


def held() -> Report:
    """One server of two is stopped once, and all is as expected."""
    return report(cell(phase(with_faults(simulated()))))


def broken() -> Report:
    """It takes longer than expected, and more operations fail."""
    return report(cell(phase(with_faults(simulated((AT, 40), slow=40)))))


def unknown() -> Report:
    """Too few requests were sent before."""
    return report(cell(phase(with_faults(simulated(before=0.9)))))


def tiers() -> Report:
    """Three servers are paused one after the other; the second is not back in time."""
    times = ((60, 10), (150, 25), (260, 5))
    happened = [stopped(at, n, ended_at=START + at + lasts) for n, (at, lasts) in enumerate(times, 1)]
    return report(cell(phase(with_faults(simulated(*times, measured=360), *happened))))


def unit() -> Report:
    """Troop's chaos hits a unit of the account: the group has recovered long after its clients."""
    fault = PlannedFault(AT, None, unit="web", expect=EXPECT)
    event = {
        "event_id": "20261120T150600Z-web",
        "status": "RECOVERED",
        "verdict": "HELD",
        "group": "web-a",
        "instance_id": "i-0abc",
        "terminated_at": START + AT + 0.7,
        "recovery_seconds": 48.2,
        "stages": {
            stage: START + AT + 0.7 + after
            for stage, after in (("noticed", 3.1), ("launched", 7.2), ("running", 20), ("in_service", 47.1))
        },
    }
    hit = Happened(1, fault, "hit an instance of web", began_at=START + AT + 0.7, event=event)
    return report(cell(phase(with_faults(simulated(), hit))))


def refused() -> Report:
    """A guard of Troop's chaos refuses to hit the unit."""
    why = "the window of web is closed until 2026-11-23 08:00"
    hit = Happened(
        1, PlannedFault(AT, None, unit="web", expect=EXPECT), "hit an instance of web", outcome="REFUSED", why=why
    )
    return report(cell(phase(with_faults(simulated((1000, 0)), hit))))


def hostile() -> Report:
    """Whatever can be text is an attack."""
    one = unit()
    fault = one.cells[0].phases[0].faults[0]
    assert fault.windows.during
    assert fault.event
    during = changed(fault.windows.during, errors={HOSTILE: 7})
    attacked = changed(
        fault,
        what=HOSTILE,
        sentence=HOSTILE,
        reasons=[HOSTILE],
        verdict="UNKNOWN",
        event=changed(fault.event, event_id=HOSTILE, verdict=HOSTILE),
        windows=changed(fault.windows, during=during),
    )
    point = changed(one.cells[0].phases[0], phase=HOSTILE, label=HOSTILE, faults=[attacked, attacked])
    return changed(one, cells=[changed(one.cells[0], label=HOSTILE, phases=[point, point])])


def repeated(cells: int = 5) -> Report:
    """Repetitions; one was unsteady before."""
    return report(
        *(
            cell(
                phase(with_faults(simulated((AT, 9 + seed / 2), seed=seed, before=0.9 if seed == 3 else 1.0))),
                number=seed,
                repetition=seed,
            )
            for seed in range(1, cells + 1)
        )
    )


def searched() -> Report:
    """A search for the largest rate that survives a loss: the last point breaks the expectation."""
    points = []
    for number, (rate, lasts) in enumerate(((100, 5), (200, 10), (400, 50)), 1):
        document = with_faults(simulated((AT, lasts), seed=number))
        label = {"label": f"rate={rate}", "parameters": {"rate": rate}}
        points.append(phase(document, point=number, **label))
    answer = Search(
        phase="measure",
        parameter="rate",
        outcome="BRACKETED",
        largest=200,
        smallest=400,
        points=3,
        most=8,
        text="the largest rate that holds the limits is 200; 400 does not hold them",
    )
    return report(cell(*points, searches=[answer], verdict="PASSED"))


def sides() -> tuple[list[Cell], list[Cell]]:
    """Two runs: the second is hit earlier, and is not back in time."""
    later = with_faults(simulated((50, 25), seed=9), stopped(50))
    return repeated(3).cells, report(cell(phase(later))).cells
