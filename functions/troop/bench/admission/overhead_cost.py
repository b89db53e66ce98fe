"""Estimates the cost of Troop's own AWS calls for one cell, with list prices of us-east-1."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from troop.bench.definition.definition import Benchmark
from troop.bench.measuring.poll_waits import LONGEST_WAIT, wait
from troop.measure.live import INTERVAL_SECONDS

TRANSITION = Decimal("0.000025")
CALL = Decimal("0.0000002")
GB_SECOND = Decimal("0.0000133334")
WRITE_UNIT, READ_UNIT = Decimal("0.000000625"), Decimal("0.000000125")
PUT, GET = Decimal("0.000005"), Decimal("0.0000004")
"""Prices in USD of Step Functions, Lambda (arm64), DynamoDB and S3, see docs/background/costs.md."""

AROUND_TRANSITIONS, AROUND_CALLS = 60, 20
"""Transitions and calls of launch, collect and teardown, which do not depend on a cell's duration."""

CALLS_A_ROUND = 3
"""Transitions of one poll: the wait, the task and the choice."""

SECONDS_A_CALL = Decimal("0.7")
"""GB-seconds of a call, of functions with at most 1 GB. Most calls take less; merging results of hundreds of nodes
takes more.
"""

AROUND_WRITES, WRITES_A_NODE = 120, 24
"""Write units: transactions count twice; a node's instance and volume are written when seen and when gone."""

READS_A_ROUND = 20
PUTS_A_CELL, PUTS_A_NODE, PUTS_A_NODE_AND_PHASE = 20, 1, 2
PUTS_A_VICTIM, LOOKS_A_FAULT = 3, 2
"""What a node uploads about a planned fault, and polls of the workflow around it."""
GETS_A_NODE, NODE_LOOKS = 20, Decimal("0.2")
"""Objects that a node reads at boot, and its polls of a barrier per second."""

CALLS_A_MERGE, WRITES_A_MERGE, READS_A_MERGE, PUTS_A_MERGE, GETS_A_MERGE = 1, 2, 10, 2, 3
"""One viewer's request that merges running summaries: a claim; the run and its cells; the list of the summaries and the
merge; the merge before, the cell's definition and roster. Besides, each node uploads a summary, and the merge reads it.
"""

REPORTS_HOUR = 60 * (PUT + GET) + 360 * GET
"""Price in USD of the reports of one watched node for an hour, which the workflow reads, and of its looks for orders
every 10 seconds.
"""

API_REQUEST = Decimal("0.0000035")
"""Price in USD of a request to the API."""


def overhead_cost(benchmark: Benchmark, boot: int, phases: list[int], measured: int = 0) -> Decimal:
    """Computes the cost of Troop's calls for one cell, in USD.

    Args:
        boot: seconds until all nodes are ready.
        phases: seconds of each phase.
        measured: seconds of the measured phases, in which nodes upload running summaries, and one viewer watches.
    """
    faults = [fault for step in benchmark.steps for fault in step.phase.faults]
    looks = sum(_polls(seconds) for seconds in (boot, *phases)) + LOOKS_A_FAULT * len(faults)
    nodes, seconds = benchmark.nodes, boot + sum(phases)
    transitions = AROUND_TRANSITIONS + CALLS_A_ROUND * looks
    calls = AROUND_CALLS + looks
    puts = PUTS_A_CELL + nodes * (PUTS_A_NODE + PUTS_A_NODE_AND_PHASE * len(phases))
    puts += PUTS_A_VICTIM * sum(fault.count or (nodes if fault.zone else 1) for fault in faults)
    gets = nodes * (GETS_A_NODE + NODE_LOOKS * seconds) + nodes * len(phases)
    merges = -(-measured // INTERVAL_SECONDS)
    calls += CALLS_A_MERGE * merges
    puts += merges * (nodes + PUTS_A_MERGE)
    gets += merges * (nodes + GETS_A_MERGE)
    return (
        transitions * TRANSITION
        + calls * (CALL + SECONDS_A_CALL * GB_SECOND)
        + (AROUND_WRITES + WRITES_A_NODE * nodes + WRITES_A_MERGE * merges) * WRITE_UNIT
        + (READS_A_ROUND * looks + READS_A_MERGE * merges) * READ_UNIT
        + merges * API_REQUEST
        + puts * PUT
        + gets * GET
    )


def _polls(seconds: int) -> int:
    """Returns how often the workflow polls something that takes ``seconds``."""
    return sum(1 for _ in _moments(seconds))


def _moments(seconds: int) -> Iterator[int]:
    elapsed = 0
    while elapsed < seconds:
        pause = wait(elapsed)
        if pause == LONGEST_WAIT:  # all further waits are the same
            yield from range(elapsed, seconds, LONGEST_WAIT)
            return
        elapsed += pause
        yield elapsed
