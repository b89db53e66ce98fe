"""Downloads the results of a fleet's tasks into a folder: a file for each, by several connections at a time."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from botocore.awsrequest import AWSRequest
from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies
from urllib3.exceptions import HTTPError

from cli.shared import aws
from cli.shared.errors import CliError, Exit

THREADS = 16

_CHUNK = 1024 * 1024
_CONNECT_SECONDS, _READ_SECONDS = 10, 60
_TRIES = 4
_NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,128}")
"""A result's id that is safe as the name of a file. A dot at its beginning would hide the file, or leave the folder."""


class DownloadError(Exception):
    """A result that was not downloaded; the message says why, without its address, which lets anyone read it."""


@dataclass(frozen=True)
class Missed:
    """A result that is not in the folder."""

    id: str
    why: str


Fetch = Callable[[str, IO[bytes]], int]
"""Writes what is at an address to a file, and returns its size; raises :class:`DownloadError`."""


@dataclass(frozen=True)
class ResultsFolder:
    """A folder that gets results. A result never changes, so a file of its size stays as it is: a repetition goes on.

    Attributes:
        path: of the folder; it is created.
        seen: the names so far, without case: some file systems do not tell it.
    """

    path: Path
    fetch: Fetch
    seen: dict[str, str] = field(default_factory=dict)

    def save(self, results: Iterable[Mapping[str, Any]]) -> list[Missed]:
        """Downloads results, each to a file that appears when it is complete. Returns those that are not there.

        Raises:
            CliError: FAILED, if the folder cannot be written.
        """
        missed: list[Missed] = []
        due: list[Mapping[str, Any]] = []
        for one in results:
            if why := self._refusal(str(one["id"])):
                missed.append(Missed(str(one["id"]), why))
            elif not self._has(one):
                due.append(one)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            mode = 0o666 & ~_umask()
            with ThreadPoolExecutor(THREADS) as pool:
                try:
                    missed += [one for one in pool.map(lambda one: self._save(one, mode), due) if one]
                except BaseException:
                    pool.shutdown(wait=True, cancel_futures=True)
                    raise
        except OSError as error:
            raise CliError(Exit.FAILED, f"{self.path} cannot be written: {error.strerror or error}") from None
        return missed

    def _refusal(self, id: str) -> str:
        if not _NAME.fullmatch(id):
            return "its id cannot be the name of a file"
        other = self.seen.setdefault(id.casefold(), id)
        if other != id and (self.path / id).exists():
            return f"its id differs from {other} only in case, which this file system does not tell"
        return ""

    def _has(self, one: Mapping[str, Any]) -> bool:
        target = self.path / str(one["id"])
        return target.is_file() and target.stat().st_size == one["size"]

    def _save(self, one: Mapping[str, Any], mode: int) -> Missed | None:
        id = str(one["id"])
        descriptor, part = tempfile.mkstemp(prefix=".troop-", dir=self.path)
        try:
            with os.fdopen(descriptor, "wb") as file:
                size = self.fetch(str(one["url"]), file)
            if size != one["size"]:
                return Missed(id, f"only {size:,} of {one['size']:,} bytes came")
            Path(part).chmod(mode)
            Path(part).replace(self.path / id)
        except DownloadError as error:
            return Missed(id, str(error))
        finally:
            Path(part).unlink(missing_ok=True)
        return None


def _umask() -> int:
    """Returns the process's mask; a file of ``mkstemp`` is for its owner alone."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def s3_fetch(example: str, *, sleep: Callable[[float], None] = time.sleep) -> Fetch:
    """Returns what downloads from presigned addresses of S3, over connections that are used again.

    Args:
        example: one of the addresses; the environment may have a proxy for its host.
    """
    http: Any = URLLib3Session  # its type stubs are too narrow
    session = http(
        verify=aws.ca_bundle() or True,
        proxies=get_environ_proxies(example),
        timeout=(_CONNECT_SECONDS, _READ_SECONDS),
        max_pool_connections=THREADS,
    )

    def fetch(address: str, file: IO[bytes]) -> int:
        if not address.startswith("https://"):
            raise DownloadError("it has no safe address: nothing was fetched")
        for left in range(_TRIES - 1, -1, -1):
            file.seek(0)
            file.truncate()
            try:
                answer = session.send(AWSRequest("GET", address, stream_output=True).prepare())
                if answer.status_code == 200:
                    for chunk in answer.raw.stream(_CHUNK):
                        file.write(chunk)
                    return file.tell()
                answer.raw.drain_conn()
                why, passes = f"S3 refused it ({answer.status_code})", answer.status_code >= 500
            except (HTTPClientError, NoConnectionError, HTTPError) as error:
                why, passes = f"S3 cannot be reached ({type(error).__name__})", True
            if not (left and passes):
                raise DownloadError(f"{why}: try again")
            sleep(2.0 ** (_TRIES - 1 - left))
        raise AssertionError("the last try returns or raises")

    return fetch
