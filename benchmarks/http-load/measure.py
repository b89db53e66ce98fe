"""Runs the plan for the warm-up and the measured time, and records the requests of the measured time.

k6 writes its samples into a pipe, JMeter into a log; both are read while the tool runs. Locust has a listener in its
processes. So nothing remains to be read after the measured time, and memory and disk stay bounded.

A plan that runs longer is ended. A plan that ends before the measured time is over fails the phase.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import commands
from commands import Command
from node import SLACK, Node

from troop.measure.collectors import jtl, k6, output
from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.collectors.window import Counted, Window
from troop.measure.operations import Operations, add_all, parse

GRACE = 20.0
"""Seconds for a tool to end by itself after it was asked to."""
EARLY = 0.5
"""Seconds by which a plan may end before the measured time: clocks of a tool and of this script differ."""


def main() -> None:
    node = Node.of_script()
    problems = Problems()
    try:
        {"k6": with_k6, "jmeter": with_jmeter, "locust": with_locust}[node.tool](node, problems)
    except CollectorError as error:
        problems.add(str(error))
    operations = recorded(node.results)
    for line in problems.lines():
        print(line)
    for name, one in operations.items():
        print(f"{name}: {one.times.count:,} successes, errors: {one.errors or 'none'}")
    if problems.count:
        sys.exit(problems.sentences[0])
    refuse_gaps(node, operations)


def with_k6(node: Node, problems: Problems) -> None:
    reading, writing = os.pipe()
    command = commands.k6(node, f"/dev/fd/{writing}")
    with running(node, command, pass_fds=(writing,)) as ended:
        os.close(writing)
        totals = Counted(window(node))
        with (
            totals.live(node.results),
            os.fdopen(reading, encoding="utf-8", errors="backslashreplace", newline="") as lines,
        ):
            k6.counted(lines, "samples of k6", totals.window, problems, totals)
        ended()
    store("k6", totals, node)


def with_jmeter(node: Node, problems: Problems) -> None:
    path = Path(commands.SAMPLES)
    with running(node, commands.jmeter(node)) as ended:
        try:
            counted = jtl.follow(path, lambda: ended(wait=False), window(node), problems, results=node.results)
        except FileNotFoundError:
            ended()
            return  # no sample
        ended()
    path.unlink()
    store("jtl", counted, node)


def with_locust(node: Node, _: Problems) -> None:
    with running(node, commands.locust(node)) as ended:
        ended()


def store(tool: str, counted: Counted, node: Node) -> None:
    output.write_operations(tool, counted.operations, node.results)
    for note in counted.notes("requests"):
        print(note)


def window(node: Node) -> Window:
    return Window(node.measured_from, node.measured_until, node.warm_up_seconds)


class Ended:
    """Whether a tool has ended, and how. Ends this script if the tool failed, or ended too early."""

    def __init__(self, node: Node, command: Command, process: subprocess.Popen[bytes]) -> None:
        self._node, self._command, self._process = node, command, process
        self._at: float | None = None
        self.is_stopped = False

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self._process.poll() is None:
            self.is_stopped = True
            self._process.send_signal(number)

    def __call__(self, wait: bool = True) -> bool:
        """Checks whether the tool has ended, or waits for its end and judges it."""
        if not wait:
            over = self._process.poll() is not None
            self._at = self._at or (time.time() if over else None)
            return over
        code = self._process.wait()
        at = self._at or time.time()
        name = self._node.tool
        if self.is_stopped:
            print(f"{name} was ended {at - self._node.measured_until:.1f} s after the measured time")
            return True
        if code in self._command.accepted:
            print(f"{name} ended with exit code {code}: {self._command.accepted[code]}")
        elif code:
            sys.exit(f"{name} failed with exit code {code}; its output is above")
        if at < self._node.measured_until - EARLY:
            sys.exit(
                f"the plan ended {self._node.measured_until - at:.1f} s before the end of the measured time: let it "
                f"run for {self._node.seconds} s, which the property {{seconds}} contains, or shorten measured"
            )
        return True


@contextmanager
def running(node: Node, command: Command, pass_fds: tuple[int, ...] = ()) -> Iterator[Ended]:
    """Starts a tool in the plan's folder; ends it when it runs longer than it must."""
    process = subprocess.Popen(
        command.words,
        cwd=node.work,
        env={**os.environ, **command.environment},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        pass_fds=pass_fds,
    )
    ended = Ended(node, command, process)
    late = node.measured_until + SLACK + 1 - time.time()
    timers = [threading.Timer(late, ended.stop), threading.Timer(late + GRACE, ended.stop, [signal.SIGKILL])]
    for timer in timers:
        timer.daemon = True
        timer.start()
    try:
        yield ended
    finally:
        for timer in timers:
            timer.cancel()
        if process.poll() is None:
            process.kill()
            process.wait()


def recorded(results: Path) -> Operations:
    """Adds up the operations of this node."""
    totals: Operations = {}
    for path in sorted(results.glob("operations-*.json")):
        add_all(totals, parse(json.loads(path.read_text(encoding="utf-8"))["operations"]))
    return totals


def refuse_gaps(node: Node, operations: Operations) -> None:
    """Ends the script if nothing succeeded, or if the load began late: the rate of a part is not that of the whole."""
    if not any(one.times.count for one in operations.values()):
        if kinds := sorted({kind for one in operations.values() for kind in one.errors}):
            sys.exit(f"no request succeeded in the measured time; errors: {', '.join(kinds)}")
        sys.exit(
            f"no request of {node.tool} ended within {node.warm_up_seconds:g} s of warm-up and "
            f"{node.measured_seconds:g} s of measured time: increase warm_up, as the tool may start slowly, "
            "or read its output above"
        )
    begins = [
        one.per_second.start + second
        for one in operations.values()
        for second, (good, bad) in enumerate(zip(one.per_second.count, one.per_second.errors))
        if good or bad
    ]
    late = min(begins) - node.measured_from
    if late > max(2.0, node.measured_seconds / 10):
        sys.exit(f"the first request ended {late:.0f} s after the start of the measured time: increase warm_up")


if __name__ == "__main__":
    main()
