"""What user data tells the agent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from agent.errors import UNREADABLE, AgentError

FORMAT = "troop.boot/1"
_TEXTS = ("bucket", "region", "run", "cell", "role", "agent_sha256")


@dataclass(frozen=True)
class Boot:
    """Where this node belongs.

    Attributes:
        bucket: of the results.
        expires_at: seconds since 1970; whatever exists of the run then is removed.
    """

    bucket: str
    region: str
    run: str
    cell: str
    role: str
    agent_sha256: str
    expires_at: float


def read(path: Path) -> Boot:
    """The file that user data has written.

    Raises:
        AgentError: it is another one.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise ValueError(f"its format is {document['format']!r}: must be {FORMAT}")
        bucket, region, run, cell, role, sha256 = (str(document[name]) for name in _TEXTS)
        return Boot(bucket, region, run, cell, role, sha256, float(document["expires_at"]))
    except (OSError, *UNREADABLE) as error:
        raise AgentError(f"{path} cannot be read: {error!r}") from None
