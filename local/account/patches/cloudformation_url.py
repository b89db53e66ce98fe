"""Reads templates also from addresses that begin with the bucket, as `cdk import` writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ministack.services.cloudformation import helpers

from ._wrap import wrap

_BY_HOST = re.compile(r"https://(?P<bucket>[a-z0-9.-]+)\.s3[.-][a-z0-9.-]*amazonaws\.com(?:\.cn)?/(?P<key>.+)")


def apply() -> None:
    @wrap(helpers, "_resolve_document")
    def resolve(original: Callable[..., Any], params: Mapping[str, Any], body: str, url: str, *more: Any) -> Any:
        if match := _BY_HOST.fullmatch(helpers._p(params, url)):
            params = {**params, url: [f"https://s3.amazonaws.com/{match['bucket']}/{match['key']}"]}
        return original(params, body, url, *more)
