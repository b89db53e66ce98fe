"""Benchmarks that are under way, and standing fleets: what would remove these must not go before them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import boto3
from botocore.exceptions import ClientError

from cli import aws
from cli.errors import CliError, Exit
from troop.outputs import RUNS_TABLE
from troop.tables import FLEET, RUN_OPEN, RUNS_BY_OPEN

_NAMED = 5
"""Runs that the refusal names."""


def refuse_while_open(session: boto3.Session, stack: Mapping[str, Any]) -> None:
    """Lets a stack's benchmarks be only when none of them has left anything that still has to be removed.

    Args:
        stack: as CloudFormation describes it.

    Raises:
        CliError: FAILED, while a run has not ended.
    """
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
    if RUNS_TABLE not in outputs:
        return
    runs = _open_runs(aws.client(session, "dynamodb"), outputs[RUNS_TABLE])
    if runs:
        troop = f"troop -d {stack['StackName']}"
        first, is_fleet = next(iter(runs.items()))
        command = f"{troop} fleet down {first}" if is_fleet else f"{troop} bench stop {first}"
        show = "troop fleet status" if is_fleet else "troop bench status"
        raise CliError(
            Exit.FAILED,
            f"benchmarks or standing fleets are not over yet ({', '.join(runs)}), and only this deployment would "
            f"remove their instances: stop them, each with {command}, and wait until {show} says that all is gone",
        )


def _open_runs(dynamodb: Any, table: str) -> dict[str, bool]:
    """Some of the runs that have not ended, and whether they are standing fleets; none where the table is gone."""
    with aws.translated_errors():
        try:
            answer = dynamodb.query(
                TableName=table,
                IndexName=RUNS_BY_OPEN.name,
                KeyConditionExpression="#open = :open",
                ExpressionAttributeNames={"#open": RUNS_BY_OPEN.partition},
                ExpressionAttributeValues={":open": {"S": RUN_OPEN}},
                Limit=_NAMED,
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return {}
            raise
    return {item["run"]["S"]: item["kind"]["S"] == FLEET for item in answer["Items"]}
