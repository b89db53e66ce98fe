"""Implements `python -m local.faults`: injects every lasting fault into kernels, measures its end, and checks it.

Exit code 1: a scenario is wrong. Code 2: nothing ran, because this machine cannot boot kernels, or lacks programs.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from ..launcher import LocalAccount, obstacle
from .scenarios import ALONE, LONG, SCENARIOS, SHORT, Outcome, Scenario, play
from .site import Site, settings

PACKAGES = {
    "iptables-legacy": "iptables",
    "stress-ng": "stress-ng",
    "killall": "psmisc",
    "dig": "bind9-dnsutils",
    "pgrep": "procps",
    **{name: name for name in ("bc", "curl", "jq", "lsof")},
}
"""Debian packages of what the documents need, by their command."""
GROUPS = "web", "app"

Say = Callable[[str], None]


def missing() -> str:
    """Says why this machine cannot run scenarios, and what to install; empty if it can."""
    if why := obstacle("network") or obstacle("kernels") or obstacle("inside.room"):
        return why
    lacking = {command: package for command, package in PACKAGES.items() if shutil.which(command) is None}
    packages = " ".join(dict.fromkeys(lacking.values()))
    return f"{', '.join(lacking)} missing; on Debian: apt-get install -y {packages}" if lacking else ""


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m local.faults", description="Inject faults into real kernels.")
    parser.add_argument("--short", action="store_true", help="two scenarios only")
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios whose name contains this text")
    options = parser.parse_args(words)
    if lacking := missing():
        print(f"== faults: nothing ran: {lacking}", file=sys.stderr)
        return 2
    began = time.monotonic()

    def say(line: str) -> None:
        sys.stdout.write(f"== faults {time.monotonic() - began:4.0f} s: {line}\n")  # whole lines, from threads
        sys.stdout.flush()

    chosen = [one for one in (SHORT if options.short else SCENARIOS) if options.only in one.name]
    with LocalAccount("faults", kernels=True, progress=say) as account:
        site = Site(account, account.deploy(settings(datetime.now(UTC))))
        outcomes = perform(site, chosen, say)
    print(table(outcomes))
    for outcome in outcomes:
        for sentence in outcome.wrong:
            print(f"== faults: {outcome.scenario.name}: {sentence}", file=sys.stderr)
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


def perform(site: Site, chosen: Sequence[Scenario], say: Say) -> list[Outcome]:
    """Plays scenarios: the long ones beside the others, those that concern all units at the end. In their order."""
    lanes = [
        [one for one in chosen if one.act not in LONG | ALONE],
        [one for one in chosen if one.act in LONG],
    ]
    alone = [one for one in chosen if one.act in ALONE]
    for group, lane in zip(GROUPS, lanes, strict=True):
        if lane or (alone and group == GROUPS[0]):
            site.add_group(group)
    done: dict[Scenario, Outcome] = {}
    lock = threading.Lock()

    def run(group: str, lane: Sequence[Scenario]) -> None:
        for scenario in lane:
            outcome = play(site, group, scenario)
            with lock:
                done[scenario] = outcome
            say(f"{scenario.name}: {'; '.join(outcome.wrong) or 'right'}")

    with ThreadPoolExecutor(len(GROUPS)) as pool:
        list(pool.map(run, GROUPS, lanes))
    run(GROUPS[0], alone)
    return [done[scenario] for scenario in chosen]


def table(outcomes: Sequence[Outcome]) -> str:
    """Returns what was measured, in seconds, as a table for people."""
    rows = [("scenario", "felt", "end requested", "gone", "proven", "by", "event", "")]
    for one in outcomes:
        times = tuple("" if at is None else f"{at:.1f}" for at in (one.felt, one.requested, one.gone, one.proven))
        rows.append((one.scenario.name, *times, one.by, one.status, "WRONG" if one.wrong else "right"))  # type: ignore[arg-type]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
