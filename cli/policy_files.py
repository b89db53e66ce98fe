"""Policy of many units as one YAML file: read with every mistake named, written in one order, and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import yaml

from cli import yaml_files
from cli.errors import CliError, Exit
from cli.policy_values import KEYS, BadPolicy, normal


@dataclass(frozen=True)
class UnitChange:
    """What a file changes of one unit.

    Attributes:
        changes: key -> (old, new); None where there is no value.
        version: of the stored item the comparison was made with.
    """

    unit: str
    changes: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    version: int | None = None

    def patch(self) -> dict[str, Any]:
        """The body that makes the change, refused if somebody else has changed the unit since."""
        body = {key: new for key, (_, new) in self.changes.items()}
        return body if self.version is None else {**body, "version": self.version}

    def as_json(self) -> dict[str, Any]:
        changes = {key: {"old": old, "new": new} for key, (old, new) in self.changes.items()}
        return {"unit": self.unit, "changes": changes}


def compare(unit: str, stored: Mapping[str, Any], target: Mapping[str, Any], version: int | None) -> UnitChange:
    """What turns a stored policy into the one of the file; a key the file does not have is removed."""
    changes = {k: (stored.get(k), target.get(k)) for k in KEYS if stored.get(k) != target.get(k)}
    return UnitChange(unit, changes, version)


def dump(units: Mapping[str, Mapping[str, Any]], comment: str) -> str:
    """The file for these units, with a comment above."""
    ordered = {unit: {k: _written(k, v) for k, v in units[unit].items()} for unit in sorted(units)}
    text: str = yaml.dump({"units": ordered}, Dumper=_Quoting, sort_keys=False, allow_unicode=True, width=120)
    return "".join(f"# {line}\n" for line in comment.splitlines()) + text


def _written(key: str, value: Any) -> Any:
    """A day as YAML writes days: without quotes."""
    try:
        return date.fromisoformat(value) if key == "until" else value
    except (TypeError, ValueError):
        return value


def load(text: str) -> dict[str, dict[str, Any]]:
    """Policy by unit, as the API takes it.

    Raises:
        CliError: USAGE, for the file as a whole: with a file that is wrong in one place, nothing is done.
    """
    raw = yaml_files.parse(text, "the file")
    if not isinstance(raw, dict) or set(raw) != {"units"} or not isinstance(raw["units"], dict | None):
        raise CliError(Exit.USAGE, "the file must have one key, units, with a policy for each unit")
    problems: list[str] = []
    policies = {}
    for unit, policy in (raw["units"] or {}).items():
        if not isinstance(unit, str) or not unit.strip():
            problems.append(f"{unit!r} is no name of a unit: put it into quotes")
        elif not isinstance(policy, dict | None):
            problems.append(f"{unit}: must be a mapping of keys to values")
        else:
            policies[unit] = _policy(unit, policy or {}, problems)
    if problems:
        raise CliError(Exit.USAGE, "nothing was changed: " + "; ".join(problems))
    return policies


def _policy(unit: str, raw: Mapping[Any, Any], problems: list[str]) -> dict[str, Any]:
    policy = {}
    for key, value in raw.items():
        try:
            if value is None:
                raise BadPolicy(f"{key} has no value: leave the key out to remove it")
            policy[key] = normal(str(key), value)
        except BadPolicy as error:
            problems.append(f"{unit}: {error}")
    return policy


class _Quoting(yaml.SafeDumper):
    """Escapes what cannot be printed, such as marks that turn the direction of writing, or Unicode's line breaks, which
    YAML would read back as others. Quotes whatever the strict reader would take for a number.
    """

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        unicode, self.allow_unicode = self.allow_unicode, self.allow_unicode and _is_printable(text)
        super().write_double_quoted(text, split)
        self.allow_unicode = unicode


def _is_printable(text: str) -> bool:
    return all(c == "\n" or c.isprintable() for c in text)


def _text(dumper: _Quoting, text: str) -> yaml.ScalarNode:
    style = '"' if not _is_printable(text) or yaml_files.is_taken_for_a_value(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Quoting.add_representer(str, _text)
