"""`scripts/references.py`: which references to names that do not exist the lint reports."""

from __future__ import annotations

import pytest

from scripts.references import missing

SOURCES = {
    "Makefile": "check lint:\n\tpython scripts/check.py",
    "cdk.json": '{"context": {"troop:network": ""}}',
    "functions/claims.py": 'CLAIMED = "claimed"\n"""A status."""\nGIVEN = f"Kept {CLAIMED} as given_day"',
    "functions/rules.py": "from claims import CLAIMED\n\n\nclass Rule:\n    def last(self): return CLAIMED",
}


@pytest.mark.parametrize(
    "reference",
    [
        *("`claims.CLAIMED`", "`Rule.last()`", "`given_day`", "`DescribeInstances`", "`docs/<name>.md`", "`rules.py`"),
        *("`make lint`", "`troop status --json`", "`troop bench run NAME`", "`troop:network=vpc-1`", "`a sentence`"),
    ],
)
def test_names_that_exist_are_accepted(reference: str) -> None:
    assert list(missing({**SOURCES, "docs/x/a.md": reference, "stack.py": 'client("ec2")'})) == []


@pytest.mark.parametrize(
    "reference",
    [
        *(
            "given_up_day",
            "Kept",
            "claims.LAST_CALL",
            "context.CLAIMED",
            "Rule.first()",
            "docs/b.md",
            "functions/claim.py",
            "claim.py",
        ),
        *("make tests", "troop health", "troop bench health", "troop status --every", "troop:x", "--every"),
    ],
)
def test_names_that_do_not_exist_are_reported(reference: str) -> None:
    assert list(missing({**SOURCES, "docs/x/a.md": f"# Title\n\nSee `{reference}`."})) == [
        f"docs/x/a.md:3: {reference}"
    ]


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ('"""Reads :data:`GIVEN`."""', "a.GIVEN"),
        ('"""Reads :func:`.claims.find`."""', "claims.find"),
        ('"""Reads :mod:`functions.claim`."""', "functions.claim"),
        ('"""Runs `make tests`."""', "make tests"),
        ("# as claims.LAST_CALL", "claims.LAST_CALL"),
    ],
)
def test_roles_and_comments_of_a_module_are_checked(text: str, reference: str) -> None:
    assert list(missing({**SOURCES, "functions/a.py": text})) == [f"functions/a.py:1: {reference}"]


def test_versions_of_the_changelog_and_blocks_may_have_other_names() -> None:
    changelog = "## Unreleased\n\n```\n`old_name`\n```\n\n## 0.1.0\n\n- `old_name`\n"
    assert list(missing({**SOURCES, "CHANGELOG.md": changelog})) == []
