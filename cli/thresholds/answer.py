"""Formats a proposed threshold: for people, for programs, and as the command that creates the alarm."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cli.shared import show
from cli.thresholds.history import History, PastAlarm
from cli.thresholds.metric import PLAIN, Metric, Side
from cli.thresholds.metric_reader import request
from cli.thresholds.proposal import Candidate, Proposal
from cli.thresholds.weekly import HourOfWeek, differ
from troop.shared import moments
from troop.shared.formatting import counted, duration, plain

SHOWN_ALARMS = 10
"""The most alarms that people see, the newest ones; programs get all."""

COLUMNS = ("value", "not beyond it", "alarms", "in alarm", "proposed")
ALARM_COLUMNS = ("went off", "for", "peak")

_SHORTHAND = re.compile(r"[\w.:/@+-]+")
"""Matches a value that needs no quotes in the shorthand of AWS's command."""


@dataclass(frozen=True)
class Answer:
    """A proposal with all that it stems from. ``days``: the period that was asked for."""

    metric: Metric
    statistic: str
    days: int
    history: History
    proposal: Proposal
    hours: tuple[HourOfWeek, ...]

    def lines(self) -> Iterator[str]:
        """Yields what stands above the table of candidates."""
        history, proposal = self.history, self.proposal
        points = history.points
        first, last = _moment(points[0].at), _moment(points[-1].at + history.period)
        gaps = f"; {counted(len(history.gaps), 'gap')}, the longest {duration(max(history.gaps, default=0))}"
        shortfall = f" of the {self.days} days asked for" if history.days < self.days - 1 else ""
        yield f"{self.metric}: {self.statistic} of {duration(history.period)}"
        yield (
            f"rests on {counted(len(points), 'value')} over {history.days:.1f} days{shortfall} "
            f"({history.coverage * 100:.1f} % of the periods), {first} to {last}{gaps if history.gaps else ''}"
        )
        yield (
            f"proposed: alarm {proposal.side} {number(proposal.chosen.value)}, after {proposal.in_a_row} in a row "
            f"({duration(proposal.in_a_row * history.period)})"
        )

    def candidates(self) -> list[tuple[Any, ...]]:
        """Returns the rows of all candidates."""
        return [
            (
                number(one.value),
                f"{one.share * 100:g} %",
                len(one.alarms),
                duration(one.seconds),
                "yes" if one is self.proposal.chosen else "",
            )
            for one in self.proposal.candidates
        ]

    def in_sample(self) -> str:
        """Returns a line about the alarms of the period from which the value stems."""
        alarms = self.proposal.chosen.alarms
        known = "in-sample: the value stems from the same days, so expect more"
        return f"it would have raised {_raised(alarms)} in these days ({known})"

    def trial(self) -> str:
        """Returns a line about the days that the trial's value did not know."""
        trial = self.proposal.trial
        if trial is None:
            return "on days that it does not know: unknown, there is too little data to set a part aside"
        return (
            f"on days that it does not know: the first {trial.learnt:.1f} days propose {number(trial.value)}, which "
            f"would have raised {_raised(trial.alarms)} in the last {trial.judged:.1f} days"
        )

    def alarms(self) -> list[tuple[str, str, str]]:
        """Returns the rows of the newest alarms, oldest first."""
        alarms = self.proposal.chosen.alarms[-SHOWN_ALARMS:]
        return [(_moment(one.at), duration(one.seconds), plain(one.peak)) for one in alarms]

    @property
    def alarms_left_out(self) -> int:
        return max(0, len(self.proposal.chosen.alarms) - SHOWN_ALARMS)

    def weekly(self) -> str:
        """Returns a line about the hours of the week."""
        if not self.hours:
            return "by hour of the week: unknown, each hour needs 40 values from 4 weeks"
        high, low = (pick(self.hours, key=lambda hour: hour.usual) for pick in (max, min))
        line = f"by hour of the week, 95 % of values are not {self.proposal.side}: "
        line += f"{plain(high.usual)} on {high.name}, {plain(low.usual)} on {low.name}"
        if not differ(self.hours):
            return line
        return f"{line}. A fixed value fits only some hours: consider an anomaly detection alarm, which knows hours"

    def document(self, command: str) -> dict[str, Any]:
        """Returns the answer for programs. ``command``: creates the alarm."""
        history, proposal, trial = self.history, self.proposal, self.proposal.trial
        return {
            "metric": request(self.metric),
            "statistic": self.statistic,
            "period": history.period,
            "side": str(proposal.side),
            "datapoints": proposal.in_a_row,
            "threshold": proposal.chosen.value,
            "data": {
                "points": len(history.points),
                "days": round(history.days, 3),
                "days_asked_for": self.days,
                "first": _iso(history.points[0].at),
                "last": _iso(history.points[-1].at),
                "coverage": round(history.coverage, 4),
                "gaps": len(history.gaps),
                "longest_gap_seconds": max(history.gaps, default=0),
            },
            "candidates": [_candidate(one) for one in proposal.candidates],
            "in_sample": _alarm_documents(proposal.chosen.alarms),
            "trial": trial
            and {
                "learnt_days": round(trial.learnt, 3),
                "judged_days": round(trial.judged, 3),
                "threshold": trial.value,
                "alarms": _alarm_documents(trial.alarms),
            },
            "hours_of_week": [
                {"hour": one.name, "points": one.points, "median": one.middle, "usual": one.usual} for one in self.hours
            ],
            "doubts": list(proposal.doubts),
            "changed": False,
            "command": command,
        }

    def command(self, region: str, profile: str | None) -> str:
        """Returns the command with which the owner can create the alarm."""
        kind = "--statistic" if self.statistic in PLAIN else "--extended-statistic"
        side, value = self.proposal.side, number(self.proposal.chosen.value)
        dimensions = [f"Name={n},Value={v}" for n, v in self.metric.dimensions]
        if not all(_SHORTHAND.fullmatch(part) for pair in self.metric.dimensions for part in pair):
            dimensions = [json.dumps(request(self.metric)["Dimensions"])]
        words = [
            *("aws", "cloudwatch", "put-metric-alarm", "--region", region),
            *(("--profile", profile) if profile else ()),
            *("--alarm-name", f"{dict(self.metric.dimensions).get('check') or self.metric.name}-{side}-{value}"),
            *("--namespace", self.metric.namespace, "--metric-name", self.metric.name),
            *(("--dimensions", *dimensions) if dimensions else ()),
            *(kind, self.statistic, "--period", str(self.history.period)),
            *("--evaluation-periods", str(self.proposal.in_a_row), "--threshold", value),
            *("--comparison-operator", "GreaterThanThreshold" if side is Side.ABOVE else "LessThanThreshold"),
            *("--treat-missing-data", "notBreaching"),
        ]
        return shlex.join(words)


def number(value: float) -> str:
    """Formats a value with all digits that a threshold has, and no exponent unless it is very large or small."""
    return f"{value:.6g}" if 1e-4 <= abs(value) < 1e6 else f"{value:.0f}" if value == int(value) else f"{value:.4g}"


def _raised(alarms: Sequence[PastAlarm]) -> str:
    if not alarms:
        return "no alarm"
    return f"{counted(len(alarms), 'alarm')}, {duration(sum(alarm.seconds for alarm in alarms))} in all,"


def _candidate(one: Candidate) -> dict[str, Any]:
    return {"threshold": one.value, "share": one.share, "alarms": len(one.alarms), "seconds_in_alarm": one.seconds}


def _alarm_documents(alarms: Sequence[PastAlarm]) -> list[dict[str, Any]]:
    return [{"at": _iso(one.at), "seconds": one.seconds, "peak": one.peak} for one in alarms]


def _iso(at: int) -> str:
    return moments.iso(datetime.fromtimestamp(at, UTC))


def _moment(at: int) -> str:
    return show.moment(_iso(at))
