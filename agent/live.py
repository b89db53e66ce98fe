"""Uploads a node's running summary during a measured phase, in a thread, for people who watch the benchmark.

No whole phase depends on it: an upload has one try, and a failure is only logged. It signs its own requests, because a
start of the AWS CLI takes half a second of processor time, which the load may need.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Callable

from agent.boot import Boot
from agent.log import say
from agent.sampler import Cpu
from troop.measure.live import (
    FILES,
    FORMAT,
    INTERVAL_SECONDS,
    MOST_BYTES,
    Live,
    LiveError,
    LiveOperation,
    parse_operations,
    sum_of,
)
from troop.measure.s3.addresses import Address
from troop.measure.s3.credentials import CredentialsError, CredentialStore
from troop.measure.s3.signing import Signer
from troop.measure.s3.web import ERRORS, Web

MOST_FILES = 512
PAUSE_SECONDS: float = INTERVAL_SECONDS
WAIT_SECONDS = 1.0
"""Time after a full interval in which the script's processes write their files."""
SPREAD_SECONDS = 2.0
"""Nodes upload at different moments of this time."""

Put = Callable[[bytes], None]
"""Stores a document. Raises an error of :data:`FAILURES`."""
FAILURES = (*ERRORS, CredentialsError)


class LiveUpload:
    """Uploads running summaries from :meth:`start` to :meth:`stop`.

    Args:
        blank: the node's summary, without a time and without operations.
        results: the folder with the files of the script's processes.
        cpu: returns the thousandths of all processors that worked in the last so many seconds, and of those that waited
            for disks; None if unknown.
    """

    def __init__(
        self,
        blank: Live,
        results: Path,
        cpu: Callable[[int], Cpu],
        put: Put,
        clock: Callable[[], float] = time.time,
        interval: float | None = None,
    ) -> None:
        self._blank, self._results, self._cpu, self._put = blank, results, cpu, put
        self._clock, self._interval = clock, interval or PAUSE_SECONDS
        self._delay = WAIT_SECONDS + random.uniform(0, SPREAD_SECONDS)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._upload_all, name="live", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the uploads; does not wait for one that is under way."""
        self._over.set()

    def _upload_all(self) -> None:
        failures = 0
        while not self._over.wait(self._interval - self._clock() % self._interval + self._delay):
            try:
                self.upload()
            except FAILURES as error:
                failures += 1
                if failures == 1:
                    say(f"cannot upload the running summary: {error}")
            except Exception as error:  # noqa: BLE001 - a phase that nobody can watch is better than no phase
                say(f"no running summaries in this phase any more: {error!r}")
                return

    def upload(self) -> None:
        """Uploads one summary. Raises what `put` raises."""
        self._put(json.dumps(self.summary().document(), separators=(",", ":")).encode())

    def summary(self) -> Live:
        """Returns the sum of the files of the last interval."""
        now = int(self._clock())
        paths = sorted(self._results.glob(FILES))[:MOST_FILES]
        until, seconds, operations = _added_up(paths, now - 2 * INTERVAL_SECONDS)
        cpu, iowait = self._cpu(INTERVAL_SECONDS)
        return replace(
            self._blank,
            until=until or now,
            seconds=seconds,
            cpu=cpu,
            iowait=iowait,
            operations=operations,
        )


def _added_up(paths: Iterable[Path], since: int) -> tuple[int, int, dict[str, LiveOperation]]:
    """Returns the latest end of the files that end after ``since``, the longest time of them, and their operations.
    What earlier files have measured counts, too.
    """
    latest, longest, totals = 0, 0, dict[str, LiveOperation]()
    for path in paths:
        try:
            if path.stat().st_size > MOST_BYTES:
                continue
            document = json.loads(path.read_bytes())
            if document.get("format") != FORMAT:
                continue
            until, seconds = int(document["until"]), int(document["seconds"])
            operations = parse_operations(document.get("operations"))
            if until > since:
                longest, latest = max(longest, seconds), max(latest, until)
            else:
                operations = {name: one.past() for name, one in operations.items()}
            totals = sum_of(totals, operations)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, LiveError) as error:
            say(f"{path.name} cannot be read: {error}")
    return latest, longest, totals


class OwnObject:
    """An object in the results bucket that the node replaces, or reads, from time to time, such as its running summary.

    Args:
        store: returns the node's credentials; called at the first upload.
    """

    def __init__(self, boot: Boot, address: Address, key: str, store: Callable[[], CredentialStore]) -> None:
        self._boot, self._address, self._key, self._new_store = boot, address, key, store
        self._store: CredentialStore | None = None
        self._signer: Signer | None = None
        self._web = Web()

    def put(self, body: bytes) -> None:
        """Stores a document, with one try.

        Raises:
            OSError, http.client.HTTPException: S3 did not answer, or refused.
            CredentialsError: the node has no credentials.
        """
        self._ask("PUT", {"content-type": "application/json"}, body)

    def get(self) -> bytes:
        """Returns the document, which somebody else may write, with one try.

        Raises:
            OSError, http.client.HTTPException: S3 did not answer, or refused.
            CredentialsError: the node has no credentials.
        """
        return self._ask("GET", {})

    def _ask(self, method: str, headers: dict[str, str], body: bytes = b"") -> bytes:
        if self._store is None or self._signer is None:
            self._store = self._new_store()
            self._signer = Signer(self._store.current, self._boot.region)
        address = self._address
        path = address.path(self._key)
        every = {"host": address.host, **headers}
        signed = self._signer.headers(method, path, "", every, hashlib.sha256(body).hexdigest())
        scheme = "https" if address.is_tls else "http"
        self._web.close()  # S3 has closed a connection that was silent for so long
        answer = self._web.ask(f"{scheme}://{address.host}{path}", method, signed, body or None)
        if answer.status != 200:
            self._store.refused(answer.body.partition(b"<Code>")[2].partition(b"<")[0].decode("ascii", "replace"))
            raise OSError(f"S3 answered {answer.status} {answer.body[:200]!r}")
        return answer.body
