"""Tests how the benchmark s3-range-read chooses, creates and deletes objects."""

from __future__ import annotations

import csv
import gzip
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra import ROOT
from tests.unit.agent.fake_account import FakeAccount
from tests.unit.agent.pythons import python39
from tests.unit.agent.s3_scripts import FOLDER, Scripts


@pytest.mark.parametrize(
    ("parameters", "keys"),
    [
        ({}, ["a/1", "a/3", "b/4"]),
        ({"prefix": "a/"}, ["a/1", "a/3"]),
        ({"objects": 2}, ["a/1", "a/3"]),
        ({"min_bytes": 0, "max_bytes": 5000}, ["a/1", "b/4"]),
    ],
)
def test_objects_that_are_large_enough_are_chosen(
    scripts: Scripts, parameters: dict[str, Any], keys: list[str]
) -> None:
    chosen = scripts.prepared(**parameters)
    assert [path for path, _ in chosen] == keys
    assert all(size == len(scripts.account.objects[f"data/{path}"]) for path, size in chosen)


def test_a_listing_ends_when_there_are_enough_objects(scripts: Scripts) -> None:
    scripts.account.page = 1
    scripts.prepared(objects=1)
    assert scripts.account.requests["GET", "list"] == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_bytes": 10**6}, "nothing to read: no object in data has at least max_bytes = 1000000 bytes"),
        ({"prefix": "none/"}, "nothing to read"),
        ({"min_bytes": 2000}, "min_bytes is 2000 and max_bytes is 1000"),
        ({"min_bytes": -1}, "min_bytes is -1"),
        ({"objects": 0}, "objects is 0: must be at least 1"),
        ({"keys_file": "missing.csv"}, "there is no file or artifact missing.csv"),
        ({"keys_file": "a", "inventory": "b"}, "inventory and keys_file are both set"),
        ({"inventory": "inventory/manifest.json"}, "must be s3://BUCKET/.../manifest.json"),
        ({"inventory": "s3://data/x/manifest.json"}, "data: S3 answered 404 NoSuchKey"),
    ],
)
def test_unreadable_objects_end_the_preparation(scripts: Scripts, parameters: dict[str, Any], message: str) -> None:
    done = scripts.run("prepare.py", **parameters)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def packed(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return gzip.compress(text.getvalue().encode())


def inventory(account: FakeAccount, parts: list[list[list[str]]], **changes: str) -> str:
    """Writes an S3 Inventory; returns the URL of its manifest."""
    manifest = {
        "sourceBucket": "data",
        "fileFormat": "CSV",
        "fileSchema": "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size",
        "files": [{"key": f"daily/data/{n}.csv.gz", "size": 1} for n in range(len(parts))],
    }
    account.put("lists/daily/manifest.json", {**manifest, **changes})
    for n, rows in enumerate(parts):
        account.put(f"lists/daily/data/{n}.csv.gz", packed(rows))
    return "s3://lists/daily/manifest.json"


def test_an_inventory_names_the_objects(scripts: Scripts) -> None:
    scripts.account.put("data/a/with blank+%", bytes(1500))
    parts = [
        [
            ["data", "a/with+blank%2B%25", "v1", "true", "false", "1500"],
            ["data", "old", "v1", "false", "false", "9999"],
        ],
        [["data", "gone", "v2", "true", "true", ""], ["data", "small", "v1", "true", "false", "12"]],
    ]
    chosen = scripts.prepared(inventory=inventory(scripts.account, parts))
    assert chosen == [("a/with%20blank%2B%25", 1500)]
    assert scripts.account.requests["GET", "list"] == 0


@pytest.mark.parametrize(
    ("parts", "changes", "message"),
    [
        ([], {"sourceBucket": "other"}, "the inventory describes other, and the bucket to read is data"),
        ([], {"fileFormat": "Parquet"}, "the inventory is Parquet of Bucket, Key"),
        ([], {"fileSchema": "Bucket, Key"}, "must be CSV with Key and Size"),
        ([[["data", "a"]]], {}, "s3://lists/daily/data/0.csv.gz has a line of 2 values"),
        ([[["data", "a", "v", "true", "false", "x"]]], {}, "the size of an object is 'x'"),
    ],
)
def test_an_inventory_of_something_else_is_refused(
    scripts: Scripts, parts: list[list[list[str]]], changes: dict[str, str], message: str
) -> None:
    done = scripts.run("prepare.py", inventory=inventory(scripts.account, parts, **changes))
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_objects_that_nodes_may_not_read_end_the_preparation(scripts: Scripts) -> None:
    (scripts.folder / "keys.csv").write_text("missing,5000")
    done = scripts.run("prepare.py", keys_file="keys.csv")
    assert (done.returncode, done.stderr) == (1, "data: S3 answered 404 NoSuchKey to GET 'missing'\n")


@pytest.mark.parametrize("name", ["keys.csv", "keys.csv.gz"])
def test_a_file_names_the_objects(scripts: Scripts, name: str) -> None:
    text = b'a/1,5000\n"b,c",2000\n\xc3\xa4,1000\nd,10\n'
    (scripts.folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert scripts.prepared(keys_file=name) == [("a/1", 5000), ("b%2Cc", 2000), ("%C3%A4", 1000)]


@pytest.mark.parametrize(
    ("text", "message"), [("a", "keys.csv:1: the line must be key,size"), ("a,1\nb,-1", "keys.csv:2: the size")]
)
def test_a_damaged_file_is_refused_with_its_line(scripts: Scripts, text: str, message: str) -> None:
    (scripts.folder / "keys.csv").write_text(text)
    done = scripts.run("prepare.py", keys_file="keys.csv")
    assert (done.returncode, message in done.stderr) == (1, True), done.stderr


FILLED: dict[str, Any] = {"bucket": "", "fill_objects": 40, "fill_kib": 2, "objects": 30}


def created(account: FakeAccount) -> dict[str, int]:
    """Sizes of the objects below the cell's prefix, by the rest of their keys."""
    begin = "results/data/run/c001/"
    return {key.removeprefix(begin): len(body) for key, body in account.objects.items() if key.startswith(begin)}


def test_each_node_creates_its_part_of_the_objects_and_reads_all(scripts: Scripts) -> None:
    before = dict(scripts.account.objects)
    for scripts.rank in (2, 0, 1):  # the owner of the first object is not the first to be ready
        assert len(scripts.prepared(**FILLED)) == 30
    assert created(scripts.account) == {f"{n:07d}": 2048 for n in range(40)}
    done, read = scripts.measured(lambda read: read.times.count > 5, **FILLED)
    assert done.returncode == 0, done.stderr
    assert read.errors == {}
    scripts.rank = 1
    assert scripts.run("fill.py", **FILLED).returncode == 0
    assert set(created(scripts.account)) == {f"{n:07d}" for n in range(40) if n % 3 != 1}
    for scripts.rank in range(3):
        assert scripts.run("fill.py", **FILLED).returncode == 0
    assert scripts.account.objects == before


def test_objects_that_could_not_all_be_created_are_deleted(scripts: Scripts) -> None:
    scripts.account.forbidden = "results/data/run/c001/0000024"
    done = scripts.run("prepare.py", **FILLED)
    assert (done.returncode, "S3 answered 403 AccessDenied" in done.stderr) == (1, True), done.stderr
    assert created(scripts.account) == {}
    assert scripts.account.requests["PUT", "object"] > 2


def test_nothing_is_created_that_could_not_be_deleted(scripts: Scripts) -> None:
    scripts.account.undeletable = True
    done = scripts.run("prepare.py", **FILLED)
    assert (done.returncode, "S3 did not delete 1 objects" in done.stderr) == (1, True), done.stderr
    assert set(created(scripts.account)) == {"probe-0"}
    done = scripts.run("fill.py", **FILLED)
    assert done.returncode == 0, "a failed clean-up would cost the results of the measurement"
    assert "Of s3://results/data/run/c001/, up to 14 objects are left, which the teardown deletes" in done.stdout


def test_a_bucket_of_the_user_is_never_written_to(scripts: Scripts) -> None:
    before = dict(scripts.account.objects)
    assert scripts.run("fill.py").stdout == "nothing to delete: fill_objects is 0\n"
    scripts.data = ""
    for script in ("prepare.py", "fill.py"):
        done = scripts.run(script, fill_objects=5)
        assert (done.returncode, "fill_objects needs own_data: true in the file" in done.stderr) == (1, True)
    assert scripts.account.objects == before


MANY = 500_000
MOST_MIB = 64
"""Of the smallest nodes' memory. Python alone takes some 12 MiB of it."""


def test_half_a_million_keys_need_little_memory(tmp_path: Path) -> None:
    """The process writes them all, maps them, and reads some at random."""
    script = f"""
import random, resource, sys
from pathlib import Path
sys.path[:0] = [{str(FOLDER)!r}, {str(ROOT / "functions")!r}]
from objects import Objects, store
from s3 import Listed
folder, base = Path({str(tmp_path)!r}), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
keys = (Listed(f"year-2026/month-11/part-{{n:08d}}-of-a-longer-name.parquet", 10240 + n) for n in range({MANY}))
print(store(folder, keys, 10240, 10**6))
objects = Objects(folder)
assert len(objects) == {MANY}
for n in random.sample(range({MANY}), 20000):
    assert objects.at(n) == (f"year-2026/month-11/part-{{n:08d}}-of-a-longer-name.parquet", 10240 + n)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 1024)
"""
    done = subprocess.run([python39() or sys.executable, "-c", script], capture_output=True, text=True, check=True)
    counts, grown = done.stdout.splitlines()
    assert counts == f"({MANY}, {MANY}, {sum(range(10240, 10240 + MANY))})"
    assert float(grown) < MOST_MIB
