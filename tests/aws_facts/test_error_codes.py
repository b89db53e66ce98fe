"""Every error code with which the code compares is one that AWS documents."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from botocore.retries.standard import ThrottledRetryableChecker, TransientRetryableChecker

from tests.aws_facts.code import error_codes, used_services
from tests.aws_facts.sources import error_codes as modelled
from tests.aws_facts.sources import text_of

SOURCES = tomllib.loads(Path(__file__).with_name("error_codes.toml").read_text())["source"]
DOCUMENTED = {code for source in SOURCES for code in source["codes"]}
RETRIED = {
    *vars(ThrottledRetryableChecker)["_THROTTLED_ERROR_CODES"],
    *vars(TransientRetryableChecker)["_TRANSIENT_ERROR_CODES"],
}
"""Codes that all services may return, as botocore's retries list them."""
_SIGNING_IN = {"sso", "sts"}


def _known() -> set[str]:
    return RETRIED.union(*map(modelled, used_services() | _SIGNING_IN))


def test_every_code_is_modelled_or_documented() -> None:
    compared = set(error_codes())
    assert len(compared) > 100, "the comparisons are no longer found"
    assert {(module, code) for module, code in compared if code not in _known() | DOCUMENTED} == set()


def test_documented_error_codes_are_still_compared() -> None:
    assert DOCUMENTED - {code for _, code in error_codes()} == set()


@pytest.mark.parametrize("source", [one for one in SOURCES if "text" in one], ids=lambda one: one["text"])
def test_a_model_documents_its_codes(source: dict[str, str]) -> None:
    assert [code for code in source["codes"] if code not in text_of(source["text"])] == []
