"""Compares the settings of two stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.shared.errors import CliError, Exit, why
from troop.shared import settings, stages
from troop.shared.errors import SettingsError
from troop.shared.values import excess, json_in

PREFIX = "troop:"
SETTINGS = Path(__file__).parents[2] / "cdk.json"

_DEEPEST = 32
"""Levels of settings: several times those of the deepest setting."""


@dataclass(frozen=True)
class Difference:
    """A key whose values differ; None if not set.

    Attributes:
        where: the unit of the key; "" for a setting.
    """

    where: str
    key: str
    left: Any
    right: Any


def load(file: Path) -> dict[str, Any]:
    """Reads the settings of a cdk.json, without prefix.

    Raises:
        CliError: USAGE, if it is not such a file.
    """
    try:
        written = json_in(file.read_text(encoding="utf-8"))["context"]
        if excess(written, _DEEPEST):
            raise ValueError
        return {key.removeprefix(PREFIX): value for key, value in written.items() if key.startswith(PREFIX)}
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(Exit.USAGE, f"{file} cannot be read: {why(error)}") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise CliError(Exit.USAGE, f'{file} has no settings: must be JSON with an object "context"') from None


def effective(raw: Mapping[str, Any], stage: str) -> dict[str, Any]:
    """Returns all settings of a stage; its own override the defaults.

    Raises:
        CliError: USAGE, if the stage does not exist, or a setting of chaos is invalid.
    """
    known = tuple(key for key in raw if key not in (stages.STAGE, stages.STAGES))
    if missing := [PREFIX + key for key in settings.KEYS if key not in raw]:
        verb = "is" if len(missing) == 1 else "are"
        raise CliError(Exit.USAGE, f"settings: {', '.join(missing)} {verb} missing: use a complete cdk.json")
    try:
        by_stage = stages.stages_of(raw, known, PREFIX)
        if not stage:
            allowed = f"one of {', '.join(by_stage)}" if by_stage else "the name of a stage, and the settings have none"
            raise CliError(Exit.USAGE, f"settings: a stage is '': must be {allowed}")
        stages.chosen({stages.STAGE: stage}, by_stage, PREFIX)
        merged = stages.in_stage(raw, stage, by_stage[stage])
        deciding = {key: value for key, value in merged.items() if key in settings.KEYS}
        settings.parse_settings(deciding, f"{PREFIX}{stages.STAGES}.{stage}.")
    except SettingsError as error:
        raise CliError(Exit.USAGE, f"settings: {error}") from None
    return merged


def flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flattens nested objects to one, with the path to each value as key."""
    by_path: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            by_path |= flat(inner, f"{prefix}{key}.")
        else:
            by_path[f"{prefix}{key}"] = inner
    return by_path


def _meant(value: Any) -> Any:
    """Parses a setting's value: numbers, booleans and objects may be text, as in ``cdk -c``."""
    try:
        return json_in(value) if isinstance(value, str) else value
    except ValueError:
        return value


def differences(where: str, left: Mapping[str, Any], right: Mapping[str, Any]) -> Iterator[Difference]:
    """Lists the keys whose values differ."""
    for key in sorted({*left, *right}):
        if _meant(left.get(key)) != _meant(right.get(key)):
            yield Difference(where, key, left.get(key), right.get(key))
