"""Records a deployment's settings in its template, and compares them with those of the next deployment.

A setting on the command line holds for one deployment only. A later command without it resets the setting to the value
of cdk.json, so the record also says which settings cdk.json does not have.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.settings import DEPLOYMENT_ONLY, PREFIX, SETTINGS, DeploymentSettings, ExistingNetwork, as_passed
from troop.shared.outputs import OVERRIDES_METADATA, SETTINGS_METADATA
from troop.shared.settings import NO_LIMIT
from troop.shared.stages import STAGE, STAGES

SILENT = "TROOP_SILENT_SYNTH"
"""The environment variable that turns off the warning at synth: `make deploy` shows the changes itself."""

_ABSENT = "-"


@dataclass(frozen=True)
class Record:
    """The settings of a deployment, as its template has them.

    Attributes:
        values: JSON values by key, without prefix; also the stage.
        overrides: keys whose values do not come from cdk.json; None if an older version, which did not record them,
            made the deployment. Such a record also lacks some values.
    """

    values: Mapping[str, Any]
    overrides: frozenset[str] | None


@dataclass(frozen=True)
class Change:
    """A setting whose value changes.

    Attributes:
        key: without prefix.
        deployed, new: JSON values.
        is_reset: whether the deployed value came from an override that is missing now.
    """

    key: str
    deployed: Any
    new: Any
    is_reset: bool

    @property
    def risk(self) -> str:
        """The effect that the change makes more likely, such as ``more terminations``; "" if nothing is known of it."""
        one = SETTINGS.get(self.key)
        if not one or not (one.higher or one.lower):
            return ""
        before, after = _rank(self.deployed), _rank(self.new)
        return one.higher if after > before else one.lower if after < before else ""

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yields the name, the deployed and the new value as text, for each part of an object that differs."""
        name = PREFIX + self.key
        if self.deployed == self.new:  # but in another order
            yield name, _text(self.deployed), _text(self.new)
        yield from _rows(name, self.deployed, self.new)


def record(settings: DeploymentSettings) -> Record:
    """Returns the record of a deployment with these settings."""
    own = {key: getattr(settings, key) for key in (*DEPLOYMENT_ONLY, STAGE)}
    if isinstance(own["network"], ExistingNetwork):
        own["network"] = {"vpc": own["network"].vpc, "subnets": own["network"].subnets}
    values = {**json.loads(settings.chaos_json), **own}
    del values["deployment"], values["bundle"]
    return Record({key: as_passed(value) for key, value in values.items()}, settings.overrides)


def metadata(settings: DeploymentSettings) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the record as metadata of the template, and of the bus in it."""
    values = {SETTINGS_METADATA: json.dumps(record(settings).values)}
    return values, {OVERRIDES_METADATA: json.dumps(sorted(settings.overrides))}


def record_in(template: Mapping[str, Any]) -> Record | None:
    """Reads the record in a template; None if it has none."""
    try:
        values = json.loads(template["Metadata"][SETTINGS_METADATA])
        entries = [resource.get("Metadata", {}) for resource in template["Resources"].values()]
        lists = [json.loads(entry[OVERRIDES_METADATA]) for entry in entries if OVERRIDES_METADATA in entry]
    except (KeyError, TypeError, ValueError):
        return None
    overrides = frozenset(lists[0]) if lists else None
    return Record({key: as_passed(value) for key, value in values.items()}, overrides)


def changes(deployed: Record, new: Record, named: Collection[str]) -> list[Change]:
    """Lists the settings whose values change, in the order of their keys; not those that only one of the records has.

    Args:
        named: keys that this deployment sets on the command line or in an app's code. Their changes are intended.
    """
    keys = sorted(deployed.values.keys() & new.values.keys())
    differing = [key for key in keys if _differ(key, deployed.values[key], new.values[key])]
    return [Change(key, deployed.values[key], new.values[key], _is_reset(key, deployed, named)) for key in differing]


def _is_reset(key: str, deployed: Record, named: Collection[str]) -> bool:
    if key in named:
        return False
    if deployed.overrides is None:
        return True
    missing = deployed.overrides - set(named)
    return key in missing or not missing.isdisjoint((STAGE, STAGES))


def _differ(key: str, deployed: Any, new: Any) -> bool:
    if key == "zones" and isinstance(deployed, int) and isinstance(new, list):
        return deployed != len(new)  # `make deploy` names the zones that CloudFormation has chosen
    # The first pattern that matches counts, so the order of units matters.
    return bool(deployed != new or (key == "units" and list(deployed) != list(new)))


def override(change: Change) -> str:
    """Returns the deployed value as ``KEY=VALUE`` of the command line."""
    return _override(change.key, change.deployed)


def overrides_of(deployed: Record) -> list[str]:
    """Returns the values that cdk.json did not have as ``KEY=VALUE`` of the command line."""
    keys = sorted(deployed.values.keys() & (deployed.overrides or ()))
    return [_override(key, deployed.values[key]) for key in keys]


def _override(key: str, value: Any) -> str:
    if key == STAGE and value is None:
        value = ""
    return f"{PREFIX}{key}={_text(value)}"


def uncompared(deployed: Record, new: Record) -> list[str]:
    """Lists the settings that an older version did not record, with prefix."""
    return [] if deployed.overrides is not None else [PREFIX + key for key in new.values if key not in deployed.values]


def _rows(name: str, deployed: Any, new: Any) -> Iterator[tuple[str, str, str]]:
    if isinstance(deployed, Mapping) and isinstance(new, Mapping):
        for key in sorted(deployed.keys() | new.keys()):
            if deployed.get(key) != new.get(key):
                yield from _rows(f"{name}.{key}", deployed.get(key, _ABSENT), new.get(key, _ABSENT))
    else:
        yield name, _text(deployed), _text(new)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _rank(value: Any) -> float:
    """Orders the values of a setting that has a risk: numbers, booleans, and these words."""
    words = {NO_LIMIT: math.inf, "opt-in": 0.0, "opt-out": 1.0}
    return words[value] if value in words else float(value)
