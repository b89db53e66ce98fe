"""Records each request of Locust as it ends. A file beside the plan adds it: ``locust -f plan.py,listener.py`` with

    from locust import events
    from troop.measure.collectors.locust_events import listen
    listen(events)

Locust's own results have times rounded to two digits. This listener gets them unrounded. It runs in each of Locust's
processes (``--processes``), and each writes its own file of results. Events without a time, which plans can fire, are
left out, and named in the output.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from typing import Any

from troop.measure.collectors.common import a_name
from troop.measure.operations import OTHER
from troop.measure.recorder import MOST_RECORDED, Recorder

TOOL = "Locust"


class Recording:
    """Records requests in the process that sends them: Locust starts processes after it has read its files."""

    def __init__(self) -> None:
        self._recorder: Recorder | None = None
        self._process = 0
        self._lock = threading.Lock()
        self._without_time: Counter[str] = Counter()
        self._labels: set[str] = set()
        self._together = 0

    def _own(self) -> Recorder:
        if self._recorder is None or self._process != os.getpid():
            with self._lock:  # another greenlet runs while a recorder starts its thread
                if self._recorder is None or self._process != os.getpid():
                    self._recorder, self._process = Recorder.of_this_phase(tool=TOOL), os.getpid()
        return self._recorder

    def record(
        self,
        request_type: str,
        name: str,
        response_time: float | None,
        response_length: int | None,
        exception: BaseException | None = None,
        response: Any = None,
        **_: Any,
    ) -> None:
        """Records one request, with the arguments of Locust's event ``request``: times are milliseconds."""
        label = self._label(a_name(f"{request_type} {name}".strip()))
        if exception is None and response_time is None:
            self._without_time[label] += 1
        elif exception is None:
            self._own().ok(label, float(response_time or 0) / 1000, int(response_length or 0))
        else:
            self._own().error(label, error_kind(exception, response))

    def _label(self, label: str) -> str:
        """Returns the name to count under: :data:`OTHER` after as many as a recorder may have."""
        if label not in self._labels:
            if len(self._labels) == MOST_RECORDED - 1:
                self._together += 1
                return OTHER
            self._labels.add(label)
        return label

    def write(self, **_: Any) -> None:
        """Writes the results of this process. A later call replaces them."""
        for label, number in self._without_time.items():
            sys.stdout.write(f"{label}: {number} successes have no time and are left out\n")
        self._without_time.clear()
        if self._together:
            sys.stdout.write(
                f"{self._together} requests with names after the first {MOST_RECORDED - 1} are counted together as "
                f"{OTHER}\n"
            )
            self._together = 0
        if self._recorder is not None and self._process == os.getpid():
            self._recorder.write()


def error_kind(exception: BaseException, response: Any) -> str:
    """Returns the status of an answer such as ``404``, otherwise the class of the exception."""
    status = getattr(response, "status_code", None)
    if isinstance(status, int) and status >= 400:
        return str(status)
    name = type(exception).__name__
    return "failed" if name == "CatchResponseError" else a_name(name)


def listen(events: Any) -> Recording:
    """Adds a recording to Locust's events."""
    recording = Recording()
    events.request.add_listener(recording.record)
    events.quitting.add_listener(recording.write)
    events.quit.add_listener(recording.write)
    return recording
