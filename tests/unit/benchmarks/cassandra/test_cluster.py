"""How the ring is laid out: by the roster alone, the same on every node."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.benchmarks.scripts import scripts
from troop.bench.definition.roster import Node, make_roster, to_document

cluster: Any = scripts("cassandra-write")["cluster"]
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


def servers_of(count: int, zones: int = 3) -> list[Any]:
    """Servers of a roster as Troop makes it, and a driver among them."""
    nodes = [Node(f"i-{n:04}", "servers", ZONES[n % zones], f"10.0.0.{n}", "i4i.xlarge") for n in range(count)]
    roster = to_document(make_roster([Node("i-d", "drivers", ZONES[0], "10.0.9.9", "c6i.large"), *nodes]))
    servers: list[Any] = cluster.servers(roster)
    return servers


@given(st.integers(1, 300))
def test_tokens_part_the_ring_evenly(count: int) -> None:
    tokens = [cluster.token(rank, count) for rank in range(count)]
    assert tokens[0] == -(2**63)
    assert tokens == sorted(tokens)
    gaps = {b - a for a, b in zip(tokens, [*tokens[1:], 2**63], strict=True)}
    assert max(gaps) - min(gaps) <= 1


@pytest.mark.parametrize("count", [3, 6, 48, 288])
def test_any_three_neighbours_of_the_ring_are_in_three_zones(count: int) -> None:
    """So the copies of every row are, too, without any server that has more rows than others."""
    ring = sorted(servers_of(count), key=lambda server: server.token)
    for n in range(count):
        assert len({ring[(n + step) % count].zone for step in range(3)}) == 3


def test_a_token_stays_when_the_ring_has_another_size() -> None:
    """The roster of a standing fleet says how many ranks there were when each began; rows stay with their tokens."""
    seats = [{"role": "servers", "rank": n, "address": f"10.0.0.{n}", "zone": "a", "of": 3 if n < 3 else 6}
             for n in range(6)]  # fmt: skip
    before, after = cluster.servers({"nodes": seats[:3]}), cluster.servers({"nodes": seats})
    assert [one.token for one in after[:3]] == [one.token for one in before]
    assert [one.token for one in before] == [cluster.token(rank, 3) for rank in range(3)]
    shrunk = cluster.servers({"nodes": [seats[0], seats[2]]})
    assert [one.token for one in shrunk] == [before[0].token, before[2].token]
    assert cluster.configuration(after[1], after, ["/a"], 2000)["initial_token"] == str(before[1].token)


def test_drivers_are_no_servers_and_seeds_are_one_of_each_zone() -> None:
    servers = servers_of(7)
    assert [server.rank for server in servers] == list(range(7))
    seeds = cluster.seeds(servers)
    assert len({server.zone for server in servers if server.address in seeds}) == len(seeds) == 3
    assert cluster.seeds(servers_of(4, zones=1)) == [servers_of(4, zones=1)[0].address]


def test_a_server_is_configured_by_its_place() -> None:
    servers = servers_of(6)
    configurations = [cluster.configuration(one, servers, ["/a", "/b"], 2000) for one in servers]
    assert len({one["initial_token"] for one in configurations}) == 6
    assert {one["num_tokens"] for one in configurations} == {1}
    assert [one["listen_address"] for one in configurations] == [one.address for one in servers]
    (seeds,) = {one["seed_provider"][0]["parameters"][0]["seeds"] for one in configurations}
    assert seeds.split(",") == cluster.seeds(servers)
    assert configurations[0]["write_request_timeout"] == "2000ms"
    assert configurations[0]["data_file_directories"] == ["/a/data", "/b/data"]
    assert configurations[0]["commitlog_directory"] == "/a/commitlog"
    assert f"rack={servers[4].zone}\n" in cluster.rack(servers[4])


@given(st.integers(1, 10**9), st.integers(1, 100))
def test_no_key_is_two_drivers(keys: int, drivers: int) -> None:
    ranges = [cluster.key_range(rank, keys) for rank in range(drivers)]
    assert all(end - begin == keys for begin, end in ranges)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(ranges))


@pytest.mark.parametrize(
    ("memory", "setting", "heap"), [(32_000, 0, 8000), (32_000, 512, 512), (500, 0, 256), (1 << 20, 0, 31 * 1024)]
)
def test_heap_is_the_configured_size_or_a_part_of_the_memory(memory: int, setting: int, heap: int) -> None:
    assert cluster.heap_mib(memory, setting) == heap
