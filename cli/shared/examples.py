"""Gives the examples in the help of each command."""

from __future__ import annotations

from collections.abc import Mapping

from cli.shared.context import ANYWHERE, EVERYWHERE

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": ("troop status", "troop groups --takes-part no", "troop --all status"),
    "status": ("troop status", "troop status --watch 10"),
    "events": (
        "troop events --day yesterday --status UNRECOVERED",
        "troop events --unit web --since 2w -o csv",
        "troop events 2026-11-20#web",
    ),
    "why": ("troop why web", "troop why web --day yesterday --ticks"),
    "changes": ("troop changes --since yesterday", "troop changes --unit web -o json"),
    "report": ("troop report --open", "troop report --from 2026-07-01 --to 2026-09-30 -o q3.html"),
    "risks": ("troop risks", "troop risks --severity high --owner team-web", "troop risks --unit web --exempt --gone"),
    "exempt": (
        "troop exempt one-zone web --until 2027-03-31 --reason 'moves to three zones in March'",
        "troop exempt one-zone web --end",
    ),
    "groups": (
        "troop groups --takes-part no --sort owner",
        "troop groups --owner payments --skipped-because alarm -o wide",
    ),
    "group": ("troop group web",),
    "opt-out": ("troop opt-out web --reason 'migration of the database' --until 2027-01-31",),
    "opt-in": ("troop opt-in web",),
    "set": ("troop set web probability=0.5 min_healthy=2", "troop set web calendar="),
    "leash": ("troop leash --reason 'release week'",),
    "unleash": ("troop unleash --reason 'the game day begins'",),
    "halt": ("troop halt --reason 'incident 4711'", "troop --all halt --reason 'incident 4711'"),
    "resume": (
        "troop resume --reason 'incident 4711 is over' --yes",
        "troop --all resume --halt 20270120-101500-4f2a91c0",
    ),
    "terminate": ("troop terminate web-v42", "troop terminate web-v42 --method drain --key drill-7 --yes"),
    "doctor": ("troop doctor", "troop doctor --strict --json"),
    "prove": ("troop prove --list", "troop prove --only runtime --only absent-role"),
    "thresholds": (
        "troop thresholds 'AWS/SQS/ApproximateAgeOfOldestMessage{QueueName=orders}' --statistic Maximum",
        "troop thresholds latency --fleet workers --days 60",
    ),
    "plan": (
        "troop plan --unit web --days 30",
        "troop plan --day tomorrow",
        "troop plan --groups groups.yaml --salt test",
    ),
    "simulate": ("troop simulate --groups groups.yaml --from 2027-01-01 --to 2027-12-31",),
    "proxy": ("troop proxy --port 8080",),
    "ui": ("troop ui", "troop ui --no-open --port 8080", "troop --all ui"),
    "reaper": ("troop reaper off --reason 'to look at a node'",),
    "reaper off": ("troop reaper off --reason 'to look at a node'",),
    "reaper on": ("troop reaper on --yes",),
    "schedules": ("troop schedules off --reason 'until the migration is over'",),
    "schedules off": ("troop schedules off --reason 'until the migration is over'",),
    "schedules on": ("troop schedules on --yes",),
    "policy": ("troop policy export > policies.yaml",),
    "policy export": ("troop policy export > policies.yaml",),
    "policy import": ("troop policy import policies.yaml --dry-run",),
    "policy diff": ("troop policy diff test prod --deployed --exit-code",),
    "bench": ("troop bench run disk-io --size smoke",),
    "bench new": ("troop bench new my-store", "troop bench new my-tool --kind tool"),
    "bench copy": ("troop bench copy cassandra-write", "troop bench copy disk-io my-disks"),
    "bench list": ("troop bench list --status FAILED --sort began", "troop bench list --catalogue"),
    "bench validate": ("troop bench validate disk-io --size smoke",),
    "bench estimate": ("troop bench estimate disk-io --size study",),
    "bench run": (
        "troop bench run disk-io --size smoke",
        "troop bench run my-benchmark --set parameters.threads=8 --no-wait",
    ),
    "bench status": ("troop bench status 20270120-101500-4f2a91c0 --follow",),
    "bench watch": (
        "troop bench watch 20270120-101500-4f2a91c0",
        "troop bench watch 20270120-101500-4f2a91c0 -o json",
    ),
    "bench stop": ("troop bench stop 20270120-101500-4f2a91c0",),
    "bench results": ("troop bench results 20270120-101500-4f2a91c0 --json",),
    "bench history": (
        "troop bench history s3-range-read --by hour",
        "troop bench history s3-range-read --figure p99 --html history.html",
        "troop bench history s3-range-read --fail-on-change",
    ),
    "bench noise": ("troop bench noise s3-range-read --size compare", "troop bench noise nightly-reads --json"),
    "bench schedule": (
        "troop bench schedule disk-io --every '6 hours'",
        "troop bench schedule my-benchmark --name nightly --cron '0 3 ? * MON-FRI *' --zone Europe/Berlin",
    ),
    "bench unschedule": ("troop bench unschedule nightly",),
    "bench schedules": ("troop bench schedules", "troop bench schedules -o wide"),
    "bench report": ("troop bench report 20270120-101500-4f2a91c0 --open",),
    "bench compare": ("troop bench compare 20270120-101500-4f2a91c0 --fail-below 0.95",),
    "fleet": ("troop fleet up worker",),
    "fleet validate": ("troop fleet validate worker",),
    "fleet estimate": ("troop fleet estimate worker --set fleets.workers.count=5",),
    "fleet up": ("troop fleet up worker --set fleets.workers.count=5",),
    "fleet scale": ("troop fleet scale 20270120-101500-4f2a91c0 --count 12 --role workers",),
    "fleet extend": ("troop fleet extend 20270120-101500-4f2a91c0 --for 24h",),
    "fleet submit": (
        "troop fleet submit 20270120-101500-4f2a91c0 tasks.txt --key batch-7",
        "aws s3 ls s3://BUCKET/in/ | awk '{print $4}' | troop fleet submit 20270120-101500-4f2a91c0 -",
    ),
    "fleet results": ("troop fleet results 20270120-101500-4f2a91c0 -o results/",),
    "fleet jobs": ("troop fleet jobs 20270120-101500-4f2a91c0",),
    "fleet status": ("troop fleet status 20270120-101500-4f2a91c0",),
    "fleet list": ("troop fleet list --status RUNNING --sort expires",),
    "fleet down": ("troop fleet down 20270120-101500-4f2a91c0 --no-wait",),
}
"""Examples by the words after ``troop``."""


def epilog(words: str) -> str:
    """Returns what follows the help of a command: its examples, and a line about the shared options."""
    examples = EXAMPLES.get(words, ())
    title = ["\b", "Examples:" if len(examples) > 1 else "Example:"] if examples else []  # \b: keep the lines below
    shared = f"{ANYWHERE}, --all, --deployments." if words in EVERYWHERE else f"{ANYWHERE}."
    return "\n".join([*title, *(f"  {line}" for line in examples), "", shared])
