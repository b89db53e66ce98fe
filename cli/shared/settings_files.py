"""Reads settings for a forecast: those of a file override those of this checkout's cdk.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.shared import yaml_files
from cli.shared.errors import CliError, Exit
from troop.shared import settings as chaos
from troop.shared import stages, values
from troop.shared.errors import SettingsError

PREFIX = "troop:"
CHECKOUT = Path(__file__).resolve().parents[2] / "cdk.json"


@dataclass(frozen=True)
class TriedSettings:
    """The settings that decide, and the minutes between two ticks."""

    chaos: chaos.Settings
    tick_minutes: int


def load(file: Path | None) -> TriedSettings:
    """Reads the settings of a cdk.json, or of a YAML or JSON mapping of its keys, with or without ``troop:``.

    Missing keys come from this checkout's cdk.json.

    Raises:
        CliError: USAGE; names the file, the key, the value and what is allowed.
    """
    defaults = _keys(CHECKOUT)
    overrides = _keys(file) if file else {}
    name = file or CHECKOUT
    try:
        chaos.refuse_unknown(overrides, tuple(defaults))
        return make(_staged(defaults | overrides))
    except SettingsError as error:
        raise CliError(Exit.USAGE, f"{name}: {error}") from None


def _staged(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the settings of the chosen stage; unchanged if none is chosen."""
    by_stage = stages.stages_of(raw, tuple(key for key in raw if key not in (stages.STAGE, stages.STAGES)))
    chosen = stages.chosen(raw, by_stage)
    return stages.in_stage(raw, chosen, by_stage[chosen]) if chosen else raw


def make(raw: Mapping[str, Any]) -> TriedSettings:
    """Converts values by key, without prefix, to settings; ignores keys that only a deployment needs.

    Raises:
        SettingsError: names the key, the value and what is allowed.
    """
    minutes = chaos.parse_value(PREFIX + "tick_minutes", raw.get("tick_minutes"), values.one_of(*chaos.TICK_MINUTES))
    return TriedSettings(chaos.parse_settings({key: raw[key] for key in chaos.KEYS if key in raw}), minutes)


def _keys(file: Path) -> dict[str, Any]:
    raw = yaml_files.parse(yaml_files.read(file), str(file))
    is_cdk = isinstance(raw, dict) and isinstance(raw.get("context"), dict)
    context = raw["context"] if is_cdk else raw
    if not isinstance(context, dict):
        raise CliError(Exit.USAGE, f"{file}: must be a cdk.json, or a mapping of its keys to values")
    settings: dict[str, Any] = {}
    for key, value in context.items():
        if not isinstance(key, str):
            raise CliError(Exit.USAGE, f"{file}: {key!r} is not a key of the settings: put it into quotes")
        if is_cdk and not key.startswith(PREFIX):
            continue  # a setting of the CDK
        plain = key.removeprefix(PREFIX)
        if plain in settings:
            raise CliError(Exit.USAGE, f"{file}: {plain} occurs twice, with {PREFIX} and without")
        settings[plain] = value
    return settings
