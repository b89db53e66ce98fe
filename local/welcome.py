"""What `python -m local up` says when it is up, and the commands that it lends."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from .demo.benchmark import COMMAND
from .project import NODE_AWS, ROOT


def lend_commands(run: Path) -> Path:
    """A folder in the run directory with `aws` and `troop` as set-up has installed them: nobody needs a CLI of his own,
    and one that is too old to know AWS_ENDPOINT_URL would call AWS itself."""
    folder = run / "bin"
    folder.mkdir(0o700)
    for command in (NODE_AWS, ROOT / "scripts" / "troop"):
        (folder / command.name).symlink_to(command)
    return folder


def exports(environment: Mapping[str, str], commands: Path) -> str:
    """Lines for a shell: `environment`, and the folder `commands` first in PATH."""
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in sorted(environment.items())]
    return "".join([*lines, f'export PATH={shlex.quote(str(commands))}:"$PATH"\n'])


def welcome(file: Path, outputs: Mapping[str, str], now: datetime, zone: str) -> str:
    """`file`: has the environment for a shell; its keys are not repeated here, for output may end up in a log.
    `outputs`: the stack's; without them nothing is deployed. `now`: aware. `zone`: the calendar's."""
    lines = ["", "In another terminal, so that boto3, and the project's own `aws` and `troop`, talk to it:", ""]
    lines += [f"  source {file.relative_to(ROOT)}"]
    if outputs:
        lines += ["", *(f"{name}: {value}" for name, value in sorted(outputs.items()))]
        lines += ["", *_chaos(now.astimezone(ZoneInfo(zone)), zone), "", *_NEXT]
    return "\n".join([*lines, "", "Ctrl-C stops all of it."])


def _chaos(local: datetime, zone: str) -> list[str]:
    midnight = (local + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    left = (midnight - local) // timedelta(minutes=1)
    return [
        "Chaos is unleashed here: every group loses an instance a day, a group of one, too (min_healthy is 1).",
        "A deployment into AWS starts leashed: it decides and records, and terminates nothing.",
        f"Ticks come every minute, day and night. The calendar's clock shows {local:%H:%M} ({zone}): nearly every",
        f"group is due at once, any other within {left} minutes. Then a new day begins, and each is due once more.",
    ]


_NEXT = [
    "What to try next:",
    "  # a group of three; its instances are processes, and nearly always one of them is terminated within two minutes",
    "  aws ec2 create-launch-template --launch-template-name web \\",
    """    --launch-template-data '{"ImageId": "ami-00000000", "InstanceType": "t3.micro"}'""",
    "  aws autoscaling create-auto-scaling-group --auto-scaling-group-name web --min-size 3 --max-size 3 \\",
    "    --launch-template LaunchTemplateName=web --availability-zones us-east-1a us-east-1b",
    "  # what takes part, and what was terminated, as it happens",
    "  troop groups",
    "  troop events --follow",
    "  # what was decided each minute, and why; and another instance, now",
    "  troop why web --all",
    "  troop terminate web",
    "  # a benchmark: a fleet of two, its results, and nothing left of it",
    f"  troop {' '.join(COMMAND)}",
]
