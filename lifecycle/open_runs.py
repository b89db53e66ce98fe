"""Checks for open benchmarks and standing fleets, which only their deployment can remove."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import boto3
from botocore.exceptions import ClientError

from cli.shared import aws
from cli.shared.errors import CliError, Exit
from troop.shared.outputs import RUNS_TABLE
from troop.shared.tables import FLEET, RUN_OPEN, RUNS_BY_OPEN

_NAMED = 5
"""Runs that the refusal names."""


def refuse_while_open(session: boto3.Session, stack: Mapping[str, Any]) -> None:
    """Refuses to remove a stack's benchmarks while a run or standing fleet is open.

    Args:
        stack: as CloudFormation describes it.

    Raises:
        CliError: FAILED, if a run has not ended.
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
            f"benchmarks or standing fleets are open ({', '.join(runs)}), and only this deployment can remove their "
            f"instances. Stop each one, such as with {command}, and wait until {show} shows that nothing is left",
        )


def _open_runs(dynamodb: Any, table: str) -> dict[str, bool]:
    """Returns some open runs, and whether each is a standing fleet; none if the table does not exist."""
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
