"""User data: fetches the very agent its run began with, whatever it takes, and arranges the node's end."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from agent import boot as agents_boot
from agent import keys as agents_keys
from agent.errors import AgentError
from tests.unit.agent.node import BOOT, BUCKET, CELL, ID, ROLE, RUN, Node, key
from troop.bench.definition import names
from troop.bench.fleets.user_data import LONGEST, user_data


def tell_only(node: Node) -> None:
    """In place of Python: says that it was called, and by what."""
    node.tool(
        "python3",
        f'#!/bin/sh\necho "started: $* in $PWD, home $HOME, $AWS_DEFAULT_REGION" >> {node.home.parent}/calls\n',
    )


def calls(node: Node) -> str:
    path = node.home.parent / "calls"
    return path.read_text() if path.exists() else ""


@pytest.fixture
def aws(node: Node) -> Node:
    """A node that neither sleeps nor starts the agent."""
    node.tool("sleep", f'#!/bin/sh\necho "sleep $1" >> {node.home.parent}/calls\n')
    tell_only(node)
    node.account.put(f"{BUCKET}/{names.cell_definition_key(RUN, CELL)}", {})
    return node


def test_user_data_becomes_the_agent(aws: Node) -> None:
    aws.boot()
    assert aws.over() == 0, aws.console()
    assert calls(aws) == f"started: agent.pyz boot.json in {aws.home}, home {aws.home}, us-west-2\n"


def test_user_data_retries_until_the_agent_is_fetched(aws: Node) -> None:
    aws.account.refuse = 4
    aws.boot()
    assert aws.over() == 0
    assert calls(aws).count("sleep") == 4
    assert "started" in calls(aws)


def test_another_agent_than_the_runs_is_never_started(aws: Node) -> None:
    aws.boot(agent_sha256="0" * 64)
    assert aws.over() == 1
    assert "started" not in calls(aws)
    assert calls(aws).count("sleep") == 30
    assert "is not the agent of this run" in aws.console()
    assert "cannot fetch the agent" in aws.console()


def test_the_node_is_readable_by_its_user_alone(aws: Node) -> None:
    aws.boot()
    aws.over()
    assert aws.home.stat().st_mode & 0o077 == 0


# ------------------------------------------------------------------ its end


def arrange_shutdown(aws: Node, *, is_on_ec2: bool = True) -> None:
    """Lists calls of ``shutdown``; the user data takes the machine for EC2's if nothing stands in for its metadata."""
    aws.tool("shutdown", f'#!/bin/sh\necho "shutdown $*" >> {aws.home.parent}/calls\n')
    if is_on_ec2:
        del aws.environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"]


@pytest.mark.parametrize(
    ("is_on_ec2", "seconds", "is_standing", "first"),
    [
        (True, 3600, False, ("shutdown -h +65\n", "shutdown -h +66\n")),  # before anything else
        (True, -3600, False, ("shutdown -h +1\n",)),
        (True, -3600, True, ("shutdown -h +15\n",)),  # the fleet may have been extended
        (False, -3600, True, ("started: agent.pyz",)),  # a machine that only plays a node is left running
    ],
)
def test_on_ec2_the_end_of_a_node_is_arranged_first(
    aws: Node, is_on_ec2: bool, seconds: int, is_standing: bool, first: tuple[str, ...]
) -> None:
    arrange_shutdown(aws, is_on_ec2=is_on_ec2)
    aws.boot(expires_at=int(time.time()) + seconds, standing=is_standing)
    aws.over()
    assert calls(aws).startswith(first)
    assert ("shutdown" in calls(aws)) is is_on_ec2


def test_on_ec2_a_node_that_reboots_ends_even_without_an_agent(aws: Node) -> None:
    """Its scheduled shutdown is gone. If it had not fetched the agent yet, nobody can report anything."""
    arrange_shutdown(aws)
    aws.boot()
    aws.over()
    (aws.home / "agent.pyz").unlink()
    aws.reboot()
    aws.over()
    assert calls(aws).splitlines()[-1] == "shutdown -h now"
    assert calls(aws).count("started") == 1


def test_the_script_for_further_boots_does_nothing_in_the_first(aws: Node) -> None:
    """In another order of cloud-init's modules, it runs right after this one."""
    aws.boot()
    aws.over()
    aws.run_boot_scripts()
    assert aws.over() == 0
    assert calls(aws).count("started") == 1


def test_on_ec2_what_disturbs_a_measurement_is_stopped(aws: Node) -> None:
    aws.tool("systemctl", f'#!/bin/sh\necho "systemctl $*" >> {aws.home.parent}/calls\n')
    aws.tool("shutdown", "#!/bin/sh\n")
    aws.boot()
    aws.over()
    assert "systemctl" not in calls(aws), "this machine is not a node"
    del aws.environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"]
    aws.boot()
    aws.over()
    assert "systemctl mask --runtime --now --no-block dnf-makecache.timer amazon-ssm-agent.service" in calls(aws)


def test_on_ec2_the_end_of_a_script_for_memory_does_not_stop_the_agent(aws: Node) -> None:
    """Agent and scripts are in the unit of cloud-init that runs user data."""
    del aws.environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"]
    aws.tool("shutdown", "#!/bin/sh\n")
    unit = aws.home / "run/systemd/system/cloud-final.service.d/troop.conf"
    aws.tool("systemctl", f'#!/bin/sh\n[ "$1" = daemon-reload ] && cp {unit} {aws.home.parent}/loaded\n')
    (aws.bin / "cp").symlink_to("/bin/cp")
    aws.boot()
    aws.over()
    assert (aws.home.parent / "loaded").read_text() == "[Service]\nOOMPolicy=continue\n"


# ------------------------------------------------------------------ what the two sides agree on


def test_the_agent_reads_what_user_data_writes(aws: Node) -> None:
    aws.boot(expires_at=1_790_000_000)
    aws.over()
    read = agents_boot.read(aws.home / "boot.json")
    assert {"format": "troop.boot/1", **read.__dict__} == {**BOOT, "agent_sha256": aws.sha256}


@pytest.mark.parametrize("content", ["", "{}", '{"format": "troop.boot/2"}', json.dumps({"format": "troop.boot/1"})])
def test_a_boot_file_of_another_kind_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "boot.json"
    path.write_text(content)
    with pytest.raises(AgentError, match=r"cannot read .*boot\.json"):
        agents_boot.read(path)


def test_both_sides_have_the_same_keys() -> None:
    keys = agents_keys.Keys(RUN, CELL)
    assert keys.definition == names.cell_definition_key(RUN, CELL)
    assert keys.file("read.py") == names.file_key(RUN, "read.py")
    assert keys.artifact("00ff") == names.artifact_key("00ff")
    assert keys.targets(ROLE) == names.targets_key(RUN, CELL, ROLE)
    assert keys.data == names.data_prefix(RUN, CELL)
    assert keys.roster == names.roster_key(RUN, CELL)
    assert keys.barrier("measure") == names.barrier_key(RUN, CELL, "measure")
    assert keys.queue == names.queue_key(RUN, CELL)
    assert keys.orders == names.orders_key(RUN, CELL)
    assert keys.report(ID) == f"{names.reports_prefix(RUN, CELL)}{ID}.json"
    assert keys.interruption(ID) == f"{names.interruptions_prefix(RUN, CELL)}{ID}.json"
    own = agents_keys.Keys(RUN, CELL, "AROAX")
    for key_of_node in (own.node(ID), own.summary("measure", ID), own.output("measure", ID), own.interruption(ID)):
        assert f"/AROAX:{ID}." in key_of_node
        assert names.node_of(key_of_node) == ID
    assert names.node_of(keys.node(ID)) == ID, "as earlier versions have named it"
    assert keys.node(ID) == f"{names.nodes_prefix(RUN, CELL)}{ID}.json"
    assert keys.summary("measure", ID) == f"{names.phase_prefix(RUN, CELL, 'measure')}{ID}.json"
    assert keys.output("measure", ID) == f"{names.output_prefix(RUN, CELL, 'measure')}{ID}.log.gz"
    assert key("roster.json") == f"{BUCKET}/{keys.roster}"


def test_user_data_is_small_enough_for_ec2() -> None:
    widest = {**BOOT, "bucket": "b" * 63, "region": "ap-southeast-99", "role": "r" * 21}
    assert len(user_data(widest).encode()) < LONGEST / 2


def test_values_stay_values() -> None:
    text = user_data({**BOOT, "role": "it's; reboot"})
    assert "it'\"'\"'s; reboot" in text
