"""Runs a fleet of real workers on local AWS, breaks some of them, and draws what happened: `make workers`.

The picture has backlog, nodes and cost over time, with marks of faults and repairs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from .demo.benchmark import put_data
from .launcher import LocalAccount
from .project import STATE
from .settings import lasting_settings
from .worker_story import GOOD, SHORT, WHOLE, Event, Plan, Sample, Story, Workers

PICTURE = STATE / "workers.svg"


def run(say: Callable[[str], None], *, short: bool = False) -> int:
    """Tells the story, and draws it. Returns the exit code: 1 if a task was lost."""
    plan = SHORT if short else WHOLE
    with LocalAccount("workers", progress=say) as account, tempfile.TemporaryDirectory() as home:
        outputs = account.deploy(lasting_settings(datetime.now(UTC)))
        put_data(account)
        story = Workers(account, outputs, Path(home), plan, say).tell()
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(story), encoding="utf-8")
    print(f"\n{summary(story, plan)}\n", flush=True)
    say(f"the picture: {PICTURE}")
    return 1 if problems(story, plan) else 0


def problems(story: Story, plan: Plan) -> list[str]:
    """Returns what went wrong with the tasks."""
    good = {f"{GOOD}{number:04}" for number in range(plan.tasks)}
    wrong = []
    if lost := sorted(good - story.results.keys()):
        wrong.append(f"{len(lost)} tasks have no result: {', '.join(lost[:5])}")
    if odd := sorted(name for name, result in story.results.items() if result.get("name") != name):
        wrong.append(f"{len(odd)} results are of other tasks: {', '.join(odd[:5])}")
    if story.dead != plan.poison:
        wrong.append(f"{story.dead} dead letters in place of {plan.poison}")
    return wrong


def summary(story: Story, plan: Plan) -> str:
    """Returns what happened, in sentences."""
    names = {"spot": "spot took back", "killed": "was killed", "hung": "hung", "silent": "fell silent"}
    returned = ", ".join(f"{seconds:.1f} s (its node {names[fault]})" for fault, seconds in story.returned.items())
    healed = ", ".join(f"{seconds:.0f} s ({names[fault]})" for fault, seconds in story.healed.items())
    cost = next((sample.cost for sample in reversed(story.samples) if sample.cost), 0.0)
    minutes = (story.samples[-1].at - story.samples[0].at) / 60
    wrong = "; ".join(problems(story, plan)) or "none is lost"
    return (
        f"{plan.tasks} tasks, and {plan.poison} that always fail, in {minutes:.0f} minutes: {len(story.results)} "
        f"results, each stored once, and {story.dead} dead letters; {wrong}. The fleet grew to {story.most_nodes} "
        f"nodes and shrank to none, for ${cost:.4f}. Tasks were in hand again after {returned}. "
        f"Troop repaired nodes after {healed}."
    )


LEFT, WIDTH, TOP, HEIGHT, GAP, ROW = 64, 880, 98, 130, 34, 18
"""Of the panels, and of a line of the list below them, in pixels."""
STYLE = """
:root { --page: #fff; --text: #1f2328; --soft: #59636e; --line: #d1d9e0; --dark: #2a78d6; --pale: #a8c7ee;
--bad: #c4314b; --good: #1a7f37; }
@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --text: #e6edf3; --soft: #9198a1; --line: #30363d;
--dark: #4c9df3; --pale: #1f4b7d; --bad: #ff7b8a; --good: #4ac26b; } }
path { fill: none; } .page { fill: var(--page); } .axis { stroke: var(--line); }
.held { fill: var(--dark); } .waiting { fill: var(--pale); } .serving { stroke: var(--dark); stroke-width: 2; }
.wanted { stroke: var(--soft); stroke-dasharray: 4 3; }
path.fault { stroke: var(--bad); stroke-dasharray: 3 3; } path.repair { stroke: var(--good); stroke-dasharray: 3 3; }
path.step { stroke: var(--soft); stroke-dasharray: 1 3; }
text { fill: var(--text); font: 12px sans-serif; } text.soft, text.step { fill: var(--soft); }
text.fault { fill: var(--bad); font-weight: bold; } text.repair { fill: var(--good); font-weight: bold; }
"""


def picture(story: Story) -> str:
    """Returns an SVG for light and dark pages: backlog, nodes and cost over time, with marks of what happened."""
    samples, first = story.samples, story.samples[0].at
    scale = WIDTH / max(1.0, samples[-1].at - first)

    def x(at: float) -> float:
        return LEFT + (at - first) * scale

    panels = (
        ("tasks: in work (strong), waiting (pale)", _backlog(samples, x)),
        ("nodes: in service, and wanted (dashed)", _nodes(samples, x)),
        ("cost so far, in USD", _cost(samples, x)),
    )
    shapes = ['<rect class="page" width="100%" height="100%"/>']
    for row, (title, (top, body)) in enumerate(panels):
        y = TOP + row * (HEIGHT + GAP)
        shapes.append(
            f'<g transform="translate(0 {y})"><text x="{LEFT}" y="-6">{title}</text>'
            f'<path class="axis" d="M{LEFT} 0V{HEIGHT}H{LEFT + WIDTH}" fill="none"/>{body}'
            f'<text class="soft" x="{LEFT - 6}" y="10" text-anchor="end">{top}</text>'
            f'<text class="soft" x="{LEFT - 6}" y="{HEIGHT}" text-anchor="end">0</text></g>'
        )
    bottom = TOP + len(panels) * (HEIGHT + GAP) - GAP
    for minute in range(int((samples[-1].at - first) / 60) + 1):
        place = f'x="{x(first + 60 * minute):.0f}" y="{bottom + 16}" text-anchor="middle"'
        shapes.append(f'<text class="soft" {place}>{minute} min</text>')
    events = sorted(story.events, key=lambda event: event.at)
    shapes += _marks(events, x, first, bottom)
    height = bottom + 40 + ROW * -(-len(events) // 2)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 24} {height}">'
        f"<style>{STYLE}</style>{''.join(shapes)}</svg>\n"
    )


def _marks(events: Sequence[Event], x: Callable[[float], float], first: float, bottom: int) -> Iterator[str]:
    """Yields a numbered line for each event, and the list of them in two columns below the panels."""
    column, ends = -(-len(events) // 2), [-99.0] * 6
    for number, event in enumerate(events):
        at = x(max(event.at, first))
        row = next((row for row, end in enumerate(ends) if at > end), len(ends) - 1)
        ends[row] = at + 16
        left, y = LEFT + (number // column) * WIDTH / 2, bottom + 44 + ROW * (number % column)
        since = max(0, round(event.at - first))
        yield (
            f'<path class="{event.kind}" d="M{at:.1f} {18 + 12 * row}V{bottom}"/>'
            f'<text class="{event.kind}" x="{at:.1f}" y="{14 + 12 * row}" text-anchor="middle">{number + 1}</text>'
            f'<text class="{event.kind}" x="{left:.0f}" y="{y}">{number + 1}</text>'
            f'<text x="{left + 24:.0f}" y="{y}">{since // 60}:{since % 60:02} {escape(event.text)}</text>'
        )


def _backlog(samples: Sequence[Sample], x: Callable[[float], float]) -> tuple[str, str]:
    most = max(1, *(sample.waiting + sample.held for sample in samples))
    both = [(sample.at, (sample.waiting + sample.held) / most) for sample in samples]
    held = [(sample.at, sample.held / most) for sample in samples]
    return str(most), f'<path class="waiting" d="{_area(both, x)}"/><path class="held" d="{_area(held, x)}"/>'


def _nodes(samples: Sequence[Sample], x: Callable[[float], float]) -> tuple[str, str]:
    most = max(1, *(max(sample.desired, sample.serving) for sample in samples))
    serving = [(sample.at, sample.serving / most) for sample in samples]
    desired = [(sample.at, sample.desired / most) for sample in samples]
    return str(most), f'<path class="serving" d="{_steps(serving, x)}"/><path class="wanted" d="{_steps(desired, x)}"/>'


def _cost(samples: Sequence[Sample], x: Callable[[float], float]) -> tuple[str, str]:
    known = [(sample.at, sample.cost) for sample in samples if sample.cost is not None]
    most = max((cost for _, cost in known), default=0.0) or 1.0
    line = [(at, cost / most) for at, cost in known]
    return f"{most:.4f}", f'<path class="serving" d="{_steps(line, x)}"/>' if line else ""


def _steps(points: Sequence[tuple[float, float]], x: Callable[[float], float]) -> str:
    """Returns a path that holds each value until the next one. Values are parts of a panel's height."""
    (at, value), *others = points
    return f"M{x(at):.1f} {_y(value)}" + "".join(f"H{x(later):.1f}V{_y(part)}" for later, part in others)


def _area(points: Sequence[tuple[float, float]], x: Callable[[float], float]) -> str:
    return f"{_steps(points, x)}V{HEIGHT}H{x(points[0][0]):.1f}Z"


def _y(part: float) -> str:
    return f"{HEIGHT * (1 - part):.1f}"
