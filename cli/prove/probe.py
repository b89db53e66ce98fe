"""Defines what all steps share: clients, names of resources, waits and outcomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import ClientError, WaiterError

from cli.client.client import TroopClient
from cli.client.deployment import Deployment
from cli.prove.judgements import SUCCESS
from cli.prove.ledger import Ledger
from cli.prove.runs import Run
from cli.shared import aws
from cli.shared.errors import CliError

_PAUSE_SECONDS, _MOST_TRIES = 10.0, 60


@dataclass(frozen=True)
class Probe:
    """The session, deployment and client of steps. Each step is a method without arguments.

    Attributes:
        run: starts a run, follows it, and returns its record.
        start_fleet: starts the fleet of :data:`runs.FLEET`, and returns its id.
        sleep: waits for seconds.
    """

    session: boto3.Session
    deployment: Deployment
    client: TroopClient
    ledger: Ledger
    run: Callable[[Run], Mapping[str, Any]]
    start_fleet: Callable[[], str]
    sleep: Callable[[float], None] = time.sleep

    @property
    def _partition(self) -> str:
        return self.deployment.api_arn.split(":")[1]

    def _client(self, service: str, session: boto3.Session | None = None) -> Any:
        return aws.client(session or self.session, service)

    def _resources(self, kind: str) -> list[str]:
        pages = self._client("cloudformation").get_paginator("list_stack_resources")
        return [
            one["PhysicalResourceId"]
            for page in pages.paginate(StackName=self.deployment.name)
            for one in page["StackResourceSummaries"]
            if one["ResourceType"] == kind and one.get("PhysicalResourceId")
        ]

    def _await(self, is_over: Callable[[], bool], problem: Callable[[], str]) -> None:
        for _ in range(_MOST_TRIES):
            if is_over():
                return
            self.sleep(_PAUSE_SECONDS)
        raise ValueError(problem())


def error_code(call: Callable[[], Any], succeeded: str = SUCCESS) -> str:
    """Returns the code of the error that a call raises."""
    try:
        call()
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return succeeded


def step_outcomes(steps: Iterable[tuple[str, Callable[[], Any]]]) -> list[dict[str, str]]:
    """Carries out steps in order, until one fails."""
    outcomes: list[dict[str, str]] = []
    for step, call in steps:
        try:
            call()
        except (ClientError, CliError, WaiterError, ValueError) as error:
            return [*outcomes, {"step": step, "status": " ".join(str(error).split())}]
        outcomes.append({"step": step, "status": "done"})
    return outcomes
