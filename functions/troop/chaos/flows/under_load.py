"""Serves benchmarks that hit a unit while they load it: requests the hit, and later tells what has become of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from troop.chaos.aws.event_table import EventTable
from troop.chaos.aws.unit_groups import read_members
from troop.chaos.events import OPEN, WITHOUT_TERMINATION, Event
from troop.chaos.flows.objections import LASTING
from troop.chaos.flows.on_demand import NotAllowedError, OnDemand, RefusedError
from troop.chaos.guards import Refusal, pass_guards
from troop.chaos.on_demand import not_under_load
from troop.chaos.stages import Stages
from troop.shared.choice import parse_choice
from troop.shared.errors import MissingEventError

DONE, REFUSED = "DONE", "REFUSED"
"""Outcomes: an instance is claimed or was hit; nothing was hit."""


@dataclass(frozen=True)
class UnderLoad:
    """Requests hits for benchmarks. Its answers are documents with moments in seconds since 1970.

    A document has ``outcome``, ``why`` (None if done) and ``event`` (None without one). An event has ``event_id``,
    ``status``, ``verdict``, ``group``, ``instance_id``, ``hit_at``, ``terminated_at``, ``recovery_seconds`` and
    ``stages``, each None until it is known, and ``over`` if none of them will change.
    """

    on_demand: OnDemand
    events: EventTable

    def request(
        self,
        run: str,
        cell: str,
        step: str,
        number: int,
        unit: str,
        requested_at: datetime,
        latest: datetime,
        fault: str | None,
    ) -> dict[str, Any]:
        """Claims an instance of the unit. The same place in a run always has the same event.

        Args:
            number: the planned fault's number in its step.
            requested_at: when the caller asked, by its clock.
            latest: after this moment, it claims nothing.
            fault: one fault with its parameters; None for one that the unit's policy allows.

        Raises:
            ClockError: the clocks of caller and function disagree.
            ClientError: AWS refused; a retry is safe.
        """
        choice = None if fault is None else parse_choice(fault)
        # Callers of the API choose keys without slashes, so no other request has this one.
        key = f"bench/{run}/{cell}/{step}/{number}"
        try:
            requested = self.on_demand.request_under_load(unit, key, requested_at, latest, run, choice)
        except (NotAllowedError, RefusedError) as refused:
            return {"outcome": REFUSED, "why": str(refused), "event": None}
        return _document(requested.event)

    def objections(self, units: Sequence[str]) -> dict[str, str]:
        """Returns a sentence for each unit that benchmarks may not hit, until somebody changes that.

        Raises:
            ClientError: AWS refused; a retry is safe.
        """
        reader, now, whys = self.on_demand.reader, self.on_demand.clock(), {}
        for unit in units:
            members = read_members(reader.autoscaling, unit, reader.settings.units)
            if not members:
                whys[unit] = "no Auto Scaling group belongs to it"
                continue
            facts = reader.read_participation(unit, members, members, reader.policies.raw(unit), now)
            passed = pass_guards(facts, (*LASTING, not_under_load))
            if isinstance(passed, Refusal):
                whys[unit] = passed.detail
        return whys

    def read(self, event_id: str) -> dict[str, Any]:
        """Reads an event again: its status, its recovery and its verdict.

        Raises:
            MissingEventError: there is no such event.
        """
        event = self.events.get(event_id)
        if event is None:
            raise MissingEventError(event_id)
        return _document(event)


def _document(event: Event) -> dict[str, Any]:
    is_refused = event.status in WITHOUT_TERMINATION
    return {
        "outcome": REFUSED if is_refused else DONE,
        "why": (event.detail or f"the event is {event.status}") if is_refused else None,
        "event": {
            "event_id": event.event_id,
            "status": event.status.value,
            "verdict": event.verdict.value.value if event.verdict else None,
            "group": event.group,
            "instance_id": event.instance_id,
            "hit_at": _seconds(event.hit_at),
            "terminated_at": _seconds(event.terminated_at),
            "recovery_seconds": event.recovery_seconds,
            "stages": _stages(event.stages) if event.stages else None,
            "over": event.status not in OPEN and not event.awaits_verdict,
        },
    }


def _stages(stages: Stages) -> dict[str, float | None]:
    """Returns the moments of a recovery; ``healthy`` is that in the last traffic source, None if one is not known."""
    healthy = [source.at for source in stages.healthy if source.at]
    return {
        "noticed": _seconds(stages.noticed),
        "launched": _seconds(stages.launched),
        "running": _seconds(stages.running),
        "in_service": _seconds(stages.in_service),
        "healthy": _seconds(max(healthy)) if healthy and len(healthy) == len(stages.healthy) else None,
    }


def _seconds(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment else None
