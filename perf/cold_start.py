"""Measures cold starts: import time and peak memory of each handler, and the sizes of code and layers.

    python -m perf.cold_start [--repeat 3] [--handlers decide api]

A fresh interpreter imports each handler. As in Lambda, it sees the code, its layers (bundled for this machine, with
byte code) and the AWS SDK with byte code. "clients" adds the creation of the clients that Decide needs. "compiled" is
the import without the bundle's byte code: Python compiles everything and stores nothing, because Lambda's folders are
read-only. Times are processor seconds, so that other load on this machine matters less. They exclude Lambda's start of
the sandbox and of Python, and Lambda's processors differ from this machine's. So compare handlers with each other, or
with their own earlier figures.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.bundling import bundle, size

SDK = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six.py", "urllib3")
"""Packages of Lambda's Python runtime."""

LAYERS_OF = {
    "api": ("runtime", "api"),
    "report": ("runtime", "api", "report"),
    "start": ("runtime", "api"),
    "widgets": ("runtime", "report"),
}
"""Layers by function, as in infra. Other functions have the first layer only."""

CLIENTS = {"decide": ("autoscaling", "cloudwatch", "ec2", "dynamodb", "secretsmanager", "s3")}
"""Services that Decide calls at a tick with a termination."""

PROGRAM = """
import json, sys, time
def peak():  # unlike getrusage, this excludes the parent process
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
sys.path[:0] = json.loads(sys.argv[2])
before = peak()
started = time.process_time()
__import__(sys.argv[1])
imported = time.process_time()
if clients := json.loads(sys.argv[3]):
    from troop.shared.aws.clients import client
    for service in clients:
        client(service)
ready = time.process_time()
numbers = {"imported": imported - started, "ready": ready - started, "before": before, "peak": peak()}
print(json.dumps(numbers | {"modules": len(sys.modules)}))
"""


@dataclass(frozen=True)
class Start:
    """One start: processor seconds until the import and until the clients exist, kilobytes before the import and at
    the peak, and loaded modules.
    """

    imported: float
    ready: float
    before: int
    peak: int
    modules: int


def start(handler: str, path: Sequence[Path]) -> Start:
    """Imports ``handlers.HANDLER`` in a new interpreter that writes no byte code."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONDONTWRITEBYTECODE": "1",
        "POWERTOOLS_SERVICE_NAME": handler,
        "AWS_DEFAULT_REGION": "eu-central-1",
    }
    places, clients = json.dumps([str(one) for one in path]), json.dumps(CLIENTS.get(handler, ()))
    # -S: excludes the virtual environment from the path.
    command = [sys.executable, "-S", "-c", PROGRAM, f"handlers.{handler}", places, clients]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd="/")
    return Start(**json.loads(done.stdout))


def without_byte_code(folder: Path, into: Path) -> Path:
    """Copies ``folder`` without byte code, so that Python has to compile it."""
    return Path(shutil.copytree(folder, into, ignore=shutil.ignore_patterns("__pycache__")))


def sdk(into: Path) -> Path:
    """Fills a folder with the AWS SDK of this virtual environment only."""
    import boto3

    installed = Path(boto3.__file__).parents[1]
    for name in SDK:
        (into / name).symlink_to(installed / name)
    return into


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="number of starts, of which the fastest counts")
    parser.add_argument("--handlers", nargs="+", help="only these (default: all)")
    options = parser.parse_args()
    bundled, deployed = bundle("machine", "{}"), bundle("lambda", "{}")
    print("folder (unzipped)        bytes for Lambda    for this machine")
    for name in ("code", *bundled.layers):
        here, there = (size(b.code if name == "code" else b.layers[name]) for b in (bundled, deployed))
        print(f"{name:24} {there:16,}    {here:16,}")
    print(f"\n{'handler':12} {'import':>10} {'clients':>10} {'compiled':>10} {'peak':>9} {'modules':>8}")
    with tempfile.TemporaryDirectory() as scratch:
        library = Path(scratch) / "sdk"
        library.mkdir()
        sdk(library)
        plain = {name: without_byte_code(folder, Path(scratch) / name) for name, folder in bundled.layers.items()}
        code = without_byte_code(bundled.code, Path(scratch) / "code")
        for handler in options.handlers or sorted(p.stem for p in (bundled.code / "handlers").glob("[!_]*.py")):
            names = LAYERS_OF.get(handler, ("runtime",))
            path = [bundled.code, *(bundled.layers[name] / "python" for name in names), library]
            starts = [start(handler, path) for _ in range(options.repeat)]
            path = [code, *(plain[name] / "python" for name in names), library]
            compiled = min(start(handler, path).imported for _ in range(options.repeat))
            imported, ready = (min(getattr(one, moment) for one in starts) for moment in ("imported", "ready"))
            clients = f"{ready * 1000:7,.0f} ms" if handler in CLIENTS else " " * 10
            print(
                f"{handler:12} {imported * 1000:7,.0f} ms {clients} {compiled * 1000:7,.0f} ms"
                f" {max(one.peak for one in starts) / 1024:6,.0f} MB {starts[0].modules:8}"
            )


if __name__ == "__main__":
    main()
