"""The instance host: what is Running is a process at its own address, and what is terminated is gone."""

from __future__ import annotations

import os
import urllib.request
from pathlib import Path

import pytest

from tests.patience import PATIENCE, eventually

from .helpers import Fleet

WEB = """#!/bin/sh
cat > serve.py <<'EOF'
import http.server, os, pathlib
server = http.server.ThreadingHTTPServer((os.environ["INSTANCE_IP"], 8080), http.server.SimpleHTTPRequestHandler)
pathlib.Path(os.environ["READY_FILE"]).touch()
server.serve_forever()
EOF
echo "$INSTANCE_ID" > index.html
exec python3 serve.py
"""
DAEMON = """#!/bin/sh
setsid sleep 4242 &
echo $! > daemon
env > environment
ulimit -Sn > files
touch "$READY_FILE"
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_an_instance_answers_at_its_private_address_until_it_is_terminated(fleet: Fleet) -> None:
    group = fleet.group(2, WEB)
    first, second = fleet.in_service(group, 2)
    addresses = {one: fleet.instance(one)["PrivateIpAddress"] for one in (first, second)}
    for instance, address in addresses.items():
        assert address.startswith("127.")
        assert not address.startswith("127.0.")
        with urllib.request.urlopen(f"http://{address}:8080/", timeout=PATIENCE) as answer:
            assert answer.read().decode().strip() == instance

    def refused() -> bool:
        try:
            urllib.request.urlopen(f"http://{addresses[first]}:8080/", timeout=PATIENCE).close()
        except OSError:
            return True
        return False

    fleet.ec2.terminate_instances(InstanceIds=[first])
    eventually(refused)
    urllib.request.urlopen(f"http://{addresses[second]}:8080/", timeout=PATIENCE).close()
    replaced = eventually(lambda: fleet.members(group).keys() - addresses.keys())
    assert fleet.instance(replaced.pop())["PrivateIpAddress"] not in addresses.values()


def test_daemons_end_with_their_instance(fleet: Fleet) -> None:
    group = fleet.group(1, DAEMON)
    (instance,) = fleet.in_service(group, 1)
    daemon = int((fleet.directory(instance) / "daemon").read_text())
    assert alive(daemon), "user data that ends does not end the instance"
    fleet.ec2.terminate_instances(InstanceIds=[instance])
    eventually(lambda: not alive(daemon))


CRASHES = """#!/bin/sh
setsid sleep 4242 &
echo $! > daemon
touch "$READY_FILE"
while [ ! -e crash ]; do sleep 0.1; done
touch off
kill -9 $$
"""


@pytest.mark.parametrize(("behaviour", "after"), [("terminate", "terminated"), ("stop", "stopped")])
def test_an_instance_that_turns_itself_off_is_lost_as_on_ec2(fleet: Fleet, behaviour: str, after: str) -> None:
    template = fleet.template(CRASHES, InstanceInitiatedShutdownBehavior=behaviour)
    group = fleet.group(1, LaunchTemplate={"LaunchTemplateId": template, "Version": "$Latest"})
    (instance,) = fleet.in_service(group, 1)
    daemon = int((fleet.directory(instance) / "daemon").read_text())
    (fleet.directory(instance) / "crash").touch()
    eventually(lambda: fleet.instance(instance)["State"]["Name"] == after)
    assert fleet.instance(instance)["StateReason"]["Code"] == "Client.InstanceInitiatedShutdown"
    eventually(lambda: not alive(daemon))
    eventually(lambda: fleet.members(group).keys() - {instance})


def test_the_environment_is_minimal(fleet: Fleet) -> None:
    group = fleet.group(1, DAEMON)
    (instance,) = fleet.in_service(group, 1)
    lines = (fleet.directory(instance) / "environment").read_text().splitlines()
    environment = dict(line.split("=", 1) for line in lines)
    assert environment["INSTANCE_ID"] == instance
    assert int((fleet.directory(instance) / "files").read_text()) <= 1024, "as systemd on EC2 begins"
    assert environment["INSTANCE_IP"] == fleet.instance(instance)["PrivateIpAddress"]
    assert environment["HOME"] == str(fleet.directory(instance))
    assert environment["TROOP_NODE_HOME"] == environment["HOME"]
    assert sorted(name for name in environment if name.startswith(("AWS_", "PYTHON"))) == [
        "AWS_CA_BUNDLE",
        "AWS_CONFIG_FILE",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        "AWS_ENDPOINT_URL",
    ]
    tools, *system = environment["PATH"].split(os.pathsep)
    assert [entry.name for entry in Path(tools).iterdir()] == ["aws"]
    assert not [entry for entry in system if entry.startswith(str(Path.cwd()))]


def test_stopped_instances_stop_and_start_again(fleet: Fleet) -> None:
    run = fleet.ec2.run_instances(ImageId="ami-12345678", MinCount=1, MaxCount=1, UserData=DAEMON)
    instance = run["Instances"][0]["InstanceId"]

    def state() -> str:
        return next((one["state"] for one in fleet.account.instances() if one["id"] == instance), "none")

    eventually(lambda: state() == "ready")
    fleet.ec2.stop_instances(InstanceIds=[instance])
    eventually(lambda: state() == "none")
    fleet.ec2.start_instances(InstanceIds=[instance])
    eventually(lambda: state() == "ready")
    fleet.ec2.terminate_instances(InstanceIds=[instance])


@pytest.mark.parametrize("script", ["#cloud-config\npackages: [nginx]\n", "#!/bin/sh\n: $READY_FILE\nexit 3\n"])
def test_user_data_that_fails_never_serves(fleet: Fleet, script: str) -> None:
    group = fleet.group(1, script)
    (instance,) = fleet.members(group)
    eventually(lambda: [one for one in fleet.account.instances() if one["id"] == instance and one["state"] == "ended"])
    assert fleet.members(group)[instance] == "Pending"


def test_console_logs_are_bounded(fleet: Fleet) -> None:
    group = fleet.group(
        1, '#!/bin/sh\nhead -c 5000000 /dev/zero | tr "\\0" x\ntouch $READY_FILE\nexec sleep infinity\n'
    )
    (instance,) = fleet.in_service(group, 1)
    console = fleet.directory(instance) / "console.log"
    eventually(lambda: console.stat().st_size < 1 << 20 and console.read_text().startswith("[earlier output dropped]"))


REBOOTS = """#!/bin/sh
mkdir -p var/lib/cloud/scripts/per-boot run
echo once >> began
touch run/first
printf '#!/bin/sh\\nls run >> again 2>&1\\n' > var/lib/cloud/scripts/per-boot/one
chmod 700 var/lib/cloud/scripts/per-boot/one
echo $$ > pid
exec sleep infinity
"""


def test_a_reboot_ends_all_processes_and_runs_only_the_scripts_of_each_boot(fleet: Fleet) -> None:
    group = fleet.group(1, REBOOTS)
    (instance,) = fleet.in_service(group, 1)
    folder = fleet.directory(instance)
    pid = int(eventually(lambda: (folder / "pid").exists() and (folder / "pid").read_text()))
    fleet.ec2.reboot_instances(InstanceIds=[instance])
    assert "run" in eventually(lambda: (folder / "again").exists() and (folder / "again").read_text()), "it is empty"
    assert not alive(pid)
    assert (folder / "began").read_text() == "once\n"
    assert list(fleet.in_service(group, 1)) == [instance]
