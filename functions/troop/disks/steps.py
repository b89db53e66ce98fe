"""The kinds of steps that change a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Run:
    """A command. In its arguments, ``{sectors:PATH}`` stands for the size of a device in sectors of 512 bytes."""

    command: tuple[str, ...]
    may_fail: bool = False


@dataclass(frozen=True)
class Write:
    """A text for a file of the kernel."""

    path: str
    text: str
    may_fail: bool = False


@dataclass(frozen=True)
class Wait:
    """Waits until a device exists."""

    path: str


Step = Union[Run, Write, Wait]


def run(*command: str, may_fail: bool = False) -> Run:
    return Run(command, may_fail)
