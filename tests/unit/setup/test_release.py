"""`make release`: what it refuses, what it writes, and that it tags only what can be released."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

import release.__main__ as releasing
from release.__main__ import ReleaseError, notes, prepare

CHANGELOG = (
    "# Changelog\n\n## 0.2.0, 2027-01-05\n\n- New.\n\n### Chaos\n\n- More.\n\n## 0.1.0, 2026-12-01\n\n- First.\n"
)


def _git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=Anna", "-c", "user.email=anna@example.com"]
    return subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose wheel is quick to build."""
    root = tmp_path / "project"
    root.mkdir()
    _git(tmp_path, "init", "--quiet", str(root))
    (root / "pyproject.toml").write_text('[project]\nname = "troop-aws"\nversion = "0.2.0"\n')
    (root / "CHANGELOG.md").write_text(CHANGELOG)
    _commit(root)
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
        monkeypatch.setenv(name, "Anna")
    for name in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "anna@example.com")
    monkeypatch.setattr(releasing, "_built", lambda _: ("troop_aws-0.2.0-py3-none-any.whl", b"wheel"))
    return root


def _commit(root: Path) -> None:
    _git(root, "add", "--all")
    _git(root, "commit", "--quiet", "--message", "A state")


def test_a_release_has_wheel_checksum_notes_and_tag(project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    steps = prepare(project, out)
    digest = hashlib.sha256(b"wheel").hexdigest()
    assert (out / "SHA256SUMS").read_text() == f"{digest}  troop_aws-0.2.0-py3-none-any.whl\n"
    assert (out / "NOTES.md").read_text() == "- New.\n\n### Chaos\n\n- More.\n"
    assert _git(project, "tag").split() == ["v0.2.0"]
    assert _git(project, "status", "--porcelain") == ""
    assert any("git push origin v0.2.0" in step for step in steps)
    with pytest.raises(ReleaseError, match=r"the tag v0\.2\.0 exists"):
        prepare(project, out)


def test_changes_that_are_not_committed_are_refused(project: Path, tmp_path: Path) -> None:
    (project / "new.txt").touch()
    with pytest.raises(ReleaseError, match=r"(?s)not committed.*new\.txt"):
        prepare(project, tmp_path / "out")
    assert _git(project, "tag") == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changelog", "message"),
    [
        ("# Changelog\n\n## 0.1.0, 2026-12-01\n\n- First.\n", "has no section for 0.2.0"),
        ("# Changelog\n\n## 0.2.0, unreleased\n\n- New.\n", "has no date for 0.2.0"),
        ("# Changelog\n\n## 0.2.0, 2027-01-05\n\n## 0.1.0, 2026-12-01\n\n- First.\n", "says nothing about 0.2.0"),
    ],
)
def test_a_version_without_notes_is_refused(project: Path, tmp_path: Path, changelog: str, message: str) -> None:
    (project / "CHANGELOG.md").write_text(changelog)
    _commit(project)
    with pytest.raises(ReleaseError, match=message):
        prepare(project, tmp_path / "out")
    assert _git(project, "tag") == ""


def test_notes_of_the_last_section_end_with_the_file() -> None:
    assert notes(CHANGELOG, "0.1.0") == "- First.\n"
