"""Creates what finds the resources of runs."""

from __future__ import annotations

from troop.bench.aws.tagged_resources import Leftovers
from troop.bench.flows.inventory import Stocktaking
from troop.bench.removal.ownership import Site
from troop.bench.wiring.store import runs
from troop.shared.aws.clients import client
from troop.shared.variables import Variable
from troop.shared.wiring.environment import settings, variable


def leftovers() -> Leftovers:
    return Leftovers(client("ec2"), client("autoscaling"), settings().deployment)


def stock() -> Stocktaking:
    return Stocktaking(runs(), leftovers(), Site(variable(Variable.NETWORK_VPC), variable(Variable.NODE_PROFILE)))
