"""Makes GetConsoleOutput return the output of the instance's process; moto returns a sample text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.core.responses import ActionResult
from moto.core.types import Base64EncodedString
from moto.core.utils import utcnow
from moto.ec2.responses.general import General


def apply(console: Callable[[str], bytes]) -> None:
    def output(self: Any) -> ActionResult:
        instance = self.ec2_backend.get_instance(self._get_param("InstanceId"))
        printed = Base64EncodedString.from_raw_string(console(instance.id).decode("utf-8", "replace"))
        return ActionResult({"InstanceId": instance.id, "Timestamp": utcnow(), "Output": printed})

    General.get_console_output = output
