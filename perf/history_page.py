"""Measures the page of a benchmark's history (`troop bench history --html`), from lines of runs to a drawn page.

    python -m perf.history_page [--series 100] [--nights 365] [--picture FILE]

Each series is a measurement of a nightly run with a baseline on the same nodes; a twentieth of them became slower.
The table has the seconds until the change points are found, until the page is made, and until Chromium has drawn it
from a file; for each the processor time (of Chromium's main thread), and of drawing also the elapsed time.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cli.bench import history as bench_history
from local.pictures import camera
from troop.bench.records.history import Figure, histories
from troop.bench.records.line import Figures, Line, Values
from troop.report.assets import chart_script
from troop.report.html import history_page

FIRST = datetime(2025, 11, 27, 1, tzinfo=UTC)
PAIRS = 3
SEED = 7


def nights(series: int, count: int) -> list[Line]:
    """Makes the lines of a year of nights."""
    source = random.Random(SEED)
    steps = {n: source.randrange(count) for n in range(0, series, 20)}
    lines = []
    for night in range(count):
        at = FIRST + timedelta(days=night)
        figures = []
        for n in range(series):
            rate = 1000 * (1 + n % 7) * math.exp(source.gauss(0, 0.03))
            own = rate * (0.95 if night >= steps.get(n, count) else 1)
            pairs = [[one * math.exp(source.gauss(0, 0.01)) for one in (own, rate)] for _ in range(PAIRS)]
            sides = [
                tuple(Values(one, 1000 / one, 900 / one, 3000 / one, 0.4, 0.0) for one in side)
                for side in zip(*pairs, strict=True)
            ]
            figures.append(Figures(f"size={n}", "measure", "", "drivers", "read", *sides))
        lines.append(
            Line(
                f"{at:%Y%m%d-%H%M%S}-{night:08x}",
                "reads",
                at,
                None,
                "SUCCEEDED",
                "0.1.0",
                version=f"{source.getrandbits(28):07x}" if night % 3 == 0 else "",
                versions={"image": f"ami-{night // 60}", "kernel": f"6.1.{night // 45}", "type servers": "i4i.large"},
                baseline={"parameters.version": "1.2"},
                figures=tuple(figures),
            )
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=100)
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument("--picture", type=Path, help="also store what Chromium shows, as PNG")
    options = parser.parse_args()
    lines = nights(options.series, options.nights)
    began = time.process_time()
    every = histories(lines, Figure.THROUGHPUT)
    searched = time.process_time()
    html = history_page(bench_history.page_values("reads", Figure.THROUGHPUT, "UTC", UTC, every, ""), chart_script())
    rendered = time.process_time()
    with tempfile.TemporaryDirectory() as folder, camera.browser() as browser:
        path = Path(folder) / "history.html"
        path.write_text(html, encoding="utf-8")
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        opened = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-drawn]")
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        drawn = time.perf_counter() - opened
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        if options.picture:
            page.screenshot(path=options.picture, full_page=True)
    changes = sum(len(one.changes) for one in every)
    head = ("searched", "page made", "drawn", "elapsed", "page")
    print(f"{'series':>7}{'runs':>6}{'change points':>15}" + "".join(f"{one:>11}" for one in head))
    print(
        f"{len(every):>7}{len(lines):>6}{changes:>15}{searched - began:>9.2f} s{rendered - searched:>9.2f} s"
        f"{metrics['TaskDuration']:>9.2f} s{drawn:>9.2f} s{len(html) / 1e6:>8.1f} MB"
    )


if __name__ == "__main__":
    main()
