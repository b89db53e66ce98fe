"""Describes the course of one event: its stages, its verdict and what led to it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from troop.chaos.events import OPEN, Status
from troop.chaos.injection import Way
from troop.chaos.stages import source_name
from troop.chaos.verdict import VerdictValue
from troop.shared import moments
from troop.shared.formatting import duration, sentence

_OPEN = frozenset(str(status) for status in OPEN)

_STAGES = {
    "noticed": "Auto Scaling noticed the loss",
    "launched": "Auto Scaling launched a replacement",
    "running": "the replacement was running",
    "in_service": "the replacement was in service",
}


BEFORE, STILL = "before", "still"
"""What a step says in place of a time after the hit."""


@dataclass(frozen=True)
class Step:
    """A step of an event.

    Attributes:
        name: unique in the event, such as ``noticed``, or ``healthy in`` and a traffic source.
        words: what happened.
        at: when, as the API gives it; None if not known.
        after: the time from the hit in words; or why there is none.
    """

    name: str
    words: str
    at: str | None
    after: str


def fault(event: Mapping[str, Any]) -> str:
    """Returns the fault of an event with all its parameters, as people write it."""
    return str(event.get("fault") or event["method"])  # earlier versions have only the method


def hit_at(event: Mapping[str, Any]) -> str | None:
    """Returns when the fault hit: the request to terminate, or to inject; None before, and if nothing was sent."""
    return event.get("hit_at") or event.get("terminated_at")


def recovers_from(event: Mapping[str, Any]) -> str | None:
    """Returns the moment from which the recovery counts; None before."""
    return event.get("recovers_from") or event.get("terminated_at")


def victim_stays(event: Mapping[str, Any]) -> bool:
    """Checks whether a lasting fault left its instance in service: a probe has proven that it is over."""
    return ((event.get("injection") or {}).get("proof") or {}).get("by") == Way.PROBE


def steps(event: Mapping[str, Any]) -> list[Step]:
    """Returns the steps in their order, those without a known moment too. An event in which nothing hit has none,
    except for the probe before a lasting fault.

    Args:
        event: as GET /events/{id} returns it; one of an earlier version lacks the stages.
    """
    began = hit_at(event)
    injection = event.get("injection")
    if not began and not (injection and injection["before"]):
        return []
    if injection:
        taken = list(_fault_steps(event, injection, began))
    else:
        taken = [_step("terminated", f"{event['instance_id']} was terminated", began, began)]
    if began and not victim_stays(event) and (not injection or recovers_from(event)):
        taken += _stages(event, began)
    if recovered := event.get("recovered_at"):
        took = recovery(event)
        after = f"{_after(began, recovered)} (recovery {took})" if injection and began else took
        words = "the group had recovered"
        if began and victim_stays(event):
            after, words = _after(began, recovered), f"the group {recovery_in_words(event)}"
        taken.append(Step("recovered", words, recovered, after))
    elif event["status"] == Status.UNRECOVERED:
        taken.append(Step("unrecovered", "the group did not recover in time", None, ""))
    if verdict := event.get("verdict"):
        taken.append(_step("verdict", f"verdict: {verdict['value']}", verdict["at"], began))
    if abort := event.get("abort"):
        words = f"alarm {abort['alarm']} went off: no further chaos for the unit"
        place = 1 + max((n for n, one in enumerate(taken) if one.at and one.at <= abort["at"]), default=0)
        taken.insert(place, _step("abort", words, abort["at"], began))
    return taken


def _step(name: str, words: str, at: str | None, began: str | None, without: str = "") -> Step:
    """Returns a step with the time from the hit; before it ``before``, and without a moment what is said then."""
    if not at:
        return Step(name, words, at, without)
    return Step(name, words, at, BEFORE if not began or at < began else _after(began, at))


def _fault_steps(event: Mapping[str, Any], injection: Mapping[str, Any], began: str | None) -> Iterator[Step]:
    """Yields the steps of a lasting fault up to its proof, and to the termination that replaces one."""
    is_open = event["status"] in _OPEN
    if before := injection["before"]:
        words = before["failure"] or ("no answer" if before["reading"] is None else "the instance answered")
        at = before["answered_at"] or before["sent_at"]
        yield Step("before", f"the probe: {words}", at, BEFORE)
    if not began:
        return
    yield _step("injected", f"{fault(event)} was injected into {event['instance_id']}", began, began)
    if request := injection["end_request"]:
        yield _step("end", f"asked to end: {request['why']}", request["at"], began)
    status = injection["command_status"]
    words = f"the command was over ({status}, which proves nothing)" if status else "the command was over"
    yield _step("over", words, injection["over_at"], began, _expected(injection, is_open))
    proof = injection["proof"]
    if (after := injection["after"]) and not (proof and proof["by"] == Way.PROBE):
        if words := injection["finding"] if after["reading"] else after["failure"]:
            at = after["answered_at"] or after["sent_at"]
            yield _step("after", f"last probe: {injection['presence']}: {words}", at, began)
        else:
            yield Step("asked", "answer of the last probe", None, "not yet" if is_open else "none")
    if injection["unproven"] and not injection["proof"]:
        yield Step("unproven", f"the fault is not proven to be over, act now: {injection['unproven']}", None, STILL)
    if terminated := event.get("terminated_at"):
        yield _step("replaced", f"{event['instance_id']} was terminated: the end was not proven", terminated, began)
    words = f"proven to be over: {proof['why']}" if proof else "proof that the fault is over"
    yield _step("proof", words, proof["at"] if proof else None, began, "not yet" if is_open else "none")


def _expected(injection: Mapping[str, Any], is_open: bool) -> str:
    """Returns what is said of a command that is not over."""
    if not is_open:
        return "not known"
    return f"by {injection['ends_by']}" if injection["ends_by"] else "not yet"


def _stages(event: Mapping[str, Any], began: str) -> Iterator[Step]:
    is_open, stages = event["status"] in _OPEN, event.get("stages")
    if not stages:
        yield Step("stages", "stages of the recovery", None, "not yet" if is_open else "not recorded")
        return
    reached = [(name, words, stages[name]) for name, words in _STAGES.items()]
    reached += [
        (f"healthy in {one['source']}", f"the replacement was healthy in {source_name(one['source'])}", one["at"])
        for one in stages["healthy"]
    ]
    for name, words, at in reached:
        yield Step(name, words, at, _after(began, at) if at else "not yet" if is_open else "not known")


def _after(began: str, at: str) -> str:
    """Returns the time between two moments. Clocks differ, so that it can be negative; then it is 0."""
    return duration(max(0.0, (moments.parse(at) - moments.parse(began)).total_seconds()))


def recovery(event: Mapping[str, Any]) -> str:
    """Returns how long the recovery took, within its bounds: ``3 min 7 s to 3 min 10 s``; "" before it."""
    least, most = event.get("recovery_at_least"), event.get("recovery_seconds")
    if most is None:
        return ""
    bounds = dict.fromkeys(duration(seconds) for seconds in (least, most) if seconds)
    return " to ".join(bounds) or duration(most)


def recovery_in_words(event: Mapping[str, Any]) -> str:
    """Returns how the group recovered, to follow its name: ``recovered in 3 min 10 s``; "" before it."""
    most = event.get("recovery_seconds")
    if most is None:
        return ""
    return str(event.get("recovery") or f"recovered in {duration(most)}")  # earlier versions give only the seconds


def recovered_after(event: Mapping[str, Any]) -> str | None:
    """Returns the recovery time for a table; None before the recovery.

    A group that no check found short after its lasting fault was over ``was whole``: it had nothing to recover from.
    """
    seconds = event.get("recovery_seconds")
    if seconds is None:
        return None
    return "was whole" if victim_stays(event) and not event.get("recovery_at_least") else duration(seconds)


def ended_early(event: Mapping[str, Any]) -> str:
    """Returns why a lasting fault ended before its time; "" if it did not. A command that has succeeded has run to its
    end, whatever was asked.
    """
    injection = event.get("injection") or {}
    request = injection.get("end_request")
    return str(request["why"]) if request and injection["command_status"] != "Success" else ""


def hypothesis(event: Mapping[str, Any]) -> str:
    """Returns what the unit's policy expected of the hit."""
    expected = event.get("hypothesis")
    if expected is None:
        return "not recorded: an earlier version claimed it"
    alarms, limit = expected["success_alarms"], expected["recovery_within"]
    recovers = "recovers in time" if limit is None else f"recovers within {duration(limit)}"
    stay = f"{sentence(alarms)} {'stays' if len(alarms) == 1 else 'stay'} OK" if alarms else "it has no success alarms"
    return f"the group {recovers}; {stay}"


def verdict(event: Mapping[str, Any]) -> str:
    """Returns the value of the verdict, or ``awaited``; "" without one, as for an event of an earlier version."""
    if one := event.get("verdict"):
        return str(one["value"])
    return "awaited" if awaits_verdict(event) else ""


def awaits_verdict(event: Mapping[str, Any]) -> bool:
    """Checks whether the group has recovered, and its alarms still have time to go off."""
    return event["status"] == Status.RECOVERED and bool(event.get("settles_at")) and not event.get("verdict")


def verdict_detail(event: Mapping[str, Any]) -> str:
    """Returns why a hypothesis did not hold, or is not known to; "" if it held, and without a verdict."""
    one = event.get("verdict")
    return f"{one['value']}: {one['why']}" if one and one["value"] != VerdictValue.HELD else ""


def alarm_states(event: Mapping[str, Any]) -> list[tuple[str, str | None, str]]:
    """Returns the name of each success alarm with its states and their moments, as the verdict has them."""
    rows: list[tuple[str, str | None, str]] = []
    for alarm in (event.get("verdict") or {}).get("alarms", ()):
        rows += [(alarm["name"], one["at"], one["state"]) for one in alarm["states"]]
        if alarm["doubt"] or not alarm["states"]:
            rows.append((alarm["name"], None, alarm["doubt"] or "its states are not known"))
    return rows
