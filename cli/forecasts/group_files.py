"""Reads groups for a forecast from a YAML or JSON list, and names every mistake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.shared import yaml_files
from cli.shared.errors import CliError, Exit
from troop.chaos.change_calendars import assumed_open
from troop.chaos.facts import Account, Counts, Switch
from troop.chaos.groups import HEALTHY, IN_SERVICE, Group, Instance
from troop.chaos.inside import Inside, consent_of
from troop.chaos.units import unit_of
from troop.shared import values
from troop.shared.settings import Settings

LIFECYCLES = (
    *("Pending", "Pending:Wait", "Pending:Proceed", "Quarantined", "InService"),
    *("Terminating", "Terminating:Wait", "Terminating:Proceed", "Terminating:Retained", "Terminated"),
    *("Detaching", "Detached", "EnteringStandby", "Standby", "ReplacingRootVolume", "ReplacingRootVolume:Wait"),
    *("ReplacingRootVolume:Proceed", "RootVolumeReplaced"),
    *("Warmed:Pending", "Warmed:Pending:Wait", "Warmed:Pending:Proceed", "Warmed:Pending:Retained"),
    *("Warmed:Terminating", "Warmed:Terminating:Wait", "Warmed:Terminating:Proceed", "Warmed:Terminating:Retained"),
    *("Warmed:Terminated", "Warmed:Stopped", "Warmed:Running", "Warmed:Hibernated"),
)
"""The lifecycle states of Auto Scaling."""

_MOST = 10_000
_SHOWN = 10
"""Mistakes that one message names."""


@dataclass(frozen=True)
class TriedGroups:
    """The groups of a file, and the policy of each (an item of ``GroupTags``)."""

    name: str
    groups: tuple[Group, ...]
    policies: Mapping[str, Mapping[str, Any]]
    protected: frozenset[str]

    def account(self, settings: Settings) -> Account:
        """Returns an account with these groups, no history, nothing in flight, neither halted nor leashed.

        Raises:
            CliError: USAGE: two groups of a unit give it different policies.
        """
        givers: dict[str, str] = {}
        items: dict[str, Mapping[str, Any]] = {}
        for group in self.groups:
            policy = self.policies.get(group.name)
            if policy is None:
                continue
            unit = unit_of(group.name, group.tags, settings.units)
            if items.setdefault(unit, policy) != policy:
                raise CliError(
                    Exit.USAGE,
                    f"{self.name}: {givers[unit]} and {group.name} give their unit {unit} different policies: "
                    "give the policy once, or the same one twice",
                )
            givers.setdefault(unit, group.name)
        changes = assumed_open(settings.calendars)
        running = Switch(halted=False, leashed=False)
        consents = {i.instance_id: consent for g in self.groups if (consent := consent_of(g)) for i in g.instances}
        return Account(
            self.groups, items, {}, running, Counts(), self.protected, changes=changes, inside=Inside(consents)
        )


def load(file: Path) -> TriedGroups:
    """Reads the groups of a file.

    Raises:
        CliError: USAGE; for each mistake the file, entry, key, value and what is allowed.
    """
    raw = yaml_files.parse(yaml_files.read(file), str(file))
    if not isinstance(raw, list):
        raise CliError(Exit.USAGE, f"{file}: must be a list of groups, each with {', '.join(_GROUP)}")
    reader = _Reader()
    for number, entry in enumerate(raw, 1):
        reader.group(f"entry {number}", entry)
    if reader.problems:
        shown, more = reader.problems[:_SHOWN], len(reader.problems) - _SHOWN
        raise CliError(Exit.USAGE, f"{file}: " + "; ".join(shown) + (f"; and {more} more" if more > 0 else ""))
    return TriedGroups(str(file), tuple(reader.groups), reader.policies, frozenset(reader.protected))


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise values.BadValue("a list")
    return value


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise values.BadValue("a mapping of text to values")
    return value


def _tags(value: Any) -> dict[str, str]:
    """Converts the values of tags to text: numbers, true and false as YAML spells them, null as the empty text."""
    tags = {}
    for key, tag in _mapping(value).items():
        if isinstance(tag, (list, dict)):
            raise values.BadValue(f"a mapping of tags to text, which {key} is not")
        tags[key] = str(tag).lower() if isinstance(tag, bool) else "" if tag is None else str(tag)
    return tags


def _health(value: Any) -> str:
    return str(values.one_of(HEALTHY, "Unhealthy")(str(value).capitalize()))


_GROUP: Mapping[str, Callable[[Any], Any]] = {
    "name": values.text(255),
    "desired": values.whole(0, _MOST),
    "instances": _list,
    "tags": _tags,
    "policy": _mapping,
    "suspended_processes": values.names,
}
_INSTANCE: Mapping[str, Callable[[Any], Any]] = {
    "id": values.text(64),
    "lifecycle": values.one_of(*LIFECYCLES),
    "health": _health,
    "zone": values.text(64),
    "weight": values.whole(1, 999),
    "scale_in_protected": values.boolean,
    "protected": values.boolean,
}


@dataclass
class _Reader:
    problems: list[str] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    policies: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    protected: set[str] = field(default_factory=set)
    _names: Counter[str] = field(default_factory=Counter)
    _ids: Counter[str] = field(default_factory=Counter)

    def group(self, where: str, entry: Any) -> None:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            where = f"{where} ({entry['name']})"
        read = self._read(where, entry, _GROUP, ("name", "desired"))
        name, desired = read.get("name"), read.get("desired")
        if name is None or desired is None:
            return
        self._names[name] += 1
        if self._names[name] == 2:
            self.problems.append(f"{where}: name is {name!r}: must be unique in the file")
        if "instances" in read:
            instances = [self._instance(f"{where}: instances[{n}]", i) for n, i in enumerate(read["instances"])]
        else:
            instances = [Instance(f"i-{name}-{n}") for n in range(1, desired + 1)]
        self.groups.append(
            Group(
                name=name,
                desired=desired,
                instances=tuple(instances),
                tags=read.get("tags", {}),
                propagated=frozenset(read.get("tags", {})),
                suspended_processes=frozenset(read.get("suspended_processes", ())),
            )
        )
        if "policy" in read:
            self.policies[name] = read["policy"]

    def _instance(self, where: str, entry: Any) -> Instance:
        read = self._read(where, entry, _INSTANCE, ("id",))
        instance_id = read.get("id", "")
        self._ids[instance_id] += 1
        if instance_id and self._ids[instance_id] == 2:
            self.problems.append(f"{where}: id is {instance_id!r}: must be unique in the file")
        if read.get("protected"):
            self.protected.add(instance_id)
        return Instance(
            instance_id=instance_id,
            lifecycle=read.get("lifecycle", IN_SERVICE),
            health=read.get("health", HEALTHY),
            zone=read.get("zone", ""),
            weight=read.get("weight", 1),
            scale_in_protected=read.get("scale_in_protected", False),
        )

    def _read(
        self, where: str, entry: Any, known: Mapping[str, Callable[[Any], Any]], needed: tuple[str, ...]
    ) -> dict[str, Any]:
        """Reads the valid keys of an entry; adds the others to the problems."""
        if not isinstance(entry, dict):
            self.problems.append(f"{where} is {values.shown(entry)}: must be a mapping with {', '.join(known)}")
            return {}
        read = {}
        for key, value in entry.items():
            if key not in known:
                self.problems.append(f"{where}: {key} is unknown: must be {values.spelling(str(key), known)}")
                continue
            try:
                read[key] = known[key](value)
            except values.BadValue as error:
                self.problems.append(f"{where}: {key} is {values.shown(value)}: must be {error}")
        self.problems += [f"{where}: {key} is missing" for key in needed if key not in entry]
        return read
