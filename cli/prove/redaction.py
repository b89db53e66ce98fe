"""Replaces what identifies an account or a person in answers; the same value becomes the same label everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_GROUP = "[0-9a-fA-F]{1,4}"
_GROUPS = f"{_GROUP}(?::{_GROUP})*"
# The longest first: an ARN or an address contains the others.
_KINDS = (
    ("url", r"https?://[^\s\"'<>]+"),
    ("arn", r"arn:[^\s\"'<>,]*"),
    ("mail", r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    ("principal", r"(?:AKIA|ASIA|AROA|AIDA|AGPA|ANPA|ANVA)[A-Z0-9]{12,}"),
    ("host", r"\b[\w.-]+\.(?:compute\.internal|ec2\.internal|amazonaws\.com(?:\.cn)?|amazonaws\.eu)\b"),
    ("host", r"\bip-\d{1,3}(?:-\d{1,3}){3}\b"),
    ("id", r"\b[a-z]{1,12}-[0-9a-f]{17}\b|\b(?:i|vpc|subnet|sg|eni|vol|ami|snap|rtb|igw)-[0-9a-f]{8}\b"),
    ("id", r"vol[0-9a-f]{17}|\bAWS[0-9A-F]{16,}"),
    ("id", r"\bnvme\.[0-9a-f]{4}-[0-9a-f]+"),  # the same in hexadecimal, in the names of devices
    ("uuid", r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    ("mac", r"\b[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}\b"),
    ("address", r"\b\d{1,3}(?:\.\d{1,3}){3}\b"),
    ("address", rf"(?<![\w:])(?:(?:{_GROUP}:){{4,7}}{_GROUP}|(?:{_GROUPS})?::{_GROUPS}|{_GROUPS}::)(?![\w:])"),
    ("account", r"\d{12,}"),
)
_PATTERN = re.compile("|".join(f"(?P<k{place}>{pattern})" for place, (_, pattern) in enumerate(_KINDS)))


class Redaction:
    """Replaces identifying texts.

    Args:
        names: names that no pattern recognises, such as those of the stack's resources.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._labels: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        longest_first = sorted({name for name in names if name}, key=lambda name: (-len(name), name))
        self._names = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text: str) -> str:
        """Returns a text with labels in place of what identifies."""
        # Arns and addresses first: names may be parts of them.
        text = _PATTERN.sub(lambda match: self._label(_KINDS[int(str(match.lastgroup)[1:])][0], match[0]), text)
        return self._names.sub(lambda match: self._label("name", match[0]), text) if self._names else text

    def document(self, value: Any) -> Any:
        """Returns a JSON value with its texts, keys and large numbers redacted."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.document(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.document(inner) for inner in value]
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**11:
            return self.text(str(value))
        return value

    def _label(self, kind: str, value: str) -> str:
        if value not in self._labels:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._labels[value] = f"<{kind} {self._counts[kind]}>"
        return self._labels[value]
