"""What a deployment remembers: tables, the bucket workflows pass lists through, and the salt of the rolls."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from troop import tables
from troop.chaos.work_keys import TICKS_PREFIX
from troop.tags import DATA_TAG, DEPLOYMENT_TAG

_TICKS_DAYS = 7


class Data(Construct):
    """Tables, bucket and salt.

    Attributes:
        group_tags, events, state, decisions, changes: the tables, as :mod:`troop.tables` describes them.
        work: the work bucket.
        salt: the secret that keys the rolls.
    """

    def __init__(self, scope: Construct, construct_id: str, *, retain: bool) -> None:
        super().__init__(scope, construct_id)
        self.group_tags, self.events, self.state, self.decisions, self.changes = (
            make_table(self, table, retain=retain) for table in tables.CHAOS_TABLES
        )
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


def make_table(scope: Construct, described: tables.Table, *, retain: bool) -> dynamodb.Table:
    """A table with its indices, encrypted and restorable, which a later deployment finds by its tag.

    Args:
        retain: it outlives the stack, and is protected from deletion.
    """
    table = dynamodb.Table(
        scope,
        described.name,
        partition_key=_text(described.partition),
        sort_key=_text(described.sort) if described.sort else None,
        time_to_live_attribute=described.expires or None,
        billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
        encryption=dynamodb.TableEncryption.AWS_MANAGED,
        point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
            point_in_time_recovery_enabled=True
        ),
        stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES if described.streamed else None,
        deletion_protection=retain,
        # Also when a first creation is rolled back, unlike the rest: what is protected cannot be deleted, and the
        # rollback would fail for it. What it leaves is empty, and known by that: see lifecycle/retained.py.
        removal_policy=cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY,
    )
    for index in described.indices:
        projection = dynamodb.ProjectionType.ALL if index.projected is None else dynamodb.ProjectionType.INCLUDE
        table.add_global_secondary_index(
            index_name=index.name,
            partition_key=_text(index.partition),
            sort_key=_text(index.sort),
            projection_type=projection,
            non_key_attributes=None if index.projected is None else list(index.projected),
        )
    cdk.Tags.of(table).add(DATA_TAG, described.name)
    # Its own, though the stack has it, too: a stack that has taken the table over takes its tags off again when the
    # deployment that follows is rolled back.
    cdk.Tags.of(table).add(DEPLOYMENT_TAG, cdk.Aws.STACK_NAME)
    return table


def make_bucket(scope: Construct, construct_id: str, *, retain: bool, days: Mapping[str, int]) -> s3.Bucket:
    """A private, encrypted bucket that takes TLS only.

    Args:
        retain: it outlives the stack.
        days: after which objects go, by the prefix of their keys.
    """
    bucket = s3.Bucket(
        scope,
        construct_id,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        encryption=s3.BucketEncryption.S3_MANAGED,
        enforce_ssl=True,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        lifecycle_rules=[
            s3.LifecycleRule(
                prefix=prefix,
                expiration=cdk.Duration.days(retention_days),
                abort_incomplete_multipart_upload_after=cdk.Duration.days(1),
            )
            for prefix, retention_days in days.items()
        ],
        removal_policy=removal(retain),
    )
    if bucket.policy:
        bucket.policy.apply_removal_policy(removal(retain))  # what outlives the stack still takes TLS only
    return bucket


def removal(retain: bool) -> cdk.RemovalPolicy:
    """What becomes of data when the stack goes. Retained is what has been in use: not what the very operation has made
    that is rolled back, which would be left behind by every try.
    """
    return cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if retain else cdk.RemovalPolicy.DESTROY


def _text(name: str) -> dynamodb.Attribute:
    """A key of a table or an index."""
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
