"""Names what other programs read of a deployed stack: its outputs, and its metadata."""

from __future__ import annotations

API_URL = "ApiUrl"
GROUP_TAGS_TABLE, STATE_TABLE, RUNS_TABLE = "GroupTagsTable", "StateTable", "RunsTable"
SALT_SECRET = "SaltSecretArn"
"""Keys of its outputs; :data:`RUNS_TABLE` only with benchmarks."""

SETTINGS_METADATA = "TroopSettings"
"""In the template's metadata: the settings of the deployment, as JSON text; its name is the stack's."""

OVERRIDES_METADATA = "TroopOverrides"
"""In the metadata of the bus: keys of settings that cdk.json did not have, as a JSON list in text.

CloudFormation updates the metadata of a template only together with a resource. So if only the origin of a value
changes, a resource must change.
"""
