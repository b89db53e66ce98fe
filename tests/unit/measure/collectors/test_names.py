"""Labels of tools become names of operations: each its own, and the same on every node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.measure.collectors.common import a_name
from troop.measure.operations import NAME


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("read", "read"),
        ("db:read-2.a_b", "db:read-2.a_b"),
        ("GET /users/list", "GET-users-list"),
        (" log out ", "log-out"),
        ('GET /, the "home" page', "GET-the-home-page-4f4e59ec"),
        ("ログイン", "unnamed-b436f66a"),
        ("", "unnamed-00000000"),
        ("x" * 70, f"{'x' * 55}-8c28fe39"),
    ],
)
def test_a_label_is_a_name_that_people_know_again(text: str, name: str) -> None:
    assert a_name(text) == name


@given(st.text(), st.text())
def test_every_text_has_a_name_and_others_have_others(one: str, other: str) -> None:
    assert NAME.fullmatch(a_name(one))
    bare = {text.translate(dict.fromkeys(map(ord, " /-"))).lstrip("._:") for text in (one, other)}
    assert a_name(one) != a_name(other) or len(bare) == 1
