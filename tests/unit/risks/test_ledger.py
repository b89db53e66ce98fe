"""The record of risks from one reading to the next: first seen, unknown, gone, back again, and confirmed by chaos."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.unit.chaos.build import event, judged
from tests.unit.risks.build import NOW, balanced, leftover, member, unit
from troop.chaos.events import Event, Status
from troop.chaos.hypothesis import Hypothesis
from troop.chaos.replacements import Build, Replacement
from troop.chaos.stages import Stages
from troop.risks.assessment import Assessment, Survey, assess
from troop.risks.ledger import next_risks
from troop.risks.risk import REMEMBERED, Risk
from troop.risks.rule import Severity, Subject
from troop.risks.rules import RULES
from troop.risks.signs import Sign, signs

DAY = timedelta(days=1)
ALONE = member(zones=frozenset({"eu-west-1a"}))


def read(*units: Any, at: datetime = NOW, **others: Any) -> Assessment:
    """The assessment of a survey that lists everything; ``volumes``: None if they could not be listed."""
    volumes = others.get("volumes", ())
    partial = frozenset({Subject.VOLUME}) if volumes is None else frozenset[Subject]()
    return assess(Survey(at, {Subject.UNIT: units, Subject.VOLUME: volumes or ()}, partial))


def after(before: list[Risk], assessment: Assessment, *failed: Event) -> dict[str, Risk]:
    return {one.rule: one for one in next_risks({one.key: one for one in before}, assessment, failed)}


def test_a_risk_keeps_the_reading_that_first_saw_it() -> None:
    first = after([], read(unit(ALONE)))["one-zone"]
    assert (first.first_seen, first.last_seen, first.severity) == (NOW, NOW, Severity.HIGH)
    second = after([first], read(unit(ALONE), at=NOW + DAY))["one-zone"]
    assert second == replace(first, last_seen=NOW + DAY)


def test_a_risk_that_is_gone_stays_on_record_for_a_report() -> None:
    first = after([], read(unit(ALONE)))["one-zone"]
    gone = after([first], read(unit(), at=NOW + DAY))["one-zone"]
    assert (gone.gone_since, gone.last_seen) == (NOW + DAY, NOW)
    assert after([gone], read(unit(), at=NOW + 2 * DAY))["one-zone"] == gone
    assert after([gone], read(unit(), at=NOW + DAY + REMEMBERED)) == {}


def test_a_risk_that_returns_is_a_new_one() -> None:
    gone = replace(after([], read(unit(ALONE)))["one-zone"], gone_since=NOW + DAY, confirmed="2026-11-20#web")
    back = after([gone], read(unit(ALONE), at=NOW + 2 * DAY))["one-zone"]
    assert (back.first_seen, back.gone_since, back.confirmed) == (NOW + 2 * DAY, None, "")


@pytest.mark.parametrize(
    ("rule", "first", "second"),
    [
        (
            "other-zones",
            read(unit(balanced(balancer_zones={"lb": frozenset()}))),
            read(unit(balanced(balancer_zones=None)), at=NOW + DAY),
        ),
        ("unattached-volume", read(volumes=[leftover()]), read(at=NOW + DAY, volumes=None)),
    ],
    ids=["a fact is missing", "a listing is missing"],
)
def test_a_risk_that_cannot_be_read_is_neither_seen_nor_gone(rule: str, first: Assessment, second: Assessment) -> None:
    seen = after([], first)[rule]
    unread = after([seen], second)[rule]
    assert (unread.last_seen, unread.gone_since) == (NOW, None)
    assert unread.unknown
    assert after([unread], replace(first, at=NOW + 2 * DAY))[rule].unknown == ""


def test_a_rule_that_a_later_version_no_longer_has_is_gone() -> None:
    odd = replace(after([], read(unit(ALONE)))["one-zone"], rule="full-moon")
    assert after([odd], read(unit(), at=NOW + DAY))["full-moon"].gone_since == NOW + DAY


CAPACITY = "We currently do not have sufficient m7g.large capacity in the Availability Zone you requested (eu-west-1a)."
LOST: dict[str, Any] = {"status": Status.UNRECOVERED, "at": NOW + DAY}


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        (event(), set()),
        (judged(), {Sign.ALARM}),
        (judged(hypothesis=Hypothesis(recovery_within=100)), {Sign.ALARM, Sign.TOO_SLOW}),
        (event(**LOST), set()),
        (event(**LOST, stages=Stages()), {Sign.NOT_REPLACED}),
        (event(**LOST, stages=Stages(launched=NOW)), {Sign.NOT_HEALTHY}),
        (event(**LOST, launch_failure=CAPACITY, stages=Stages()), {Sign.NO_CAPACITY}),
        (event(**LOST, launch_failure="You have requested more vCPU capacity than your current vCPU limit"), set()),
        (
            judged(build=Build("lt-1:3"), replacement=Replacement("i-2", Build("lt-1:4"))),
            {Sign.ALARM, Sign.OTHER_BUILD},
        ),
        (judged(build=Build("lt-1:3"), replacement=Replacement("i-2", Build("lt-1:3", "m7g.large"))), {Sign.ALARM}),
    ],
)
def test_a_failed_event_shows_its_signs_and_no_other_does(failed: Event, expected: set[Sign]) -> None:
    assert signs(failed) == expected


NO_CAPACITY = event(**LOST, launch_failure=CAPACITY)


@pytest.mark.parametrize(
    ("failed", "rules"),
    [
        (event(**LOST, launch_failure=CAPACITY, stages=Stages()), {"one-zone", "one-spot-type"}),
        (
            event(**LOST, launch_failure="There is no Spot capacity available that matches your request."),
            {"one-zone", "one-spot-type"},
        ),
        *[
            (event(**LOST, launch_failure=text, stages=Stages()), {"missing-image", "deprecated-image"})
            for text in (
                "The image id '[ami-1]' does not exist. Launching EC2 instance failed.",
                "The AMI ID ami-1 does not exist. Launching EC2 instance failed.",
                "AMI 'ami-1' is disabled, and cannot be run. Launching EC2 instance failed.",
                "Not authorized for images: [ami-1]. Launching EC2 instance failed.",
            )
        ],
        (event(**LOST, launch_failure="The key pair web does not exist. Launching EC2 instance failed."), set()),
        (event(**LOST, stages=Stages()), {"suspended-process"}),
        (
            event(**LOST, stages=Stages(launched=NOW)),
            {"no-balancer-check", "short-grace", "long-grace", "suspended-process", "slower-recovery"},
        ),
        (judged(at=NOW + DAY), {"one-instance", "no-room"}),
    ],
)
def test_an_event_confirms_only_the_rules_that_predict_its_reason(failed: Event, rules: set[str]) -> None:
    on_record = [Risk(rule.name, "web", rule.severity, "", {}, NOW, NOW) for rule in RULES]
    later = next_risks({one.key: one for one in on_record}, read(at=NOW + 9 * DAY), [failed])
    assert {one.rule for one in later if one.confirmed} == rules


@pytest.mark.parametrize(
    ("failed", "confirmed"),
    [
        (NO_CAPACITY, NO_CAPACITY.event_id),
        (replace(NO_CAPACITY, unit="api"), ""),
        (replace(NO_CAPACITY, at=NOW - DAY), ""),
        (replace(NO_CAPACITY, launch_failure=""), ""),
        (replace(NO_CAPACITY, status=Status.RECOVERED), ""),
    ],
    ids=["confirms", "another unit", "before the risk was seen", "another reason", "nothing failed"],
)
def test_an_event_confirms_a_risk_that_predicted_its_failure(failed: Event, confirmed: str) -> None:
    seen = after([], read(unit(ALONE)))["one-zone"]
    later = after([seen], read(unit(ALONE), at=NOW + 2 * DAY), failed)["one-zone"]
    assert later.confirmed == confirmed
    assert after([later], read(unit(ALONE), at=NOW + 3 * DAY))["one-zone"].confirmed == confirmed


def test_an_event_confirms_a_risk_that_was_removed_after_it_only() -> None:
    seen = after([], read(unit(ALONE)))["one-zone"]
    removed = read(unit(), at=NOW + 2 * DAY)
    assert after([seen], removed, NO_CAPACITY)["one-zone"].confirmed == NO_CAPACITY.event_id
    late = replace(NO_CAPACITY, at=NOW + 2 * DAY)
    assert after([seen], removed, late)["one-zone"].confirmed == ""
