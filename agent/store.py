"""Reads and writes S3 through the AWS CLI, which has the instance's credentials. Retries for some minutes."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path
from typing import Callable

from agent.errors import AgentError
from agent.log import say

TRIES = 12
LONGEST_PAUSE = 30.0
_LIMITS = ("--cli-connect-timeout", "10", "--cli-read-timeout", "60")


class Store:
    """The results bucket.

    Args:
        sleep: waits between two tries.
        timeout_seconds: of one try.
    """

    def __init__(
        self, bucket: str, region: str, sleep: Callable[[float], None] = time.sleep, timeout_seconds: float = 1800
    ) -> None:
        self._bucket, self._region, self._sleep, self._timeout = bucket, region, sleep, timeout_seconds

    def get(self, key: str, path: Path) -> None:
        """Downloads an object.

        Raises:
            AgentError: all tries failed.
        """
        self._aws("s3", "cp", "--only-show-errors", f"s3://{self._bucket}/{key}", str(path))

    def put(self, path: Path, key: str) -> None:
        """Uploads a file.

        Raises:
            AgentError: all tries failed.
        """
        self._aws("s3", "cp", "--only-show-errors", str(path), f"s3://{self._bucket}/{key}")

    def presign(self, key: str, seconds: int) -> str:
        """Returns a URL that gives anyone read access to the object for ``seconds``.

        Raises:
            AgentError: all tries failed.
        """
        return self._aws("s3", "presign", f"s3://{self._bucket}/{key}", "--expires-in", str(seconds)).strip()

    def _aws(self, *command: str) -> str:
        for number in range(TRIES):
            try:
                done = subprocess.run(
                    ["aws", *command, "--region", self._region, *_LIMITS],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=self._timeout,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                problem = f"took longer than {self._timeout:g} s"
            except OSError as error:
                raise AgentError(f"cannot run the AWS CLI: {error}") from None
            else:
                if done.returncode == 0:
                    return done.stdout
                problem = " ".join(done.stderr.split())[-500:] or f"exit code {done.returncode}"
            say(f"aws {' '.join(command)}: {problem}")
            if number < TRIES - 1:
                self._sleep(min(LONGEST_PAUSE, 1.7**number) * random.uniform(0.5, 1))
        raise AgentError(f"aws {' '.join(command)}: {problem}")
