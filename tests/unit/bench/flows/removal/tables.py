"""Records of runs, as they are in the table ``Runs``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from troop.bench.records.record import Cell, Kind, Resource, Run

# Years ahead, for what moto creates has today's date: to this clock it is old.
NOON = datetime(2036, 11, 20, 12, 0, tzinfo=UTC)
RUN = "20361120-120000-00000001"
OTHER = "20361120-120000-00000002"


def a_run(run: str = RUN, at: datetime = NOON, cells: int = 1) -> Run:
    return Run(
        run=run,
        name="s3-range-read",
        at=at,
        expires_at=at + timedelta(hours=2),
        requested_by="arn:aws:iam::123456789012:user/ann",
        cells=cells,
        nodes=2,
    )


def a_cell(run: str = RUN, cell: str = "c001") -> Cell:
    return Cell(run, cell)


def a_resource(name: str, kind: Kind = Kind.INSTANCE, run: str = RUN, cell: str = "c001") -> Resource:
    return Resource(run, cell, kind, name, planned_at=NOON)
