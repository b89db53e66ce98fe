"""Reads stages: named sets of settings over the defaults, such as ``review``, ``staging`` and ``prod``.

Values are not converted; :mod:`troop.shared.settings` and the deployment check them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from troop.shared import values
from troop.shared.errors import SettingsError
from troop.shared.settings import json_object, parse_value, refuse_unknown

STAGE, STAGES = "stage", "stages"
"""Keys of the settings: the deployed stage (without it the defaults), and the settings of each stage."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,19}")


def stages_of(raw: Mapping[str, Any], known: tuple[str, ...], prefix: str = "troop:") -> dict[str, dict[str, Any]]:
    """Returns the settings of each stage by its name; {} without stages.

    Args:
        raw: all settings by key, without prefix.
        known: every key that a stage may have.
        prefix: the prefix of a key in error messages.

    Raises:
        SettingsError: names the stage and the key.
    """
    declared = raw.get(STAGES)
    stages = {} if declared is None else parse_value(prefix + STAGES, declared, json_object)
    parsed = {}
    for name, own in stages.items():
        where = f"{prefix}{STAGES}.{name}"
        if not _NAME.fullmatch(name):
            allowed = "named by a letter, then letters, digits and hyphens, at most 20 in all"
            raise SettingsError(where, own, allowed)
        parsed[name] = parse_value(where, own, json_object)
        refuse_unknown(parsed[name], known, f"{where}.")
    return parsed


def chosen(raw: Mapping[str, Any], stages: Iterable[str], prefix: str = "troop:") -> str | None:
    """Returns the stage that the settings select; None for none.

    Raises:
        SettingsError: there is no such stage.
    """
    name = raw.get(STAGE)
    if name is None or name == "":
        return None
    known = tuple(stages)
    if name not in known:
        raise SettingsError(prefix + STAGE, name, values.spelling(str(name), known) if known else "left out: no stages")
    return str(name)


def in_stage(
    raw: Mapping[str, Any], name: str, own: Mapping[str, Any], overrides: Iterable[str] = ()
) -> dict[str, Any]:
    """Returns the settings of a stage: its own over the defaults, and those in ``overrides`` over both.

    A stage that names no deployment is deployed separately, under the default's name with the stage's appended.

    Args:
        raw: all settings by key, without prefix.
        overrides: keys of ``raw`` from the command line.
    """
    merged = {key: value for key, value in raw.items() if key not in (STAGE, STAGES)}
    merged |= {"deployment": f"{raw.get('deployment')}-{name}"} | dict(own)
    return merged | {key: raw[key] for key in overrides if key in raw and key not in (STAGE, STAGES)}
