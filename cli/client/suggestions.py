"""Suggests words for completion in a shell: fast, without a message, and from a cache where there is one."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stderr, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from cli.client import connection
from cli.shared.context import Options

SECONDS = 2.0
"""The longest that a person waits for a list; then what has come so far is suggested."""

FRESH_SECONDS, OLDEST_SECONDS = 60.0, 24 * 3600.0
"""The age up to which the cache is used; and the age up to which it is better than no answer."""

_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@/+,%-]*")
"""Words that a shell does not interpret: others have chosen the names."""

_MOST_GROUPS, _MOST_RUNS = 2000, 100
_LONGEST_FILE = 1_000_000
_ENVIRONMENT = ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID")


def suggest(kind: str, options: Options, words: Mapping[str, Any]) -> list[str]:
    """Returns words of a kind, sorted; none where they cannot be read in time.

    Args:
        kind: a key of :data:`KINDS`.
        options: the shared options of the command line.
        words: the values of its other options, such as ``file``.
    """
    listing, name = KINDS[kind]
    with redirect_stderr(io.StringIO()):
        records = _in_time(lambda: listing(options, words)) if listing in _OFFLINE else _cached(listing, options)
    known = {str(record[name]) if isinstance(record, Mapping) else str(record) for record in records}
    return sorted(word for word in known if _SAFE.fullmatch(word))


def _in_time(fetch: Callable[[], Iterable[Any]]) -> list[Any]:
    """Returns what comes within the limit; an error ends it early."""
    records: list[Any] = []

    def read() -> None:
        with suppress(Exception):  # a message would destroy the line that a person types
            for record in fetch():
                records.append(record)

    thread = threading.Thread(target=read, daemon=True)  # it must not keep the shell waiting
    thread.start()
    thread.join(SECONDS)
    return list(records)


def _cached(listing: Callable[[Options, Mapping[str, Any]], Iterable[Any]], options: Options) -> list[Any]:
    path = cache_file(listing.__name__, options)
    age, stored = _load(path)
    if age <= FRESH_SECONDS:
        return stored
    records = _in_time(lambda: listing(options, {}))
    if not records:
        return stored if age <= OLDEST_SECONDS else []
    with suppress(OSError):
        _store(path, records)
    return records


def cache_file(name: str, options: Options) -> Path:
    """Returns the file with the cache of a listing of one deployment, as one set of credentials sees it."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "troop"
    key = [name, options.deployment, options.region, options.profile, *map(os.environ.get, _ENVIRONMENT)]
    return folder / f"completion-{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]}.json"


def _load(path: Path) -> tuple[float, list[Any]]:
    """Returns the age of the cache in seconds and its records; an infinite age without a usable one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor) as file:
            state = os.fstat(descriptor)
            records = json.load(file)
    except (OSError, ValueError):
        return float("inf"), []
    age = time.time() - state.st_mtime
    usable = state.st_uid == os.getuid() and isinstance(records, list) and age >= 0
    return (age, records) if usable else (float("inf"), [])


def _store(path: Path, records: list[Any]) -> None:
    """Replaces the cache in one step; only its owner can read it. Removes caches that nobody uses any more."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in path.parent.glob("completion-*"):
        if time.time() - old.stat().st_mtime > OLDEST_SECONDS:
            old.unlink(missing_ok=True)
    descriptor, name = tempfile.mkstemp(prefix="completion-", dir=path.parent)  # with mode 0600
    with os.fdopen(descriptor, "w") as file:
        json.dump(records, file)
    Path(name).replace(path)


def _groups(options: Options, _words: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for group in islice(connection.connect(options).client.groups(), _MOST_GROUPS):
        yield {key: group.get(key) or "" for key in ("unit", "group", "calendar", "owner")}


def _runs(options: Options, _words: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for run in connection.connect(options).client.benchmarks.runs(_MOST_RUNS):
        yield {"run": run["run"], "name": run["name"]}


def _fleets(options: Options, _words: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for fleet in connection.connect(options).client.benchmarks.fleets(_MOST_RUNS):
        yield {"fleet": fleet["fleet"], "name": fleet["name"], "status": fleet["status"]}


def _schedules(options: Options, _words: Mapping[str, Any]) -> Iterator[str]:
    for schedule in connection.connect(options).client.benchmarks.schedules()["schedules"]:
        yield schedule["name"]


def _deployments(options: Options, _words: Mapping[str, Any]) -> Iterable[str]:
    from cli.client import deployment
    from cli.shared import aws

    return deployment.deployments(aws.make_light_session(options.profile, options.region))


def _profiles(_options: Options, _words: Mapping[str, Any]) -> Iterable[str]:
    from cli.shared import aws

    return aws.Session().available_profiles


def _regions(_options: Options, _words: Mapping[str, Any]) -> Iterable[str]:
    from cli.shared import aws

    return aws.known_regions(aws.Session())


def _sizes(_options: Options, words: Mapping[str, Any]) -> Iterable[str]:
    import yaml

    path = Path(str(words["file"]))
    path = path / "benchmark.yaml" if path.is_dir() else path
    with path.open("rb") as file:
        sizes = yaml.safe_load(file.read(_LONGEST_FILE)).get("sizes") or {}
    return [str(size) for size in sizes]


_OFFLINE = (_profiles, _regions, _sizes)
"""Listings that need no AWS, and no cache."""

KINDS: Mapping[str, tuple[Callable[[Options, Mapping[str, Any]], Iterable[Any]], str]] = {
    "units": (_groups, "unit"),
    "groups": (_groups, "group"),
    "calendars": (_groups, "calendar"),
    "owners": (_groups, "owner"),
    "runs": (_runs, "run"),
    "benchmarks": (_runs, "name"),
    "schedules": (_schedules, ""),
    "fleets": (_fleets, "fleet"),
    "fleet names": (_fleets, "name"),
    "fleet statuses": (_fleets, "status"),
    "deployments": (_deployments, ""),
    "profiles": (_profiles, ""),
    "regions": (_regions, ""),
    "sizes": (_sizes, ""),
}
"""The function that lists each kind, and the key of the word in a record."""
