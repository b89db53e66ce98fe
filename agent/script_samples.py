"""Reads node metrics that a script left, from a tool such as sysstat."""

from __future__ import annotations

import json
from pathlib import Path

from agent.collect import MOST_FILES
from troop.measure.operations import OperationsError
from troop.measure.summary import Samples, SummaryError, parse_samples
from troop.measure.tool_samples import FORMAT, replace_samples

LARGEST = 64 << 20


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
            if path.stat().st_size > LARGEST:
                raise ValueError(f"it is larger than {LARGEST} bytes")
            document = json.loads(path.read_bytes())
            if not isinstance(document, dict) or document.get("format") != FORMAT:
                raise ValueError(f"the format must be {FORMAT}")
            samples = parse_samples(document.get("samples"))
        except (OSError, ValueError, RecursionError, OperationsError, SummaryError) as error:
            problems.append(f"{path.name} of the script's results cannot be read: {error}")
            continue
        if sampled is not None and samples is not None:
            sampled = replace_samples(sampled, samples)
    return sampled
