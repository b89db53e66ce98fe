"""Presigned addresses of the objects to read, and what keeps them valid for as long as a phase takes.

An address ends with the credentials it was made with, whatever time it was given: those of an instance change every few
hours, and the new ones are there at least five minutes before the old ones end. So they are looked at more often than
that, and when S3 refuses an address.
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
"""What S3 answers to an address whose time, or credentials, have ended."""
STOPS_WITHIN_SECONDS = 30.0
"""It ends at once, or after the one command that it has just begun."""
PAUSE_SECONDS = 10.0
"""Between two renewals because of refusals: what is refused for another reason is not renewed all the time."""


class CliError(Exception):
    """The AWS CLI has failed."""


def aws(*arguments: str, prefix: tuple[str, ...] = ()) -> str:
    """What the AWS CLI answers.

    Raises:
        CliError: it failed; its own words are in the output.
    """
    line = [*prefix, "aws", *arguments]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise CliError(f"aws {' '.join(arguments[:2])} ended with {done.returncode}")
    return done.stdout


def presigned(bucket: str, key: str, seconds: int, prefix: tuple[str, ...] = ()) -> str:
    """An address from which anybody can read the object for a while.

    Raises:
        CliError: it could not be made.
    """
    return aws("s3", "presign", f"s3://{bucket}/{key}", "--expires-in", str(seconds), prefix=prefix).strip()


def write(path: Path, objects: list[dict[str, Any]]) -> None:
    """Leaves the objects with their addresses for whoever reads them; nobody ever finds half of them."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(objects), encoding="utf-8")
    beside.replace(path)


class Addresses:
    """The objects with their addresses, as one of the processes that read sees them.

    Args:
        edition: a number that all processes share, another one whenever the file is.
        refusals: a pipe to whoever renews, who is told once of each edition that S3 refuses.
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
        """Told of every error: where it is the address that no longer works, another is asked for."""
        if kind in REFUSED and self._reported_edition != self._seen:
            with self._lock:
                if self._reported_edition != self._seen:
                    self._reported_edition = self._seen
                    self._refusals.send_bytes(str(self._seen).encode())


class Renewal:
    """Makes addresses anew, beside the processes that read. Mostly it is one short command every few minutes, with a
    low priority: whether the credentials are still the same.
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
        """Ends it, when nobody is left who could tell of refusals. A thread that is still at work, or writes, while
        Python ends would have the whole script fail.
        """
        self._stopped.set()
        self._thread.join(STOPS_WITHIN_SECONDS)

    def _run(self) -> None:
        pause = self._every if time.time() - self._written_at < self._every else 0.0
        refused = False
        while True:
            try:
                refused = self._is_refused(pause) or refused
            except (EOFError, OSError):  # all who read have ended
                return
            if self._stopped.is_set():
                return
            again = min(PAUSE_SECONDS, self._every)
            try:
                if self.renew(refused) and refused:
                    self._stopped.wait(again)
                pause, refused = self._every, False
            except (CliError, OSError) as error:
                print(f"addresses could not be renewed: {error}", flush=True)
                pause = again

    def _is_refused(self, seconds: float) -> bool:
        """Waits for so long at most; whether S3 refuses the addresses that are there now."""
        pending = self._refusals.poll(seconds)
        editions = set()
        while pending:
            editions.add(int(self._refusals.recv_bytes()))
            pending = self._refusals.poll(0)
        return self._edition.value in editions

    def renew(self, refused: bool) -> bool:
        """Renews all addresses when they were refused, are old, or other credentials sign now; whether it did.

        Raises:
            CliError: it could not be done; the old ones stay.
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
        print(f"addresses renewed, {'refused' if refused else 'old' if old else 'other credentials'}", flush=True)
        return True

    def _address(self, one: dict[str, Any]) -> str:
        # Not 19: on processors that the readers saturate it would hardly ever run, and addresses would end unrenewed.
        return presigned(self._bucket, one["key"], self._lasts, prefix=("nice", "-n", "5"))


def signer(url: str) -> str:
    """The id of the access key an address was made with, "" when it does not say."""
    query = parse_qs(urlsplit(url).query)
    return (query.get("X-Amz-Credential") or query.get("AWSAccessKeyId") or [""])[0].partition("/")[0]
