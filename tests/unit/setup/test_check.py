"""`make check` checks what a change can break: the files that differ from main, and the tests beside them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts.check import changed, mirror


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):  # a hook of git sets them
        monkeypatch.delenv(name, raising=False)
    git("init", "-q", "-b", "main")
    commit("first", "old.py", "removed.py", "main.py")
    commit("second", "main.py")
    return tmp_path


def git(*words: str) -> None:
    identity = ("-c", "user.name=someone", "-c", "user.email=someone@example.com")
    subprocess.run(["git", *identity, *words], check=True)


def commit(content: str, *names: str) -> None:
    for name in names:
        Path(name).write_text(content)
    git("add", "-A")
    git("commit", "-q", "-m", content)


def test_branch_has_commits_edits_and_new_files_but_nothing_of_main(checkout: Path) -> None:
    git("switch", "-q", "-c", "branch", "main~1")
    commit("third", "committed.py")
    Path("old.py").write_text("edited")
    Path("new.py").touch()
    Path("removed.py").unlink()
    assert changed() == ["committed.py", "new.py", "old.py"]


def test_clean_main_has_its_last_commit(checkout: Path) -> None:
    assert changed() == ["main.py"]


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("functions/troop/chaos/guards.py", "tests/unit/chaos/test_guards.py"),
        ("benchmarks/web-scale/scripts.py", "tests/unit/benchmarks/web_scale/test_scripts.py"),
        ("tests/unit/chaos/test_guards.py", "tests/unit/chaos/test_guards.py"),
        ("tests/unit/chaos/guard_cases.py", None),
        ("tests/e2e/test_one_tick.py", None),
        ("functions/troop/chaos/__init__.py", None),
        ("docs/guides/chaos.md", None),
    ],
)
def test_file_has_the_test_at_the_same_place(path: str, test: str | None) -> None:
    assert mirror(path) == test
