"""Reads the file that lists deployments, strictly, and names each of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cli.shared import yaml_files
from cli.shared.errors import CliError, Exit
from troop.shared.values import shown, spelling

DEFAULT = Path("deployments.yaml")
"""The file in the working folder."""

_FIELDS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "name": (re.compile(r"[A-Za-z][A-Za-z0-9-]{0,30}"), "a letter, then letters, digits and hyphens; at most 31"),
    "region": (re.compile(r"[a-z]{2,5}(-[a-z]+)+-[0-9]+"), "a region, such as eu-west-1"),
    "profile": (re.compile(r"\S(.{0,126}\S)?"), "the name of a profile"),
    "role": (
        re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]{1,576}", re.ASCII),
        "a role's ARN, such as arn:aws:iam::111122223333:role/troop",
    ),
    "external_id": (re.compile(r"[\w+=,.@:/-]{2,1224}", re.ASCII), "2 to 1224 letters, digits or any of +=,.@:/-_"),
    "stage": (re.compile(r"[A-Za-z][A-Za-z0-9-]{0,19}"), "a letter, then letters, digits and hyphens; at most 20"),
}
"""What a field of an entry may have, and its description."""


@dataclass(frozen=True)
class ListedDeployment:
    """An entry of the file.

    Attributes:
        name: the name of the stack.
        profile, role: whose permissions apply; None for those of the environment.
        external_id: what the role's trust policy asks for, if it does.
        label: tells the deployment apart from the others of its file.
    """

    name: str
    region: str
    profile: str | None = None
    role: str | None = None
    external_id: str | None = None
    stage: str | None = None
    label: str = ""

    @property
    def account(self) -> str:
        """The profile, or the role's account; "" for the environment's."""
        return self.profile or (self.role.split(":")[4] if self.role else "")


def read(file: Path) -> tuple[ListedDeployment, ...]:
    """Returns the deployments of a file, in its order.

    Raises:
        CliError: USAGE; names the file, the line and what is allowed.
    """
    document = yaml_files.Document(yaml_files.read(file), str(file))
    raw = document.values
    entries = raw.get("deployments") if isinstance(raw, dict) and set(raw) == {"deployments"} else None
    if not isinstance(entries, list) or not entries:
        raise CliError(Exit.USAGE, f"{file}: must have one key, deployments, with a list of at least one deployment")
    lines = [document.line_of(("deployments", index)) for index in range(len(entries))]
    listed: dict[tuple[str, str, str], int] = {}
    deployments = []
    for index, entry in enumerate(entries):
        try:
            one = _deployment(entry)
            place = (one.name, one.region, one.account)
            if place in listed:
                same = lines[listed[place]]
                which = f"that in line {same}" if same else f"number {listed[place] + 1}"
                raise ValueError(f"is the same deployment as {which}")
        except ValueError as error:
            named = entry.get("name") if isinstance(entry, dict) else None
            subject = f"the deployment {shown(named)}" if named else f"deployment {index + 1}"
            line = "" if lines[index] is None else f":{lines[index]}"
            raise CliError(Exit.USAGE, f"{file}{line}: {subject} {error}") from None
        listed[place] = index
        deployments.append(one)
    return _labelled(deployments, file)


def _deployment(entry: Any) -> ListedDeployment:
    """Converts an entry.

    Raises:
        ValueError: the message follows the entry's name.
    """
    if not isinstance(entry, dict):
        raise ValueError("must be a mapping with name and region")
    for key, value in entry.items():
        if key not in _FIELDS:
            raise ValueError(f"has the key {shown(key)}: must be {spelling(str(key), tuple(_FIELDS))}")
        pattern, allowed = _FIELDS[key]
        if not isinstance(value, str) or not pattern.fullmatch(value):
            quoted = "; write it in quotes" if pattern.fullmatch(str(value)) else ""
            raise ValueError(f"has {key} {shown(value)}: must be {allowed}{quoted}")
    if missing := [key for key in ("name", "region") if key not in entry]:
        raise ValueError(f"lacks {' and '.join(missing)}")
    if "profile" in entry and "role" in entry:
        raise ValueError("has both profile and role: remove one")
    if "external_id" in entry and "role" not in entry:
        raise ValueError("has external_id without role: only a role's trust policy asks for it")
    return ListedDeployment(**entry)


def _labelled(deployments: list[ListedDeployment], file: Path) -> tuple[ListedDeployment, ...]:
    """Names each deployment by the name alone, if that is unique; else also by stage, region and account.

    Raises:
        CliError: USAGE, if even these do not differ.
    """
    labels = [one.name for one in deployments]
    for detail in range(1, 4):
        frequency = Counter(labels)
        labels = [
            label if frequency[label] == 1 else _label(one, detail)
            for one, label in zip(deployments, labels, strict=True)
        ]
    if alike := [label for label, times in Counter(labels).items() if times > 1]:
        raise CliError(Exit.USAGE, f"{file}: several deployments would be called {alike[0]}: give them other stages")
    return tuple(replace(one, label=label) for one, label in zip(deployments, labels, strict=True))


def _label(one: ListedDeployment, detail: int) -> str:
    """Returns the name with the first so many details."""
    details = [text for text in (one.stage, one.region, one.account)[:detail] if text]
    return f"{one.name} ({', '.join(details)})" if details else one.name
