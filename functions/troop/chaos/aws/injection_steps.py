"""Writes the steps of lasting faults in the table ``Events``, each with a condition on what was read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from troop.chaos.aws.event_items import from_item
from troop.chaos.aws.event_table import LONGEST_NOTE, EventTable, StepRefused
from troop.chaos.events import Event, Status
from troop.chaos.injection import EndRequest, Proof
from troop.chaos.probe import Probe
from troop.shared import codec, moments
from troop.shared.aws.dynamo import typed
from troop.shared.aws.transact import ConditionFailed, transact
from troop.shared.tables import EVENT_OPEN, EVENTS_BY_OPEN

_RUNS = "#status = :running AND attribute_not_exists(#injection.#proof)"
_AS_READ = "#status = :status AND attribute_not_exists(#injection.#proof)"
_RUNNING = {":running": Status.RUNNING.value}


@dataclass(frozen=True)
class InjectionSteps:
    """The steps of lasting faults. Each returns the event as it is afterwards.

    Every step can raise StepRefused: the event is no longer as it was read. Then something else was faster, or the
    answer to this very step was lost: read the event again.
    """

    events: EventTable

    def open_ids(self, **where: str) -> list[str]:
        """Lists the ids of the events in flight with a lasting fault, in one query. The index lags slightly.

        Args:
            where: values by attribute, ``instance_id`` or ``unit``, which the events have; nothing for all events.
        """
        filters = ["attribute_exists(#injection)", *(f"#{name} = :{name}" for name in where)]
        pages = self.events.client.get_paginator("query").paginate(
            TableName=self.events.table,
            IndexName=EVENTS_BY_OPEN.name,
            KeyConditionExpression="#open = :open",
            FilterExpression=" AND ".join(filters),
            ExpressionAttributeNames={"#open": EVENTS_BY_OPEN.partition, "#injection": "injection"}
            | {f"#{name}": name for name in where},
            ExpressionAttributeValues=typed({":open": EVENT_OPEN} | {f":{name}": one for name, one in where.items()}),
            ProjectionExpression="event_id",
        )
        return [item["event_id"]["S"] for page in pages for item in page["Items"]]

    def send_probe(self, event: Event, probe: Probe) -> Event:
        """Records a probe before its request: the one before the fault while the event is CLAIMED, otherwise the next
        one after it, which is possible only when the fault's command is over. An answer that the caller does not know
        stays.
        """
        assert event.injection
        if event.status is Status.CLAIMED:
            place, last, condition = "before", event.injection.before, "#status = :claimed"
            values: dict[str, Any] = {":claimed": Status.CLAIMED.value}
        else:
            place, last, values = "after", event.injection.after, dict(_RUNNING)
            condition = f"{_RUNS} AND attribute_exists(#injection.#over_at)"
        if last:
            condition, values[":last"] = f"{condition} AND #injection.#{place}.#token = :last", last.token
            if last.answered_at is None:
                condition += f" AND attribute_not_exists(#injection.#{place}.#answered_at)"
        else:
            condition += f" AND attribute_not_exists(#injection.#{place})"
        values[":probe"] = codec.to_document(probe)
        return self._step(event, f"SET #injection.#{place} = :probe", condition, values)

    def probe_sent(self, event: Event, command_id: str) -> Event:
        """Records the command of the last probe."""
        place, probe = _last_probe(event)
        return self._step(
            event,
            f"SET #injection.#{place}.#command_id = :command",
            f"{_AS_READ} AND #injection.#{place}.#token = :token",
            {":command": command_id, ":token": probe.token, ":status": event.status.value},
        )

    def probe_answered(self, event: Event, answered: Probe) -> Event:
        """Records the answer of the last probe, or why it has none; once."""
        place, probe = _last_probe(event)
        assert answered.token == probe.token
        return self._step(
            event,
            f"SET #injection.#{place} = :probe",
            f"{_AS_READ} AND #injection.#{place}.#token = :token"
            f" AND attribute_not_exists(#injection.#{place}.#answered_at)",
            {":probe": codec.to_document(answered), ":token": probe.token, ":status": event.status.value},
        )

    def attempt(self, event: Event, now: datetime, ends_by: datetime, packages: tuple[str, ...]) -> Event:
        """Records that the request to inject is sent now. Whoever has written it may send it; nobody else ever may."""
        assert event.injection
        assert event.injection.before
        values = {
            ":running": Status.RUNNING.value,
            ":claimed": Status.CLAIMED.value,
            ":now": moments.iso(now),
            ":one": 1,
            ":ends_by": moments.iso(ends_by),
            ":packages": list(packages),
            ":token": event.injection.before.token,
        }
        names = ("status", "abort", "injection", "ends_by", "packages", "before", "token")
        part = {
            "TableName": self.events.table,
            "Key": {"event_id": {"S": event.event_id}},
            "UpdateExpression": "SET #status = :running, attempted_at = :now, attempts = :one,"
            " #injection.#ends_by = :ends_by, #injection.#packages = :packages",
            "ConditionExpression": "#status = :claimed AND attribute_not_exists(attempts)"
            " AND attribute_not_exists(#abort) AND #injection.#before.#token = :token",
            "ExpressionAttributeNames": {f"#{name}": name for name in names},
            "ExpressionAttributeValues": typed(values),
        }
        try:
            # A transaction has a token: a write whose answer is lost is not refused when the SDK repeats it.
            transact(self.events.client, [{"Update": part}], self.events.sleep)
        except ConditionFailed:
            raise StepRefused(f"{event.event_id} is no longer to be injected") from None
        injection = replace(event.injection, ends_by=ends_by, packages=packages)
        return replace(event, status=Status.RUNNING, attempted_at=now, attempts=1, injection=injection)

    def injected(self, event: Event, command_id: str) -> Event:
        """Records the command of the fault, once."""
        return self._step(
            event,
            "SET #injection.#command_id = :command",
            f"{_RUNS} AND attribute_not_exists(#injection.#command_id)",
            {":command": command_id, **_RUNNING},
        )

    def begun(self, event: Event, at: datetime) -> Event:
        """Records that the fault's command was seen to be on the instance, once."""
        return self._step(
            event,
            "SET #injection.#began_at = :at",
            f"{_RUNS} AND attribute_not_exists(#injection.#began_at)",
            {":at": moments.iso(at), **_RUNNING},
        )

    def end_requested(self, event: Event, request: EndRequest) -> Event:
        """Records that the fault is to end, once."""
        return self._step(
            event,
            "SET #injection.#end_request = :request",
            f"{_RUNS} AND attribute_not_exists(#injection.#end_request)",
            {":request": codec.to_document(request), **_RUNNING},
        )

    def over(self, event: Event, status: str, at: datetime) -> Event:
        """Records that the fault's command was seen in a final status, once."""
        return self._step(
            event,
            "SET #injection.#status = :status, #injection.#over_at = :at",
            "#status = :running AND attribute_not_exists(#injection.#over_at)",
            {":status": status, ":at": moments.iso(at), **_RUNNING},
        )

    def proven(self, event: Event, proof: Proof, detail: str) -> Event:
        """Records the proof, once; not while the instance is being terminated."""
        return self._step(
            event,
            "SET #injection.#proof = :proof, detail = :detail REMOVE #injection.#unproven",
            f"{_RUNS} AND attribute_not_exists(#injection.#repair_at)",
            {":proof": codec.to_document(proof), ":detail": detail[:LONGEST_NOTE], **_RUNNING},
        )

    def repairing(self, event: Event, now: datetime) -> Event:
        """Records that a request to terminate the instance is sent now, because the end of its fault is not proven.
        So no proof can be recorded until AWS's answer is known. The moment is that of the first request.
        """
        assert event.injection
        repairs = event.injection.repairs
        update, values = "SET #injection.#repairs = :repairs", {":repairs": repairs + 1, **_RUNNING}
        if repairs:
            condition, values[":last"] = f"{_RUNS} AND #injection.#repairs = :last", repairs
        else:
            update += ", #injection.#repair_at = :now"
            condition, values[":now"] = f"{_RUNS} AND attribute_not_exists(#injection.#repairs)", moments.iso(now)
        return self._step(event, update, condition, values)

    def ended_before(self, event: Event) -> Event:
        """Records that the instance had ended before the only request to terminate it: Troop has not terminated it."""
        assert event.injection
        return self._step(
            event,
            "REMOVE #injection.#repair_at, #injection.#repairs",
            f"{_RUNS} AND #injection.#repairs = :repairs",
            {":repairs": event.injection.repairs, **_RUNNING},
        )

    def unproven(self, event: Event, why: str, in_doubt: bool = False) -> Event:
        """Records why the instance is not terminated although its fault's time is up.

        Args:
            in_doubt: whether it may be terminated all the same, because AWS's answer to the request is not known.
        """
        assert event.injection
        update, condition = "SET #injection.#unproven = :why", _RUNS
        values = {":why": why[:LONGEST_NOTE], **_RUNNING}
        if not in_doubt and event.injection.repair_at:
            update += " REMOVE #injection.#repair_at, #injection.#repairs"
            condition += " AND #injection.#repair_at = :repair_at"
            values[":repair_at"] = moments.iso(event.injection.repair_at)
        elif not in_doubt:  # another call may be having it terminated right now
            condition += " AND attribute_not_exists(#injection.#repair_at)"
        return self._step(event, update, condition, values)

    def terminated(self, event: Event, at: datetime, detail: str, os_shutdown: bool, is_certain: bool = True) -> Event:
        """Records that AWS has accepted the request to terminate the instance.

        Args:
            is_certain: False if that follows from the end of the instance. Then a request must still be in doubt:
                another call may have learnt that the instance had ended before it.
        """
        values = {
            ":terminated": Status.TERMINATED.value,
            ":at": moments.iso(at),
            ":detail": detail[:LONGEST_NOTE],
            ":shutdown": os_shutdown,
            **_RUNNING,
        }
        return self._step(
            event,
            "SET #status = :terminated, terminated_at = :at, detail = :detail, os_shutdown = :shutdown"
            " REMOVE #injection.#unproven, #injection.#repair_at, #injection.#repairs",
            _RUNS if is_certain else f"{_RUNS} AND attribute_exists(#injection.#repair_at)",
            values,
        )

    def _step(self, event: Event, update: str, condition: str, values: dict[str, Any]) -> Event:
        return from_item(self.events.step(event, update, condition, values, ReturnValues="ALL_NEW")["Attributes"])


def _last_probe(event: Event) -> tuple[str, Probe]:
    """Returns the place and the record of the last probe."""
    assert event.injection
    place = "before" if event.status is Status.CLAIMED else "after"
    probe = event.injection.before if event.status is Status.CLAIMED else event.injection.after
    assert probe, event.event_id
    return place, probe
