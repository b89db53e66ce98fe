"""What a deployment remembers: tables, the bucket workflows pass lists through, and the salt of the rolls."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

TICKS_PREFIX = "ticks/"
"""Keys of the lists of what a tick terminates, in the work bucket."""

DATA_TAG = "troop:data"
"""On each table, what it holds: a later deployment finds by it what an earlier one has left."""

_TICKS_DAYS = 7

_TOLD_BY_DAY = ("calendar", "day", "detail", "group", "groups", "instance_id", "probability", "reason", "rolled")


DECISIONS_INDICES = ("by-day",)
"""Of the table of decisions."""


class Data(Construct):
    """Tables, bucket and salt.

    Attributes:
        group_tags: policy of units, edited by people. Key ``unit``.
        events: terminations. Key ``event_id``; indices ``by-time``, ``by-unit`` and ``by-open`` (those in flight).
        state: the switch, counters and what is known of a unit; what has ``expires_at`` goes then. Key ``key``.
        decisions: what each tick decided about each unit. Keys ``unit``, ``tick``; expires by ``expires_at``; index
            ``by-day``.
        changes: who has changed which policy, or the switch. Keys ``subject``, ``at``.
        work: the work bucket.
        salt: the secret that keys the rolls.
    """

    def __init__(self, scope: Construct, construct_id: str, *, retain: bool) -> None:
        super().__init__(scope, construct_id)
        self._retain = retain
        self.group_tags = self._table("GroupTags", "unit", streamed=True)
        self.events = self._table("Events", "event_id", streamed=True)
        for index, partition in {"by-time": "kind", "by-unit": "unit", "by-open": "open"}.items():
            self.events.add_global_secondary_index(
                index_name=index,
                partition_key=text_attribute(partition),
                sort_key=text_attribute("at"),
                projection_type=dynamodb.ProjectionType.ALL,
            )
        self.state = self._table("State", "key", expires="expires_at", streamed=True)
        self.decisions = self._table("Decisions", "unit", sort="tick", expires="expires_at")
        self.decisions.add_global_secondary_index(
            index_name=DECISIONS_INDICES[0],
            partition_key=text_attribute("day_shard"),
            sort_key=text_attribute("at"),
            # All but the policy, which is half of an item: whoever asks for a day wants the reasons.
            projection_type=dynamodb.ProjectionType.INCLUDE,
            non_key_attributes=list(_TOLD_BY_DAY),
        )
        self.changes = self._table("Changes", "subject", sort="at", streamed=True)
        self.work = make_bucket(self, "WorkBucket", retain=retain, days={TICKS_PREFIX: _TICKS_DAYS})
        self.salt = secretsmanager.Secret(
            self,
            "Salt",
            description="Keys the rolls: who holds it can recompute them, nobody else can predict them.",
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
            removal_policy=removal(retain),
        )

    @property
    def tables(self) -> tuple[dynamodb.Table, ...]:
        """All of them."""
        return self.group_tags, self.events, self.state, self.decisions, self.changes

    def _table(
        self,
        construct_id: str,
        partition: str,
        *,
        sort: str | None = None,
        expires: str | None = None,
        streamed: bool = False,
    ) -> dynamodb.Table:
        return make_table(
            self, construct_id, partition, sort=sort, expires=expires, streamed=streamed, retain=self._retain
        )


def make_table(
    scope: Construct,
    construct_id: str,
    partition: str,
    *,
    retain: bool,
    sort: str | None = None,
    expires: str | None = None,
    streamed: bool = False,
) -> dynamodb.Table:
    """A table, encrypted and restorable, which a later deployment finds by its tag.

    Args:
        partition, sort, expires: names of attributes.
        retain: it outlives the stack, and is protected from deletion.
        streamed: whether others are told of what is written: see infra/notifications.py.
    """
    table = dynamodb.Table(
        scope,
        construct_id,
        partition_key=text_attribute(partition),
        sort_key=text_attribute(sort) if sort else None,
        time_to_live_attribute=expires,
        billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
        encryption=dynamodb.TableEncryption.AWS_MANAGED,
        point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
            point_in_time_recovery_enabled=True
        ),
        stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES if streamed else None,
        deletion_protection=retain,
        # Also when a first creation is rolled back, unlike the rest: what is protected cannot be deleted, and the
        # rollback would fail for it. What it leaves is empty, and known by that: see lifecycle/retained.py.
        removal_policy=cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY,
    )
    cdk.Tags.of(table).add(DATA_TAG, construct_id)
    return table


def make_bucket(scope: Construct, construct_id: str, *, retain: bool, days: Mapping[str, int]) -> s3.Bucket:
    """A private, encrypted bucket that takes TLS only.

    Args:
        retain: it outlives the stack.
        days: after which objects go, by the prefix of their keys.
    """
    return s3.Bucket(
        scope,
        construct_id,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        encryption=s3.BucketEncryption.S3_MANAGED,
        enforce_ssl=True,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        lifecycle_rules=[
            s3.LifecycleRule(
                prefix=prefix,
                expiration=cdk.Duration.days(kept),
                abort_incomplete_multipart_upload_after=cdk.Duration.days(1),
            )
            for prefix, kept in days.items()
        ],
        removal_policy=removal(retain),
    )


def removal(retain: bool) -> cdk.RemovalPolicy:
    """What becomes of data when the stack goes. Retained is what has been in use: not what the very operation has made
    that is rolled back, which would be left behind by every try.
    """
    return cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if retain else cdk.RemovalPolicy.DESTROY


def text_attribute(name: str) -> dynamodb.Attribute:
    """A key of a table or an index."""
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
