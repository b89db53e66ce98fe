"""Lists what the wheel contains, below :data:`release.relocation.PACKAGE`.

Its folders stand to each other as in a checkout, so that paths from one to another hold. The exception is the package
``troop``, which is there twice: below ``functions`` as Lambda gets it, and for imports with its new name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from release.relocation import relocate

GENERATORS = (
    *("alarms_doc", "bench_reference", "bench_schema", "controls_doc", "faults_doc", "generated", "metrics_doc"),
    *("notifications_doc", "openapi", "reference_doc", "report_schema", "risks_doc", "roles_doc", "settings_doc"),
)
"""Modules of ``infra`` that write documents of the checkout."""
DATA = ("cdk.json", "package.json", "package-lock.json")
AS_IT_IS = ("functions", "statemachines", "agent", "benchmarks", "fleets")
"""Folders for the functions, for nodes and for :mod:`cli.bench.files`, which need the original names."""
CHARTS = {
    "echarts.min.js": "dist/echarts.common.min.js",
    "echarts.LICENSE": "LICENSE",
    "echarts.NOTICE": "NOTICE",
}
"""Files of ECharts by their names beside :mod:`troop.report.assets`."""

_SKIPPED = ("__pycache__", "build")


def contents(root: Path, echarts: Path) -> dict[str, bytes]:
    """Returns the files of the wheel's package by their path in it.

    Args:
        root: the checkout.
        echarts: the folder of the npm package.

    Raises:
        release.relocation.RelocationError: a module cannot be moved.
    """
    files = {path: content for folder in AS_IT_IS for path, content in _files(root, folder)}
    files |= {name: (root / name).read_bytes() for name in DATA}
    for folder in ("cli", "infra", "troop_aws", "functions/troop"):
        new = folder.removeprefix("functions/")
        for path, content in _files(root, folder):
            if path not in {f"infra/{name}.py" for name in GENERATORS}:
                there = path.removeprefix("troop_aws/") if folder == "troop_aws" else path.replace(folder, new, 1)
                files[there] = relocate(content.decode(), path).encode() if path.endswith(".py") else content
    files |= {f"troop/report/{name}": (echarts / path).read_bytes() for name, path in CHARTS.items()}
    return files


def _files(root: Path, folder: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted((root / folder).rglob("*")):
        parts = path.relative_to(root).parts
        if path.is_file() and not any(part in _SKIPPED or part.startswith(".") for part in parts):
            yield "/".join(parts), path.read_bytes()


def write(files: Mapping[str, bytes], folder: Path) -> None:
    """Writes the files into an empty folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
