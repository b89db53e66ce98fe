"""Reads the files that a script's recorders and collectors left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent.log import say
from troop.measure import operations as ops
from troop.measure import recordings, separate
from troop.measure.operations import Operations, OperationsError
from troop.measure.recorder import FORMAT
from troop.measure.separate import MOST_ROWS, Separate
from troop.measure.summary import Samples, SummaryError, parse_samples
from troop.measure.tool_samples import FORMAT as SAMPLES_FORMAT
from troop.measure.tool_samples import replace_samples

LARGEST = 64 << 20
MOST_FILES = 4096


def lost_in(results: Path, problems: list[str]) -> None:
    """Checks whether each process that recorded operations has written them.

    Args:
        problems: receives a sentence for each process that ended before.
    """
    for process in dict.fromkeys(recordings.lost(results)):
        problems.append(f"process {process} ended before it wrote the operations that it recorded: they are missing")


def operations_in(results: Path, problems: list[str]) -> Operations:
    """Adds up all ``operations*.json``; returns an empty dict if there is none.

    Args:
        problems: receives a sentence for each unreadable file and for each exceeded limit; all other files count.
    """
    totals: Operations = {}
    files = sorted(results.glob("operations*.json"))
    if len(files) > MOST_FILES:
        problems.append(f"the script left {len(files)} operations files; only {MOST_FILES} are read")
    for path in files[:MOST_FILES]:
        try:
            document = _read(path)
            if not isinstance(document, dict) or document.get("format") != FORMAT:
                raise ValueError(f"the format must be {FORMAT}")
            ops.add_bounded(totals, ops.parse(document.get("operations")))
        except (OSError, ValueError, OperationsError) as error:
            problems.append(f"{path.name} of the script's results cannot be read: {error}")
    for name in ops.bound_over_time(totals):
        say(f"{name}: times over time are left out, because all operations have too many in total")
    return totals


def separate_in(results: Path, problems: list[str]) -> tuple[Separate, ...]:
    """Reads the rows of all ``separate-*.json``, ordered by file name.

    Args:
        problems: receives a sentence for each unreadable file and for each exceeded limit; all other rows are kept.
    """
    rows: list[Separate] = []
    files = sorted(results.glob("separate-*.json"))
    if len(files) > MOST_FILES:
        problems.append(f"the script left {len(files)} files of separate rows; only {MOST_FILES} are read")
    for path in files[:MOST_FILES]:
        try:
            rows += separate.parse_file(_read(path))
        except (OSError, ValueError, OperationsError) as error:
            problems.append(f"{path.name} of the script's results cannot be read: {error}")
    if len(rows) > MOST_ROWS:
        problems.append(f"the script left {len(rows)} separate rows; only {MOST_ROWS} are kept")
    return tuple(rows[:MOST_ROWS])


def samples_with(results: Path, sampled: Samples | None, problems: list[str]) -> Samples | None:
    """Returns the agent's samples, replaced by those of ``samples-*.json`` where both cover the same time.

    Args:
        problems: receives a sentence for each unreadable file; all other files are used.
    """
    files = sorted(results.glob("samples-*.json"))
    if len(files) > MOST_FILES:
        problems.append(f"the script left {len(files)} files of samples; only {MOST_FILES} are read")
    for path in files[:MOST_FILES]:
        try:
            document = _read(path)
            if not isinstance(document, dict) or document.get("format") != SAMPLES_FORMAT:
                raise ValueError(f"the format must be {SAMPLES_FORMAT}")
            samples = parse_samples(document.get("samples"))
        except (OSError, ValueError, OperationsError, SummaryError) as error:
            problems.append(f"{path.name} of the script's results cannot be read: {error}")
            continue
        if sampled is not None and samples is not None:
            sampled = replace_samples(sampled, samples)
    return sampled


def _read(path: Path) -> Any:
    """Reads a JSON file.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is too large or not JSON.
    """
    if path.stat().st_size > LARGEST:
        raise ValueError(f"it is larger than {LARGEST} bytes")
    try:
        return json.loads(path.read_bytes())
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
