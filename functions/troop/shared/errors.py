"""Defines errors that users see. Each message states the problem, and what to do."""

from __future__ import annotations

from enum import StrEnum

from troop.shared.values import shown


class ErrorCode(StrEnum):
    """Codes of the API's errors that programs distinguish. The message is for people, and may change."""

    NO_SUCH_RUN = "no-such-run"
    NO_SUCH_FLEET = "no-such-fleet"
    OPT_OUT_OVER = "opt-out-over"
    MALFORMED_ITEM = "malformed-item"
    NO_PERMIT = "no-permit"


class TroopError(Exception):
    """Base of every error that Troop raises on purpose."""


class SettingsError(TroopError):
    """A setting that cannot be used.

    Attributes:
        key: the setting's full name, such as ``troop:probability``.
        value: the value of the setting.
        allowed: the accepted values, as a phrase that follows "must be".
    """

    def __init__(self, key: str, value: object, allowed: str) -> None:
        self.key, self.value, self.allowed = key, value, allowed
        super().__init__(f"{key} is {shown(value, 200)}: must be {allowed}")


class MissingGroupError(TroopError):
    """An Auto Scaling group that does not exist (any more)."""

    def __init__(self, group: str) -> None:
        self.group = group
        super().__init__(f"there is no Auto Scaling group named {group!r}")


class MissingFaultError(TroopError):
    """A method of termination that this version of Troop does not have."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is no method {name!r} in this version, so another version has written it")


class MissingEventError(TroopError):
    """An event id that is not in the table."""

    def __init__(self, event_id: str) -> None:
        self.event_id = event_id
        super().__init__(f"there is no event {event_id!r}")


class MissingRunError(TroopError):
    """A run, or a cell of one, that is not in the table."""

    def __init__(self, run: str, cell: str | None = None) -> None:
        self.run, self.cell = run, cell
        super().__init__(f"there is no run {run!r}" if cell is None else f"the run {run!r} has no cell {cell!r}")


class RunClosedError(TroopError):
    """A run, or a cell of it, is being torn down or was, so that nothing may be launched for it."""

    def __init__(self, run: str, cell: str | None = None) -> None:
        self.run, self.cell = run, cell
        subject = f"run {run}" if cell is None else f"cell {cell} of run {run}"
        super().__init__(f"the {subject} is closed: start another run")


class NoBenchmarksError(TroopError):
    """The deployment does not include the part that runs benchmarks."""

    def __init__(self) -> None:
        super().__init__("this deployment does not run benchmarks: its setting troop:benchmarks is false")


class NotEndedError(TroopError):
    """A run that has not ended has no report."""

    def __init__(self, run: str) -> None:
        super().__init__(f"the run {run} has not ended: its report is created when it ends")


class NoStoredResultsError(TroopError):
    """The results for a report have expired."""

    def __init__(self, run: str) -> None:
        super().__init__(
            f"the results of run {run} have expired, so it can have no report: "
            "the setting troop:results_retention_days limits how long results are stored"
        )
