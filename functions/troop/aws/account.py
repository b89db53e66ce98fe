"""The account as a tick reads it: what all decisions rest on, and what is fetched only for units that are due."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from troop.aws.groups import alarm_states, protected_instances, read_groups, refreshing
from troop.aws.state import PolicyTable, StateTable
from troop.chaos.decisions import Account
from troop.chaos.facts import Facts


def read_account(autoscaling: Any, ec2: Any, policies: PolicyTable, state: StateTable) -> Account:
    """All groups, the tables ``GroupTags`` and ``State``, and the ids of protected instances."""
    view = state.view()
    return Account(
        groups=read_groups(autoscaling),
        items=policies.all(),
        states=view.units,
        switch=view.switch,
        counts=view.counts,
        protected_instances=protected_instances(ec2),
    )


def look_closer(autoscaling: Any, cloudwatch: Any, due: list[Facts]) -> list[Facts]:
    """Adds instance refreshes, one call a group, and the states of stop alarms to the facts of units that are due."""
    under_way = refreshing(autoscaling, sorted({g.name for f in due for g in f.groups}))
    states = alarm_states(cloudwatch, {name for f in due for name in f.policy.stop_alarms.value})
    return [replace(f, refreshing=under_way, alarms=states) for f in due]
