"""Pages in a real browser: drawn, chosen from, dark, on a phone, and on paper."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Page, Request

from cli.bench import history as bench_history
from tests import accessibility
from tests.patience import PAGE_PATIENCE_MS, eventually
from tests.unit.report import sample_comparisons as comparisons
from tests.unit.report import sample_failures as failing
from tests.unit.report import sample_reports as samples
from tests.unit.report.sample_cells import changed
from troop.bench.records.history import Figure, histories
from troop.bench.records.line import Figures, Line, Values
from troop.report import failures
from troop.report.assets import chart_script
from troop.report.comparison import Comparison
from troop.report.document import Report
from troop.report.html import comparison_page, history_page, report_page

Opened = Callable[..., Page]


def history() -> dict[str, Any]:
    """Returns a history of 40 nights with a baseline. One of two measurements becomes slower when the image changes."""
    source, first = random.Random(5), datetime(2026, 10, 1, 1, tzinfo=UTC)
    lines = []
    for night in range(40):
        pairs = {
            "read": 1000 * (0.95 if night >= 20 else 1) * source.gauss(1, 0.003),
            "scan": 1000 * source.gauss(1, 0.01),
        }
        every = [
            Figures("n3", "measure", "", "drivers", name, (Values(rate),), (Values(1000.0),))
            for name, rate in pairs.items()
        ]
        lines.append(
            Line(
                f"run-{night:02d}",
                "reads",
                first + timedelta(days=night),
                None,
                "SUCCEEDED",
                "0.1.0",
                version=f"c{night}",
                versions={"image": "ami-2<b>" if night >= 20 else "ami-1"},
                baseline={"parameters.version": "1.2"},
                figures=tuple(every),
            )
        )
    figure = Figure.THROUGHPUT
    return bench_history.page_values("reads", figure, "UTC", UTC, histories(lines, figure), "")


SAMPLES: dict[str, Callable[[], Report | Comparison | dict[str, Any]]] = {
    "study": samples.study,
    "small study": lambda: samples.study(steps=(3, 6), threads=(50,), repetitions=2),
    "single": samples.single,
    "hostile": samples.hostile,
    "against": samples.against,
    "sweep": samples.sweep,
    "tiers": samples.tiers,
    "crowd": samples.crowd,
    "bare": samples.bare,
    "empty": samples.empty,
    "many": lambda: samples.many(steps=15),
    "compared": comparisons.compared,
    "compared without repetitions": lambda: comparisons.compared(repetitions=1),
    "compared with attacks": comparisons.compared_with_attacks,
    "compared widely": lambda: comparisons.compared(variants=30),
    "nothing in common": comparisons.nothing_in_common,
    "failure": failing.held,
    "failures": failing.tiers,
    "failure of a unit": failing.unit,
    "repeated failure": failing.repeated,
    "unknown failure": failing.unknown,
    "hostile failure": failing.hostile,
    "compared failures": lambda: changed(comparisons.nothing_in_common(), faults=failures.compared(*failing.sides())),
    "history": history,
}


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file for each sample."""
    folder, script = tmp_path_factory.mktemp("pages"), chart_script()
    for name, sample in SAMPLES.items():
        document = sample()
        if isinstance(document, dict):
            page = history_page(document, script)
        else:
            page = report_page(document, script) if isinstance(document, Report) else _compared(name, document, script)
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return folder


def _compared(name: str, comparison: Comparison, script: str) -> str:
    if name == "compared failures":
        return comparison_page(comparison, script, *failing.sides())
    cells = samples.study().cells if name == "compared" else []
    return comparison_page(comparison, script, cells[:6], cells[6:12])


@pytest.fixture(scope="session")
def opened(browser: Browser, pages: Path) -> Opened:
    """Gives the page of a sample, opened once, on a phone or in another width. Console messages, requests and errors
    are in its attribute ``messages``.
    """

    @cache
    def load(name: str) -> Page:
        page = browser.new_page(viewport={"width": 375, "height": 900})
        page.set_default_timeout(PAGE_PATIENCE_MS)
        messages: list[str] = []

        def dismissed(dialog: Dialog) -> None:
            messages.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        def on_request(request: Request) -> None:
            if not request.url.startswith("file:"):
                messages.append(f"request: {request.url}")

        page.on("console", lambda message: messages.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: messages.append(f"error: {error}"))
        page.on("dialog", dismissed)
        page.on("request", on_request)
        page.goto((pages / f"{name}.html").as_uri())
        page.wait_for_selector("html[data-drawn]")
        page.messages = messages  # type: ignore[attr-defined]
        return page

    def open_(name: str, width: int = 375) -> Page:
        page = load(name)
        if page.viewport_size != {"width": width, "height": 900}:
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate(DRAWN)
        return page

    return open_


DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture
def study(opened: Opened) -> Page:
    return opened("study", 1280)


def lines(page: Page, chart: str) -> list[str]:
    """Colours of the lines that a chart has drawn, without its axes."""
    script = """box => [...box.querySelectorAll('svg path[fill=none]')]
        .filter(path => path.getAttribute('stroke-width') === '2' && path.getAttribute('d').length > 20)
        .map(path => path.getAttribute('stroke'))"""
    colours: list[str] = page.locator(chart).evaluate(script)
    return colours


def panel(title: str) -> str:
    return f".for-screen figure:has(figcaption:text-matches('^{title} ')) .drawing"


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_is_drawn_without_a_word_and_asks_for_nothing(opened: Opened, name: str) -> None:
    page = opened(name)
    assert page.messages == []  # type: ignore[attr-defined]
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), "it is wider than a phone"
    boxes = page.locator(".drawing").all()
    assert all(box.locator("svg path").count() for box in boxes)
    assert all(box.get_attribute("aria-label") for box in boxes)
    assert bool(boxes) == (name not in ("bare", "empty", "nothing in common"))


def test_each_chart_has_a_line_for_each_of_its_series(study: Page) -> None:
    assert len(lines(study, "#scaling-chart")) == 2
    assert study.locator("#scaling-chart svg").inner_html().count("stroke-dasharray") >= 2
    assert len(lines(study, "#latency-chart")) == 6
    assert len(set(lines(study, "#latency-chart"))) == 6
    assert len(lines(study, panel("Throughput"))) == 3
    assert len(lines(study, panel("Latency"))) == 3  # mean, p50 and p99 of the total
    assert study.locator(panel("Latency")).get_by_text("warm-up").count() == 1
    assert study.locator(".for-screen figure").count() == 7
    assert len(lines(study, panel("CPU"))) == 4
    labels = study.locator("#latency-chart svg text").all_text_contents()
    assert [text for text in labels if text in ("50 %", "90 %", "99 %", "99.9 %")] == ["50 %", "90 %", "99 %", "99.9 %"]


def test_all_roles_have_their_cpu_in_the_first_view(opened: Opened) -> None:
    page = opened("tiers", 1280)
    assert len(set(lines(page, panel("CPU")))) == 5
    labels = page.locator(".for-screen figure", has=page.locator("figcaption", has_text="CPU")).first.locator("label")
    names = labels.evaluate_all("all => all.filter((one) => one.children[0].checked).map((one) => one.innerText)")
    assert names == [f"{role} CPU" for role in samples.TIERS]
    assert labels.all_inner_texts()[:5] == names, "they are the first of the legend"


def test_a_report_starts_with_the_answer_and_one_line_for_each_cause(opened: Opened) -> None:
    page = opened("tiers", 1280)
    answer, warnings = page.locator(".told").bounding_box(), page.locator(".findings > li").all()
    boxes = [one.bounding_box() for one in warnings]
    assert answer
    assert all(box and box["y"] > answer["y"] and box["height"] < 80 for box in boxes)
    assert "Highest throughput" in page.locator(".told").inner_text()
    assert 3 < len(warnings) < 8
    hidden = page.get_by_text("mobile:write (16 operations)").first
    assert not hidden.is_visible()
    page.locator("summary", has_text="Too few operations").press("Enter")
    assert hidden.is_visible()
    box = page.get_by_role("region", name="Results of all cells")
    assert box.evaluate("one => one.scrollWidth <= one.clientWidth"), "the table is clipped"
    page.locator("summary", has_text="Too few operations").press("Enter")


def test_another_cell_is_chosen_by_keyboard(study: Page) -> None:
    before = study.locator(panel("Throughput")).inner_html()
    select = study.get_by_label("Cell", exact=True)
    select.focus()
    select.press("ArrowDown")
    study.wait_for_function(
        "([before]) => document.querySelector('.for-screen .drawing')?.innerHTML.length > 99 && "
        "document.querySelector('.for-screen .drawing').innerHTML !== before",
        arg=[before],
    )
    assert "c002" in (study.locator(panel("Throughput")).get_attribute("aria-label") or "")


def test_lines_are_switched_by_keyboard_and_others_keep_their_colours(study: Page) -> None:
    shown = lines(study, "#latency-chart")
    section = study.locator("section[aria-labelledby=latency]")
    box = section.get_by_role("checkbox", name="c004 n3, threads=200, repetition 1")
    box.focus()
    box.press("Space")
    assert lines(study, "#latency-chart") == [shown[0], *shown[2:]]
    section.get_by_role("checkbox", name="c005 n3, threads=200, repetition 2").press("Space")
    assert sorted(lines(study, "#latency-chart")) == sorted(shown)


def test_in_the_dark_page_and_charts_change_at_once(study: Page) -> None:
    script = "() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    light, drawn = study.evaluate(script), lines(study, "#latency-chart")
    study.emulate_media(color_scheme="dark")
    eventually(lambda: not set(drawn) & set(lines(study, "#latency-chart")))
    dark = study.evaluate(script)
    study.emulate_media(color_scheme="light")
    assert dark[0] != light[0]
    assert dark[1] != light[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_have_enough_contrast(study: Page, scheme: str) -> None:
    study.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    ratio = """([front, back]) => {
        const channel = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const light = name => {
            const shade = getComputedStyle(document.documentElement).getPropertyValue('--' + name);
            const [r, g, b] = shade.trim().slice(1).match(/../g).map(part => channel(parseInt(part, 16)));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const [a, b] = [light(front), light(back)];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    }"""
    words = [(front, back) for front in ("ink", "soft", "accent") for back in ("page", "surface", "shade")]
    words += [(front, f"{front}-back") for front in ("good", "bad", "odd")]
    words += [(front, "shade") for front in ("bad", "odd")] + [("good", "surface")]
    assert {pair: contrast for pair in words if (contrast := study.evaluate(ratio, list(pair))) < 4.5} == {}
    marks = [(f"s{n}", "surface") for n in range(1, 8)]
    assert {pair: contrast for pair in marks if (contrast := study.evaluate(ratio, list(pair))) < 3} == {}
    study.emulate_media(color_scheme="light")


UNDIVIDED = """Math.max(...[...document.querySelectorAll('main *')]
    .filter((one) => getComputedStyle(one).breakInside === 'avoid').map((one) => one.getBoundingClientRect().height))"""


def test_paper_has_light_charts_of_some_cells_and_nothing_to_press(study: Page) -> None:
    page = study
    light = lines(page, "#latency-chart")
    page.emulate_media(color_scheme="dark")
    eventually(lambda: not set(lines(page, "#latency-chart")) & set(light))
    on_screen = lines(page, "#latency-chart")
    page.emulate_media(media="print")
    page.wait_for_selector(".one-cell >> nth=3 >> .drawing svg >> nth=6")
    assert page.locator(".one-cell h3").all_inner_texts() == [
        f"{cell} {label}, repetition 1"
        for cell, label in (
            ("c001", "n3, threads=50"),
            ("c004", "n3, threads=200"),
            ("c007", "n6, threads=50"),
            ("c010", "n6, threads=200"),
        )
    ]
    for pressed in ("nav", "select >> nth=0", "input >> nth=0", ".panels.for-screen"):
        assert not page.locator(pressed).is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not set(lines(page, "#latency-chart")) & set(on_screen)
    assert page.locator("details:not([open])").count() == 0
    page.set_viewport_size({"width": 703, "height": 1000})  # A4 between the margins
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 703
    # What cannot be divided moves to the next page, and leaves as much of this one empty.
    assert page.evaluate(UNDIVIDED) < 450
    page.emulate_media(media="screen")
    page.wait_for_selector(".one-cell", state="detached")
    eventually(lambda: lines(page, "#latency-chart") == on_screen)
    sheet = page.pdf(prefer_css_page_size=True)
    assert sheet.count(b"/Type /Page\n") + sheet.count(b"/Type /Page ") + sheet.count(b"/Type /Page/") > 4
    assert page.messages == []  # type: ignore[attr-defined]
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})


def test_few_of_very_many_cells_are_drawn_and_all_can_be_chosen(opened: Opened) -> None:
    page = opened("many")
    assert len(lines(page, "#latency-chart")) == 7
    assert len(set(lines(page, "#latency-chart"))) == 7
    section = page.locator("section[aria-labelledby=latency]")
    assert section.locator("input").count() == 200
    assert "7 of 200 lines shown" in section.inner_text()


def chosen(page: Page, label: str, option: str) -> None:
    page.get_by_label(label, exact=True).select_option(label=option)


def test_results_are_drawn_over_each_parameter_with_a_line_for_each_value_of_another(opened: Opened) -> None:
    page = opened("sweep", 1280)
    chart = "#parameter-chart"
    assert len(lines(page, chart)) == 2  # over threads, of one and of ten kilobytes
    assert page.get_by_label("Where nodes of servers is", exact=True).is_visible()
    texts = page.locator(f"{chart} svg text").all_text_contents()
    assert {"1", "10", "100", "1000"} <= set(texts), "threads from 1 to 400 need a logarithmic axis"

    chosen(page, "A line for each", "nodes of servers")
    assert page.get_by_label("Where nodes of servers is", exact=True).count() == 0
    assert page.locator(f"{chart} ~ div label").all_inner_texts() == ["nodes of servers 3", "nodes of servers 6"]
    chosen(page, "A line for each", "kilobytes")
    before = page.locator(chart).inner_html()
    chosen(page, "Where nodes of servers is", "6")
    assert page.locator(chart).inner_html() != before
    assert len(lines(page, chart)) == 2

    chosen(page, "Over", "nodes of servers")
    chosen(page, "A line for each", "threads")
    assert len(lines(page, chart)) == 3
    chosen(page, "Show", "Read timeouts")
    assert len(lines(page, chart)) == 3
    assert "% of all operations" in page.locator(f"{chart} svg text").all_text_contents()

    chosen(page, "Over", "throughput, by threads")
    chosen(page, "Show", "p99")
    texts = page.locator(f"{chart} svg text").all_text_contents()
    assert "throughput in operations/s, by threads" in texts
    assert texts.count("400") == len(lines(page, chart)) == 2
    assert page.messages == []  # type: ignore[attr-defined]


OVERLAY = "#overlay .drawing"


def test_any_series_of_any_cells_are_drawn_on_one_chart(opened: Opened) -> None:
    page = opened("study", 1280)
    overlay = page.locator("#overlay")
    assert len(lines(page, OVERLAY)) == 6  # of the first repetitions
    box = overlay.get_by_role("group", name="Cells").get_by_role("checkbox", name="c002 n3, threads=50, repetition 2")
    box.focus()
    box.press("Space")
    eventually(lambda: len(lines(page, OVERLAY)) == 7)
    assert "rebalance-recommended i-0a417 (servers)" in overlay.inner_text()

    overlay.get_by_label("Values").select_option(label="CPU")
    eventually(lambda: "% of all processors" in overlay.locator("figcaption").inner_text())
    overlay.get_by_role("checkbox", name="iowait", exact=True).check()
    assert len(lines(page, OVERLAY)) == 14
    overlay.get_by_role("checkbox", name="iowait", exact=True).uncheck()
    overlay.get_by_label("A line for").select_option(label="each node")
    assert len(lines(page, OVERLAY)) == 14  # two nodes of seven cells
    assert overlay.get_by_role("checkbox", name="c001 n3, threads=50, repetition 1 · i-0a02").is_checked()
    assert overlay.get_by_role("checkbox", name="c001 n3, threads=50, repetition 1 · i-0a01 (slowest)").is_checked()
    overlay.get_by_label("Values").select_option(label="Disk operations")
    eventually(lambda: "operations/s" in overlay.locator("figcaption").inner_text())
    overlay.get_by_label("A line for").select_option(label="each device")
    assert "14 of 28 lines shown" in overlay.inner_text()
    assert overlay.get_by_role("checkbox", name="c001 n3, threads=50, repetition 1 · i-0a02 · nvme2n1").count() == 1
    assert page.messages == []  # type: ignore[attr-defined]


def test_slowest_of_very_many_nodes_are_drawn_and_any_can_be_chosen(opened: Opened) -> None:
    page = opened("crowd", 1280)
    overlay = page.locator("#overlay")
    overlay.get_by_label("Values").select_option(label="CPU")
    eventually(lambda: "% of all processors" in overlay.locator("figcaption").inner_text())
    overlay.get_by_label("A line for").select_option(label="each node")
    assert "14 of 60 lines shown" in overlay.inner_text()
    assert len(lines(page, OVERLAY)) == 14
    boxes = overlay.locator("figure input").evaluate_all("all => all.map((one) => one.checked)")
    assert boxes == [True] * 14 + [False] * 46
    assert overlay.locator("figure label").first.inner_text() == "c001 · i-00 (slowest)"
    overlay.get_by_role("checkbox", name="c001 · i-59").check()
    assert len(lines(page, OVERLAY)) == 15


def test_the_disks_of_all_cells_are_drawn_without_a_choice(opened: Opened) -> None:
    page = opened("study", 1280)
    captions = page.locator("#disk-charts figcaption").all_inner_texts()
    assert [caption.split(" ")[0] for caption in captions] == ["Reads", "Writes", "Waiting"]
    for number in (1, 2):
        figure = f"#disk-charts figure:nth-child({number})"
        assert len(lines(page, figure)) == 6  # of the first repetitions
        assert page.locator(f"{figure} label").first.inner_text() == "c001 n3, threads=50, repetition 1"
    assert page.messages == []  # type: ignore[attr-defined]
    assert opened("single", 1280).locator("#disk-charts").count() == 0, "there is nothing to compare"


def test_both_sides_of_a_comparison_are_drawn_on_one_chart(opened: Opened) -> None:
    page = opened("compared")
    names = page.locator("#overlay figure label").all_inner_texts()
    assert [name.split(" ")[0] for name in names] == ["A:", "A:", "B:", "B:"]
    assert len(lines(page, OVERLAY)) == 4


FAILURE = "#failure-chart"


def written(page: Page, chart: str) -> list[str]:
    """Texts that a chart has drawn, with ordinary spaces."""
    texts = page.locator(f"{chart} svg text").all_text_contents()
    return [text.replace("\N{NO-BREAK SPACE}", " ") for text in texts]


def bars(page: Page) -> Counter[str]:
    """How many shapes have each fill."""
    script = "box => [...box.querySelectorAll('svg path')].map((one) => one.getAttribute('fill') || 'none')"
    return Counter(page.locator(FAILURE).evaluate(script))


def test_a_fault_is_drawn_with_its_windows_marks_and_failures(opened: Opened) -> None:
    page = opened("failure", 1280)
    texts = written(page, FAILURE)
    for text in ("before", "during", "after", "stop 1 of servers", "95 % of the rate before", "p99, ms", "1:00"):
        assert texts.count(text) == 1, text
    assert sum(text.startswith(("rate is back (+9.", "p99 is back (+1")) for text in texts) == 2
    counts = bars(page)
    succeeded = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--s1')")
    assert counts[succeeded.strip()] == 149
    assert page.locator(f"{FAILURE} svg pattern path[d^=M]").count(), "failures differ by more than their colour"
    failing_seconds = sum(map(bool, failing.held().cells[0].phases[0].curve.failed))  # type: ignore[union-attr]
    assert (
        counts[page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--bad')").strip()]
        == failing_seconds
    )
    verdict, chart = page.locator(".told .status").bounding_box(), page.locator(FAILURE).bounding_box()
    assert verdict
    assert chart
    assert verdict["y"] < chart["y"] < chart["y"] + chart["height"] < 900, "it takes more than a look"


@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize(("name", "marks"), [("failure", 3), ("failure of a unit", 7)])
def test_labels_of_marks_do_not_cover_one_another(opened: Opened, name: str, width: int, marks: int) -> None:
    script = """box => [...box.querySelectorAll('svg text')]
        .filter((one) => /back|group|stop|hit/.test(one.textContent))
        .map((one) => one.getBoundingClientRect()).map((one) => [one.left, one.top, one.right, one.bottom])"""
    boxes = opened(name, width).locator(FAILURE).evaluate(script)
    assert len(boxes) == marks
    for n, (left, top, right, bottom) in enumerate(boxes):
        assert 0 <= left < right <= width
        for other in boxes[:n]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] + 3 or other[3] <= top + 3


def test_one_of_several_faults_is_chosen_by_keyboard(opened: Opened) -> None:
    page = opened("failures", 1280)
    assert written(page, FAILURE).count("stop 1 of servers") == 3
    select = page.get_by_label("Fault", exact=True)
    select.focus()
    for _ in range(2):
        select.press("ArrowDown")
    eventually(lambda: any(text.startswith("rate is back (+24.") for text in written(page, FAILURE)))
    assert "1:00" not in written(page, FAILURE), "the first fault is not near"


def test_a_fault_is_drawn_in_the_dark_and_on_paper(opened: Opened) -> None:
    page = opened("failure", 1280)
    light, texts = set(bars(page)), written(page, FAILURE)
    page.emulate_media(color_scheme="dark")
    eventually(lambda: set(bars(page)) != light)
    assert written(page, FAILURE) == texts
    page.emulate_media(media="print", color_scheme="light")
    eventually(lambda: page.locator(f"{FAILURE} svg").evaluate("one => one.clientWidth") < 700)
    assert set(texts) - set(written(page, FAILURE)) <= {"0:15", "0:45", "1:15", "1:45", "2:15"}
    page.emulate_media(media="screen")


def test_faults_of_two_runs_are_drawn_over_one_another(opened: Opened) -> None:
    page = opened("compared failures", 1280)
    assert len(set(lines(page, FAILURE))) == 2
    assert len(lines(page, FAILURE)) == 6
    texts = written(page, FAILURE)
    assert {"fault", "0 s", "+30 s", "succeeded/s", "failed/s", "p99, ms"} <= set(texts)
    marks = [text.split(" (")[0] for text in texts if text[:2] in ("A:", "B:")]
    assert sorted(marks) == ["A: p99 is back", "A: rate is back", "B: p99 is back", "B: rate is back"]
    assert page.messages == []  # type: ignore[attr-defined]


def test_tables_and_a_notice_are_visible_without_scripts(browser: Browser, pages: Path) -> None:
    page = browser.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(PAGE_PATIENCE_MS)
    page.goto((pages / "study.html").as_uri())
    assert page.get_by_text("The charts need JavaScript").is_visible()
    assert page.locator("table.results").is_visible()
    assert page.locator(".drawing:visible").count() == 0
    page.context.close()


def test_ratios_stand_on_their_intervals(opened: Opened) -> None:
    page = opened("compared")
    chart = page.locator("#ratio-chart svg")
    assert "limit 0.95" in chart.locator("text").all_text_contents()
    better, worse = (
        page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}')")
        for name in ("good", "bad")
    )
    marks = chart.locator("path").evaluate_all("paths => paths.map(path => path.getAttribute('fill'))")
    assert (marks.count(better.strip()), marks.count(worse.strip())) == (4, 2)
    assert len(lines(page, "#times-chart")) == 2
    before = page.locator("#times-chart").inner_html()
    page.get_by_label("Operation", exact=True).select_option(index=1)
    assert page.locator("#times-chart").inner_html() != before


def test_the_ratios_have_a_tick_at_one_and_whole_names(opened: Opened) -> None:
    page = opened("compared", 1280)
    texts = page.locator("#ratio-chart svg text").all_text_contents()
    assert "1" in texts
    assert "n3, threads=200 · write" in texts  # in one line
    for least, most, count in ((0.97, 1.04, 8), (0.4, 1.9, 4), (0.1, 90, 8), (0, 1.01, 4), (0.99, 7, 8)):
        ticks = page.evaluate("([least, most, count]) => ratioTicks(least, most, count)", [least, most, count])
        assert 1 in ticks
        assert ticks == sorted(ticks)
        assert 2 <= len(ticks) <= count + 3
        assert all(least <= one <= most for one in ticks)


def test_the_verdict_is_visible_at_once(opened: Opened) -> None:
    page = opened("compared", 1280)
    page.evaluate("scrollTo(0, 0)")
    for verdict in (page.locator(".told .status"), page.get_by_text("2 regressions below the limit of 0.95.")):
        box = verdict.bounding_box()
        assert box
        assert box["y"] + box["height"] < 400
    assert page.locator(".told .status").inner_text() == "FAILED"


@pytest.mark.parametrize("name", ["small study", "tiers", "hostile", "against", "compared", "nothing in common"])
def test_pages_are_accessible(opened: Opened, name: str) -> None:
    for width, scheme in ((1280, "light"), (1280, "dark"), (375, "dark"), (375, "light")):
        page = opened(name, width)
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.evaluate(DRAWN)
        assert accessibility.findings(page, only_colours=scheme == "dark") == [], (width, scheme)


@pytest.mark.parametrize("name", ["study", "single", "hostile", "against", "compared", "bare"])
def test_a_phone_shows_every_column_of_every_table(opened: Opened, name: str) -> None:
    page = opened(name)
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    assert page.locator(".scroll").evaluate_all("all => all.filter((one) => one.scrollWidth > one.clientWidth)") == []
    assert accessibility.hidden_cells(page) == []
    unlabelled = page.locator("table.cards td:not([colspan])").evaluate_all(
        "all => all.filter((one) => !one.dataset.label).length"
    )
    assert unlabelled == 0


def test_values_below_cells_of_several_rows_keep_their_columns(opened: Opened) -> None:
    row = opened("study").locator("#cell-1 tr").nth(1)
    labels = row.locator("td").evaluate_all(
        "all => all.map((one) => [one.dataset.label, one.innerText.trim().replace('\\u00a0', ' ')])"
    )
    assert [label for label, _ in labels][:2] == ["Operation", "Per second"]
    assert dict(labels)["Operation"] == "write"
    assert dict(labels)["Share"] == "90 %"
    assert "Cost per million" in dict(labels)
    assert "CPU" not in dict(labels)  # the row above has it for all


SPREAD = """chart => {
    const marks = [...chart.querySelectorAll("path[fill]")].map((path) => path.getBoundingClientRect())
        .filter((box) => box.width > 8 && box.width < 16);
    return Math.max(...marks.map((box) => box.left)) - Math.min(...marks.map((box) => box.left));
}"""


def test_a_phone_that_is_turned_has_room_for_the_ratios_both_ways(opened: Opened) -> None:
    page = opened("compared")
    chart = page.locator("#ratio-chart svg")
    for width in (860, 375, 860):
        page.set_viewport_size({"width": width, "height": 1235 - width})
        page.wait_for_function("width => document.querySelector('#ratio-chart svg').clientWidth < width", arg=width)
        page.evaluate(DRAWN)
        assert chart.evaluate(SPREAD) > 0.3 * width


def test_rows_with_the_largest_differences_are_drawn(opened: Opened) -> None:
    page = opened("compared widely")
    assert page.get_by_text("The 40 rows with the largest differences; the table contains all 60.").is_visible()


def test_change_points_and_changes_of_versions_are_marked(opened: Opened) -> None:
    page = opened("history", 1280)
    table = page.get_by_role("region", name="Change points, the newest first")
    assert "image ami-1 → ami-2<b>" in table.inner_text()
    assert page.locator("#runs-chart svg path[stroke-width='1.5']").count() == 1
    assert page.locator("#runs-chart svg text").filter(has_text="5.0").count() == 1, "of the change"
    assert page.locator(".spark polyline").count() == 2
    assert page.locator(".spark .worse").count() == 1


def test_the_baseline_of_most_runs_is_drawn_first(browser: Browser, tmp_path: Path) -> None:
    values = history()
    compared = {**values["series"][0], "topic": "read, against version=1.2"}
    first = {key: compared[key][:1] for key in ("places", "values", "texts", "ratios")}
    twin = {**compared, **first, "against": "aa=1", "topic": "read, against aa=1", "changes": []}
    path = tmp_path / "itself.html"
    path.write_text(history_page({**values, "series": [twin, compared]}, chart_script()), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-drawn]")
    chosen = page.locator("section[aria-labelledby=runs] select option:checked")
    assert chosen.all_inner_texts() == ["against version=1.2"]
    page.close()


def test_change_points_come_first_of_many_lines(browser: Browser, tmp_path: Path) -> None:
    values = history()
    lines = values["series"]
    values["series"] = [{**lines[1], "name": f"scan {n}", "topic": f"{n}"} for n in range(20)] + [lines[0]]
    path = tmp_path / "many.html"
    path.write_text(history_page(values, chart_script()), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-drawn]")
    shown = page.locator("section[aria-labelledby=runs] .lines label:not(.off)")
    assert [one.inner_text().strip() for one in shown.all()] == [lines[0]["name"]]
    page.close()
