"""Makes MiniStack listen on its configured port only, and not on 443 as well."""

from __future__ import annotations

from typing import Any

from ministack import app

from ._wrap import wrap


def apply() -> None:
    @wrap(app, "_port_is_bindable")
    def refuse(_original: Any, *_args: Any) -> bool:
        return False
