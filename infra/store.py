"""Manages ``.build``: folders that synth creates once and keeps, each named by a hash of its inputs."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from infra import ROOT


def build_folder(root: Path, environment: Mapping[str, str]) -> Path:
    """Returns the folder for :data:`BUILD`: in a checkout ``.build``, else ``TROOP_BUILD`` or one of the user's cache.

    A package that is installed may belong to someone else, and its upgrade would remove the folder.
    """
    if (root / "pyproject.toml").is_file():
        return root / ".build"
    if own := environment.get("TROOP_BUILD"):
        return Path(own).resolve()
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "troop-aws"


BUILD = build_folder(ROOT, os.environ)

_STALE_SECONDS = 24 * 3600


class BundlingError(Exception):
    """A bundling failure; the message states the problem and what to do."""


@contextmanager
def complete_or_absent(final: Path) -> Iterator[Path]:
    """Yields a folder to fill, which becomes ``final`` only if the block succeeds.

    Its files are then readable by everyone, whatever the umask.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(final.parent.glob(".*"))  # leftovers of a killed synth
    partial = Path(tempfile.mkdtemp(prefix=f".{final.name}-", dir=final.parent))
    try:
        yield partial
        _normalise_modes(partial)
        try:
            partial.rename(final)
        except OSError:
            if not final.is_dir():
                raise
            # Another synth was faster, and its folder is the same.
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def remove_stale(folders: Iterable[Path]) -> None:
    """Removes folders untouched for a day; younger ones may be in use."""
    for folder in folders:
        with suppress(FileNotFoundError):  # another synth renamed or removed it
            if time.time() - folder.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _normalise_modes(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
