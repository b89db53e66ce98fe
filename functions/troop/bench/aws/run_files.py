"""Stores what a run starts from in the results bucket: its definition, its files, and the artifacts that runs share."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.admission.images import ImageFacts
from troop.bench.admission.reach import Balancer, balancers_document
from troop.bench.definition import names
from troop.bench.definition.definition import Benchmark, to_document
from troop.bench.definition.plan import Plan, to_plan_document
from troop.bench.fleets import type_facts
from troop.bench.fleets.type_facts import TypeFacts

_LAST_DAYS = timedelta(days=8)
"""An artifact this close to its removal is uploaded again: a run that is about to start may need it for up to a week.
"""

_URL_SECONDS = 3600
_MISSING = frozenset({"403", "404"})
"""HEAD returns no body with details. S3 answers 403 for a missing object if the caller may not list the bucket. That
hides no problem: a caller who may not read may not write either, and the write then fails.
"""


@dataclass(frozen=True)
class Upload:
    """Where an artifact can be uploaded, for an hour.

    Attributes:
        url: accepts a PUT.
        headers: must be sent with it; they are signed, and S3 refuses any other size or hash.
    """

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class RunFiles:
    """The files that runs start from.

    Attributes:
        client: S3's; it must sign with version 4, because older signatures do not cover headers.
    """

    client: Any
    bucket: str

    def put(
        self,
        run: str,
        benchmark: Benchmark,
        plan: Plan,
        files: Mapping[str, bytes],
        estimate: Mapping[str, Any],
        types: Mapping[str, TypeFacts],
        images: Mapping[str, ImageFacts],
        balancers: Mapping[str, Balancer],
    ) -> None:
        """Writes all of them; repeating it changes nothing.

        Args:
            types: facts of the plan's instance types by name.
            images: those that the file names, by these names.
            balancers: load balancers that targets name.

        Raises:
            ClientError: S3 refused; some may be written.
        """
        for name, content in files.items():
            self.client.put_object(Bucket=self.bucket, Key=names.file_key(run, name), Body=content)
        documents: dict[str, Mapping[str, Any]] = {
            names.definition_key(run): to_document(benchmark),
            names.plan_key(run): to_plan_document(plan),
            names.estimate_key(run): estimate,
            names.instance_types_key(run): type_facts.to_document(types),
            **{names.image_key(run, name): image.document for name, image in images.items()},
            **({names.load_balancers_key(run): balancers_document(balancers)} if balancers else {}),
        }
        for key, document in documents.items():
            self.client.put_object(
                Bucket=self.bucket,
                Key=key,
                Body=json.dumps(document, indent=2, default=float).encode(),
                ContentType="application/json",
            )

    def is_staged(self, sha256: str, now: datetime) -> bool:
        """Checks whether an artifact exists, and stays long enough.

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
        """Returns where to upload an artifact of this hash and size. Makes no call to AWS."""
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
