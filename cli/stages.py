"""`troop policy diff`: in what two stages differ, by the settings or as they are deployed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import context, show
from cli.context import Options
from cli.errors import CliError, Exit, why
from cli.policy_export import exported
from troop import settings, stages
from troop.errors import SettingsError
from troop.values import is_deeper, json_in

PREFIX = "troop:"
SETTINGS = Path(__file__).parents[1] / "cdk.json"

_DEEPEST = 32
"""Levels of settings: several times what the deepest of them has."""

DIFFERENT = 1
"""The exit code that --exit-code asks for when there is a difference, as `git diff` has it."""


@dataclass(frozen=True)
class Difference:
    """A key whose values differ; None where it is not set.

    Attributes:
        where: the unit the key is about; "" for a setting.
    """

    where: str
    key: str
    left: Any
    right: Any


def diff(
    ctx: typer.Context,
    left: Annotated[str, typer.Argument(metavar="STAGE", help="A stage of the settings.")],
    right: Annotated[str, typer.Argument(metavar="STAGE", help="Another.")],
    file: Annotated[
        Path | None, typer.Option("--settings", help="Another cdk.json; by default that of this checkout.")
    ] = None,
    deployed: Annotated[
        bool, typer.Option("--deployed", help="Also the policy that people have set, in both deployments.")
    ] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if there is a difference.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show in what two stages differ. Needs no AWS, unless --deployed asks for what people have set."""
    raw = load(file or SETTINGS)
    settled = [effective(raw, stage) for stage in (left, right)]
    differences = list(_differences("", *(flat(one) for one in settled)))
    if deployed:
        differences += _units(ctx.obj, [str(one["deployment"]) for one in settled])
    if as_json:
        rows = [{"unit": d.where or None, "key": d.key, "left": d.left, "right": d.right} for d in differences]
        show.document({"stages": [left, right], "differences": rows})
    elif differences:
        show.table(
            ("unit", "key", left, right),
            [(d.where or show.NOTHING, d.key, show.plain(d.left), show.plain(d.right)) for d in differences],
        )
    else:
        show.say(f"{left} and {right} do not differ")
    if differences and exit_code:
        raise typer.Exit(DIFFERENT)


def load(file: Path) -> dict[str, Any]:
    """The settings of a cdk.json, without prefix.

    Raises:
        CliError: USAGE, when it is no such file.
    """
    try:
        written = json_in(file.read_text(encoding="utf-8"))["context"]
        if is_deeper(written, _DEEPEST):
            raise ValueError
        return {key.removeprefix(PREFIX): value for key, value in written.items() if key.startswith(PREFIX)}
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(Exit.USAGE, f"{file} cannot be read: {why(error)}") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise CliError(Exit.USAGE, f'{file} has no settings: must be JSON with an object "context"') from None


def effective(raw: Mapping[str, Any], stage: str) -> dict[str, Any]:
    """All settings of a stage, with its own over the defaults.

    Raises:
        CliError: USAGE, when there is no such stage, or some setting that chaos decides by cannot be used.
    """
    known = tuple(key for key in raw if key not in (stages.STAGE, stages.STAGES))
    if missing := [PREFIX + key for key in settings.KEYS if key not in raw]:
        verb = "is" if len(missing) == 1 else "are"
        raise CliError(Exit.USAGE, f"settings: {', '.join(missing)} {verb} missing: give a whole cdk.json")
    try:
        by_stage = stages.stages_of(raw, known, PREFIX)
        if not stage:
            allowed = f"one of {', '.join(by_stage)}" if by_stage else "the name of one, and the settings have none"
            raise CliError(Exit.USAGE, f"settings: a stage is '': must be {allowed}")
        stages.chosen({stages.STAGE: stage}, by_stage, PREFIX)
        merged = stages.in_stage(raw, stage, by_stage[stage])
        deciding = {key: value for key, value in merged.items() if key in settings.KEYS}
        settings.parse_settings(deciding, f"{PREFIX}{stages.STAGES}.{stage}.")
    except SettingsError as error:
        raise CliError(Exit.USAGE, f"settings: {error}") from None
    return merged


def flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Objects within objects as one, by the path to each value."""
    by_path: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            by_path |= flat(inner, f"{prefix}{key}.")
        else:
            by_path[f"{prefix}{key}"] = inner
    return by_path


def _meant(value: Any) -> Any:
    """A setting's value, however it is spelled: numbers, truth and objects may be text, as ``cdk -c`` gives them."""
    try:
        return json_in(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _differences(where: str, left: Mapping[str, Any], right: Mapping[str, Any]) -> Iterator[Difference]:
    for key in sorted({*left, *right}):
        if _meant(left.get(key)) != _meant(right.get(key)):
            yield Difference(where, key, left.get(key), right.get(key))


def _units(options: Options, deployments: list[str]) -> list[Difference]:
    """In what the units' policies differ between two deployments."""
    left, right = (exported(context.connect(replace(options, deployment=name)).client) for name in deployments)
    return [
        difference
        for unit in sorted({*left, *right})
        for difference in _differences(unit, left.get(unit, {}), right.get(unit, {}))
    ]
