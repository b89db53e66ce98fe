"""Every handler is imported by the Python of the Lambda runtime, with its layers and nothing but what Lambda brings."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import botocore
import pytest

from infra import FUNCTIONS, npm
from infra.bundling import LAYERS, bundle
from infra.byte_code import PYTHON_VERSION
from tests.opinions.node import HERE, run_node

pytestmark = pytest.mark.second_opinion

BROUGHT = ("boto3", "botocore", "s3transfer", "urllib3")
"""Packages of the runtime itself, besides those that the layers have, too."""
PLATFORM = "pyemscripten_2026_0_wasm32"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels of this Python in place of the layers' compiled ones."""
    folder = tmp_path_factory.mktemp("compiled")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--platform", PLATFORM, "--python-version", PYTHON_VERSION, "--implementation", "cp"]
    subprocess.run([*command, "--target", str(folder), "-r", str(HERE / "requirements.txt")], check=True)
    return folder


def test_compiled_wheels_have_the_layers_versions() -> None:
    pinned = set(re.findall(r"^([\w-]+==\S+)", (HERE / "requirements.txt").read_text(), re.M))
    assert pinned <= set(re.findall(r"^([\w-]+==\S+)", LAYERS["api"].read_text(), re.M))


def test_all_of_them_are_imported(compiled: Path) -> None:
    bundled = bundle("lambda", "{}")
    folders = [compiled, bundled.code, *(layer / "python" for layer in bundled.layers.values())]
    site = Path(botocore.__file__).parents[1]
    handlers = sorted(path.stem for path in (FUNCTIONS / "handlers").glob("[a-z]*.py"))
    arguments = [*handlers, "absent", "--", *map(str, folders), "--", *(str(site / name) for name in BROUGHT)]
    report = json.loads(run_node("handlers.mjs", str(npm.packages() / "pyodide"), *arguments))
    assert report["python"] == PYTHON_VERSION
    assert "No module named 'handlers.absent'" in report["failures"].pop("absent")
    assert report["failures"] == {}, "\n".join(report["failures"].values())
