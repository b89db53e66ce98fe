"""Results are stored until something changes that they depend on."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.store import remove_stale
from tests.infra import results


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    monkeypatch.delenv("TROOP_EXHAUSTIVE", raising=False)
    return tmp_path


def writing(*texts: str) -> Callable[[Path], None]:
    """Writes the next text at each call."""
    rest = iter(texts)

    def write(partial: Path) -> None:
        (partial / "text").write_text(next(rest))

    return write


def test_equal_inputs_create_once_and_others_again(folder: Path) -> None:
    create = writing("first", "second", "third")
    for inputs, text in ((("a", "b"), "first"), (("a", "b"), "first"), (("ab",), "second"), (("a", "c"), "third")):
        assert (results.result("kind", *inputs, create=create) / "text").read_text() == text


def test_a_failure_is_not_stored(folder: Path) -> None:
    def fail(partial: Path) -> None:
        (partial / "text").write_text("half")
        raise AssertionError("findings")

    with pytest.raises(AssertionError, match="findings"):
        results.result("kind", create=fail)
    assert list(folder.iterdir()) == []


def test_result_unused_for_a_day_is_removed(folder: Path) -> None:
    old, used = (results.result("kind", name, create=writing(name)) for name in ("old", "used"))
    for one in (old, used):
        os.utime(one, (time.time() - 25 * 3600,) * 2)
    results.result("kind", "used", create=writing())
    assert list(folder.iterdir()) == [used]


def test_exhaustive_runs_create_each_result_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = writing("first", "second")
    results.result("kind", create=create)
    monkeypatch.setenv("TROOP_EXHAUSTIVE", "1")
    for _ in range(2):
        assert (results.result("kind", create=create) / "text").read_text() == "second"


def _digest() -> str:
    results.sources.cache_clear()
    return results.sources()


def test_sources_differ_after_every_change_that_a_synthesis_can_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("infra/stack.py", "docs/background/costs.md", "tests/infra/conftest.py", "tests/infra/test_api.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(results, "ROOT", tmp_path)
    digests = [_digest()]
    for name in ("docs/background/costs.md", "tests/infra/test_api.py"):
        (tmp_path / name).write_text("other")
        assert _digest() == digests[0], name
    for name in ("infra/stack.py", "infra/added.py", "tests/infra/conftest.py", "node_modules/aws-cdk/package.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("other")
        digests.append(_digest())
    (tmp_path / "infra/added.py").unlink()
    digests.append(_digest())
    monkeypatch.setenv("CDK_CONTEXT_JSON", "{}")
    digests.append(_digest())
    monkeypatch.setattr(results, "distributions", list)
    digests.append(_digest())
    results.sources.cache_clear()
    assert len(set(digests)) == len(digests)


def test_folders_that_another_process_removes_are_no_error(tmp_path: Path) -> None:
    remove_stale([tmp_path / "renamed"])
    assert list(tmp_path.iterdir()) == []
