"""Estimates the monthly cost of Troop, item by item: by list price, and after the permanent free tier of AWS.

    python -m perf.price [--groups 1000] [--probability 0.2] [--recovery 180]
    python -m perf.price --document     # writes the table in docs/background/costs.md

All arithmetic is here. A test of the workflow counts the same transitions.
Prices are those of us-east-1, in US dollars, from the AWS pages that ``PRICES`` names. Check them before you rely on a
figure.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from infra import ROOT
from infra.generated import filled, table
from troop.chaos.recovery import CONFIRM_WAIT

PATH = ROOT / "docs" / "background" / "costs.md"

DAYS, HOURS, TICKS_A_DAY = 21, 730, 28
"""Business days and hours of a month; ticks of a day, from 09:00 to 15:45, every 15 minutes."""

BUSINESS_HOURS = DAYS * 7
WATCHDOG = 2920
"""Calls a month: every 15 minutes. The sweep between ticks runs as often."""

READINGS = 30
"""Readings of risks a month."""

PRICES = {
    "transition": (0.025 / 1000, "aws.amazon.com/step-functions/pricing"),
    "metric": (0.30, "aws.amazon.com/cloudwatch/pricing"),
    "alarm": (0.10, "aws.amazon.com/cloudwatch/pricing"),
    "dashboard": (3.00, "aws.amazon.com/cloudwatch/pricing"),
    "metric read": (0.01 / 1000, "aws.amazon.com/cloudwatch/pricing"),
    "log GB": (0.50, "aws.amazon.com/cloudwatch/pricing"),
    "secret": (0.40, "aws.amazon.com/secrets-manager/pricing"),
    "write unit": (0.625 / 1e6, "aws.amazon.com/dynamodb/pricing/on-demand"),
    "read unit": (0.125 / 1e6, "aws.amazon.com/dynamodb/pricing/on-demand"),
    "stored GB": (0.25, "aws.amazon.com/dynamodb/pricing/on-demand"),
    "recoverable GB": (0.20, "aws.amazon.com/dynamodb/pricing/on-demand"),
    "GB-second": (0.0000133334, "aws.amazon.com/lambda/pricing"),
    "call": (0.20 / 1e6, "aws.amazon.com/lambda/pricing"),
    "event": (1.00 / 1e6, "aws.amazon.com/eventbridge/pricing"),
    "schedule": (1.00 / 1e6, "aws.amazon.com/eventbridge/pricing"),
    "command": (0.0, "aws.amazon.com/systems-manager/pricing"),
    "action-minute of FIS": (0.10, "aws.amazon.com/fis/pricing"),
}

FREE = {
    "transition": 4000,
    "metric": 10,
    "alarm": 10,
    "dashboard": 3,
    "log GB": 5,
    "stored GB": 25,
    "GB-second": 400_000,
    "call": 1_000_000,
}
"""The free units of each month, also after an account's first year. All workloads of the account share them, and all
accounts of an organization.
"""

ACCOUNTS, DASHBOARDS = 40, 2
"""The accounts of a large organization, and the dashboards of a deployment."""

CLAIM_WRITES = 30
"""Write units to claim, mark and close an event: transactions count twice, and each of the three indices once."""

CHECK_WRITES = 4
"""Write units of a recovery check, or of a token: the event and its three indices."""

ROUND_SECONDS = 120
"""After so many seconds without news the workflow enters the state that waits for a recovery again."""

HEARD = 3
"""The events of AWS about a termination: its instance has left, the replacement runs, and it is in service."""

INJECT_SECONDS = 60
"""After so many seconds without an answer the workflow enters the state that follows a fault again."""

FAULT_STATES = 6
"""The states that the workflow enters once for a fault, besides that of the rounds."""

FAULT_STEPS = 12
"""Writes of an event for a fault: two probes, each sent, known and answered; the attempt, its command and end, the
proof, and what the claim and the workflow note.
"""

FAULT_COMMANDS = 3
"""The commands of a fault: itself, and a probe before and after it. The end of each calls a function."""

HIT_BYTES, HIT_MONTHS = 100, 12
"""An item ``hit#INSTANCE`` of the table State, and how long it stays: each tick reads all of the table."""

FAULT_OVERRUN, PROBE_SECONDS = 10, 8
"""Seconds from the claim to the fault and from its end to the proof, in all, without the probes; and of each probe."""

OTHER_LAUNCHES = 10
"""Replaced instances a month, for each group, that have nothing to do with chaos. A function hears of them, too."""


@dataclass(frozen=True)
class Item:
    """A number of ``units`` at the price of ``kind`` in ``PRICES``."""

    description: str
    kind: str
    units: float

    @property
    def price(self) -> float:
        return self.units * PRICES[self.kind][0]


def rounds_of(recovery: float) -> int:
    """Returns how often the workflow waits for a group that recovers after so many seconds."""
    return 1 + int(recovery // ROUND_SECONDS)


def month(groups: int, probability: float, recovery: float) -> list[Item]:
    ticks, killed = DAYS * TICKS_A_DAY, groups * probability * DAYS
    rounds, decisions = rounds_of(recovery), DAYS * TICKS_A_DAY * groups
    steps = killed * (4 + rounds)
    hourly = BUSINESS_HOURS / HOURS
    seconds_of_decide = 2 + 3 * groups / 1000
    working = ticks * (seconds_of_decide * 1 + 0.25) + (WATCHDOG * (2.5 + 0.2) + HOURS * 1.2) * 0.25
    calls, writes = 1 + rounds + HEARD, CLAIM_WRITES + CHECK_WRITES * (2 * rounds + HEARD)
    watching = killed * (0.5 * calls + CONFIRM_WAIT + 2 * 0.3) * 0.25
    stored, others = 90 / 30.4 * decisions / 1e6, groups * OTHER_LAUNCHES * HEARD
    return [
        Item(f"Step Functions: {killed:,.0f} terminations x (4 + {rounds})", "transition", steps),
        Item(f"Step Functions: {ticks} ticks x 6", "transition", ticks * 6),
        Item("alarms, by the metrics that they watch", "alarm", 18),
        Item("metrics of the watchdog, all month", "metric", 3),
        Item("metrics of the workflow: 16 during business hours", "metric", 16 * hourly),
        Item("rare metrics: 17 during 20 hours", "metric", 17 * 20 / HOURS),
        Item("metrics read by the watchdog", "metric read", WATCHDOG * 2),
        Item("the salt", "secret", 1),
        Item("decisions written, with their index", "write unit", decisions * 2),
        Item("claims and recovery checks written", "write unit", killed * writes),
        Item("risks written, two for each group", "write unit", READINGS * groups * 2),
        Item("tables read by ticks", "read unit", ticks * (groups / 10)),
        Item("decisions of 90 days stored, 0.7 KB each and 0.4 KB in the index", "stored GB", stored * 1.1),
        Item("their point-in-time recovery", "recoverable GB", stored * 0.7),
        Item("functions: ticks, watchdog, sweeps, redrives", "GB-second", working),
        Item("functions: the daily reading of risks", "GB-second", READINGS * (10 + 20 * groups / 1000)),
        Item("functions: terminations, recovery checks, notifications", "GB-second", watching),
        Item("functions: other launches of the account, heard", "GB-second", others * 0.1 * 0.25),
        Item("functions: calls", "call", ticks * 2 + WATCHDOG * 2 + HOURS + READINGS + others + killed * (2 + calls)),
        Item("notifications", "event", 2 * killed * 1.5),
        Item("logs", "log GB", (killed * (2 + calls) * 1e-6) + decisions * 0.4e-6),
    ]  # fmt: skip


def idle_benchmarks() -> list[Item]:
    """Returns what benchmarks add in a month in which hardly any runs."""
    return [
        Item("alarms", "alarm", 12),
        Item("metrics of what runs, in ten hours, and of the reaper", "metric", 4 * 10 / HOURS + 1),
        Item("functions: the reaper", "GB-second", WATCHDOG * 1.5 * 0.25),
        Item("functions: calls", "call", WATCHDOG),
    ]


def idle_deployments(accounts: int) -> dict[str, list[Item]]:
    """Returns by part what a month of an idle deployment in each of these accounts costs."""
    parts = {
        "chaos, idle": month(20, 0, 180),
        "benchmarks, while none runs": idle_benchmarks(),
        "dashboards": [Item("dashboards", "dashboard", DASHBOARDS)],
    }
    return {
        name: [Item(one.description, one.kind, one.units * accounts) for one in items] for name, items in parts.items()
    }


def faults(count: int, seconds: int) -> list[Item]:
    """Returns what a month of lasting faults costs instead of terminations: claims, recoveries and decisions stay."""
    lasting = seconds + FAULT_OVERRUN + 2 * PROBE_SECONDS
    rounds = 1 + lasting // INJECT_SECONDS
    steps, calls = FAULT_STATES + rounds, rounds + FAULT_COMMANDS + 1
    # The last round waits for the end within its call: half of a round on average.
    busy = (0.5 * calls + 2 * PROBE_SECONDS + INJECT_SECONDS / 2) * 0.25
    return [
        Item(f"Step Functions: {count:,} faults x ({FAULT_STATES} + {rounds})", "transition", count * steps),
        Item("Run Command: the fault, and a probe before and after it", "command", count * FAULT_COMMANDS),
        Item("functions: each round, each end of a command, the backstop", "GB-second", count * busy),
        Item("functions: calls", "call", count * calls),
        Item("backstop schedules", "schedule", count),
        Item("claims, steps and tokens written", "write unit", count * (32 + CHECK_WRITES * (FAULT_STEPS + rounds))),
        Item("marks of hit instances, kept for a year, read by ticks", "read unit", _read_marks(count)),
        Item("metrics of faults, during business hours", "metric", 2 * BUSINESS_HOURS / HOURS),
        Item("an alarm", "alarm", 1),
        Item("logs", "log GB", count * calls * 1e-6),
    ]


def _read_marks(count: int) -> float:
    """Returns the units in which a month's ticks read the marks of so many faults a month: 4 KB each, consistent."""
    return DAYS * TICKS_A_DAY * count * HIT_MONTHS * HIT_BYTES / 4096


def elsewhere(count: int, seconds: int) -> Item:
    """Returns the same faults as experiments of FIS, which charges for each minute of an action."""
    return Item(f"FIS: {count:,} x {seconds // 60} action-minutes", "action-minute of FIS", count * seconds / 60)


def text(document: str) -> str:
    """Returns docs/background/costs.md with current costs of a month: idle, with 1,000 groups at 0.2, and of faults."""
    idle, used = month(20, 0, 180), month(1000, 0.2, 180)
    rows = [
        (one.description, _arithmetic(one), _dollars(none.price), _dollars(one.price))
        for none, one in zip(idle, used, strict=True)
    ]
    for name, total in (("by list price", _by_list), ("after what is always free", _left)):
        rows.append((f"**{name}**", "", _dollars(total(idle)), _dollars(total(used))))
    document = filled(document, "month", table(["item", "units in use", "idle", "in use"], rows))
    document = filled(document, "accounts", table(["part", "one account", f"{ACCOUNTS} accounts"], _accounts()))
    lasting, fis = faults(4200, 300), elsewhere(4200, 300)
    parts = [(one.description, _arithmetic(one), _dollars(one.price)) for one in lasting]
    parts += [("**in all**", "", _dollars(_by_list(lasting))), (fis.description, _arithmetic(fis), _dollars(fis.price))]
    return filled(document, "faults", table(["item", "units", "a month"], parts))


def _accounts() -> list[tuple[str, str, str]]:
    """Returns the rows of idle deployments: each part by list price, and the sum after what is free once."""
    one, all_of_them = idle_deployments(1), idle_deployments(ACCOUNTS)
    rows = [(name, _dollars(_by_list(one[name])), _dollars(_by_list(all_of_them[name]))) for name in one]
    for name, without in (("in all", ()), ("without dashboards", ("dashboards",))):
        single, many = (
            _left([item for part, items in parts.items() if part not in without for item in items])
            for parts in (one, all_of_them)
        )
        rows.append((f"**{name}, after what is always free**", _dollars(single), _dollars(many)))
    return rows


def _by_list(items: list[Item]) -> float:
    return sum(item.price for item in items)


def _left(items: list[Item]) -> float:
    return sum(after_free(items).values())


def _arithmetic(item: Item) -> str:
    price, units = PRICES[item.kind][0], f"{item.units:,.0f}" if item.units >= 10 else f"{item.units:.3g}"
    if not price:
        return f"{units}, free"
    if price >= 0.01:
        return f"{units} x ${price:.2f}"
    return f"{units} x ${price * 1e6:.5g} / million" if price < 1e-5 else f"{units} x ${price * 1000:.4g} / 1,000"


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--probability", type=float, default=0.2)
    parser.add_argument("--recovery", type=float, default=180, help="seconds until a group recovers")
    parser.add_argument("--document", action="store_true", help="write the table in docs/background/costs.md")
    options = parser.parse_args()
    if options.document:
        PATH.write_text(text(PATH.read_text(encoding="utf-8")), encoding="utf-8")
        return
    items = month(options.groups, options.probability, options.recovery)
    print(f"{options.groups:,} groups at {options.probability:g}, recovered after {options.recovery:g} s")
    print(f"\n{'item':<66}{'units':>14}{'a month':>9}")
    for item in items:
        print(f"{item.description:<66}{item.units:>14,.1f}{item.price:>9.2f}")
    print(f"{'by list price':<80}{sum(item.price for item in items):>9.2f}")
    left = after_free(items)
    for kind, price in left.items():
        if price >= 0.005:
            print(f"{'  ' + kind:<80}{price:>9.2f}")
    print(f"{'after the permanent free tier':<80}{sum(left.values()):>9.2f}")
    print("\nprices from " + ", ".join(dict.fromkeys(f"https://{page}" for _, page in PRICES.values())))


def after_free(items: list[Item]) -> dict[str, float]:
    """Returns the price of the units above the free tier, by kind."""
    units: dict[str, float] = {}
    for item in items:
        units[item.kind] = units.get(item.kind, 0) + item.units
    return {kind: max(0, count - FREE.get(kind, 0)) * PRICES[kind][0] for kind, count in units.items()}


if __name__ == "__main__":
    main()
