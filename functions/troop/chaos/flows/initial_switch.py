"""Lets the setting ``leashed: false`` take effect once nobody has to decide about data of an earlier deployment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.aws.state_table import StateTable
from troop.chaos.earlier_tables import EarlierTable, with_data
from troop.shared.state_keys import SWITCH

logger = Logger()


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
        """Records that there is no such table with data. Without that record, the deployment stays leashed, also if
        AWS does not answer: a tick and a halt go on.
        """
        try:
            self._settle()
        except (BotoCoreError, ClientError):
            logger.warning("stays leashed: tables of earlier deployments are not known", exc_info=True)

    def _settle(self) -> None:
        if self.state.leashed or self.state.knows_earlier_tables() or "leashed" in self.state.raw(SWITCH):
            return
        if not with_data(self.undecided()):
            self.state.note_earlier_tables(self.clock())
