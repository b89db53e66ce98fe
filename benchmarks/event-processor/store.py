"""The on-disk stores: SQLite from the node's own Python, or RocksDB from an artifact.

A store belongs to one worker, so nothing waits for a lock. A commit writes the new values of a batch together with the
number of all events so far: both are in the store, or neither.
"""

from __future__ import annotations

import importlib
import os
import sqlite3
import struct
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

SQLITE, ROCKSDB = "sqlite", "rocksdb"
_KEY = struct.Struct(">Q")
_PROGRESS = b"progress of the worker"
_LOADED_AT_ONCE = 1_000


class StoreError(Exception):
    """The store is missing or cannot be used; the message says what to do."""


class Store(Protocol):
    """Values by key, and the number of committed events."""

    def load(self, rows: Iterable[tuple[int, bytes]]) -> Iterator[int]:
        """Fills a new store, and yields the number of values so far. When it ends, all values are on the disk."""

    def read(self, key: int) -> bytes | None:
        """Returns the value of a key, or None."""

    def commit(self, values: Mapping[int, bytes], events: int) -> None:
        """Writes values and the number of all events so far in one transaction."""

    def events(self) -> int:
        """Returns the number of committed events."""

    def rows(self) -> Iterator[tuple[int, bytes]]:
        """Yields all keys with their values, in ascending order."""

    def close(self) -> None:
        """Closes the store."""


class SqliteStore:
    """A file with a write-ahead log.

    Args:
        path: of the file.
        is_durable: whether a commit waits for the disk. Otherwise only checkpoints do, and a power failure can undo
            the last commits.
        cache_mib: SQLite's own cache. The kernel caches, too.
        checkpoint_pages: the size of the log, in pages of 4 KiB, at which a commit writes it back to the file.
    """

    def __init__(
        self,
        path: Path,
        is_durable: bool = True,
        cache_mib: int = 8,
        checkpoint_pages: int = 4000,
        is_new: bool = False,
    ) -> None:
        if is_new:
            for suffix in ("", "-journal", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        elif not path.exists():
            raise StoreError(f"{path} does not exist: run load.py first")
        self._database = sqlite3.connect(path, isolation_level=None)
        self._is_new = is_new
        self._set("locking_mode = EXCLUSIVE", f"cache_size = -{cache_mib * 1024}")
        if is_new:
            self._set("page_size = 4096", "journal_mode = OFF", "synchronous = OFF")
            self._database.execute("CREATE TABLE state (key INTEGER PRIMARY KEY, value BLOB NOT NULL)")
            self._database.execute("CREATE TABLE progress (events INTEGER NOT NULL)")
            self._database.execute("INSERT INTO progress VALUES (0)")
        else:
            self._set("journal_mode = WAL", f"synchronous = {'FULL' if is_durable else 'NORMAL'}")
            self._set(f"wal_autocheckpoint = {checkpoint_pages}")

    def _set(self, *settings: str) -> None:
        for setting in settings:
            self._database.execute(f"PRAGMA {setting}").fetchall()

    def load(self, rows: Iterable[tuple[int, bytes]]) -> Iterator[int]:
        count = 0
        for batch in _batches(rows):
            with _transaction(self._database) as database:
                database.executemany("INSERT INTO state VALUES (?, ?)", batch)
            count += len(batch)
            yield count
        os.sync()

    def read(self, key: int) -> bytes | None:
        row = self._database.execute("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def commit(self, values: Mapping[int, bytes], events: int) -> None:
        with _transaction(self._database) as database:
            database.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", values.items())
            database.execute("UPDATE progress SET events = ?", (events,))

    def events(self) -> int:
        return int(self._database.execute("SELECT events FROM progress").fetchone()[0])

    def rows(self) -> Iterator[tuple[int, bytes]]:
        return iter(self._database.execute("SELECT key, value FROM state ORDER BY key"))

    def close(self) -> None:
        self._database.close()


class _transaction:
    """Commits what is done inside, or nothing."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> sqlite3.Connection:
        self._database.execute("BEGIN IMMEDIATE")
        return self._database

    def __exit__(self, kind: Any, *_: object) -> None:
        self._database.execute("COMMIT" if kind is None else "ROLLBACK")


class RocksdbStore:
    """A folder of RocksDB, through the package ``rocksdict``.

    Args:
        path: of the folder.
        is_durable: whether a commit waits for the disk.
        cache_mib: RocksDB's cache of blocks.
    """

    def __init__(self, path: Path, is_durable: bool = True, cache_mib: int = 8, is_new: bool = False) -> None:
        rocks = importlib.import_module("rocksdict")
        if not is_new and not path.exists():
            raise StoreError(f"{path} does not exist: run load.py first")
        options = rocks.Options(raw_mode=True)
        options.create_if_missing(is_new)
        options.set_compression_type(rocks.DBCompressionType.none())
        blocks = rocks.BlockBasedOptions()
        blocks.set_block_cache(rocks.Cache(cache_mib << 20))
        blocks.set_bloom_filter(10, False)
        options.set_block_based_table_factory(blocks)
        if is_new:
            rocks.Rdict.destroy(str(path), options)
        self._rocks = rocks
        self._database = rocks.Rdict(str(path), options)
        write_options = rocks.WriteOptions()
        write_options.sync = is_durable
        self._write_options = write_options

    def _write(self, values: Iterable[tuple[int, bytes]], events: int) -> None:
        batch = self._rocks.WriteBatch(raw_mode=True)
        for key, value in values:
            batch.put(_KEY.pack(key), value)
        batch.put(_PROGRESS, _KEY.pack(events))
        self._database.write(batch, self._write_options)

    def load(self, rows: Iterable[tuple[int, bytes]]) -> Iterator[int]:
        count = 0
        for batch in _batches(rows):
            self._write(batch, 0)
            count += len(batch)
            yield count
        self._database.flush()
        os.sync()

    def read(self, key: int) -> bytes | None:
        value: bytes | None = self._database.get(_KEY.pack(key))
        return value

    def commit(self, values: Mapping[int, bytes], events: int) -> None:
        self._write(values.items(), events)

    def events(self) -> int:
        return int(_KEY.unpack(self._database[_PROGRESS])[0])

    def rows(self) -> Iterator[tuple[int, bytes]]:
        for key, value in self._database.items():
            if len(key) == _KEY.size:
                yield _KEY.unpack(key)[0], value

    def close(self) -> None:
        self._database.close()


def _batches(rows: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    batch: list[tuple[int, bytes]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _LOADED_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def install(kind: str, artifacts: Path, shared: Path) -> None:
    """Makes the software of a store importable: the wheel of RocksDB is an artifact with the name ``rocksdb``.

    Raises:
        StoreError: the kind is unknown, or the artifact is not a wheel for this node.
    """
    if kind not in (SQLITE, ROCKSDB):
        raise StoreError(f"store is {kind!r}: must be {SQLITE} or {ROCKSDB}")
    if kind == SQLITE:
        return
    wheel, packages = artifacts / "rocksdb", shared / "packages"
    if not packages.exists():
        if not wheel.exists():
            raise StoreError("store is rocksdb, but there is no artifact with that name: use --size rocksdb")
        unpacked = packages.with_suffix(".new")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
        unpacked.rename(packages)
    sys.path.insert(0, str(packages))
    try:
        importlib.import_module("rocksdict")
    except ImportError as error:
        version = ".".join(map(str, sys.version_info[:2]))
        machine = os.uname().machine
        raise StoreError(f"the artifact rocksdb is no wheel for Python {version} on {machine}: {error}") from error


def open_store(kind: str, path: Path, parameters: Mapping[str, Any], is_new: bool = False) -> Store:
    """Opens a worker's store, or creates it.

    Raises:
        StoreError: it does not exist.
    """
    is_durable, cache_mib = bool(parameters["durable"]), int(parameters["cache_mib"])
    if kind == ROCKSDB:
        return RocksdbStore(path, is_durable, cache_mib, is_new)
    return SqliteStore(path, is_durable, cache_mib, int(parameters["checkpoint_pages"]), is_new)
