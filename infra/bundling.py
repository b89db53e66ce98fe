"""The functions' asset and their layers, bundled without Docker.

A layer is installed once by pip for each platform, and kept in ``.build/layers`` under a hash of its requirements and
platform; afterwards synth needs no network. ``python -m infra.bundling`` fills that store for both platforms.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.pack import pack
from infra import FUNCTIONS, ROOT

BUILD = ROOT / ".build"
PYTHON_VERSION = "3.14"
"""Of the functions' runtime; :data:`infra.function_factory.RUNTIME` must be the same."""

LAYERS = {
    "runtime": FUNCTIONS / "requirements.txt",
    "api": FUNCTIONS / "requirements-api.txt",
    "report": FUNCTIONS / "requirements-report.txt",
}
ASSETS = {
    "troop/report/echarts.min.js": ROOT / "node_modules" / "echarts" / "dist" / "echarts.common.min.js",
    "troop/report/echarts.LICENSE": ROOT / "node_modules" / "echarts" / "LICENSE",
    "troop/report/echarts.NOTICE": ROOT / "node_modules" / "echarts" / "NOTICE",
}
"""What goes beside the code from elsewhere: the charts of reports are drawn in the reader's browser."""
SIZE_LIMIT = 30_000_000
"""Bytes of code and all layers, unzipped: a bound on cold starts, far below Lambda's own of 250 MB."""

_SCHEME = "1"  # part of every layer's key: raise it when installing or pruning changes
_STALE_SECONDS = 24 * 3600
_LAMBDA_WHEELS = (
    *("--platform", "manylinux2014_aarch64", "--implementation", "cp"),
    *("--python-version", PYTHON_VERSION, "--only-binary", ":all:"),
)


class BundlingError(Exception):
    """Something that cannot be bundled; the message says what, and what to do."""


@dataclass(frozen=True)
class Bundle:
    """Folders to be zipped: the functions' code, and each layer by its name."""

    code: Path
    layers: dict[str, Path]


def bundle(target: str, deployment_json: str) -> Bundle:
    """Code and layers for ``target`` (``lambda`` or ``machine``), within :data:`SIZE_LIMIT`.

    Args:
        target: whose wheels the layers hold.
        deployment_json: the settings document that goes beside the handlers.

    Raises:
        BundlingError: pip failed, or the whole is too large.
    """
    result = Bundle(stage_code(deployment_json), {name: layer(name, target) for name in LAYERS})
    total = size(result.code) + sum(size(path) for path in result.layers.values())
    if total > SIZE_LIMIT:
        raise BundlingError(f"code and layers are {total:,} bytes unzipped; at most {SIZE_LIMIT:,} are allowed")
    return result


def stage_code(deployment_json: str) -> Path:
    """A folder with the handlers, their package, :data:`ASSETS`, ``deployment.json`` and the agent that fleets'
    nodes run (``agent.pyz``), named by a hash of its content.
    """
    patterns = ("handlers/*.py", "troop/**/*.py", "troop/report/templates/*", "troop/widgets/templates/*")
    found = sorted(path for pattern in patterns for path in FUNCTIONS.glob(pattern))
    sources = {str(source.relative_to(FUNCTIONS)): source for source in found} | ASSETS
    agent = _agent()
    digest = hashlib.sha256(deployment_json.encode() + b"\0" + agent)
    for name, source in sources.items():
        digest.update(f"\0{name}\0".encode() + source.read_bytes())
    folder = BUILD / "functions" / digest.hexdigest()[:16]
    if not folder.exists():
        with _complete_or_absent(folder) as partial:
            for name, source in sources.items():
                copy = partial / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)
            (partial / "deployment.json").write_text(deployment_json, encoding="utf-8")
            (partial / "agent.pyz").write_bytes(agent)
    os.utime(folder)
    _remove_stale(folder.parent.iterdir())  # each edit makes a new one
    return folder


def _agent() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "agent.pyz"
        pack(packed)
        return packed.read_bytes()


def layer(name: str, target: str) -> Path:
    """The folder of a layer (holding ``python/``), installed if it is not in the store."""
    requirements = LAYERS[name]
    tag = f"{PYTHON_VERSION} manylinux2014_aarch64" if target == "lambda" else _this_machine()
    digest = hashlib.sha256(f"{_SCHEME}\0{tag}\0".encode() + requirements.read_bytes()).hexdigest()[:16]
    folder = BUILD / "layers" / f"{name}-{target}-{digest}"
    if not folder.exists():
        with _complete_or_absent(folder) as partial:
            _install(requirements, partial / "python", _LAMBDA_WHEELS if target == "lambda" else ())
    return folder


def size(folder: Path) -> int:
    """Bytes of all files in ``folder``."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _install(requirements: Path, into: Path, platform_options: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--no-compile", *platform_options, "--target", str(into), "-r", str(requirements)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BundlingError(f"pip could not install {requirements.relative_to(ROOT)}:\n{done.stderr.strip()}")
    for path in _superfluous(into):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _superfluous(site: Path) -> Iterator[Path]:
    """What no function needs, and what would make two installations of the same wheels differ."""
    records = (f"*.dist-info/{record}" for record in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"))
    for pattern in ("bin", "*/tests", "**/__pycache__", *records):  # scripts in bin name the installing interpreter
        yield from list(site.glob(pattern))


def _this_machine() -> str:
    return f"{sys.implementation.cache_tag} {sysconfig.get_platform()} {platform.libc_ver()[0]}"


@contextmanager
def _complete_or_absent(final: Path) -> Iterator[Path]:
    """A folder to fill, which becomes ``final`` only when that is done: whatever is interrupted leaves no ``final``."""
    final.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale(final.parent.glob(".*"))  # of those that were interrupted for good
    partial = Path(tempfile.mkdtemp(prefix=f".{final.name}-", dir=final.parent))
    try:
        yield partial
        partial.chmod(0o755)
        try:
            partial.rename(final)
        except OSError:
            if not final.is_dir():
                raise
            # Another synth was faster; what it made is the same.
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _remove_stale(folders: Iterable[Path]) -> None:
    """Removes folders untouched for a day; younger ones may be in use."""
    for folder in folders:
        if time.time() - folder.stat().st_mtime > _STALE_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Installs what is missing of all layers for all platforms, and says how large they are."""
    for target in ("lambda", "machine"):
        for name in LAYERS:
            folder = layer(name, target)
            sys.stdout.write(f"{size(folder) / 1e6:6.1f} MB  {os.path.relpath(folder, ROOT)}\n")


if __name__ == "__main__":
    main()
