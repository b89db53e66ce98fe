"""Takes a metric without dimensions for one of its own; MiniStack adds up those of the name with any dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services import cloudwatch

from ._wrap import wrap


class Dimensions(dict[str, str]):
    """Dimensions of a request, which MiniStack compares only if they are true."""

    def __bool__(self) -> bool:
        return True


def apply() -> None:
    @wrap(cloudwatch, "_dims_from_list")
    def dimensions(original: Callable[[Any], dict[str, str]], listed: Any) -> Dimensions:
        return Dimensions(original(listed))
