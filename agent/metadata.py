"""Who this node is: the instance metadata service, in its second version."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from agent.errors import AgentError
from agent.web import ERRORS, Web

DEFAULT = "http://169.254.169.254"
TRIES = 30


@dataclass(frozen=True)
class Identity:
    """What EC2 says about this instance; ``address`` is its private one."""

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
    """Whether this is an instance of EC2; somebody who gives another address for the service emulates one."""
    return not os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT")


def address() -> str:
    """Where the service is."""
    return (os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or DEFAULT).rstrip("/")


def identity() -> Identity:
    """Asks, for about a minute: right after boot the network may not be there yet.

    Raises:
        AgentError: there was no answer.
    """
    base = address()
    for number in range(TRIES):
        try:
            return _ask(Web(), base)
        except ERRORS as error:
            problem = error
        if number < TRIES - 1:
            time.sleep(min(0.2 * 1.5**number, 3))
    raise AgentError(f"the instance metadata service at {base} does not answer: {problem}")


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
