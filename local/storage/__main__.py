"""Implements `python -m local.storage`: measures the layouts, writes a report of each benchmark, and checks the order.

Exit code 1: the order does not hold, or a kernel has no results. Code 2: nothing was measured, because programs are
missing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from troop.bench.definition.names import REPORT_HTML, REPORT_JSON
from troop.report.assets import MissingChartsError, chart_script

from .kernel import KernelError, missing
from .studies import LIMIT, Times, studies
from .study import perform, problems, results, table

USUAL = Times()


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m local.storage", description="Measure layouts on real kernels.")
    parser.add_argument("--warm-up", type=int, default=USUAL.warm_up, help="seconds (default: %(default)s)")
    parser.add_argument("--measured", type=int, default=USUAL.measured, help="seconds (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="new folder for the reports (default: a temporary one)")
    options = parser.parse_args(words)
    if lacking := missing():
        _error(f"nothing is measured: {lacking}")
        return 2
    try:
        chart_script()
    except MissingChartsError as error:
        _error(f"nothing is measured: {error}")
        return 2
    folder = options.out or Path(tempfile.mkdtemp(prefix="troop-storage-"))
    began = time.monotonic()

    def say(line: str) -> None:
        sys.stdout.write(
            f"== storage {time.monotonic() - began:4.0f} s: {line}\n"
        )  # whole lines: kernels run in threads
        sys.stdout.flush()

    say(f"each volume does at most {LIMIT} reads and {LIMIT} writes a second, the cache has no limit")
    sources = studies(Times(options.warm_up, options.measured))
    try:
        performances = perform(sources, folder / "kernels", say)
    except KernelError as error:
        _error(str(error))
        return 1
    from . import run_files  # here: moto is slow to import

    for name, source in sources.items():
        run_files.write(folder / name, source, performances)
        run_files.write_report(folder / name)
    measured = results(performances)
    print(table(measured))
    for name in sources:
        say(f"the report of {name}: {folder / name / REPORT_HTML} (and {REPORT_JSON})")
    wrong = problems(measured)
    for sentence in wrong:
        _error(sentence)
    return 1 if wrong else 0


def _error(text: str) -> None:
    print(f"== storage: {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
