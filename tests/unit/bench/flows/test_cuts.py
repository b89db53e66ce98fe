"""What ``make test`` samples of all places at which a run can be cut, and that ``make test-all`` has all of them."""

from __future__ import annotations

import pytest

from tests.unit.account import account

OPERATIONS = ["GetItem", "PutItem", "PutItem", "Create", "PutItem", "Create"]


@pytest.fixture(params=[False, True])
def exhaustive(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(account, "EXHAUSTIVE", request.param)
    return bool(request.param)


def test_every_call_is_cut_once_or_both_before_and_after_it_acts(exhaustive: bool) -> None:
    both = [(number, acted) for number in (1, 2, 4, 7) for acted in (False, True)]
    alternating = [(1, False), (2, True), (4, False), (7, True)]
    assert account.cuts((1, 2, 4, 7)) == (both if exhaustive else alternating)


def test_every_operation_is_cut_at_its_first_and_last_call_or_at_each(exhaustive: bool) -> None:
    writes = [1, 2, 3, 4, 5]
    assert account.ends(writes, OPERATIONS) == (writes if exhaustive else [1, 3, 4, 5])
    assert account.ends([2], OPERATIONS) == [2]
