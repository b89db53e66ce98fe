"""Writes tables and objects of its own, and returns what AWS answers as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from uuid import uuid4

from cli.prove.ledger import PREFIX, tags
from cli.prove.probe import Probe, error_code, step_outcomes


class StorageProbes(Probe):
    """Steps that create tables and buckets."""

    def table_import(self) -> list[dict[str, str]]:
        """Creates a table in one stack, and imports it into another, as a take-over of retained tables does."""
        stacks = self._client("cloudformation")
        first, second, table = (f"{PREFIX}{part}-{uuid4().hex[:8]}" for part in ("first", "second", "table"))
        for kind, name in (("table", table), ("stack", first), ("stack", second)):
            self.ledger.add(kind, name)
        template, with_stream = _table_template(table), _table_template(table, streams=True)
        before, after, change = {"StackName": first}, {"StackName": second}, {"ChangeSetName": f"{PREFIX}import"}
        resource = {
            "ResourceType": "AWS::DynamoDB::Table",
            "LogicalResourceId": "Table",
            "ResourceIdentifier": {"TableName": table},
        }
        imported = {"TemplateBody": template, "ChangeSetType": "IMPORT", "ResourcesToImport": [resource]}

        def carry_out(call: Callable[..., Any], waiter: str, target: Mapping[str, str], **request: Any) -> None:
            call(**target, **request)
            stacks.get_waiter(f"{waiter}_complete").wait(**target)

        def recorded() -> None:
            pages = stacks.get_paginator("list_stacks").paginate(StackStatusFilter=["DELETE_COMPLETE"])
            ids = [one["StackId"] for page in pages for one in page["StackSummaries"] if one["StackName"] == first]
            listed = [r for i in ids for r in stacks.list_stack_resources(StackName=i)["StackResourceSummaries"]]
            states = [one["ResourceStatus"] for one in listed if one["PhysicalResourceId"] == table]
            if states != ["DELETE_SKIPPED"]:
                raise ValueError(f"the record has the states {states}")

        return step_outcomes(
            [
                ("create", partial(carry_out, stacks.create_stack, "stack_create", before, TemplateBody=template)),
                ("leave", partial(carry_out, stacks.delete_stack, "stack_delete", before)),
                ("look it up", recorded),
                (
                    "prepare",
                    partial(carry_out, stacks.create_change_set, "change_set_create", after | change, **imported),
                ),
                ("import", partial(carry_out, stacks.execute_change_set, "stack_import", after, **change)),
                (
                    "add a stream",
                    partial(carry_out, stacks.update_stack, "stack_update", after, TemplateBody=with_stream),
                ),
            ]
        )

    def conditional_writes(self) -> dict[str, str]:
        """Writes an object of a new bucket under conditions, each of which holds at first and then does not."""
        s3, bucket = self._client("s3"), f"{PREFIX}{uuid4().hex}"
        self.ledger.add("bucket", bucket)
        place = {} if s3.meta.region_name == "us-east-1" else {"LocationConstraint": s3.meta.region_name}
        s3.create_bucket(Bucket=bucket, **({"CreateBucketConfiguration": place} if place else {}))
        s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tags("conditional-writes")})

        def put(body: bytes, **condition: str) -> str:
            return error_code(lambda: s3.put_object(Bucket=bucket, Key="probe", Body=body, **condition))

        new, repeated = put(b"1", IfNoneMatch="*"), put(b"2", IfNoneMatch="*")
        version = s3.head_object(Bucket=bucket, Key="probe")["ETag"]
        return {"new": new, "same": put(b"3", IfMatch=version), "exists": repeated, "other": put(b"4", IfMatch=version)}


def _table_template(name: str, *, streams: bool = False) -> str:
    properties: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "key", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "key", "KeyType": "HASH"}],
        "Tags": tags("table-import"),  # not of the stack: an import may not add tags
    }
    if streams:
        properties["StreamSpecification"] = {"StreamViewType": "NEW_IMAGE"}
    table = {"Type": "AWS::DynamoDB::Table", "DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
    return json.dumps({"Resources": {"Table": {**table, "Properties": properties}}})
