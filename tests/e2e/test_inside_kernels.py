"""Faults inside real kernels, by a deployed Troop: one that ends by itself, and one that a halt ends."""

from __future__ import annotations

import pytest

from local.faults import __main__ as command
from local.faults.__main__ import missing

LACKING = missing()


@pytest.mark.skipif(bool(LACKING), reason=f"no kernel to inject a fault into: {LACKING}")
def test_clients_suffer_until_a_fault_is_proven_to_be_over(capsys: pytest.CaptureFixture[str]) -> None:
    code = command.main(["--short"])
    answer = capsys.readouterr()
    assert code == 0, answer.out + answer.err
    table = answer.out.partition("scenario ")[2].splitlines()[1:]  # below the lines that tell of progress
    assert [line.split()[-1] for line in table] == ["right", "right"], answer.out


def test_missing_program_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "obstacle", lambda _module: "")
    monkeypatch.setattr("shutil.which", lambda name: None if name in ("dig", "killall") else name)
    assert command.main(["--short"]) == 2
    assert "killall, dig missing; on Debian: apt-get install -y psmisc bind9-dnsutils" in capsys.readouterr().err
