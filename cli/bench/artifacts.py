"""Stages artifacts: reads them, checks their hashes, and uploads them to the deployment's bucket."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from io import BufferedRandom, BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from botocore.awsrequest import AWSRequest
from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from cli.bench.files import S3, is_local
from cli.shared import aws, https, safe_files
from cli.shared.errors import CliError, Exit
from troop.bench.admission.admission import LARGEST_ARTIFACT
from troop.bench.definition.definition import Artifact

if TYPE_CHECKING:
    import boto3

_CHUNK = 1024 * 1024
_CONNECT_SECONDS, _READ_SECONDS = 10, 300
_TRIES = 3
_File = BufferedReader | BufferedRandom


class Stager(Protocol):
    """The part of the API client that staging needs."""

    def stage(self, sha256: str, size: int | None = None) -> dict[str, Any]: ...


def in_question(artifacts: Iterable[Artifact], folder: Path) -> Iterator[str]:
    """Yields why local artifacts could not be staged. Does not check whether a deployment already has them.

    Args:
        folder: the folder of relative sources.
    """
    for artifact in artifacts:
        if is_local(artifact):
            why = _in_question(artifact, folder / artifact.source)
            if why:
                yield f"the artifact {artifact.name}: {why}; it works only if the deployment already has its content"


def _in_question(artifact: Artifact, path: Path) -> str:
    try:
        with safe_files.regular(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"{path} cannot be read ({error.strerror})"
    return "" if digest == artifact.sha256 else f"{path} does not have the sha256 {artifact.sha256}"


@dataclass(frozen=True)
class Staging:
    """Uploads artifacts to the deployment's bucket unless they are already there.

    Attributes:
        folder: the folder of relative sources.
        session: makes the session that reads ``s3://`` sources; called only for them.
        tell: prints progress.
    """

    api: Stager
    folder: Path
    session: Callable[[], boto3.Session]
    tell: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep

    def stage(self, artifact: Artifact) -> None:
        """Stages one artifact.

        Raises:
            CliError: USAGE if its hash or size is wrong, FAILED if it cannot be fetched or uploaded.
        """
        if self.api.stage(artifact.sha256)["staged"]:
            self.tell(f"{artifact.name}: already staged")
            return
        with self._opened(artifact) as file:
            size = _checked(artifact, file)
            upload = self.api.stage(artifact.sha256, size)
            if upload["staged"]:  # by another request in the meantime
                return
            self.tell(f"{artifact.name}: uploading {size:,} bytes")
            self._put(artifact, file, upload["upload_url"], upload["headers"])

    @contextmanager
    def _opened(self, artifact: Artifact) -> Iterator[_File]:
        source = artifact.source
        try:
            if is_local(artifact):
                with safe_files.regular(self.folder / source) as file:
                    yield file
                return
            self.tell(f"{artifact.name}: fetching {source}")
            with tempfile.TemporaryFile() as file:
                part = _Bounded(artifact, file)
                self._fetch_object(source, part) if source.startswith(S3) else _fetch(source, part)
                yield file
        except (OSError, HTTPException) as error:
            raise CliError(Exit.FAILED, f"the artifact {artifact.name} cannot be read from {source}: {error}") from None

    def _fetch_object(self, source: str, file: _Bounded) -> None:
        bucket, _, key = source.removeprefix(S3).partition("/")
        with aws.translated_errors():
            aws.client(self.session(), "s3").download_fileobj(bucket, key, file)

    def _put(self, artifact: Artifact, file: _File, url: str, headers: Mapping[str, str]) -> None:
        http: Any = URLLib3Session  # its type stubs are too narrow
        session = http(
            verify=aws.ca_bundle() or True,
            proxies=get_environ_proxies(url),
            timeout=(_CONNECT_SECONDS, _READ_SECONDS),
        )
        for left in range(_TRIES - 1, -1, -1):
            file.seek(0)
            try:
                answer = session.send(AWSRequest("PUT", url, data=file, headers=dict(headers)).prepare())
                status, message = answer.status_code, answer.text[:300]
            except (HTTPClientError, NoConnectionError) as error:
                status, message = 0, str(error)
            if status == 200:
                return
            if left and (status == 0 or status >= 500):
                self.sleep(2.0 ** (_TRIES - 1 - left))
                continue
            raise CliError(Exit.FAILED, f"the artifact {artifact.name} could not be uploaded ({status}): {message}")


class _Bounded:
    """A file that refuses to grow beyond the largest artifact: a source may have no end.

    Raises:
        CliError: USAGE; on writing more.
    """

    def __init__(self, artifact: Artifact, file: _File) -> None:
        self._artifact, self._file = artifact, file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def write(self, content: bytes) -> int:
        _check_size(self._artifact, self._file.tell() + len(content))
        return self._file.write(content)


def _fetch(source: str, file: _Bounded) -> None:
    with https.opened(source, _CONNECT_SECONDS) as answer:
        shutil.copyfileobj(answer, file, _CHUNK)


def _check_size(artifact: Artifact, size: int) -> None:
    if size > LARGEST_ARTIFACT:
        raise CliError(
            Exit.USAGE,
            f"the artifact {artifact.name} has more than {LARGEST_ARTIFACT:,} bytes, the most that are allowed",
        )


def _checked(artifact: Artifact, file: _File) -> int:
    """Returns the size of an artifact after checking its hash.

    No message contains the hash of the content. Whoever named the source may not know the content, and could learn the
    hash that makes Troop upload it.
    """
    size = file.seek(0, os.SEEK_END)
    _check_size(artifact, size)
    file.seek(0)
    if hashlib.file_digest(file, "sha256").hexdigest() != artifact.sha256:
        raise CliError(
            Exit.USAGE,
            f"the artifact {artifact.name} has the wrong hash: the content of {artifact.source} does not have the "
            f"sha256 {artifact.sha256}. To use it anyway, compute its hash with sha256sum and add --set "
            f"artifacts.{artifact.name}.sha256=HASH",
        )
    return size
