"""Reads the account for a tick: the facts for all decisions, and details only for units that are due."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.aws.chaos.balancers import BalancersOfATick
from troop.aws.chaos.groups import alarm_states, protected_instances, read_groups, refreshing
from troop.aws.chaos.state import PolicyTable, StateTable
from troop.aws.chaos.termination_protection import Asking, UnknownProtectionError, spare_shielded
from troop.chaos.decisions import Account
from troop.chaos.facts import Facts
from troop.chaos.guards import BEFORE_CAPS, Refusal, pass_guards


def read_account(autoscaling: Any, ec2: Any, policies: PolicyTable, state: StateTable) -> Account:
    """Reads all groups, the tables ``GroupTags`` and ``State``, and the ids of protected instances."""
    view = state.view()
    return Account(
        groups=read_groups(autoscaling),
        items=policies.all(),
        states=view.units,
        switch=view.switch,
        counts=view.counts,
        protected_instances=protected_instances(ec2),
    )


def read_details(
    autoscaling: Any, cloudwatch: Any, balancers: BalancersOfATick, asking: Asking, due: list[Facts]
) -> list[Facts]:
    """Adds details to the facts of units that are due: instance refreshes, one call a group; the states of stop alarms;
    the health in the traffic sources, one call for each; and which candidates EC2 protects, two or a few more calls a
    unit.
    """
    under_way = refreshing(autoscaling, sorted({g.name for f in due for g in f.groups}))
    states = _alarm_states(cloudwatch, [f.policy.stop_alarms.value for f in due])
    seen = [replace(f, refreshing=under_way, alarms=states) for f in due]
    return [_without_shielded(asking, _balanced(balancers, f)) for f in seen]


def _alarm_states(cloudwatch: Any, named: list[tuple[str, ...]]) -> dict[str, str]:
    """Returns states by name of the alarms that units have named. If CloudWatch rejects a name, each unit's alarms are
    read separately. Units whose alarms cannot be read are skipped, because an unknown state is not OK.
    """
    try:
        return alarm_states(cloudwatch, {name for names in named for name in names})
    except ClientError as error:
        if not _invalid(error):
            raise
    states: dict[str, str] = {}
    for names in named:
        try:
            states |= alarm_states(cloudwatch, names)
        except ClientError as error:
            if not _invalid(error):
                raise
    return states


def _invalid(error: ClientError) -> bool:
    return error.response["Error"]["Code"] in ("ValidationError", "InvalidParameterValue")


def _balanced(balancers: BalancersOfATick, facts: Facts) -> Facts:
    """Adds the health in the traffic sources, or why it could not be read. Makes no call for a unit that is refused by
    now.
    """
    if isinstance(pass_guards(facts, BEFORE_CAPS), Refusal):
        return facts
    healthy, unread = balancers.healthy(facts.groups)
    return replace(facts, unread=unread) if unread else replace(facts, balanced=healthy)


def _without_shielded(asking: Asking, facts: Facts) -> Facts:
    # The claim checks again, and terminates nothing if it cannot read this. One instance that this role cannot read
    # must not fail the tick of all other units.
    with suppress(BotoCoreError, ClientError, UnknownProtectionError):
        return spare_shielded(asking, facts, BEFORE_CAPS)
    return facts
