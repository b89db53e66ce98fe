"""Reads Service Quotas: how many virtual processors the account can run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.bench.admission.quotas import SERVICE, Quota


def read_quotas(client: Any, quotas: Iterable[Quota]) -> tuple[dict[str, float], str | None]:
    """Returns the values by code, and why some are missing: a quota that cannot be read does not prevent a run.

    Args:
        client: of service-quotas.
    """
    vcpus_by_quota: dict[str, float] = {}
    for code in sorted({quota.code for quota in quotas}):
        try:
            vcpus_by_quota[code] = _value(client, code)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchResourceException":  # the region or partition lacks it
                return vcpus_by_quota, f"the account's quotas could not be read: {error.response['Error']['Code']}"
        except BotoCoreError as error:
            return vcpus_by_quota, f"the account's quotas could not be read: {type(error).__name__}"
    return vcpus_by_quota, None


def _value(client: Any, code: str) -> float:
    """Returns the account's quota. If the account never had another one than AWS's default, some answers lack it."""
    try:
        answer = client.get_service_quota(ServiceCode=SERVICE, QuotaCode=code)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchResourceException":
            raise
        answer = client.get_aws_default_service_quota(ServiceCode=SERVICE, QuotaCode=code)
    return float(answer["Quota"]["Value"])
