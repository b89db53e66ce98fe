"""The keys of stored documents: earlier versions have written them, so a field's new name must not change them."""

from __future__ import annotations

from typing import Any

import pytest

from troop.bench.admission.spending import CellTerms, Terms
from troop.bench.definition.definition import (
    Artifact,
    Benchmark,
    Between,
    Fleet,
    Phase,
    PointPlace,
    Target,
    Volume,
)
from troop.bench.definition.living import (
    Announcement,
    Heal,
    Health,
    MergedCheck,
    Need,
    Queue,
    Repair,
    RoleDigest,
    Scale,
    Work,
    WorkSample,
)
from troop.bench.definition.money import Committed
from troop.bench.definition.phase_limits import PhaseLimit
from troop.bench.definition.plan import Plan, PlannedCell, Variant
from troop.bench.definition.standing import Counts, Market, Standing
from troop.bench.money.costs import Cost, Item
from troop.bench.money.prices import Prices, VolumePrice
from troop.bench.records.record import Cell, Disk, Expected, LeftBehind, PlannedStep, Resource, Run
from troop.chaos.events import Event, Last, Watch
from troop.chaos.replacements import Build, Replacement
from troop.chaos.strays import Stray, StrayRecord
from troop.shared import codec

KEYS = [
    (Artifact, "name sha256 source"),
    (
        Benchmark,
        "name description expires_after fleets phases parameters artifacts buckets size files attempts "
        "standing own_data ranks *money targets baseline version queue",
    ),
    (Between, "script roles timeout expected"),
    (Build, "template instance_type image"),
    (
        Cell,
        "run cell status phase phases reason results closed_at variant attempt cost point order limits "
        "searches data_gone_at replaced_nodes requests",
    ),
    (CellTerms, "expected on_demand attempts own cross_zone_gb hourly licenses requests endpoint reports"),
    (Committed, "upfront hourly"),
    (Cost, "amount currency items unknown on_demand"),
    (Counts, "in_service starting leaving ready failed spot on_demand"),
    (Disk, "type size_gib iops throughput_mib initialization_mib"),
    (
        Event,
        "event_id unit day status at group instance_id zone method rolled probability desired deadline "
        "execution attempted_at attempts os_shutdown terminated_at recovered_at watch detail cause "
        "before build replacement",
    ),
    (Expected, "expected most currency budget"),
    (
        Fleet,
        "role count instance_type zones boot_timeout root_volume_gib volumes purchase spot_timeout load "
        "license_fee image placement fallback_types zone_names backup max_price fixed health work heal scale",
    ),
    (Heal, "after do script at_most"),
    (Health, "port path every timeout grace"),
    (Item, "what quantity unit price"),
    (Last, "day event_id"),
    (LeftBehind, "kind name reason"),
    (Market, "short_since surplus_since"),
    (MergedCheck, "name status nodes node_ids value threshold detail todo actionable"),
    (Need, "nodes until"),
    (
        Phase,
        "name roles script timeout start_together start_up warm_up measured expected points repeat "
        "between rate nodes search limits",
    ),
    (PhaseLimit, "figure at_most at_least every operation role"),
    (Plan, "cells parallel"),
    (PlannedCell, "cell variant benchmark"),
    (PlannedStep, "step seconds points"),
    (PointPlace, "number of repeat parameters"),
    (Prices, "currency on_demand spot volumes cross_zone_gb initialization committed endpoint"),
    (Queue, "lease tries"),
    (Repair, "id node role do at number reason"),
    (Replacement, "instance_id build"),
    (
        Resource,
        "run cell kind name planned_at created_at gone_at role instance_type zone purchase started_at disk zones",
    ),
    (
        Run,
        "run name at expires_at requested_by cells nodes status execution outcome closed_at ended_at "
        "reason *standing estimate cost cost_of_file counted left_behind size timetable",
    ),
    (RoleDigest, "ok warn fail silent checks"),
    (Scale, "backlog_per_node min max idle_after"),
    (
        Standing,
        "desired scaled_at scaled_by seen seen_at ready_within backups max_prices market decisions ranks fixed queue "
        "scales heals healths watched submitted digest work uncounted may_lack_tasks samples needs withheld repairs "
        "announced drains extends",
    ),
    (Stray, "key nearest owner since"),
    (StrayRecord, "version count named near waiting reported reports at"),
    (Target, "name ports roles load_balancer addresses security_group"),
    (Announcement, "at ok_since"),
    (Terms, "prices billing budget cells ceiling of_file"),
    (Variant, "scale values repetition"),
    (Volume, "device size_gib type iops throughput_mib snapshot initialize"),
    (VolumePrice, "gib iops throughput_mib"),
    (Work, "at_least every"),
    (WorkSample, "at submitted waiting in_work dead oldest_seconds"),
    (Watch, "checks whole whole_since checked_at"),
]


@pytest.mark.parametrize(("kind", "keys"), KEYS, ids=lambda value: getattr(value, "__name__", ""))
def test_keys_and_their_order_stay(kind: Any, keys: str) -> None:
    assert [key for key in codec.keys(kind) if key in keys.split()] == keys.split()
