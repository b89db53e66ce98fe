"""Reads a deployment's surroundings in its account: Lambda's limits, and tables that look like the deployment's own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from troop.chaos.health_facts import TableBeside
from troop.concurrency import Concurrency
from troop.tags import DATA_TAG, DEPLOYMENT_TAG, STACK_TAG

TABLES_READ = 20
"""The most tables that are examined."""


@dataclass(frozen=True)
class AccountReads:
    """Reads one account and region.

    Attributes:
        deployment: the stack's name, for which tables are searched.
        parts: what the deployment's tables hold, such as ``Events``; other tables do not matter.
        own: names of the deployment's tables.
    """

    lambda_: Any
    tagging: Any
    dynamodb: Any
    deployment: str
    parts: Collection[str]
    own: Collection[str]

    def concurrency(self) -> Concurrency:
        """Reads how many functions can run at a time; 1 call."""
        limit = self.lambda_.get_account_settings()["AccountLimit"]
        return Concurrency(
            int(limit["ConcurrentExecutions"]),
            int(limit["UnreservedConcurrentExecutions"]),
            str(self.lambda_.meta.region_name),
        )

    def tables_beside(self) -> tuple[TableBeside, ...]:
        """Lists unused tables with this deployment's tags, newest first; 1 call, and 1 for each table."""
        return tuple(sorted(self._tables(), key=lambda table: (table.created, table.name), reverse=True))

    def _tables(self) -> Iterator[TableBeside]:
        pages = self.tagging.get_paginator("get_resources").paginate(
            ResourceTypeFilters=["dynamodb:table"],
            TagFilters=[
                {"Key": DEPLOYMENT_TAG, "Values": [self.deployment]},
                {"Key": DATA_TAG, "Values": sorted(self.parts)},
            ],
            PaginationConfig={"PageSize": 100, "MaxItems": TABLES_READ + len(self.own)},
        )
        for page in pages:
            for resource in page["ResourceTagMappingList"]:
                name = resource["ResourceARN"].rpartition("/")[2]
                if name in self.own or not name.startswith(f"{self.deployment}-"):
                    continue  # a deployment's tables begin with its name, and IAM allows describing only those
                tags = {tag["Key"]: tag["Value"] for tag in resource["Tags"]}
                try:
                    table = self.dynamodb.describe_table(TableName=name)["Table"]
                except ClientError as error:
                    if error.response["Error"]["Code"] == "ResourceNotFoundException":
                        continue  # tags outlast their table for a while
                    raise
                if table["TableStatus"] != "DELETING":
                    created, items = table["CreationDateTime"], int(table.get("ItemCount", 0))
                    yield TableBeside(name, tags[DATA_TAG], created, items, self._stack(tags))

    def _stack(self, tags: Mapping[str, str]) -> str:
        """Returns the id of the deployment's stack that created a table; "" for any other table."""
        stack = tags.get(STACK_TAG, "")
        own = rf"arn:[^:]+:cloudformation:[^:]*:[^:]*:stack/{re.escape(self.deployment)}/[^/]+"
        return stack if re.fullmatch(own, stack) else ""
