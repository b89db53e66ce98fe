"""What a standing fleet may cost, before it starts and when it grows."""

from __future__ import annotations

import pytest

from tests.unit.account.asking import ask, get
from tests.unit.account.market import Market, instance_products
from tests.unit.account.standing import FILE, Stand


@pytest.mark.parametrize("settings", [{"max_run_cost": "none"}], indirect=True)
def test_a_fleet_without_a_price_or_beyond_its_budget_is_refused(stand: Stand, market: Market) -> None:
    definition = {**FILE, "fleets": {"workers": {"count": 2, "instance_type": "m7g.large"}}}
    del market.products["m7g.large"]
    status, body = stand.ask_up(definition)
    assert (status, "prices of m7g.large, on-demand are unknown" in body["message"]) == (400, True)
    assert stand.ask_up(definition, set={"accept_unknown_prices": True}, key="accepted")[0] == 202
    by_hand = {**definition, "prices": {"m7g.large": 1}}
    status, body = stand.ask_up({**by_hand, "budget": 16}, key="dear")
    assert (status, "budget is 16: must be at least what it is expected to cost, $16." in body["message"]) == (
        400,
        True,
    )
    status, answer = stand.ask_up({**by_hand, "budget": 17}, key="fits")
    assert (status, answer["estimate"]["budget"]) == (202, 17)


@pytest.mark.parametrize("settings", [{"queues": True, "max_run_cost": 100}], indirect=True)
def test_a_fleet_without_nodes_needs_the_prices_of_those_to_come(stand: Stand, market: Market) -> None:
    market.products["gp3"] = []
    scale = {"backlog_per_node": 2, "min": 0, "max": 10}
    workers = {"count": 0, "instance_type": "c7g.large", "scale": scale}
    status, body = stand.ask_up({**FILE, "queue": True, "fleets": {"workers": workers}})
    assert (status, "prices of workers, storage gp3 are unknown" in body["message"]) == (400, True), body


def test_an_estimate_of_a_fleet_stores_and_starts_nothing(stand: Stand) -> None:
    body = {"definition": {**FILE, "budget": 0.01}, "files": {"setup.sh": ""}}
    status, answer = ask("POST", "/fleets/estimate", body)
    assert status == 200
    (cell,) = answer["cells"]
    assert (cell["seconds"], cell["items"][0]["what"]) == (8 * 3600, "workers, c7g.large, on-demand")
    assert [problem["loc"] for problem in answer["problems"]] == [["budget"]]
    assert get("/fleets")["fleets"] == []
    assert (
        ask("POST", "/fleets/estimate", {"definition": {**FILE, "buckets": ["other"]}, "files": {"setup.sh": ""}})[0]
        == 403
    )
    assert ask("POST", "/fleets/estimate", {"definition": {**FILE, "phases": []}})[0] == 400


def test_spot_fleet_needs_no_on_demand_price(stand: Stand) -> None:
    workers = {"count": 2, "instance_type": "m7g.large", "purchase": "spot"}
    definition = {**FILE, "fleets": {"workers": workers}, "prices": {"m7g.large": {"spot": 0.5}}}
    answer = ask("POST", "/fleets/estimate", {"definition": definition, "files": {"setup.sh": ""}})[1]
    assert (answer["problems"], answer["warnings"]) == (
        [],
        [
            "with the file's prices, it is expected to cost $8.03, at most $8.53; limits, budget and alarms use "
            "AWS's prices"
        ],
    )
    assert 8 < answer["expected"] < answer["most"] < 9


@pytest.mark.parametrize(
    ("settings", "budget", "message"),
    [
        ({"max_run_cost": 500}, 25, "its budget is $25.00"),
        ({"max_run_cost": 25}, 100, "the deployment's setting troop:max_run_cost is $25.00"),
        ({"max_run_cost": 25}, None, "troop:max_run_cost=33"),
    ],
    indirect=["settings"],
)
def test_a_fleet_grows_only_within_its_budget_and_the_operators_limit(
    stand: Stand, market: Market, budget: int | None, message: str
) -> None:
    market.products["m7g.large"] = instance_products("m7g.large", "1")
    workers = {"count": 2, "instance_type": "m7g.large"}
    run = stand.up(definition={**FILE, "fleets": {"workers": workers}, **({"budget": budget} if budget else {})})
    status, body = ask("PATCH", f"/fleets/{run}", {"count": 4})
    assert status == 400
    assert "count is 4: must be at most 3: as requested, it is expected to cost $32." in body["message"]
    assert message in body["message"]
    assert ask("PATCH", f"/fleets/{run}", {"count": 3})[0] == 200
    stand.account.clock.forward(hours=4)
    assert ask("PATCH", f"/fleets/{run}", {"count": 6})[0] == 200, "half of the time is left"
    assert ask("PATCH", f"/fleets/{run}", {"count": 7})[0] == 400
    assert ask("PATCH", f"/fleets/{run}", {"count": 1})[0] == 200, "smaller it may always be"
