"""Calls a deployment's API: units and their policies, events, terminations, the switch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from cli.client.api import Answer, Api
from cli.client.bench_client import BenchClient
from cli.client.calls import Calls, listed
from cli.client.remedies import remedy
from cli.shared.errors import CliError, Exit
from troop.chaos.units import unit_to_url

EVENTS_PAGE = 100
DECISIONS_PAGE = 100
CHANGES_PAGE = 100
GROUPS_PAGE = 50
POLICIES_PAGE = 100
RISKS_PAGE = 500
"""The longest pages that the API returns."""

_SEARCHED = 2000
"""Groups to search for a name that is not a unit's."""

_NAMED = 5
"""Groups of a unit that a message names."""


@dataclass(frozen=True)
class TroopClient:
    """A deployment's API; the attributes are those of :class:`cli.client.calls.Calls`."""

    api: Api
    arn: str
    where: str
    sleep: Callable[[float], None] = field(default=time.sleep)
    tell: Callable[[str], None] = field(default=lambda _: None)

    @property
    def calls(self) -> Calls:
        return Calls(self.api, self.arn, self.where, self.sleep, self.tell)

    @property
    def benchmarks(self) -> BenchClient:
        """The part about benchmarks and standing fleets."""
        return BenchClient(self.calls)

    def events(self, query: Mapping[str, str], limit: int) -> list[dict[str, Any]]:
        """Lists up to ``limit`` events, newest first. ``query``: parameters of GET /events but limit and cursor."""
        return listed(lambda page: self.calls.ok("GET", "events", {**query, **page}), "events", limit, EVENTS_PAGE)

    def event_pages(self, query: Mapping[str, str]) -> Iterator[list[dict[str, Any]]]:
        """Yields the events of each page, newest first, each page once it is needed. ``query``: as for events."""
        return self.calls.pages("events", EVENTS_PAGE, query)

    def decisions(self, query: Mapping[str, str], limit: int) -> list[dict[str, Any]]:
        """Lists up to ``limit`` decisions, newest first. ``query``: parameters of GET /decisions, as for events."""
        return listed(
            lambda page: self.calls.ok("GET", "decisions", {**query, **page}), "decisions", limit, DECISIONS_PAGE
        )

    def changes(self, query: Mapping[str, str], limit: int) -> list[dict[str, Any]]:
        """Lists up to ``limit`` changes, newest first. ``query``: parameters of GET /changes, as for events."""
        return listed(lambda page: self.calls.ok("GET", "changes", {**query, **page}), "changes", limit, CHANGES_PAGE)

    def groups(self) -> Iterator[dict[str, Any]]:
        """Yields all groups of the account and region."""
        return self.calls.entries("groups", GROUPS_PAGE)

    def group_pages(self) -> Iterator[list[dict[str, Any]]]:
        """Yields the groups of each page of the API."""
        return self.calls.pages("groups", GROUPS_PAGE)

    def policies(self) -> Iterator[dict[str, Any]]:
        """Yields the policy that users have set, for every unit that has an item."""
        return self.calls.entries("policies", POLICIES_PAGE)

    def unit(self, unit: str) -> dict[str, Any] | None:
        """Returns the answer of GET /groups/{unit}; None for an unknown unit."""
        answer = self.calls.send("GET", unit_path(unit))
        if answer.status == 404:
            return None
        return self.calls.checked(answer, "GET", unit_path(unit))

    def known_unit(self, name: str, hint: str = "`troop groups` lists those there are") -> dict[str, Any]:
        """Finds a unit by its name, or by the name of one of its groups.

        Args:
            name: of a unit or a group.
            hint: what to do if no name is similar.

        Raises:
            CliError: NO_SUCH_UNIT, with similar names.
        """
        unit = self.unit(name)
        if unit and (unit["groups"] or not unit["item"]):
            return unit  # without an item, the API has already searched for a group of that name
        names: dict[str, str] = {}
        for index, group in enumerate(self.groups()):
            if group["group"] == name and (owner := self.unit(group["unit"])):
                return owner
            names |= {group["unit"].lower(): group["unit"], group["group"].lower(): group["group"]}
            if index >= _SEARCHED:
                break
        if unit:
            return unit
        near = [names[n] for n in get_close_matches(name.lower(), names, n=3, cutoff=0.6)]
        meant = f"did you mean {' or '.join(near)}?" if near else hint
        raise CliError(Exit.NO_SUCH_UNIT, f"there is no unit or group {name!r} in {self.where}: {meant}")

    def change_unit(self, unit: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Changes a unit's item (PATCH /groups/{unit}). None as a value removes the key."""
        return self.calls.ok("PATCH", unit_path(unit), body=changes)

    def terminate(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Requests a termination (POST /terminations). Retries, as the request has a key.

        Returns:
            The event, and whether it was already on record.
        """
        answer = self.calls.again("POST", "terminations", request)
        if answer.status in (200, 202) and isinstance(answer.body, dict):
            return answer.body, answer.status == 200
        if answer.status == 404 and answer.message:
            raise self._no_such_group(str(request["group"]), answer.message)
        if answer.status in (403, 409, 410) and isinstance(answer.body, dict) and "statusCode" in answer.body:
            # From the API, not from IAM.
            to_do = remedy(str(answer.body.get("reason", "")), str(request["group"]), answer.body.get("desired"))
            raise CliError(Exit.REFUSED, f"{answer.message}; {to_do}" if to_do else answer.message)
        raise self.refusal(answer, "POST", "terminations")

    def _no_such_group(self, name: str, message: str) -> CliError:
        """Returns the error for an unknown group, with the groups of the unit of that name, or similar names."""
        try:
            groups = [str(group["group"]) for group in self.known_unit(name)["groups"]]
        except CliError as error:
            return error if error.code is Exit.NO_SUCH_UNIT else CliError(Exit.NO_SUCH_UNIT, message)
        meant = f"; {name} is a unit: use one of its groups, {', '.join(groups[:_NAMED])}" if groups else ""
        return CliError(Exit.NO_SUCH_UNIT, message + meant + (" ..." if len(groups) > _NAMED else ""))

    def event(self, id: str) -> dict[str, Any]:
        """Returns an event (GET /events/{id})."""
        return self.calls.ok("GET", f"events/{id}")

    def risks(self, gone: bool) -> dict[str, Any]:
        """Returns the answer of GET /risks with the risks of all its pages.

        Args:
            gone: whether to include those that are gone.
        """
        query = {"gone": str(gone).lower(), "limit": str(RISKS_PAGE)}
        answer = page = self.calls.ok("GET", "risks", query)
        while page.get("cursor"):
            page = self.calls.ok("GET", "risks", {**query, "cursor": page["cursor"]})
            answer["risks"] += page["risks"]
        answer.pop("cursor", None)
        return answer

    def exempt(self, rule: str, subject: str, exemption: Mapping[str, Any] | None) -> dict[str, Any]:
        """Exempts from a risk, or with None ends that (PATCH /risks)."""
        return self.calls.ok("PATCH", "risks", body={"rule": rule, "subject": subject, "exemption": exemption})

    def switch(self) -> dict[str, Any]:
        return self.calls.ok("GET", "switch")

    def change_switch(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        return self.calls.ok("PATCH", "switch", body=changes)

    def health(self) -> dict[str, Any]:
        return self.calls.ok("GET", "health")

    def refusal(self, answer: Answer, method: str, path: str) -> CliError:
        """Returns the error for a refused request, see :meth:`cli.client.calls.Calls.refusal`."""
        return self.calls.refusal(answer, method, path)


def unit_path(unit: str) -> str:
    return f"groups/{unit_to_url(unit)}"
