"""Facts of units, instances and leftovers with harmless values, for the tests of risks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.unit.chaos.build import settings
from troop.chaos.groups import Group, Instance
from troop.chaos.outlook import policy_at
from troop.risks.facts import History, Image, Leftover, Machine, Member, Setup, Unit
from troop.risks.price import Price

NOW = datetime(2026, 11, 20, 4, 30, tzinfo=UTC)
FRESH, OLD = NOW - timedelta(days=10), NOW - timedelta(days=400)
TARGETS = "arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/web/1"

_SETUP = {"zones", "least", "most", "health_checks", "grace", "templates", "types", "spot", "created"}
_GROUP = {"name", "desired", "instances", "tags", "suspended_processes", "target_groups", "lattice_groups"}


def member(**values: Any) -> Member:
    """A group of three instances in two zones that is behind no load balancer; ``is_spot``: of the member."""
    its: dict[str, Any] = {"name": "web", "desired": 3, "instances": tuple(Instance(f"i-{n}") for n in "abc")}
    group = Group(**(its | {key: value for key, value in values.items() if key in _GROUP}))
    setup = Setup(OLD, frozenset({"eu-west-1a", "eu-west-1b"}), 1, 6, frozenset({"EC2"}), 120, (("lt-1", "7"),))
    setup = replace(setup, **{key: value for key, value in values.items() if key in _SETUP})
    images = (values.get("image", Image("ami-1")),)
    beside: dict[str, Any] = {"images": images, "balancer_zones": {}, "spot": values.get("is_spot", False)}
    beside |= {key: value for key, value in values.items() if key in ("images", "balancer_zones")}
    return Member(group, setup, **beside)


def balanced(**values: Any) -> Member:
    """A group behind a load balancer in both its zones that decides about the health of its instances."""
    zones = {"web-lb": frozenset({"eu-west-1a", "eu-west-1b"})}
    checks = frozenset({"EC2", "ELB"})
    return member(**{"target_groups": (TARGETS,), "health_checks": checks, "balancer_zones": zones} | values)


ALARM = {"stop_alarms": "web-5xx"}


def unit(*members: Member, item: dict[str, Any] = ALARM, **values: Any) -> Unit:
    """A unit with an alarm that was hit three days ago."""
    members = members or (member(),)
    policy = policy_at([one.group for one in members], item, settings(), NOW)
    its: dict[str, Any] = {
        "name": "web",
        "now": NOW,
        "policy": policy,
        "members": members,
        "idle_days": 3,
        "open_days": 400,
        "history": History(90.0),
    }
    return Unit(**its | values)


def machine(**values: Any) -> Machine:
    its: dict[str, Any] = {"name": "i-9", "owner": "shop", "now": NOW, "launched": OLD, "kind": "m7g.large"}
    return Machine(**its | values)


def leftover(**values: Any) -> Leftover:
    price = Price(Decimal("8.80"), "USD")
    its: dict[str, Any] = {
        "name": "vol-1",
        "owner": "shop",
        "now": NOW,
        "used": False,
        "kind": "100 GiB gp3",
        "created": OLD,
    }
    return Leftover(**its | {"monthly": price} | values)
