"""The command removes what its steps create, and nothing else."""

from __future__ import annotations

from pathlib import Path

from cli.client.api import Answer
from cli.prove.ledger import PREFIX, Ledger
from cli.prove.probes import Probes
from tests.unit.cli.conftest import FakeApi


class Things:
    """Things that exist, and what removes them; ``broken`` ones stay."""

    def __init__(self) -> None:
        self.removed: list[str] = []
        self.broken: set[str] = set()

    def remove(self, name: str) -> None:
        if name in self.broken:
            raise RuntimeError("no")
        self.removed.append(name)


def test_resource_is_in_the_ledger_before_it_exists_and_is_removed_after_failures(tmp_path: Path) -> None:
    path, things = tmp_path / "created.json", Things()
    ledger = Ledger(path, {"role": things.remove})
    for name in ("a", "b", "c"):
        ledger.add("role", PREFIX + name)
        assert PREFIX + name in path.read_text()
    things.broken = {PREFIX + "b"}
    assert not ledger.remove_all()
    assert things.removed == [PREFIX + "c", PREFIX + "a"], "the newest first, and one failure keeps no other"
    things.broken = set()
    assert Ledger(path, {"role": things.remove}).remove_all(), "by the next command"
    assert things.removed[-1] == PREFIX + "b"
    assert not path.exists()


def test_nothing_is_removed_that_this_command_cannot_have_created(tmp_path: Path) -> None:
    path, things = tmp_path / "created.json", Things()
    path.write_text('[["role", "Admin"]]')
    assert not Ledger(path, {"role": things.remove}).remove_all()
    assert things.removed == []


def test_run_that_the_deployment_does_not_know_any_more_counts_as_removed(probes: Probes, api: FakeApi) -> None:
    missing = Answer(404, {"statusCode": 404, "message": "no", "code": "no-such-run"})
    for kind, name in (("benchmarks", "r1"), ("fleets", "r1"), ("fleets", "f1"), ("benchmarks", "f1")):
        api.refusals["GET", f"{kind}/{name}"] = [missing]
    probes.ledger.add("run", "r1")
    probes.ledger.add("fleet", "f1")
    assert probes.ledger.remove_all()
