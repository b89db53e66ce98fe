"""What a cold start costs: import time and peak memory of each handler, and the size of code and layers.

    python perf/cold_start.py [--repeat 3]

Each handler is imported in a fresh interpreter that sees what Lambda gives it: the code, its layers (bundled for this
machine) and the AWS SDK. "source" is a first import, for which everything has to be compiled, as in a new sandbox whose
layers have no byte code; "byte code" a later one. Lambda's own start of the sandbox and of Python comes on top, and its
processors are not this machine's: compare handlers with one another, and with themselves over time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from infra.bundling import bundle, size

SDK = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six.py", "urllib3")
"""What Lambda's Python runtime brings."""

LAYERS_OF = {"api": ("runtime", "api"), "report": ("runtime", "api", "report"), "widgets": ("runtime", "report")}
"""As infra/functions.py has it; any other function has the first alone."""

PROGRAM = """
import json, sys, time
def peak():  # unlike getrusage, this begins anew with the program: it has nothing of the parent's
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
sys.path[:0] = json.loads(sys.argv[2])
before = peak()
started = time.perf_counter()
__import__(sys.argv[1])
seconds = time.perf_counter() - started
print(json.dumps({"seconds": seconds, "before": before, "peak": peak(), "modules": len(sys.modules)}))
"""


@dataclass(frozen=True)
class Start:
    """One import: seconds, kilobytes of the interpreter alone and at the peak, modules loaded."""

    seconds: float
    before: int
    peak: int
    modules: int


def start(handler: str, path: Sequence[Path], byte_code: Path) -> Start:
    """Imports ``handlers.HANDLER`` in an interpreter of its own that keeps byte code in ``byte_code``."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPYCACHEPREFIX": str(byte_code),
        "POWERTOOLS_SERVICE_NAME": handler,
        "AWS_DEFAULT_REGION": "eu-central-1",
    }
    # -S: nothing of the virtual environment is on the path.
    command = [sys.executable, "-S", "-c", PROGRAM, f"handlers.{handler}", json.dumps([str(p) for p in path])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd="/")
    return Start(**json.loads(done.stdout))


def sdk(into: Path) -> Path:
    """A folder with the AWS SDK of this virtual environment, and nothing else."""
    import boto3

    installed = Path(boto3.__file__).parents[1]
    for name in SDK:
        (into / name).symlink_to(installed / name)
    return into


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="the fastest of so many is told")
    repeat = parser.parse_args().repeat
    bundled, deployed = bundle("machine", "{}"), bundle("lambda", "{}")
    print("folder (unzipped)        bytes for Lambda    for this machine")
    for name in ("code", *bundled.layers):
        here, there = (size(b.code if name == "code" else b.layers[name]) for b in (bundled, deployed))
        print(f"{name:24} {there:16,}    {here:16,}")
    print(f"\n{'handler':12} {'source':>10} {'byte code':>10} {'peak':>9} {'interpreter':>12} {'modules':>8}")
    with tempfile.TemporaryDirectory() as scratch:
        library = Path(scratch) / "sdk"
        library.mkdir()
        sdk(library)
        for handler in sorted(p.stem for p in (bundled.code / "handlers").glob("*.py") if p.stem != "__init__"):
            layers = [bundled.layers[name] / "python" for name in LAYERS_OF.get(handler, ("runtime",))]
            path = [bundled.code, *layers, library]
            first, later = [], []
            for number in range(repeat):
                byte_code = Path(scratch) / f"{handler}-{number}"
                first.append(start(handler, path, byte_code))
                later.append(start(handler, path, byte_code))
            best, again = min(first, key=lambda s: s.seconds), min(later, key=lambda s: s.seconds)
            print(
                f"{handler:12} {best.seconds * 1000:7,.0f} ms {again.seconds * 1000:7,.0f} ms"
                f" {max(s.peak for s in later) / 1024:6,.0f} MB {again.before / 1024:9,.0f} MB {again.modules:8}"
            )


if __name__ == "__main__":
    main()
