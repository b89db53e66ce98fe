"""HTML for dashboards: all of it escaped, nothing that CloudWatch would take out, small enough, in both themes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.chaos.build import NOT_OVER, TARGETS, at, injected, injection, replaced, running
from tests.unit.dashboard import build
from tests.unit.dashboard.build import frame, looked_at, sourced
from troop.bench.records.record import RunStatus
from troop.chaos.events import Event, Status, Watch
from troop.chaos.facts import Switch, UnitState
from troop.chaos.injection import EndRequest
from troop.chaos.self_halt import SelfHalt
from troop.chaos.stages import HealthySince, Stages
from troop.chaos.verdict import Verdict, VerdictValue
from troop.dashboard.console import Console
from troop.dashboard.page import LARGEST, TooLargeError, message, page
from troop.dashboard.views import RunRow, RunsView, View, latest
from troop.dashboard.widget_request import parse
from troop.shared.choice import Choice

ALLOWED = {
    *("style", "div", "p", "span", "b", "bdi", "br", "h4", "code", "a", "cwdb-action", "details", "summary"),
    *("form", "input", "select", "option", "button", "table", "thead", "tbody", "tr", "th", "td"),
}
VOID = {"br", "input"}
HOSTILE = '<img src=x onerror="alert(1)">\'"</code></style><script>alert(1)</script>&amp;{{ 7*7 }}'


class Tree(HTMLParser):
    """Tags with their attributes, the text outside of style, what stands in each action; refuses what is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.actions: list[tuple[str, str]] = []
        self.text, self.open = "", list[str]()
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "cwdb-action":
            self.actions.append((self.tags[-1][0], ""))
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["cwdb-action"]:
            self.actions[-1] = (self.actions[-1][0], self.actions[-1][1] + data)
        elif self.open[-1:] != ["style"]:
            self.text += data


def hostile(text: str) -> Iterator[View]:
    """Every view, with the text wherever people can put it."""
    events = [build.event(Status.RECOVERED, text, group=text, instance_id=text, zone=text, method=text, detail=text)]
    yield replace(build.events_view(unit=text[:200] or "x"), events=events, position=text)
    rows = [build.row(text, text, detail=text, group=text, instance_id=text)]
    yield replace(build.decisions_view(reason=text[:200] or "x"), rows=rows, counts=[(text, 1)])
    yield replace(build.unit_decisions_view(), rows=rows, position=text)
    every: dict[str, Any] = dict.fromkeys(("reason", "owner", "calendar"), sourced(text, text))
    every |= {"method": sourced((Choice("crash"), Choice(text)), text)}
    out: dict[str, Any] = {"takes_part": sourced(False, text), "until": sourced(date(2026, 12, 1), text)}
    units = [build.unit_row(text, **every, **out), build.unit_row(text, UnitState(unrecovered=text))]
    yield replace(build.units_view(), rows=[*units, build.unit_row(text, problems=(text, text))], position=text)
    yield build.unit_view(text[:200] or "x", stop_alarms=sourced((text,), text), **every)
    yield replace(build.unit_view(), unit=text, groups=[build.group(text)], policy=build.policy(problems=(text,)))
    run = build.run(RunStatus.FAILED, name=text, reason=text)
    yield RunsView(build.request("runs"), True, [RunRow(run, 0)], text)
    yield build.live_view(name=text, text=text)


@settings(max_examples=15, deadline=None)
@given(
    st.text(
        st.sampled_from("<>&\"'/=`{}% \n\x00\u202e\u2028abc") | st.characters(exclude_categories=["Cs"]),
        min_size=1,
        max_size=40,
    )
)
def test_whatever_people_write_is_text(text: str) -> None:
    for view in hostile(text if text.strip() else HOSTILE):
        for width in (None, 300):
            tree = Tree(page(view, frame(looked_at(width=width))))
            assert {tag for tag, _ in tree.tags} <= ALLOWED
            assert not [name for _, attributes in tree.tags for name in attributes if name.startswith("on")]
            for _, parameters in tree.actions:
                parse(json.loads(parameters))


def test_markup_in_a_name_stays_text() -> None:
    for view in hostile(HOSTILE):
        text = page(view, frame())
        assert "<script" not in text
        assert "<img" not in text
        assert "49" not in Tree(text).text.replace("7*7", "")
    assert '<img src=x onerror="alert(1)">' in Tree(page(next(hostile(HOSTILE)), frame())).text


def test_characters_that_a_screen_does_not_show_are_replaced() -> None:
    """So that a name cannot be made to read as another one."""
    text = Tree(
        page(replace(build.events_view(), events=[build.event(Status.RECOVERED, "web\u202egnp")]), frame())
    ).text
    assert "\u202e" not in text
    assert "web\N{REPLACEMENT CHARACTER}gnp" in text


@pytest.mark.parametrize("name", build.views())
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [None, 300, 1200])
def test_every_click_calls_the_same_function_with_parameters_it_takes(name: str, dark: bool, width: int | None) -> None:
    tree = Tree(page(build.views()[name], frame(looked_at(dark=dark, width=width))))
    for tag, attributes in tree.tags:
        if tag == "cwdb-action":
            assert attributes == {"action": "call", "display": "widget", "endpoint": build.ARN}
    assert {before for before, _ in tree.actions} <= {"button"}, "an action belongs to the element just before it"
    assert all(attributes["type"] == "button" for tag, attributes in tree.tags if tag == "button"), "no form is sent"
    for _, parameters in tree.actions:
        parse(json.loads(parameters))


@pytest.mark.parametrize("name", build.views())
def test_both_themes_differ_by_a_class_alone(name: str) -> None:
    light, dark = (page(build.views()[name], frame(looked_at(dark=dark))) for dark in (False, True))
    assert 'class="troop-w"' in light
    assert dark == light.replace('class="troop-w"', 'class="troop-w troop-dark"')


def test_a_narrow_widget_says_beside_each_value_what_it_is() -> None:
    wide, narrow = (page(build.units_view(), frame(looked_at(width=width))) for width in (1200, 380))
    assert "<th>probability</th>" in wide
    assert '<span class="troop-k">probability</span>' in narrow
    assert "<th" not in narrow


def test_the_largest_page_is_still_below_what_lambda_can_answer() -> None:
    """Fifty rows of the longest names, all of them quotation marks: nobody can hide a widget by the names he gives."""
    longest = '"' * 256
    every: dict[str, Any] = dict.fromkeys(("reason", "owner", "calendar"), sourced(longest, longest))
    every |= {"method": sourced((Choice(longest),), longest)}
    units = [build.unit_row(longest, groups=5, takes_part=sourced(False, longest), **every)] * 50
    events = [build.event(Status.RECOVERED, longest, group=longest, detail=longest * 4)] * 50
    for view in (replace(build.units_view(), rows=units), replace(build.events_view(), events=events)):
        assert len(json.dumps(page(view, frame(looked_at(width=300))))) < 5_000_000


def test_oversized_page_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troop.dashboard.page.LARGEST", 1000)
    assert LARGEST > 1000
    with pytest.raises(TooLargeError, match="set a smaller limit"):
        page(build.events_view(), frame())


def test_no_presigned_link_and_no_link_but_to_the_console() -> None:
    """Whoever sees a dashboard could pass one on."""
    for view in build.views().values():
        for tag, attributes in Tree(page(view, frame())).tags:
            if tag == "a" and (address := attributes.get("href")):
                assert address.startswith("https://eu-central-1.console.aws.amazon.com/")
                assert "region=eu-central-1" in address
                assert not re.search("X-Amz|Signature|Expires", address)
                assert attributes["rel"] == "noopener noreferrer"


@pytest.mark.parametrize(
    ("partition", "region", "host"),
    [
        ("aws", "us-east-1", "us-east-1.console.aws.amazon.com"),
        ("aws-cn", "cn-north-1", "cn-north-1.console.amazonaws.cn"),
        ("aws-us-gov", "us-gov-west-1", "us-gov-west-1.console.amazonaws-us-gov.com"),
    ],
)
def test_groups_are_in_the_console_of_their_partition_and_region(partition: str, region: str, host: str) -> None:
    address = Console.from_arn(f"arn:{partition}:lambda:{region}:123456789012:function:f").group("a/b #1;view=x")
    assert address is not None
    assert address.startswith(f"https://{host}/ec2/home?region={region}#AutoScalingGroupDetails:id=")
    name = address.partition("id=")[2].removesuffix(";view=details")
    assert (unquote(name), ";" in name, "#" in name) == ("a/b #1;view=x", False, False)


def test_a_run_that_has_ended_leads_to_its_report() -> None:
    view = build.runs_view()
    links = [a["href"] or "" for tag, a in Tree(page(view, frame())).tags if tag == "a" and "href" in a]
    ended = [row.run.run for row in view.rows if row.run.ended_at]
    assert ended
    assert [link.partition("prefix=")[2] for link in links] == [f"runs%2F{run}%2Freport.html" for run in ended]
    assert all(link.partition("?")[0].endswith("/s3/object/troop-results") for link in links)
    assert "/s3/object/" not in page(view, replace(frame(), results=None))


def test_where_the_console_is_not_known_a_group_is_a_name() -> None:
    assert Console.from_arn("arn:aws-iso:lambda:us-iso-east-1:1:function:f").group("web") is None
    text = page(build.events_view(), frame(arn="arn:aws-iso:lambda:us-iso-east-1:1:function:f"))
    assert "href" not in text
    assert "web-v12" in text


def test_latest_decision_of_each_unit_and_every_termination_are_shown() -> None:
    rows = [
        build.row("a", "already-today"),
        build.row("b"),
        build.row("a", "terminate", 15),
        build.row("b", minutes=15),
    ]
    assert [(row.unit, row.reason) for row in latest(rows)] == [
        ("a", "already-today"),
        ("b", "not-rolled"),
        ("a", "terminate"),
    ]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("events", ["60 s so far", "143 s", "on demand", "UNRECOVERED", "2026-11-20 23:45", "leashed: decides"]),
        ("decisions", ["not-rolled 1,412", "month-end closing", "2026-11-21", "tokyo (Asia/Tokyo)", "newest 1,000"]),
        (
            "units",
            [
                "tag of web-v1",
                "opted out by item until 2026-12-01: month-end closing",
                "unrecovered: did not recover from",
                "malformed: attribute probability",
                "protected: ",
            ],
        ),
        ("unit", ["With probability 0.05 per business day", "Next possible hit:", "probability: — → 0.05"]),
        ("runs", ["58 of 60 a cell", "$12.50 expected", "$11.94", "plus items without a price", "opens the console"]),
        (
            "fleets",
            [
                "498 of 500",
                "spot-workers",
                "2d 22h so far",
                "fail workers: 484 ok, 1 warn, 5 fail, 3 silent, 2 draining",
            ],
        ),
        ("fleets", ["fail latency: p99 is above the limit 5 nodes, such as i-1", "Act now: look at the log"]),
        (
            "fleets",
            ["warn disk: 81 % full 1 node, such as i-3", "To do: delete old files", "2 repairs in the last hour"],
        ),
        (
            "fleets",
            ["workers do not grow: its work needs 600 nodes", "8,120 of 10,000 tasks done, 1,800 waiting, 78 in work"],
        ),
        ("fleets", ["2 dead", "the oldest waits for 3m 05s; SQS may have deleted tasks, which count as done"]),
        (
            "live",
            [
                "12,345.7",
                "0.2",
                "120 ms",
                "3m 15s left, with 15s of the warm-up",
                "71 % 2 of 3 nodes report",
            ],
        ),
        ("live-none", ["No benchmark runs now."]),
        ("live-off", ["This deployment does not run benchmarks: its setting troop:benchmarks is false."]),
        ("runs-off", ["This deployment does not run benchmarks: its setting troop:benchmarks is false."]),
        ("events-none", ["No events yet."]),
    ],
)
def test_page_has_its_text(name: str, says: list[str]) -> None:
    text = " ".join(Tree(page(build.views()[name], frame(looked_at()))).text.split())
    for words in says:
        assert words in text


def test_events_have_their_stages_and_verdict() -> None:
    after = [build.NOW - timedelta(minutes=9) + timedelta(seconds=s) for s in range(200)]
    stages = Stages(after[4], after[9], None, after[71], (HealthySince(TARGETS, after[190]), HealthySince("classic")))
    broken = Verdict(VerdictValue.BROKEN, "alarm errors went off", after[199], after[0], after[199])
    recovery: dict[str, Any] = {
        "terminated_at": after[0],
        "recovered_at": after[190],
        "watch": Watch(short_at=after[187]),
        "stages": stages,
        "settles_at": after[199],
    }
    view = replace(
        build.events_view(verdict="BROKEN"),
        events=[
            build.event(Status.RECOVERED, "web", 9, verdict=broken, **recovery),
            build.event(Status.RECOVERED, "db", 9, **recovery),
            build.event(Status.RECOVERED, "old"),
        ],
    )
    html = page(view, frame(looked_at()))
    text = " ".join(Tree(html).text.split())
    assert (
        "187 to 190 sBROKEN alarm errors went off noticed after 4 s, launched after 9 s, running not known, "
        "in service after 71 s, healthy in web after 190 s, healthy in classic not known" in text
    )
    assert "187 to 190 sverdict from 23:40 on noticed" in text
    assert text.count("noticed") == 2, "an event of an earlier version has no stages"
    assert '<option value="BROKEN" selected>' in html


def test_a_deployment_that_halted_itself_says_when_and_why() -> None:
    halt = SelfHalt(build.NOW - timedelta(minutes=6), "3 causes broke units within an hour")
    for view in (build.events_view(), build.units_view()):
        text = Tree(page(replace(view, switch=Switch(True, leashed=True, itself=halt)), frame(looked_at()))).text
        assert "halted itself: no hits 2026-11-20 23:40: 3 causes broke units" in " ".join(text.split())
        assert "resume" in text


def test_a_sentence_is_escaped_too() -> None:
    assert "&lt;b&gt;" in message("<b>", looked_at())


def test_unrecovered_unit_is_described_in_words() -> None:
    text = page(build.units_view(), frame())
    assert "from its hit of 2026-11-18" in text
    assert "2026-11-18#payments" not in text


def test_old_figures_are_marked() -> None:
    assert "figures are" not in page(build.live_view(44), build.frame())
    assert "figures are 1m 15s old" in page(build.live_view(75), build.frame())


def _rows(*events: Event) -> str:
    return " ".join(Tree(page(replace(build.events_view(), events=events), frame())).text.split())


def test_a_lasting_fault_says_what_it_is_and_how_its_end_is_proven() -> None:
    text = _rows(injected())
    assert "latency delay=200 jitter=10 sources=ALL direction=egress seconds=60" in text
    assert "proven over after 66 s: a probe found no trace of it" in text
    assert "was whole" in text, "it had nothing to recover from"
    assert "noticed" not in text, "nothing replaces an instance that stays"
    assert "terminated" not in text


def test_a_fault_without_a_proof_says_when_it_ends() -> None:
    request = EndRequest(at("12:00:40"), "chaos was halted")
    text = _rows(running(injection=injection(**NOT_OVER | {"end_request": request})))
    assert "RUNNING" in text
    assert "asked to end: chaos was halted; ends by 20:01, not yet proven over" in text
    stuck = running(injection=injection(**NOT_OVER | {"unproven": "the instance is protected"}))
    assert "not proven over, act now: the instance is protected" in _rows(stuck)


def test_an_instance_that_was_replaced_has_its_stages_from_its_termination() -> None:
    text = _rows(replaced())
    assert "proven over after 175 s: the instance was terminated" in text
    assert "noticed after 5 s, launched after 10 s" in text
    assert "136 to 140 s" in text


def test_faults_of_a_policy_and_the_command_that_sets_them() -> None:
    faults = (Choice("crash"), Choice("latency", (("delay", "300"),)))
    text = Tree(page(build.unit_view("web", method=sourced(faults)), frame())).text
    assert "crash, latency delay=300" in text
    assert "'method=crash, latency delay=300'" in text
