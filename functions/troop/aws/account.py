"""The account as a tick reads it: what all decisions rest on, and what is fetched only for units that are due."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.aws.groups import alarm_states, protected_instances, read_groups, refreshing
from troop.aws.shields import Asking, NotAskedError, spare_shielded
from troop.aws.state import PolicyTable, StateTable
from troop.chaos.decisions import Account
from troop.chaos.facts import Facts
from troop.chaos.guards import BEFORE_CAPS


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


def look_closer(autoscaling: Any, cloudwatch: Any, asking: Asking, due: list[Facts]) -> list[Facts]:
    """Adds to the facts of units that are due: instance refreshes, one call a group; the states of stop alarms; and of
    the instances that would be chosen, those that EC2 protects, two calls or some more a unit.
    """
    under_way = refreshing(autoscaling, sorted({g.name for f in due for g in f.groups}))
    states = alarm_states(cloudwatch, {name for f in due for name in f.policy.stop_alarms.value})
    return [_without_shielded(asking, replace(f, refreshing=under_way, alarms=states)) for f in due]


def _without_shielded(asking: Asking, facts: Facts) -> Facts:
    # Whoever claims asks again, and there nothing is terminated when it cannot be told. One instance that this role may
    # not be told about must not cost all other units their tick.
    with suppress(BotoCoreError, ClientError, NotAskedError):
        return spare_shielded(asking, facts, BEFORE_CAPS)
    return facts
