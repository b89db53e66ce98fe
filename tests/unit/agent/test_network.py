"""The network of a node, cut and slowed by programs that only note what they are asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import network
from agent.errors import AgentError, FaultError

ADDRESSES = "1: lo    inet 127.0.0.1/8 scope host lo\\n2: ens5    inet 10.0.0.5/20 brd 10.0.15.255 scope global ens5"
TC = """#!/bin/sh
echo "$*" >> {0}/calls
case "$2" in
add) [ ! -e {0}/own ] || {{ echo "RTNETLINK answers: File exists" >&2; exit 2; }}; echo "qdisc netem 8001:" > {0}/set ;;
del) rm {0}/set ;;
show) cat {0}/set 2>/dev/null || echo "qdisc mq 0: root" ;;
esac
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("ip", f"#!/bin/sh\nprintf '{ADDRESSES}\\n'\n"), ("tc", TC.format(tmp_path))):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1")
    return tmp_path / "calls"


def test_the_interface_of_the_nodes_address_is_slowed_and_restored(calls: Path) -> None:
    network.slow("10.0.0.5", 200)
    network.restore("10.0.0.5")
    network.restore("10.0.0.5")
    assert calls.read_text().splitlines() == [
        "qdisc add dev ens5 root netem limit 1000000 delay 200ms",
        "qdisc show dev ens5 root",
        "qdisc del dev ens5 root",
        "qdisc show dev ens5 root",
    ]


def test_a_cut_loses_all_packets(calls: Path) -> None:
    network.cut("10.0.0.5")
    assert calls.read_text() == "qdisc add dev ens5 root netem limit 1000000 loss 100%\n"


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.4.0.2", "the address 127.4.0.2 is one of the machine that this node shares with others"),
        ("10.0.0.50", "no interface of this node has the address 10.0.0.50"),
    ],
)
def test_the_network_of_another_machine_is_left_alone(calls: Path, address: str, why: str) -> None:
    with pytest.raises(FaultError, match=why):
        network.cut(address)
    assert not calls.exists()


def test_a_discipline_of_a_script_is_not_replaced(calls: Path) -> None:
    (calls.parent / "own").touch()
    with pytest.raises(FaultError, match=r"tc qdisc add dev ens5 .*: RTNETLINK answers: File exists"):
        network.cut("10.0.0.5")


def test_a_node_tries_its_faults_before_it_registers(calls: Path) -> None:
    network.prepare("10.0.0.5")
    assert [line.split()[1] for line in calls.read_text().splitlines()] == ["add", "show", "del"]
    (calls.parent / "own").touch()
    with pytest.raises(AgentError, match="needs the packages iproute-tc and kernel-modules-extra: tc qdisc add"):
        network.prepare("10.0.0.5")


def test_only_on_ec2_are_packages_installed(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (calls.parent / "dnf").write_text(f"#!/bin/sh\necho dnf $* >> {calls}; exit 1\n")
    (calls.parent / "dnf").chmod(0o755)
    (calls.parent / "modprobe").write_text("#!/bin/sh\nexit 1\n")
    (calls.parent / "modprobe").chmod(0o755)
    network.prepare("10.0.0.5")
    assert "dnf" not in calls.read_text()
    monkeypatch.delenv("AWS_EC2_METADATA_SERVICE_ENDPOINT")
    with pytest.raises(
        AgentError, match=r"kernel-modules-extra: the kernel .* has no module sch_netem, and its packag"
    ):
        network.prepare("10.0.0.5")
    assert "dnf install --assumeyes --quiet kernel-modules-extra" in calls.read_text()
