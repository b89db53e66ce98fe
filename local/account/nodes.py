"""Creates the environment of an instance's process: the CLI as on Amazon Linux, and the addresses of local AWS.

It has no credentials: those of the role come from the metadata service.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from .config import REGION, Config

_CLI_CONFIG = f"""[default]
region = {REGION}
s3 =
    signature_version = s3v4
"""
"""The CLI on PyPI is version 1, which presigns URLs differently from Amazon Linux's version 2."""


def node_environment(config: Config, metadata: Callable[[str], str]) -> Callable[[str], dict[str, str]]:
    """Returns a function from an instance's id to its environment. `metadata`: from an id to its metadata URL.

    TROOP_NODE_HOME is not a variable of AWS: it names the instance's directory, because instances share /var/lib here.
    """
    tools = config.run / "node-tools"
    tools.mkdir()
    (tools / "aws").symlink_to(config.aws)
    settings = config.run / "node-aws-config"
    settings.write_text(_CLI_CONFIG)

    def environment(instance_id: str) -> dict[str, str]:
        return {
            "PATH": str(tools),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata(instance_id),
            "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"],
            "AWS_CA_BUNDLE": os.environ["AWS_CA_BUNDLE"],
            "AWS_CONFIG_FILE": str(settings),
            "TROOP_NODE_HOME": str(config.run / "instances" / instance_id),
        }

    return environment
