"""Assembles the disks for the stores, and notes the folder on them for the next phases.

Parameters: ``data``, a folder that is there already; if it is empty, ``layout``, ``volumes``, ``cache`` and the others
of :mod:`troop.disks.assemble`, which the README of ``disk-io`` describes.
The root volume without a cache stays as it is.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from shards import LAYOUT, read_parameters
from store import StoreError

from troop.disks.assemble import assemble
from troop.disks.errors import DiskError


def assembled(parameters: dict[str, Any], shared: Path) -> Path:
    """Returns a folder on the disks of the layout, which exists.

    Raises:
        StoreError: the layout cannot be assembled.
    """
    folder = Path(parameters["data"] or shared / "data")
    if not parameters["data"] and (parameters["layout"], parameters["cache"]) != ("root", "none"):
        try:
            folder = Path(assemble(parameters, shared).folder) / "event-processor"
        except DiskError as error:
            raise StoreError(str(error)) from error
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def main() -> None:
    shared = Path(os.environ["TROOP_SHARED"])
    folder = assembled(read_parameters(), shared)
    (shared / LAYOUT).write_text(json.dumps({"folder": str(folder)}), encoding="utf-8")
    print(f"the stores will be in {folder}")


if __name__ == "__main__":
    try:
        main()
    except (StoreError, OSError) as refused:
        sys.exit(str(refused))
