"""Records in the table ``State`` which release the deployment runs, and since when."""

from __future__ import annotations

from datetime import datetime

from troop.chaos.events import SCHEMA
from troop.shared import codec
from troop.shared.aws.state_items import StateItems
from troop.shared.release import Release, RunningRelease
from troop.shared.state_keys import RELEASE


class ReleaseTable(StateItems):
    """Reads and writes the record."""

    def running(self) -> RunningRelease | None:
        """Returns the recorded release; None before the first record, and for one that somebody has damaged."""
        try:
            return codec.from_document(RunningRelease, self.find(RELEASE))
        except codec.DocumentError:
            return None

    def note(self, release: Release, now: datetime) -> None:
        """Records a release that differs from the recorded one.

        Raises:
            ClientError: DynamoDB refused.
        """
        known = self.running()
        if known is None or known.release != release:
            self.put(RELEASE, {"schema": SCHEMA, **codec.to_document(RunningRelease(release, now))})
