"""Defines the tags by which Troop recognises its own resources, and those that it must not touch.

The code that tags, the code that searches, and the conditions of roles use these names.
"""

from __future__ import annotations

DEPLOYMENT_TAG = "troop:deployment"
"""The tag with the deployment's name: on its stack and the stack's resources, and on what its runs create."""

DATA_TAG = "troop:data"
"""The tag of each table with its contents: a later deployment finds the tables of an earlier one by it."""

DECLINED_TAG = "troop:declined"
"""The tag, with any value, of a table of an earlier deployment about which somebody decided that no later one uses
it.
"""

TABLE_TAG = "troop:table:"
"""The prefix of tags of the secret with the salt: a table's contents follow, and the value is the table's name. See
lifecycle/origin.py.
"""

STACK_TAG = "aws:cloudformation:stack-id"
"""The stack for which CloudFormation created a resource. Only AWS can set a tag that begins with ``aws:``; resources of
some services do not have it, such as tables.
"""

RUN_TAG, CELL_TAG = "troop:run", "troop:cell"
"""The tags with the ids of the run and of the cell that created a resource."""

EXPIRES_TAG = "troop:expires-at"
"""The tag of what a run has created with the moment when it expires, as ISO 8601."""

FLEET_TAG = "troop:fleet"
"""The role of a node, such as ``drivers``, and of its group. Chaos never touches resources with this tag."""

PROTECTED_TAG = "troop:protected"
"""The tag, with any value, that people set on groups and instances: chaos never touches resources with it."""

UNTOUCHABLE_TAGS = (PROTECTED_TAG, FLEET_TAG)
"""Instances and groups with one of these tags are not terminated. A guard and IAM enforce it, even against a policy or
a defect.
"""

UNIT_TAG = "troop:unit"
"""The tag that people set on a group: its unit."""

INSIDE_TAG = "troop:inside"
"""The tag that owners set on a group, which propagates it to its instances: they consent to faults inside these."""

CONSENT, CONSENT_TO_INSTALL = "yes", "install"
"""The values of :data:`INSIDE_TAG`. The second one also lets AWS's documents install the packages that they need."""

CONSENTS = (CONSENT, CONSENT_TO_INSTALL)
