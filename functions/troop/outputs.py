"""Names what other programs read of a deployed stack: its outputs, and its metadata."""

from __future__ import annotations

API_URL = "ApiUrl"
GROUP_TAGS_TABLE, STATE_TABLE, RUNS_TABLE = "GroupTagsTable", "StateTable", "RunsTable"
SALT_SECRET = "SaltSecretArn"
"""Keys of its outputs; :data:`RUNS_TABLE` only with benchmarks."""

SETTINGS_METADATA = "TroopSettings"
"""In the template's metadata: the settings of its functions, as JSON text; the deployment is the stack's name."""
