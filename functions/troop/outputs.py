"""What a deployed stack tells to those who only know its name: outputs that are read again, and its metadata."""

from __future__ import annotations

API_URL = "ApiUrl"
GROUP_TAGS_TABLE, STATE_TABLE, RUNS_TABLE = "GroupTagsTable", "StateTable", "RunsTable"
SALT_SECRET = "SaltSecretArn"
"""Keys of its outputs; :data:`RUNS_TABLE` only with benchmarks."""

SETTINGS_METADATA = "TroopSettings"
"""In the template's metadata: the settings that its functions decide by, as JSON text; the stack has their name."""
