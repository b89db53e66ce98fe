"""Makes the changes that people request through the API: to a unit's policy, and to the switch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from troop.chaos.aws.change_writer import ChangedMeanwhile, ChangeWriter
from troop.chaos.aws.state_table import PolicyTable, StateTable
from troop.chaos.changes import Author, halt_of, version_of
from troop.chaos.earlier_tables import EarlierTable, listed, ways_out, with_data
from troop.chaos.facts import Switch
from troop.chaos.flows.initial_switch import InitialSwitch
from troop.shared import moments
from troop.shared.aws.dynamo import plain
from troop.shared.errors import TroopError
from troop.shared.state_keys import BENCH_SWITCHES, HALT_ID, SELF_HALT, SWITCH

TRIES = 5
"""The number of tries of a change while others change the same item."""


class ConflictError(TroopError):
    """Someone else has changed the item. The message says what to do."""


class EarlierTablesError(TroopError):
    """Nobody has decided about tables with data of an earlier deployment. The message says how."""

    def __init__(self, tables: Sequence[EarlierTable]) -> None:
        super().__init__(
            f"chaos stays leashed: this deployment does not use tables with data of an earlier one of this name: "
            f"{listed(tables)}. Their opt-outs and their switch have no effect here. {ways_out(tables)}"
        )


@dataclass(frozen=True)
class SwitchView:
    """The whole switch, and the author of its last change; None and "" if there is none yet.

    Attributes:
        switch: the switch of chaos.
        off: whether a part of benchmarks is off, by :data:`~troop.shared.state_keys.BENCH_SWITCHES`.
        halt: the halt by people, see :func:`~troop.chaos.changes.halt_of`.
        halt_id: the id of that halt, if it is of many deployments.
    """

    switch: Switch
    off: Mapping[str, bool]
    changed_at: datetime | None
    changed_by: str
    reason: str
    halt: Mapping[str, Any] | None
    halt_id: str | None


@dataclass(frozen=True)
class Editor:
    """Changes stored items, and records the author."""

    policies: PolicyTable
    state: StateTable
    writer: ChangeWriter
    initial: InitialSwitch
    clock: Callable[[], datetime]

    def change_policy(
        self,
        unit: str,
        changes: Mapping[str, Any],
        put_back: bool,
        version: int | None,
        author: Author,
        owner: str = "",
    ) -> None:
        """Changes a unit's policy.

        Args:
            changes: values as they are stored, by key; None removes.
            put_back: whether to return a unit that has left chaos.
            version: the version that the change is based on; None for any.
            owner: the unit's owner before the change, for the record.

        Raises:
            ConflictError: the version differs, or others keep changing the unit.
        """
        for _ in range(TRIES):
            item = self.policies.raw(unit)
            stored = version_of(plain(item))
            if version is not None and version != stored:
                raise ConflictError(
                    f"version is {version}, but unit {unit!r} has {stored}: get it, and decide again what to change"
                )
            left_by = self.state.unit_state(unit).unrecovered if put_back else None
            try:
                self.writer.write_policy(unit, item, changes, left_by, author, self.clock(), owner)
                return
            except ChangedMeanwhile:
                continue
        raise ConflictError(f"others are changing unit {unit!r} at the same time: get it, and try again")

    def switch(self) -> SwitchView:
        """Returns the state of the switch. Before the first tick, it finds out whether the settings decide."""
        self.initial.settle()
        item = plain(self.state.raw(SWITCH))
        halt = halt_of(item)
        return SwitchView(
            switch=self.state.switch_of(item),
            off={key: bool(item.get(key, False)) for key in BENCH_SWITCHES},
            changed_at=_moment(item.get("changed_at")),
            changed_by=str(item.get("changed_by") or ""),
            reason=str(item.get("reason") or ""),
            halt=halt and {**halt, "at": _moment(halt["at"])},
            halt_id=str(item.get(HALT_ID) or "") or None if halt else None,
        )

    def change_switch(self, changes: Mapping[str, Any], author: Author, halt_id: str | None = None) -> None:
        """Changes the switch. To resume also ends the halt that the deployment has given itself.

        Args:
            changes: ``halted``, ``leashed`` and the keys of benchmarks, each only if it changes, and ``reason``; None
                removes a reason.
            halt_id: of a halt of many deployments, which leaves every other halt as it is: a deployment that is halted
                stays so as it is, and only a halt with this id ends. None for this deployment alone: the change then
                replaces or ends any halt.

        Raises:
            EarlierTablesError: it would unleash a deployment beside tables with data of an earlier one.
            ConflictError: others keep changing the switch, or it would end another halt than that of the id.
        """
        unleashes = changes.get("leashed") is False and self.switch().switch.leashed
        if unleashes and (tables := with_data(self.initial.undecided())):
            raise EarlierTablesError(tables)
        resumes = changes.get("halted") is False
        if "halted" in changes:
            changes = {**changes, HALT_ID: None if resumes else halt_id}
        for _ in range(TRIES):
            self_halt = self.state.raw(SELF_HALT) if halt_id or resumes else {}
            switch = self.state.raw(SWITCH)
            if halt_id and _is_settled(plain(switch), bool(self_halt), resumes, halt_id):
                return
            ended, by_id = self_halt if resumes else {}, halt_id is not None
            try:
                self.writer.write_switch(switch, changes, ended, author, self.clock(), unless_itself=by_id)
                return
            except ChangedMeanwhile:
                continue
        raise ConflictError("others are changing the switch at the same time: get it, and try again")


def _is_settled(switch: Mapping[str, Any], itself: bool, resumes: bool, halt_id: str) -> bool:
    """Checks whether a change of the halt with an id has nothing to do.

    Args:
        switch: the item.
        itself: whether the deployment has halted itself.
        resumes: whether to resume, rather than to halt.

    Raises:
        ConflictError: to resume would end another halt.
    """
    halted = bool(switch.get("halted"))
    if not resumes:
        return halted or itself
    if itself:
        raise ConflictError("the deployment has halted itself: GET /switch says why")
    if halted and switch.get(HALT_ID) != halt_id:
        raise ConflictError(f"the deployment is halted, but not by {halt_id}: GET /switch says by whom")
    return not halted


def _moment(text: Any) -> datetime | None:
    """Parses a moment from an item, which people may have edited."""
    try:
        return moments.parse(text) if isinstance(text, str) else None
    except (ValueError, OverflowError):
        return None
