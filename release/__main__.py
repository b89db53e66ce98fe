"""Prepares a release: ``python -m release [FOLDER]`` builds the wheel twice, writes its checksum and the notes from
CHANGELOG.md, and tags the commit. It pushes and uploads nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from release import ROOT


class ReleaseError(Exception):
    """A state that cannot be released; the message says what to do."""


def notes(changelog: str, version: str) -> str:
    """Returns the section of a version.

    Raises:
        ReleaseError: it has none, none with text, or one that says "unreleased".
    """
    heading = re.search(rf"^## {re.escape(version)}(?:, (?P<when>.+))?$", changelog, re.MULTILINE)
    if not heading:
        raise ReleaseError(f"CHANGELOG.md has no section for {version}: write `## {version}, YYYY-MM-DD`")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", heading["when"] or ""):
        raise ReleaseError(f"CHANGELOG.md has no date for {version}: write `## {version}, YYYY-MM-DD`")
    text = re.split(r"^## ", changelog[heading.end() :], maxsplit=1, flags=re.MULTILINE)[0].strip()
    if not text:
        raise ReleaseError(f"CHANGELOG.md says nothing about {version}")
    return text + "\n"


def prepare(root: Path, folder: Path) -> list[str]:
    """Writes wheel, ``SHA256SUMS`` and ``NOTES.md`` into the folder, tags the commit, and returns what remains to do.

    Raises:
        ReleaseError: the tree is dirty, the tag exists, the notes are missing, or two builds differ.
    """
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    tag = f"v{version}"
    if changed := _git(root, "status", "--porcelain"):
        raise ReleaseError(f"the tree has changes that are not committed: commit or remove them\n{changed}")
    if _git(root, "tag", "--list", tag):
        raise ReleaseError(
            f"the tag {tag} exists: raise the version in pyproject.toml and functions/troop/shared/version.py"
        )
    text = notes((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    wheel, content = _built(root)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / wheel).write_bytes(content)
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(content).hexdigest()}  {wheel}\n", encoding="utf-8")
    (folder / "NOTES.md").write_text(text, encoding="utf-8")
    _git(root, "tag", "--annotate", tag, "--message", f"Troop {version}")
    return [
        f"check the wheel: pipx install {folder / wheel} && troop --version",
        f"publish the tag: git push origin {tag}",
        f"publish {wheel} and SHA256SUMS with the text of NOTES.md, where your people get releases",
        f"if something is wrong before that: git tag --delete {tag}",
    ]


def _built(root: Path) -> tuple[str, bytes]:
    """Returns name and content of the wheel; its times are the commit's."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": _git(root, "log", "-1", "--format=%ct")}
    builds = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
            done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ReleaseError(f"the wheel could not be built:\n{done.stdout}{done.stderr}")
            (wheel,) = Path(folder).glob("*.whl")
            builds.append((wheel.name, wheel.read_bytes()))
    first, second = builds
    if first != second:
        raise ReleaseError("two builds of the wheel differ: find what depends on time, order or folder")
    return first


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"git {words[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def main() -> None:
    """Prepares the release in the folder of the first argument."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")
    try:
        remaining = prepare(ROOT, folder)
    except ReleaseError as error:
        sys.exit(f"Release: {error}")
    print(f"== {folder} has the wheel, its checksum and the notes. By hand:")
    for number, step in enumerate(remaining, start=1):
        print(f"{number}. {step}")


if __name__ == "__main__":
    main()
