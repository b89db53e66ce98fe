"""`scripts/venv` installs what is locked from the index of pip's configuration, and marks only what is whole."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.serving import Quiet, running

ROOT = Path(__file__).parents[3]
WHEEL = "mirrored-1.0-py3-none-any.whl"


def _wheel() -> bytes:
    info = "mirrored-1.0.dist-info"
    files = {
        "mirrored.py": "",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: mirrored\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


CONTENT = _wheel()


class _Index(Quiet):
    def do_GET(self) -> None:
        body = {
            "/simple/mirrored/": f'<a href="/{WHEEL}">{WHEEL}</a>'.encode(),
            f"/{WHEEL}": CONTENT,
        }.get(self.path)
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/zip")
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body or b"")

    do_HEAD = do_GET


@pytest.fixture
def index() -> Iterator[str]:
    with running(ThreadingHTTPServer(("127.0.0.1", 0), _Index)) as server:
        yield f"http://127.0.0.1:{server.server_port}/simple"


PROJECT = """
[project]
name = "project"
version = "1"
requires-python = ">=3.11"

[dependency-groups]
account = ["mirrored"]
"""
LOCK = """
version = 1
requires-python = ">=3.11"

[[package]]
name = "project"
version = "1"
source = {{ virtual = "." }}

[package.dev-dependencies]
account = [{{ name = "mirrored" }}]

[[package]]
name = "mirrored"
version = "1.0"
source = {{ registry = "https://pypi.org/simple" }}
wheels = [{{ url = "https://files.pythonhosted.org/{wheel}", hash = "sha256:{digest}" }}]
"""


def _venv(folder: Path, digest: str, **variables: str) -> subprocess.CompletedProcess[str]:
    project = folder.parent / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "uv.lock").write_text(LOCK.format(wheel=WHEEL, digest=digest))
    others = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    own = {"UV_CACHE_DIR": str(folder.parent / "cache"), "UV_PROJECT": str(project)}
    return subprocess.run(
        ["scripts/venv", sys.executable, folder, "--only-group", "account"],
        cwd=ROOT,
        env=others | own | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("where", ["variable", "file", "second index", "folders"])
def test_index_of_pips_configuration_is_used(index: str, tmp_path: Path, where: str) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / WHEEL).write_bytes(CONTENT)
    file = tmp_path / "pip.conf"
    file.write_text(f"[global]\nindex-url = {index}\n")
    unused = index.replace("/simple", "/unused")
    variables = {
        "variable": {"PIP_INDEX_URL": index},
        "file": {"PIP_CONFIG_FILE": str(file)},
        "second index": {"PIP_INDEX_URL": unused, "PIP_EXTRA_INDEX_URL": f"{unused}2 {index}"},
        "folders": {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"{tmp_path} {tmp_path / 'wheels'}"},
    }
    done = _venv(tmp_path / "environment", hashlib.sha256(CONTENT).hexdigest(), **variables[where])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "environment" / ".ready").exists()
    assert list((tmp_path / "environment").rglob("mirrored.py"))


def test_uvs_own_variables_come_first(index: str, tmp_path: Path) -> None:
    pips = {"PIP_INDEX_URL": index.replace("/simple", "/unused")}
    done = _venv(tmp_path / "environment", hashlib.sha256(CONTENT).hexdigest(), **pips, UV_DEFAULT_INDEX=index)
    assert done.returncode == 0, done.stderr


def test_a_wheel_with_another_digest_leaves_the_environment_unready(index: str, tmp_path: Path) -> None:
    done = _venv(tmp_path / "environment", "0" * 64, PIP_INDEX_URL=index)
    assert done.returncode != 0
    assert "mirrored" in done.stderr
    assert not (tmp_path / "environment" / ".ready").exists()


def test_linked_environment_of_another_checkout_stays_ready(index: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / ".ready").touch()
    (tmp_path / "environment").symlink_to(other)
    done = _venv(tmp_path / "environment", hashlib.sha256(CONTENT).hexdigest(), PIP_INDEX_URL=index)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "environment").is_symlink()
    assert [path.name for path in other.iterdir()] == [".ready"]
