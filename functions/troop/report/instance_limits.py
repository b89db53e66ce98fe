"""Finds where nodes met a limit of their instances: bursts above a baseline, exceeded allowances, one busy core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from troop.bench.fleets.type_facts import GBIT, MB, TypeFacts
from troop.bench.measuring.verdicts import name_some
from troop.measure.summary import EBS_EXCEEDED, NETWORK_EXCEEDED
from troop.report.document import Cell, Finding, Node, Phase
from troop.report.processors import CORE_FULL
from troop.shared import formatting

MEAN_IDLE = 70.0
"""Percent of all processors below which the mean hides a full core, which is a limit."""

RETRANSMITTED, FEWEST_RETRANSMITS = 0.001, 100
"""The share of TCP segments, and their number, from which retransmits explain slow operations."""

EBS_SHARE = 0.01
"""The share of the measured time beyond a limit of EBS from which it is a finding."""

_PACKETS = dict(
    zip(
        NETWORK_EXCEEDED,
        ("inbound bandwidth", "outbound bandwidth", "packet rate", "tracked connections", "link-local packets"),
        strict=True,
    )
)
_EBS = dict(
    zip(
        EBS_EXCEEDED,
        ("IOPS of a volume", "throughput of a volume", "EBS IOPS of the instance", "EBS throughput of the instance"),
        strict=True,
    )
)


@dataclass(frozen=True)
class _Baseline:
    """One figure with a baseline: its key and name, unit, value of a node in this unit, baseline and peak of a type."""

    key: str
    name: str
    unit: str
    value: Callable[[Node], float | None]
    baseline: Callable[[TypeFacts], float | None]
    peak: Callable[[TypeFacts], float | None]


def _in(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


_BASELINES = (
    _Baseline(
        "network_in",
        "inbound network traffic",
        "Gbit/s",
        lambda node: _in(node.network_received_bytes, GBIT),
        lambda facts: facts.network_gbps,
        lambda facts: facts.network_peak_gbps,
    ),
    _Baseline(
        "network_out",
        "outbound network traffic",
        "Gbit/s",
        lambda node: _in(node.network_sent_bytes, GBIT),
        lambda facts: facts.network_gbps,
        lambda facts: facts.network_peak_gbps,
    ),
    _Baseline(
        "ebs_bandwidth",
        "EBS bandwidth",
        "MB/s",
        lambda node: _in(node.ebs_bytes, MB),
        lambda facts: facts.ebs_mbps,
        lambda facts: facts.ebs_peak_mbps,
    ),
    _Baseline(
        "ebs_iops",
        "EBS operations",
        "IOPS",
        lambda node: node.ebs_operations,
        lambda facts: facts.ebs_iops,
        lambda facts: facts.ebs_peak_iops,
    ),
)


def bursts(members: Sequence[Node], types: Mapping[str, TypeFacts]) -> dict[str, list[str]]:
    """Returns by role what a node moved beyond the baseline of its type."""
    by_role: dict[str, list[str]] = {}
    for baseline in _BASELINES:
        for node in members:
            if _beyond(baseline, node, types) and baseline.key not in by_role.setdefault(node.role, []):
                by_role[node.role].append(baseline.key)
    return by_role


def _beyond(baseline: _Baseline, node: Node, types: Mapping[str, TypeFacts]) -> tuple[float, float] | None:
    """Returns the value and the baseline if the value is above it."""
    facts = types.get(node.instance_type)
    value, limit = baseline.value(node), baseline.baseline(facts) if facts else None
    return (value, limit) if value is not None and limit is not None and value > limit else None


def findings(cell: Cell, types: Mapping[str, TypeFacts]) -> Iterator[Finding]:
    """Yields the findings of one cell."""
    for phase in cell.phases:
        if not phase.measured_seconds:
            continue
        for role in dict.fromkeys(node.role for node in phase.members):
            members = [node for node in phase.members if node.role == role]
            for cause, texts in _role_findings(phase, members, types):
                for text in texts:
                    sentence = f"{phase.title}, {role}: {text}"
                    yield Finding(severity="warning", cell=cell.cell, cause=cause, text=sentence)


def _role_findings(
    phase: Phase, members: Sequence[Node], types: Mapping[str, TypeFacts]
) -> Iterator[tuple[str, Iterator[str]]]:
    """Yields sentences by their cause."""
    yield "Traffic was a burst above the baseline", _bursts(members, types)
    yield "Packets exceeded an allowance of the network", _packets(members)
    yield "The demand exceeded a limit of EBS", _volumes(members, phase.measured_seconds)
    if not phase.faults:  # a node that does not answer makes others send again
        yield "Many TCP retransmits", _retransmits(members)
    yield "One core was busy", _cores(members)


def _bursts(members: Sequence[Node], types: Mapping[str, TypeFacts]) -> Iterator[str]:
    for baseline in _BASELINES:
        above = [(*pair, node) for node in members if (pair := _beyond(baseline, node, types))]
        if above:
            value, limit, node = max(above, key=lambda one: one[0] / one[1])
            every = len(above) == len(members)
            many = "every node" if every else f"{len(above):,} of {formatting.counted(len(members), 'node')}"
            yield (
                f"{baseline.name} was a burst on {many}: up to {formatting.plain(value)} {baseline.unit}, and the "
                f"baseline of {node.instance_type} is {formatting.plain(limit)}. EC2 allows it only for a while: "
                "measure longer, or use larger instances."
            )


def _packets(members: Sequence[Node]) -> Iterator[str]:
    counts = {name: sum(node.exceeded.get(name, 0) for node in members) for name in NETWORK_EXCEEDED}
    if any(counts.values()):
        affected = [node.node for node in members if any(name in node.exceeded for name in NETWORK_EXCEEDED)]
        texts = ", ".join(f"{count:,} for {_PACKETS[name]}" for name, count in counts.items() if count)
        yield (
            f"EC2 queued or dropped packets of {name_some(affected)} beyond the allowances of the instance ({texts}). "
            "The network limits the result: use larger instances, or more of them."
        )


def _volumes(members: Sequence[Node], seconds: float) -> Iterator[str]:
    worst = {name: max(node.exceeded.get(name, 0) for node in members) / 1e6 for name in EBS_EXCEEDED}
    known = {name: most for name, most in worst.items() if most >= EBS_SHARE * seconds}
    if known:
        amounts = ", ".join(f"{_EBS[name]} for {most:,.0f} s" for name, most in known.items())
        yield (
            f"the demand exceeded a limit of EBS, on the most affected node: {amounts} of {seconds:,.0f} s measured "
            "(summed over its volumes). Provision more, or use larger instances."
        )


def _retransmits(members: Sequence[Node]) -> Iterator[str]:
    high = [
        node
        for node in members
        if (node.retransmits or 0) >= FEWEST_RETRANSMITS and (node.retransmit_share or 0) > RETRANSMITTED
    ]
    if high:
        worst = max(high, key=lambda node: node.retransmit_share or 0)
        yield (
            f"many TCP retransmits on {name_some(node.node for node in high)}: up to {worst.retransmit_share or 0:.2%} "
            f"of the segments ({worst.node}). Each delays an operation, often by more than 200 ms."
        )


def _cores(members: Sequence[Node]) -> Iterator[str]:
    hot = [
        node
        for node in members
        if node.busiest is not None and node.cpu is not None and node.busiest > CORE_FULL and node.cpu < MEAN_IDLE
    ]
    if hot:
        worst = max(hot, key=lambda node: node.busiest or 0)
        yield (
            f"one core was busy for {worst.busiest:.0f} % of the time on {name_some(node.node for node in hot)}, and "
            f"all cores together for {worst.cpu:.0f} %. A single thread or a queue of interrupts may limit it."
        )
