"""`make deploy` and the tables of earlier deployments: told, taken over, or left alone."""

from __future__ import annotations

import dataclasses

import pytest

from cli.shared.errors import CliError, Exit
from lifecycle.resources import Resource
from tests.unit.lifecycle.world import DEPLOYED, STACKS, TABLES, Printed, Run, World, old
from troop.shared.tags import DECLINED_TAG


def test_an_update_beside_no_table_says_nothing_of_them(run: Run, world: World, capsys: Printed) -> None:
    world.status, world.resources = "UPDATE_COMPLETE", DEPLOYED
    world.retained = [old("empty", empty=True), old("declined", declined=True), old("runs", "Runs")]
    run("troop:leashed=false", yes=True)
    output = capsys.readouterr().out
    assert "It starts" not in output
    assert "this updates it" in output
    assert "table" not in output
    assert [arguments[0] for arguments in world.done] == ["synth", "deploy"]


@pytest.mark.parametrize("yes", [True, False])
@pytest.mark.parametrize("deployed", [True, False])
def test_a_table_with_data_of_which_nothing_is_proven_stops_everybody(
    run: Run, world: World, yes: bool, deployed: bool
) -> None:
    """Its opt-outs would have no effect; or somebody has planted it."""
    if deployed:
        world.status, world.resources = "UPDATE_COMPLETE", DEPLOYED
    world.retained = [old("Troop-State-9", stack=""), old("Troop-Events-8", "Events", stack=""), old("e", empty=True)]
    with pytest.raises(CliError, match=r"decline them with ADOPT=none") as refused:
        run(yes=yes, typed="y\n")
    assert (refused.value.code, [arguments[0] for arguments in world.done]) == (Exit.USAGE, ["synth"])
    adopt = "ADOPT=Troop-Events-8,Troop-State-9"
    destroyed_first = f"make destroy, which keeps all tables, and then make deploy {adopt}" in str(refused.value)
    assert adopt in str(refused.value)
    assert destroyed_first is deployed
    run(yes=True, adopt="none")
    assert world.done[-3:-1] == [("tag", f"arn:Troop-{name}", DECLINED_TAG) for name in ("State-9", "Events-8")]


def test_a_table_beside_a_deployment_stops_it_also_with_a_proof(run: Run, world: World) -> None:
    """As after a plain `cdk deploy`, which makes empty tables beside those of the last stack."""
    world.status, world.resources, world.retained = "UPDATE_COMPLETE", DEPLOYED, [old("Troop-State-0")]
    with pytest.raises(CliError, match=r"make destroy, .* then make deploy ADOPT=Troop-State-0"):
        run(yes=True)


def test_some_proven_and_some_not_is_for_a_person_to_decide(run: Run, world: World) -> None:
    world.retained = [old("Troop-State-9", stack=""), old("Troop-Events-1", "Events")]
    message = r"(?s)State: Troop-State-9, created .*unknown origin.*ADOPT=Troop-Events-1,Troop-State-9"
    with pytest.raises(CliError, match=message):
        run(yes=True)
    world.retained[0] = dataclasses.replace(world.retained[0], empty=True)
    run(yes=True)
    assert world.done[-2] == ("adopt", "Troop", "Troop-Events-1")


def test_names_decline_the_other_tables_and_take_back_what_was_declined(run: Run, world: World) -> None:
    world.retained = [old("Troop-State-2"), old("Troop-State-1", declined=True), old("Troop-Events-1", "Events")]
    run(yes=True, adopt="Troop-State-1")
    assert world.done[1:-1] == [
        ("tag", "arn:Troop-State-2", DECLINED_TAG),
        ("tag", "arn:Troop-Events-1", DECLINED_TAG),
        ("untag", "arn:Troop-State-1", DECLINED_TAG),
        ("adopt", "Troop", "Troop-State-1"),
    ]


def test_the_newest_declines_older_ones_and_nothing_of_unknown_origin(run: Run, world: World) -> None:
    world.retained = [old("Troop-State-2"), old("Troop-State-1")]
    run(yes=True, adopt="newest")
    assert world.done[1:-1] == [("tag", "arn:Troop-State-1", DECLINED_TAG), ("adopt", "Troop", "Troop-State-2")]
    world.retained = [old("Troop-State-9", stack=""), *world.retained]
    with pytest.raises(CliError, match="Troop-State-9, created"):
        run(yes=True, adopt="newest")


@pytest.mark.parametrize("status", ["REVIEW_IN_PROGRESS", "IMPORT_ROLLBACK_COMPLETE", "IMPORT_ROLLBACK_FAILED"])
def test_broken_takeover_hides_no_table(run: Run, world: World, status: str, capsys: Printed) -> None:
    """Nobody may start with empty tables, without his opt-outs, for want of a second try."""
    world.status, world.retained = status, [old("Troop-State-1")]
    with pytest.raises(CliError, match="nothing was changed"):
        run(typed="n\n")
    assert [arguments[0] for arguments in world.done] == ["synth"]
    world.done.clear()
    run(typed="y\n")
    assert "New deployment." in capsys.readouterr().out
    assert world.done[1:3] == [("clear", "arn:1"), ("adopt", "Troop", "Troop-State-1")]


def test_an_empty_stack_goes_also_where_nothing_is_taken_over(run: Run, world: World) -> None:
    world.status = "IMPORT_ROLLBACK_COMPLETE"
    run(yes=True)
    assert [arguments[0] for arguments in world.done] == ["synth", "clear", "deploy"]


@pytest.mark.parametrize("status", ["IMPORT_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"])
def test_a_stack_of_nothing_but_tables_is_no_deployment_yet(
    run: Run, world: World, status: str, capsys: Printed
) -> None:
    world.status, world.resources = status, TABLES
    world.retained = [old("Troop-State-1"), old("Troop-Events-1", "Events")]
    world.switch = {"leashed": {"BOOL": False}}
    run(yes=True, unleashed=True)
    output = capsys.readouterr().out
    assert "It starts UNLEASHED (the switch in the retained table)" in output
    assert "took over these tables. They are kept:\n  State: Troop-State-1\n" in output
    assert [arguments[0] for arguments in world.done] == ["synth", "deploy"]
    with pytest.raises(CliError, match=r"would delete them.*make destroy, which keeps them"):
        run("troop:retain_data=false", yes=True)


def test_the_same_names_do_nothing_once_their_tables_are_taken_over(run: Run, world: World) -> None:
    """Such as after a deployment that failed behind the take-over, or in a pipeline."""
    world.status, world.resources = "UPDATE_COMPLETE", DEPLOYED
    world.retained = [old(resource.physical_id) for resource in DEPLOYED.values()]
    run(yes=True, adopt=",".join(table.name for table in world.retained))
    assert [arguments[0] for arguments in world.done] == ["synth", "deploy"]


BENCHMARKS = {"Runs": Resource("AWS::DynamoDB::Table", "Troop-Runs-1"),
              "Results": Resource("AWS::S3::Bucket", "troop-results-1"),
              "RunLogs": Resource("AWS::Logs::LogGroup", "run-logs")}  # fmt: skip


@pytest.mark.parametrize("is_retained", [True, False])
def test_resources_that_a_deployment_drops_are_listed_before_the_question(
    run: Run, world: World, is_retained: bool, capsys: Printed
) -> None:
    world.status, world.resources = "UPDATE_COMPLETE", DEPLOYED | BENCHMARKS
    policy = "Retain" if is_retained else "Delete"
    deployed = {key: {"Type": resource.kind, "DeletionPolicy": policy} for key, resource in world.resources.items()}
    world.template["Resources"] = deployed
    run("troop:benchmarks=false", typed="y\n")
    output, _ = capsys.readouterr().out.split("[y/N]")
    if is_retained:
        assert "Troop cannot show them:\n  table Troop-Runs-1\n  bucket troop-results-1\n" in output
    else:
        assert "deleted with their contents: Troop-Runs-1, troop-results-1\n" in output
    assert "Troop-State-1" not in output


def test_a_table_that_a_deployment_has_again_is_taken_over(run: Run, world: World, capsys: Printed) -> None:
    """It would have an empty one beside it, and nobody would learn of the other."""
    world.status, world.resources = "UPDATE_COMPLETE", {k: v for k, v in DEPLOYED.items() if k != "DataEvents"}
    world.retained = [old("Troop-State-1"), old("Troop-Events-1", "Events"), old("Troop-State-0", declined=True)]
    run(yes=True)
    output = capsys.readouterr().out
    assert "  Events: Troop-Events-1, created 2026-11-20 10:00\n" in output
    assert "Troop-State" not in output
    assert "The salt is new" not in output
    assert world.done[1:] == [("adopt into", "Troop", "Troop-Events-1"), world.done[-1]]
    assert world.done[-1][0] == "deploy"
    world.done.clear()
    run(yes=True, adopt="none")
    assert [arguments[0] for arguments in world.done] == ["synth", "tag", "deploy"]


def test_an_empty_table_of_a_stack_whose_others_are_in_use_is_taken_over(run: Run, world: World) -> None:
    """Such as the table of runs, where nobody ran a benchmark before they were left out."""
    world.status, world.resources = "UPDATE_COMPLETE", {k: v for k, v in DEPLOYED.items() if k != "DataEvents"}
    world.retained = [old("Troop-State-1"), dataclasses.replace(old("Troop-Events-1", "Events"), empty=True)]
    run(yes=True)
    assert world.done[1] == ("adopt into", "Troop", "Troop-Events-1")


def test_retained_tables_are_listed_and_taken_over(run: Run, world: World, capsys: Printed) -> None:
    world.retained = [old("Troop-State-1"), old("Troop-Events-1", "Events")]
    world.switch = {"leashed": {"BOOL": False}}
    run(typed="y\n")
    output = capsys.readouterr().out
    assert output.index("Troop-Events-1") < output.index("[y/N]")
    assert output.index("UNLEASHED (the switch in the retained table)") < output.index("[y/N]")
    assert world.done[1] == ("adopt", "Troop", "Troop-State-1", "Troop-Events-1")


@pytest.mark.parametrize(
    ("adopt", "message"),
    [
        ("oldest", r"ADOPT is oldest: must be newest, none, or names .* Retained tables: Troop-State-1, Troop-State-2"),
        ("Troop-State-1,Troop-State-2", "several tables of State: name one for each"),
    ],
)
def test_names_that_cannot_be_meant_are_refused(run: Run, world: World, adopt: str, message: str) -> None:
    world.retained = [old("Troop-State-1"), old("Troop-State-2")]
    with pytest.raises(CliError, match=message) as refused:
        run(yes=True, adopt=adopt)
    assert (refused.value.code, len(world.done)) == (Exit.USAGE, 1)


def test_a_table_is_not_taken_over_beside_the_deployments_own(run: Run, world: World) -> None:
    world.status, world.resources, world.retained = "UPDATE_COMPLETE", DEPLOYED, [old("Troop-State-0")]
    with pytest.raises(
        CliError, match=r"already has tables for State: first remove it with make destroy, which keeps them"
    ):
        run(yes=True, adopt="Troop-State-0")
    assert [arguments[0] for arguments in world.done] == ["synth"]


@pytest.mark.parametrize("adopt", ["ask", "Troop-State-1"])
def test_a_table_that_others_may_write_is_refused_with_the_way_out(run: Run, world: World, adopt: str) -> None:
    world.retained, world.policies = [old("Troop-State-1")], {"arn:Troop-State-1"}
    with pytest.raises(CliError, match=r"delete-resource-policy --region eu-west-1 --resource-arn arn:Troop-State-1"):
        run(yes=True, adopt=adopt)
    assert [arguments[0] for arguments in world.done] == ["synth"]
    run(yes=True, adopt="none")
    assert world.done[-1][0] == "deploy"


def test_a_yes_beforehand_is_no_yes_to_an_unleashed_switch_in_a_table(run: Run, world: World, capsys: Printed) -> None:
    world.retained, world.switch = [old("Troop-State-1")], {"leashed": {"BOOL": False}}
    with pytest.raises(CliError, match="YES=1 does not confirm that: add UNLEASHED=1") as refused:
        run(yes=True)
    assert (refused.value.code, [arguments[0] for arguments in world.done]) == (Exit.NOT_CONFIRMED, ["synth"])
    run(yes=True, unleashed=True)
    assert world.done[-1][0] == "deploy"
    capsys.readouterr()
    run(typed="y\n")
    assert "Deploy Troop, UNLEASHED, into account" in capsys.readouterr().out


def test_tables_of_a_failed_creation_are_listed_and_not_taken_over(run: Run, world: World, capsys: Printed) -> None:
    world.retained = [old("Troop-State-1", stack=f"{STACKS}Troop/failed", empty=True)]
    run(typed="y\n")
    output = capsys.readouterr().out
    assert "aws dynamodb delete-table --region eu-west-1 --table-name Troop-State-1" in output
    assert [arguments[0] for arguments in world.done] == ["synth", "deploy"]


def test_a_throw_away_deployment_takes_nothing_over(run: Run, world: World) -> None:
    world.retained = [old("t")]
    with pytest.raises(CliError, match="would delete them"):
        run("troop:retain_data=false", yes=True)
