"""Packs the agent into one file: ``python -m agent.pack FILE``. The same sources give the same bytes on all
machines with the same zlib.
"""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

FOR_SCRIPTS = ("measure", "disks", "work")
"""The packages of :mod:`troop` that scripts on nodes can import."""

_ROOT = Path(__file__).resolve().parents[1]
_THE_SAME_DAY = (1980, 1, 1, 0, 0, 0)
_MAIN = b"import sys\n\nfrom agent.__main__ import main\n\nsys.exit(main())\n"


def pack(target: Path) -> str:
    """Writes the agent, :mod:`troop.measure`, :mod:`troop.disks` and :mod:`troop.work` to ``target``, and returns the
    file's SHA-256.

    ``python3 target boot.json`` runs the agent. With the file in PYTHONPATH, scripts can import the three packages.
    """
    write_archive(target, _sources())
    return hashlib.sha256(target.read_bytes()).hexdigest()


def write_archive(target: Path, files: Mapping[str, bytes]) -> None:
    """Writes an archive whose bytes depend on the files and zlib alone. Everybody can read what is unpacked."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _THE_SAME_DAY)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, content)


def _sources() -> dict[str, bytes]:
    agent = {f"agent/{path.name}": path for path in (_ROOT / "agent").glob("*.py") if path.name != "pack.py"}
    troop = _ROOT / "functions" / "troop"
    paths = [path for package in FOR_SCRIPTS for path in (troop / package).rglob("*.py")]
    packages = {f"troop/{path.relative_to(troop).as_posix()}": path for path in paths}
    files = {**agent, **packages, "troop/__init__.py": troop / "__init__.py"}
    return {"__main__.py": _MAIN, **{name: path.read_bytes() for name, path in files.items()}}


if __name__ == "__main__":
    sys.stdout.write(pack(Path(sys.argv[1])) + "\n")
