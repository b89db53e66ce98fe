"""Describes the tables that earlier deployments of the same name left, and what people can do about them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from troop.shared.tags import DECLINED_TAG

NAMED = 10
"""The most tables that a sentence names."""

_ARNS = 20
"""The most resources that AWS tags at a time."""

DOCUMENT = "docs/guides/removing.md#after-a-plain-cdk-deploy"


@dataclass(frozen=True)
class EarlierTable:
    """A table with this deployment's tags that it does not use, and about which nobody has decided.

    Attributes:
        part: what it contains, such as ``Events``.
        items: DynamoDB's count, some hours old.
        empty: whether it has no items now.
    """

    name: str
    part: str
    arn: str
    created: datetime
    items: int
    empty: bool


def with_data(tables: Sequence[EarlierTable]) -> list[EarlierTable]:
    return [table for table in tables if not table.empty]


def listed(tables: Sequence[EarlierTable]) -> str:
    each = [
        f"{t.name} ({t.part}, made {t.created:%Y-%m-%d %H:%M}, {'empty' if t.empty else f'about {t.items} items'})"
        for t in tables[:NAMED]
    ]
    more = f" and {len(tables) - NAMED} more" if len(tables) > NAMED else ""
    return ", ".join(each) + more


def ways_out(tables: Sequence[EarlierTable]) -> str:
    """Returns the commands that use tables with data, and those that decline them.

    Args:
        tables: the newest first.
    """
    newest = {table.part: table.name for table in reversed(tables)}
    adopt = ",".join(newest[part] for part in sorted(newest))
    return (
        "To use them, run make destroy, which keeps all tables, then the make deploy that it prints, with "
        f"ADOPT={adopt}. "
        f"To decline them, run make deploy ADOPT=none, or {'; '.join(declining(tables))}; {DOCUMENT}"
    )


def declining(tables: Sequence[EarlierTable]) -> Iterator[str]:
    """Yields the commands that decline tables for good."""
    for first in range(0, len(tables), _ARNS):
        arns = [table.arn for table in tables[first : first + _ARNS]]
        region = arns[0].split(":")[3]
        yield (
            f"aws resourcegroupstaggingapi tag-resources --region {region} --tags {DECLINED_TAG}=yes "
            f"--resource-arn-list {' '.join(arns)}"
        )
