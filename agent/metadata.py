"""Reads this node's identity from the instance metadata service, version 2."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from agent.errors import AgentError
from troop.measure.s3.web import ERRORS, Web

DEFAULT = "http://169.254.169.254"
TRIES = 30


@dataclass(frozen=True)
class Identity:
    """EC2's data about this instance; ``address`` is the private one."""

    id: str
    zone: str
    instance_type: str
    address: str
    image: str


_PATHS = {
    "id": "instance-id",
    "zone": "placement/availability-zone",
    "instance_type": "instance-type",
    "address": "local-ipv4",
    "image": "ami-id",
}


def is_real() -> bool:
    """Checks whether this is an EC2 instance: another address of the service means an emulation."""
    return not os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT")


def address() -> str:
    """Returns the address of the service."""
    return (os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or DEFAULT).rstrip("/")


def identity() -> Identity:
    """Reads the identity; tries for about a minute, because the network may not be up right after boot.

    Raises:
        AgentError: the service did not answer.
    """
    base = address()
    for number in range(TRIES):
        try:
            return _ask(Web(), base)
        except ERRORS as error:
            problem = error
        if number < TRIES - 1:
            time.sleep(min(0.2 * 1.5**number, 3))
    raise AgentError(f"no answer from the instance metadata service at {base}: {problem}")


def _ask(web: Web, base: str) -> Identity:
    token = _get(web, f"{base}/latest/api/token", "PUT", {"X-aws-ec2-metadata-token-ttl-seconds": "300"})
    headers = {"X-aws-ec2-metadata-token": token}
    facts = {name: _get(web, f"{base}/latest/meta-data/{path}", "GET", headers) for name, path in _PATHS.items()}
    return Identity(**facts)


def _get(web: Web, url: str, method: str, headers: dict[str, str]) -> str:
    answer = web.ask(url, method, headers)
    if answer.status != 200:
        raise OSError(f"{method} {url} answered {answer.status}")
    return answer.body.decode()
