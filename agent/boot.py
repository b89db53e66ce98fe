"""Reads the document that user data writes for the agent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from agent.errors import UNREADABLE, AgentError

FORMAT = "troop.boot/1"
_TEXTS = ("bucket", "region", "run", "cell", "role", "agent_sha256")


@dataclass(frozen=True)
class Boot:
    """The node's place: bucket, run, cell and role.

    Attributes:
        bucket: the results bucket.
        role_id: id of the nodes' IAM role; "" for none.
        expires_at: seconds since 1970; Troop then removes everything that is left of the run. A standing fleet may
            be extended later, as its orders say.
        deployment, stage: of Troop; "" for none.
        standing: whether the run is a standing fleet.
    """

    bucket: str
    region: str
    run: str
    cell: str
    role: str
    agent_sha256: str
    expires_at: float
    role_id: str = ""
    deployment: str = ""
    stage: str = ""
    standing: bool = False


def read(path: Path) -> Boot:
    """Reads the file that user data wrote.

    Raises:
        AgentError: the file cannot be read or has another format.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise ValueError(f"the format is {document['format']!r}: must be {FORMAT}")
        bucket, region, run, cell, role, sha256 = (str(document[name]) for name in _TEXTS)
        role_id, deployment, stage = (str(document.get(name, "")) for name in ("role_id", "deployment", "stage"))
        return Boot(
            *(bucket, region, run, cell, role, sha256),
            float(document["expires_at"]),
            *(role_id, deployment, stage, bool(document.get("standing"))),
        )
    except (OSError, *UNREADABLE) as error:
        raise AgentError(f"cannot read {path}: {error!r}") from None
