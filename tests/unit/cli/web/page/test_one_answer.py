"""The state of a unit is the same wherever people read it: command, page and widgets show what the API gives.

Each row of the guards' table of cases is a unit; its outlook goes through the API's model to every surface.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import expect

from cli.client.api import Answer
from cli.shared import show
from tests.unit.chaos.build import facts, group
from tests.unit.chaos.guard_cases import CASES, ONLY_TICKS
from tests.unit.cli.conftest import FakeApi, Run
from tests.unit.cli.web.page.conftest import Looking
from tests.unit.dashboard.build import frame, unit_view, units_view
from tests.unit.dashboard.test_page import Tree
from troop.chaos.api.unit_models import OutlookOut
from troop.chaos.guards import REASONS
from troop.chaos.outlook import NO_GROUPS, Outlook, outlook
from troop.dashboard.page import page as widget
from troop.dashboard.views import UnitRow, View
from troop.shared import moments


def _outlooks() -> dict[str, Outlook]:
    """The outlook of each case, and of units without a case, by the unit's name."""
    named = {f"{case.reason}-{number}": (facts(**case.refused), case.refused) for number, case in enumerate(CASES)}
    named |= {
        "open": (facts(), {}),
        "nobody": (replace(facts(), groups=()), {}),
        "payments": (facts(groups=(group("payments", size=0),)), {}),
        "never": (facts(item={"probability": 0}), {"item": {"probability": 0}}),
    }
    return {name: outlook(unit_facts, changes.get("item") or {}) for name, (unit_facts, changes) in named.items()}


OUTLOOKS = _outlooks()
EMPTY = "\N{EN DASH}"
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


def test_every_reason_has_a_row() -> None:
    open_reasons = {case.reason for case in CASES if case.guard not in ONLY_TICKS}
    secret_reasons = {case.reason for case in CASES if case.guard in ONLY_TICKS} - open_reasons
    assert {one.reason for one in OUTLOOKS.values()} == {None, NO_GROUPS, *REASONS} - secret_reasons


def _documents() -> dict[str, Mapping[str, Any]]:
    return {name: OutlookOut.model_validate(one).model_dump(mode="json") for name, one in OUTLOOKS.items()}


def _fill(api: FakeApi) -> None:
    for name, document in _documents().items():
        api.add(name, outlook=document)


def _counts() -> dict[str, int]:
    return dict(Counter(one.state for one in OUTLOOKS.values()))


def _takes_part(one: Outlook) -> str:
    return "yes" if one.takes_part else f"no ({one.state})"


def test_the_command(run: Run, ok: Callable[..., Any], api: FakeApi) -> None:
    _fill(api)
    rows = {line.split()[0]: line for line in run("groups").stdout.splitlines()}
    for name, one in OUTLOOKS.items():
        text = run("group", name).stdout
        for shown in (rows[name], text):
            assert f" {_takes_part(one)} " in f"{shown} ".replace("\n", " "), name
            assert show.timed(one.why) in shown, name
        moment = _documents()[name]["next_possible"]
        possible = show.moment(moment) if moment else "not while this is so"
        assert re.search(f"next possible +{re.escape(possible)}", text), name
    for path, rest in (("benchmarks", "runs"), ("fleets", "fleets")):
        api.refusals["GET", path] = [Answer(200, {rest: [], "cursor": None})]
    assert ok("status")["units"] == _counts()


def _read(view: View) -> str:
    return " ".join(Tree(widget(view, frame())).text.split())


@pytest.mark.parametrize("name", OUTLOOKS)
def test_the_widgets(name: str) -> None:
    one = OUTLOOKS[name]
    listed = units_view()
    row = UnitRow(name, [], listed.rows[0].policy, listed.rows[0].state, one)
    alone = replace(unit_view(name), outlook=one)
    for view in (replace(listed, rows=[row]), alone):
        assert f"{one.state} {one.why}".rstrip() in _read(view)
    possible = frame().when(one.next_possible) if one.next_possible else "not while this is so"
    assert f"Next possible hit: {possible}" in _read(alone)
    assert row.is_left_out is not one.takes_part


def _on_the_page(why: str) -> str:
    """Returns a text of the API with its moments as a British browser shows them."""
    return MOMENT.sub(lambda match: f"{moments.parse(match[0]):%d %b %Y, %H:%M:%S} UTC", why)


def test_the_page(looking: Looking) -> None:
    looking.world.units.clear()
    _fill(looking.world)
    page = looking.go("units")
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator("tbody tr")).to_have_count(len(OUTLOOKS))
    rows = {row[0].strip(): row for row in (r.split("\t") for r in page.locator("tbody tr").all_inner_texts())}
    for name, one in OUTLOOKS.items():
        shown = (rows[name][2].strip(), rows[name][-1].strip())
        assert shown == (_takes_part(one), _on_the_page(one.why) or EMPTY), name
    looking.server.overview.forget()  # it may have read units for the first view
    looking.go("overview")
    for state, number in _counts().items():
        expect(page.get_by_role("link", name=re.compile(f"^{number} {state}$"))).to_be_visible()
    for name, one in OUTLOOKS.items():
        looking.go(f"units/{name}")
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
        expect(page.locator(".headline .badge")).to_have_text("takes part" if one.takes_part else one.state)
        if one.why:
            expect(page.locator("main")).to_contain_text(_on_the_page(one.why))
        skipped = page.get_by_role("region", name="Next hit").get_by_text("None while the unit is skipped")
        expect(skipped).to_have_count(0 if one.takes_part else 1)
        if not one.takes_part and one.next_possible:
            expect(skipped).to_contain_text(", so not before ")
