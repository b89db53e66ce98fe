"""Names what other programs read of a deployed stack: its outputs, and its metadata."""

from __future__ import annotations

API_URL = "ApiUrl"
GROUP_TAGS_TABLE, STATE_TABLE, RUNS_TABLE = "GroupTagsTable", "StateTable", "RunsTable"
SALT_SECRET = "SaltSecretArn"
"""The keys of the stack's outputs; :data:`RUNS_TABLE` only with benchmarks."""

SETTINGS_METADATA = "TroopSettings"
"""The key in the template's metadata for the deployment's settings, as JSON text; its name is the stack's."""

RELEASE_METADATA = "TroopRelease"
"""The key in the template's metadata for the release, as JSON text."""

OVERRIDES_METADATA = "TroopOverrides"
"""The key in the bus's metadata for the settings that cdk.json did not have: their keys as a JSON list in text.

CloudFormation updates the metadata of a template only together with a resource. So if only the origin of a value
changes, a resource must change.
"""
