"""A folder of somebody else's reaches no file outside of it, whatever lies in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cli.bench import files as bench_files
from cli.bench.archive_folder import FolderArchive
from cli.shared import safe_files
from cli.shared.errors import CliError, Exit
from tests.unit.cli.bench_runs import TEXT
from tests.unit.cli.conftest import FakeApi, Run


@pytest.fixture
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("home") / "credentials"
    path.write_text("aws_secret_access_key = TOPSECRET")
    return path


PIPE = ""
LINKS: dict[str, dict[str, str]] = {
    "to a file": {"data.txt": "HOME/credentials"},
    "relative": {"data.txt": "../RELATIVE/credentials"},
    "chain": {"sub/next": "HOME/credentials", "data.txt": "sub/next"},
    "to a folder": {"data.txt": "HOME"},
    "through a folder": {"sub": "HOME", "data.txt": "sub/credentials"},
    "circle": {"data.txt": "other.txt", "other.txt": "data.txt"},
    "hidden": {"data.txt": ".git/config"},
    "device": {"data.txt": "/dev/zero"},
    "dangling": {"data.txt": "none"},
    "pipe": {"data.txt": PIPE},
}
"""Links in the folder with what each leads to; ``HOME`` is the folder of somebody else's file."""


@pytest.mark.parametrize("links", LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("command", ["validate", "estimate", "run"])
def test_file_outside_the_folder_is_refused_by_its_name(
    run: Run, api: FakeApi, file: Path, secret: Path, links: dict[str, str], command: str
) -> None:
    relative = os.path.relpath(secret.parent, file.parent.parent)
    (file.parent / ".git").mkdir()
    (file.parent / ".git" / "config").write_text("token")
    for name, target in links.items():
        path = file.parent / name
        path.parent.mkdir(exist_ok=True)
        if target == PIPE:
            os.mkfifo(path)
        else:
            path.symlink_to(target.replace("HOME", str(secret.parent)).replace("RELATIVE", relative))
    result = run("bench", command, str(file))
    assert result.exit_code == Exit.USAGE, result.output
    output = result.stderr.replace("\n", "")
    assert any(str(file.parent / name) in output for name in ("data.txt", "other.txt", "sub"))
    assert api.calls == []


def test_a_benchmark_that_is_a_link_out_of_its_folder_is_refused(run: Run, file: Path, tmp_path: Path) -> None:
    """Else what lies beside the other file would be sent."""
    (tmp_path / "cloned").mkdir()
    (tmp_path / "cloned" / "benchmark.yaml").symlink_to(file)
    result = run("bench", "validate", str(tmp_path / "cloned"))
    assert result.exit_code == Exit.USAGE
    assert "is a link to outside the folder" in result.stderr


def test_links_within_the_folder_are_copied_as_what_they_lead_to(file: Path) -> None:
    (file.parent / "shared").mkdir()
    (file.parent / "shared" / "common.py").write_text("x = 1")
    (file.parent / "common.py").symlink_to("shared/common.py")
    (file.parent / "also").symlink_to("shared")
    assert bench_files.load(file).files["common.py"] == b"x = 1"
    assert "also" not in bench_files.load(file).files


def test_a_link_to_an_artifact_of_the_file_is_none_of_what_is_copied(file: Path, secret: Path) -> None:
    (file.parent / "tool.bin").symlink_to(secret)
    file.write_text(TEXT + f"artifacts: [{{name: tool, source: tool.bin, sha256: {'0f' * 32}}}]\n")
    assert sorted(bench_files.load(file).files) == ["read.py"]


def test_a_file_that_becomes_a_link_after_it_was_looked_at_is_not_followed(tmp_path: Path, secret: Path) -> None:
    root = tmp_path.resolve()
    (root / "sub").mkdir()
    (root / "sub" / "data").write_text("ours")
    below = safe_files.resolved(root, "sub/data")
    (root / "sub" / "data").unlink()
    (root / "sub" / "data").symlink_to(secret)
    with pytest.raises(OSError, match="symbolic"), safe_files.opened(root, below):
        pass
    (root / "sub" / "data").unlink()
    (root / "sub").rmdir()
    (root / "sub").symlink_to(secret.parent)
    with pytest.raises(OSError, match="irectory"), safe_files.opened(root, Path("sub") / secret.name):
        pass


def test_a_file_that_grows_is_read_no_further_than_what_may_be_copied(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_files, "LARGEST_FILES", 10)
    (file.parent / "read.py").write_bytes(bytes(5))
    (file.parent / "sparse").touch()
    os.truncate(file.parent / "sparse", 1 << 40)
    with pytest.raises(CliError, match=r"1,099,511,627,781 bytes, more than 10"):
        bench_files.load(file)


def test_people_see_what_is_copied(run: Run, api: FakeApi, file: Path) -> None:
    (file.parent / "notes.md").write_text("x" * 1234)
    result = run("bench", "validate", str(file))
    assert "notes.md (1,234 bytes)" in result.stdout
    assert run("bench", "validate", str(file), "--json").stdout.count('"notes.md": 1234') == 1
    result = run("bench", "run", str(file), "--no-wait")
    assert "notes.md (1,234 bytes)" in result.stdout.partition("expected")[0]


@pytest.mark.parametrize("source", ["/dev/zero", "pipe"])
def test_an_artifact_is_a_regular_file(run: Run, file: Path, source: str) -> None:
    os.mkfifo(file.parent / "pipe")
    (file.parent / "pipe").rename(file.parent / ".pipe")
    (file.parent / "a").mkdir()
    (file.parent / ".pipe").rename(file.parent / "a" / "pipe")
    source = "a/pipe" if source == "pipe" else source
    file.write_text(TEXT + f"artifacts: [{{name: tool, source: {source}, sha256: {'0f' * 32}}}]\n")
    result = run("bench", "validate", str(file))
    assert "cannot be read (it is not a regular file)" in result.stderr.replace("\n", " "), result.output


def test_archive_folder_reads_only_regular_files_of_its_own(tmp_path: Path, secret: Path) -> None:
    (tmp_path / "run" / "c001").mkdir(parents=True)
    root = tmp_path / "run"
    (root / "record.json").write_text("{}")
    (root / "plan.json").symlink_to(secret)
    os.mkfifo(root / "definition.json")
    (root / "c001" / "results.json").symlink_to("../record.json")
    folder = FolderArchive(root)
    assert (folder.read("record.json"), folder.read("c001/results.json")) == (b"{}", b"{}")
    for name in ("plan.json", "definition.json", "none", "../credentials", "c001"):
        assert folder.read(name) is None
