"""Reads, writes and compares policies of many units as one YAML file; names every mistake in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import yaml

from cli.policies.values import KEYS, BadPolicy, normal
from cli.shared import yaml_files
from cli.shared.errors import CliError, Exit


@dataclass(frozen=True)
class UnitChange:
    """The changes of one unit by a file.

    Attributes:
        changes: key -> (old, new); None where there is no value.
        version: of the stored item in the comparison.
    """

    unit: str
    changes: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    version: int | None = None

    def patch(self) -> dict[str, Any]:
        """Returns the body of the request; the API refuses it if the unit has changed since."""
        body = {key: new for key, (_, new) in self.changes.items()}
        return body if self.version is None else {**body, "version": self.version}

    def as_json(self) -> dict[str, Any]:
        changes = {key: {"old": old, "new": new} for key, (old, new) in self.changes.items()}
        return {"unit": self.unit, "changes": changes}


def compare(unit: str, stored: Mapping[str, Any], target: Mapping[str, Any], version: int | None) -> UnitChange:
    """Returns the changes from a stored policy to that of the file; keys that the file lacks are removed."""
    changes = {k: (stored.get(k), target.get(k)) for k in KEYS if stored.get(k) != target.get(k)}
    return UnitChange(unit, changes, version)


def dump(units: Mapping[str, Mapping[str, Any]], comment: str) -> str:
    """Returns the text of a file with these units, and a comment above."""
    ordered = {unit: {k: _written(k, v) for k, v in units[unit].items()} for unit in sorted(units)}
    text: str = yaml.dump({"units": ordered}, Dumper=_Quoting, sort_keys=False, allow_unicode=True, width=120)
    return "".join(f"# {line}\n" for line in comment.splitlines()) + text


def _written(key: str, value: Any) -> Any:
    """Converts a day so that YAML writes it without quotes."""
    try:
        return date.fromisoformat(value) if key == "until" else value
    except (TypeError, ValueError):
        return value


def load(text: str) -> dict[str, dict[str, Any]]:
    """Reads the policy of each unit, in the API's form.

    Raises:
        CliError: USAGE, with every mistake; one mistake is enough to refuse the file.
    """
    raw = yaml_files.parse(text, "the file")
    if not isinstance(raw, dict) or set(raw) != {"units"} or not isinstance(raw["units"], dict | None):
        raise CliError(Exit.USAGE, "the file must have one key, units, with a policy for each unit")
    problems: list[str] = []
    policies = {}
    for unit, policy in (raw["units"] or {}).items():
        if not isinstance(unit, str) or not unit.strip():
            problems.append(f"{unit!r} is not the name of a unit: put it into quotes")
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
    """A dumper that escapes unprintable characters and quotes text that the strict reader would take for a number.

    Unprintable are marks that change the direction of writing, and Unicode's line breaks, which YAML reads as others.
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
