"""Presigns URLs of the objects to read, and renews them during the measured phase.

A URL expires with the credentials that signed it, whatever its lifetime. An instance's credentials change every few
hours, and new ones exist at least five minutes before the old ones expire. So they are checked more often than that,
and whenever S3 refuses a URL.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

CHECK_SECONDS = 240.0
LASTS_SECONDS = 6 * 3600
REFUSED = frozenset({"http-400", "http-401", "http-403"})
"""S3's answers to a URL that has expired, or whose credentials have."""
STOPS_WITHIN_SECONDS = 30.0
"""The thread ends at once, or after the command that it has just started."""
PAUSE_SECONDS = 10.0
"""Seconds between two renewals after refusals, which may have another reason."""


class CliError(Exception):
    """The AWS CLI failed."""


def aws(*arguments: str, prefix: tuple[str, ...] = ()) -> str:
    """Runs the AWS CLI and returns its output.

    Raises:
        CliError: it failed; its message is in the script's output.
    """
    line = [*prefix, "aws", *arguments]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise CliError(f"aws {' '.join(arguments[:2])} failed with exit code {done.returncode}")
    return done.stdout


def presigned(bucket: str, key: str, seconds: int, prefix: tuple[str, ...] = ()) -> str:
    """Returns a URL that gives anyone read access to the object for ``seconds``.

    Raises:
        CliError: the URL could not be signed.
    """
    return aws("s3", "presign", f"s3://{bucket}/{key}", "--expires-in", str(seconds), prefix=prefix).strip()


def write(path: Path, objects: list[dict[str, Any]]) -> None:
    """Writes the objects with their URLs atomically."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(objects), encoding="utf-8")
    beside.replace(path)


class Addresses:
    """The objects with their URLs, for one of the reading processes.

    Args:
        edition: a number shared by all processes; it changes with the file.
        refusals: a pipe to the renewal, which receives once each edition that S3 refuses.
    """

    def __init__(self, path: Path, edition: Any, refusals: Any) -> None:
        self._path, self._edition, self._refusals = path, edition, refusals
        self._lock, self._seen, self._reported_edition = threading.Lock(), -1, -1
        self._objects: list[dict[str, Any]] = []

    def objects(self) -> list[dict[str, Any]]:
        if self._edition.value != self._seen:
            with self._lock:
                seen = self._edition.value
                if seen != self._seen:
                    self._objects = json.loads(self._path.read_text(encoding="utf-8"))
                    self._seen = seen
        return self._objects

    def failed(self, kind: str) -> None:
        """Reports an error: if the URL may have expired, requests a renewal."""
        if kind in REFUSED and self._reported_edition != self._seen:
            with self._lock:
                if self._reported_edition != self._seen:
                    self._reported_edition = self._seen
                    self._refusals.send_bytes(str(self._seen).encode())


class Renewal:
    """Renews URLs in a thread beside the reading processes. Usually it runs one short command with low priority every
    few minutes, to check whether the credentials have changed.
    """

    def __init__(self, path: Path, parameters: dict[str, Any], edition: Any, refusals: Any) -> None:
        self._path, self._edition, self._refusals = path, edition, refusals
        self._bucket = str(parameters["bucket"])
        self._lasts = int(parameters.get("address_seconds", LASTS_SECONDS))
        self._every = min(float(parameters.get("renew_seconds", CHECK_SECONDS)), self._lasts / 3)
        self._written_at = path.stat().st_mtime
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="renewal", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, after all processes that could report refusals. If it still worked while Python ends, the
        script would fail.
        """
        self._stopped.set()
        self._thread.join(STOPS_WITHIN_SECONDS)

    def _run(self) -> None:
        pause = self._every if time.time() - self._written_at < self._every else 0.0
        refused = False
        while True:
            try:
                refused = self._is_refused(pause) or refused
            except (EOFError, OSError):  # all reading processes have ended
                return
            if self._stopped.is_set():
                return
            again = min(PAUSE_SECONDS, self._every)
            try:
                if self.renew(refused) and refused:
                    self._stopped.wait(again)
                pause, refused = self._every, False
            except (CliError, OSError) as error:
                print(f"cannot renew URLs: {error}", flush=True)
                pause = again

    def _is_refused(self, seconds: float) -> bool:
        """Waits up to ``seconds`` for refusals. Returns whether S3 refused the current URLs."""
        pending = self._refusals.poll(seconds)
        editions = set()
        while pending:
            editions.add(int(self._refusals.recv_bytes()))
            pending = self._refusals.poll(0)
        return self._edition.value in editions

    def renew(self, refused: bool) -> bool:
        """Renews all URLs if they were refused, are old, or the credentials have changed. Returns whether it did.

        Raises:
            CliError: a URL could not be signed; the old ones stay.
        """
        objects = json.loads(self._path.read_text(encoding="utf-8"))
        first = self._address(objects[0])
        old = time.time() - self._written_at > self._lasts / 2
        if not (refused or old) and signer(first) == signer(objects[0]["url"]):
            return False
        now = time.time()
        renewed = [{**objects[0], "url": first}]
        for one in objects[1:]:
            if self._stopped.is_set():
                return False
            renewed.append({**one, "url": self._address(one)})
        write(self._path, renewed)
        self._written_at = now
        self._edition.value += 1
        print(f"renewed all URLs: {'refused' if refused else 'old' if old else 'new credentials'}", flush=True)
        return True

    def _address(self, one: dict[str, Any]) -> str:
        # Not 19: on processors that the readers saturate, it would rarely run, and URLs would expire.
        return presigned(self._bucket, one["key"], self._lasts, prefix=("nice", "-n", "5"))


def signer(url: str) -> str:
    """Returns the id of the access key that signed a URL; "" if the URL does not contain it."""
    query = parse_qs(urlsplit(url).query)
    return (query.get("X-Amz-Credential") or query.get("AWSAccessKeyId") or [""])[0].partition("/")[0]
