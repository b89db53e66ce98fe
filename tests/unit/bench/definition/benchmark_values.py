"""Benchmarks of all kinds, for property tests: any that the dataclasses can hold."""

from __future__ import annotations

from hypothesis import strategies as st

from troop.bench.definition.definition import SPOT, Artifact, Benchmark, Fleet, Phase, Volume
from troop.bench.definition.living import REPLACE, RESTART, Heal, Health, Queue, Scale, Work
from troop.bench.definition.money import BILLINGS, OTHERS, S3_GETS, S3_PUTS, Money, Price
from troop.bench.definition.planned_fault import METHODS, Expectation, PlannedFault

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,12}", fullmatch=True)
_TEXT = st.text(max_size=20)
SCALARS = st.one_of(
    _TEXT, st.booleans(), st.integers(-(10**9), 10**9), st.floats(allow_nan=False, allow_infinity=False)
)
PARAMETERS = st.dictionaries(NAMES, SCALARS | st.lists(SCALARS, max_size=3).map(tuple), max_size=4)
_SECONDS = st.integers(0, 86_400)

VOLUMES = st.builds(
    Volume,
    device=st.sampled_from(["/dev/sdf", "/dev/sdg"]),
    size_gib=st.integers(1, 100),
    type=st.sampled_from(["gp3", "io1", "io2", "gp2", "st1", "sc1"]),
    iops=st.none() | st.integers(100, 16_000),
    throughput_mib=st.none() | st.integers(125, 1000),
)
HEALTHS = st.builds(Health, port=st.integers(1, 65_535), path=st.just("/") | st.just("/health"), every=_SECONDS)
HEALS = st.builds(
    Heal,
    after=st.integers(1, 100),
    do=st.sampled_from([RESTART, REPLACE]),
    script=st.none() | NAMES,
    at_most=st.decimals("0.01", 1, places=2),
)
SCALES = st.builds(
    Scale, backlog_per_node=st.integers(1, 100), least=st.integers(0, 5), most=st.integers(5, 500), idle_after=_SECONDS
)
QUEUES = st.builds(Queue, lease=_SECONDS, tries=st.integers(1, 100))
FLEETS = st.builds(
    Fleet,
    role=NAMES,
    count=st.integers(1, 400),
    instance_type=st.sampled_from(["c7g.large", "m7i.xlarge"]),
    zones=st.integers(1, 6),
    boot_timeout=_SECONDS,
    root_volume_gib=st.integers(8, 100),
    volumes=st.lists(VOLUMES, max_size=2).map(tuple),
    health=st.none() | HEALTHS,
    work=st.none() | st.builds(Work, at_least=st.integers(1, 9), every=_SECONDS),
    heal=st.none() | HEALS,
    scale=st.none() | SCALES,
) | st.builds(
    Fleet,
    role=NAMES,
    count=st.integers(1, 400),
    instance_type=NAMES,
    zones=st.just(1),
    boot_timeout=_SECONDS,
    root_volume_gib=st.just(8),
    purchase=st.just(SPOT),
    spot_timeout=_SECONDS,
)
EXPECTATIONS = st.builds(
    Expectation,
    rate=st.none() | st.floats(0, 1),
    share=st.floats(0, 1),
    rate_back_within=st.none() | _SECONDS,
    p99_back_within=st.none() | _SECONDS,
    failed_at_most=st.none() | _SECONDS,
)
FAULTS = st.builds(
    PlannedFault,
    at=_SECONDS,
    method=st.none() | st.sampled_from(METHODS),
    role=st.none() | NAMES,
    unit=st.none() | _TEXT,
    zone=st.none() | st.integers(1, 6),
    count=st.none() | st.integers(1, 9),
    script=st.none() | NAMES,
    delay=st.none() | _SECONDS,
    lasts=st.none() | _SECONDS,
    expect=st.none() | EXPECTATIONS,
)
PHASES = st.builds(
    Phase,
    name=NAMES,
    roles=st.lists(NAMES, min_size=1, max_size=3, unique=True).map(tuple),
    script=NAMES,
    timeout=_SECONDS,
    start_together=st.booleans(),
    warm_up=_SECONDS,
    measured=_SECONDS,
    expected=st.none() | _SECONDS,
    faults=st.lists(FAULTS, max_size=2).map(tuple),
)
_AMOUNTS = st.decimals(0, 10**6, places=4, allow_nan=False)
_PRICES = st.builds(Price, on_demand=_AMOUNTS, spot=st.none() | _AMOUNTS) | st.builds(Price, spot=_AMOUNTS)
MONEY = st.builds(
    Money,
    budget=st.none() | _AMOUNTS,
    billing=st.sampled_from(BILLINGS),
    prices=st.dictionaries(st.sampled_from(["c7g.large", "m7i.xlarge"]), _PRICES),
    other_prices=st.dictionaries(st.sampled_from(OTHERS), _AMOUNTS),
    accept_unknown_prices=st.booleans(),
    cross_zone_gb=_AMOUNTS,
    requests=st.dictionaries(st.sampled_from([S3_GETS, S3_PUTS]), _AMOUNTS.filter(bool)),
)
ARTIFACTS = st.builds(Artifact, name=NAMES, sha256=st.just("0f" * 32), source=_TEXT)
BENCHMARKS = st.builds(
    Benchmark,
    name=NAMES,
    description=_TEXT,
    expires_after=_SECONDS,
    fleets=st.lists(FLEETS, min_size=1, max_size=3, unique_by=lambda fleet: fleet.role).map(tuple),
    phases=st.lists(PHASES, min_size=1, max_size=3, unique_by=lambda phase: phase.name).map(tuple),
    parameters=PARAMETERS,
    artifacts=st.lists(ARTIFACTS, max_size=2).map(tuple),
    buckets=st.lists(NAMES, max_size=2).map(tuple),
    size=st.none() | NAMES,
    files=st.lists(NAMES, max_size=3, unique=True).map(lambda names: tuple(sorted(names))),
    attempts=st.integers(1, 5),
    money=MONEY,
    baseline=PARAMETERS,
    version=_TEXT,
    queue=st.none() | QUEUES,
)
