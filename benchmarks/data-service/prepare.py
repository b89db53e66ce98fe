"""Installs what each role needs: Java, disks and Cassandra on servers, memcached on caches; and checks the data set.

Parameters: ``system``, whether the node may be changed; ``disk``, where servers keep their data; ``data_set``, the
address of a data set, or empty to generate ``rows`` of ``value_bytes`` from ``seed``.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import stack
from stack import Phase, install, this_phase

FORMAT = "troop.data-service/1"
FIELDS = ("rows", "value_bytes", "rows_per_part", "parts", "digest")


def main() -> None:
    phase = this_phase()
    may_change = bool(phase.parameters["system"])
    if phase.role == "servers":
        install.install_java(may_change)
        install.unpack(phase)
        phase.keep("folders.json", [str(folder) for folder in install.folders(phase, may_change)])
        if may_change:
            Path("/proc/sys/vm/max_map_count").write_text(str(install.MOST_MAPS), encoding="ascii")
    elif phase.role == "cache":
        if shutil.which("memcached") is None and may_change:
            install.run(["dnf", "install", "--assumeyes", "--quiet", "memcached"], "packages come from S3")
        print(install.run(["memcached", "-V"], "set system to true, or use an image with memcached").strip())
    else:
        Path(stack.program(phase)).chmod(0o755)
        described = description(phase)
        phase.keep(stack.DATA_SET, described)
        print(json.dumps(described))


def description(phase: Phase) -> dict[str, Any]:
    """Returns the description of the data set: of the bucket's, or of the one to generate."""
    parameters = phase.parameters
    address = str(parameters["data_set"]).rstrip("/")
    if not address:
        return {name: parameters[name] for name in ("rows", "value_bytes", "seed")}
    manifest = stack.run(["aws", "s3", "cp", "--only-show-errors", f"{address}/manifest.json", "-"])
    try:
        read = json.loads(manifest)
        if read["format"] != FORMAT:
            raise ValueError(f"its format is {read['format']}, and must be {FORMAT}")
        return {"address": address, **{name: read[name] for name in FIELDS}}
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"{address}/manifest.json describes no data set: {error!r}. Create it with dataset.py")


if __name__ == "__main__":
    main()
