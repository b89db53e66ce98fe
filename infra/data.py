"""Defines a deployment's data: tables, the bucket through which workflows pass lists, and the salt of the rolls."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.keys import data_key
from troop.chaos.work_keys import TICKS_PREFIX
from troop.shared import tables
from troop.shared.tags import DATA_TAG, DEPLOYMENT_TAG, TABLE_TAG
from troop.shared.variables import Variable

_TICKS_DAYS = 7


class Data(Construct):
    """Tables, bucket and salt.

    Attributes:
        group_tags, events, state, decisions, changes: the tables, as :mod:`troop.shared.tables` describes them.
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
            description="Keys the rolls: anyone who has it can recompute them, and no one else can predict them.",
            encryption_key=data_key(self),
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
            removal_policy=removal(retain),
        )
        for described, table in zip(tables.CHAOS_TABLES, self.tables, strict=True):
            self.name_on_salt(described, table)

    def name_on_salt(self, described: tables.Table, table: dynamodb.ITable) -> None:
        """Names a table on the secret, which outlives the stack: that proves later whose table it was."""
        cdk.Tags.of(self.salt).add(f"{TABLE_TAG}{described.name}", table.table_name)

    @property
    def tables(self) -> tuple[dynamodb.Table, ...]:
        """All tables."""
        return self.group_tags, self.events, self.state, self.decisions, self.changes

    def environment(self) -> dict[Variable, str]:
        """Returns the variables with the names of the tables that every function of chaos uses."""
        return {Variable.EVENTS_TABLE: self.events.table_name, Variable.STATE_TABLE: self.state.table_name}


def make_table(scope: Construct, described: tables.Table, *, retain: bool) -> dynamodb.Table:
    """Creates a table with its indices, encrypted and restorable. A later deployment finds it by its tag.

    Args:
        retain: it outlives the stack, and is protected from deletion.
    """
    key = data_key(scope)
    table = dynamodb.Table(
        scope,
        described.name,
        partition_key=_text(described.partition),
        sort_key=_text(described.sort) if described.sort else None,
        time_to_live_attribute=described.expires or None,
        billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
        encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED if key else dynamodb.TableEncryption.AWS_MANAGED,
        encryption_key=key,
        point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
            point_in_time_recovery_enabled=True
        ),
        stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES if described.streamed else None,
        deletion_protection=retain,
        # Retained also when a first creation is rolled back, unlike the rest: a protected table cannot be deleted,
        # which would fail the rollback. The table left over is empty, which identifies it: see lifecycle/retained.py.
        removal_policy=cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY,
    )
    for index in described.indices:
        projection = dynamodb.ProjectionType.ALL if index.projected is None else dynamodb.ProjectionType.INCLUDE
        table.add_global_secondary_index(
            index_name=index.name,
            partition_key=_number(index.partition) if index.numbered else _text(index.partition),
            sort_key=_text(index.sort),
            projection_type=projection,
            non_key_attributes=None if index.projected is None else list(index.projected),
        )
    cdk.Tags.of(table).add(DATA_TAG, described.name)
    # Set on the table, although the stack has it, too: a stack that adopted the table removes its tags again when the
    # deployment that follows is rolled back.
    cdk.Tags.of(table).add(DEPLOYMENT_TAG, cdk.Aws.STACK_NAME)
    return table


def make_bucket(scope: Construct, construct_id: str, *, retain: bool, days: Mapping[str, int]) -> s3.Bucket:
    """Creates a private, encrypted bucket that accepts only TLS.

    Args:
        retain: it outlives the stack.
        days: after which objects expire, by the prefix of their keys.
    """
    key = data_key(scope)
    bucket = s3.Bucket(
        scope,
        construct_id,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
        encryption_key=key,
        bucket_key_enabled=True if key else None,  # S3 then asks KMS once for many objects
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
        bucket.policy.apply_removal_policy(removal(retain))  # a retained bucket still accepts only TLS
    return bucket


def make_queue(scope: Construct, construct_id: str, retention: cdk.Duration) -> sqs.Queue:
    """Creates an encrypted queue that accepts only TLS, for what could not be delivered."""
    key = data_key(scope)
    return sqs.Queue(
        scope,
        construct_id,
        encryption=sqs.QueueEncryption.KMS if key else sqs.QueueEncryption.SQS_MANAGED,
        encryption_master_key=key,
        enforce_ssl=True,
        retention_period=retention,
    )


def removal(retain: bool) -> cdk.RemovalPolicy:
    """Returns the removal policy of data. RETAIN_ON_UPDATE_OR_DELETE retains data that has been in use, but not what a
    rolled back operation itself created, which every attempt would leave behind.
    """
    return cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if retain else cdk.RemovalPolicy.DESTROY


def _text(name: str) -> dynamodb.Attribute:
    """A key of a table or an index."""
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def _number(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.NUMBER)
