"""Tags by which Troop knows what is its own, and what nobody may touch.

What is tagged, what looks for the tag, and the roles' conditions on it have its name from here.
"""

from __future__ import annotations

DEPLOYMENT_TAG = "troop:deployment"
"""The name of the deployment: on its stack and all that this has made, and on what its runs create."""

DATA_TAG = "troop:data"
"""On each table, what it holds: a later deployment finds by it what an earlier one has left."""

STACK_TAG = "aws:cloudformation:stack-id"
"""Which stack CloudFormation made a resource for. Nobody but AWS can set a tag that begins with ``aws:``."""

RUN_TAG, CELL_TAG = "troop:run", "troop:cell"
"""Ids of the run, and of its cell, that has created something."""

EXPIRES_TAG = "troop:expires-at"
"""On what a run has created: until when it may be there, as ISO 8601."""

FLEET_TAG = "troop:fleet"
"""The role of a node, such as ``drivers``, and of its group. Chaos never touches what carries it."""

PROTECTED_TAG = "troop:protected"
"""Put by people on groups and instances, with any value: chaos never touches what carries it."""

UNTOUCHABLE_TAGS = (PROTECTED_TAG, FLEET_TAG)
"""Whatever carries one of these is not terminated: a guard says so, and IAM, whatever a policy or a defect says."""

UNIT_TAG = "troop:unit"
"""Put by people on groups: the unit that a group is of."""
