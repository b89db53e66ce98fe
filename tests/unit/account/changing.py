"""What changes through the API leave in the tables, and others who change the same at the same time."""

from __future__ import annotations

from typing import Any

from tests.unit.account.account import Account
from troop.shared.aws.dynamo import plain

BEN = "arn:aws:iam::123456789012:user/ben"
NOW = "2026-11-20T22:46:00.000Z"


def stored(account: Account, unit: str = "web") -> dict[str, Any]:
    answer = account.dynamodb.get_item(TableName="GroupTags", Key={"unit": {"S": unit}})
    item: dict[str, Any] = answer.get("Item", {})
    return item


def recorded(account: Account) -> list[dict[str, Any]]:
    items = [plain(item) for item in account.dynamodb.scan(TableName="Changes")["Items"]]
    return sorted(items, key=lambda item: str(item["at"]))
