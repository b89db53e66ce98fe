"""Looks up the regions of the buckets that files name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from botocore.exceptions import ClientError

REGION_HEADER = "x-amz-bucket-region"


def read_bucket_regions(s3: Any, buckets: Iterable[str]) -> dict[str, str | None]:
    """Returns the region of each bucket, "" if S3 does not say; None for a bucket that does not exist.

    S3 names the region also when it refuses. So an anonymous client suffices, and no role needs a permission.
    """
    return {bucket: _region(s3, bucket) for bucket in sorted(set(buckets))}


def _region(s3: Any, bucket: str) -> str | None:
    try:
        headers = s3.head_bucket(Bucket=bucket)["ResponseMetadata"]["HTTPHeaders"]
    except ClientError as error:
        metadata = error.response["ResponseMetadata"]
        if metadata["HTTPStatusCode"] == 404:
            return None
        headers = metadata.get("HTTPHeaders", {})
    return str(headers.get(REGION_HEADER, ""))
