"""Runs the demonstration: two groups take part, one is opted out, and the deployed schedule starts the first tick.

Every printed statement is checked. A benchmark runs meanwhile, whose fleet is removed at the end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

from cli.chaos.course import steps
from local.demo.benchmark import BenchmarkStory
from local.demo.deployment_view import RUNNING, DeploymentView, TickRun
from local.demo.failure import DemoFailed
from local.demo.groups import Groups, Member
from local.demo.narrator import Narrator
from local.demo.traffic import Traffic
from local.launcher import LocalAccount
from local.project import ROOT, tool_environment
from local.settings import open_settings, salt_for

PARTICIPANTS = ("demo-web", "demo-search")
OPTED_OUT = "demo-ledger"
SIZE = 3
RECOVERY_WITHIN = 300
"""Seconds: the hypothesis of the participants. The demo's instances boot in a few, on a slow machine in a minute."""
PATIENCE = 900
"""Seconds to wait for a group, a tick or a recovery on a slow machine; usually it takes less than two minutes."""


class Story:
    """One demonstration, in a running account."""

    def __init__(self, account: LocalAccount, narrator: Narrator) -> None:
        self._account, self._tell = account, narrator
        self._groups = Groups(account.client("autoscaling"), account.client("ec2"))
        self._words: set[str] = set()

    def run(self) -> None:
        """Runs the demonstration. Raises DemoFailed or TimeoutError if an expected event does not happen."""
        self._tell.title("Three Auto Scaling groups; every instance is a separate process")
        for name in PARTICIPANTS:
            tag = {"Key": "troop:recovery_within", "Value": str(RECOVERY_WITHIN), "PropagateAtLaunch": False}
            self._groups.create(name, SIZE, Tags=[tag])
        before = {name: self._await_group(name) for name in PARTICIPANTS}
        with Traffic(self._groups, [*PARTICIPANTS, OPTED_OUT], self._on_death) as traffic:
            self._tell.title("A real cdk deploy of the real app")
            outputs = self._account.deploy(open_settings(datetime.now(UTC)))
            self._deployment = DeploymentView(self._account, outputs)
            benchmark, aside = self._start_benchmark(outputs)
            self._deployment.opt_out(OPTED_OUT, "month-end closing", "accounting")
            self._tell.say(f"{OPTED_OUT} is opted out by its item in the table GroupTags")
            self._groups.create(OPTED_OUT, SIZE)  # after its item: a tick may come at any moment
            before[OPTED_OUT] = self._await_group(OPTED_OUT)
            self._await_recoveries(before)
            self._show_requests(traffic)
            self._show_event()
            self._deliver_again(before)
        self._tell.say("meanwhile, beside all of the above, the benchmark ran:", "dim")
        aside.release()
        benchmark.result()
        self._show_page()
        self._tell.title("Next steps")
        self._tell.text(
            "make local     the same account, until you press Ctrl-C\n"
            "make test      all tests\n"
            "README.md      how to deploy into your AWS account; it starts leashed",
            style="plain",
        )

    def _await_group(self, name: str) -> list[Member]:
        members = self._groups.await_in_service(name, SIZE, PATIENCE)
        self._tell.say(f"{name}: " + ", ".join(f"{m.instance_id} at {m.address}" for m in members))
        return members

    def _start_benchmark(self, outputs: dict[str, str]) -> tuple[Future[None], Narrator]:
        """Starts the benchmark beside the ticks. Returns its end, and the narrator that keeps what it says."""
        self._tell.say("a benchmark starts, too; its lines follow below, with their times", "dim")
        aside, pool = self._tell.aside(), ThreadPoolExecutor(1)
        benchmark = pool.submit(BenchmarkStory(self._account, outputs, aside).run)
        pool.shutdown(wait=False)
        return benchmark, aside

    def _await_recoveries(self, before: dict[str, list[Member]]) -> None:
        self._tell.title("The schedule starts the workflow at the next full minute; all of today's rolls are due")
        self._until("the next full minute", lambda: bool(self._tell_ticks()))

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

    def _tell_event(self, event: dict[str, Any]) -> None:
        if not self._once(f"{event['event_id']} {event['status']}"):
            return
        unit, instance = event["unit"], event["instance_id"]
        if self._once(f"{event['event_id']} chosen"):
            roll = f"roll {event['rolled']:.4f} < probability {event['probability']:g}"
            self._tell.say(f"{unit}: chosen, {roll}; instance {instance} in {event['zone']}", "kill")
        if event["status"] == "RECOVERED":
            self._tell_verdict(event)

    def _tell_verdict(self, event: dict[str, Any]) -> None:
        unit, verdict = event["unit"], event["verdict"]
        known = [step for step in steps(event) if step.name in event["stages"]]
        stages = [f"{step.name.replace('_', ' ')} {step.after}" for step in known]
        self._tell.say(f"{unit}: after the termination: {', '.join(stages)}", "dim")
        self._tell.say(f"{unit}: recovered, {event['recovery_seconds']} s after the termination", "good")
        self._tell.say(f"{unit}: {verdict['value']}: {verdict['why']}", "good")
        if verdict["value"] != "HELD":
            raise DemoFailed(f"the verdict on {unit} is {verdict['value']}: {verdict['why']}")
        if not all(event["stages"][name] for name in ("noticed", "launched", "in_service")):
            raise DemoFailed(f"stages of {unit} are not known: {event['stages']}")

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
                f"{name}: {tally.failed} of {tally.answered + tally.failed} requests unanswered; "
                f"{tally.rerouted} needed a retry on another instance",
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

    def _deliver_again(self, before: dict[str, list[Member]]) -> None:
        self._tell.title("EventBridge Scheduler delivers at least once: the same tick again terminates nothing")
        members = {name: {m.instance_id for m in self._groups.members(name)} for name in before}
        again = self._deployment.deliver_again(self._tell_ticks()[0].arn)
        self._once(again)
        self._tell.say(f"tick: started again as {again.rpartition(':')[2]}", "dim")
        self._until("this tick to end", lambda: self._has_ended(again))
        for name in before:
            decision = self._deployment.decisions(name)[0]
            self._tell.say(f"{name}: {decision['reason']}: {decision['detail']}", "good")
            expected = "opted-out" if name == OPTED_OUT else "already-today"
            if decision["reason"] != expected:
                raise DemoFailed(f"the second tick decided {decision['reason']} for {name}, not {expected}")
            if {m.instance_id for m in self._groups.members(name)} != members[name]:
                raise DemoFailed(f"instances of {name} have changed after the second tick")
        if members[OPTED_OUT] != {m.instance_id for m in before[OPTED_OUT]}:
            raise DemoFailed(f"instances of {OPTED_OUT} have changed")
        if len(self._deployment.events()) != len(PARTICIPANTS):
            raise DemoFailed(f"there are {len(self._deployment.events())} events, not {len(PARTICIPANTS)}")

    def _has_ended(self, arn: str) -> bool:
        return any(tick.arn == arn and tick.status != RUNNING for tick in self._tell_ticks())

    def _show_page(self) -> None:
        """Serves `troop ui`: for a person at a terminal, until Enter."""
        self._tell.title("The page of what just happened")
        command = [str(ROOT / "scripts" / "troop"), "ui", "--no-open"]
        environment = {**tool_environment(), **self._account.exports}
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        ) as ui:
            try:
                assert ui.stdout is not None
                lines = [ui.stdout.readline().strip() for _ in range(2)]
                if not lines[1].startswith("http://127."):
                    raise DemoFailed(f"troop ui printed no link: {lines}")
                self._tell.say(lines[1], "good")
                if sys.stdin.isatty():
                    self._tell.say("open it in a browser of this machine; press Enter to stop everything")
                    sys.stdin.readline()
                else:
                    self._tell.say("at a terminal, it stays until Enter; now it ends with the account", "dim")
            finally:
                ui.terminate()

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


def tell() -> int:
    """Runs the demonstration from start to cleanup; returns the exit code."""
    narrator = Narrator()
    try:
        narrator.title("Local AWS")
        salt = salt_for((*PARTICIPANTS, OPTED_OUT), datetime.now(UTC))
        with LocalAccount("demo", secret=salt, progress=narrator.say) as account:
            Story(account, narrator).run()
            narrator.say("stopping everything", "dim")
    except (DemoFailed, TimeoutError) as failed:
        narrator.say(f"The demo failed: {failed}", "bad")
        return 1
    narrator.say("done: no process is left running", "good")
    return 0
