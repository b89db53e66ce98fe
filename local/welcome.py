"""Creates the welcome text of `python -m local up`, and its shell environment."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from troop.shared import zones

from .demo.benchmark import COMMAND
from .project import NODE_AWS, ROOT


def lend_commands(run: Path) -> Path:
    """Creates a folder in the run directory with the project's `aws` and `troop`; returns it.

    Users need no AWS CLI of their own. An old one that ignores AWS_ENDPOINT_URL would call AWS.
    """
    folder = run / "bin"
    folder.mkdir(0o700)
    for command in (NODE_AWS, ROOT / "scripts" / "troop"):
        (folder / command.name).symlink_to(command)
    return folder


def exports(environment: Mapping[str, str], commands: Path) -> str:
    """Returns shell lines that set `environment`, and put the folder `commands` first in PATH."""
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in sorted(environment.items())]
    return "".join([*lines, f'export PATH={shlex.quote(str(commands))}:"$PATH"\n'])


def welcome(file: Path, outputs: Mapping[str, str], now: datetime, zone: str) -> str:
    """Returns the welcome text. It omits the keys of the environment, because output may end up in a log.

    Args:
        file: sets the environment of a shell.
        outputs: of the stack; empty without a deployment.
        now: an aware moment.
        zone: the time zone of the calendar.
    """
    lines = ["", "To use it from another terminal with boto3, or with the `aws` and `troop` of this project:", ""]
    lines += [f"  source {file.relative_to(ROOT)}"]
    if outputs:
        lines += ["", *(f"{name}: {value}" for name, value in sorted(outputs.items()))]
        lines += ["", *_chaos(now.astimezone(zones.zone(zone)), zone), "", *_NEXT]
    return "\n".join([*lines, "", "Ctrl-C stops everything."])


def _chaos(local: datetime, zone: str) -> list[str]:
    midnight = (local + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    left = (midnight - local) // timedelta(minutes=1)
    return [
        "Chaos is unleashed here: every group loses an instance a day, even a group of one (min_healthy is 1).",
        "A deployment into AWS starts leashed (a dry run): it decides and records, but terminates nothing.",
        f"Ticks come every minute, day and night. It is {local:%H:%M} in the calendar's time zone ({zone}).",
        f"Nearly every group is due at once, the others within {left} minutes. On the next day, each is due again.",
        "Faults inside instances need the group's tag troop:inside, and a role with AmazonSSMManagedInstanceCore.",
    ]


_NEXT = [
    "What to try next:",
    "  # create a group of three; its instances are processes, and Troop usually terminates one within two minutes",
    "  aws ec2 create-launch-template --launch-template-name web \\",
    """    --launch-template-data '{"ImageId": "ami-00000000", "InstanceType": "t3.micro"}'""",
    "  aws autoscaling create-auto-scaling-group --auto-scaling-group-name web --min-size 3 --max-size 3 \\",
    "    --launch-template LaunchTemplateName=web --availability-zones us-east-1a us-east-1b",
    "  # show which groups take part, and follow terminations",
    "  troop groups",
    "  troop events --follow",
    "  # show every decision with its reason; terminate another instance now",
    "  troop why web --all",
    "  troop terminate web",
    "  # run a benchmark with a fleet of two, which is removed at its end",
    f"  troop {' '.join(COMMAND)}",
]
