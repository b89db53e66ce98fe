"""What a run is expected to cost, by what AWS tells of prices and quotas; and what it has cost, by its record."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.account.account import Account, before, calls
from tests.unit.account.asking import ask
from tests.unit.account.bench import FILE, Half, post, request
from tests.unit.account.benches import CELL, Bench
from tests.unit.account.market import GP3, STANDARD, Market, instance_products, product
from troop.bench.admission.spending import CellTerms, Terms
from troop.bench.api import benchmarks as routes
from troop.bench.aws import price_book, price_list
from troop.bench.aws.price_book import PriceBook
from troop.bench.aws.price_cache import PriceCache
from troop.bench.aws.price_list import PriceList
from troop.bench.definition.definition import SPOT, Benchmark
from troop.bench.definition.money import HOURLY, Committed, Money, Price
from troop.bench.file.read import ReadFile, read_all
from troop.bench.money.prices import Prices, VolumePrice, region_of_list
from troop.bench.records.record import Kind, RunStatus
from troop.shared.aws.clients import client

D = Decimal


@pytest.fixture(name="settings")
def with_large_fleets(settings: dict[str, Any], request: pytest.FixtureRequest) -> dict[str, Any]:
    return settings | {"max_nodes": 1000} | getattr(request, "param", {})


@pytest.fixture
def on_spot(monkeypatch: pytest.MonkeyPatch) -> None:
    """All fleets are bought as spot."""

    def bought(benchmark: Benchmark) -> Benchmark:
        return replace(benchmark, fleets=tuple(replace(fleet, purchase=SPOT) for fleet in benchmark.fleets))

    def spot(*how: Any) -> ReadFile:
        file = read_all(*how)
        cells = tuple(replace(one, benchmark=bought(one.benchmark)) for one in file.plan.cells)
        return ReadFile(bought(file.benchmark), replace(file.plan, cells=cells))

    monkeypatch.setattr(routes, "read_all", spot)


def document(instance_type: str = "c7g.large", **changes: Any) -> dict[str, Any]:
    definition = copy.deepcopy(FILE) | changes
    definition["fleets"]["drivers"]["instance_type"] = instance_type
    return definition


def estimate(instance_type: str = "c7g.large", **changes: Any) -> dict[str, Any]:
    body = request(definition=document(instance_type, **changes))
    del body["key"]
    status, quote = ask("POST", "/benchmarks/estimate", body)
    assert status == 200, quote
    return dict(quote)


def test_a_benchmark_with_large_files_is_estimated_like_any_other(half: Half) -> None:
    body = request(files={"read.py": b"#", "large": bytes(900_000)})
    del body["key"]
    assert ask("POST", "/benchmarks/estimate", body)[0] == 200


def price_of(quote: Mapping[str, Any], item: str) -> float | None:
    price: float | None = next(i["price"] for cell in quote["cells"] for i in cell["items"] if item in i["what"])
    return price


def refused(**how: Any) -> str:
    status, body = post(**how)
    assert status == 400, body
    return str(body["message"])


# The estimate


def test_an_estimate_stores_and_starts_nothing(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = {"name": "d", "source": "./d", "sha256": "0f" * 32}
    with calls(monkeypatch) as operations:
        quote = estimate(artifacts=[artifact])
    assert operations == [
        *("DescribeSubnets", "DescribeInstanceTypes", "DescribeInstanceTypeOfferings"),
        *("BatchGetItem", "GetServiceQuota", "GetItem"),
    ]
    assert half.objects() == {}
    assert (quote["currency"], quote["billing"], quote["budget"], quote["problems"]) == ("USD", "per-second", None, [])
    assert 0 < quote["expected"] < quote["most"]
    assert quote["cells"][0]["seconds"] == 120 + 300 + 15 + 60
    assert price_of(quote, "c7g.large, on-demand") == 0.0775


def test_prices_are_read_once_a_day(half: Half, market: Market) -> None:
    for _ in range(2):
        assert price_of(estimate("c5.large"), "c5.large") == 0.097
    (parameters,) = market.requests["GetProducts"]
    assert {one["Field"]: one["Value"] for one in parameters["Filters"]} == {
        "instanceType": "c5.large",
        "regionCode": "eu-central-1",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    half.account.clock.forward(hours=24, seconds=1)
    market.products["c5.large"] = instance_products("c5.large", "0.2")
    assert price_of(estimate("c5.large"), "c5.large") == 0.2


@pytest.mark.usefixtures("on_spot")
def test_spot_price_is_of_the_dearest_usable_zone_and_is_read_hourly(half: Half, market: Market) -> None:
    market.spot["c7g.large"]["eu-central-1c"] = "5"  # no subnet is there
    for _ in range(2):
        assert price_of(estimate(), "c7g.large, spot") == 0.0305
    (parameters,) = market.requests["DescribeSpotPriceHistory"]
    assert parameters["ProductDescriptions"] == ["Linux/UNIX"]
    half.account.clock.forward(hours=1, seconds=1)
    estimate()
    assert len(market.requests["DescribeSpotPriceHistory"]) == 2


@pytest.mark.parametrize("by_hand", [0, 0.5])
def test_the_files_own_prices_move_no_limit_where_aws_names_a_price(half: Half, market: Market, by_hand: float) -> None:
    listed = estimate("m7g.large")
    prices = {"m7g.large": by_hand, "gp3": by_hand, "cross_zone_gb": 1}
    quote = estimate("m7g.large", prices=prices, traffic={"cross_zone_gb": 3})
    assert price_of(quote, "m7g.large") == 0.1
    assert price_of(quote, "traffic") == 0.02
    assert quote["expected"] == pytest.approx(listed["expected"] + 3 * 0.02, abs=1e-6)
    (warning,) = quote["warnings"]
    assert warning.startswith(f"with the file's prices, it is expected to cost ${3.01 if not by_hand else 3.15}, at")
    message = refused(definition=document("m7g.large", prices=prices, budget=round(listed["expected"] - 0.01, 6)))
    assert "must be at least what it is expected to cost" in message


def test_price_of_0_in_the_file_does_not_replace_an_unknown_list_price(half: Half, market: Market) -> None:
    market.products.clear()
    assert "are unknown" in refused(definition=document("m7g.large", prices={"m7g.large": 0}))
    assert price_of(estimate("m7g.large", prices={"m7g.large": 0.5}), "m7g.large") == 0.5


# What is refused


@pytest.mark.parametrize("settings", [{"max_run_cost": "none"}], indirect=True)
@pytest.mark.parametrize("why", ["AccessDeniedException", "ThrottlingException", None])
def test_unknown_price_is_named_and_the_file_or_a_setting_can_override(
    half: Half, market: Market, why: str | None
) -> None:
    if why:
        market.fails["GetProducts"] = why
    else:
        market.products.clear()
    definition = document("m7g.large")
    message = refused(definition=definition)
    assert "prices of m7g.large, on-demand are unknown" in message
    assert why is None or f"(AWS's price list could not be read: {why})" in message
    assert "must be set in the file" in message
    assert half.started() == {}
    quote = estimate("m7g.large")
    assert "of m7g.large, on-demand are unknown" in quote["problems"][0]["problem"]
    assert ("AWS's price list could not be read: " + (why or "") in quote["warnings"]) is (why is not None)
    assert post(definition=definition, set={"accept_unknown_prices": True})[0] == 202
    assert post(definition=definition | {"prices": {"m7g.large": 1}}, key="k2")[0] == 202


def test_a_run_beyond_its_budget_is_refused(half: Half) -> None:
    expected = estimate()["expected"]
    message = refused(definition=document(budget=round(expected - 0.01, 6)))
    assert f"must be at least what it is expected to cost, ${expected:.2f}" in message
    assert half.started() == {}
    status, run = post(definition=document(budget=expected + 0.01))
    assert status == 202
    assert run["estimate"]["budget"] == pytest.approx(expected + 0.01)
    assert run["estimate"]["expected"] == expected


@pytest.mark.parametrize("settings", [{"max_run_cost": 5}], indirect=True)
def test_a_run_beyond_the_operators_limit_is_refused_whatever_its_file_says(half: Half, market: Market) -> None:
    free = {"c7g.large": 0, "gp3": 0}
    large = document(prices=free, budget=1, fleets={"drivers": {"count": 500, "instance_type": "c7g.large"}})
    message = refused(definition=large)
    assert "fleets are expected to cost $5." in message
    assert "must be expected to cost at most $5.00: the deployment's setting troop:max_run_cost is $5.00" in message
    assert "troop:max_run_cost=6" in message, "how to change it"
    assert half.started() == {}
    small = estimate()
    assert (small["problems"], small["warnings"]) == ([], [])
    del market.products["m7g.large"]
    unpriced = document("m7g.large", accept_unknown_prices=True)
    message = refused(definition=unpriced)
    assert "prices of m7g.large, on-demand are unknown" in message
    assert "troop:max_run_cost=none" in message, "what has no price is held back by no limit"
    assert post(definition=unpriced | {"prices": {"m7g.large": 0.1}})[0] == 202


@pytest.mark.parametrize("settings", [{"max_run_cost": 0.04}], indirect=True)
def test_a_run_that_can_cost_more_than_the_operators_limit_says_so(half: Half) -> None:
    quote = estimate()
    assert quote["problems"] == []
    assert quote["warnings"] == [
        f"it can cost ${-(-quote['most'] * 100 // 1) / 100:.2f}: Troop stops it once it has cost more than "
        "troop:max_run_cost, $0.04"
    ]


@pytest.mark.parametrize("settings", [{"instance_types": ["c7g.*", "m7g.xlarge"]}], indirect=True)
def test_types_that_the_operator_does_not_allow_are_refused(half: Half) -> None:
    assert estimate("c7g.large")["problems"] == []
    message = refused(definition=document("m7g.large"))
    assert "fleets.drivers.instance_type is 'm7g.large': must be a type that the deployment allows" in message
    assert "troop:instance_types is c7g.*, m7g.xlarge" in message
    assert "troop:instance_types=c7g.*,m7g.xlarge,m7g.large" in message
    assert half.started() == {}


@pytest.mark.parametrize("settings", [{"max_nodes_total": 5}], indirect=True)
def test_all_open_runs_together_have_no_more_nodes_than_the_operator_allows(half: Half) -> None:
    first, second = post(key="k1")[1]["run"], post(key="k2")[1]["run"]
    message = refused(key="k3")
    assert "fleets need 2 nodes: must be at most 1 beside the 4 of other open runs and fleets" in message
    assert all(f"{run} holds 2" in message for run in (first, second))
    assert "the deployment's setting troop:max_nodes_total is 5" in message
    assert [one["where"] for one in estimate()["problems"]] == ["fleets"]
    assert len(half.started()) == 2
    assert post(key="k1")[0] == 200, "a repetition needs no room"
    half.runs.close(first, RunStatus.STOPPED, None, half.account.clock.moment)
    assert "at most 1 beside" in refused(key="k3"), "its nodes may still be there"
    for _ in range(2):
        half.runs.conclude(first, half.account.clock.moment)
    assert post(key="k3")[0] == 202
    assert "at most 1 beside" in refused(key="k4"), "what was taken back twice is free once"


@pytest.mark.parametrize(
    ("settings", "earlier"), [({"max_nodes_total": 3}, 0), ({"max_nodes_total": 5}, 1)], indirect=["settings"]
)
def test_only_one_of_two_concurrent_runs_has_the_last_nodes(
    half: Half, monkeypatch: pytest.MonkeyPatch, earlier: int
) -> None:
    other: list[int] = []
    assert all(post(key=f"before-{number}")[0] == 202 for number in range(earlier))
    with calls(monkeypatch, before("TransactWriteItems", lambda: other.append(post(key="other")[0]))):
        status, body = post(key="mine")
    assert (other[0], status) == (202, 400)
    assert f"at most 1 beside the {2 + 2 * earlier} of other open runs" in body["message"]
    assert len(half.started()) == 1 + earlier


def test_small_quota_refuses_and_unknown_quota_admits(half: Half, market: Market) -> None:
    market.quotas[STANDARD] = 3.0  # two nodes of two virtual processors
    message = refused(set={"accept_unknown_prices": True})
    assert "need 4 vCPUs of on-demand Standard" in message
    assert "at most 3: the account's quota L-1216C47A" in message
    (quota,) = (quote := estimate(accept_unknown_prices=True))["quotas"]
    assert (quota["code"], quota["vcpus"], quota["without_spot"], quota["value"]) == (STANDARD, 4, 4, 3.0)
    assert (quote["region"], quote["seconds"]) == ("eu-central-1", sum(cell["seconds"] for cell in quote["cells"]))
    assert 0 < quote["merge"]["seconds"] < quote["merge"]["most"] == 150
    market.quotas.clear()
    market.default_quotas[STANDARD] = 2.0
    assert "at most 2: the account's quota L-1216C47A" in refused(set={"accept_unknown_prices": True})
    market.default_quotas.clear()
    assert estimate()["problems"] == []
    market.fails["GetServiceQuota"] = "AccessDeniedException"
    assert estimate()["warnings"] == ["the account's quotas could not be read: AccessDeniedException"]
    assert post()[0] == 202


def test_estimate_counts_both_sides_of_a_comparison_and_warns_of_a_weak_one(half: Half) -> None:
    alone, points = estimate(), estimate(baseline={"parameters.threads": 8})
    assert points["seconds"] > alone["seconds"]
    assert any(one.startswith("a single pair has no interval") for one in points["warnings"])
    assert any(one.startswith("nothing restores the state") for one in points["warnings"])
    cells = estimate(baseline={"fleets.drivers.count": 1}, repetitions=2, expires_after="168h", sizes={})
    assert [cell["label"] for cell in cells["cells"]] == [
        *("fleets.drivers.count=2", "fleets.drivers.count=1"),
        *("fleets.drivers.count=2, #2", "fleets.drivers.count=1, #2"),
    ]
    assert not any("pair" in one for one in cells["warnings"])


def test_late_price_is_a_warning_and_blocks_nothing(
    half: Half, market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(price_book, "wait", lambda futures, timeout: (set(), set(futures)))
    quote = estimate("c5.large")
    assert "some prices could not be read in time: try again" in quote["warnings"]
    assert price_of(quote, "c5.large") is None


# The price list


def book(region: str, market: Market, account: Account) -> PriceBook:
    served = region_of_list(region)
    lists = PriceList(client("pricing"), region) if served else None
    return PriceBook(region, lists, account.ec2, PriceCache(account.dynamodb, "State"), account.clock)


@pytest.mark.parametrize(
    ("region", "served"),
    [
        ("us-west-2", "us-east-1"),
        ("ca-central-1", "us-east-1"),
        ("sa-east-1", "us-east-1"),
        ("eu-north-1", "eu-central-1"),
        ("ap-southeast-5", "ap-south-1"),
        ("cn-north-1", "cn-northwest-1"),
        ("us-gov-west-1", None),
        ("us-iso-east-1", None),
    ],
)
def test_where_the_list_is_served(region: str, served: str | None) -> None:
    assert region_of_list(region) == served


def test_region_without_a_price_list_is_named(account: Account, market: Market) -> None:
    prices, why = book("us-gov-west-1", market, account).read(["c7g.large"], {}, ["gp3"])
    assert (prices.on_demand, prices.volumes) == ({}, {})
    assert why == ["there is no price list for us-gov-west-1"]


def test_chinas_list_is_in_yuan(account: Account, market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {"c7g.large": instance_products("c7g.large", "0.5", "CNY")}
    monkeypatch.setattr(
        PriceList, "_products", lambda self, filters: map(json.loads, listed.get(filters.get("instanceType", ""), []))
    )
    prices, _ = book("cn-north-1", market, account).read(["c7g.large"], {}, [])
    assert (prices.currency, prices.on_demand, prices.cross_zone_gb) == ("CNY", {"c7g.large": D("0.5")}, None)


def offer(length: str, hourly: str, upfront: str | None, kind: str = "standard", unit: str = "Hrs") -> dict[str, Any]:
    dimensions = {"a": {"unit": unit, "pricePerUnit": {"USD": hourly}}}
    if upfront is not None:
        dimensions["b"] = {"unit": "Quantity", "pricePerUnit": {"USD": upfront}}
    attributes = {"LeaseContractLength": length, "OfferingClass": kind, "PurchaseOption": "some"}
    return {"priceDimensions": dimensions, "termAttributes": attributes}


def test_cheapest_standard_reservation_of_each_term_counts(account: Account, market: Market) -> None:
    entry = json.loads(product("EUC1-BoxUsage:c7g.large", "0.0775"))
    offers = [
        offer("1yr", "0.0500", None),  # no upfront payment
        offer("1yr", "0.0000000000", "420"),  # 0.0479 an hour
        offer("1yr", "0.0100", None, kind="convertible"),
        offer("3yr", "0.0200", "262.8"),  # 0.03 an hour
        offer("3yr", "0.0320", None),
        offer("5yr", "0.0010", None),
        offer("3yr", "a lot", None),
        offer("3yr", "0.0000000000", "0"),
        {},
    ]
    entry["terms"]["Reserved"] = {str(n): one for n, one in enumerate(offers)}
    market.products["c7g.large"] = [json.dumps(entry)]
    for _ in range(2):  # as it is read, and as it is cached
        prices, _why = book("eu-central-1", market, account).read(["c7g.large", "c5.large"], {}, [])
        assert prices.committed == {
            "c7g.large": {"1y": Committed(D(0), upfront=D(420)), "3y": Committed(D("0.02"), upfront=D("262.8"))}
        }
        assert prices.committed_hour("c7g.large", "3y") == D("0.03")
        assert prices.on_demand["c7g.large"] == D("0.0775")
    assert len(market.requests["GetProducts"]) == 2


def test_volume_price_has_capacity_iops_tiers_and_throughput(account: Account, market: Market) -> None:
    tiers = [("io2", "0.1"), ("io2.tier2", "0.07"), ("io2.tier3", "0.05")]
    market.products["io2"] = [product("EUC1-EBS:VolumeUsage.io2", "0.149", "GB-month")]
    market.products["io2"] += [product(f"EUC1-EBS:VolumeP-IOPS.{name}", price) for name, price in tiers]
    for _ in range(2):  # as it is told, and as it is kept
        prices, _why = book("eu-central-1", market, account).read([], {}, ["gp3", "io2"])
        gp3, io2 = prices.volumes["gp3"], prices.volumes["io2"]
        assert (gp3.gib, gp3.iops, gp3.throughput_mib) == (D("0.0952"), (D("0.006"),), D("0.0476"))
        assert (io2.gib, io2.iops, io2.throughput_mib) == (D("0.149"), (D("0.1"), D("0.07"), D("0.05")), None)
    assert len(market.requests["GetProducts"]) == 2


def test_price_of_an_endpoint_is_of_an_hour_in_one_zone(account: Account, market: Market) -> None:
    for _ in range(2):  # as it is told, and as it is kept
        prices, why = book("eu-central-1", market, account).read([], {}, [], endpoint=True)
        assert (prices.endpoint, prices.currency, why) == (D("0.012"), "USD", [])
    assert len(market.requests["GetProducts"]) == 1
    assert book("eu-central-1", market, account).read([], {}, [])[0].endpoint is None


def test_io1_has_another_name_in_the_list(account: Account, market: Market) -> None:
    listed = [("EBS:VolumeUsage.piops", "0.149"), ("EBS:VolumeP-IOPS.piops", "0.078")]
    market.products["io1"] = [product(f"EUC1-{usage}", price) for usage, price in listed]
    market.products["st1"] = [product("EUC1-EBS:VolumeUsage.st1", "0.054", "GB-Mo")]
    prices, _why = book("eu-central-1", market, account).read([], {}, ["io1", "st1"])
    assert (prices.volumes["io1"].gib, prices.volumes["io1"].iops) == (D("0.149"), (D("0.078"),))
    assert (prices.volumes["st1"].gib, prices.volumes["st1"].iops) == (D("0.054"), ())


@pytest.mark.parametrize(
    "products",
    [
        [],
        ["{}"],
        [product("EUC1-DedicatedUsage:c7g.large", "1")],
        [product("EUC1-BoxUsage:c7g.large", "0.0000000000")],
        [product("EUC1-BoxUsage:c7g.large", "a lot")],
    ],
)
def test_a_list_that_says_nothing(account: Account, market: Market, products: list[str]) -> None:
    market.products["c7g.large"] = products
    assert PriceList(client("pricing"), "eu-central-1").instance("c7g.large") is None
    assert price_list.PriceList(client("pricing"), "eu-central-1").volume("io2") is None
    market.products["VpcEndpoint"] = products
    assert price_list.PriceList(client("pricing"), "eu-central-1").endpoint() is None
    assert GP3


# What it has cost


TERMS_OF_CELL = CellTerms(D(1), D(2), 1, D("0.02"), D(0))


def begin(bench: Bench, account: Account, budget: Decimal) -> None:
    """A run with a budget, in the place of the one that there is."""
    money = Money(prices={"c7g.large": Price(D(1), D("0.5")), "c5.large": Price(D(10))})
    known = Prices(volumes={"gp3": VolumePrice(D("0.08"), (D("0.005"),))}).replaced_by(money)
    account.clock.forward(seconds=1)
    bench.admit(key="money", terms=Terms(known, HOURLY, budget, {CELL: TERMS_OF_CELL}))


def test_nodes_and_volumes_are_on_record_with_what_their_price_depends_on(bench: Bench, account: Account) -> None:
    bench.gathered()
    resources = bench.runs.resources.get_all(bench.run)
    (server, *_) = [r for r in resources if r.kind is Kind.INSTANCE and r.role == "servers"]
    assert (server.instance_type, server.purchase) == ("c7g.large", "on-demand")
    assert (server.zone or "").startswith("eu-central-1")
    assert server.started_at is not None
    disks = {
        (r.role, r.disk and (r.disk.type, r.disk.size_gib, r.disk.iops)) for r in resources if r.kind is Kind.VOLUME
    }
    assert ("servers", ("gp3", 100, 4000)) in disks


def test_a_cell_that_does_not_fit_the_budget_is_not_launched(bench: Bench, account: Account) -> None:
    begin(bench, account, budget=D("0.99"))
    bench.open()
    with pytest.raises(Exception, match=r"the budget of \$0.99 does not allow it: \$0.99 is left") as refusal:
        bench.launch()
    assert type(refusal.value).__name__ == "LaunchImpossibleError", "which the workflow does not try again"
    assert bench.groups() == {}


def test_a_cell_that_fits_is_launched(bench: Bench, account: Account) -> None:
    begin(bench, account, budget=D(1))
    bench.launched()
    assert len(bench.groups()) == 2
    assert account.clock.moment - bench.cell().phases["launch"] < timedelta(minutes=1)
