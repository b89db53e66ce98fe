"""Finds the address of a bucket, and the certificates to trust."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from troop.measure.s3.signing import encoded_path

SUFFIXES = {
    "cn-": "amazonaws.com.cn",
    "eu-isoe-": "cloud.adc-e.uk",
    "eusc-": "amazonaws.eu",
    "us-iso-": "c2s.ic.gov",
    "us-isob-": "sc2s.sgov.gov",
    "us-isof-": "csp.hci.ic.gov",
}
"""Domains by the beginning of a region's name; all others are below amazonaws.com."""


@dataclass(frozen=True)
class Address:
    """Where requests for a bucket go.

    Attributes:
        host: as in the header, with the port if it is not the usual one.
        base: what precedes a key in the path: ``/``, or the bucket's name in path style.
    """

    is_tls: bool
    host: str
    name: str
    port: int
    base: str

    def path(self, key: str) -> str:
        return self.base + encoded_path(key)


def address_of(bucket: str, region: str, endpoint: str = "") -> Address:
    """Returns a bucket's address.

    The bucket is a part of the host's name, as S3 demands of new buckets. TLS certificates cover no name with a dot in
    it, and local endpoints have no such names: then the bucket is the beginning of the path.

    Args:
        endpoint: the URL of another S3 than AWS's; empty for AWS's.
    """
    if endpoint:
        parts = urlsplit(endpoint)
        is_tls, base = parts.scheme == "https", f"{parts.path.rstrip('/')}/{bucket}/"
        return Address(is_tls, parts.netloc, parts.hostname or "", parts.port or (443 if is_tls else 80), base)
    domain = next((domain for begin, domain in SUFFIXES.items() if region.startswith(begin)), "amazonaws.com")
    regional = f"s3.{region}.{domain}"
    host, base = (regional, f"/{bucket}/") if "." in bucket else (f"{bucket}.{regional}", "/")
    return Address(True, host, host, 443, base)


def endpoint_of(variables: Mapping[str, str], service: str = "S3") -> str:
    """Returns the URL of another S3, or another service, than AWS's, as the AWS CLI reads it; otherwise an empty
    text.
    """
    return variables.get(f"AWS_ENDPOINT_URL_{service}") or variables.get("AWS_ENDPOINT_URL") or ""


def trust() -> ssl.SSLContext:
    """Returns a context with the certificates that the AWS CLI trusts."""
    return ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE") or None)
