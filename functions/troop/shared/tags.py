"""Defines the tags by which Troop recognises its own resources, and those that it must not touch.

The code that tags, the code that searches, and the conditions of roles use these names.
"""

from __future__ import annotations

DEPLOYMENT_TAG = "troop:deployment"
"""The name of the deployment: on its stack and the stack's resources, and on what its runs create."""

DATA_TAG = "troop:data"
"""On each table, its contents: a later deployment finds the tables of an earlier one by it."""

DECLINED_TAG = "troop:declined"
"""On a table of an earlier deployment, with any value: somebody decided that no later deployment uses it."""

TABLE_TAG = "troop:table:"
"""With the contents of a table, on the secret with the salt: the table's name. See lifecycle/origin.py."""

STACK_TAG = "aws:cloudformation:stack-id"
"""The stack for which CloudFormation created a resource. Only AWS can set a tag that begins with ``aws:``; resources of
some services do not have it, such as tables.
"""

RUN_TAG, CELL_TAG = "troop:run", "troop:cell"
"""Ids of the run and of the cell that created a resource."""

EXPIRES_TAG = "troop:expires-at"
"""On what a run has created: when it expires, as ISO 8601."""

FLEET_TAG = "troop:fleet"
"""The role of a node, such as ``drivers``, and of its group. Chaos never touches resources with this tag."""

PROTECTED_TAG = "troop:protected"
"""Set by people on groups and instances, with any value: chaos never touches resources with this tag."""

UNTOUCHABLE_TAGS = (PROTECTED_TAG, FLEET_TAG)
"""Instances and groups with one of these tags are not terminated. A guard and IAM enforce it, even against a policy or
a defect.
"""

UNIT_TAG = "troop:unit"
"""Set by people on groups: the unit of a group."""
