"""A benchmark's file: what it becomes, and what is refused, where, and with what would be allowed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench.file.documents import FILE, FILES, changed, files, problems, read
from tests.unit.visited import Visits
from troop.bench.definition.definition import Artifact, Benchmark, Fleet, Phase, Volume, from_document, to_document
from troop.bench.definition.keys import ROLE, seconds, written
from troop.bench.definition.problems import MOST_PROBLEMS, BadBenchmarkError, Problem
from troop.bench.file.read import read_all
from troop.bench.file.read_fleet import read_fleet
from troop.shared.values import MOST_VALUES


def test_omitted_keys_have_their_defaults() -> None:
    assert read(FILE, FILES[::-1]) == Benchmark(
        name="reads",
        description="",
        expires_after=7200,
        fleets=(
            Fleet("servers", 3, "m7g.large", 3, 600, 8, (Volume("/dev/sdf", 100, "gp3", None, None),)),
            Fleet("drivers", 2, "c7g.large", 1, 600, 8),
        ),
        phases=(
            Phase("prepare", ("servers", "drivers"), "prepare.sh", 600),
            Phase("measure", ("drivers",), "read.py", 600, start_together=True, warm_up=30, measured=300),
        ),
        parameters={"bucket": "my-data", "threads": 32, "sizes": (1024, 10240)},
        artifacts=(Artifact("data.tar.gz", "0f" * 32, "./data.tar.gz"),),
        buckets=("my-data",),
        files=("prepare.sh", "read.py"),
        attempts=3,
    )


def test_a_spot_fleet_says_how_long_spot_may_take() -> None:
    document = changed(fleets__drivers__purchase="spot", fleets__servers__purchase="on-demand", attempts=1)
    benchmark = read(document, FILES)
    assert [(f.is_spot, f.spot_timeout) for f in benchmark.fleets] == [(False, 300), (True, 300)]
    assert benchmark.attempts == 1
    assert read(document, FILES, None, {"fleets.drivers.spot_timeout": "45s"}).fleet("drivers").spot_timeout == 45


@given(files())
def test_stored_definition_is_itself_a_file_with_the_same_meaning(document: dict[str, Any]) -> None:
    benchmark = read(document, FILES)
    stored = json.loads(json.dumps(to_document(benchmark)))
    assert from_document(stored) == benchmark
    again = {key: value for key, value in stored.items() if key not in ("format", "size", "files")}
    assert read(again, FILES) == benchmark


@given(files())
def test_reading_leaves_the_document_alone(document: dict[str, Any]) -> None:
    before = json.dumps(document)
    read(document | {"sizes": {"s": {"expires_after": "20h"}}}, FILES, "s", {"expires_after": "21h"})
    assert json.dumps(document) == before


def test_cells_may_differ_in_their_targets() -> None:
    document = changed(targets={"shop": TO | {"load_balancer": "shop"}})
    document["matrix"] = {"targets.shop.load_balancer": ["shop", "shop-arm"]}
    cells = read_all(document, FILES).plan.cells
    assert [cell.benchmark.targets[0].load_balancer for cell in cells] == ["shop", "shop-arm"]


_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(files(), st.data())
def test_whatever_stands_there_is_taken_or_refused_at_its_place(document: dict[str, Any], data: st.DataObject) -> None:
    way: list[Any] = []
    inner: Any = document
    while isinstance(inner, (dict, list)) and inner and (not way or data.draw(st.booleans())):
        step = data.draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
        way.append(step)
        outer, inner = inner, inner[step]
    outer[way[-1]] = data.draw(_JUNK)
    try:
        read(document, FILES)
    except BadBenchmarkError as bad:
        for problem in bad.problems:
            assert problem.message
            assert problem.allowed
            # What is wrong is there, or does not fit what is there any more.
            assert problem.place[:1] == tuple(way[:1]) or problem.place[0] in ("phases", "expires_after")


TO: dict[str, Any] = {"ports": [443], "roles": ["drivers"]}

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"name": "Reads"}, "name", "is 'Reads': must be a lower-case letter"),
    ({"name": ...}, "name", "is missing: must be set (Name of the benchmark: a lower-case letter"),
    ({"nmae": "x"}, "nmae", "is not known: must be spelled name"),
    ({"colour": "x"}, "colour", "is not known: must be one of name, description, expires_after"),
    ({"expires_after": "169h"}, "expires_after", "is '169h': must be a duration from 10m to 168h"),
    ({"expires_after": "2 days"}, "expires_after", "is '2 days': must be a duration"),
    ({"expires_after": True}, "expires_after", "is true: must be a duration"),
    ({"expires_after": float("inf")}, "expires_after", "is inf: must be a duration"),
    ({"expires_after": 7200.5}, "expires_after", "is 7200.5: must be a duration"),
    ({"expires_after": "36m"}, "expires_after", "is 36m: must be at least 37m: the longest boot_timeout and all"),
    ({"fleets": {}}, "fleets", "is empty: must be filled (Fleets by role"),
    ({"fleets": []}, "fleets", "is []: must be a mapping of keys to values"),
    ({"fleets__Drivers": {}}, "fleets.Drivers", "is not a valid name: must be a lower-case letter"),
    ({"fleets__drivers": None}, "fleets.drivers", "is null: must be a mapping of keys to values"),
    ({"fleets__drivers__count": 0}, "fleets.drivers.count", "is 0: must be a whole number from 1 to 10000"),
    ({"fleets__drivers__count": "2"}, "fleets.drivers.count", "is '2': must be a whole number"),
    ({"fleets__drivers__count": 2.5}, "fleets.drivers.count", "is 2.5: must be a whole number"),
    ({"fleets__drivers__count": 10**400}, "fleets.drivers.count", "is 1000000000"),
    ({"fleets__drivers__count": float("nan")}, "fleets.drivers.count", "is nan: must be a whole number"),
    ({"fleets__drivers__count": True}, "fleets.drivers.count", "is true: must be a whole number"),
    ({"fleets__drivers__zones": 3}, "fleets.drivers.zones", "is 3: must be at most 2, which is its count"),
    ({"fleets__drivers__image": "al2023"}, "fleets.drivers.image", "is 'al2023': must be the id of an image"),
    (
        {"fleets__drivers__fallback_types": ["m7g.large", "c7g.large"]},
        "fleets.drivers.fallback_types.1",
        "is 'c7g.large': must be unique",
    ),
    ({"fleets__servers__zone_names": ["us-east-1a"]}, "fleets.servers.zone_names", "names 1: must be at least 3"),
    ({"fleets__drivers__zone_names": ["a"]}, "fleets.drivers.zone_names.0", "the name of an availability zone"),
    (
        {"fleets__drivers__zone_names": ["us-east-1a", "us-east-1b"], "fleets__drivers__fallback_types": ["c6g.large"]},
        "fleets.drivers.fallback_types",
        "makes 4 choices: must be at most 3",
    ),
    ({"fleets__drivers__placement": "near"}, "fleets.drivers.placement", "one of cluster, spread, partition"),
    ({"fleets__servers__placement": "cluster"}, "fleets.servers.zones", "1 with placement: cluster"),
    (
        {"fleets__drivers__placement": "spread", "fleets__drivers__count": 8},
        "fleets.drivers.placement",
        "is 'spread' for 8 nodes: must be with a count of at most 7",
    ),
    ({"fleets__drivers__instance_type": "large"}, "fleets.drivers.instance_type", "must be an EC2 instance type"),
    ({"fleets__servers__volumes__0__device": "/dev/sda"}, "fleets.servers.volumes.0.device", "/dev/sdf to /dev/sdp"),
    (
        {"fleets__servers__volumes": [{"device": "/dev/sdf", "size_gib": 9}] * 2},
        "fleets.servers.volumes.1.device",
        "is '/dev/sdf': must be unique: another volume has it",
    ),
    ({"targets": {"Shop": {}}}, "targets.Shop", "is not a valid name"),
    ({"targets": {"shop": TO}}, "targets.shop", "has none of them: must be set with exactly one of load_balancer"),
    (
        {"targets": {"shop": TO | {"load_balancer": "shop", "addresses": ["10.0.0.1"]}}},
        "targets.shop",
        "has load_balancer and addresses: must be set with exactly one",
    ),
    ({"targets": {"shop": TO | {"load_balancer": "app/shop/1"}}}, "targets.shop.load_balancer", "without its path"),
    ({"targets": {"s": TO | {"security_group": "shop"}}}, "targets.s.security_group", "the id of a security group"),
    ({"targets": {"s": TO | {"addresses": ["10.20.1.0/16"]}}}, "targets.s.addresses.0", "without host bits"),
    ({"targets": {"s": TO | {"addresses": ["fd00::1"]}}}, "targets.s.addresses.0", "IPv4 addresses"),
    (
        {"targets": {"s": TO | {"addresses": ["10.0.0.1", "10.0.0.1/32"]}}},
        "targets.s.addresses.1",
        "is '10.0.0.1/32': must be unique",
    ),
    ({"targets": {"s": TO | {"ports": ["90-80"]}}}, "targets.s.ports.0", "a port from 1 to 65535, or a range"),
    ({"targets": {"s": TO | {"ports": [65536]}}}, "targets.s.ports.0", "a port from 1 to 65535, or a range"),
    ({"targets": {"s": TO | {"ports": [True]}}}, "targets.s.ports.0", "is true: must be a port"),
    ({"targets": {"s": TO | {"ports": []}}}, "targets.s.ports", "is empty"),
    (
        {"targets": {"s": TO | {"load_balancer": "shop", "roles": ["clients"]}}},
        "targets.s.roles.0",
        "is 'clients': must be one of servers, drivers",
    ),
    ({"fleets__drivers__purchase": "cheap"}, "fleets.drivers.purchase", "must be one of on-demand, spot"),
    (
        {"fleets__drivers__purchase": "spot", "fleets__drivers__spot_timeout": "361s"},
        "fleets.drivers.boot_timeout",
        "is 10m: must be at least 601s: its spot_timeout, 361s, and 4m for nodes on demand to launch and boot",
    ),
    (
        {"fleets__drivers__purchase": "spot", "fleets__drivers__boot_timeout": "8m"},
        "fleets.drivers.boot_timeout",
        "is 8m: must be at least 9m: its spot_timeout, 5m by default, and 4m for nodes on demand",
    ),
    (
        {"fleets__drivers__purchase": "spot", "fleets__drivers__spot_timeout": "29s"},
        "fleets.drivers.spot_timeout",
        "must be a duration from 30s to 2h",
    ),
    ({"attempts": 0}, "attempts", "is 0: must be a whole number from 1 to 5"),
    ({"fleets__servers__volumes__0__iops": 2999}, "fleets.servers.volumes.0.iops", "from 3000 to 50000, for gp3 of"),
    ({"fleets__servers__volumes__0__iops": 50_001}, "fleets.servers.volumes.0.iops", "from 3000 to 50000, for gp3"),
    ({"fleets__servers__volumes__0__throughput_mib": 751}, "fleets.servers.volumes.0.throughput_mib", "at most 750"),
    ({"fleets__servers__volumes__0__type": "io2"}, "fleets.servers.volumes.0.iops", "is missing: must be set for"),
    (
        {"fleets__servers__volumes__0": {"device": "/dev/sdf", "size_gib": 4, "type": "io2", "iops": 4001}},
        "fleets.servers.volumes.0.iops",
        "is 4001: must be at most 4000, for io2 of 4 GiB",
    ),
    (
        {"fleets__servers__volumes__0": {"device": "/dev/sdf", "size_gib": 3, "type": "io2", "iops": 100}},
        "fleets.servers.volumes.0.size_gib",
        "is 3: must be at least 4, for io2",
    ),
    (
        {
            "fleets__servers__volumes__0__type": "io2",
            "fleets__servers__volumes__0__iops": 100,
            "fleets__servers__volumes__0__throughput_mib": 125,
        },
        "fleets.servers.volumes.0.throughput_mib",
        "must be left out, for io2",
    ),
    *(
        ({"fleets__servers__volumes__0": {"device": "/dev/sdf", **volume}}, f"fleets.servers.volumes.0.{key}", message)
        for volume, key, message in (
            ({"type": "io1", "size_gib": 4, "iops": 201}, "iops", "is 201: must be at most 200, for io1 of 4 GiB"),
            ({"type": "io1", "size_gib": 9000, "iops": 64_001}, "iops", "must be at most 64000, for io1 of 9000 GiB"),
            ({"type": "io1", "size_gib": 100}, "iops", "must be set for io1: a whole number from 100 to 5000"),
            ({"type": "io1", "size_gib": 3, "iops": 100}, "size_gib", "is 3: must be at least 4, for io1"),
            ({"type": "io1", "size_gib": 16_385, "iops": 100}, "size_gib", "is 16385: must be at most 16384, for io1"),
            ({"type": "gp2", "size_gib": 16_385}, "size_gib", "is 16385: must be at most 16384, for gp2"),
            ({"type": "gp2", "size_gib": 10, "iops": 3000}, "iops", "is 3000: must be left out, for gp2"),
            ({"type": "gp2", "size_gib": 10, "throughput_mib": 125}, "throughput_mib", "must be left out, for gp2"),
            ({"type": "st1", "size_gib": 124}, "size_gib", "is 124: must be at least 125, for st1"),
            ({"type": "sc1", "size_gib": 16_385}, "size_gib", "is 16385: must be at most 16384, for sc1"),
            ({"type": "sc1", "size_gib": 125, "iops": 100}, "iops", "is 100: must be left out, for sc1"),
            ({"size_gib": 9, "snapshot": "snap-1"}, "snapshot", "is 'snap-1': must be the id of a snapshot"),
            (
                {"size_gib": 9, "snapshot": "snap-01234567", "initialize": 99},
                "initialize",
                "is 99: must be none, read, or a whole number from 100 to 300",
            ),
            ({"size_gib": 9, "initialize": True}, "initialize", "is true: must be none, read, or a whole number"),
            ({"size_gib": 9, "initialize": "read"}, "initialize", "is 'read': must be left out without a snapshot"),
            (
                {"size_gib": 74, "snapshot": "snap-01234567", "initialize": "read"},
                "initialize",
                "is 'read': must be with a boot_timeout above 607s: the nodes read 74 GiB",
            ),
            ({"type": "standard", "size_gib": 125}, "type", "must be one of gp3, gp2, io1, io2, st1, sc1"),
        )
    ),
    ({"phases": []}, "phases", "is empty: must be filled (Phases in the order"),
    ({"phases": [FILE["phases"][0]] * 51}, "phases", "has 51 entries: must be shorter"),
    ({"phases__1__name": "prepare"}, "phases.1.name", "is 'prepare': must be unique: another phase has it"),
    ({"phases__1__name": "boot"}, "phases.1.name", "is 'boot': must be none of launch, boot, collect, teardown, over"),
    ({"phases__1__roles": ["clients"]}, "phases.1.roles.0", "is 'clients': must be one of servers, drivers"),
    ({"phases__0__roles": ["drivers", "drivers"]}, "phases.0.roles.1", "is 'drivers': must be unique"),
    ({"phases__1__roles": []}, "phases.1.roles", "is empty: must be filled (Roles whose nodes run"),
    ({"phases__1__script": "reed.py"}, "phases.1.script", "a file in the benchmark's folder: prepare.sh, read.py"),
    ({"phases__1__script": "../read.py"}, "phases.1.script", "must be a file name"),
    ({"phases__1__timeout": "330s"}, "phases.1.timeout", "is 330s: must be longer than 330s, its warm-up and measured"),
    ({"phases__0__warm_up": "1m"}, "phases.0.warm_up", "is 1m: must be left out in a phase that measures nothing"),
    ({"phases__0__start_up": "1s"}, "phases.0.start_up", "is 1s: must be left out in a phase that measures nothing"),
    ({"phases__1__start_up": "2m"}, "phases.1.start_up", "is '2m': must be a duration from 0s to 1m"),
    ({"phases__1__start_up": "1m", "phases__1__timeout": "390s"}, "phases.1.timeout", "longer than 390s, its start,"),
    ({"phases__1__start_together": "yes"}, "phases.1.start_together", "is 'yes': must be true or false"),
    ({"parameters__Threads": 1}, "parameters.Threads", "is not a valid name"),
    ({"parameters__threads": None}, "parameters.threads", "is null: must be text"),
    ({"parameters__threads": {"a": {"b": 1}}}, "parameters.threads", "must be text"),
    ({"parameters__threads": [[1]]}, "parameters.threads", "is [[1]]: must be text"),
    ({"parameters__bucket": 10**400}, "parameters.bucket", "is 1000000000"),
    ({"parameters__threads": float("inf")}, "parameters.threads", "is inf: must be text"),
    ({"artifacts__0__sha256": "0F" * 32}, "artifacts.0.sha256", "64 lower-case hexadecimal digits"),
    *(
        ({"artifacts__0__source": source}, "artifacts.0.source", "must be https://..., s3://BUCKET/KEY, or a path")
        for source in (
            *("http://x/y", "file:///etc/passwd", "FILE:/etc/passwd", "HTTPS://x/y", "ftp://x/y", "data:,x"),
            *("url:file:///etc/passwd", "local_file:///etc/passwd", "S3://my-data/x", "s3:my-data/x", "https:x"),
        )
    ),
    ({"artifacts": FILE["artifacts"] * 2}, "artifacts.1.name", "must be unique: another artifact has it"),
    ({"buckets": ["s3://my-data"]}, "buckets.0", "an S3 bucket's name, without s3://"),
    ({"buckets": ["my-data", "my-data"]}, "buckets.1", "must be unique"),
    ({"sizes__smoke": 3}, "sizes.smoke", "is 3: must be a mapping"),
    ({"sizes__Smoke": {}}, "sizes.Smoke", "is not a valid name"),
    ({"sizes__smoke": {"fleets.clients.count": 1}}, "sizes.smoke.fleets.clients.count", "there is no 'clients'"),
    ({"sizes__smoke": {"fleets.clients": {}}}, "sizes.smoke.fleets.clients", "must be one of servers, drivers"),
    ({"sizes__smoke": {"parameters.treads": 1}}, "sizes.smoke.parameters.treads", "bucket, threads, sizes"),
    ({"sizes__smoke": {"phases.measure.measure": 1}}, "sizes.smoke.phases.measure.measure", "must be spelled measured"),
    ({"sizes__smoke": {"phases.2.timeout": 1}}, "sizes.smoke.phases.2.timeout", "must be one of prepare, measure"),
    ({"sizes__smoke": {"fleets.drivers.count": 0}}, "sizes.smoke.fleets.drivers.count", "is 0: must be a whole"),
    ({"sizes__smoke": {"fleets.servers.count": 1}}, "sizes.smoke", "makes a file in which fleets.servers.zones is 3"),
    ({"sizes__smoke": {"fleets.servers.volumes.0.iops": 0}}, "sizes.smoke.fleets.servers.volumes.0.iops", "is 0"),
    ({"sizes__smoke": {"name": "x"}}, "sizes.smoke.name", "cannot be changed"),
    ({"sizes__smoke": {"buckets.0": "x"}}, "sizes.smoke.buckets.0", "leads into ['my-data']"),
    ({"sizes__smoke": {"name.x": "x"}}, "sizes.smoke.name.x", "cannot be changed"),
    ({"sizes__smoke": {"description.x": "x"}, "description": "d"}, "sizes.smoke.description.x", "leads into 'd'"),
    ({"sizes__smoke": {"phases": {}}}, "sizes.smoke.phases", "is {}: must be a list"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "where", "message"), REFUSED, ids=[f"{w}-{n}" for n, (_, w, _) in enumerate(REFUSED)]
)
def test_refusal_has_the_allowed_values(change: dict[str, Any], where: str, message: str) -> None:
    messages = [str(problem) for problem in problems(changed(**change), files=FILES) if problem.where == where]
    assert [text for text in messages if message in text], messages


def test_all_mistakes_are_reported_at_once() -> None:
    document = changed(name="X", fleets__drivers__count=0, phases__0__timeout="1x", parameters__A=1)
    assert [p.where for p in problems(document)] == [
        "name",
        "fleets.drivers.count",
        "phases.0.timeout",
        "parameters.A",
    ]


def test_conflicts_are_reported_together_with_single_mistakes() -> None:
    """Who mends one mistake should not be shown the next one only then."""
    wrong = {"fleets__drivers__count": 0, "fleets__servers__zones": 4, "phases__1__timeout": "5m"}
    document = changed(**wrong, phases__0__roles=["clients"])
    messages = [str(problem) for problem in problems(document, files=FILES)]
    assert [text.partition(": must")[0] for text in messages] == [
        "fleets.drivers.count is 0",
        "fleets.servers.zones is 4",
        "phases.0.roles.0 is 'clients'",
        "phases.1.timeout is 5m",
    ]


@pytest.mark.parametrize("document", [None, [], "text", 5])
def test_a_document_that_is_none(document: Any) -> None:
    (problem,) = problems(document)
    assert str(problem).startswith("the file is ")


def test_a_document_that_is_nested_without_end() -> None:
    document: Any = []
    for _ in range(100_000):
        document = [document]
    (problem,) = problems(changed(parameters__threads=document))
    assert "nested deeper" in problem.message


def very_large(visits: Visits) -> Iterator[dict[str, Any]]:
    """Files of two mebibytes and more, with very many values at one place each."""
    yield changed(phases=visits.list([{}] * 500_000))
    yield changed(fleets=visits.mapping({f"f{n}": {} for n in range(100_000)}))
    yield changed(parameters__threads=visits.list([[0] * 9] * 100_000))
    yield changed(sizes__smoke=visits.mapping({f"parameters.p{n}": n for n in range(100_000)}))
    yield visits.mapping(FILE | {f"unknown{n}": 1 for n in range(100_000)})


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("read_one", [read_all, read_fleet])
def test_a_refusal_visits_no_more_values_than_a_file_may_have(read_one: Callable[..., Any], number: int) -> None:
    visits = Visits()
    document = list(very_large(visits))[number]
    visits.number = 0
    with pytest.raises(BadBenchmarkError, match="has more than 20,000 values"):
        read_one(document)
    assert visits.number <= MOST_VALUES


MANY: list[dict[str, Any]] = [
    {"phases": [{}] * 15_000},
    {"phases": [1] * 15_000},
    {"fleets": {f"f{n}": {} for n in range(15_000)}},
    {"fleets": {f"f{n}": {"count": 2, "instance_type": "c7g.large", "zones": 3} for n in range(4500)}},
    {"parameters": {f"P{n}": 1 for n in range(15_000)}},
    {f"unknown{n}": 1 for n in range(15_000)},
    {"sizes": {"smoke": {f"parameters.q{n}": 1 for n in range(15_000)}}},
    {"scale": {"n1": {f"parameters.q{n}": 1 for n in range(15_000)}}},
    {"sizes": {f"s{n}": {f"parameters.q{k}": 1 for k in range(900)} for n in range(20)}},
    {
        "expires_after": "168h",
        "matrix": {"parameters.threads": [[n] for n in range(200)]},
        "phases__1__script": "no.py",
    },
]


@pytest.mark.parametrize("change", MANY, ids=[f"{n}-{next(iter(change))}" for n, change in enumerate(MANY)])
def test_reading_stops_after_the_most_problems(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Problem] = []
    monkeypatch.setattr(Problem, "__post_init__", built.append, raising=False)
    assert 0 < len(problems(changed(**change), files=FILES)) <= MOST_PROBLEMS
    assert len(built) <= 5 * MOST_PROBLEMS


def test_a_size_and_single_changes_on_top_of_it() -> None:
    chosen = read(FILE, FILES, "smoke", {"parameters.threads": 8, "phases.prepare.roles": ["drivers"]})
    assert (chosen.size, chosen.fleet("drivers").count, chosen.phase("measure").measured) == ("smoke", 1, 5)
    assert (chosen.parameters["threads"], chosen.phase("prepare").roles) == (8, ("drivers",))
    assert read(FILE, FILES).parameters["threads"] == 32


TWO_SIZES = {
    "smoke": {"fleets.drivers.count": 1, "parameters.threads": 4},
    "large": {"fleets.servers.count": 9, "parameters.threads": 64},
    "steps": {"scale": {"n3": {"fleets.drivers.count": 3}, "n6": {"fleets.drivers.count": 6}}},
    "spread": {"fleets.drivers.zones": 2},
}


@pytest.mark.parametrize(
    ("size", "recorded", "threads"), [("smoke,large", "smoke,large", 64), ("large,smoke,large", "large,smoke", 4)]
)
def test_sizes_combine_and_a_later_one_wins(size: str, recorded: str, threads: int) -> None:
    chosen = read_all(changed(sizes=TWO_SIZES), FILES, size, {"fleets.servers.zones": 1})
    benchmark = chosen.benchmark
    assert (benchmark.size, benchmark.parameters["threads"]) == (recorded, threads)
    assert (benchmark.fleet("drivers").count, benchmark.fleet("servers").count) == (1, 9)
    assert chosen.plan.cells[0].benchmark == benchmark


def test_a_size_of_steps_combines_with_one_of_parameters() -> None:
    chosen = read_all(changed(sizes=TWO_SIZES, expires_after="24h"), FILES, "steps,large")
    counts = [(one.benchmark.fleet("drivers").count, one.benchmark.parameters["threads"]) for one in chosen.plan.cells]
    assert counts == [(3, 64), (6, 64)]


@pytest.mark.parametrize(
    ("document", "how", "message"),
    [
        (changed(sizes=TWO_SIZES), {"size": "smoke,big"}, "size is 'big': must be one of smoke, large, steps, spread"),
        (changed(sizes=TWO_SIZES), {"size": "smoke,"}, "size is '': must be one of smoke"),
        (changed(sizes=TWO_SIZES), {"size": "smoke,spread"}, "'smoke,spread': sizes.spread.fleets.drivers.zones"),
        (changed(sizes=TWO_SIZES, expires_after="24h"), {"size": "steps,smoke"}, "all scale steps set it"),
        (FILE, {"size": "big"}, "size is 'big': must be one of smoke"),
        (changed(sizes=...), {"size": "big"}, "must be left out: the file has no sizes"),
        (FILE, {"changes": {"parameters.treads": 1}}, "set.parameters.treads leads nowhere"),
        (FILE, {"changes": {"fleets.drivers.count": 0}}, "set.fleets.drivers.count is 0: must be a whole number"),
        (FILE, {"size": "smoke", "changes": {"fleets.drivers.zones": 2}}, "set.fleets.drivers.zones is 2: must be at"),
        (FILE, {"changes": {"sizes": {}}}, "set.sizes cannot be changed"),
    ],
)  # fmt: skip
def test_a_size_or_a_change_that_cannot_be(document: Any, how: dict[str, Any], message: str) -> None:
    (problem,) = problems(document, **how)
    assert message in str(problem)


def test_files_that_are_not_known_are_not_missed() -> None:
    assert read(FILE).files == ()


@given(st.integers(0, 90_000))
def test_durations_are_written_as_they_are_read(duration: int) -> None:
    assert seconds(written(duration)) == duration


def test_role_names_leave_room_for_names_of_resources() -> None:
    from troop.bench.definition import names

    role = "r" * 21
    ROLE.parse(role)
    name = names.fleet_name("20261121-150312-1f0c9b2e", "c001", role)
    assert len(name) <= 128  # a launch template's, the shortest limit of what is named so
