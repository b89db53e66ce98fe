"""Reads the tables ``State`` and ``GroupTags``: the switch, the counters, the units' state and policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from troop.chaos.aws import stray_items
from troop.chaos.events import SCHEMA
from troop.chaos.facts import AbandonedClaim, Counts, Switch, UnitState
from troop.chaos.self_halt import SelfHalt
from troop.chaos.strays import StrayRecord
from troop.shared import codec, moments
from troop.shared.aws.dynamo import batch_get, plain, scan
from troop.shared.state_keys import DAY, EARLIER_TABLES, HIT, IN_FLIGHT, SELF_HALT, STRAYS, SWITCH, UNIT


@dataclass(frozen=True)
class DeploymentState:
    """What the table ``State`` has of the whole deployment, without its units."""

    switch: Switch
    counts: Counts
    strays: StrayRecord


@dataclass(frozen=True)
class StateView(DeploymentState):
    """The whole table ``State`` as one tick has read it.

    Attributes:
        hits: the events of the lasting faults that instances have had, by the instances' ids.
    """

    units: Mapping[str, UnitState]
    hits: Mapping[str, str]


@dataclass(frozen=True)
class StateTable:
    """Reads the table ``State``.

    Attributes:
        leashed: the setting.
    """

    client: Any
    table: str
    leashed: bool

    def view(self) -> StateView:
        """Reads everything, strongly consistent."""
        by_key = {item["key"]: item for item in scan(self.client, self.table)}
        units = {k.removeprefix(UNIT): _unit(v) for k, v in by_key.items() if k.startswith(UNIT)}
        hits = _hits(item for key, item in by_key.items() if key.startswith(HIT))
        return StateView(**vars(self._deployment(by_key)), units=units, hits=hits)

    def switch(self) -> Switch:
        return self.switch_of(self._get(SWITCH))

    def counts(self, day: date) -> Counts:
        """Reads the counters against which a claim on ``day`` is checked."""
        return Counts(
            by_day={day: int(self._get(f"{DAY}{day}").get("count", 0))},
            in_flight=int(self._get(IN_FLIGHT).get("count", 0)),
        )

    def unit_state(self, unit: str) -> UnitState:
        return _unit(self._get(UNIT + unit))

    def hits(self, instances: Sequence[str]) -> dict[str, str]:
        """Reads the events of the lasting faults that instances have had, by their ids; a call for 100 instances."""
        hits: dict[str, str] = {}
        for first in range(0, len(instances), MOST_KEYS):
            keys = [{"key": {"S": HIT + one}} for one in instances[first : first + MOST_KEYS]]
            hits |= _hits(batch_get(self.client, {self.table: keys})[self.table])
        return hits

    def deployment(self, days: Iterable[date]) -> DeploymentState:
        """Reads the switch, the counters of some days (at most 90), and stray items. One call."""
        names = [SWITCH, SELF_HALT, EARLIER_TABLES, IN_FLIGHT, STRAYS, *(f"{DAY}{day}" for day in sorted(set(days)))]
        rows = batch_get(self.client, {self.table: [{"key": {"S": name}} for name in names]})[self.table]
        return self._deployment({item["key"]: item for item in rows})

    def _deployment(self, by_key: Mapping[str, Mapping[str, Any]]) -> DeploymentState:
        return DeploymentState(
            switch=self._switch(by_key.get(SWITCH, {}), by_key.get(SELF_HALT, {}), lambda: EARLIER_TABLES in by_key),
            counts=_counts(by_key),
            strays=stray_items.from_item(by_key.get(STRAYS, {})),
        )

    def strays(self) -> StrayRecord:
        """Reads what ticks have recorded of stray items."""
        return stray_items.from_item(self._get(STRAYS))

    def self_halt(self) -> SelfHalt | None:
        """Reads the halt that the deployment has given itself; None if it has not."""
        item = self._get(SELF_HALT)
        return self_halt_of(item) if item else None

    def raw(self, key: str) -> dict[str, Any]:
        """Reads an item in DynamoDB's types; empty if there is none."""
        answer = self.client.get_item(TableName=self.table, Key={"key": {"S": key}}, ConsistentRead=True)
        item: dict[str, Any] = answer.get("Item", {})
        return item

    def switch_of(self, item: Mapping[str, Any]) -> Switch:
        """Converts the switch's item, in plain values; an empty one means the initial state. Also reads the halt that
        the deployment has given itself, and for the initial state another item.
        """
        return self._switch(item, self._get(SELF_HALT), self.knows_earlier_tables)

    def knows_earlier_tables(self) -> bool:
        """Checks whether :meth:`note_earlier_tables` has ever been called."""
        return bool(self.raw(EARLIER_TABLES))

    def note_earlier_tables(self, now: datetime) -> None:
        """Records that no table with data of an earlier deployment is undecided."""
        self.client.update_item(
            TableName=self.table,
            Key={"key": {"S": EARLIER_TABLES}},
            UpdateExpression="SET settled_at = :now, #schema = :schema",
            ExpressionAttributeNames={"#schema": "schema"},
            ExpressionAttributeValues={":now": {"S": moments.iso(now)}, ":schema": {"N": str(SCHEMA)}},
        )

    def _switch(self, item: Mapping[str, Any], itself: Mapping[str, Any], known: Callable[[], bool]) -> Switch:
        leashed = item["leashed"] if "leashed" in item else self.leashed or not known()
        halted = bool(item.get("halted", False)) or bool(itself)
        return Switch(halted=halted, leashed=bool(leashed), itself=self_halt_of(itself) if itself else None)

    def _get(self, key: str) -> dict[str, Any]:
        return plain(self.raw(key))


def _counts(by_key: Mapping[str, Mapping[str, Any]]) -> Counts:
    return Counts(
        by_day={
            date.fromisoformat(k.removeprefix(DAY)): int(v.get("count", 0))
            for k, v in by_key.items()
            if k.startswith(DAY)
        },
        in_flight=int(by_key.get(IN_FLIGHT, {}).get("count", 0)),
    )


def _hits(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {str(item["key"]).removeprefix(HIT): str(item["event_id"]) for item in items if item.get("event_id")}


def _unit(item: Mapping[str, Any]) -> UnitState:
    last, leashed, abandoned = item.get("last_day"), item.get("leashed_day"), item.get("abandoned_day")
    return UnitState(
        last_day=date.fromisoformat(last) if last else None,
        unrecovered=item.get("unrecovered"),
        # Earlier versions have written no reason: units could leave for one only.
        left_for=item.get("left_for", "unrecovered") if item.get("unrecovered") else None,
        last_event=item.get("last_event"),
        leashed_day=date.fromisoformat(leashed) if leashed else None,
        abandoned=AbandonedClaim(
            date.fromisoformat(abandoned), item.get("abandoned_event", ""), item.get("abandoned_why", "")
        )
        if abandoned
        else None,
    )


def self_halt_of(item: Mapping[str, Any]) -> SelfHalt:
    """Converts the item. It halts as long as it exists, also if somebody has edited it."""
    try:
        return codec.from_document(SelfHalt, item)
    except codec.DocumentError as error:
        return SelfHalt(
            datetime(1970, 1, 1, tzinfo=UTC), f"the item {SELF_HALT} of the table State is damaged: {error}"
        )


MOST_KEYS = 100
"""The most items that DynamoDB reads in one call of BatchGetItem."""

LONGEST_KEY = 2048
"""The most bytes of a partition key; DynamoDB refuses to start after a longer one."""


class BadUnitKey(ValueError):
    """The unit cannot be the key of an item."""


@dataclass(frozen=True)
class PolicyTable:
    """Reads the table ``GroupTags``. People edit the items, so their contents are not checked yet."""

    client: Any
    table: str

    def all(self) -> dict[str, dict[str, Any]]:
        """Reads the items by unit, strongly consistent."""
        return {item["unit"]: item for item in scan(self.client, self.table)}

    def page(self, limit: int, after: str | None = None) -> tuple[list[dict[str, Any]], str | None]:
        """Reads at most ``limit`` items, and returns them with the unit after which the next page begins; None at the
        end. One read.

        Args:
            after: the last unit of the previous page.

        Raises:
            BadUnitKey: no item can have that key.
        """
        if after is not None and not 0 < len(after.encode()) <= LONGEST_KEY:
            raise BadUnitKey(after[:80])
        start = {"ExclusiveStartKey": {"unit": {"S": after}}} if after is not None else {}
        answer = self.client.scan(TableName=self.table, Limit=limit, ConsistentRead=True, **start)
        last = answer.get("LastEvaluatedKey")
        return list(map(plain, answer["Items"])), str(last["unit"]["S"]) if last else None

    def raw(self, unit: str) -> dict[str, Any]:
        """Reads a unit's item in DynamoDB's types (which a claim compares exactly); empty if there is none."""
        answer = self.client.get_item(TableName=self.table, Key={"unit": {"S": unit}}, ConsistentRead=True)
        item: dict[str, Any] = answer.get("Item", {})
        return item


def read_units(
    policies: PolicyTable, state: StateTable, units: Iterable[str]
) -> tuple[dict[str, dict[str, Any]], dict[str, UnitState]]:
    """Reads the existing items in ``GroupTags`` and the stored states of at most 50 units, in one call for both."""
    keys = sorted(set(units))
    rows_by_table = batch_get(
        state.client,
        {
            policies.table: [{"unit": {"S": unit}} for unit in keys],
            state.table: [{"key": {"S": UNIT + unit}} for unit in keys],
        },
    )
    items = {item["unit"]: item for item in rows_by_table[policies.table]}
    return items, {item["key"].removeprefix(UNIT): _unit(item) for item in rows_by_table[state.table]}
