"""Lets the setting ``leashed: false`` take effect once nobody has to decide about data of an earlier deployment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from troop.aws.chaos.state import StateTable
from troop.chaos.earlier_tables import EarlierTable, with_data
from troop.state_keys import SWITCH


@dataclass(frozen=True)
class InitialSwitch:
    """Decides once in a deployment's life; costs a read after that, and nothing where the setting is true.

    Attributes:
        undecided: returns the tables of earlier deployments about which nobody has decided.
    """

    state: StateTable
    undecided: Callable[[], Sequence[EarlierTable]]
    clock: Callable[[], datetime]

    def settle(self) -> None:
        """Records that there is no such table with data. Without that record, the deployment stays leashed."""
        if self.state.leashed or self.state.knows_earlier_tables() or "leashed" in self.state.raw(SWITCH):
            return
        if not with_data(self.undecided()):
            self.state.note_earlier_tables(self.clock())
