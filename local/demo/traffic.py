"""Sends requests to a group as a load balancer does: round robin, with the next member after a failure."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from local.demo.groups import PORT, Groups, Member

INTERVAL, TIME_OUT, MEMBERS_AGE = 0.1, 30.0, 1.0
"""Seconds. The time-out matters on a busy machine only: connections to a dead process fail at once."""


@dataclass
class Tally:
    """The outcomes of the requests to one group."""

    answered: int = 0
    rerouted: int = 0
    failed: int = 0
    by_instance: dict[str, int] = field(default_factory=dict)
    last_answer: dict[str, float] = field(default_factory=dict)
    unreachable: set[str] = field(default_factory=set)


class Traffic:
    """A background sender of about ten requests per second to each group."""

    def __init__(self, groups: Groups, names: list[str], on_death: Callable[[str, str], None]) -> None:
        """Calls ``on_death(group, instance)`` when a member stops answering."""
        self.tallies = {name: Tally() for name in names}
        self._groups, self._on_death = groups, on_death
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(name,), daemon=True) for name in names]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(5)

    def _run(self, name: str) -> None:
        members: list[Member] = []
        leaving: set[Member] = set()
        refreshed = 0.0
        for turn in itertools.count():
            if self._stop.wait(INTERVAL):
                return
            if time.monotonic() - refreshed > MEMBERS_AGE:
                before, members = members, [m for m in self._groups.members(name) if m.state == "InService"]
                here = {member.instance_id for member in members}
                leaving |= {member for member in before if member.instance_id not in here}
                leaving -= {member for member in leaving if self._is_dead(name, member)}
                refreshed = time.monotonic()
            if members:
                self._send(name, members[turn % len(members) :] + members[: turn % len(members)])

    def _send(self, name: str, order: list[Member]) -> None:
        tally = self.tallies[name]
        for attempt, member in enumerate(order):
            answered_by = ask(member.address)
            if answered_by is None:
                self._note_death(name, member)
                continue
            tally.answered += 1
            tally.rerouted += attempt > 0
            tally.by_instance[answered_by] = tally.by_instance.get(answered_by, 0) + 1
            tally.last_answer[answered_by] = time.monotonic()
            return
        tally.failed += 1

    def _is_dead(self, name: str, member: Member) -> bool:
        """Sends a request to a member that has left its group, because it may have died between two requests."""
        is_dead = ask(member.address) is None
        if is_dead:
            self._note_death(name, member)
        return is_dead

    def _note_death(self, name: str, member: Member) -> None:
        tally = self.tallies[name]
        if tally.by_instance.get(member.instance_id) and member.instance_id not in tally.unreachable:
            tally.unreachable.add(member.instance_id)
            self._on_death(name, member.instance_id)


def ask(address: str) -> str | None:
    """Returns the id of the instance that answers at an address, or None without an answer."""
    connection = http.client.HTTPConnection(address, PORT, timeout=TIME_OUT)
    try:
        connection.request("GET", "/")
        return str(json.loads(connection.getresponse().read())["instance"])
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
