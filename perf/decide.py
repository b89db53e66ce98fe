"""Measures time and memory of the pure core when it decides for very many units.

    python -m perf.decide [--units 100000] [--instances 4] [--repeat 3]

Every scenario runs in its own process, on one thread, so that its memory peak is separate. "account" is the memory of
the groups that a tick reads; "peak" is the total, with the interpreter.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, date, datetime
from typing import Any

from perf import ROOT, peak_mb
from troop.chaos.decisions import decide_all
from troop.chaos.facts import Account, Counts, Switch, UnitState, facts_of_units
from troop.chaos.groups import Group, Instance
from troop.shared.garbage import without_collections
from troop.shared.settings import SETTINGS, Settings, parse_settings

SALT = b"a salt of the measurement, not of any deployment"
OPEN = datetime(2026, 11, 20, 20, 45, tzinfo=UTC)
"""A Friday, 12:45 in Los Angeles: about half of the rolls of the day are due."""

SCENARIOS = {
    "defaults": "no tags, no items, one calendar",
    "mixed": "a third each: no policy, tags, items; patterns; a history",
    "all rolled": "probability 1: half of the units due, half not yet; each needs two rolls",
    "all due": "probability 1 at the window's end, so that every unit is decided twice",
    "night": "outside the window",
}


def settings(probability: float, patterns: dict[str, str]) -> Settings:
    """Returns the defaults with another probability and unit patterns, unleashed."""
    defaults = {key: one.default for key, one in SETTINGS.items()}
    return parse_settings({**defaults, "leashed": False, "probability": probability, "units": patterns})


def groups(units: int, instances: int, tagged: bool) -> list[Group]:
    """Creates groups as an adapter does: no two share a string object."""
    return [
        Group(
            name=f"service-{n:06d}-v{n % 40:03d}",
            desired=instances,
            instances=tuple(Instance(f"i-{n:012x}{k:05x}", zone=f"us-west-2{'abc'[k % 3]}") for k in range(instances)),
            tags={"Name": f"service-{n:06d}", "team": f"team-{n % 500}", **(_policy_tags(n) if tagged else {})},
        )
        for n in range(units)
    ]


def _policy_tags(n: int) -> dict[str, str]:
    return {"troop:probability": "0.1", "troop:min_healthy": "3", "troop:owner": f"team-{n}"} if n % 3 == 1 else {}


def scenario(name: str, units: int, instances: int) -> tuple[Account, Settings, datetime]:
    mixed = name == "mixed"
    all_groups = groups(units, instances, tagged=mixed)
    items = {g.name: {"opt_out": n % 2 == 0, "reason": "a migration"} for n, g in enumerate(all_groups) if n % 3 == 2}
    account = Account(
        groups=all_groups,
        items=items if mixed else {},
        states={g.name: UnitState(last_day=date(2026, 10, 1 + n % 28)) for n, g in enumerate(all_groups)}
        if mixed
        else {},
        switch=Switch(halted=False, leashed=False),
        counts=Counts(),
    )
    patterns = {f"prefix-{n}-*": f"prefix-{n}" for n in range(5)} if mixed else {}
    now = {"all due": datetime(2026, 11, 20, 22, 45, tzinfo=UTC), "night": datetime(2026, 11, 20, 4, 0, tzinfo=UTC)}
    return account, settings(1.0 if name.startswith("all") else 0.2, patterns), now.get(name, OPEN)


def measure(name: str, units: int, instances: int, repeat: int) -> dict[str, Any]:
    """Measures one scenario in this process."""
    before = peak_mb()
    account, chosen, now = scenario(name, units, instances)
    read = peak_mb()
    times, on_the_wall = [], []
    for _ in range(repeat):
        wall, start = time.monotonic(), time.process_time()
        with without_collections():
            decisions = decide_all(facts_of_units(account, chosen, SALT, now))
        times.append(time.process_time() - start)
        on_the_wall.append(time.monotonic() - wall)
        reasons = Counter(d.reason for d in decisions)
        del decisions
    return {
        "scenario": name,
        "units": units,
        "seconds": min(times),
        "wall": min(on_the_wall),
        "account_mb": read - before,
        "peak_mb": peak_mb(),
        "reasons": dict(reasons.most_common(4)),
    }


def _yardstick() -> float:
    """Measures the seconds of a fixed task, which shows how much other load slows this machine."""
    times = []
    for _ in range(3):
        start = time.process_time()
        for n in range(100_000):
            hmac.digest(SALT, b"roll|2026-11-20|%d" % n, hashlib.sha256)
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--instances", type=int, default=4, help="instances of each group")
    parser.add_argument("--repeat", type=int, default=3, help="number of repetitions, of which the fastest counts")
    parser.add_argument("--scenario", choices=SCENARIOS, help="only this one, in this process, as JSON")
    options = parser.parse_args()
    if options.scenario:
        print(json.dumps(measure(options.scenario, options.units, options.instances, options.repeat)))
        return
    print(
        f"{options.units:,} units of one group with {options.instances} instances; MB; seconds of one core, and elapsed"
    )
    print(f"for comparison: 100,000 HMACs, one for each unit, take {_yardstick():.2f} s now")
    print(f"{'scenario':<10}{'seconds':>8}{'wall':>7}{'account':>9}{'peak':>7}  reasons")
    for name in SCENARIOS:
        row = _in_own_process(name, options)
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in row["reasons"].items())
        seconds = f"{row['seconds']:>8.2f}{row['wall']:>7.2f}"
        memory = f"{row['account_mb']:>9.0f}{row['peak_mb']:>7.0f}"
        print(f"{name:<10}{seconds}{memory}  {reasons}", flush=True)
    for name, meaning in SCENARIOS.items():
        print(f"{name}: {meaning}")


def _in_own_process(name: str, options: argparse.Namespace) -> dict[str, Any]:
    arguments = ["--scenario", name, "--units", str(options.units), "--instances", str(options.instances)]
    command = [sys.executable, "-m", "perf.decide", *arguments, "--repeat", str(options.repeat)]
    answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    row: dict[str, Any] = json.loads(answer)
    return row


if __name__ == "__main__":
    main()
