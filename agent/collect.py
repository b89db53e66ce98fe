"""What a script's recorders have left."""

from __future__ import annotations

import json
from pathlib import Path

from agent.errors import AgentError
from troop.measure import operations as ops
from troop.measure.operations import Operations, OperationsError
from troop.measure.recorder import FORMAT

LARGEST = 64 << 20
MOST_FILES = 4096


def operations_in(results: Path) -> Operations:
    """All ``operations*.json`` together; empty when there is none.

    Raises:
        AgentError: one cannot be read; what was recorded is then not known.
    """
    totals: Operations = {}
    files = sorted(results.glob("operations*.json"))
    if len(files) > MOST_FILES:
        raise AgentError(f"the script left {len(files)} files of operations: at most {MOST_FILES} are read")
    for path in files:
        try:
            if path.stat().st_size > LARGEST:
                raise ValueError(f"is larger than {LARGEST} bytes")
            document = json.loads(path.read_bytes())
            if not isinstance(document, dict) or document.get("format") != FORMAT:
                raise ValueError(f"must have format {FORMAT}")
            ops.add_all(totals, ops.parse(document.get("operations")))
        except (OSError, ValueError, OperationsError) as error:
            raise AgentError(f"{path.name} of the script's results cannot be read: {error}") from None
    return totals
