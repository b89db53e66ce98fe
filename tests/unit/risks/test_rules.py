"""Each rule with a case that is a risk, one that is none, and one of which nobody knows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.risks.build import FRESH, NOW, OLD, balanced, leftover, machine, member, unit
from troop.chaos.groups import Instance
from troop.chaos.replacements import Build
from troop.risks.facts import History, Image, SlowRecovery
from troop.risks.rule import Hit, Unknown
from troop.risks.rules import BY_NAME, RULES

MALFORMED = {"probability": "often"}
SPOT = {"is_spot": True, "types": frozenset({"m7g.large"})}
PROTECTED = tuple(Instance(f"i-{n}", scale_in_protected=True) for n in "abc")
SLOW = SlowRecovery("2026-11-19#web", 400.0, 120.0)
GONE, DEPRECATED = Image("ami-1", exists=False), Image("ami-1", deprecated_at=OLD)
HEAVY = Instance("i-1", weight=4)
MIXED = tuple(Instance(f"i-{kind}", build=Build("lt-1:7", kind)) for kind in ("m7g.large", "c7g.large"))
ELSEWHERE = {"web-lb": frozenset({"eu-west-1a"})}

CASES: list[tuple[str, Any, Any, Any]] = [
    ("one-zone", unit(member(zones=frozenset({"a"}))), unit(), None),
    ("no-balancer-check", unit(balanced(health_checks=frozenset({"EC2"}))), unit(balanced()), None),
    ("short-grace", unit(balanced(grace=30)), unit(balanced()), unit(balanced(grace=30), history=History())),
    ("suspended-process", unit(member(suspended_processes=frozenset({"Launch"}))), unit(), None),
    ("one-spot-type", unit(member(**SPOT)), unit(), unit(member(**SPOT | {"is_spot": None}))),
    ("other-zones", unit(balanced(balancer_zones=ELSEWHERE)), unit(balanced()), unit(balanced(balancer_zones=None))),
    ("missing-image", unit(member(image=GONE)), unit(), unit(member(image=None))),
    ("one-instance", unit(member(desired=1)), unit(), None),
    ("long-grace", unit(balanced(grace=3600)), unit(balanced(grace=600)), unit(balanced(grace=3600), history=None)),
    ("latest-template", unit(member(templates=(("lt-1", "7"), ("lt-1", "$Latest")))), unit(), None),
    ("no-room", unit(member(most=3)), unit(), None),
    ("deprecated-image", unit(member(image=DEPRECATED)), unit(), unit(member(image=None))),
    ("slower-recovery", unit(history=History(slow=SLOW)), unit(), unit(history=History(partial=True))),
    ("no-alarm", unit(item={}), unit(), unit(item=MALFORMED)),
    ("endless-opt-out", unit(item={"opt_out": True}), unit(), unit(item=MALFORMED)),
    ("never-hit", unit(idle_days=90), unit(idle_days=89), unit(item=MALFORMED)),
    ("outside-groups", machine(), machine(group="web"), machine(launched=NOW - timedelta(hours=23))),
    ("scale-in-protected", unit(member(instances=PROTECTED)), unit(), None),
    ("unattached-volume", leftover(), leftover(used=True), leftover(used=None)),
    ("unused-address", leftover(created=None), leftover(used=True), leftover(used=None)),
    ("old-snapshot", leftover(), leftover(created=FRESH), leftover(used=None)),
    ("unused-template", leftover(), leftover(used=True), leftover(used=None)),
]


def test_every_rule_has_its_cases_and_a_name_of_its_own() -> None:
    assert [name for name, *_ in CASES] == [rule.name for rule in RULES] == list(BY_NAME)
    assert len(RULES) >= 15


@pytest.mark.parametrize(("name", "risk", "none", "unknown"), CASES, ids=[case[0] for case in CASES])
def test_a_rule_tells_a_risk_from_none_and_from_an_unknown(name: str, risk: Any, none: Any, unknown: Any) -> None:
    check = BY_NAME[name].check
    hit = check(risk)
    assert isinstance(hit, Hit)
    assert hit.evidence
    assert check(none) is None
    if unknown is not None:
        assert isinstance(check(unknown), Unknown)


@pytest.mark.parametrize(
    ("name", "harmless"),
    [
        ("one-zone", unit(member(zones=frozenset({"a"})), member(name="b", zones=frozenset({"b"})))),
        ("one-instance", unit(member(desired=0))),
        ("one-instance", unit(member(desired=4, instances=(HEAVY, replace(HEAVY, instance_id="i-2"))))),
        ("one-instance", unit(member(desired=5, instances=(HEAVY,)))),  # another one is on its way
        ("short-grace", unit(balanced(grace=61))),  # a check can see the boot half a minute late
        ("short-grace", unit(member(grace=0), history=None)),  # no load balancer decides
        ("long-grace", unit(balanced(grace=650), history=History(100.0))),
        ("one-spot-type", unit(member(**SPOT | {"types": None}))),  # attributes choose among many
        ("one-spot-type", unit(member(**SPOT | {"types": frozenset(), "instances": MIXED}))),
        ("other-zones", unit(member(balancer_zones=None))),
        ("deprecated-image", unit(member(image=Image("ami-1", deprecated_at=NOW.replace(year=2027))))),
        ("endless-opt-out", unit(item={"opt_out": True, "until": "2026-12-31"})),
        ("never-hit", unit(idle_days=None, open_days=89)),
        ("never-hit", unit(item={"opt_out": True}, idle_days=None)),
        ("suspended-process", unit(member(suspended_processes=frozenset({"AZRebalance"})))),
        ("suspended-process", unit(member(suspended_processes=frozenset({"AddToLoadBalancer"})))),  # behind none
        ("outside-groups", machine(keeper="eks.amazonaws.com")),
        ("scale-in-protected", unit(member(instances=()))),
        ("unused-template", leftover(created=FRESH)),
    ],
)
def test_something_near_a_risk_is_none(name: str, harmless: Any) -> None:
    assert BY_NAME[name].check(harmless) is None


@pytest.mark.parametrize(
    ("name", "risk", "evidence"),
    [
        ("one-instance", unit(member(desired=4, instances=(HEAVY,))), {"desired": 4}),
        ("never-hit", unit(idle_days=None, open_days=90), {"hits": 0, "days": 90}),
        ("suspended-process", unit(balanced(suspended_processes=frozenset({"AddToLoadBalancer"}))),
         {"processes": ["AddToLoadBalancer"], "groups": ["web"]}),
        ("missing-image", unit(member(images=(Image("ami-2"), GONE, None))), {"images": ["ami-1"], "groups": ["web"]}),
    ],
)  # fmt: skip
def test_a_risk_in_a_less_usual_form_is_one(name: str, risk: Any, evidence: dict[str, Any]) -> None:
    assert BY_NAME[name].check(risk) == Hit(evidence)


@pytest.mark.parametrize("name", ["short-grace", "long-grace"])
def test_a_boot_is_not_known_while_earlier_events_are_missing(name: str) -> None:
    for grace in (30, 3600):
        partial = unit(balanced(grace=grace), history=History(90.0, partial=True))
        assert isinstance(BY_NAME[name].check(partial), Unknown)


def test_a_risk_of_one_group_outweighs_another_group_that_is_unknown() -> None:
    both = unit(member(image=None), member(name="blue", image=GONE))
    assert BY_NAME["missing-image"].check(both) == Hit({"images": ["ami-1"], "groups": ["blue"]})


def test_evidence_has_the_values_that_a_person_compares() -> None:
    hit = BY_NAME["short-grace"].check(unit(balanced(grace=30)))
    assert hit == Hit({"grace s": 30, "boot s": 90.0, "groups": ["web"]})
    evidence = {"is": "100 GiB gp3", "created": "2025-10-16"}
    assert BY_NAME["unattached-volume"].check(leftover()) == Hit(evidence, leftover().monthly)
    snapshot = BY_NAME["old-snapshot"].check(leftover(at_most=True))
    assert snapshot == Hit({**evidence, "price": "at most"}, leftover().monthly)
