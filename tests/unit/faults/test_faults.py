"""The table of faults, and the documents that list it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from troop.chaos.events import exception_of, fault_named, lasting_named
from troop.faults import FAULTS, LASTING, names
from troop.shared.errors import MissingFaultError

DOCS = Path(__file__).parents[3] / "docs"


def test_names_are_unique() -> None:
    assert len(set(names())) == len(FAULTS) + len(LASTING) == len(names())
    assert [fault_named(fault.name) for fault in FAULTS] == list(FAULTS)
    assert [lasting_named(fault.name) for fault in LASTING] == list(LASTING)


def test_a_method_of_another_version_is_no_fault_of_this_one() -> None:
    with pytest.raises(MissingFaultError, match="'melt'"):
        fault_named("melt")
    with pytest.raises(MissingFaultError, match="'melt'"):
        lasting_named("melt")
    assert exception_of("melt", True) == ""


def test_only_a_crash_can_become_something_else() -> None:
    assert [name for name in names() if exception_of(name, True)] == ["crash"]
    assert [name for name in names() if exception_of(name, False)] == []


def test_every_client_of_an_action_is_there() -> None:
    for fault in FAULTS:
        assert {permission.action.partition(":")[0] for permission in fault.permissions} <= set(fault.services)


def test_the_page_of_owners_lists_each_from_the_harshest() -> None:
    text = (DOCS / "guides" / "chaos.md").read_text(encoding="utf-8")
    section = text.partition("### Methods\n")[2].partition("\n#")[0]
    lines = re.findall(r"^- `(\w+)`(?: \(default\))?: (.*)\.$", section, re.MULTILINE)
    assert lines == [(fault.name, fault.summary) for fault in FAULTS]


def test_the_row_of_the_policy_lists_each() -> None:
    (row,) = re.findall(r"^\| `method` \|.*$", (DOCS / "guides" / "chaos.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(re.findall(r"`(\w+)`", row.split("|")[3])) == tuple(fault.name for fault in FAULTS)


def test_the_schema_of_notifications_has_each() -> None:
    schema = json.loads((DOCS / "reference" / "notifications.schema.json").read_text(encoding="utf-8"))
    assert tuple(schema["$defs"]["event_fields"]["properties"]["method"]["enum"]) == names()
