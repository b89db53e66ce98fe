"""Reads a cell's stored data for the report, and collects what a reader must know to trust its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from troop.bench import names
from troop.bench.prices import Prices
from troop.bench.record import Cell as Recorded
from troop.bench.record import CellStatus
from troop.bench.roster import Roster
from troop.bench.roster import from_document as roster_of
from troop.bench.verdicts import name_some
from troop.measure.summary import CPU
from troop.report import archive as files
from troop.report import fleets, money, trust
from troop.report.archive import Archive, DamagedError
from troop.report.document import Attempt, Cell, Finding, Interruption, Node, Phase, Separate, Step
from troop.report.fleets import Place
from troop.report.operations import operations
from troop.report.series import partial_tools, series, use
from troop.report.sources import PlannedCell, of_attempt

UNKNOWN = "UNKNOWN"
"""The status of a cell without results and without a record."""

RESULTS_FORMAT = "troop.results/1"

_DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, DamagedError)

_T = TypeVar("_T")


def cell(
    archive: Archive, planned: PlannedCell, attempts: Sequence[Recorded | str], prices: Prices | None
) -> tuple[Cell, list[Finding]]:
    """Reads a cell and the data of the attempt that counts. Damaged parts are left out and become findings.

    Args:
        attempts: at the cell, the one that counts last; their records, or only their ids.
        prices: None if unknown.
    """
    return _Reading(archive, planned, attempts, prices).cell()


class _Reading:
    """A reader of one cell."""

    def __init__(
        self, archive: Archive, planned: PlannedCell, attempts: Sequence[Recorded | str], prices: Prices | None
    ) -> None:
        self._archive, self._planned, self._prices = archive, planned, prices
        *self._earlier, last = attempts
        self._record = last if isinstance(last, Recorded) else None
        self._id = last if isinstance(last, str) else last.cell
        self._findings: list[Finding] = []

    def cell(self) -> tuple[Cell, list[Finding]]:
        record, variant = self._record, self._planned.variant
        benchmark = of_attempt(self._planned, self._id)
        results = self._results()
        roster = self._tried(self._roster, None, "fleets are shown as planned")
        there = fleets.fleets(benchmark, roster, self._prices)
        hourly = fleets.hourly(there)
        places = fleets.places(roster)
        phases = [phase for one in results or [] if (phase := self._phase(one, hourly, places))]
        status = record.status.value if record else (CellStatus.SUCCEEDED.value if results else UNKNOWN)
        cell = Cell(
            cell=self._id,
            label=variant.label,
            scale=variant.scale,
            values={key: _list(value) for key, value in variant.values.items()},
            repetition=variant.repetition,
            attempt=names.attempt_of(self._id)[1],
            order=record.order if record else None,
            earlier=[self._attempt(one) for one in self._earlier],
            status=status,
            reason=record.reason if record else None,
            steps=[Step(phase=name, at=at) for name, at in record.phases.items()] if record else [],
            fleets=there,
            interruptions=self._interruptions(self._id, results or []),
            cost=money.bill(record.cost) if record and record.cost else None,
            hourly=hourly,
            phases=phases,
        )
        return cell, [*self._findings, *trust.findings(cell)]

    def _results(self) -> list[dict[str, Any]] | None:
        """Returns the stored phases; None if there are none."""
        should = self._record is not None and self._record.status is CellStatus.SUCCEEDED
        name = f"{self._id}/{files.RESULTS}"
        try:
            document = files.document(self._archive, name)
            if document is None:
                if should:
                    self._say(f"{name} is missing although the cell SUCCEEDED: its results are lost.")
                return None
            if document.get("format") != RESULTS_FORMAT:
                raise DamagedError(f"{name} has the format {document.get('format')!r}: must be {RESULTS_FORMAT}")
            phases = document["phases"]
            if not isinstance(phases, list) or not all(isinstance(one, dict) for one in phases):
                raise DamagedError(f"{name} must have a list of phases")
            return phases
        except _DAMAGE as error:
            self._say(f"{_shown_error(error)}: the results of this cell are left out.")
            return None

    def _roster(self) -> Roster | None:
        name = f"{self._id}/{files.ROSTER}"
        document = files.document(self._archive, name)
        try:
            return None if document is None else roster_of(document)
        except _DAMAGE as error:
            raise DamagedError(f"{name} is damaged ({error!r})") from None

    def _interruptions(self, cell: str, results: Sequence[Mapping[str, Any]]) -> list[Interruption]:
        interruptions: list[Interruption] = []
        read = partial(fleets.interruptions, self._archive, cell, results, self._say)
        return self._tried(read, interruptions, "spot interruption notices are left out")

    def _attempt(self, one: Recorded | str) -> Attempt:
        if isinstance(one, str):
            return Attempt(cell=one, status=UNKNOWN, interruptions=self._interruptions(one, []))
        amount, notices = float(one.cost.amount) if one.cost else None, self._interruptions(one.cell, [])
        return Attempt(cell=one.cell, status=one.status.value, reason=one.reason, amount=amount, interruptions=notices)

    def _phase(self, document: Mapping[str, Any], hourly: float | None, places: Mapping[str, Place]) -> Phase | None:
        name = str(document.get("phase", "unnamed"))
        try:
            measured_from = document.get("measured_from")
            phase = Phase(
                phase=document["phase"],
                nodes=document["nodes"],
                measured_seconds=document["measured_seconds"],
                warm_up_seconds=document.get("warm_up_seconds") or 0,
                measured_from=None if measured_from is None else datetime.fromtimestamp(measured_from, UTC),
                operations=operations(document, hourly),
                use=use(document),
                series=series(document),
                members=_members(document["roles"], places),
                separate=[Separate.model_validate(row) for row in document.get("separate") or []],
            )
            if left_out := document.get("separate_left_out"):
                text = f"{name}: {left_out} more rows of single nodes are left out; the nodes' summaries contain them."
                self._findings.append(Finding(severity="warning", cell=self._id, text=text))
            if lacking := partial_tools(document):
                text = (
                    f"{name}: throughput over time of {name_some(lacking)} is incomplete. Some nodes have no counts by "
                    "second, because there were too many or because the tool does not report them."
                )
                self._findings.append(Finding(severity="warning", cell=self._id, text=text))
            return phase
        except _DAMAGE as error:
            self._say(f"The results of phase {name} are damaged and left out: {_shown_error(error)}.")
            return None

    def _tried(self, read: Callable[[], _T], otherwise: _T, what: str) -> _T:
        try:
            return read()
        except _DAMAGE as error:
            self._say(f"{_shown_error(error)}: {what}.")
            return otherwise

    def _say(self, text: str) -> None:
        self._findings.append(Finding(severity="error", cell=self._id, text=text))


def _members(roles: Mapping[str, Any], places: Mapping[str, Place]) -> list[Node]:
    members = []
    for role, its in roles.items():
        for node, line in sorted(its["nodes"].items(), key=lambda pair: pair[1]["rank"]):
            means, place = line.get("means") or {}, places.get(node)
            iowait = means.get("cpu_iowait")
            members.append(
                Node(
                    node=node,
                    role=role,
                    rank=line["rank"],
                    outcome=line["outcome"],
                    count=line["count"],
                    errors=line["errors"],
                    zone=place.zone if place else "",
                    purchase=line.get("purchase") or (place.purchase if place else ""),
                    cpu=_percent(means.get(name) for name in CPU),
                    iowait=None if iowait is None else iowait / 10,
                    clock_offset_seconds=line.get("clock_offset_seconds"),
                    clock_uncertainty_seconds=line.get("clock_uncertainty_seconds"),
                )
            )
    return members


def _percent(thousandths: Iterable[int | None]) -> float | None:
    total = 0
    for one in thousandths:
        if one is None:
            return None
        total += one
    return total / 10


def _list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _shown_error(error: BaseException) -> str:
    """Formats an error in one line; pydantic's have several."""
    text = str(error) if isinstance(error, DamagedError) else repr(error)
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:300] + "..."
