"""Implements `troop policy diff`: compares the settings, and the deployed policies, of two stages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cli.client import connection
from cli.policies import stages
from cli.policies.export import exported
from cli.policies.stages import Difference
from cli.shared import show
from cli.shared.context import Options

DIFFERENT = 1
"""The exit code of --exit-code for a difference, as in `git diff`."""


def diff(
    ctx: typer.Context,
    left: Annotated[str, typer.Argument(metavar="STAGE", help="A stage of the settings.")],
    right: Annotated[str, typer.Argument(metavar="STAGE", help="Another stage.")],
    file: Annotated[
        Path | None, typer.Option("--settings", help="A cdk.json; by default that of this checkout.")
    ] = None,
    deployed: Annotated[
        bool, typer.Option("--deployed", help="Also compare the policy that people have set in both deployments.")
    ] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if there is a difference.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show how two stages differ. Needs AWS only with --deployed."""
    raw = stages.load(file or stages.SETTINGS)
    settled = [stages.effective(raw, stage) for stage in (left, right)]
    differences = list(stages.differences("", *(stages.flat(one) for one in settled)))
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


def _units(options: Options, deployments: list[str]) -> list[Difference]:
    """Compares the policies of the units of two deployments."""
    left, right = (exported(connection.connect(replace(options, deployment=name)).client) for name in deployments)
    return [
        difference
        for unit in sorted({*left, *right})
        for difference in stages.differences(unit, left.get(unit, {}), right.get(unit, {}))
    ]
