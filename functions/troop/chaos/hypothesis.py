"""Defines the hypothesis of a termination: what must stay true while the unit loses an instance. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What the unit's policy said at the claim.

    Attributes:
        success_alarms: names of alarms that must not go off from the termination until the verdict.
        stop_alarms: names of alarms that stop chaos for the unit, without an influence on the verdict.
        recovery_within: the most seconds that the recovery may take; None for the deployment's recovery timeout.
    """

    success_alarms: tuple[str, ...] = ()
    stop_alarms: tuple[str, ...] = ()
    recovery_within: int | None = None

    @property
    def alarms(self) -> tuple[str, ...]:
        """All alarms, each once. All of them must be OK at the claim, and each one stops chaos for the unit."""
        return tuple(dict.fromkeys(self.success_alarms + self.stop_alarms))

    def objection(self, states: Mapping[str, str]) -> str:
        """Names the first alarm that is not OK, with its state; "" if all are. No other state is evidence of health.

        Args:
            states: CloudWatch's, by the name of the alarm, without alarms that do not exist.
        """
        for name in self.alarms:
            state = states.get(name, "unknown: there is no such alarm")
            if state != "OK":
                return f"{'success' if name in self.success_alarms else 'stop'} alarm {name} is {state}"
        return ""
