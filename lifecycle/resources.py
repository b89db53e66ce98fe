"""Reads the resources and the template of a stack."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import ClientError

from cli.shared import aws

_GONE = frozenset({"DELETE_COMPLETE", "DELETE_SKIPPED", "IMPORT_ROLLBACK_COMPLETE"})
"""States of resources that a stack lists but does not have: deleted, retained, and not imported."""


@dataclass(frozen=True)
class Resource:
    """A resource of a stack.

    Attributes:
        kind: its type, such as ``AWS::EC2::Subnet``.
        physical_id: its id, name or ARN.
    """

    kind: str
    physical_id: str


def resources_of(session: boto3.Session, stack: str) -> dict[str, Resource]:
    """Lists the existing resources of a stack (its name or id), by logical id; none without the stack."""
    cloudformation = aws.client(session, "cloudformation")
    with aws.translated_errors():
        try:
            pages = list(cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack))
        except ClientError as error:
            if "not exist" in error.response["Error"]["Message"]:
                return {}
            raise
    return {
        r["LogicalResourceId"]: Resource(r["ResourceType"], r["PhysicalResourceId"])
        for page in pages
        for r in page["StackResourceSummaries"]
        if r.get("PhysicalResourceId") and r["ResourceStatus"] not in _GONE
    }


def template_of(session: boto3.Session, stack: str) -> dict[str, Any]:
    """Returns the deployed template of a stack; empty without one."""
    with aws.translated_errors():
        body = aws.client(session, "cloudformation").get_template(StackName=stack).get("TemplateBody") or {}
    template: dict[str, Any] = json.loads(body) if isinstance(body, str) else body
    return template
