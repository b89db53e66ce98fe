"""What a script's recorders have left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent.log import say
from troop.measure import operations as ops
from troop.measure import separate
from troop.measure.operations import Operations, OperationsError
from troop.measure.recorder import FORMAT
from troop.measure.separate import MOST_ROWS, Separate

LARGEST = 64 << 20
MOST_FILES = 4096


def operations_in(results: Path, problems: list[str]) -> Operations:
    """All ``operations*.json`` together; empty when there is none.

    Args:
        problems: gets a sentence for each file that cannot be read, and for what is too much; all others count.
    """
    totals: Operations = {}
    files = sorted(results.glob("operations*.json"))
    if len(files) > MOST_FILES:
        problems.append(f"the script left {len(files)} files of operations: {MOST_FILES} are read")
    for path in files[:MOST_FILES]:
        try:
            document = _read(path)
            if not isinstance(document, dict) or document.get("format") != FORMAT:
                raise ValueError(f"must have format {FORMAT}")
            ops.add_bounded(totals, ops.parse(document.get("operations")))
        except (OSError, ValueError, OperationsError) as error:
            problems.append(f"{path.name} of the script's results cannot be read: {error}")
    for name in ops.bound_over_time(totals):
        say(f"{name}: its times are told in all, but not over time, for all operations' together would be too many")
    return totals


def separate_in(results: Path, problems: list[str]) -> tuple[Separate, ...]:
    """The rows of all ``separate-*.json``, in the order of their names.

    Args:
        problems: gets a sentence for each file that cannot be read, and for what is too much; all others are kept.
    """
    rows: list[Separate] = []
    files = sorted(results.glob("separate-*.json"))
    if len(files) > MOST_FILES:
        problems.append(f"the script left {len(files)} files of separate rows: {MOST_FILES} are read")
    for path in files[:MOST_FILES]:
        try:
            rows += separate.parse_file(_read(path))
        except (OSError, ValueError, OperationsError) as error:
            problems.append(f"{path.name} of the script's results cannot be read: {error}")
    if len(rows) > MOST_ROWS:
        problems.append(f"the script left {len(rows)} separate rows: {MOST_ROWS} are kept")
    return tuple(rows[:MOST_ROWS])


def _read(path: Path) -> Any:
    """
    Raises:
        OSError: it cannot be read.
        ValueError: it is too large, or no JSON.
    """
    if path.stat().st_size > LARGEST:
        raise ValueError(f"is larger than {LARGEST} bytes")
    try:
        return json.loads(path.read_bytes())
    except RecursionError:
        raise ValueError("is no JSON that anybody would write") from None
