"""What a run starts from, in the results bucket: its definition, the files beside it, and the artifacts runs share."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from troop.bench import names
from troop.bench.definition import Benchmark, to_document
from troop.bench.plan import Plan, to_plan_document

_LAST_DAYS = timedelta(days=8)
"""An artifact this close to its removal is uploaded again: no run outlasts a week, and one may be about to start."""

_URL_SECONDS = 3600
_MISSING = frozenset({"403", "404"})
"""HEAD has no body to tell more. Who may not list the bucket is told 403 of what is not there; that hides nothing: what
may not be read may not be written either, and that says so.
"""


@dataclass(frozen=True)
class Upload:
    """Where an artifact can be put, for an hour.

    Attributes:
        url: takes a PUT.
        headers: to be sent with it; they are signed. With them S3 refuses whatever has another size or hash.
    """

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class RunFiles:
    """``client`` of S3; it must sign with version 4, for no older signature covers headers."""

    client: Any
    bucket: str

    def put(
        self, run: str, benchmark: Benchmark, plan: Plan, files: Mapping[str, bytes], estimate: Mapping[str, Any]
    ) -> None:
        """Writes them; writing them again changes nothing.

        Raises:
            ClientError: S3 refused; some may be written.
        """
        for name, content in files.items():
            self.client.put_object(Bucket=self.bucket, Key=names.file_key(run, name), Body=content)
        documents: dict[str, Mapping[str, Any]] = {
            names.definition_key(run): to_document(benchmark),
            names.plan_key(run): to_plan_document(plan),
            names.estimate_key(run): estimate,
        }
        for key, document in documents.items():
            self.client.put_object(
                Bucket=self.bucket,
                Key=key,
                Body=json.dumps(document, indent=2, default=float).encode(),
                ContentType="application/json",
            )

    def is_staged(self, sha256: str, now: datetime) -> bool:
        """Whether an artifact is there, and stays long enough.

        Raises:
            ClientError: S3 refused.
        """
        try:
            head = self.client.head_object(Bucket=self.bucket, Key=names.artifact_key(sha256))
        except ClientError as error:
            if error.response["Error"]["Code"] in _MISSING:
                return False
            raise
        stays: datetime = head["LastModified"] + names.ARTIFACT_LIFETIME
        return stays > now + _LAST_DAYS

    def upload(self, sha256: str, size: int) -> Upload:
        """Where to put an artifact of that hash and so many bytes. Asks nothing of AWS."""
        checksum = base64.b64encode(bytes.fromhex(sha256)).decode()
        url = self.client.generate_presigned_url(
            "put_object",
            Params={
                "Bucket": self.bucket,
                "Key": names.artifact_key(sha256),
                "ChecksumSHA256": checksum,
                "ContentLength": size,
            },
            ExpiresIn=_URL_SECONDS,
        )
        return Upload(url, {"content-length": str(size), "x-amz-checksum-sha256": checksum})
