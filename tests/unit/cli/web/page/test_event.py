"""Tests the page in a browser: the view of one termination, its timeline, its hypothesis and its verdict."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from cli.client.api import Answer
from tests.unit.chaos.build import NOT_OVER, injected, injection, replaced, running
from tests.unit.chaos.build import at as stored_at
from tests.unit.cli.conftest import answered, event
from tests.unit.cli.web.page.conftest import HIDDEN, SETTLED, Looking
from tests.unit.cli.web.page_world import TARGETS, termination
from troop.chaos.events import Event, Status
from troop.chaos.injection import EndRequest
from troop.shared import moments

DAY = "2026-11-20"


def at(seconds: float) -> str:
    """Returns the moment so many seconds after the termination."""
    return moments.iso(moments.parse(f"{DAY}T10:00:00.000Z") + timedelta(seconds=seconds))


def opened(looking: Looking, one: dict[str, Any]) -> Page:
    looking.world.events = [one]
    page = looking.go(f"events/{one['id']}")
    page.reload()
    expect(page.get_by_role("heading", name="Termination of i-0abc")).to_be_visible()
    return page


def course(looking: Looking, **more: Any) -> list[str]:
    """Returns the steps of an event as its view shows them."""
    claim: dict[str, Any] = {"at": at(-1.5), "rolled": 0.1234, "probability": 0.2, "terminated_at": None}
    return steps(opened(looking, event("web", DAY, **(claim | {"recovery_seconds": None} | more))))


def steps(page: Page) -> list[str]:
    return [" ".join(step.split()) for step in page.locator(".course li").all_inner_texts()]


def panel(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name)


def picture(page: Page) -> Locator:
    return panel(page, "Course").get_by_role("img")


def box(one: Locator) -> FloatRect:
    place = one.bounding_box()
    assert place
    return place


def end(one: Locator) -> float:
    return box(one)["x"] + box(one)["width"]


def test_an_event_of_an_earlier_version_shows_the_times_that_are_known(looking: Looking) -> None:
    request = {"terminated_at": at(0), "recover_by": at(1800)}
    whole = {"recovered_at": at(60), "recovery_seconds": 60.0}
    other = {"replacement": {"instance_id": "i-0new", "summary": "i-0new has the same image", "differences": []}}
    assert course(looking, status="RECOVERED", **request, **whole, **other) == [
        "Claimed 20 Nov 2026, 09:59:58 UTC \u22121.5 s",
        "AWS accepted the request 20 Nov 2026, 10:00:00 UTC +0.0 s",
        "Recovered 20 Nov 2026, 10:01:00 UTC +1m 00s",
    ]
    page = looking.page
    expect(page.get_by_text("rolled 0.1234 for 2026-11-20, below the probability 0.2")).to_be_visible()
    expect(page.locator("main")).to_contain_text("recovered in 1m 00s.")
    expect(panel(page, "Course")).to_contain_text("The stages of this recovery were not recorded.")
    expect(panel(page, "Hypothesis")).to_contain_text("An earlier version claimed this event, without a hypothesis.")
    expect(panel(page, "Verdict")).to_contain_text("None was recorded.")
    expect(picture(page)).to_have_accessible_name("Terminated: 0 s; Recovered: +1m 00s")
    ends = [course(looking, status=status, **more)[-1] for status, more in (("TERMINATED", request), ("ABANDONED", {}))]
    assert ends == ["Recovered not yet: it has time until 20 Nov 2026, 10:30:00 UTC", "Terminated not by Troop"]
    expect(page.get_by_role("heading", name="Verdict")).to_have_count(0)  # nothing was terminated
    assert course(looking, status="LEASHED") == []
    expect(page.get_by_text("The deployment was leashed, so nothing was hit.")).to_be_visible()


def test_each_stage_has_its_time_and_what_is_not_known_is_named(looking: Looking) -> None:
    stages = termination("web")["stages"]
    other = {"source": "classic", "at": None}
    page = opened(
        looking, termination("web", stages={**stages, "running": None, "healthy": [*stages["healthy"], other]})
    )
    assert steps(page) == [
        "Claimed 20 Nov 2026, 10:00:00 UTC +0.0 s",
        "AWS accepted the request 20 Nov 2026, 10:00:00 UTC +0.0 s",
        "Noticed by Auto Scaling 20 Nov 2026, 10:00:02 UTC +2.5 s",
        "Replacement launched 20 Nov 2026, 10:00:04 UTC +4.0 s",
        "Replacement running not known",
        "Replacement in service 20 Nov 2026, 10:00:42 UTC +42.0 s",
        "Healthy in web-tg 20 Nov 2026, 10:01:03 UTC +1m 03s",
        "Healthy in classic not known",
        "Recovered 20 Nov 2026, 10:01:05 UTC +1m 05s, or earlier, after +1m 01s",
        "Verdict given 20 Nov 2026, 10:04:07 UTC +4m 07s",
    ]
    expect(picture(page)).to_have_accessible_name(
        "Terminated: 0 s; Noticed by Auto Scaling: +2.5 s; Replacement launched: +4.0 s; "
        "Replacement running: not known; Replacement in service: +42.0 s; Healthy in web-tg: +1m 03s; "
        "Healthy in classic: not known; Recovered: +1m 05s; Must recover within: 2m 00s; web-5xx: OK; slow: OK; "
        "End of the watch: +4m 05s"
    )


def test_the_picture_draws_stages_bounds_limit_and_the_end_of_the_watch(looking: Looking) -> None:
    drawn = picture(opened(looking, termination("web")))
    noticed, launched, running, service, healthy = (
        drawn.locator(f"g.{kind} rect") for kind in ("noticed", "launched", "running", "in_service", "healthy")
    )
    for one, following in ((noticed, launched), (launched, running), (running, service), (service, healthy)):
        assert end(one) == pytest.approx(box(following)["x"], abs=2)
    recovered = drawn.locator("g.recovered rect")
    expect(recovered).to_have_count(2)
    expect(recovered.nth(1)).to_have_class("unsure")
    assert box(recovered.nth(0))["x"] == pytest.approx(box(noticed)["x"], abs=2)
    assert end(recovered.nth(0)) == pytest.approx(box(recovered.nth(1))["x"], abs=2)
    limit, watched = drawn.locator("line.limit"), drawn.locator("line.verdict")
    assert end(recovered.nth(1)) < box(limit)["x"] < box(watched)["x"]
    bands = drawn.locator("g.alarm rect")
    expect(bands).to_have_count(2)
    assert end(bands.first) == pytest.approx(box(watched)["x"], abs=2)
    expect(looking.page.get_by_text("after the recovery, time is drawn tighter")).to_be_visible()


def test_a_claim_that_an_alarm_has_stopped_has_its_hypothesis_and_no_verdict(looking: Looking) -> None:
    ended: dict[str, Any] = {
        "terminated_at": None,
        "recover_by": None,
        "recovered_at": None,
        "recovery_seconds": None,
        "stages": None,
    }
    ended |= {"detail": "alarm disk went off", "abort": {"at": at(1), "alarm": "disk"}, "verdict": None}
    page = opened(looking, termination("web", status="ABANDONED", **ended))
    assert steps(page) == [
        "Claimed 20 Nov 2026, 10:00:00 UTC",
        "Alarm disk went off 20 Nov 2026, 10:00:01 UTC",
        "Terminated not by Troop",
    ]
    expect(panel(page, "Hypothesis")).to_contain_text("disk")
    expect(panel(page, "Verdict")).to_have_count(0)
    expect(page.get_by_role("img")).to_have_count(0)


def test_a_limit_far_behind_everything_else_is_an_arrow(looking: Looking) -> None:
    one = termination("web")
    one["hypothesis"]["recovery_within"] = 3600
    drawn = picture(opened(looking, one))
    expect(drawn.locator("g.limit .mark")).to_be_visible()
    expect(drawn.locator("line.limit")).to_have_count(0)
    wide = end(drawn.locator("g.alarm rect").first) - box(drawn.locator("g.alarm rect").first)["x"]
    assert wide > box(drawn)["width"] / 2


def broken() -> dict[str, Any]:
    """Returns an event whose alarm went off, with a second alarm without data, and a third one that was deleted."""
    alarms = [
        {
            "name": "slow",
            "states": [{"at": at(0), "state": "INSUFFICIENT_DATA"}, {"at": at(9), "state": "OK"}],
            "doubt": "",
        },
        {"name": "gone", "states": [], "doubt": "it was deleted in the watched span"},
        {
            "name": "web-5xx",
            "states": [{"at": at(n), "state": state} for n, state in ((0, "OK"), (31, "ALARM"), (90, "OK"))],
            "doubt": "",
        },
    ]
    one = termination("web", abort={"at": at(31), "alarm": "web-5xx"})
    one["verdict"] |= {"value": "BROKEN", "why": "the alarm web-5xx was in ALARM at 10:00:31Z", "alarms": alarms}
    return one


def test_an_alarm_that_went_off_is_in_the_picture_and_in_words(looking: Looking) -> None:
    page = opened(looking, broken())
    bands = picture(page).locator("g.alarm")
    expect(bands.nth(0).locator("rect")).to_have_count(3)  # the one that went off comes first
    expect(bands.nth(0).locator("rect").nth(1)).to_have_class("ALARM")
    assert box(bands.nth(0).locator(".ALARM"))["height"] > box(bands.nth(0).locator(".OK").first)["height"]
    expect(bands.nth(1)).to_contain_text("its states are not known")
    expect(bands.nth(2).locator("rect").nth(0)).to_have_class("INSUFFICIENT_DATA")
    cross = picture(page).locator("g.abort .mark")
    assert box(cross)["x"] < box(bands.nth(0).locator(".ALARM"))["x"] + 6
    names = [" ".join(one.split()) for one in panel(page, "Verdict").locator(".alarms li").all_inner_texts()]
    assert names == [
        "slow: no data, then OK at 10:00:09 UTC.",
        "gone: its states are not known. it was deleted in the watched span.",
        "web-5xx: OK, then ALARM at 10:00:31 UTC, then OK at 10:01:30 UTC.",
    ]
    expect(panel(page, "Verdict")).to_contain_text("the alarm web-5xx was in ALARM at 10:00:31Z.")
    expect(panel(page, "Verdict")).to_contain_text("the termination itself cannot be undone")
    expect(panel(page, "Hypothesis")).to_contain_text("disk")
    went = next(n for n, step in enumerate(steps(page)) if step.startswith("Alarm web-5xx went off"))
    assert steps(page)[went + 1].startswith("Replacement in service")
    page.get_by_role("link", name="web", exact=True).last.click()
    expect(page.get_by_role("heading", name="web", level=1)).to_be_visible()


def test_a_unit_without_alarms_says_that_its_recovery_decides(looking: Looking) -> None:
    one = termination("web", settles_at=None)
    one["hypothesis"] |= {"success_alarms": [], "recovery_within": None}
    one["verdict"] |= {"alarms": [], "until": at(65)}
    page = opened(looking, one)
    expect(panel(page, "Hypothesis")).to_contain_text("within the recovery timeout of 30m 00s")
    expect(panel(page, "Hypothesis")).to_contain_text("none: the recovery alone decides")
    expect(panel(page, "Verdict")).to_contain_text("The unit had no success alarms.")
    expect(picture(page)).to_have_accessible_name(re.compile(r"Recovered: \+1m 05s$"))


def test_moments_in_texts_are_in_the_time_zone_of_the_browser(looking: Looking) -> None:
    detail = f"capacity 3 of 3 in service; alarm disk went off at {at(1)}: further chaos is stopped"
    page = opened(looking, termination("web", detail=detail))
    shown = detail.replace(at(1), "20 Nov 2026, 10:00:01 UTC")
    expect(page.get_by_text(f"{shown}.")).to_be_visible()
    expect(looking.go("events").get_by_role("row", name=re.compile(re.escape(shown)))).to_be_visible()


def test_a_failed_launch_is_in_the_words_of_auto_scaling(looking: Looking) -> None:
    failure = "Launching a new EC2 instance. Status Reason: We currently do not have sufficient capacity."
    page = opened(looking, termination("web", launch_failure=failure))
    expect(page.get_by_text(f"The last launch failed: {failure}")).to_be_visible()
    lost = termination("web", status="UNRECOVERED", recovered_at=None, recovery_seconds=None, verdict=None)
    page = opened(looking, lost | {"detail": "capacity 1 of 2 in service", "launch_failure": failure})
    expect(page.locator(".problem")).to_have_text(f"capacity 1 of 2 in service. The last launch failed: {failure}")
    expect(picture(page)).to_have_accessible_name(re.compile("Recovered: not in time"))


def in_flight() -> dict[str, Any]:
    one = termination(
        "web", status="TERMINATED", recovered_at=None, recovery_seconds=None, settles_at=None, verdict=None
    )
    one["stages"] = {"noticed": at(2.5), "launched": None, "running": None, "in_service": None, "healthy": []}
    return one


def test_an_event_under_load_leads_to_the_run_that_requested_it(looking: Looking) -> None:
    looking.world.events = [event("web", rolled=None, benchmark="20261120-120000-00000001")]
    page = looking.go("events/2026-11-20~web")
    reason = page.get_by_text("requested it while it loaded the unit: there was no roll.")
    expect(reason.get_by_role("link", name="20261120-120000-00000001")).to_have_attribute(
        "href", "#/runs/20261120-120000-00000001"
    )


def test_an_event_in_flight_is_live_until_it_has_its_verdict(timed: Looking) -> None:
    page = opened(timed, in_flight())
    expect(page.locator("#liveness")).to_contain_text("Live: updated at")
    expect(page.locator(".course li", has_text="Replacement launched")).to_contain_text("not yet")
    expect(panel(page, "Verdict")).to_contain_text("It follows the recovery.")
    expect(picture(page)).to_have_accessible_name(re.compile("Recovered: not yet; .*; Now: "))
    timed.world.events = [termination("web", verdict=None)]
    page.clock.fast_forward(3_000)
    expect(panel(page, "Verdict")).to_contain_text("Expected at 20 Nov 2026, 10:04:05 UTC")
    expect(page.locator("#news")).to_have_text("web recovered.")
    page.get_by_role("link", name="web", exact=True).focus()
    timed.world.events = [termination("web")]
    page.clock.fast_forward(30_000)
    expect(panel(page, "Verdict").locator(".badge")).to_have_text("held")
    expect(page.locator("#news")).to_have_text("web recovered, held.")
    expect(page.get_by_role("link", name="web", exact=True)).to_be_focused()
    expect(page.locator("#liveness")).to_be_empty()
    before = len(timed.world.calls)
    page.clock.fast_forward(60_000)
    page.evaluate("fetch('/icon.svg').then((answer) => answer.text())")  # responses to earlier requests have arrived
    assert not timed.has_called(f"events/{DAY}~web", 1, before)


def test_a_hidden_or_failing_event_in_flight_is_not_live(timed: Looking) -> None:
    page = opened(timed, in_flight())
    expect(page.locator("#liveness")).to_contain_text("Live: updated at")
    page.evaluate(HIDDEN, True)
    expect(page.locator("#liveness")).to_have_text("Not live while the page is hidden.")
    before = len(timed.world.calls)
    page.clock.fast_forward(60_000)
    page.evaluate("fetch('/icon.svg').then((answer) => answer.text())")
    assert not timed.has_called(f"events/{DAY}~web", 1, before)
    timed.world.refusals["GET", f"events/{DAY}~web"] = [Answer(500, {"statusCode": 500, "message": "it broke"})]
    page.evaluate(HIDDEN, False)
    expect(page.locator("#liveness")).to_contain_text("Not live: it broke. Next attempt in 6 s.")
    expect(page.locator(".course li").first).to_be_visible()
    timed.world.refusals.clear()
    page.clock.fast_forward(6_000)
    expect(page.locator("#liveness")).to_contain_text("Live: updated at")


def test_the_picture_fits_a_phone(looking: Looking) -> None:
    looking.page.set_viewport_size({"width": 390, "height": 800})
    one = broken()
    one["stages"]["healthy"].append({"source": f"{TARGETS}/{'long-name-' * 3}x/1", "at": at(64)})
    page = opened(looking, one)
    page.evaluate(SETTLED)
    names = picture(page).locator("g > text:first-of-type")
    bars = picture(page).locator("g.in_service rect")
    assert box(bars)["y"] >= box(picture(page).locator("g.in_service text").first)["y"] + 8  # the name is above its bar
    assert all(end(name) <= end(picture(page)) - 60 for name in names.all())


def opened_fault(looking: Looking, stored: Event) -> Page:
    one = answered(stored)
    looking.world.events = [one]
    page = looking.go(f"events/{one['id']}")
    page.reload()
    expect(page.get_by_role("heading", name=f"Fault latency on {stored.instance_id}")).to_be_visible()
    return page


def test_a_lasting_fault_shows_its_probes_and_the_proof_of_its_end(looking: Looking) -> None:
    page = opened_fault(looking, injected(injection=injection(packages=("jq",))))
    assert steps(page) == [
        "Claimed 20 Nov 2026, 20:00:00 UTC \u22125.0 s",
        "Probe before: it answered 20 Nov 2026, 20:00:04 UTC \u22121.0 s",
        "Injected 20 Nov 2026, 20:00:05 UTC +0.0 s",
        "Command over 20 Nov 2026, 20:01:08 UTC +1m 03s, Success, which proves nothing",
        "Proven to be over 20 Nov 2026, 20:01:11 UTC +1m 06s, a probe found no trace of it",
        "Recovered 20 Nov 2026, 20:01:14 UTC +1m 09s, the group was whole when latency was over",
        "Verdict given 20 Nov 2026, 20:01:17 UTC +1m 12s",
    ]
    expect(picture(page)).to_have_accessible_name(
        "Injected: 0 s; Fault: +1m 03s; Proven to be over: +1m 06s; Recovered: +1m 09s; Must recover within: 5m 00s"
    )
    main = page.locator("main")
    assert "erminat" not in main.inner_text(), "nothing was terminated"
    expect(main).to_contain_text("latency delay=200 jitter=10 sources=ALL direction=egress seconds=60")
    expect(main).to_contain_text("jq")
    expect(main).to_contain_text(", recovered: the group was whole when latency was over.")
    looking.go("events")
    expect(page.get_by_role("row", name=re.compile("latency was whole"))).to_be_visible()


def test_a_fault_that_runs_says_that_its_end_is_not_proven(looking: Looking) -> None:
    request = EndRequest(stored_at("12:00:40"), "alarm web-errors went off")
    stuck = NOT_OVER | {"end_request": request, "unproven": "the instance is protected"}
    page = opened_fault(looking, running(injection=injection(**stuck)))
    shown = steps(page)
    assert shown[3:] == [
        "Asked to end 20 Nov 2026, 20:00:40 UTC +35.0 s, alarm web-errors went off",
        "Command over not yet",
        "Not proven to be over act now: the instance is protected",
        "Proven to be over not yet",
        "Recovered not yet",
    ]
    expect(page.locator(".badges")).to_contain_text("running")
    expect(page.locator("#liveness")).to_contain_text("Live")


def test_a_fault_that_was_replaced_shows_both_parts(looking: Looking) -> None:
    page = opened_fault(looking, replaced())
    shown = " | ".join(steps(page))
    assert "Last probe: present" in shown
    assert "a probe found qdiscs 1, before 0, rollbacks 2, before 0" in shown
    assert "Terminated by Troop: the end was not proven 20 Nov 2026, 20:02:45 UTC +2m 40s" in shown
    assert "Recovered 20 Nov 2026, 20:05:05 UTC +5m 00s, 2m 20s after the termination" in shown
    expect(picture(page)).to_have_accessible_name(re.compile("Terminated by Troop: .2m 40s; Noticed by Auto Scaling"))


def test_a_claim_whose_probe_objects_injects_nothing(looking: Looking) -> None:
    refused = running(
        status=Status.ABANDONED, attempted_at=None, detail="the instance has no tc", injection=injection(**NOT_OVER)
    )
    page = opened_fault(looking, refused)
    assert steps(page)[-1] == "Injected not injected"
    expect(page.locator("main")).to_contain_text("the instance has no tc.")
