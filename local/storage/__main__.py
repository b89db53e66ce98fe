"""Implements `python -m local.storage`: measures the layouts, and checks their order.

Exit code 1: the order does not hold, or a kernel has no results. Code 0 without a measurement: a program is missing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .kernel import KernelError, missing
from .study import LIMIT, SECONDS, measure, problems, table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m local.storage", description="Measure layouts on real kernels.")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="of each measurement (default: %(default)s)")
    options = parser.parse_args()
    if lacking := missing():
        print(f"== storage: skipped: {lacking}")
        return 0
    folder = Path(tempfile.mkdtemp(prefix="troop-storage-"))
    print(f"== storage: each volume has {LIMIT} operations a second, the cache has no limit; results in {folder}")
    try:
        results = measure(folder, lambda line: print(f"== {line}", flush=True), options.seconds)
    except KernelError as error:
        print(f"== storage: {error}", file=sys.stderr)
        return 1
    print(table(results))
    wrong = problems(results)
    for sentence in wrong:
        print(f"== storage: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
