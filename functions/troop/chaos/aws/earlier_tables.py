"""Finds the tables that earlier deployments of the same name left in the account and region."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from troop.chaos.earlier_tables import EarlierTable
from troop.shared.tags import DATA_TAG, DECLINED_TAG, DEPLOYMENT_TAG


@dataclass(frozen=True)
class EarlierTables:
    """Finds tables by their tags.

    Attributes:
        deployment: the stack's name.
        parts: what the deployment's tables hold, such as ``Events``; other tables do not matter.
        own: names of the deployment's tables.
    """

    tagging: Any
    dynamodb: Any
    deployment: str
    parts: Collection[str]
    own: Collection[str]

    def undecided(self) -> tuple[EarlierTable, ...]:
        """Lists those about which nobody has decided, the newest first; 1 call for a hundred tables, and 2 for each
        undecided one.
        """
        return tuple(sorted(self._tables(), key=lambda table: (table.created, table.name), reverse=True))

    def _tables(self) -> Iterator[EarlierTable]:
        pages = self.tagging.get_paginator("get_resources").paginate(
            ResourceTypeFilters=["dynamodb:table"],
            TagFilters=[
                {"Key": DEPLOYMENT_TAG, "Values": [self.deployment]},
                {"Key": DATA_TAG, "Values": sorted(self.parts)},
            ],
            PaginationConfig={"PageSize": 100},
        )
        for page in pages:
            for resource in page["ResourceTagMappingList"]:
                tags = {tag["Key"]: tag["Value"] for tag in resource["Tags"]}
                arn = resource["ResourceARN"]
                name = arn.rpartition("/")[2]
                # A deployment's tables begin with its name, and IAM allows reading only those.
                if name.startswith(f"{self.deployment}-") and name not in self.own and DECLINED_TAG not in tags:
                    yield from self._table(name, tags[DATA_TAG], arn)

    def _table(self, name: str, part: str, arn: str) -> Iterator[EarlierTable]:
        try:
            table = self.dynamodb.describe_table(TableName=name)["Table"]
            if table["TableStatus"] == "DELETING":
                return
            empty = self._is_empty(name)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return  # tags outlast their table for a while
            raise
        yield EarlierTable(name, part, arn, table["CreationDateTime"], int(table.get("ItemCount", 0)), empty)

    def _is_empty(self, name: str) -> bool:
        """Checks whether a table has no items, with a scan: DescribeTable's count is hours old.

        A table that cannot be scanned, such as one with a key that this role may not use, counts as one with items.
        """
        try:
            page = self.dynamodb.scan(TableName=name, Select="COUNT", Limit=1, ConsistentRead=True)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                raise
            return False
        return int(page["Count"]) == 0 and "LastEvaluatedKey" not in page  # an empty page may have a next one
