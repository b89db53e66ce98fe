"""Replacements: which launch replaces a terminated instance, and how it differs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.chaos.build import at
from troop.chaos.replacements import Build, Launch, Replacement, comparison, differences, first_since

BEFORE = Build("lt-1:3", "c7g.large", "ami-1")


@pytest.mark.parametrize(
    ("after", "parts", "words"),
    [
        (BEFORE, (), "the same template version, type and image"),
        (
            Build("lt-1:4", "c7g.large", "ami-2"),
            ("template", "image"),
            "the same type, another template version (lt-1:4 instead of lt-1:3), and another image "
            "(ami-2 instead of ami-1)",
        ),
        (
            Build("lt-1:3", "m7g.large", "ami-1"),
            ("instance_type",),
            "the same template version and image, and another type (m7g.large instead of c7g.large)",
        ),
        (Build("lt-1:3", "c7g.large"), (), "the same template version and type, and an unknown image before or after"),
        (Build(), (), "an unknown template version, type and image before or after"),
    ],
)
def test_a_comparison_names_each_part_once(after: Build, parts: tuple[str, ...], words: str) -> None:
    assert differences(BEFORE, after) == parts
    assert comparison(BEFORE, Replacement("i-2", after)) == f"i-2 has {words}"


def test_the_replacement_is_the_first_launch_from_the_second_of_the_termination_on() -> None:
    since = at("12:00:10") + timedelta(milliseconds=700)
    older, same_second, later = (
        Launch(name, "ami-1", at(f"12:00:{second}")) for name, second in (("i-1", "09"), ("i-2", "10"), ("i-3", "11"))
    )
    assert first_since([later, older, same_second], since) == same_second
    assert first_since([older], since) is None
