"""Ends a server of the fleet cassandra on local AWS, and counts what its clients notice: `make ring`.

Real servers, in network namespaces where these are available. Auto Scaling launches the replacement, Troop gives it the
rank of the lost server, and its setup takes over the token, while clients write and read.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import tools
from .launcher import LocalAccount
from .project import ROOT, STATE, tool_environment
from .settings import lasting_settings

FLEET = ROOT / "fleets" / "cassandra"
PICTURE = STATE / "ring.svg"
LOST_RANK = 1
BEFORE, AFTER = 20.0, 15.0
"""Seconds of load before the loss, and after the replacement."""
NOTHING: Mapping[str, Any] = {"failed": {}, "slowest_ms": 0.0}
"""A second in which no request ended."""
PARAMETERS: Mapping[str, Any] = {
    "heap_mib": 512,
    "disk": "root",
    "ring_delay_ms": 5000,
    "ring_seconds": 420,
    "system": False,
    "write_timeout_ms": 5000,
}
"""Parameters of a ring on one machine."""


def run(say: Callable[[str], None]) -> int:
    """Shows the loss of a server. Returns the exit code: 1 if a row was lost or wrong.

    Raises:
        NoToolError: a tool cannot be installed.
    """
    tools.prepare_ring(say)
    with LocalAccount("ring", progress=say) as account:
        outputs = account.deploy(lasting_settings(datetime.now(UTC)))
        environment = {**tool_environment(), **account.exports, "COLUMNS": "160"}
        say("three servers and a driver: about two minutes")
        fleet = _up(environment)
        ring = Ring(account, outputs["ResultsBucket"], fleet, environment)
        say(f"the ring is ready; its clients write and read for {BEFORE:.0f} s")
        time.sleep(BEFORE)
        lost = ring.seat(LOST_RANK)
        say(f"ending the server of rank {LOST_RANK}, {lost['id']} at {lost['address']}")
        at = time.time()
        account.client("ec2").terminate_instances(InstanceIds=[lost["id"]])
        account.wait(lambda: ring.seat(LOST_RANK)["id"] != lost["id"], "nobody has the rank of the lost server")
        heir, seated = ring.seat(LOST_RANK), time.time()
        say(f"{heir['id']} at {heir['address']} has its rank {seated - at:.0f} s later, and takes over its token")
        account.wait(lambda: ring.ready(heir["id"]), "the replacement is not ready")
        ready = time.time()
        say(f"the ring is complete again after {ready - at:.0f} s; another {AFTER:.0f} s of load")
        time.sleep(AFTER)
        say("the clients read all acknowledged rows again")
        counts, outcome = ring.stop()
        print(table(counts["seconds"], at, ready), flush=True)
        print(summary(counts, outcome), flush=True)
        moments = {"a server ends": at, "another one has its rank": seated, "and its place": ready}
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(picture(counts["seconds"], moments), encoding="utf-8")
        say(f"the picture: {PICTURE}")
        say("removing the fleet")
        _fleet(environment, "down", fleet)
    return 1 if outcome["missing"] or counts["wrong"] else 0


class Ring:
    """The fleet on local AWS."""

    def __init__(self, account: LocalAccount, bucket: str, fleet: str, environment: Mapping[str, str]) -> None:
        self._account, self._bucket, self._fleet, self._environment = account, bucket, fleet, environment

    def seat(self, rank: int, role: str = "servers") -> dict[str, Any]:
        """Returns the line of the roster."""
        stored = self._account.client("s3").get_object(Bucket=self._bucket, Key=f"runs/{self._fleet}/c001/roster.json")
        nodes = json.loads(stored["Body"].read())["nodes"]
        return next(one for one in nodes if (one["role"], one["rank"]) == (role, rank))

    def ready(self, node: str) -> bool:
        """Checks whether the setup of a node has ended well.

        Raises:
            SystemExit: it has failed.
        """
        detail = json.loads(_fleet(self._environment, "status", self._fleet, "--json"))
        (own,) = [one for one in detail["nodes"] if one["id"] == node] or [{"ready": False, "problem": None}]
        if own["problem"]:
            raise SystemExit(f"{node}: {own['problem']}")
        return bool(own["ready"])

    def stop(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Stops the clients, and returns their counts and their outcome."""
        driver = self.seat(0, "drivers")["id"]
        (home,) = [Path(one["directory"]) for one in self._account.instances() if one["id"] == driver]
        (shared,) = {file.parent for file in home.rglob("clients.json")}
        (shared / "stop").touch()
        self._account.wait(lambda: (shared / "outcome.json").exists(), "the clients have not verified their rows")
        counts, outcome = (json.loads((shared / name).read_text()) for name in ("clients.json", "outcome.json"))
        return counts, outcome


def table(seconds: Mapping[str, Mapping[str, Any]], at: float, ready: float) -> str:
    """Returns a line for each second around the loss in which requests failed, were slow or missing, and totals."""
    lines = ["", f"{'second':>8}  {'writes':>7}  {'reads':>7}  {'slowest':>9}  failed requests"]
    phases: dict[str, list[Mapping[str, Any]]] = {"before": [], "meanwhile": [], "after": []}
    for second in _covered(seconds):
        one = seconds.get(str(second), NOTHING)
        phase = "before" if second < int(at) else "after" if second > ready else "meanwhile"
        phases[phase].append(one)
        if phase == "meanwhile" and (one["failed"] or one["slowest_ms"] > 1000 or one == NOTHING):
            lines.append(_line(f"+{second - int(at)} s", [one]))
    lines += [_line(name, some) for name, some in phases.items() if some]
    return "\n".join(lines)


def _covered(seconds: Mapping[str, Any]) -> range:
    """Returns all seconds from the first to the last, also those in which no request ended."""
    return range(min(map(int, seconds)), max(map(int, seconds)) + 1)


def _line(name: str, seconds: list[Mapping[str, Any]]) -> str:
    failed: dict[str, int] = {}
    for one in seconds:
        for kind, count in one["failed"].items():
            failed[kind] = failed.get(kind, 0) + count
    writes, reads = (sum(one.get(key, 0) for one in seconds) for key in ("writes", "reads"))
    slowest = max(one["slowest_ms"] for one in seconds)
    problems = ", ".join(f"{count} {kind}" for kind, count in sorted(failed.items())) or "none"
    return f"{name:>8}  {writes:>7,}  {reads:>7,}  {slowest:>6,.0f} ms  {problems}"


def summary(counts: Mapping[str, Any], outcome: Mapping[str, Any]) -> str:
    """Returns what the clients noticed in sentences."""
    seconds = list(counts["seconds"].values())
    done = sum(one.get(key, 0) for one in seconds for key in ("writes", "reads"))
    failed = sum(sum(one["failed"].values()) for one in seconds)
    return (
        f"\nClients sent {done + failed:,} requests. {done:,} succeeded; {failed:,} failed and were repeated. "
        f"The longest wait for a success was {counts['longest_wait_ms'] / 1000:.1f} s.\n"
        f"Of {outcome['acknowledged']:,} acknowledged rows, {outcome['missing']:,} are missing. "
        f"{counts['wrong']:,} reads had another value than the one written.\n"
    )


def picture(seconds: Mapping[str, Mapping[str, Any]], moments: Mapping[str, float]) -> str:
    """Returns an SVG: the requests of each second that succeeded and failed, the slowest one, and lines at moments.

    Args:
        moments: Unix times by what happened; the first is second 0.
    """
    covered, first = _covered(seconds), next(iter(moments.values()))
    counts = [seconds.get(str(second), NOTHING) for second in covered]
    done = [one.get("writes", 0) + one.get("reads", 0) for one in counts]
    failed = [sum(one["failed"].values()) for one in counts]
    slowest = [one["slowest_ms"] for one in counts]
    width, most, longest = 900 / len(counts), max([*done, *failed, 1]), max([*slowest, 1.0])
    shapes = []
    for number, (good, bad, slow) in enumerate(zip(done, failed, slowest, strict=True)):
        bars = [(200, 150 * good / most, "#2a78d6"), (340, 110 * slow / longest, "#8a8f98")]
        bars += [(200, max(4, 150 * bad / most), "#d03b3b")] if bad else []
        shapes += [
            f'<rect x="{60 + number * width:.1f}" y="{bottom - height:.1f}" width="{0.8 * width:.1f}" '
            f'height="{height:.1f}" fill="{color}"/>'
            for bottom, height, color in bars
        ]
    for row, (name, moment) in enumerate(moments.items()):
        x = 60 + (moment - covered[0]) * width
        anchor, side = ("start", 4) if x < 600 else ("end", -4)
        text = f"{name} (+{moment - first:.0f} s)"
        shapes += [
            f'<path d="M{x:.1f} {18 + 12 * row}V340" stroke="#222" stroke-dasharray="3 3"/>',
            f'<text x="{x + side:.1f}" y="{24 + 12 * row}" text-anchor="{anchor}">{text}</text>',
        ]
    texts = [
        ("start", 60, 358, f"{covered[0] - int(first)} s"),
        ("end", 960, 358, f"+{covered[-1] - int(first)} s"),
        ("end", 54, 56, f"{most:,}"),
        ("end", 54, 236, f"{longest:,.0f} ms"),
        ("start", 60, 376, "above: requests of each second; blue succeeded, red failed. below: the slowest one"),
    ]
    shapes += [f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>' for anchor, x, y, text in texts]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 980 384" font-family="sans-serif" font-size="11">'
        f'<rect width="980" height="384" fill="#fff"/>{"".join(shapes)}</svg>\n'
    )


def _up(environment: Mapping[str, str]) -> str:
    changes = [f"parameters.{key}={json.dumps(value)}" for key, value in PARAMETERS.items()]
    for name, path in zip(("cassandra", "jolokia"), tools.JARS, strict=True):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        changes += [f"artifacts.{name}.source=../../{path.relative_to(ROOT)}", f"artifacts.{name}.sha256={digest}"]
    options = [word for change in changes for word in ("--set", change)]
    return str(json.loads(_fleet(environment, "up", str(FLEET), *options, "--json"))["fleet"]["fleet"])


def _fleet(environment: Mapping[str, str], *words: str) -> str:
    """Runs `troop fleet`, whose progress it leaves on standard error. Returns its output."""
    command = [str(ROOT / "scripts" / "troop"), "fleet", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"troop fleet {words[0]} failed: {done.stdout}")
    return done.stdout
