"""Offers Troop to CDK apps: :class:`TroopStack`, one deployment as a stack.

```python
import aws_cdk as cdk
from troop_aws.cdk import TroopStack

app = cdk.App()
troop = TroopStack(app, "Troop", participation="opt-in", probability=0.5)
cdk.CfnOutput(troop, "OnCall", value=troop.act_now_topic.topic_arn)
app.synth()
```
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, TypedDict, Unpack

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra import stack as stacks
from infra.acknowledgements import acknowledge, check
from infra.settings import PREFIX, DeploymentSettings, as_passed, check_region, read_settings, written_context
from infra.store import BundlingError
from troop import stages
from troop.errors import SettingsError
from troop.version import VERSION

__all__ = ["VERSION", "BundlingError", "Settings", "SettingsError", "TroopStack", "acknowledge", "check"]


class Calendar(TypedDict, total=False):
    """Business hours; see docs/settings.md for each key and what may be left out."""

    time_zone: str
    weekdays: Sequence[str]
    open: str
    close: str
    country: str | None
    subdivision: str | None
    categories: Sequence[str] | None
    extra_dates: Sequence[Any]
    freezes: Sequence[Any]
    change_calendar: str | None


class Network(TypedDict):
    """An existing network."""

    vpc: str
    subnets: Sequence[str]


class Settings(TypedDict, total=False):
    """The settings of a deployment. docs/settings.md describes each; what is left out has the default given there."""

    deployment: str
    leashed: bool
    participation: Literal["opt-out", "opt-in"]
    probability: float
    min_healthy: int
    lowest_min_healthy: int
    min_days_between: int
    method: str
    max_per_day: int
    max_in_flight: int
    on_demand: bool
    units: Mapping[str, str]
    calendars: Mapping[str, Calendar]
    tick_minutes: int
    recovery_timeout_minutes: int
    decision_retention_days: int
    log_retention_days: int
    retain_data: bool
    api_access_logs: bool
    runbook_url: str
    dashboards: bool
    daily_cost_alarm: float
    bundle: Literal["auto", "lambda", "machine"]
    key: str | None
    tags: Mapping[str, str]
    benchmarks: bool
    network: Network | None
    zones: int | Sequence[str]
    dns_firewall: bool
    allowed_buckets: Sequence[str]
    allowed_images: Sequence[str]
    allowed_snapshots: Sequence[str]
    allowed_targets: Sequence[str]
    own_data: bool
    max_nodes: int
    max_nodes_total: int
    max_run_cost: float | Literal["none"]
    max_scheduled_cost: float | Literal["none"]
    instance_types: Sequence[str]
    results_retention_days: int


class TroopStack(stacks.TroopStack):
    """One deployment of Troop.

    Args:
        scope: the app, or a stage of it.
        construct_id: also the deployment's and the stack's name, unless the setting ``deployment`` is another.
        env: account and region; by default, the stack fits any.
        synthesizer, permissions_boundary, termination_protection: as for any stack.
        settings: see :class:`Settings`.

    Raises:
        SettingsError: a setting is unknown or wrong; the message has the value and what is allowed.
        BundlingError: the functions' layers cannot be installed; the first synthesis downloads packages.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        env: cdk.Environment | None = None,
        synthesizer: cdk.IStackSynthesizer | None = None,
        permissions_boundary: cdk.PermissionsBoundary | None = None,
        termination_protection: bool | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        parsed = _parsed({"deployment": construct_id, **settings})
        region = env.region if env else None
        if region and not cdk.Token.is_unresolved(region):
            check_region(parsed, region)
        super().__init__(
            scope,
            parsed,
            construct_id,
            env=env,
            synthesizer=synthesizer,
            permissions_boundary=permissions_boundary,
            termination_protection=termination_protection,
        )

    @classmethod
    def from_context(cls, app: cdk.App) -> Self:
        """Creates the deployment that the context of the app describes: ``troop:KEY``, and a stage in ``troop:stage``.

        Raises:
            SettingsError, BundlingError: as the class itself.
        """
        written = written_context()
        context = written | app.node.get_all_context()
        parsed = read_settings(context, written)
        if os.environ.get("CDK_DEFAULT_ACCOUNT"):  # without credentials, the CDK only guesses the region
            check_region(parsed, os.environ["CDK_DEFAULT_REGION"])
        stack = cls.__new__(cls)
        stacks.TroopStack.__init__(stack, app, parsed)
        return stack

    @property
    def api_url(self) -> str:
        """The address of the API, for signed requests."""
        return self.api.rest_api.url

    @property
    def group_tags_table(self) -> dynamodb.ITable:
        """Policies of units."""
        return self.data.group_tags

    @property
    def events_table(self) -> dynamodb.ITable:
        """Terminations and their recovery."""
        return self.data.events

    @property
    def decisions_table(self) -> dynamodb.ITable:
        """Each tick's decision about each unit."""
        return self.data.decisions

    @property
    def event_bus(self) -> events.IEventBus:
        """News for programs; rules on it are yours."""
        return self.bus

    @property
    def act_now_topic(self) -> sns.ITopic:
        """For the people on call."""
        return self.alarms.act_now_topic

    @property
    def warning_topic(self) -> sns.ITopic:
        """For the people who handle warnings."""
        return self.alarms.warning_topic

    @property
    def news_topic(self) -> sns.ITopic:
        """For people who want news about terminations and changes."""
        return self.notifications.news

    @property
    def chaos_machine(self) -> sfn.IStateMachine:
        """The workflow that every tick starts."""
        return self.workflow.machine

    @property
    def results_bucket(self) -> s3.IBucket | None:
        """Results of benchmarks; None without benchmarks."""
        return self.benchmarks.data.results if self.benchmarks else None


def _parsed(settings: Mapping[str, Any]) -> DeploymentSettings:
    written = written_context()
    defaults = {key: value for key, value in written.items() if key.startswith(PREFIX)}
    for key in (stages.STAGE, stages.STAGES):  # an app has its own
        del defaults[PREFIX + key]
    context = defaults | {PREFIX + key: value for key, value in settings.items()}
    return read_settings({key: as_passed(value) for key, value in context.items()}, written)
