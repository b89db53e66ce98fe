"""Runs one phase on this node and summarizes it: the script, its results, and the node's samples."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from agent.barrier import Release
from agent.clock import correction
from agent.collect import lost_in, operations_in, samples_with, separate_in
from agent.command import Command, Ended, line_for
from agent.errors import Lost
from agent.live import LiveUpload, Put
from agent.log import say
from agent.output import BoundedOutput
from agent.place import Place
from agent.sampler import Sampler
from troop.measure.live import Live
from troop.measure.summary import FAILED, LOST, MOST_BYTES, OK, TIMED_OUT, Clock, Summary
from troop.measure.summary_size import TARGET_BYTES, fit_summary

LOST_CODE = 75
"""The exit code of a script whose subject is lost, such as a server that has died."""

MOST_PROBLEMS = 5
"""The most problems of a script's results that a summary lists."""


@dataclass(frozen=True)
class Done:
    """The results of a phase to upload.

    Attributes:
        output: the script's output, bounded.
    """

    summary: Summary
    output: bytes


def perform(
    place: Place,
    phase: str,
    rank: int | None,
    release: Release,
    clock: Clock | None,
    put_live: Put | None = None,
    summary_bytes: int = TARGET_BYTES,
) -> Done:
    """Performs a phase or a point from start to end. Raises nothing: the summary contains every failure.

    Args:
        phase: the name of the phase, or of the point.
        rank: None in a standing fleet, whose nodes have none.
        clock: how far this node's clock is off; corrects the common start if it is certainly wrong.
        put_live: stores running summaries; None for none.
        summary_bytes: above which data is left out. A summary that stays twice as large fails the phase.
    """
    begun = blank(place, phase, rank or 0, clock)
    begun = replace(begun, measured_seconds=release.measured_seconds)
    output = BoundedOutput()
    start_at = time.time() + release.start_up_seconds
    if release.start_at is not None:
        start_at = release.start_at + correction(clock)
    measured_from = start_at + release.warm_up_seconds
    if release.start_at is not None:
        late = time.time() - start_at
        # A late start is acceptable as long as the load runs when the measured time begins.
        if late > release.warm_up_seconds:
            return Done(_over(begun, FAILED, f"the release arrived {late:.1f} s after the common start"), b"")
        try:
            time.sleep(max(0.0, -late - release.start_up_seconds))
        except Lost as lost:
            return Done(_over(begun, LOST, str(lost)), b"")
    begun = replace(begun, started_at=time.time())
    if release.measured_seconds:
        begun = replace(begun, measured_from=measured_from, warm_up_seconds=release.warm_up_seconds)
    sampler = Sampler.from_timeout(release.timeout_seconds)
    sampler.start()
    live = _live_upload(place, begun, sampler, put_live)
    try:
        ended = _run(place, phase, release, place.environment(phase, rank, release, start_at), output)
        summary = _judged(begun, release.script, ended, release.timeout_seconds, output)
    except OSError as error:
        summary = _over(begun, FAILED, f"cannot run {release.script}: {error}")
    except Lost as lost:
        summary = _over(begun, LOST, str(lost))
    if live is not None:
        live.stop()
    summary = replace(summary, samples=sampler.stop())
    problems: list[str] = []
    lost_in(place.results(phase), problems)
    summary = replace(summary, operations=operations_in(place.results(phase), problems))
    summary = replace(summary, separate=separate_in(place.results(phase), problems))
    summary = replace(summary, samples=samples_with(place.results(phase), summary.samples, problems))
    if problems and summary.outcome == OK:
        summary = replace(summary, outcome=FAILED, reason="; ".join(problems[:MOST_PROBLEMS]))
    summary, left_out = fit_summary(summary, summary_bytes, min(MOST_BYTES, 2 * summary_bytes))
    for sentence in left_out:
        say(sentence)
    say(f"{phase}: {summary.outcome}" + (f", {summary.reason}" if summary.reason else ""))
    return Done(summary, output.content())


def blank(place: Place, phase: str, rank: int, clock: Clock | None) -> Summary:
    """Returns the summary of a phase that begins now."""
    now = time.time()
    return Summary(place.identity.id, place.boot.role, rank, phase, OK, started_at=now, ended_at=now, clock=clock)


def _live_upload(place: Place, begun: Summary, sampler: Sampler, put: Put | None) -> LiveUpload | None:
    """Returns an upload that has started; None if the phase is not measured, or nobody can watch it."""
    if put is None or begun.measured_from is None:
        return None
    blank = Live(begun.node, begun.role, begun.phase, 0, 0, begun.measured_from, begun.measured_seconds)
    upload = LiveUpload(blank, place.results(begun.phase), sampler.cpu, put)
    upload.start()
    return upload


def _run(place: Place, phase: str, release: Release, environment: dict[str, str], output: BoundedOutput) -> Ended:
    place.results(phase).mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + release.timeout_seconds
    return Command(line_for(place.files / release.script), place.phase(phase), environment, output).wait(until)


def _judged(begun: Summary, script: str, ended: Ended, limit: float, output: BoundedOutput) -> Summary:
    begun = replace(begun, exit_code=ended.code)
    if ended.code == 0:
        return _over(begun, OK)
    last = output.last_line()
    suffix = f"; its last output: {last}" if last else ""
    if ended.code is None:
        return _over(begun, TIMED_OUT, f"{script} {ended.words(limit)}{suffix}")
    if ended.code == LOST_CODE:
        return _over(begun, LOST, last or f"{script} ended with exit code {LOST_CODE}")
    return _over(begun, FAILED, f"{script} {ended.words(limit)}{suffix}")


def _over(begun: Summary, outcome: str, reason: str | None = None) -> Summary:
    return replace(begun, outcome=outcome, reason=reason, ended_at=time.time())
