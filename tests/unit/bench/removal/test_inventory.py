"""What proves that a resource is a run's own; and what must stay because of ``troop:protected``."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.definition import names
from troop.bench.records.record import Kind
from troop.bench.removal.inventory import (
    MOST_LEFT,
    PROTECTED,
    Inventory,
    Proved,
    Recorded,
    Site,
    doubt,
    left_behind,
    take_inventory,
)
from troop.bench.removal.teardown import Evidence, Seen, removable

RUN, OTHER, CELL = "20261120-120000-00000001", "20261120-120000-00000002", "c001"
PROFILE = "arn:aws:iam::123456789012:instance-profile/nodes"
SITE = Site("vpc-1", PROFILE)
FLEET, BACKUP = names.fleet_name(RUN, CELL, "drivers"), names.backup_name(RUN, CELL, "drivers")
NODE = Evidence(profile=PROFILE, template="lt-1")


def seen(kind: Kind, ident: str, evidence: Evidence | None = None, name: str = "", **more: object) -> Seen:
    base = Seen(RUN, CELL, kind, ident, name or ident, role="drivers", evidence=evidence or Evidence())
    return replace(base, **more)  # type: ignore[arg-type]


SECURITY = seen(Kind.SECURITY_GROUP, "sg-1", Evidence(vpc="vpc-1"), names.security_group_name(RUN, CELL))
TEMPLATE = seen(Kind.LAUNCH_TEMPLATE, "lt-1", name=FLEET)
ENDPOINT = seen(
    Kind.ENDPOINT,
    "vpce-1",
    Evidence(vpc="vpc-1", security_groups=frozenset({"sg-1"})),
    names.security_group_name(RUN, CELL),
    role=None,
)
QUEUE = seen(Kind.QUEUE, "https://1", name=names.queue_name(RUN, CELL), role=None)
DEAD = seen(Kind.QUEUE, "https://2", name=names.dead_queue_name(RUN, CELL), role=None)
PLACEMENT = seen(Kind.PLACEMENT_GROUP, FLEET)
GROUP = seen(Kind.AUTO_SCALING_GROUP, FLEET, Evidence(members=frozenset({"i-1"})))
INSTANCE = seen(Kind.INSTANCE, "i-1", replace(NODE, volumes=frozenset({"vol-1"}), security_groups=frozenset({"sg-1"})))
VOLUME = seen(Kind.VOLUME, "vol-1", Evidence(instances=frozenset({"i-1"})), held=True)
RUNS_OWN = (SECURITY, ENDPOINT, QUEUE, DEAD, PLACEMENT, TEMPLATE, GROUP, INSTANCE, VOLUME)

ON_RECORD: Recorded = frozenset({(Kind.INSTANCE, "i-9"), (Kind.VOLUME, "vol-9")})
NOTHING_ON_RECORD: Recorded = frozenset()
KNOWN = Proved(frozenset({"lt-1"}), frozenset({"vol-1"}), frozenset({"sg-1"}))


@pytest.mark.parametrize(
    ("one", "recorded", "words"),
    [
        *((one, NOTHING_ON_RECORD, "") for one in RUNS_OWN),
        *((one, None, "run is not on record") for one in RUNS_OWN),
        *((replace(one, run="x"), ON_RECORD, "does not name a run") for one in RUNS_OWN),
        *((replace(one, run=f"{RUN}-"), ON_RECORD, "does not name a run") for one in RUNS_OWN),
        *((replace(one, cell=""), ON_RECORD, "does not name a cell") for one in RUNS_OWN),
        *((replace(one, cell="c001/../x"), ON_RECORD, "does not name a cell") for one in RUNS_OWN),
        # names
        *((replace(one, name="payments"), ON_RECORD, "its name") for one in (SECURITY, TEMPLATE, GROUP)),
        *((replace(one, cell="c002"), ON_RECORD, "its name") for one in (SECURITY, TEMPLATE, GROUP)),
        *((replace(one, run=OTHER), ON_RECORD, "its name") for one in (SECURITY, TEMPLATE, GROUP)),
        *((replace(one, role="other"), ON_RECORD, "its name") for one in (PLACEMENT, TEMPLATE, GROUP)),
        *((replace(one, role=None), ON_RECORD, "its name") for one in (PLACEMENT, TEMPLATE, GROUP)),
        (replace(PLACEMENT, name="payments"), ON_RECORD, "its name"),
        (replace(PLACEMENT, name=BACKUP), ON_RECORD, "its name"),
        (replace(GROUP, name=BACKUP), NOTHING_ON_RECORD, ""),
        (replace(TEMPLATE, name=BACKUP), NOTHING_ON_RECORD, "its name"),
        (replace(SECURITY, name=FLEET), NOTHING_ON_RECORD, ""),
        (replace(SECURITY, name=FLEET, role=None), ON_RECORD, "its name"),
        (replace(SECURITY, name=FLEET, role="other"), ON_RECORD, "its name"),
        (replace(SECURITY, name=BACKUP), ON_RECORD, "its name"),
        (replace(SECURITY, role=None), NOTHING_ON_RECORD, ""),
        (replace(SECURITY, evidence=Evidence(vpc="vpc-2")), ON_RECORD, "network vpc-2"),
        (replace(SECURITY, evidence=Evidence()), ON_RECORD, "network"),
        # endpoints and queues
        (replace(ENDPOINT, evidence=Evidence(vpc="vpc-1")), ON_RECORD, "security group"),
        (
            replace(ENDPOINT, evidence=Evidence(vpc="vpc-1", security_groups=frozenset({"sg-1", "sg-2"}))),
            ON_RECORD,
            "and no other",
        ),
        (replace(ENDPOINT, evidence=replace(ENDPOINT.evidence, vpc="vpc-2")), ON_RECORD, "network vpc-2"),
        (replace(ENDPOINT, evidence=Evidence(vpc="vpc-1"), going=True), NOTHING_ON_RECORD, ""),
        (replace(QUEUE, name="payments"), ON_RECORD, "its name"),
        (replace(QUEUE, cell="c002"), ON_RECORD, "its name"),
        (replace(DEAD, run=OTHER), ON_RECORD, "its name"),
        # instances
        (seen(Kind.INSTANCE, "i-1", Evidence(template="lt-1")), ON_RECORD, "profile"),
        (seen(Kind.INSTANCE, "i-9", Evidence(profile=f"{PROFILE}2", template="lt-1")), ON_RECORD, "profile"),
        (seen(Kind.INSTANCE, "i-1", Evidence(profile=PROFILE)), ON_RECORD, "not on record"),
        (seen(Kind.INSTANCE, "i-9", Evidence(profile=PROFILE)), ON_RECORD, ""),
        (seen(Kind.INSTANCE, "i-1", NODE), NOTHING_ON_RECORD, ""),
        (seen(Kind.INSTANCE, "i-1", Evidence(profile=PROFILE, template="lt-2")), NOTHING_ON_RECORD, "not on record"),
        (seen(Kind.INSTANCE, "i-1", Evidence(template="lt-1"), going=True), NOTHING_ON_RECORD, ""),
        (seen(Kind.INSTANCE, "i-1", Evidence(), going=True), NOTHING_ON_RECORD, "not on record"),
        # volumes
        (seen(Kind.VOLUME, "vol-9"), ON_RECORD, ""),
        (seen(Kind.VOLUME, "vol-2"), ON_RECORD, "not on record"),
        (seen(Kind.VOLUME, "i-9"), ON_RECORD, "not on record"),
    ],
)
def test_doubtful_resource_has_a_reason(one: Seen, recorded: Recorded | None, words: str) -> None:
    why = doubt(one, recorded, SITE, KNOWN)
    assert (why is None) == (words == ""), why
    assert words in (why or "")


def test_only_a_node_of_the_same_run_proves_a_volume() -> None:
    thief = replace(INSTANCE, evidence=replace(INSTANCE.evidence, profile=None))
    for node in (replace(INSTANCE, run=OTHER), thief):
        inventory = take_inventory([VOLUME, node], {RUN: NOTHING_ON_RECORD, OTHER: NOTHING_ON_RECORD}, SITE)
        assert VOLUME in inventory.unverified
    assert VOLUME in take_inventory([VOLUME, INSTANCE, TEMPLATE], {RUN: NOTHING_ON_RECORD}, SITE).ours


TAGS = st.sampled_from([RUN, OTHER, "x", "", f"{RUN} "])
EVIDENCE = st.builds(
    Evidence,
    protected=st.booleans(),
    vpc=st.sampled_from([None, "vpc-2"]),
    template=st.sampled_from([None, "lt-7"]),
    volumes=st.frozensets(st.sampled_from(["vol-7", "vol-1"])),
    security_groups=st.frozensets(st.sampled_from(["sg-1", "sg-7"])),
    members=st.frozensets(st.sampled_from(["i-7"])),
    instances=st.frozensets(st.sampled_from(["i-7"])),
)
"""Of what is somebody else's: all but a profile, which takes a right that Troop's nodes' role guards."""
STRANGERS = st.builds(
    Seen,
    run=TAGS,
    cell=st.sampled_from([CELL, "c002", "", "x"]),
    kind=st.sampled_from(Kind),
    id=st.sampled_from(["i-7", "vol-7", "sg-7", "lt-7", "payments"]),
    name=st.sampled_from(["payments", "postgres", "troop-payments", f"troop-{RUN}"]),
    role=st.sampled_from([None, "", "drivers"]),
    evidence=EVIDENCE,
)


@given(st.lists(STRANGERS), st.lists(st.sampled_from(RUNS_OWN), unique=True))
def test_no_tag_makes_a_stranger_s_resource_removable(strangers: list[Seen], own: list[Seen]) -> None:
    inventory = take_inventory([*strangers, *own], {RUN: ON_RECORD, OTHER: ON_RECORD}, SITE)
    assert set(inventory.ours) <= set(own)
    assert set(inventory.unverified) >= set(strangers)
    assert set(removable(inventory.removable)) <= set(own)


# What is protected


SERVES = ("vpce-1", "https://1", "https://2")
"""Ids of what serves the nodes of a cell."""


def protected_ids(*those: Seen) -> set[str]:
    inventory = take_inventory(those, {RUN: NOTHING_ON_RECORD}, SITE)
    assert inventory.ours == those
    return {one.id for one in inventory.protected}


def protect(one: Seen) -> Seen:
    return replace(one, evidence=replace(one.evidence, protected=True))


@pytest.mark.parametrize(
    ("protected", "stays"),
    [
        (SECURITY, {"sg-1"}),
        (ENDPOINT, {"vpce-1", "sg-1"}),
        (QUEUE, {"https://1", "https://2"}),
        (DEAD, {"https://2"}),
        (TEMPLATE, {"lt-1"}),
        (GROUP, {FLEET, "i-1", "vol-1", "lt-1", "sg-1", *SERVES}),
        (INSTANCE, {FLEET, "i-1", "vol-1", "lt-1", "sg-1", *SERVES}),
        (VOLUME, {FLEET, "i-1", "vol-1", "lt-1", "sg-1", *SERVES}),
    ],
)
def test_protected_resource_stays_with_its_owner_and_its_dependencies(protected: Seen, stays: set[str]) -> None:
    those = [protect(one) if one is protected else one for one in RUNS_OWN]
    assert protected_ids(*those) == stays
    alone = replace(GROUP, evidence=Evidence())
    free = [alone if one is GROUP else one for one in RUNS_OWN]
    if protected in (INSTANCE, VOLUME):
        assert protected_ids(*(protect(one) if one is protected else one for one in free)) == stays - {FLEET, "lt-1"}


def test_another_fleet_of_the_cell_goes_all_the_same() -> None:
    name = names.fleet_name(RUN, CELL, "servers")
    servers = replace(GROUP, id=name, name=name, role="servers", evidence=Evidence(members=frozenset({"i-2"})))
    server = replace(INSTANCE, id="i-2", name="i-2", role="servers", evidence=NODE)
    drivers = [protect(one) if one is INSTANCE else one for one in RUNS_OWN]
    inventory = take_inventory([*drivers, servers, server], {RUN: NOTHING_ON_RECORD}, SITE)
    assert {one.id for one in inventory.removable} == {name, "i-2"}
    assert [one.id for one in removable(inventory.removable)] == [name]


def test_use_by_a_foreign_instance_protects_a_resource() -> None:
    stranger = seen(Kind.INSTANCE, "i-7", Evidence(security_groups=frozenset({"sg-1"})))
    taken = replace(VOLUME, evidence=Evidence(instances=frozenset({"i-7"})))
    recorded = frozenset({(Kind.VOLUME, "vol-1")})
    inventory = take_inventory([SECURITY, TEMPLATE, taken, stranger], {RUN: recorded}, SITE)
    assert {one.id for one in inventory.protected} == {"sg-1", "vol-1"}
    assert "i-7" in inventory.protected[SECURITY]


def test_a_group_does_not_take_along_a_member_that_is_not_proved() -> None:
    """Such as a node whose instance profile somebody has replaced, to log in."""
    debugged = replace(INSTANCE, evidence=replace(INSTANCE.evidence, profile="arn:aws:iam::1:instance-profile/ssm"))
    inventory = take_inventory([SECURITY, TEMPLATE, GROUP, debugged], {RUN: NOTHING_ON_RECORD}, SITE)
    assert debugged in inventory.unverified
    assert {one.id for one in inventory.protected} == {FLEET, "lt-1", "sg-1"}
    assert removable(inventory.removable) == []


def test_resource_on_its_way_out_is_no_leftover() -> None:
    going = replace(protect(INSTANCE), going=True)
    stranger = replace(seen(Kind.INSTANCE, "i-7"), going=True)
    inventory = take_inventory([GROUP, going, stranger], {RUN: NOTHING_ON_RECORD}, SITE)
    assert inventory.left == {}
    assert inventory.every == [GROUP, going, stranger]


@given(st.sets(st.sampled_from(RUNS_OWN)), st.sets(st.sampled_from(RUNS_OWN)))
def test_nothing_protected_is_ever_removable(those: set[Seen], protected: set[Seen]) -> None:
    provable = those if SECURITY in those else those - {ENDPOINT}
    every = [protect(one) if one in protected else one for one in sorted(provable, key=lambda one: one.id)]
    inventory = take_inventory(every, {RUN: frozenset({(Kind.INSTANCE, "i-1"), (Kind.VOLUME, "vol-1")})}, SITE)
    gone = {(one.kind, one.id) for one in inventory.removable}  # groups of both kinds have the same name
    assert not gone & {(one.kind, one.id) for one in every if one.evidence.protected}
    for one in inventory.removable:
        assert not (one.evidence.members | one.evidence.volumes) & {s.id for s in every if s.evidence.protected}
    if not any(one.evidence.protected for one in every):
        assert gone == {(one.kind, one.id) for one in every}


def test_a_record_names_no_more_than_fits() -> None:
    many = {seen(Kind.INSTANCE, f"i-{n}"): PROTECTED for n in range(MOST_LEFT + 1)}
    assert len(left_behind(many)) == MOST_LEFT
    few = left_behind(Inventory(unverified={VOLUME: "why", GROUP: PROTECTED}).left)
    assert [(one.kind, one.name, one.reason) for one in few] == [
        (Kind.AUTO_SCALING_GROUP, FLEET, PROTECTED),
        (Kind.VOLUME, "vol-1", "why"),
    ]


def test_a_foreign_endpoint_keeps_the_security_group_that_it_uses() -> None:
    groups = frozenset({"sg-1", "sg-of-others"})
    foreign = replace(ENDPOINT, evidence=replace(ENDPOINT.evidence, security_groups=groups))
    inventory = take_inventory([SECURITY, foreign], {RUN: NOTHING_ON_RECORD}, SITE)
    assert list(inventory.unverified) == [foreign]
    assert list(inventory.protected) == [SECURITY]


def test_a_placement_group_stays_with_the_instance_in_it() -> None:
    its = {RUN: frozenset({(Kind.INSTANCE, "i-1")})}
    inside = replace(INSTANCE, evidence=replace(NODE, protected=True, placement_group=FLEET))
    inventory = take_inventory([PLACEMENT, inside], its, SITE)
    assert set(inventory.protected) == {PLACEMENT, inside}
    free = replace(inside, evidence=replace(NODE, protected=True))
    assert set(take_inventory([PLACEMENT, free], its, SITE).protected) == {free}
