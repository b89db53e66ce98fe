"""Previews a change of a unit's policy that a user enters on the page. The API makes the change itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cli.client.client import TroopClient
from cli.forecasts import policy_preview, unit_ahead
from cli.forecasts.calendar_ahead import Basis
from cli.shared.errors import CliError, Exit
from troop.chaos.units import by_unit
from troop.faults import FAULTS, LASTING


class PolicyRequest(BaseModel):
    """Values of a unit's policy by key, as people type them; empty or null removes a key."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    unit: str
    values: dict[str, str | None] = Field(max_length=50)


class Forecasts(Protocol):
    """The input of forecasts."""

    @property
    def now(self) -> Callable[[], datetime]:
        """The clock."""

    def basis(self) -> Basis:
        """Returns what was read of the account at most a minute ago. Raises CliError."""


@dataclass(frozen=True)
class PagePolicy:
    """Previews policies with a deployment's API and forecasts."""

    client: TroopClient
    forecasts: Forecasts

    def choices(self) -> dict[str, Any]:
        """Returns the faults with their effect, and the names of the calendars; None if these cannot be read."""
        basis = self._basis()
        calendars = None if isinstance(basis, CliError) else list(basis.settings.chaos.calendars)
        known = [(fault.name, fault.summary) for fault in FAULTS] + [(one.usage, one.summary) for one in LASTING]
        return {"methods": known, "calendars": calendars}

    def ahead(self, unit: str) -> dict[str, Any]:
        """Returns what the next days bring for a unit, see :mod:`cli.forecasts.unit_ahead`, if chaos is not halted.

        ``days`` is None for a unit without groups, and if the account cannot be read; ``not_expected`` says why.
        """
        basis = self._basis()
        if isinstance(basis, CliError):
            return {"days": None, "not_expected": str(basis)}
        if unit not in by_unit(basis.account.groups, basis.settings.chaos.units):
            return {"days": None, "not_expected": f"no Auto Scaling group belongs to {unit}"}
        switch = basis.account.switch
        resumed = replace(basis, account=replace(basis.account, switch=replace(switch, halted=False)))
        return unit_ahead.document(resumed, unit, self.forecasts.now()) | {"halted": switch.halted}

    def preview(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the changes to send to the API, the wrong values, and what the changes would do.

        Raises:
            CliError: the request is malformed, the unit unknown, or the deployment does not answer.
        """
        try:
            request = PolicyRequest.model_validate(body)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise CliError(Exit.USAGE, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        unit = self.client.unit(request.unit)
        if unit is None:
            raise CliError(Exit.NO_SUCH_UNIT, f"there is no unit {request.unit!r}")
        basis, now = self._basis(), self.forecasts.now()
        changes, wrong = policy_preview.checked(
            request.values, None if isinstance(basis, CliError) else basis.settings.chaos, now
        )
        answer = {"version": unit["version"], "changes": changes, "wrong": wrong, "no_effect": None, "effect": None}
        if isinstance(basis, CliError):
            return answer | {"no_effect": str(basis)}
        if wrong or not changes:
            return answer
        return answer | {"effect": policy_preview.document(basis, unit["unit"], unit["item"], changes, now)}

    def _basis(self) -> Basis | CliError:
        try:
            return self.forecasts.basis()
        except CliError as error:
            return error
