"""Creates a data set in a bucket, or deletes it, with your own credentials: nodes only read it.

    python3 dataset.py create s3://BUCKET/PREFIX --rows 60000000
    python3 dataset.py delete s3://BUCKET/PREFIX

A data set is a number of parts with lines of key, tab and value, and ``manifest.json`` with the number and the digest
of all rows. The manifest comes last, so an incomplete data set has none. ``create`` continues an interrupted one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FORMAT = "troop.data-service/1"
PROGRAM = Path(__file__).parent / "build" / "data-service"
MANIFEST = "manifest.json"


def part_name(part: int) -> str:
    return f"part-{part:05d}.tsv"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="command")
    create = commands.add_parser("create", help="create a data set")
    create.add_argument("--rows", type=int, default=60_000_000)
    create.add_argument("--value-bytes", type=int, default=1000)
    create.add_argument("--seed", type=int, default=1)
    create.add_argument("--rows-per-part", type=int, default=250_000)
    create.add_argument("--program", type=Path, default=PROGRAM, help="data-service (default: %(default)s)")
    create.set_defaults(run=create_data_set)
    delete = commands.add_parser("delete", help="delete the objects that a manifest lists")
    delete.set_defaults(run=delete_data_set)
    for one in (create, delete):
        one.add_argument("address", metavar="s3://BUCKET/PREFIX")
    options = parser.parse_args(arguments)
    if (
        not options.address.startswith("s3://")
        or not options.address.rstrip("/").partition("s3://")[2].partition("/")[2]
    ):
        parser.error(f"{options.address}: must be s3://BUCKET/PREFIX")
    options.address = options.address.rstrip("/")
    options.run(options)


def create_data_set(options: argparse.Namespace) -> None:
    if options.rows < 1 or options.rows_per_part < 1:
        sys.exit("--rows and --rows-per-part must be at least 1")
    if not options.program.exists():
        sys.exit(f"{options.program} does not exist: build it, as README.md describes")
    parts = -(-options.rows // options.rows_per_part)
    described = {name: getattr(options, name) for name in ("rows", "value_bytes", "seed", "rows_per_part")}
    total = 0
    for part in range(parts):
        total = (total + int(create_part(options, part, described), 16)) % 2**64
        print(f"{options.address}/{part_name(part)}: {part + 1} of {parts}", flush=True)
    manifest = {"format": FORMAT, **described, "parts": parts, "digest": f"{total:016x}"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / MANIFEST
        file.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        aws("s3", "cp", "--only-show-errors", str(file), f"{options.address}/{MANIFEST}")
    print(json.dumps(manifest))


def create_part(options: argparse.Namespace, part: int, described: dict[str, Any]) -> str:
    """Creates an object unless a complete one exists, and returns the digest of its rows.

    A small object beside each part holds its description and digest, and is written after it.
    """
    address = f"{options.address}/{part_name(part)}"
    done = subprocess.run(
        ["aws", "s3", "cp", "--only-show-errors", f"{address}.json", "-"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 0 and (earlier := json.loads(done.stdout)).get("of") == described:
        return str(earlier["digest"])
    first = part * options.rows_per_part
    end = min(first + options.rows_per_part, options.rows)
    with tempfile.TemporaryDirectory() as folder:
        file, note = Path(folder) / "rows", Path(folder) / "note"
        with file.open("wb") as rows:
            generated = subprocess.run(
                [
                    *(str(options.program), "dataset", "-first", str(first), "-end", str(end)),
                    *("-value-bytes", str(options.value_bytes), "-seed", str(options.seed)),
                ],
                stdout=rows,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        if generated.returncode:
            sys.exit(generated.stderr)
        digest = str(json.loads(generated.stderr)["digest"])
        note.write_text(json.dumps({"of": described, "digest": digest}), encoding="utf-8")
        aws("s3", "cp", "--only-show-errors", str(file), address)
        aws("s3", "cp", "--only-show-errors", str(note), f"{address}.json")
    return digest


def delete_data_set(options: argparse.Namespace) -> None:
    """Deletes the manifest first, so that no run begins with a part of the data set, and then everything it lists."""
    manifest = json.loads(aws("s3", "cp", "--only-show-errors", f"{options.address}/{MANIFEST}", "-"))
    if manifest.get("format") != FORMAT:
        sys.exit(f"{options.address}/{MANIFEST} describes no data set")
    names = [part_name(part) for part in range(int(manifest["parts"]))]
    for name in (MANIFEST, *(f"{name}.json" for name in names), *names):
        aws("s3", "rm", "--only-show-errors", f"{options.address}/{name}")
    print(f"deleted {len(names)} parts of {options.address}")


def aws(*words: str) -> str:
    """Runs the AWS CLI and returns its output. Ends the program if it fails."""
    done = subprocess.run(["aws", *words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"aws {' '.join(words[:2])} failed with exit code {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    main()
