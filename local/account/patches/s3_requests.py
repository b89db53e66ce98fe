"""Refuses tags that only AWS sets, and deletions of more objects than one request may name; gives IAM the keys
``s3:if-match`` and ``s3:if-none-match`` of uploads, which MiniStack lacks.

S3 is the only service whose requests :mod:`..request_models` does not check. Sources are in its model: PutObjectTagging
names InvalidTag, and DeleteObjects 1,000 keys ("Error responses - Amazon Simple Storage Service": MalformedXML). Of the
keys: "Enforce conditional writes on Amazon S3 buckets - Amazon Simple Storage Service".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from ministack.core import iam_actions
from ministack.services import s3

from ..shapes import reserved_tags
from ._wrap import wrap

_MOST_KEYS = 1000
_CONDITIONS = ("if-match", "if-none-match")
"""Headers of an upload that IAM knows."""
_WITH_TAGS_IN_BODY = {"_put_bucket_tagging": 1, "_put_object_tagging": 2}
_WITH_TAGS_IN_HEADERS = {"_put_object": 3, "_copy_object": 2, "_create_multipart_upload": 2}
"""Functions of MiniStack by the position of the argument."""


def apply() -> None:
    for name, position in _WITH_TAGS_IN_BODY.items():
        _check_tags(name, position, s3._parse_tags_xml)
    for name, position in _WITH_TAGS_IN_HEADERS.items():
        _check_tags(name, position, _tags_of_headers)

    @wrap(s3, "_delete_objects")
    def delete(original: Callable[..., Any], bucket: str, body: bytes, *more: Any) -> Any:
        if body.count(b"<Key>") > _MOST_KEYS:
            return s3._error("MalformedXML", s3._MALFORMED_XML, 400)
        return original(bucket, body, *more)

    @wrap(iam_actions, "s3_service_context")
    def context(
        original: Callable[..., dict[str, Any]],
        action: str,
        query: Any,
        path: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        sent = {name.lower(): value for name, value in (headers or {}).items()} if action == "s3:PutObject" else {}
        conditions = {f"s3:{name}": sent[name] for name in _CONDITIONS if name in sent}
        return {**original(action, query, path, headers), **conditions}


def _check_tags(name: str, position: int, tags_of: Callable[[Any], Mapping[str, str]]) -> None:
    @wrap(s3, name)
    def checked(original: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            reserved = next(reserved_tags({"Tags": dict(tags_of(arguments[position]))}), None)
        except s3.ParseError:
            reserved = None  # the original refuses it
        if reserved:
            return s3._error("InvalidTag", f"the tag {reserved} is reserved for AWS", 400)
        return original(*arguments, **options)


def _tags_of_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    return dict(parse_qsl(headers.get("x-amz-tagging", ""), keep_blank_values=True))
