"""Stands before the handler of a deployed function, and interferes with its calls of AWS as a test has ordered.

This file goes into a layer (see tests/e2e/benches.py) and runs in the function's own process, so it knows nothing of
the tests. The orders for a run are a document ``<last part of the run's id>.json`` in TROOP_TEST_ORDERS:

    {"pause": {"step", "before"}}  the step waits before the first call of that operation ("": of any), until there is
                                   a file ``<run>.go``; ``<run>.there`` says that it has come there
    {"stretch": {"step"}}          the step answers, and tells the workflow to wait for a day; ``<run>.there`` likewise
    {"break": {"step"}}            the step fails, every time
    {"cut": {"folder", "after", "rows"}}  the process ends after a call, in each place once; see _cut

Steps are called as the functions call them; of a teardown of a whole run, "close run" and so on. A file ``ahead`` holds
seconds by which the reaper's clock is ahead of ours.
"""

from __future__ import annotations

import importlib
import json
import os
import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from botocore.client import BaseClient

ORDERS = Path(os.environ["TROOP_TEST_ORDERS"])
LONGEST_PAUSE = 600
A_DAY = 86_400
READS = ("Describe", "Get", "Head", "List", "Query", "Scan", "BatchGet")


class Invocation:
    """One call of the function. ``place``: which one of its calls of AWS this is, such as ``launch PutItem 2``."""

    def __init__(self, event: dict[str, Any]) -> None:
        work = event.get("work", event)
        self.run = str(work.get("run", "")).rpartition("-")[2]
        unnamed = "launch" if "cell" in event else "report"
        self.step = event.get("step", unnamed) + (" run" if "work" in event and not work.get("cell") else "")
        orders = ORDERS / f"{self.run}.json"
        self.orders: dict[str, Any] = json.loads(orders.read_text()) if self.run and orders.exists() else {}
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()

    def is_ordered(self, order: str) -> bool:
        return bool(self.orders.get(order, {}).get("step") == self.step)

    def place(self, operation: str) -> str:
        with self._lock:
            self._seen[operation] += 1
            return f"{self.step} {operation} {self._seen[operation]}"

    def there(self) -> bool:
        """Whether this is the first one to come there."""
        return _claim(ORDERS / f"{self.run}.there")


_now: Invocation | None = None


def handler(event: dict[str, Any], context: Any) -> Any:
    global _now
    invocation = _now = Invocation(event)
    if invocation.is_ordered("break"):
        raise RuntimeError("broken on purpose")
    answer = _real(event, context)
    if invocation.is_ordered("stretch") and invocation.there():
        answer["wait_seconds"] = A_DAY
    _row(invocation).unlink(missing_ok=True)
    return answer


def _call(client: BaseClient, operation: str, parameters: dict[str, Any]) -> Any:
    invocation = _now
    if invocation is None or not invocation.orders:
        return _make_api_call(client, operation, parameters)
    if invocation.is_ordered("pause") and invocation.orders["pause"]["before"] in ("", operation):
        _pause(invocation)
    place = invocation.place(operation)
    answer = _make_api_call(client, operation, parameters)
    if cut := invocation.orders.get("cut"):
        _cut(invocation, operation, place, cut)
    return answer


def _pause(invocation: Invocation) -> None:
    if invocation.there():
        until = time.monotonic() + LONGEST_PAUSE
        while not (ORDERS / f"{invocation.run}.go").exists() and time.monotonic() < until:
            time.sleep(0.05)


def _cut(invocation: Invocation, operation: str, place: str, order: dict[str, Any]) -> None:
    """Ends this process once for each place, whichever run comes there first; never more often in a row than the
    workflow tries again (``rows``, by step). Between two calls nobody but this process knows where it is, so after one
    is before the next. ``after``: how the names of the operations begin after which to do so; by default those that
    change something.
    """
    if not operation.startswith(tuple(order["after"])) if order["after"] else operation.startswith(READS):
        return
    folder = ORDERS / order["folder"]
    (folder / "seen" / place).touch()
    row = _row(invocation)
    cuts = len(row.read_text()) if row.exists() else 0
    if cuts < order["rows"].get(invocation.step, 0) and _claim(folder / "cut" / place):
        row.write_text("x" * (cuts + 1))
        os._exit(1)


def _row(invocation: Invocation) -> Path:
    """As long as the row of cuts of a step, since it last came to an end."""
    return ORDERS / f"{invocation.run}.{invocation.step}.row"


def _claim(path: Path) -> bool:
    with suppress(FileExistsError):
        path.touch(exist_ok=False)
        return True
    return False


def _ahead() -> datetime:
    ahead = ORDERS / "ahead"
    return datetime.now(UTC) + timedelta(seconds=float(ahead.read_text()) if ahead.exists() else 0)


_module, _, _function = os.environ["TROOP_TEST_HANDLER"].rpartition(".")
_real = getattr(importlib.import_module(_module), _function)
_make_api_call = BaseClient._make_api_call  # type: ignore[attr-defined]
BaseClient._make_api_call = _call  # type: ignore[attr-defined]
if _module == "handlers.reaper":
    importlib.import_module("troop.shared.wiring.environment").now = _ahead  # type: ignore[attr-defined]
