"""Implements `python -m local`.

`up`: local AWS with Troop, until Ctrl-C; `demo`: a complete demonstration; `bench`: a benchmark; `first-hour`: the
commands of docs/start/first-hour.md; `pictures`: the pictures of the documents; `tools`: the tools of the benchmarks
with Cassandra; `latte`: the load generator for nodes; `web`: the benchmark web-scale; `ring`: the fleet cassandra,
which loses a server; `loss`: failures under load; `workers`: a fleet that works, grows, heals and shrinks.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from . import latte, loss, profiles, ring, web, workers
from .demo.benchmark import put_data, tell_benchmark
from .demo.story import tell
from .deployment import DeploymentError
from .guides.walk import first_hour
from .launcher import LocalAccount
from .pictures.take import FOLDER, take
from .process import AccountError, alone, write_private
from .project import ROOT, STATE, NotSetUpError
from .settings import lasting_settings
from .tools import NoToolError, prepare, prepare_service
from .welcome import exports, lend_commands, welcome

_FIRST = "local"
"""The name of local AWS, unless another is chosen."""
_PROFILES = STATE / "profiles"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m local", description="Run local AWS, with Troop deployed into it.")
    commands = parser.add_subparsers(required=True, metavar="command")
    up = commands.add_parser("up", help="start local AWS, and run it until Ctrl-C")
    up.add_argument("--no-deploy", action="store_true", help="start the account without Troop")
    up.add_argument("--kernels", action="store_true", help="boot benchmarks' nodes as kernels (User-Mode Linux)")
    up.add_argument("--name", type=_name, default=_FIRST, help="the name of one of several (default: %(default)s)")
    up.set_defaults(run=lambda options: _up(options.name, deploy=not options.no_deploy, kernels=options.kernels))
    demo = commands.add_parser("demo", help="show a complete demonstration")
    demo.set_defaults(run=lambda _: tell())
    bench = commands.add_parser("bench", help="run a benchmark, and show its results and its teardown")
    bench.set_defaults(run=lambda _: tell_benchmark())
    hour = commands.add_parser("first-hour", help="run the commands of docs/start/first-hour.md")
    hour.set_defaults(run=lambda _: first_hour())
    pictures = commands.add_parser("pictures", help="take the pictures of the documents: dashboards, page, report")
    pictures.add_argument("--out", type=Path, default=FOLDER, metavar="FOLDER", help="output (default: %(default)s)")
    pictures.add_argument(
        "--minutes", type=int, default=30, metavar="N", help="length of the business day in them (default: %(default)s)"
    )
    pictures.set_defaults(run=lambda options: take(options.out, options.minutes))
    tools = commands.add_parser("tools", help="install the tools of the benchmarks with Cassandra into .build/tools")
    tools.add_argument("--service", action="store_true", help="those of data-service, in place of cassandra-write's")
    tools.set_defaults(run=_tools)
    for_nodes = commands.add_parser("latte", help="build latte for nodes, and print its path and hash")
    for_nodes.set_defaults(run=lambda _: latte.build(lambda message: print(f"== {message}", flush=True)))
    web_scale = commands.add_parser("web", help="run the benchmark web-scale with JMeter, and write its report")
    web_scale.add_argument("more", nargs="*", metavar="OPTION", help="of troop bench run, after --")
    web_scale.set_defaults(
        run=lambda options: web.run(lambda message: print(f"== {message}", flush=True), options.more)
    )
    survives = commands.add_parser("ring", help="end a server of a Cassandra ring, and count what clients notice")
    survives.set_defaults(run=lambda _: ring.run(lambda message: print(f"== {message}", flush=True)))
    fails = commands.add_parser("loss", help="measure what load notices of failures, and write the reports")
    fails.add_argument("--kernels", action="store_true", help="only cut and slow networks, on kernels as nodes")
    fails.set_defaults(
        run=lambda options: loss.run(lambda message: print(f"== {message}", flush=True), only_kernels=options.kernels)
    )
    works = commands.add_parser("workers", help="break workers of a fleet with a queue, and draw what happens")
    works.add_argument("--short", action="store_true", help="fewer tasks and nodes, and none that falls silent")
    works.set_defaults(
        run=lambda options: workers.run(lambda message: print(f"== {message}", flush=True), short=options.short)
    )
    arguments = parser.parse_args()
    try:
        return int(arguments.run(arguments) or 0)
    except (NotSetUpError, AccountError, DeploymentError, NoToolError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _tools(options: argparse.Namespace) -> None:
    (prepare_service if options.service else prepare)(lambda message: print(f"== {message}", flush=True))


def _name(text: str) -> str:
    if not re.fullmatch("[a-z][a-z0-9]{0,15}", text):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a lower-case letter, then up to 15 letters and digits")
    return text


def _up(name: str, deploy: bool, kernels: bool) -> int:
    file = STATE / ("env.sh" if name == _FIRST else f"env-{name}.sh")
    began = time.monotonic()

    def progress(message: str) -> None:
        print(f"[{time.monotonic() - began:5.1f} s] {message}", flush=True)

    with alone(file, name), LocalAccount(name, kernels=kernels, progress=progress) as account:
        settings = lasting_settings(datetime.now(UTC))
        outputs = account.deploy(settings) if deploy else {}
        if deploy:
            put_data(account)
        write_private(file, exports(account.exports, lend_commands(account.run)))
        profiles.add(_PROFILES, name, account.exports)
        progress("ready")
        zone = settings["troop:calendars"]["default"]["time_zone"]
        print(welcome(file, outputs, datetime.now(UTC), zone), flush=True)
        try:
            while True:
                account.check()
                time.sleep(0.5)
        except KeyboardInterrupt:
            pass
        finally:
            logs = account.run.relative_to(ROOT)
            print(f"\nstopping ... (logs: {logs}; the logs of the last three runs remain)", flush=True)
            file.unlink(missing_ok=True)
            profiles.remove(_PROFILES, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
