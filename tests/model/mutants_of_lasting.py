"""Defects of lasting faults: wrong designs, and single steps that are wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from tests.model.lasting import drain
from tests.model.machine import Temper
from tests.model.mutants import Focus, Mutant, Patch, faults, only, tidy
from tests.model.world import World
from troop.chaos import claim_rules, injection_rules
from troop.chaos.aws import claim_transaction, injection_steps, run_command
from troop.chaos.aws.backstops import Backstops
from troop.chaos.aws.groups import instance_gone
from troop.chaos.claim_rules import is_stale
from troop.chaos.events import Event, Status
from troop.chaos.flows import injector, objections, sweep
from troop.chaos.injection import Injection, Way
from troop.chaos.injection_rules import Command, Due, Objection, Seen, Step
from troop.chaos.probe import Reading, parse
from troop.chaos.proof import Presence, prove
from troop.faults.lasting_fault import LastingFault
from troop.shared.aws.transact import transact

Proof = tuple[Presence, str]


def _proof(patch: Patch, changed: Callable[[LastingFault, Injection], Proof]) -> None:
    patch.setattr(injection_rules, "prove", changed)


def _due(patch: Patch, changed: Callable[[Event, Seen, Due], Due]) -> None:
    real = injection_rules.due
    patch.setattr(injector, "due", lambda event, seen: changed(event, seen, real(event, seen)))


def _condition(patch: Patch, begins: str, weak: str) -> None:
    """Weakens the condition of the step whose update begins so."""
    real = injection_steps.InjectionSteps._step

    def step(self: Any, event: Event, update: str, condition: str, values: dict[str, Any]) -> Event:
        if update.startswith(begins):
            condition = weak
            values = {k: v for k, v in values.items() if k in f"{update} {weak}"}
        return real(self, event, update, condition, values)

    patch.setattr(injection_steps.InjectionSteps, "_step", step)


# The eight that a design can have


def the_status_is_trusted(patch: Patch) -> None:
    def proof(fault: LastingFault, injection: Injection) -> Proof:
        return (Presence.GONE, "its command is over") if injection.over_at else prove(fault, injection)

    _proof(patch, proof)


def probes_come_before_the_end(patch: Patch) -> None:
    """A command that runs counts as over."""
    patch.setattr(injection_rules, "FINAL", injection_rules.FINAL | {"InProgress"})


def lost_answers_are_sent_again(patch: Patch) -> None:
    real = run_command.RunCommand.send

    def send(self: Any, *args: Any, **more: Any) -> str:
        try:
            return real(self, *args, **more)
        except run_command.CommandInDoubt:
            return real(self, *args, **more)

    patch.setattr(run_command.RunCommand, "send", send)


def silence_is_good_news(patch: Patch) -> None:
    def proof(fault: LastingFault, injection: Injection) -> Proof:
        silent = injection.after is not None and injection.after.failure
        return (Presence.GONE, "nothing was heard of it") if silent else prove(fault, injection)

    _proof(patch, proof)


def any_answer_counts(patch: Patch) -> None:
    def read(output: str, token: str) -> Reading | None:
        try:
            return parse(json.dumps(json.loads(output) | {"token": token}), token)
        except ValueError:
            return None

    patch.setattr(injector, "parse", read)


def no_backstop(patch: Patch) -> None:
    patch.setattr(Backstops, "arm", lambda self, event_id, at: None)


def nothing_is_terminated(patch: Patch) -> None:
    def spare(event: Event, seen: Seen, step: Due) -> Due:
        return Due(Step.WAIT, wait=injection_rules.AGAIN) if step.step is Step.REPAIR else step

    _due(patch, spare)


def a_silent_agent_ends_it(patch: Patch) -> None:
    def close(event: Event, seen: Seen, step: Due) -> Due:
        injection = event.injection
        silent = injection and not (injection.after and injection.after.reading)
        if step.step is Step.REPAIR and silent:
            return Due(Step.RECORD_PROOF, "its agent is silent", way=Way.GONE)
        return step

    _due(patch, close)


# Probes and proofs


def boots_are_not_compared(patch: Patch) -> None:
    def proof(fault: LastingFault, injection: Injection) -> Proof:
        before, after = injection.before, injection.after
        if before and before.reading and after and after.reading:
            reading = replace(after.reading, boot=before.reading.boot)
            injection = replace(injection, after=replace(after, reading=reading))
        return prove(fault, injection)

    _proof(patch, proof)


def nothing_read_is_nothing_there(patch: Patch) -> None:
    def proof(fault: LastingFault, injection: Injection) -> Proof:
        after = injection.after
        if after and after.reading:
            zero: dict[str, Any] = {t.field: 0 for t in fault.traces if getattr(after.reading, t.field) is None}
            injection = replace(injection, after=replace(after, reading=replace(after.reading, **zero)))
        return prove(fault, injection)

    _proof(patch, proof)


def leftovers_are_good_enough(patch: Patch) -> None:
    """Twice as many traces as one fault leaves are within the slack."""

    def proof(fault: LastingFault, injection: Injection) -> Proof:
        return prove(replace(fault, traces=tuple(replace(t, slack=50) for t in fault.traces)), injection)

    _proof(patch, proof)


def killed_processes_are_over_at_once(patch: Patch) -> None:
    def proof(fault: LastingFault, injection: Injection) -> Proof:
        done = fault.returns and injection.after is not None and injection.after.reading is not None
        return (Presence.GONE, "it was killed") if done else prove(fault, injection)

    _proof(patch, proof)


def cancelled_commands_never_start(patch: Patch) -> None:
    """The probe after the fault does not wait until nothing can be delivered any more."""
    patch.setattr(injection_rules, "settled_at", lambda event: event.injection.over_at)


def proofs_can_be_written_again(patch: Patch) -> None:
    _condition(patch, "SET #injection.#proof", "#status = :running")


def commands_end_twice(patch: Patch) -> None:
    _condition(patch, "SET #injection.#status", "#status = :running")


# Before the fault


def unclean_instances_are_hit(patch: Patch) -> None:
    patch.setattr(injection_rules, "objection", lambda fault, injection: "")


def nobody_has_read_the_instance(patch: Patch) -> None:
    """A probe before the fault that failed is no reason."""

    def go_on(event: Event, seen: Seen, step: Due) -> Due:
        if step.step is Step.ABANDON and step.why.startswith("the probe before"):
            return Due(Step.INJECT) if seen.armed else Due(Step.ARM)
        return step

    _due(patch, go_on)


def halts_are_not_looked_at_before_the_fault(patch: Patch) -> None:
    real = objections.Objections.to_injection

    class Blind(objections.Objections):
        def _switch(self) -> str:
            return ""

    def to_injection(self: objections.Objections, event: Event, now: datetime) -> Objection:
        objection = real(Blind(self.reader), event, now)
        return Objection() if objection.why.startswith("halted") else objection

    patch.setattr(objections.Objections, "to_injection", to_injection)


def policies_are_not_looked_at_before_the_fault(patch: Patch) -> None:
    patch.setattr(objections.Objections, "to_claim", lambda self, event, now: "")


def alarms_are_not_looked_at_before_the_fault(patch: Patch) -> None:
    real = objections.Objections.to_claim

    def to_claim(self: Any, event: Event, now: datetime) -> str:
        why: str = real(self, event, now)
        return "" if "alarm" in why.partition(":")[0] else why

    patch.setattr(objections.Objections, "to_claim", to_claim)
    patch.setattr(objections, "alarm_states", lambda cloudwatch, names: dict.fromkeys(names, "OK"))


def instances_are_hit_twice(patch: Patch) -> None:
    real = claim_transaction.ClaimTransaction._hit

    def hit(self: Any, event: Event) -> dict[str, Any]:
        body = {k: v for k, v in real(self, event)["Update"].items() if k != "ConditionExpression"}
        return {"Update": tidy(body)}

    patch.setattr(claim_transaction.ClaimTransaction, "_hit", hit)


# The request


def attempts_are_not_exclusive(patch: Patch) -> None:
    """Every call that has read the claim may send."""

    def write(client: Any, parts: list[dict[str, Any]], sleep: Any) -> None:
        (part,) = parts
        weak = part["Update"] | {"ConditionExpression": "attribute_exists(event_id)"}
        transact(client, [{"Update": tidy(weak)}], sleep)

    patch.setattr("troop.chaos.aws.injection_steps.transact", write)


def doubt_is_a_refusal(patch: Patch) -> None:
    real = run_command.RunCommand.send

    def send(self: Any, *args: Any, **more: Any) -> str:
        try:
            return real(self, *args, **more)
        except run_command.CommandInDoubt as error:
            raise run_command.CommandRefused(str(error)) from error

    patch.setattr(run_command.RunCommand, "send", send)


def commands_wait_for_an_hour(patch: Patch) -> None:
    patch.setattr(run_command, "DELIVERY", timedelta(hours=1))


def packages_are_installed_unasked(patch: Patch) -> None:
    real = injector._parameters
    patch.setattr(injector, "_parameters", lambda fault, event: real(fault, event) | {"InstallDependencies": "True"})


def any_command_is_adopted(patch: Patch) -> None:
    """The newest one of the instance, whatever its document is."""

    def read(self: run_command.RunCommand, instance_id: str, document: str, command_id: str, comment: str) -> Command:
        request = {"InstanceId": instance_id, "Details": True} | ({"CommandId": command_id} if command_id else {})
        for one in self.reader.list_command_invocations(**request)["CommandInvocations"]:
            return Command(one["CommandId"], one["Status"], run_command._output(one))
        return injection_rules.NO_COMMAND

    patch.setattr(run_command.RunCommand, "read", read)


# The end


def nothing_ends_a_fault_early(patch: Patch) -> None:
    patch.setattr(objections.Objections, "to_lasting", lambda self, event, now: Objection())


def nothing_is_cancelled(patch: Patch) -> None:
    patch.setattr(run_command.RunCommand, "cancel", lambda self, instance_id, command_id: None)


def repairs_are_hasty(patch: Patch) -> None:
    """As soon as the command is over, without the time for a rollback and a probe."""
    real = injection_rules.deadline
    patch.setattr(injection_rules, "deadline", lambda event: real(event) - timedelta(seconds=70))


def repairs_are_late(patch: Patch) -> None:
    real = injection_rules.deadline
    patch.setattr(injection_rules, "deadline", lambda event: real(event) + timedelta(seconds=200))


def deliveries_are_always_late(patch: Patch) -> None:
    """Every fault gets the time of one whose command arrives at the last moment."""

    def latest_end(event: Event) -> datetime:
        assert event.injection
        assert event.injection.ends_by
        return event.injection.ends_by

    patch.setattr(injection_rules, "latest_end", latest_end)


def repairs_ask_nobody(patch: Patch) -> None:
    patch.setattr(objections.Objections, "to_repair", lambda self, event: "")


def protected_instances_are_repaired(patch: Patch) -> None:
    patch.setattr(objections.Objections, "protection", lambda self, event, group, tagged: "")


def the_last_instance_is_repaired(patch: Patch) -> None:
    real = objections.Objections.to_repair

    def to_repair(self: Any, event: Event) -> str:
        why: str = real(self, event)
        return "" if why.startswith("no other healthy") else why

    patch.setattr(objections.Objections, "to_repair", to_repair)


def spared_instances_need_no_reason(patch: Patch) -> None:
    patch.setattr(objections.Objections, "to_repair", lambda self, event: "it may be needed")


def leaving_is_gone(patch: Patch) -> None:
    """An instance that a lifecycle hook holds runs on, with its fault."""

    def gone(self: injector._Call, event: Event) -> bool:
        return instance_gone(self.injector.ec2, self.injector.objections.reader.autoscaling, event.instance_id)

    patch.setattr(injector._Call, "_has_ended", gone)


# After the fault


def recovery_needs_no_proof(patch: Patch) -> None:
    running = property(lambda self: self.status in (Status.TERMINATED, Status.RUNNING))
    patch.setattr(Event, "is_recovering", running)
    patch.setattr(Event, "recovers_from", property(lambda self: self.terminated_at or self.attempted_at))


def sweeps_end_what_runs(patch: Patch) -> None:
    """A claim past its deadline was not carried out, also when its fault was sent."""

    def stale(event: Event, now: datetime) -> bool:
        late = event.deadline is not None and now > event.deadline + claim_rules.GRACE
        return is_stale(event, now) or (event.status is Status.RUNNING and late)

    patch.setattr(sweep, "is_stale", stale)


def executions_go_on_too_early(patch: Patch) -> None:
    """A call answers the workflow's token although something is left to do."""
    real = injector.Injector.wait

    def wait(self: injector.Injector, event_id: str, entered: datetime, token: str) -> injector.Progress:
        progress = real(self, event_id, entered, token)
        self._answer(progress.event, token)
        return progress

    patch.setattr(injector.Injector, "wait", wait)


# Where to look


def tempers(**odds: float) -> Focus:
    """Machines of which something is more probable, and calls that do not fail."""

    def focus(world: World) -> None:
        world.run_command.temper = replace(Temper(), **odds)

    return focus


def _lying(world: World) -> None:
    world.run_command.temper = Temper(dirty=0, broken=0.3, lies=0.6, reboot=0, agent=0.6)


def _draining(world: World) -> None:
    """Groups take their instances out of service, and wait for a hook."""
    world.run_command.temper = Temper(broken=0.5)
    for group in world.fleet.groups.values():
        group.hook = 300.0
    for seconds in range(20, 160, 20):
        world.stage.at(world.stage.now + seconds, partial(drain, world, world.dice))


def _concurrent(world: World) -> None:
    faults(switch=0.9)(world)
    world.delivery = replace(world.delivery, lost=0.0, twice=0.5, late=0.0)


def _doubtful(world: World) -> None:
    faults(call=0.1, kill=0.0)(world)


MUTANTS: Mapping[Mutant, Focus] = {
    the_status_is_trusted: faults(),
    probes_come_before_the_end: faults(),
    lost_answers_are_sent_again: _doubtful,
    silence_is_good_news: tempers(agent=0.8, broken=0.3),
    any_answer_counts: _lying,
    no_backstop: faults(),
    nothing_is_terminated: faults(),
    a_silent_agent_ends_it: tempers(agent=0.8, broken=0.3),
    boots_are_not_compared: tempers(reboot=0.8),
    nothing_read_is_nothing_there: _lying,
    leftovers_are_good_enough: faults(),
    killed_processes_are_over_at_once: tempers(returns=0.3),
    cancelled_commands_never_start: _lying,
    proofs_can_be_written_again: _concurrent,
    commands_end_twice: _concurrent,
    unclean_instances_are_hit: tempers(dirty=0.5),
    nobody_has_read_the_instance: _lying,
    halts_are_not_looked_at_before_the_fault: faults(),
    policies_are_not_looked_at_before_the_fault: faults(),
    alarms_are_not_looked_at_before_the_fault: only("alarm", "silence"),
    instances_are_hit_twice: faults(),
    attempts_are_not_exclusive: _concurrent,
    doubt_is_a_refusal: _doubtful,
    commands_wait_for_an_hour: faults(),
    packages_are_installed_unasked: faults(),
    any_command_is_adopted: _doubtful,
    nothing_ends_a_fault_early: faults(),
    nothing_is_cancelled: faults(),
    repairs_are_hasty: tempers(broken=0.5),
    repairs_are_late: tempers(broken=0.5),
    deliveries_are_always_late: tempers(broken=0.5),
    repairs_ask_nobody: tempers(broken=0.5),
    protected_instances_are_repaired: tempers(broken=0.5),
    the_last_instance_is_repaired: tempers(broken=0.5),
    spared_instances_need_no_reason: tempers(broken=0.5),
    leaving_is_gone: _draining,
    recovery_needs_no_proof: faults(),
    sweeps_end_what_runs: faults(),
    executions_go_on_too_early: faults(),
}
"""Each defect, and where to look for it."""
