"""Makes visits without JMeter: the same requests in the same order. Drivers check all proxies with them."""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import tiers
import visits
from node import Phase
from visits import Visit

from troop.measure.recorder import Recorder

FORM = "application/x-www-form-urlencoded"
AGENTS = {"browser": "Mozilla/5.0 (X11; Linux x86_64) flights/1", "mobile": "Mozilla/5.0 (Mobile) flights/1"}
LONGEST = 20.0
"""Seconds for an answer while the tiers are checked."""

Sent = Callable[[str, float, int, str], None]
"""Takes a request's label, its seconds, the bytes of its answer, and its error; an empty text if there is none."""


def steps(kind: str, number: int) -> Sequence[str]:
    """Returns the requests of a client's visit: every second browser cancels, and every second mobile books."""
    queries, is_second = ["query-flights"], number % 2
    if kind == "mobile":
        return ["login", "bookings", *queries * 2, *["book"] * is_second, "logout"]
    return ["login", *queries * 4, "book", "bookings", *["cancel"] * is_second, *queries * 2, "logout"]


class Client:
    """A customer's browser or mobile, with a connection and the cookie of the session."""

    def __init__(self, kind: str, one: Visit, timeout: float, sent: Sent) -> None:
        host, port = one.proxy.rsplit(":", 1)
        self._kind, self._visit, self._sent = kind, one, sent
        self._cookie, self._flight, self._booking = "", "none", "none"
        self._connection = http.client.HTTPConnection(host, int(port), timeout=timeout)

    def make(self, step: str) -> None:
        """Makes one request of the visit."""
        one = self._visit
        if step == "login":
            self._send(step, "POST", "/session", {"user": one.user, "password": one.password})
        elif step == "query-flights":
            words = urlencode({"from": one.origin, "to": one.target, "day": one.day, "back": one.back})
            if flights := self._send(step, "GET", f"/flights?{words}"):
                self._flight = flights["out"][0]["id"]
        elif step == "book":
            self._booking = self._send(step, "POST", "/bookings", {"flight": self._flight}).get("booking", "none")
        elif step == "bookings":
            self._send(step, "GET", "/bookings")
        elif step == "cancel":
            self._send(step, "DELETE", f"/bookings/{self._booking}")
        else:
            self._send(step, "DELETE", "/session")

    def _send(self, label: str, method: str, path: str, form: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Sends a request and returns the answer; empty after an error."""
        headers = {"User-Agent": AGENTS[self._kind]}
        headers.update({"Content-Type": FORM} if form else {})
        headers.update({"Cookie": self._cookie} if self._cookie else {})
        started, error, body = time.perf_counter(), "", b""
        try:
            self._connection.request(method, path, urlencode(form) if form else None, headers)
            response = self._connection.getresponse()
            body = response.read()
            if response.status >= 300:
                error = str(response.status)
            elif cookie := response.getheader("Set-Cookie"):
                self._cookie = cookie.split(";")[0]
        except (OSError, http.client.HTTPException) as failure:
            self._connection.close()
            error = "timeout" if isinstance(failure, TimeoutError) else "connection"
        self._sent(f"{self._kind}:{label}", time.perf_counter() - started, len(body), error)
        document: dict[str, Any] = {} if error else json.loads(body)
        return document

    def close(self) -> None:
        self._connection.close()


def check(phase: Phase) -> None:
    """Makes a visit by browser and by mobile through each proxy. Ends the script if a request fails."""
    proxies = tiers.endpoints(phase, "proxies")
    failures: list[str] = []
    count = 0

    def sent(label: str, _: float, __: int, error: str) -> None:
        nonlocal count
        count += 1
        if error:
            failures.append(f"{label}: {error}")

    for one in visits.plan(phase.rank, len(phase.nodes["drivers"]), proxies, _sizes(phase), len(proxies)):
        for kind in AGENTS:
            client = Client(kind, one, LONGEST, sent)
            for step in steps(kind, 1):
                client.make(step)
                if failures:
                    sys.exit(f"a visit through {one.proxy} failed: {failures[0]}")
            client.close()
    print(f"{count} requests through {len(proxies)} proxies succeeded")


def load(phase: Phase) -> None:
    """Makes visits with threads of this process until the end of the measured time."""
    browsers, mobiles = visits.divided(int(phase.parameters["threads"]))
    rates = visits.shares(float(phase.parameters["rate"]))
    with Recorder.of_this_phase(tool="python") as recorder:

        def sent(label: str, seconds: float, moved: int, error: str) -> None:
            if error:
                recorder.error(label, error)
            else:
                recorder.ok(label, seconds, moved)

        def visitor(kind: str, number: int, threads: int, rate: float) -> None:
            """Visits as one of the threads of its kind, which together send ``rate`` requests a second."""
            parts, part = browsers + mobiles, number + (0 if kind == "browser" else browsers)
            rank = phase.rank * parts + part
            proxies = tiers.endpoints(phase, "proxies")
            own = visits.plan(rank, parts * len(phase.nodes["drivers"]), proxies, _sizes(phase), sys.maxsize)
            due = recorder.now() + (number / rate if rate else 0)
            for visited, one in enumerate(own):
                client = Client(kind, one, float(phase.parameters["timeout_ms"]) / 1000, sent)
                for step in steps(kind, visited):
                    if rate:
                        time.sleep(max(0.0, due - recorder.now()))
                        due += threads / rate
                    if recorder.now() >= recorder.measured_until:
                        return
                    client.make(step)
                client.close()

        groups = (("browser", browsers, rates[0]), ("mobile", mobiles, rates[1]))
        threads = [
            threading.Thread(target=visitor, args=(kind, number, count, rate))
            for kind, count, rate in groups
            for number in range(count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _sizes(phase: Phase) -> dict[str, int]:
    return {name: int(phase.parameters[name]) for name in ("customers", "days")}
