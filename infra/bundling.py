"""Bundles the functions' asset, their layers and their settings without Docker.

pip installs a layer once for each platform, into ``.build/layers`` under a hash of its requirements and platform.
Afterwards synth needs no network. ``python -m infra.bundling`` fills that store for both platforms.
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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.pack import pack, write_archive
from infra import FUNCTIONS, ROOT, npm
from infra.byte_code import PYTHON_VERSION, compile_folder
from infra.store import BUILD, BundlingError, complete_or_absent, remove_stale
from troop.shared.day_rules import HOLIDAY_LANGUAGE
from troop.shared.release import FUNCTIONS_ASSET
from troop.shared.settings import SETTINGS_FILE

LAYERS = {
    "runtime": FUNCTIONS / "requirements.txt",
    "api": FUNCTIONS / "requirements-api.txt",
    "report": FUNCTIONS / "requirements-report.txt",
}
CHARTS = {
    "troop/report/echarts.min.js": "echarts/dist/echarts.common.min.js",
    "troop/report/echarts.LICENSE": "echarts/LICENSE",
    "troop/report/echarts.NOTICE": "echarts/NOTICE",
}
"""Files from npm to add to the code: the reader's browser draws the charts of reports."""
AGENT = "agent.pyz"
"""The file of the nodes' agent in the functions' asset."""

_SCRIPT_MODULES = (
    "devices",
    "hdr_live",
    "hdr_log",
    "live_writer",
    "phase_environment",
    "recorder",
    "recordings",
    "schedule",
    "tool_samples",
    "whole_file",
)
_PACKAGES = ("troop/disks", "troop/measure/collectors", "troop/measure/s3", "troop/work")
NODE_MODULES = (*_PACKAGES, *(f"troop/measure/{name}.py" for name in _SCRIPT_MODULES))
"""Packages and modules that no function imports."""

_UNUSED_UTILITIES = (
    *("auth_alpha", "batch", "circuit_breaker", "data_masking", "feature_flags", "idempotency", "kafka", "parser"),
    "streaming",
)
"""Utilities of Powertools that neither functions nor its other parts import."""

SIZE_LIMIT = 31_000_000
"""The most bytes of code and all layers, unzipped, with byte code. It limits cold starts, far below Lambda's 250 MB."""

_SCHEME = "8"
"""A part of every name in the store: increase it when installing, pruning, compiling or archiving changes."""
_LAMBDA_WHEELS = (
    *("--platform", "manylinux2014_aarch64", "--implementation", "cp"),
    *("--python-version", PYTHON_VERSION, "--only-binary", ":all:"),
)


@dataclass(frozen=True)
class Bundle:
    """Folders of what to deploy: the functions' code, each layer by its name, and the layer of the settings.

    Code and layers are the same in every stage.
    """

    code: Path
    layers: dict[str, Path]
    settings: Path

    def archives(self) -> dict[str, Path]:
        """Returns the archives of code and layers, by name."""
        return {name: archive(folder) for name, folder in {FUNCTIONS_ASSET: self.code, **self.layers}.items()}


def bundle(target: str, deployment_json: str) -> Bundle:
    """Creates code and layers for ``target`` (``lambda`` or ``machine``), within :data:`SIZE_LIMIT`.

    Args:
        target: the platform of the layers' wheels and of the byte code.
        deployment_json: the settings document, for a layer of its own.

    Raises:
        BundlingError: pip, npm or the compiler failed, or the result is too large.
    """
    layers = {name: layer(name, target) for name in LAYERS}
    bundled = Bundle(stage_code(target), layers, settings_layer(deployment_json))
    total = size(bundled.code) + sum(size(path) for path in bundled.layers.values())
    if total > SIZE_LIMIT:
        raise BundlingError(f"code and layers are {total:,} bytes unzipped; must be at most {SIZE_LIMIT:,}")
    return bundled


def stage_code(target: str) -> Path:
    """Creates the folder of the functions' asset, named by a hash of its content: the compiled package and the agent
    of fleets' nodes (:data:`AGENT`).
    """
    package, agent = _package(target), _agent()
    folder = BUILD / "functions" / _digest(package.name, agent)
    if not folder.exists():
        with complete_or_absent(folder) as partial:
            shutil.copytree(package, partial, dirs_exist_ok=True)
            (partial / AGENT).write_bytes(agent)
    _mark_used(folder)
    return folder


def settings_layer(deployment_json: str) -> Path:
    """Creates the folder of the settings' layer, named by a hash of its content."""
    folder = BUILD / "settings" / _digest(deployment_json)
    if not folder.exists():
        with complete_or_absent(folder) as partial:
            _write(partial, {f"python/{SETTINGS_FILE}": deployment_json.encode()})
    _mark_used(folder)
    return folder


def _package(target: str) -> Path:
    """Creates the compiled handlers, their package and :data:`CHARTS`."""
    charts = {name: npm.packages() / path for name, path in CHARTS.items()}
    patterns = ("handlers/*.py", "troop/**/*.py", "troop/report/templates/*", "troop/dashboard/templates/*")
    own = sorted(path for pattern in patterns for path in FUNCTIONS.glob(pattern) if not _is_of_nodes(path))
    sources = {str(source.relative_to(FUNCTIONS)): source.read_bytes() for source in own}
    sources |= {name: path.read_bytes() for name, path in charts.items()}
    folder = BUILD / "packages" / _digest(*_compiler(target), *(part for pair in sources.items() for part in pair))
    if not folder.exists():
        with complete_or_absent(folder) as partial:
            _write(partial, sources)
            compile_folder(partial, target, "/var/task")
    _mark_used(folder)
    return folder


def _is_of_nodes(path: Path) -> bool:
    """Checks whether only nodes run a module. They have it from ``agent.pyz``."""
    return f"{path.relative_to(FUNCTIONS).as_posix()}/".startswith(tuple(f"{part}/" for part in NODE_MODULES))


def _agent() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / AGENT
        pack(packed)
        return packed.read_bytes()


def layer(name: str, target: str) -> Path:
    """Returns the folder of a layer (with ``python/`` in it); installs it if it is not in the store."""
    requirements = LAYERS[name]
    digest = _digest(*_compiler(target), requirements.read_bytes())
    folder = BUILD / "layers" / f"{name}-{target}-{digest}"
    if not folder.exists():
        with complete_or_absent(folder) as partial:
            _install(requirements, partial / "python", _LAMBDA_WHEELS if target == "lambda" else ())
            compile_folder(partial, target, "/opt")
    return folder


def archive(folder: Path) -> Path:
    """Returns the archive of a folder of a :class:`Bundle`; writes it if it is not in the store.

    The CDK would copy the thousands of files at each synthesis, and compress them at each deployment.
    """
    place = BUILD / "archives" / folder.name
    if not place.exists():
        with complete_or_absent(place) as partial:
            files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
            write_archive(partial / "asset.zip", {name: path.read_bytes() for name, path in files.items()})
    _mark_used(place)
    return place / "asset.zip"


def _compiler(target: str) -> tuple[str, ...]:
    """Returns what determines the byte code and the wheels for ``target``."""
    if target == "lambda":
        return PYTHON_VERSION, "manylinux2014_aarch64", npm.packages().name
    return (_this_machine(),)


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256(_SCHEME.encode())
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(f"\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _mark_used(folder: Path) -> None:
    os.utime(folder)
    remove_stale(folder.parent.iterdir())  # each edit creates a new folder


def size(folder: Path) -> int:
    """Returns the bytes of all files in ``folder``."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _install(requirements: Path, into: Path, platform_options: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--require-hashes", "--no-deps", "--no-compile", *platform_options]
    command += ["--target", str(into), "-r", str(requirements)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BundlingError(f"pip could not install {requirements.relative_to(ROOT)}:\n{done.stderr.strip()}")
    for path in _superfluous(into):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _superfluous(site: Path) -> Iterator[Path]:
    """Yields files that no function needs, and files that differ between installations of the same wheels."""
    records = (f"*.dist-info/{record}" for record in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"))
    swagger = "aws_lambda_powertools/event_handler/openapi/swagger_ui/*.min.*"  # a page that the API does not serve
    utilities = (f"aws_lambda_powertools/utilities/{name}" for name in _UNUSED_UTILITIES)
    earlier = ("pydantic/v1", "pydantic/mypy.py")  # pydantic's first version for old code, and a plugin of a checker
    unread = ("*.dist-info/sboms", "dateutil/zoneinfo")  # bills of materials, and zones for systems without any
    # Scripts in bin name the interpreter.
    for pattern in ("bin", "*/tests", "**/__pycache__", swagger, *utilities, *earlier, *unread, *records):
        yield from list(site.glob(pattern))
    for names in list(site.glob("holidays/locale/*")):
        if names.name != HOLIDAY_LANGUAGE:
            yield names


def _this_machine() -> str:
    return f"{sys.implementation.cache_tag} {sysconfig.get_platform()} {platform.libc_ver()[0]}"


def main() -> None:
    """Installs and archives all missing layers for all platforms, and prints their sizes."""
    for target in ("lambda", "machine"):
        for name in LAYERS:
            folder = layer(name, target)
            archive(folder)
            sys.stdout.write(f"{size(folder) / 1e6:6.1f} MB  {os.path.relpath(folder, ROOT)}\n")


if __name__ == "__main__":
    main()
