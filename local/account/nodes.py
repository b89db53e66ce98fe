"""Creates the environment of an instance's process: the CLI as on Amazon Linux, and the addresses of local AWS.

It has no credentials: those of the role come from the metadata service.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

from . import cli_template
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
    start_template = install_cli(tools, config.aws)
    settings = config.run / "node-aws-config"
    settings.write_text(_CLI_CONFIG)

    def environment(instance_id: str) -> dict[str, str]:
        start_template()
        return {
            "PATH": str(tools),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata(instance_id),
            "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"],
            "AWS_CA_BUNDLE": os.environ["AWS_CA_BUNDLE"],
            "AWS_CONFIG_FILE": str(settings),
            "TROOP_NODE_HOME": str(config.run / "instances" / instance_id),
        }

    return environment


def install_cli(tools: Path, cli: Path) -> Callable[[], object]:
    """Puts `aws` into a folder; returns a function that starts what it needs, once."""
    aws, path, python = tools / "aws", tools.with_suffix(".socket"), cli.resolve().parent / "python"
    try:
        if " " in str(python):
            raise OSError("the first line of a script cannot name it")
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
    except OSError:  # or the path is too long for a socket
        aws.symlink_to(cli)
        return lambda: None
    aws.write_text(cli_template.CLIENT.format(python=python, socket=str(path), cli=str(cli)))
    aws.chmod(0o700)
    listening.listen(512)

    @cache  # keeps its stdin open, too
    def start() -> subprocess.Popen[bytes]:
        words = [str(python), "-I", cli_template.__file__, str(listening.fileno()), str(cli)]
        with listening:  # of the template alone: without it, `aws` is refused and calls the CLI itself
            return subprocess.Popen(words, pass_fds=[listening.fileno()], stdin=subprocess.PIPE, start_new_session=True)

    return start
