"""One phase on this node: its script, what it left, what the node did meanwhile, and the summary of it all."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from agent.barrier import Release
from agent.clock import correction
from agent.collect import operations_in, separate_in
from agent.command import Command, Ended, line_for
from agent.errors import Lost
from agent.log import say
from agent.output import BoundedOutput
from agent.place import Place
from agent.sampler import Sampler, interval_for
from agent.script_samples import samples_with
from troop.measure.summary import FAILED, LOST, OK, TIMED_OUT, Clock, Summary
from troop.measure.summary_size import fitted

LOST_CODE = 75
"""The exit code by which a script says that what it was to measure is there no more, such as a server that has died."""

MOST_PROBLEMS = 5
"""Of a script's results that are told."""


@dataclass(frozen=True)
class Done:
    """What is uploaded of a phase.

    Attributes:
        output: what the script printed, bounded.
    """

    summary: Summary
    output: bytes


def perform(place: Place, phase: str, rank: int | None, release: Release, clock: Clock | None) -> Done:
    """Does a phase, from its start to its end. Whatever goes wrong is told in the summary; nothing is raised.

    Args:
        rank: None where nodes have none, in a standing fleet.
        clock: how far this node's is off; the common start is corrected by it when it is certainly wrong.
    """
    begun = blank(place, phase, rank or 0, clock)
    begun = replace(begun, measured_seconds=release.measured_seconds)
    output = BoundedOutput()
    start_at = time.time() if release.start_at is None else release.start_at + correction(clock)
    measured_from = start_at + release.warm_up_seconds
    if release.start_at is not None:
        late = time.time() - start_at
        # Load that is there when the measured time begins is all that is asked for.
        if late > release.warm_up_seconds:
            return Done(_over(begun, FAILED, f"the release came {late:.1f} s after the common start"), b"")
        try:
            time.sleep(max(0.0, -late))
        except Lost as lost:
            return Done(_over(begun, LOST, str(lost)), b"")
    begun = replace(begun, started_at=time.time())
    if release.measured_seconds:
        begun = replace(begun, measured_from=measured_from, warm_up_seconds=release.warm_up_seconds)
    sampler = Sampler(interval_for(release.timeout_seconds))
    sampler.start()
    try:
        ended = _run(place, phase, release, place.environment(phase, rank, release, start_at), output)
        summary = _judged(begun, release.script, ended, release.timeout_seconds, output)
    except OSError as error:
        summary = _over(begun, FAILED, f"{release.script} cannot be run: {error}")
    except Lost as lost:
        summary = _over(begun, LOST, str(lost))
    summary = replace(summary, samples=sampler.stop())
    problems: list[str] = []
    summary = replace(summary, operations=operations_in(place.results(phase), problems))
    summary = replace(summary, separate=separate_in(place.results(phase), problems))
    summary = replace(summary, samples=samples_with(place.results(phase), summary.samples, problems))
    if problems and summary.outcome == OK:
        summary = replace(summary, outcome=FAILED, reason="; ".join(problems[:MOST_PROBLEMS]))
    summary, left_out = fitted(summary)
    for sentence in left_out:
        say(sentence)
    say(f"{phase}: {summary.outcome}" + (f", {summary.reason}" if summary.reason else ""))
    return Done(summary, output.content())


def blank(place: Place, phase: str, rank: int, clock: Clock | None) -> Summary:
    """The summary of a phase that begins now."""
    now = time.time()
    return Summary(place.identity.id, place.boot.role, rank, phase, OK, started_at=now, ended_at=now, clock=clock)


def _run(place: Place, phase: str, release: Release, environment: dict[str, str], output: BoundedOutput) -> Ended:
    place.results(phase).mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + release.timeout_seconds
    command = Command(line_for(place.files / release.script), place.phase(phase), environment, output)
    try:
        return command.wait(until)
    except Lost:
        command.kill()
        raise


def _judged(begun: Summary, script: str, ended: Ended, limit: float, output: BoundedOutput) -> Summary:
    begun = replace(begun, exit_code=ended.code)
    if ended.code == 0:
        return _over(begun, OK)
    last = output.last_line()
    suffix = f"; it last printed: {last}" if last else ""
    if ended.code is None:
        return _over(begun, TIMED_OUT, f"{script} took longer than {limit:g} s and was ended{suffix}")
    if ended.code == LOST_CODE:
        return _over(begun, LOST, last or f"{script} ended with exit code {LOST_CODE}")
    how = f"was ended by signal {-ended.code}" if ended.code < 0 else f"ended with exit code {ended.code}"
    return _over(begun, FAILED, f"{script} {how}{suffix}")


def _over(begun: Summary, outcome: str, reason: str | None = None) -> Summary:
    return replace(begun, outcome=outcome, reason=reason, ended_at=time.time())
