"""Reads the document of a standing fleet's file, with single changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from troop.bench.definition.definition import Benchmark
from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.file import relations
from troop.bench.file.changes import apply_changes
from troop.bench.file.checks import brought
from troop.bench.file.fleet_models import FleetFileIn, StandingIn
from troop.bench.file.read import refuse_excess, somewhere
from troop.bench.file.structure import parse_structure

_AT = ("set",)


def read_fleet(
    document: Any, files: Collection[str] | None = None, changes: Mapping[str, Any] | None = None
) -> Benchmark:
    """Reads the standing fleet of a file's document.

    Args:
        document: JSON-like values, as read from YAML.
        files: names of the files in the fleet's folder; None if unknown, which skips the check for missing files.
        changes: values by key.

    Raises:
        BadBenchmarkError: with all problems. Places in changes begin with ``set``.
    """
    refuse_excess(document)
    model = _checked(document, files)
    if changes:
        changed, places, problems = apply_changes(document, changes, _AT)
        if problems:
            raise BadBenchmarkError(problems)
        try:
            model = _checked(changed, files)
        except BadBenchmarkError as bad:
            raise BadBenchmarkError(brought(p, places, _AT) or somewhere(p, _AT) for p in bad.problems) from None
    return model.build(tuple(files or ()))


def _checked(document: Any, files: Collection[str] | None) -> FleetFileIn:
    model, problems = parse_structure(document, FleetFileIn)
    if model is not None:
        problems = relations.fleet_file_problems(model, files)
    else:
        problems += relations.part_problems(document, files, StandingIn)
    if model is None or problems:
        raise BadBenchmarkError(problems)
    return model
