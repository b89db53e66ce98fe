"""Node metrics that a script has left, from a tool such as sysstat."""

from __future__ import annotations

import json
from pathlib import Path

from agent.collect import MOST_FILES
from troop.measure.operations import OperationsError
from troop.measure.summary import Samples, SummaryError, parse_samples
from troop.measure.tool_samples import FORMAT, over

LARGEST = 64 << 20


def samples_with(results: Path, sampled: Samples | None, problems: list[str]) -> Samples | None:
    """What was sampled, and in its place what ``samples-*.json`` tell of the same time.

    Args:
        problems: gets a sentence for each file that cannot be read; all others are taken.
    """
    files = sorted(results.glob("samples-*.json"))
    if len(files) > MOST_FILES:
        problems.append(f"the script left {len(files)} files of samples: {MOST_FILES} are read")
    for path in files[:MOST_FILES]:
        try:
            if path.stat().st_size > LARGEST:
                raise ValueError(f"is larger than {LARGEST} bytes")
            document = json.loads(path.read_bytes())
            if not isinstance(document, dict) or document.get("format") != FORMAT:
                raise ValueError(f"must have format {FORMAT}")
            samples = parse_samples(document.get("samples"))
        except (OSError, ValueError, RecursionError, OperationsError, SummaryError) as error:
            problems.append(f"{path.name} of the script's results cannot be read: {error}")
            continue
        if sampled is not None and samples is not None:
            sampled = over(sampled, samples)
    return sampled
