"""Functions write what their roles let them write: other tests of this folder fail, too, where they write more."""

from __future__ import annotations

import pytest

from tests.unit.account import rights
from tests.unit.account.account import Account
from troop.shared import state_keys
from troop.shared.state_keys import (
    BENCH_WRITERS,
    HALT,
    HALT_ID,
    IN_FLIGHT,
    ITSELF,
    REAPER_OFF,
    SCHEDULES_OFF,
    SWITCH,
    WRITERS,
)


def test_write_without_a_right_fails_in_the_test(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    item = account.item("web")
    monkeypatch.setattr(rights, "WRITERS", WRITERS | {IN_FLIGHT: ("api",)})
    with pytest.raises(pytest.fail.Exception, match=r"the function terminate writes \['in-flight'\]"):
        account.terminate(item)


def test_every_key_has_writers_and_only_the_api_writes_the_switch() -> None:
    words = {value for name, value in vars(state_keys).items() if name.isupper() and isinstance(value, str)}
    parts_of_the_switch = {HALT, HALT_ID, ITSELF, REAPER_OFF, SCHEDULES_OFF}
    assert set(WRITERS) | set(BENCH_WRITERS) == words - parts_of_the_switch
    assert not set(WRITERS) & set(BENCH_WRITERS)
    assert WRITERS[SWITCH] == ("api",)
