"""`troop bench history`: its table, groupings, document, page, change points and exit code."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.bench import history
from cli.bench.history import Period
from cli.client.api import Answer
from cli.shared.errors import Exit
from tests.unit.cli.conftest import FakeApi, Run
from troop.bench.records.history import Figure, Series, Value
from troop.bench.records.line import Figures, Line, Values
from troop.shared import codec

BERLIN = ZoneInfo("Europe/Berlin")
FIRST = datetime(2026, 10, 1, 1, tzinfo=UTC)


def figures(rate: float, baseline: float | None = None, operation: str = "read") -> Figures:
    each = [(Values(one, 12.0, 11.0, 101.5, 0.25, 0.001),) for one in (rate, baseline) if one is not None]
    return Figures("n2", "measure", "", "drivers", operation, *each)


def line(run: str, at: datetime, *every: Figures, **more: Any) -> Line:
    return Line(run, "reads", at, None, "SUCCEEDED", "0.1.0", figures=every, **more)


MONDAY = line("run-1", datetime(2026, 11, 16, 23, 30, tzinfo=UTC), figures(400.0))
TUESDAY = line("run-2", datetime(2026, 11, 17, 8, 10, tzinfo=UTC), figures(500.0))


def nights(count: int, level: Callable[[int], float], **more: Any) -> list[Line]:
    """Returns the lines of nights with a baseline; ``level`` is the ratio of a night, which has noise of 0.3 %."""
    source = random.Random(5)
    lines = []
    for night in range(count):
        at, day = FIRST + timedelta(days=night), source.gauss(1000, 100)
        one = figures(day * level(night) * source.gauss(1, 0.003), day)
        lines.append(line(f"{at:%Y%m%d-%H%M%S}-{night:08x}", at, one, baseline={"parameters.version": "1.2"}, **more))
    return lines


SLOWER = nights(40, lambda night: 0.95 if night >= 20 else 1.0)
LAST_GOOD, FIRST_BAD = "20261020-010000-00000013", "20261021-010000-00000014"
MINUS = "\N{MINUS SIGN}"


def on_record(api: FakeApi, *lines: Line) -> None:
    newest_first = [json.loads(json.dumps(codec.to_document(one), default=float)) for one in lines][::-1]
    api.refusals["GET", "benchmarks/history"] = [Answer(200, {"lines": newest_first, "cursor": None, "malformed": []})]


def printed(run: Run, *more: str) -> list[str]:
    result = run("bench", "history", "reads", "--zone", "Europe/Berlin", *more)
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.stdout.splitlines() if line.strip()]


_moments = st.integers(1_577_836_800, 1_893_456_000).map(lambda second: datetime.fromtimestamp(second, UTC))


@given(st.lists(st.tuples(_moments, st.floats(0, 1e9)), min_size=1), st.sampled_from(Period))
def test_each_value_is_in_one_group_between_its_ends(values: list[tuple[datetime, float]], period: Period) -> None:
    every = tuple(Value(line("r", at), value) for at, value in values)
    groups = history.groups(Series(Figure.THROUGHPUT, None, ("",) * 5, {}, every), period, BERLIN)
    assert sum(group.runs for group in groups) == len(values)
    assert all(group.lowest <= group.median <= group.highest for group in groups)
    assert min(group.lowest for group in groups) == min(value for _, value in values)
    assert max(group.highest for group in groups) == max(value for _, value in values)


def test_table_has_a_line_for_each_run_the_oldest_first(run: Run, api: FakeApi) -> None:
    on_record(api, MONDAY, TUESDAY)
    shown = printed(run)
    assert shown[0] == "reads: throughput, operations per second"
    assert shown[1] == "n2 · measure · drivers · read"
    assert shown[3].startswith("Tue 2026-11-17 00:30 CET run-1 400/s ")
    assert shown[4].startswith("Tue 2026-11-17 09:10 CET run-2 500/s ")
    assert len(shown[3].rpartition(" ")[2]) < len(shown[4].rpartition(" ")[2]), "bars are as long as the values"
    assert shown[5] == "No change points: they need 10 runs."


def test_bars_of_runs_with_a_baseline_are_ratios_to_it(run: Run, api: FakeApi) -> None:
    """A faster day is not a longer bar."""
    days = (line("run-1", MONDAY.at, figures(500.0, 1000.0)), line("run-2", TUESDAY.at, figures(400.0, 400.0)))
    on_record(api, *(replace(one, baseline={"parameters.version": "1.2"}) for one in days))
    slow, fast = (len(one.rpartition(" ")[2]) for one in printed(run)[3:5])
    assert slow * 2 == fast


def test_history_is_one_request(run: Run, api: FakeApi) -> None:
    on_record(api, *SLOWER)
    printed(run)
    assert [(path, query) for _, path, query in api.calls] == [
        ("benchmarks/history", {"name": "reads", "limit": "400"})
    ]


def test_only_the_newest_runs_are_printed(run: Run, api: FakeApi) -> None:
    on_record(api, *SLOWER)
    shown = printed(run)
    assert shown[1].endswith("(the newest 30 of 40 runs)")
    assert sum(" 2026-1" in line and "█" in line for line in shown) == 30


def test_runs_are_grouped_in_the_time_zone_of_the_request(run: Run, api: FakeApi) -> None:
    on_record(api, MONDAY, TUESDAY)
    assert printed(run, "--by", "hour")[-2].startswith("09:00 1 500/s 500/s 500/s")
    on_record(api, MONDAY, TUESDAY)
    assert printed(run, "--by", "weekday")[-2].startswith("Tuesday 2 450/s 400/s 500/s")


def test_change_point_is_of_the_ratio_and_names_what_changed(run: Run, api: FakeApi) -> None:
    on_record(api, *(replace(one, versions={"image": "b" if n >= 20 else "a"}) for n, one in enumerate(SLOWER)))
    shown = " ".join(printed(run))
    assert re.search(
        rf"read, against version=1\.2: (1\.00\d|0\.99\d) up to {LAST_GOOD}, 0\.95\d from {FIRST_BAD} on", shown
    )
    assert f"from {FIRST_BAD} on: {MINUS}4.9 %, worse, from Wed 2026-10-21 03:00 CEST on" in shown
    assert "changed there: image a → b" in shown


def test_first_bad_run_ends_with_an_exit_code(run: Run, api: FakeApi) -> None:
    on_record(api, *SLOWER)
    result = run("bench", "history", "reads", "--fail-on-change")
    assert result.exit_code == Exit.WORSE == 16
    assert f"{FIRST_BAD} is the first bad run" in " ".join(result.stderr.split())
    on_record(api, *SLOWER)
    assert run("bench", "history", "reads").exit_code == 0, "only with the option"


@pytest.mark.parametrize(
    "level",
    [
        pytest.param(lambda night: 1.0, id="noise"),
        pytest.param(lambda night: 1.05 if night >= 20 else 1.0, id="better"),
        pytest.param(lambda night: 0.95 if 20 <= night < 35 else 1.0, id="made up"),
    ],
)
def test_no_bad_run_is_no_failure(run: Run, api: FakeApi, level: Callable[[int], float]) -> None:
    on_record(api, *nights(50, level))
    assert run("bench", "history", "reads", "--fail-on-change").exit_code == 0


@pytest.mark.parametrize(
    ("since", "code"),
    [
        (FIRST_BAD, Exit.WORSE),
        ("2026-10-21", Exit.WORSE),
        ("2026-10-22", Exit.OK),
        ("20261021-010000-00000015", Exit.OK),
        ("yesterday", Exit.USAGE),
    ],
)
def test_accepted_change_is_before_since(run: Run, api: FakeApi, since: str, code: Exit) -> None:
    on_record(api, *SLOWER)
    result = run("bench", "history", "reads", "--fail-on-change", "--since", since)
    assert result.exit_code == code
    assert ("worse" in result.stdout) == (code is Exit.WORSE)


def test_json_has_values_changes_and_both_groupings(run: Run, api: FakeApi) -> None:
    on_record(api, MONDAY, TUESDAY)
    document = json.loads(run("bench", "history", "reads", "--zone", "UTC", "--figure", "p99", "--json").stdout)
    assert (document["benchmark"], document["figure"], document["time_zone"]) == ("reads", "p99", "UTC")
    (one,) = document["series"]
    assert (one["measurement"], one["baseline"], one["changes"]) == (["n2", "measure", "drivers", "read"], {}, [])
    assert one["values"][0] == {
        "run": "run-1", "at": "2026-11-16T23:30:00.000Z", "value": 101.5, "ratio": None, "version": ""
    }  # fmt: skip
    assert [group["period"] for group in one["by_hour"]] == ["08:00", "23:00"]
    assert [(group["period"], group["runs"]) for group in one["by_weekday"]] == [("Monday", 1), ("Tuesday", 1)]


def test_json_has_the_runs_around_a_change_point(run: Run, api: FakeApi) -> None:
    on_record(api, *SLOWER)
    (one,) = json.loads(run("bench", "history", "reads", "--json").stdout)["series"]
    (change,) = one["changes"]
    assert (change["run"], change["last_before"]) == (FIRST_BAD, LAST_GOOD)
    assert (change["before"], change["after"]) == (pytest.approx(1.0, rel=0.01), pytest.approx(0.95, rel=0.01))
    assert (change["is_worse"], change["lasts"], change["beside"]) == (True, True, [])
    assert one["baseline"] == {"parameters.version": "1.2"}


def test_page_shows_names_of_others_as_text(run: Run, api: FakeApi, tmp_path: Path) -> None:
    attack = figures(1.0, operation="</script><script>alert(1)</script>")
    on_record(api, line("run-1", datetime(2026, 11, 16, 8, tzinfo=UTC), figures(1.0), attack))
    printed(run, "--html", str(tmp_path / "history.html"))
    page = (tmp_path / "history.html").read_text(encoding="utf-8")
    assert "alert(1)" in page
    assert "<script>alert(1)" not in page
    assert "Mon 2026-11-16 09:00 CET" in page
    on_record(api, MONDAY)
    assert "cannot be written" in run("bench", "history", "reads", "--html", str(tmp_path)).stderr


def test_page_charts_operations_together_from_five_runs_on(run: Run, api: FakeApi, tmp_path: Path) -> None:
    path = tmp_path / "history.html"
    runs = [
        line(f"run-{n}", datetime(2026, 11, 10 + n, 8, tzinfo=UTC), figures(1.0), figures(1.0, operation="scan"))
        for n in range(5)
    ]
    on_record(api, *runs[:4])
    printed(run, "--html", str(path))
    few = path.read_text(encoding="utf-8")
    assert "appear from five runs on" in few
    assert 'id="runs-chart"' not in few
    on_record(api, *runs)
    printed(run, "--html", str(path))
    page = path.read_text(encoding="utf-8")
    assert 'id="runs-chart"' in page
    assert set(re.findall(r'"topic": ?"([^"]+)"', page)) == {"n2 · measure · drivers"}, "both operations in one chart"
    assert "Times are in the zone Europe/Berlin" in page


def test_page_lists_change_points_with_their_runs(run: Run, api: FakeApi, tmp_path: Path) -> None:
    on_record(api, *SLOWER)
    printed(run, "--html", str(tmp_path / "history.html"))
    page = (tmp_path / "history.html").read_text(encoding="utf-8")
    table = page[page.index('id="changes"') : page.index('id="runs"')]
    assert FIRST_BAD in table
    assert f"{MINUS}4.9\N{NO-BREAK SPACE}%" in table


def test_page_of_a_long_history_has_rows_of_the_newest_runs_only(run: Run, api: FakeApi, tmp_path: Path) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    every = [figures(1.0, operation=f"o{n}") for n in range(50)]
    on_record(api, *(line(f"run-{n:03d}", at + timedelta(hours=n), *every) for n in range(40)))
    printed(run, "--html", str(tmp_path / "history.html"))
    page = (tmp_path / "history.html").read_text(encoding="utf-8")
    assert page.count("<td>run-039</td>") == 50
    assert page.count("<td>run-020</td>") == 50
    assert page.count("<td>run-019</td>") == 0
    assert "--json</code> prints all" in page


def test_without_a_figure_it_says_so(run: Run, api: FakeApi) -> None:
    on_record(api, line("r", datetime(2026, 11, 16, 8, tzinfo=UTC)))
    result = run("bench", "history", "reads")
    assert (result.exit_code, "no recorded run of 'reads'" in result.stderr) == (Exit.FAILED, True)
    assert "IANA" in run("bench", "history", "reads", "--zone", "Nowhere").stderr
