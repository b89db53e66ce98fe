"""What instances with closed security groups reach, and what is left of their networks."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local.account.kernels import problem as obstacle_of_kernels
from local.account.network import DOORS_AT_ONCE, problem
from local.account.reach import is_closed, name_servers, reach_of, reaches
from local.launcher import LocalAccount, obstacle
from local.process import AccountError
from local.project import ROOT
from tests.patience import eventually

from .helpers import Fleet, unique

OPEN = ("-1", {"CidrIp": "0.0.0.0/0"}, "", None, None)


def instance(address: str = "", **groups: list[tuple[Any, ...]]) -> Any:
    """An instance of moto with security groups, each with its egress rules."""
    return SimpleNamespace(
        private_ip=address,
        security_groups=[
            SimpleNamespace(
                id=name,
                egress_rules=[
                    SimpleNamespace(
                        ip_protocol=protocol,
                        ip_range=addresses,
                        source_group={"GroupId": group} if group else {},
                        from_port=first,
                        to_port=last,
                        group_id=name,
                    )
                    for protocol, addresses, group, first, last in rules
                ],
            )
            for name, rules in groups.items()
        ],
    )


@pytest.mark.parametrize(
    ("egress", "ingress", "expected"),
    [
        (("-1", {}, "door", None, None), ("-1", {}, "cell", None, None), True),
        (("tcp", {}, "door", 443, 443), ("tcp", {"CidrIp": "10.0.1.0/24"}, "", 0, 1000), True),
        (("tcp", {"CidrIp": "10.0.2.0/24"}, "", 443, 443), ("tcp", {}, "cell", 443, 443), True),
        (OPEN, OPEN, True),
        (("tcp", {}, "door", 80, 80), OPEN, False),
        (("udp", {}, "door", 443, 443), OPEN, False),
        (("tcp", {}, "other", 443, 443), OPEN, False),
        (("tcp", {"CidrIp": "10.0.1.0/24"}, "", 443, 443), OPEN, False),
        (OPEN, ("tcp", {"CidrIp": "10.0.1.0/25"}, "", 443, 443), False),
        (OPEN, ("-1", {}, "door", None, None), False),
    ],
)
def test_both_security_groups_must_allow_a_connection(
    egress: tuple[Any, ...], ingress: tuple[Any, ...], expected: bool
) -> None:
    node, (door,) = instance("127.16.0.1", cell=[egress]), instance(door=[ingress]).security_groups
    door.ingress_rules = door.egress_rules
    assert reaches(node, "10.0.1.0/24", [door], "10.0.2.7") is expected


def test_only_groups_without_a_rule_for_everything_limit_an_instance() -> None:
    assert is_closed(instance(cell=[("-1", {}, "cell", None, None)]))
    assert not is_closed(instance(default=[OPEN]))
    assert not is_closed(instance(cell=[], default=[OPEN])), "rules of all groups add up"
    assert not is_closed(instance())


def test_rules_become_doors() -> None:
    node = instance(
        cell=[("-1", {}, "cell", None, None), ("tcp", {}, "", 443, 443)],  # the second is for S3's prefix list
        targets=[
            ("tcp", {"CidrIp": "192.0.2.8/30"}, "", 80, 81),
            ("tcp", {"CidrIp": "192.0.2.9/32"}, "", 80, 80),
            ("tcp", {}, "sg-app", 5432, 5432),
            ("tcp", {"CidrIp": "10.0.0.0/8"}, "", 22, 22),  # too many addresses
            ("tcp", {"CidrIp": "192.0.2.1/32"}, "", 1, 65535),  # too many ports
        ],
    )
    others = [instance("127.9.0.1", **{"sg-app": []}), instance("127.9.0.2", cell=[])]
    reach = reach_of(node, others, {"AWS_ENDPOINT_URL": "https://127.0.0.1:4566", "PATH": "/bin"})
    assert reach.group == "cell"
    doors = [door for door in reach.doors if door[2] != 53]
    assert doors == [
        ("tcp", "127.0.0.1", 4566),
        *(("tcp", f"192.0.2.{n}", port) for n in (8, 9, 10, 11) for port in (80, 81)),
        ("tcp", "127.9.0.1", 5432),
    ]


def test_missing_command_for_networks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert problem() == "the command ip is missing: install iproute2"


_OBSTACLE = obstacle("network")
enforced = pytest.mark.skipif(bool(_OBSTACLE), reason=f"reach is not enforced here: {_OBSTACLE}")

NODE = """#!/usr/bin/env python3
import os, pathlib, socket, threading
listening = socket.create_server((os.environ["INSTANCE_IP"], 7000))
def echo():
    while True:
        one, _ = listening.accept()
        one.sendall(one.recv(100))
threading.Thread(target=echo, daemon=True).start()
pathlib.Path("network").write_text(os.readlink("/proc/self/ns/net"))
pathlib.Path(os.environ["READY_FILE"]).touch()
while True:
    for ask in list(pathlib.Path(".").glob("*.ask")):
        try:
            with socket.create_connection((*ask.read_text().split(),), timeout=2) as one:
                one.sendall(b"x")
                answer = one.recv(1).decode() or "closed"
        except OSError as error:
            answer = error.strerror or str(error)
        ask.unlink()
        pathlib.Path("answer").write_text(answer)
    threading.Event().wait(0.05)
"""


@pytest.fixture
def service() -> Iterator[int]:
    """The port of a service of this machine that echoes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def echo() -> None:
            while True:
                try:
                    one, _ = listening.accept()
                except OSError:
                    return
                with one:
                    one.sendall(one.recv(100))

        threading.Thread(target=echo, daemon=True).start()
        yield int(listening.getsockname()[1])


def ask(fleet: Fleet, node: str, host: str, port: int) -> str:
    """What a node receives from an address."""
    folder = fleet.directory(node)
    (folder / "answer").unlink(missing_ok=True)
    (folder / "new").write_text(f"{host} {port}")
    (folder / "new").rename(folder / "it.ask")
    return str(eventually(lambda: (folder / "answer").exists() and (folder / "answer").read_text()))


NETWORKS = r"""
import json, os, socket, subprocess, sys
from local.account.network import Networks, enter

port, count = map(int, sys.argv[1:])
doors = [("tcp", "192.0.2.1", 1000 + number) for number in range(count)]
networks = Networks()
namespace = networks.add("node", "10.0.0.1", "", [("udp", "127.0.0.1", port), *doors, ("tcp", "127.0.0.1", port)])
ask = "import socket, sys; asking = socket.socket(type=getattr(socket, sys.argv[1]))\n"
ask += "asking.settimeout(60); asking.connect(('127.0.0.1', int(sys.argv[2]))); asking.sendall(b'?')\n"
ask += "if sys.argv[1] == 'SOCK_STREAM': asking.shutdown(socket.SHUT_WR)\n"
ask += "print(asking.recv(100).decode())"
for kind in ("SOCK_DGRAM", "SOCK_STREAM"):
    subprocess.run([sys.executable, "-c", ask, kind, str(port)], check=True, preexec_fn=lambda: enter(namespace))
"""


def _bound_to_one_port() -> tuple[socket.socket, socket.socket, int]:
    """Binds a socket for datagrams and one for connections. A port that one may have can be in use for the other."""
    while True:
        names, listening = socket.socket(type=socket.SOCK_DGRAM), socket.socket()
        names.bind(("127.0.0.1", 0))
        port: int = names.getsockname()[1]
        try:
            listening.bind(("127.0.0.1", port))
        except OSError:
            names.close()
            listening.close()
        else:
            return names, listening, port


@enforced
def test_questions_for_names_have_answers_and_hundreds_of_doors_open() -> None:
    names, listening, port = _bound_to_one_port()
    with names, listening:
        listening.listen()

        def answer() -> None:
            question, address = names.recvfrom(100)
            names.sendto(question + b" by udp", address)
            one, _ = listening.accept()
            with one:
                question = b""
                while chunk := one.recv(100):  # the end of the question passes the door, too
                    question += chunk
                one.sendall(question + b" by tcp")

        answering = threading.Thread(target=answer, daemon=True)
        answering.start()
        line = [sys.executable, "-c", NETWORKS, str(port), str(2 * DOORS_AT_ONCE)]
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
        answering.join(60)
    assert (done.stdout.split("\n"), done.stderr) == (["? by udp", "? by tcp", ""], "")


KERNEL = r"""
import pathlib, subprocess, sys
from local.account import kernels
from local.account.network import Networks, enter

home, port = pathlib.Path(sys.argv[1]), int(sys.argv[2])
networks = Networks()
doors = [("tcp", "127.0.0.1", port), ("tcp", "192.0.2.1", 80)]
member = networks.add("member", "10.0.0.2", "cell", [])
answering = "import socket; listening = socket.create_server(('10.0.0.2', 7000))\n"
answering += "print(flush=True)\nwhile True:\n  one, _ = listening.accept(); one.sendall(b'x')"
line = [sys.executable, "-c", answering]
with subprocess.Popen(line, stdout=subprocess.PIPE, preexec_fn=lambda: enter(member)) as peer:
    peer.stdout.readline()
    namespace = networks.add("node", "10.0.0.1", "cell", doors, kernel=True)
    line = kernels.command(home, "10.0.0.1", {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHON": sys.executable}, doors)
    try:
        subprocess.run(line, stdin=subprocess.DEVNULL, timeout=300, preexec_fn=lambda: enter(namespace))
    finally:
        peer.kill()
"""
IN_THE_KERNEL = r"""#!/bin/sh
exec "$PYTHON" - <<'END'
import json, os, pathlib, socket, subprocess
def answer_of(host):
    try:
        with socket.create_connection(host, timeout=30) as one:
            one.sendall(b"x")
            return one.recv(1).decode()
    except OSError as error:
        return error.strerror or str(error)
with socket.create_server(("127.0.0.1", 0)) as own:
    socket.create_connection(own.getsockname(), timeout=30).close()  # its own loopback works, too
pathlib.Path("answers").write_text(json.dumps({
    "kernel": os.uname().release,
    "shared": subprocess.check_output(["stat", "--file-system", "--format=%T", "shared"], text=True).strip(),
    "door": answer_of(("127.0.0.1", PORT)),
    "another port": answer_of(("127.0.0.1", 1)),
    "elsewhere": answer_of(("198.51.100.1", 80)),
    "member": answer_of(("10.0.0.2", 7000)),
}))
raise SystemExit(1)  # halts the kernel
END
"""
_NO_KERNEL = obstacle("kernels")


@enforced
@pytest.mark.skipif(bool(_NO_KERNEL), reason=f"no kernel to boot: {_NO_KERNEL}")
def test_a_kernel_of_its_own_reaches_the_same_and_has_a_disk(tmp_path: Path, service: int) -> None:
    script = tmp_path / "user-data"
    script.write_text(IN_THE_KERNEL.replace("PORT", str(service)))
    script.chmod(0o700)
    line = [sys.executable, "-c", KERNEL, str(tmp_path), str(service)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False)
    assert (tmp_path / "answers").exists(), done.stdout + done.stderr
    answers = json.loads((tmp_path / "answers").read_text())
    assert answers.pop("kernel") != os.uname().release
    assert answers == {
        "shared": "xfs",
        "door": "x",
        "another port": "Connection refused",
        "elsewhere": "Network is unreachable",
        "member": "x",
    }


def test_missing_tool_for_kernels_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert obstacle_of_kernels() == (
        "linux.uml, mkfs.xfs, modprobe missing; on Debian: apt-get install -y user-mode-linux xfsprogs kmod"
    )


def test_an_account_with_kernels_does_not_start_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(AccountError, match="instances cannot be kernels: the command ip is missing"):
        LocalAccount(kernels=True)


def test_name_servers_become_doors_of_both_protocols(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text("# of this machine\nsearch example.com\nnameserver 127.0.0.53\nnameserver fe80::1%eth0\n")
    assert list(name_servers(file)) == [("udp", "127.0.0.53", 53), ("tcp", "127.0.0.53", 53)]
    assert list(name_servers(tmp_path / "none")) == []


def users_of(network: str) -> list[str]:
    users = []
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            users += [str(link)] if str(link.readlink()) == network else []
        except OSError:  # it has ended
            continue
    return users


@enforced
def test_instances_of_a_closed_group_reach_its_members_and_doors_until_they_end(fleet: Fleet, service: int) -> None:
    vpc = fleet.ec2.describe_subnets(SubnetIds=fleet.subnets[:1])["Subnets"][0]["VpcId"]
    cells: list[str] = []
    for _ in range(2):
        cell = fleet.ec2.create_security_group(GroupName=unique("cell"), Description="closed", VpcId=vpc)["GroupId"]
        door = {"IpProtocol": "tcp", "FromPort": service, "ToPort": service, "IpRanges": [{"CidrIp": "127.0.0.1/32"}]}
        own = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": cell}]}
        fleet.ec2.authorize_security_group_egress(GroupId=cell, IpPermissions=[own, *([door] if not cells else [])])
        anywhere = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
        fleet.ec2.revoke_security_group_egress(GroupId=cell, IpPermissions=[anywhere])
        cells.append(cell)
    nodes: list[str] = []
    for cell in (cells[0], cells[0], cells[1]):
        template = fleet.template(NODE, SecurityGroupIds=[cell])
        group = fleet.group(1, LaunchTemplate={"LaunchTemplateId": template, "Version": "1"})
        nodes += fleet.in_service(group, 1)
    first, member, stranger = nodes
    addresses = [fleet.instance(node)["PrivateIpAddress"] for node in nodes]
    assert ask(fleet, first, addresses[1], 7000) == "x"
    assert ask(fleet, first, "127.0.0.1", service) == "x"
    assert ask(fleet, first, addresses[2], 7000) != "x"
    assert ask(fleet, stranger, addresses[0], 7000) != "x"
    assert ask(fleet, stranger, "127.0.0.1", service) == "Connection refused"
    assert ask(fleet, first, "192.0.2.1", 80) == "Network is unreachable"

    network = (fleet.directory(member) / "network").read_text()
    assert users_of(network)
    fleet.ec2.terminate_instances(InstanceIds=[member])
    eventually(lambda: users_of(network) == [])
    eventually(lambda: ask(fleet, first, addresses[1], 7000) != "x")
