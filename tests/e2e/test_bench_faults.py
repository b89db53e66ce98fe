"""What goes wrong on nodes: the cell ends with the reason, what the node had to say is kept, and nothing is left."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.benches import LONG, Bench, assert_nothing_left
from tests.e2e.conftest import eventually

CELL = "cell#c001"


@dataclass(frozen=True)
class Fault:
    """What happens on one of the nodes of a role (see benches.py), and what is to be said of it.

    Attributes:
        status: the cell's.
        words: all in the cell's reason.
        log: below which prefix of the cell there is something, and what.
        late: what is given up only after minutes, which are not to be waited out.
        orders: to its functions, see interference.py.
    """

    role: str
    status: str
    words: tuple[str, ...]
    log: tuple[str, str] | None = None
    late: Callable[[Bench, str], None] | None = None
    orders: Mapping[str, Any] | None = None


def _boot_takes_too_long(bench: Bench, run: str) -> None:
    """Once the other node has registered, and this one has said on its console why it will not."""
    eventually(lambda: bench.objects(run, "nodes/") or None, LONG)
    bench.backdate(run, CELL, "phases.boot")


def _all_have_reported(bench: Bench, run: str) -> None:
    """A check between the two reports would replace the first node, and end the cell for the second alone: INVALID."""
    eventually(lambda: len(bench.objects(run, "nodes/")) == 2 or None, LONG)
    bench.let_go(run)


def _phase_takes_too_long(bench: Bench, run: str) -> None:
    """Once all have passed the barrier, the phase has begun an hour ago."""
    eventually(lambda: bench.objects(run, "phases/measure/") or None, LONG)
    bench.rewrite(run, "barriers/measure.json", released_at=-3600)


FAULTS = [
    Fault(
        "failing",
        "FAILED",
        ("measure.sh failed on 1 node", "exit code 1", "simulated failure"),
        log=("output/measure/", "simulated failure"),
    ),
    Fault(
        "mute",
        "INVALID",
        ("not all registered", "output/boot/"),
        log=("output/boot/", "cannot reach S3"),
        late=_boot_takes_too_long,
    ),
    Fault(
        "hopeless",
        "FAILED",
        ("2 nodes could not start", "simulated"),
        late=_all_have_reported,
        orders={"pause": {"step": "gather", "before": ""}},
    ),
    Fault("silent", "FAILED", ("did not finish the phase measure within 120 s",), late=_phase_takes_too_long),
    Fault("dying", "INVALID", ("was lost during the phase measure",)),
]


@pytest.fixture(scope="module")
def run_of(bench: Bench) -> Iterator[Callable[[Fault], dict[str, Any]]]:
    """What the API tells of the run with a fault, after its end; all are under way at once."""
    with ThreadPoolExecutor(len(FAULTS)) as pool:
        runs: dict[str, Future[dict[str, Any]]] = {f.role: pool.submit(_suffered, bench, f) for f in FAULTS}
        yield lambda fault: runs[fault.role].result()


def _suffered(bench: Bench, fault: Fault) -> dict[str, Any]:
    run = bench.start(f"fault-{fault.role}", {fault.role: 2}, fault.orders)
    if fault.late:
        fault.late(bench, run)
    return bench.ended(run)


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.role for fault in FAULTS])
def test_a_fault_ends_the_cell_with_its_reason(
    bench: Bench, run_of: Callable[[Fault], dict[str, Any]], fault: Fault
) -> None:
    detail = run_of(fault)
    (cell,) = detail["cells"]
    assert (cell["status"], cell["results"]) == (fault.status, None)
    assert [word for word in fault.words if word not in cell["reason"]] == [], cell["reason"]
    assert detail["run"]["status"] == "FAILED"
    assert cell["reason"][:100] in detail["run"]["reason"]
    assert bench.execution(detail["run"]["run"])["status"] == "FAILED"
    assert_nothing_left(bench, detail["run"]["run"])


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.log], ids=[f.role for f in FAULTS if f.log])
def test_log_of_a_node_is_stored(bench: Bench, run_of: Callable[[Fault], dict[str, Any]], fault: Fault) -> None:
    detail = run_of(fault)
    assert fault.log is not None
    prefix, words = fault.log
    nodes = {one["name"] for one in detail["resources"] if one["kind"] == "instance"}
    objects = bench.objects(detail["run"]["run"], prefix)
    logs = {name.removesuffix(".log.gz"): gzip.decompress(body).decode() for name, body in objects.items()}
    assert logs.keys() <= nodes
    assert any(words in text for text in logs.values()), logs
