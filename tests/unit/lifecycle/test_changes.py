"""`make deploy` shows which settings change, and resets none of an earlier command unless somebody confirms that."""

from __future__ import annotations

import copy
import json
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest

from cli.shared.errors import CliError, Exit
from infra import ROOT
from infra.settings import SETTINGS, written_context
from infra.settings_record import record, record_in
from lifecycle import deploy, project
from lifecycle.changes import command_for
from lifecycle.project import settings_with
from tests.unit.lifecycle.world import DEPLOYED, KEY, Printed, Run, World
from troop.bench.definition.limits import setting
from troop.bench.flows.run_service import BucketError
from troop.shared.outputs import SETTINGS_METADATA

NETWORK = '{"vpc": "vpc-0123abcd", "subnets": ["subnet-0123abcd"]}'
OTHER = {
    key: json.dumps(not one.default if isinstance(one.default, bool) else one.default + 1)
    for key, one in SETTINGS.items()
    if isinstance(one.default, int)
} | {
    "participation": "opt-in",
    "probability": "0.05",
    "method": "drain",
    "units": '{"web-*": "web", "w-*": "w"}',
    "calendars": '{"default": {"time_zone": "Europe/Vienna", "open": "09:00", "close": "12:00", "country": null}}',
    "tick_minutes": "5",
    "log_retention_days": "30",
    "runbook_url": "https://example.com/runbook",
    "network": NETWORK,
    "zones": "eu-west-1a,eu-west-1b",
    "key": KEY,
    "news_bus": "arn:aws:events:eu-west-1:111122223333:event-bus/troop-news",
    "tags": '{"CostCenter": "1234"}',
    "allowed_buckets": "my-data,my-logs",
    "allowed_images": "/images/*",
    "allowed_snapshots": "*",
    "allowed_targets": "10.20.0.0/16:80",
    "max_run_cost": "none",
    "instance_types": "c7g.*,m7g.large",
    "stage": "prod",
}
"""A value of each setting that is not that of cdk.json."""


def deployed_by(world: World) -> dict[str, Any]:
    """The values that the synthesis of this deployment had."""
    arguments = world.done[0]
    overrides = [arguments[place + 1] for place, word in enumerate(arguments) if word == "-c"]
    return dict(record(settings_with(overrides)).values)


def options_of(command: str) -> list[str]:
    """The options of `lifecycle.deploy`, if somebody pastes this `make deploy` into a shell."""
    recipe = subprocess.run(
        ["make", "-s", "-n", *shlex.split(command)[1:]], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return shlex.split(recipe.replace("\\\n", " ").split("-m lifecycle.deploy ")[1])


def test_there_is_a_value_of_each_setting() -> None:
    assert OTHER.keys() == record(settings_with([])).values.keys()


# cdk.json's stages allow no other lowest_min_healthy.
@pytest.mark.parametrize("key", sorted(OTHER.keys() - {"stage", "lowest_min_healthy"}))
def test_no_setting_of_an_earlier_command_is_reset_unless_somebody_says_so(
    run: Run, world: World, capsys: Printed, key: str
) -> None:
    world.deployed_with(f"troop:{key}={OTHER[key]}")
    for yes in (True, False):
        with pytest.raises(
            CliError, match=f"would reset troop:{key}, and YES=1 does not confirm that: .*KEEP=1"
        ) as refused:
            run(yes=yes)
        assert refused.value.code == Exit.NOT_CONFIRMED
    assert f"\n  troop:{key}" in (output := capsys.readouterr().out)
    assert "(reset" in output
    assert {arguments[0] for arguments in world.done} == {"synth"}
    world.done.clear()
    run(yes=True, reset=True)
    assert [arguments[0] for arguments in world.done] == ["synth", "deploy"]
    world.done.clear()
    run("troop:allowed_buckets=more", yes=True, keep=True)
    values = record_in(world.template)
    assert values
    expected = dict(values.values)
    if expected["benchmarks"] and not expected["network"]:
        expected["zones"] = ["eu-west-1a", "eu-west-1b", *(["eu-west-1c"] if key != "zones" else [])]
    assert deployed_by(world) == expected | {"allowed_buckets": ["more"]}
    assert "(reset" not in capsys.readouterr().out.split("Deployment Troop")[-1]


@pytest.mark.parametrize("keep", [False, True])
def test_an_edited_number_of_zones_counts_over_those_that_were_chosen(run: Run, world: World, keep: bool) -> None:
    """The deployed ones followed from a 2 in cdk.json."""
    world.deployed_with("troop:zones=eu-west-1a,eu-west-1b", "troop:zones_chosen=true")
    run(yes=True, keep=keep)
    assert deployed_by(world)["zones"] == ["eu-west-1a", "eu-west-1b", "eu-west-1c"]


def test_stage_of_an_earlier_command_stays_under_its_name(run: Run, world: World, capsys: Printed) -> None:
    world.deployed_with("troop:stage=prod", "troop:deployment=Troop-prod", deployment="Troop-prod")
    with pytest.raises(CliError, match=r"would reset .*troop:min_healthy, .*troop:stage, and YES=1"):
        run(yes=True, name="Troop-prod")
    assert "  troop:stage: prod -> null (reset)\n" in capsys.readouterr().out
    world.done.clear()
    run("troop:max_per_day=11", yes=True, name="Troop-prod", keep=True)
    assert [word for word in world.done[0] if word.startswith("troop:")] == [
        "troop:max_per_day=11",
        "troop:deployment=Troop-prod",
        "troop:stage=prod",
        "troop:zones=eu-west-1a,eu-west-1b,eu-west-1c",
        "troop:zones_chosen=true",
    ]
    assert deployed_by(world)["min_healthy"] == 3
    world.done.clear()
    run(yes=True, name="Troop-prod", stage="prod")
    assert [arguments[0] for arguments in world.done] == ["synth", "deploy"]


def test_the_command_of_a_refusal_keeps_the_other_settings(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As somebody pastes it: through the shell and make."""
    texts = [
        setting("allowed_targets", "empty", "127.0.0.1:8080"),
        setting("max_nodes", "400", "401"),
        str(BucketError(["payroll"], ("my-data",))),
    ]
    for text, (key, value) in zip(
        texts,
        [("allowed_targets", ["127.0.0.1:8080"]), ("max_nodes", 401), ("allowed_buckets", ["my-data", "payroll"])],
        strict=True,
    ):
        world.done.clear()
        world.deployed_with("troop:participation=opt-in", "troop:allowed_buckets=my-data")
        monkeypatch.setattr(sys, "argv", ["deploy", *options_of(text.split("`")[1]), "--yes"])
        assert deploy.main() == 0
        values = deployed_by(world)
        assert (values["participation"], values[key]) == ("opt-in", value)


def test_the_command_that_a_removal_prints_makes_the_same_deployment_again(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = OTHER | {"stage": "staging", "runbook_url": 'https://example.com/it\'s $HOME/"a b"'}
    for key in ("lowest_min_healthy", "benchmarks", "dns_firewall", "under_load"):
        del together[key]
    overrides = [f"troop:{key}={value}" for key, value in together.items()]
    world.deployed_with(*overrides, "troop:deployment=Elsewhere", deployment="Elsewhere")
    deployed = record_in(world.template)
    world.status, world.resources = None, {}
    monkeypatch.setattr(sys, "argv", ["deploy", *options_of(command_for("Elsewhere", deployed)), "--yes"])
    assert deploy.main() == 0
    assert deployed
    assert deployed_by(world) == deployed.values
    assert command_for("Troop", None) == "make deploy DEPLOYMENT=Troop"


@pytest.mark.parametrize(
    ("typed", "fine"), [("Troop\ny\n", True), ("troop\n", False), ("\n", False), ("y\ny\n", False)]
)
def test_a_reset_takes_the_name(run: Run, world: World, capsys: Printed, typed: str, fine: bool) -> None:
    world.deployed_with("troop:participation=opt-in", "troop:probability=0.05", "troop:max_per_day=40")
    if fine:
        run(typed=typed)
        assert world.done[-1][0] == "deploy"
    else:
        with pytest.raises(CliError, match="the name is not Troop: nothing was changed") as refused:
            run(typed=typed)
        assert refused.value.code == Exit.NOT_CONFIRMED
    output = capsys.readouterr().out
    assert "  troop:max_per_day: 40 -> 20 (reset)\n" in output
    assert "  troop:participation: opt-in -> opt-out (reset, more terminations)\n" in output
    assert "  troop:probability: 0.05 -> 0.2 (reset, more terminations)\n" in output
    assert output.index("more terminations") < output.index("Type the deployment's name to reset troop:max_per_day, ")


def test_setting_of_the_command_is_shown_and_needs_no_confirmation(run: Run, world: World, capsys: Printed) -> None:
    world.deployed_with("troop:probability=0.05")
    run("troop:probability=0.2", yes=True)  # as cdk.json has it
    output = capsys.readouterr().out
    assert "  troop:probability: 0.05 -> 0.2 (more terminations)\n" in output
    world.deployed_with()
    run("troop:runbook_url=docs/guides/runbook.md", yes=True)
    assert "No setting changes." in capsys.readouterr().out


def test_setting_of_cdk_json_is_shown_and_needs_no_confirmation(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    world.deployed_with('troop:units={"a-*": "a", "*": "b"}')
    edited = copy.deepcopy(written_context())
    edited["troop:calendars"]["default"]["close"] = "16:00"
    monkeypatch.setattr(project, "written_context", lambda: edited)
    run('troop:units={"*": "b", "a-*": "a"}', yes=True)
    output = capsys.readouterr().out
    assert "  troop:calendars.default.close: 15:00 -> 16:00\n" in output
    assert '  troop:units: {"a-*": "a", "*": "b"} -> {"*": "b", "a-*": "a"}\n' in output, "the first pattern counts"


def test_a_new_deployment_has_nothing_to_compare(run: Run, world: World, capsys: Printed) -> None:
    run("troop:probability=0.1", yes=True, keep=True)
    assert "setting" not in capsys.readouterr().out.lower()
    assert [arguments[0] for arguments in world.done] == ["synth", "deploy"]


def test_a_deployment_of_an_older_version_asks_about_what_the_command_does_not_name(
    run: Run, world: World, capsys: Printed
) -> None:
    world.deployed_with("troop:probability=0.05", "troop:max_per_day=3")
    metadata = world.template["Metadata"]
    values = json.loads(metadata[SETTINGS_METADATA])
    del world.template["Resources"]["Bus"]["Metadata"], values["stage"], values["network"]
    metadata[SETTINGS_METADATA] = json.dumps(values)
    with pytest.raises(CliError, match="would reset troop:max_per_day, and YES=1"):
        run("troop:probability=0.1", yes=True)
    output = capsys.readouterr().out
    assert "did not record these settings: troop:network, troop:stage." in output
    assert "An earlier command perhaps set troop:max_per_day" in output
    world.done.clear()
    run("troop:probability=0.1", yes=True, keep=True)
    assert (deployed_by(world)["max_per_day"], deployed_by(world)["probability"]) == (3, 0.1)


def test_a_deployment_without_a_record_needs_a_confirmation(run: Run, world: World) -> None:
    world.status, world.resources, world.template = "UPDATE_COMPLETE", DEPLOYED, {}
    with pytest.raises(CliError, match="would reset all settings of earlier commands"):
        run(yes=True)
    with pytest.raises(
        CliError, match="the template of Troop has no record of its settings: nothing to keep"
    ) as refused:
        run(yes=True, keep=True)
    assert refused.value.code == Exit.FAILED
    world.done.clear()
    run(typed="Troop\ny\n")
    assert [arguments[0] for arguments in world.done] == ["synth", "deploy"]


def test_keep_and_reset_exclude_each_other(monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    monkeypatch.setattr(sys, "argv", ["deploy", "--keep", "--reset"])
    with pytest.raises(SystemExit):
        deploy.main()
    assert "not allowed with argument" in capsys.readouterr().err


def test_every_text_that_gives_a_setting_keeps_the_others() -> None:
    paths = ["*.md", "functions/*.py", "cli/*.py", "infra/*.py", "lifecycle/*.py", "local/*.py"]
    files = subprocess.run(["git", "ls-files", *paths], cwd=ROOT, capture_output=True, text=True, check=True)
    commands = [
        command
        for file in files.stdout.split()
        for command in re.findall(r"make\s+deploy [^`\"\n]*ARGS=.*", (ROOT / file).read_text(encoding="utf-8"))
    ]
    assert len(commands) >= 8
    assert [command for command in commands if "KEEP=1" not in command] == []
