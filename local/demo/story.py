"""Runs the demonstration: two groups take part, one is opted out, and the deployed schedule starts the ticks.

Every printed statement is checked. A benchmark follows, whose fleet is removed at the end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from local.demo.benchmark import BenchmarkStory
from local.demo.deployment_view import RUNNING, DeploymentView, TickRun
from local.demo.failure import DemoFailed
from local.demo.groups import Groups, Member
from local.demo.narrator import Narrator
from local.demo.traffic import Traffic
from local.launcher import LocalAccount
from local.settings import open_settings, salt_for

PARTICIPANTS = ("demo-web", "demo-search")
OPTED_OUT = "demo-ledger"
SIZE = 3
PATIENCE = 900
"""Seconds to wait for a group, a tick or a recovery on a slow machine; usually it takes less than two minutes."""
_START = 15
"""Seconds in which three groups are in service, on a slow machine, too."""
_DECISION = 2
"""Seconds after which a tick has read the groups."""


class Story:
    """One demonstration, in a running account."""

    def __init__(self, account: LocalAccount, narrator: Narrator) -> None:
        self._account, self._tell = account, narrator
        self._groups = Groups(account.client("autoscaling"), account.client("ec2"))
        self._words: set[str] = set()

    def run(self) -> None:
        """Runs the demonstration. Raises DemoFailed or TimeoutError if an expected event does not happen."""
        outputs = self._account.deploy(open_settings(datetime.now(UTC)))
        self._deployment = DeploymentView(self._account, outputs)
        before = self._bring_up_groups()
        with Traffic(self._groups, [*PARTICIPANTS, OPTED_OUT], self._on_death) as traffic:
            self._await_recoveries(before)
            self._show_requests(traffic)
            self._show_event()
            self._show_opted_out(before[OPTED_OUT])
            self._second_tick(before)
        BenchmarkStory(self._account, outputs, self._tell).run()
        self._tell.title("Next steps")
        self._tell.text(
            "make local     the same account, until you press Ctrl-C\n"
            "make test      all tests\n"
            "README.md      how to deploy into your AWS account; it starts leashed",
            style="plain",
        )

    def _bring_up_groups(self) -> dict[str, list[Member]]:
        self._tell.title("Three Auto Scaling groups; every instance is a separate process")
        self._deployment.opt_out(OPTED_OUT, "month-end closing", "accounting")
        self._tell.say(f"{OPTED_OUT} is opted out by its item in the table GroupTags")
        if pause := seconds_until_room(datetime.now(UTC)):
            self._tell.say("waiting until the full minute is over: its tick would find groups that still start", "dim")
            time.sleep(pause)
        for name in (*PARTICIPANTS, OPTED_OUT):
            self._groups.create(name, SIZE)
        members_by_group = {}
        for name in (*PARTICIPANTS, OPTED_OUT):
            members_by_group[name] = self._groups.await_in_service(name, SIZE, PATIENCE)
            self._tell.say(f"{name}: " + ", ".join(f"{m.instance_id} at {m.address}" for m in members_by_group[name]))
        return members_by_group

    def _await_recoveries(self, before: dict[str, list[Member]]) -> None:
        self._tell.title("The schedule starts the workflow at the next full minute; all of today's rolls are due")
        early = self._deployment.ticks()  # before the groups were there, so not worth telling
        for tick in early:
            self._once(tick.arn)
        self._until("the next full minute", lambda: len(self._tell_ticks()) > len(early))

        def progress() -> bool:
            self._tell_ticks()
            self._tell_replacements(before)
            events = self._deployment.events()
            for event in events:
                self._tell_event(event)
            if bad := [e for e in events if e["status"] in ("UNRECOVERED", "ABANDONED", "GONE_ELSEWHERE")]:
                raise DemoFailed(f"{bad[0]['unit']} ended {bad[0]['status']}: {bad[0]['detail']}")
            return {e["unit"] for e in events if e["status"] == "RECOVERED"} == set(PARTICIPANTS)

        self._until("both groups to lose an instance and recover", progress)

    def _tell_ticks(self) -> list[TickRun]:
        ticks = self._deployment.ticks()
        for tick in ticks:
            if self._once(tick.arn):
                self._tell.say(f"tick: the schedule started {tick.arn.rpartition(':')[2]}", "dim")
            if tick.status not in (RUNNING, "SUCCEEDED"):
                raise DemoFailed(f"execution {tick.arn} {tick.status}: {self._deployment.failure(tick.arn)}")
        return ticks

    def _tell_event(self, event: dict[str, object]) -> None:
        if not self._once(f"{event['event_id']} {event['status']}"):
            return
        unit, instance = event["unit"], event["instance_id"]
        if self._once(f"{event['event_id']} chosen"):
            roll = f"roll {event['rolled']:.4f} < probability {event['probability']:g}"
            self._tell.say(f"{unit}: chosen, {roll}; instance {instance} in {event['zone']}", "kill")
        if event["status"] == "RECOVERED":
            self._tell.say(f"{unit}: recovered, {event['recovery_seconds']} s after the termination", "good")

    def _tell_replacements(self, before: dict[str, list[Member]]) -> None:
        for name in PARTICIPANTS:
            known = {m.instance_id for m in before[name]}
            for member in self._groups.members(name):
                if member.instance_id not in known and self._once(f"{member.instance_id} {member.state}"):
                    words = "boots" if member.state == "Pending" else f"is {member.state}"
                    self._tell.say(f"{name}: the replacement {member.instance_id} {words} at {member.address}")

    def _on_death(self, group: str, instance: str) -> None:
        self._tell.say(f"{group}: {instance} no longer answers; its process is dead", "kill")

    def _show_requests(self, traffic: Traffic) -> None:
        self._tell.title("Requests to the groups during that time")
        for name, tally in traffic.tallies.items():
            self._tell.say(
                f"{name}: {len(tally.by_instance)} instances answered {tally.answered} requests, "
                f"{tally.rerouted} of them after a retry on another instance; {tally.failed} unanswered",
                "bad" if tally.failed else "good",
            )
            if tally.failed or not tally.answered:
                raise DemoFailed(f"{name} left {tally.failed} requests unanswered")
        for event in self._deployment.events():
            unreachable, victim = traffic.tallies[str(event["group"])].unreachable, str(event["instance_id"])
            self._until(f"the process of {victim} to be dead", partial(unreachable.__contains__, victim))

    def _show_event(self) -> None:
        event = self._deployment.events()[0]
        self._tell.title(f"The event, as API Gateway returns it: GET /events/{event['id']}")
        answer = self._deployment.api.get(f"events/{event['id']}")
        if answer.status != 200 or answer.body != event:
            raise DemoFailed(f"GET /events/{event['id']} returned {answer.status}: {answer.body}")
        self._tell.text(json.dumps(answer.body, indent=2))

    def _show_opted_out(self, before: list[Member]) -> None:
        self._tell.title(f"Why Troop skipped {OPTED_OUT}")
        decision = self._deployment.decisions(OPTED_OUT)[0]
        self._tell.say(f"decision of {decision['tick']}: {decision['reason']}: {decision['detail']}", "good")
        if decision["reason"] != "opted-out":
            raise DemoFailed(f"{OPTED_OUT} is {decision['reason']}, not opted-out")
        if {m.instance_id for m in self._groups.members(OPTED_OUT)} != {m.instance_id for m in before}:
            raise DemoFailed(f"instances of {OPTED_OUT} have changed")

    def _second_tick(self, before: dict[str, list[Member]]) -> None:
        self._tell.title("A second tick on the same day terminates nothing")
        recovered = max(datetime.fromisoformat(e["recovered_at"]) for e in self._deployment.events())
        members = {name: {m.instance_id for m in self._groups.members(name)} for name in before}

        def later_tick() -> TickRun | None:
            done = [t for t in self._tell_ticks() if t.started > recovered and t.status != RUNNING]
            return done[0] if done else None

        self._until("the second tick to end", lambda: later_tick() is not None)
        for name in before:
            decision = self._deployment.decisions(name)[0]
            self._tell.say(f"{name}: {decision['reason']}: {decision['detail']}", "good")
            expected = "opted-out" if name == OPTED_OUT else "already-today"
            if decision["reason"] != expected:
                raise DemoFailed(f"the second tick decided {decision['reason']} for {name}, not {expected}")
            if {m.instance_id for m in self._groups.members(name)} != members[name]:
                raise DemoFailed(f"instances of {name} have changed after the second tick")
        if len(self._deployment.events()) != len(PARTICIPANTS):
            raise DemoFailed(f"there are {len(self._deployment.events())} events, not {len(PARTICIPANTS)}")

    def _until(self, event: str, done: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        next_word = time.monotonic() + 10
        while not done():
            self._account.check()
            if time.monotonic() > until:
                raise DemoFailed(f"timed out after {PATIENCE:g} seconds: waiting for {event}")
            if time.monotonic() > next_word:
                self._tell.say(f"waiting for {event}", "dim")
                next_word += 10
            time.sleep(0.4)

    def _once(self, word: str) -> bool:
        new = word not in self._words
        self._words.add(word)
        return new


def seconds_until_room(now: datetime) -> float:
    """Returns how long to wait so that groups start between two ticks, which come at full minutes; mostly 0."""
    since = (now.timestamp() + _START) % 60
    return max(0.0, _START + _DECISION - since)


def tell() -> int:
    """Runs the demonstration from start to cleanup; returns the exit code."""
    narrator = Narrator()
    try:
        narrator.title("Local AWS, and a real cdk deploy of the real app")
        salt = salt_for((*PARTICIPANTS, OPTED_OUT), datetime.now(UTC))
        with LocalAccount("demo", secret=salt, progress=narrator.say) as account:
            Story(account, narrator).run()
            narrator.say("stopping everything", "dim")
    except (DemoFailed, TimeoutError) as failed:
        narrator.say(f"The demo failed: {failed}", "bad")
        return 1
    narrator.say("done: no process is left running", "good")
    return 0
