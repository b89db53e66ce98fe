"""`python -m local up`: local AWS with Troop deployed, until Ctrl-C; `demo`: one whole loop; `bench`: a benchmark;
`pictures`: those of the documents; `tools`: gets what the Cassandra benchmark runs.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from .demo.benchmark import COMMAND, put_data, tell_benchmark
from .demo.story import tell
from .deployment import DeploymentError
from .launcher import LocalAccount
from .pictures.take import FOLDER, take
from .process import AccountError
from .project import ROOT, STATE, NotSetUpError
from .settings import local_settings
from .tools import NoToolError, prepare

_ENVIRONMENT_FILE = STATE / "env.sh"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m local", description="AWS on this machine, with Troop deployed.")
    commands = parser.add_subparsers(required=True, metavar="command")
    up = commands.add_parser("up", help="bring it up and keep it up until Ctrl-C")
    up.add_argument("--no-deploy", action="store_true", help="the account only, without Troop")
    up.set_defaults(run=lambda given: _up(deploy=not given.no_deploy))
    demo = commands.add_parser("demo", help="see one whole loop, and end")
    demo.set_defaults(run=lambda _: tell())
    bench = commands.add_parser("bench", help="see a benchmark run, its results, and nothing left of it")
    bench.set_defaults(run=lambda _: tell_benchmark())
    pictures = commands.add_parser("pictures", help="take the documents' pictures: dashboards, page, report")
    pictures.add_argument("--out", type=Path, default=FOLDER, metavar="FOLDER", help="where to (default: %(default)s)")
    pictures.set_defaults(run=lambda given: take(given.out))
    tools = commands.add_parser("tools", help="get what the Cassandra benchmark runs here, into .build/tools")
    tools.set_defaults(run=lambda _: prepare(lambda message: print(f"== {message}", flush=True)))
    arguments = parser.parse_args()
    try:
        return int(arguments.run(arguments) or 0)
    except (NotSetUpError, AccountError, DeploymentError, NoToolError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _up(deploy: bool) -> int:
    began = time.monotonic()

    def progress(message: str) -> None:
        print(f"[{time.monotonic() - began:5.1f} s] {message}", flush=True)

    with LocalAccount("local", progress=progress) as account:
        outputs = account.deploy(local_settings(datetime.now(UTC))) if deploy else {}
        if deploy:
            put_data(account)
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in sorted(account.exports.items()))
        _ENVIRONMENT_FILE.write_text(exports)
        progress("up")
        print(_welcome(exports, outputs), flush=True)
        try:
            while True:
                account.check()
                time.sleep(0.5)
        except KeyboardInterrupt:
            print("\nstopping ...", flush=True)
        finally:
            _ENVIRONMENT_FILE.unlink(missing_ok=True)
    return 0


def _welcome(exports: str, outputs: dict[str, str]) -> str:
    lines = ["", "In another terminal, so that `aws` and boto3 talk to it:", "", exports.rstrip(), ""]
    lines.append(f"or:  source {_ENVIRONMENT_FILE.relative_to(ROOT)}")
    if outputs:
        lines += ["", *(f"{name}: {value}" for name, value in sorted(outputs.items()))]
        lines += [
            "",
            "What to try next:",
            "  # a group of three; its instances are processes, and one of them is terminated within a minute or two",
            "  aws ec2 create-launch-template --launch-template-name web \\",
            """    --launch-template-data '{"ImageId": "ami-00000000", "InstanceType": "t3.micro"}'""",
            "  aws autoscaling create-auto-scaling-group --auto-scaling-group-name web --min-size 3 --max-size 3 \\",
            "    --launch-template LaunchTemplateName=web --availability-zones us-east-1a us-east-1b",
            "  # what takes part, and what was terminated, as it happens",
            "  .venv/bin/troop groups",
            "  .venv/bin/troop events --follow",
            "  # what was decided each minute, and why; and another instance, now",
            "  .venv/bin/troop why web --all",
            "  .venv/bin/troop terminate web",
            "  # a benchmark: a fleet of two, its results, and nothing left of it",
            f"  .venv/bin/troop {' '.join(COMMAND)}",
        ]
    return "\n".join([*lines, "", "Ctrl-C stops all of it."])


if __name__ == "__main__":
    sys.exit(main())
