"""News: what chaos does and what people change, on the event bus and on a topic.

A function reads the tables' streams. So nothing that is recorded goes untold, and neither chaos nor the API waits for
anybody to be told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.data import Data
from infra.functions import Functions
from troop.chaos.notifications import NEWS

BATCH = 10
"""Records a call; one that fails is called for again, and those before it are not."""

RETRIES = 20
"""While it is tried again, those who were reached hear the same again; and what comes after it has to wait."""

MAX_AGE_HOURS = 6
"""After which others are not told any more: the record itself stays in its table."""


class Notifications(Construct):
    """The topic, and what leads from the tables to it and to the bus.

    Attributes:
        news: the topic. Nobody is subscribed until somebody subscribes.
        undelivered: which records of which stream nobody was told of.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, data: Data, bus: events.IEventBus, functions: Functions
    ) -> None:
        super().__init__(scope, construct_id)
        self.news = sns.Topic(self, "News", enforce_ssl=True)
        topic = self.news.node.default_child
        if not isinstance(topic, sns.CfnTopic):
            raise TypeError("a topic is no topic")
        # AWS's own key, which costs nothing: only the function publishes, and it may use that key through SNS.
        topic.kms_master_key_id = "alias/aws/sns"
        self.undelivered = sqs.Queue(
            self,
            "Undelivered",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=cdk.Duration.days(14),
        )
        streamed: Mapping[str, tuple[dynamodb.Table, list[Any]]] = {
            "Events": (data.events, list(_steps())),
            "Changes": (data.changes, [{"eventName": ["INSERT"]}]),
            "GroupTags": (data.group_tags, []),
            "State": (data.state, [{"dynamodb": {"Keys": {"key": {"S": ["switch"]}}}}]),
        }
        functions.add_notifier([table for table, _ in streamed.values()], bus, self.news, self.undelivered)
        for name, (table, filters) in streamed.items():
            lambda_.CfnEventSourceMapping(
                self,
                name,
                function_name=functions.notify.function_name,
                event_source_arn=table.table_stream_arn,
                # LATEST could miss what is written while the mapping is being made.
                starting_position="TRIM_HORIZON",
                batch_size=BATCH,
                bisect_batch_on_function_error=True,
                function_response_types=["ReportBatchItemFailures"],
                maximum_retry_attempts=RETRIES,
                maximum_record_age_in_seconds=MAX_AGE_HOURS * 3600,
                destination_config=lambda_.CfnEventSourceMapping.DestinationConfigProperty(
                    on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(destination=self.undelivered.queue_arn)
                ),
                filter_criteria=_criteria(filters),
            )


def _steps() -> Iterable[dict[str, Any]]:
    """Of an event's many writes, those that are news: a filter spares the calls for all others."""
    for before, after in NEWS.items():
        images = {"OldImage": [before.value], "NewImage": [status.value for status in after]}
        yield {"dynamodb": {image: {"status": {"S": statuses}} for image, statuses in images.items()}}


def _criteria(patterns: Iterable[dict[str, Any]]) -> lambda_.CfnEventSourceMapping.FilterCriteriaProperty | None:
    filters = [lambda_.CfnEventSourceMapping.FilterProperty(pattern=json.dumps(pattern)) for pattern in patterns]
    return lambda_.CfnEventSourceMapping.FilterCriteriaProperty(filters=filters) if filters else None
