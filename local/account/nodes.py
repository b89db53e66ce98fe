"""What an instance's process finds of AWS: the CLI as on Amazon Linux, the account's address, and its metadata.

No credentials are among it: those of its role come from the metadata service.
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
"""Version 1 of the CLI, the one on PyPI, would presign URLs as Amazon Linux's version 2 does not."""


def node_environment(config: Config, metadata: Callable[[str], str]) -> Callable[[str], dict[str, str]]:
    """Makes an instance's environment of its id. `metadata`: makes the URL of its metadata service of its id.

    TROOP_NODE_HOME, which is not AWS's: the instance's own directory, for instances share this machine's /var/lib.
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
