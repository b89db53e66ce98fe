"""Removes what a deleted stack leaves behind: tables, buckets, the secret and log groups, with all records in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import boto3

from cli.shared import aws
from cli.shared.errors import CliError, Exit
from lifecycle.leftovers import Leftover
from lifecycle.retained import delete_table

_BATCH = 1000
"""Objects that S3 deletes in one request."""

RECOVERY_DAYS = 7
"""The shortest time for which Secrets Manager can restore a deleted secret."""


def purge(session: boto3.Session, leftover: Leftover) -> bool:
    """Removes a resource, also where an earlier attempt stopped. False for a kind that only its commands remove.

    Raises:
        CliError: AWS refuses.
    """
    remove = _REMOVERS.get(leftover.kind)
    if remove is None:
        return False
    with aws.translated_errors():
        remove(session, leftover.physical_id)
    return True


def empty_bucket(session: boto3.Session, bucket: str) -> None:
    """Deletes every version of every object; does nothing if the bucket does not exist."""
    s3 = aws.client(session, "s3")
    with aws.translated_errors():
        try:
            for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, MaxKeys=_BATCH):
                _delete_objects(s3, bucket, [*page.get("Versions", []), *page.get("DeleteMarkers", [])])
        except s3.exceptions.NoSuchBucket:
            return


def _delete_objects(s3: Any, bucket: str, entries: Sequence[Mapping[str, Any]]) -> None:
    objects = [{"Key": entry["Key"], "VersionId": entry["VersionId"]} for entry in entries]
    if not objects:
        return
    failed = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True}).get("Errors", [])
    if failed:
        message = f"{failed[0].get('Code')}: {failed[0].get('Message')}"
        raise CliError(Exit.FAILED, f"cannot empty the bucket {bucket}: {message}")


def _bucket(session: boto3.Session, name: str) -> None:
    empty_bucket(session, name)
    s3 = aws.client(session, "s3")
    try:
        s3.delete_bucket(Bucket=name)
    except s3.exceptions.NoSuchBucket:
        return


def _secret(session: boto3.Session, arn: str) -> None:
    secrets = aws.client(session, "secretsmanager")
    try:
        secrets.delete_secret(SecretId=arn, RecoveryWindowInDays=RECOVERY_DAYS)
    except secrets.exceptions.ResourceNotFoundException:
        return


def _log_group(session: boto3.Session, name: str) -> None:
    logs = aws.client(session, "logs")
    try:
        logs.delete_log_group(logGroupName=name)
    except logs.exceptions.ResourceNotFoundException:
        return


_REMOVERS: Mapping[str, Callable[[boto3.Session, str], None]] = {
    "table": delete_table,
    "bucket": _bucket,
    "secret": _secret,
    "log group": _log_group,
}
