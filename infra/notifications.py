"""Defines news: terminations and changes, on the event bus and on a topic.

A function reads the tables' streams. So every record is published, and neither chaos nor the API waits for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import permissions
from infra.data import Data, make_queue
from infra.functions import Functions
from infra.keys import data_key
from infra.roles import as_listed, make_role
from troop.chaos.events import Status
from troop.chaos.notifications import LATER_VERDICTS, NEWS, SOURCE
from troop.shared.state_keys import CHANGE_POINT, SELF_HALT, STRAYS, SWITCH
from troop.shared.variables import Variable

BATCH = 10
"""Records per call; a failed one is retried, and those before it are not."""

RETRIES = 20
"""During retries, recipients that were reached get the news again, and later news waits."""

MAX_AGE_HOURS = 6
"""Older news is dropped; the record itself stays in its table."""


class Notifications(Construct):
    """The topic, and the connection from the tables to it and to the bus.

    Attributes:
        news: the topic. It has no subscribers initially.
        notify: the function that publishes what is written to the tables.
        undelivered: references to records of the streams that could not be published.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        data: Data,
        bus: events.IEventBus,
        functions: Functions,
        weekly_letter: bool,
        news_bus: str | None,
        undeliverable: sqs.IQueue,
    ) -> None:
        """Creates all of it.

        Args:
            news_bus: ARN of another bus that gets the news, too.
            undeliverable: gets what EventBridge could not deliver there.
        """
        super().__init__(scope, construct_id)
        key = data_key(self)
        self.news = sns.Topic(self, "News", enforce_ssl=True, master_key=key)
        topic = self.news.node.default_child
        if not isinstance(topic, sns.CfnTopic):
            raise TypeError("the topic is not a CfnTopic")
        if key is None:
            # AWS's own key is free: only the function publishes, and it may use that key through SNS.
            topic.kms_master_key_id = "alias/aws/sns"
        self.undelivered = make_queue(self, "Undelivered", cdk.Duration.days(14))
        streamed: Mapping[str, tuple[dynamodb.Table, list[Any]]] = {
            "Events": (data.events, list(_steps())),
            "Changes": (data.changes, [{"eventName": ["INSERT"]}]),
            "GroupTags": (data.group_tags, []),
            "State": (
                data.state,
                [{"dynamodb": {"Keys": {"key": {"S": [SWITCH, STRAYS, SELF_HALT, {"prefix": CHANGE_POINT}]}}}}],
            ),
        }
        tables = [table for table, _ in streamed.values()]
        self.notify = functions.make(
            "notify",
            permissions.notify(data, tables, bus, self.news, self.undelivered, weekly_letter=weekly_letter),
            {
                **data.environment(),
                Variable.GROUP_TAGS_TABLE: data.group_tags.table_name,
                Variable.CHANGES_TABLE: data.changes.table_name,
                Variable.DECISIONS_TABLE: data.decisions.table_name,
                Variable.EVENT_BUS: bus.event_bus_name,
                Variable.NEWS_TOPIC: self.news.topic_arn,
                Variable.UNTOLD_QUEUE: self.undelivered.queue_url,
            },
            seconds=300,  # ten records, each with calls that are retried for a while if a service does not answer
            megabytes=256,
        )
        for name, (table, filters) in streamed.items():
            lambda_.CfnEventSourceMapping(
                self,
                name,
                function_name=self.notify.function_name,
                event_source_arn=table.table_stream_arn,
                # LATEST could miss writes during the creation of the mapping.
                starting_position="TRIM_HORIZON",
                batch_size=BATCH,
                bisect_batch_on_function_error=True,
                function_response_types=["ReportBatchItemFailures"],
                maximum_retry_attempts=RETRIES,
                maximum_record_age_in_seconds=MAX_AGE_HOURS * 3600,
                destination_config=lambda_.CfnEventSourceMapping.DestinationConfigProperty(
                    on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(destination=self.undelivered.queue_arn)
                ),
                filter_criteria=criteria(filters),
            )
        if news_bus:
            Forwarding(self, "Forwarding", source=bus, news_bus=news_bus, undeliverable=undeliverable)


class Forwarding(Construct):
    """Sends the news on the deployment's bus to another one. EventBridge tries for a day."""

    def __init__(
        self, scope: Construct, construct_id: str, *, source: events.IEventBus, news_bus: str, undeliverable: sqs.IQueue
    ) -> None:
        super().__init__(scope, construct_id)
        role = make_role(
            self,
            "Role",
            service="events.amazonaws.com",
            description="Sends Troop's news to another event bus",
            statements=[permissions.allow(["events:PutEvents"], news_bus)],
        )
        target = targets.EventBus(
            events.EventBus.from_event_bus_arn(self, "NewsBus", news_bus),
            role=as_listed(role),
            dead_letter_queue=undeliverable,
        )
        events.Rule(
            self,
            "Rule",
            event_bus=source,
            description="News for another bus",
            # Not what other deployments forward to this bus: EventBridge delivers nothing to a third bus, so that
            # would be a dead letter.
            event_pattern=events.EventPattern(
                source=[SOURCE],
                account=[cdk.Aws.ACCOUNT_ID],
                region=[cdk.Aws.REGION],
                detail={"deployment": [cdk.Aws.STACK_NAME]},
            ),
            targets=[target],
        )


def _steps() -> Iterable[dict[str, Any]]:
    """Yields filters for the writes of an event that are news, which saves the calls for all others."""
    for before, after in NEWS.items():
        # A write that leaves the status can still be news of a fault's end.
        same = [Status.RUNNING] if before is Status.RUNNING else []
        images = {"OldImage": [before.value], "NewImage": [status.value for status in (*same, *after)]}
        yield {"dynamodb": {image: {"status": {"S": statuses}} for image, statuses in images.items()}}
    for status, verdict in LATER_VERDICTS.items():
        judged = {"verdict": {"M": {"value": {"S": [verdict.value]}}}}
        yield {"dynamodb": {"OldImage": {"status": {"S": [status.value]}}, "NewImage": judged}}


def criteria(patterns: Iterable[Mapping[str, Any]]) -> lambda_.CfnEventSourceMapping.FilterCriteriaProperty | None:
    """Returns the filters of a stream's reader; None without one."""
    filters = [lambda_.CfnEventSourceMapping.FilterProperty(pattern=json.dumps(pattern)) for pattern in patterns]
    return lambda_.CfnEventSourceMapping.FilterCriteriaProperty(filters=filters) if filters else None
