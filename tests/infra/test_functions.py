"""The functions: platform, logs, environment, layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from aws_cdk import aws_lambda

from infra import FUNCTIONS
from infra.byte_code import PYTHON_VERSION
from infra.functions import RUNTIME
from perf.cold_start import LAYERS_OF
from tests.infra.cfn import handler_of, in_partition, resources_of, text
from tests.infra.wired import OWN_FILES, variables_of
from troop.shared.outputs import RELEASE_METADATA
from troop.shared.variables import Variable

Template = Mapping[str, Any]

VARIABLES = {
    Variable.DEPLOYMENT: "<AWS::StackName>",
    Variable.GROUP_TAGS_TABLE: "<GroupTags>",
    Variable.EVENTS_TABLE: "<Events>",
    Variable.STATE_TABLE: "<State>",
    Variable.DECISIONS_TABLE: "<Decisions>",
    Variable.CHANGES_TABLE: "<Changes>",
    Variable.RUNS_TABLE: "<Runs>",
    Variable.WORK_BUCKET: "<WorkBucket>",
    Variable.RESULTS_BUCKET: "<Results>",
    Variable.SALT_SECRET: "<Salt>",
    Variable.CHAOS_MACHINE: "<ChaosMachine>",
    Variable.ON_DEMAND_MACHINE: "<OnDemandMachine>",
    Variable.BENCHMARK_MACHINE: "<BenchmarksBenchmarkMachine>",
    Variable.FLEET_MACHINE: "<BenchmarksFleetMachine>",
    Variable.TEARDOWN_MACHINE: "<BenchmarksTeardownMachine>",
    Variable.FLEET_FUNCTION: "<Fleet.Arn>",
    Variable.REPORT_FUNCTION: "<Report.Arn>",
    Variable.REQUEST_FUNCTION: "<Request.Arn>",
    Variable.RISKS_FUNCTION: "<Risks.Arn>",
    Variable.START_FUNCTION: "<Start.Arn>",
    Variable.RUN_SCHEDULE_GROUP: "<BenchmarksScheduledGroup>",
    Variable.RUN_SCHEDULE_ROLE: "<BenchmarksScheduledRole.Arn>",
    Variable.RUN_SCHEDULE_UNDELIVERED: "<SchedulesUndelivered.Arn>",
    Variable.PROBE_DOCUMENT: "<InjectionsProbe>",
    Variable.BACKSTOP_GROUP: "<InjectionsBackstops>",
    Variable.BACKSTOP_ROLE: "<InjectionsRole.Arn>",
    Variable.SCHEDULE_GROUP: "<SchedulesGroup>",
    Variable.UNDELIVERED_QUEUE: "<SchedulesUndelivered>",
    Variable.TICK_MINUTES: "15",
    Variable.OTHER_SCHEDULES: "6",
    Variable.EVENT_BUS: "<Bus>",
    Variable.NEWS_TOPIC: "<NotificationsNews>",
    Variable.UNTOLD_QUEUE: "<NotificationsUndelivered>",
    Variable.ACT_NOW_TOPIC: "<AlarmsActNow>",
    Variable.WARNING_TOPIC: "<AlarmsWarning>",
    Variable.RUNBOOK: "docs/guides/runbook.md",
    Variable.NETWORK_VPC: "<BenchmarksNetworkVpc>",
    Variable.NETWORK_SUBNETS: ",".join(f"<BenchmarksNetworkVpcNodesSubnet{zone}Subnet>" for zone in (1, 2, 3)),
    Variable.NETWORK_IS_OWN: "true",
    Variable.NODE_PROFILE: "<BenchmarksNodesProfile.Arn>",
    Variable.NODE_ROLE_ID: "<BenchmarksNodesRole.RoleId>",
}
"""The same to all functions that are given it."""

BESIDE = {"Launch": {Variable.NETWORK_IS_OWN}}
"""What a function is given and does not ask for: the network's variables come together."""

OPTIONAL = {Variable.STAGE, Variable.DATA_KEY}
"""What a function asks for, and is given only in a deployment that has it."""

ALL_HAVE = {"<RuntimeLayer>", "<SettingsLayer>"}

BENCH_LOGS = ("BenchmarksBenchmarkLogs", "BenchmarksTeardownLogs", "BenchmarksFleetLogs")

EXPECTED = {
    "Decide": (300, 1024),
    "Terminate": (60, 256),
    "CheckRecovery": (150, 256),
    "Inject": (150, 256),
    "Hear": (150, 256),
    "Sweep": (120, 256),
    "Notify": (300, 256),
    "Api": (29, 512),
    "Watchdog": (60, 256),
    "Risks": (900, 1024),
    "Widgets": (29, 512),
    "Launch": (120, 256),
    "Cell": (300, 1769),
    "Fleet": (120, 1024),
    "Teardown": (120, 256),
    "Report": (300, 1769),
    "Reaper": (120, 256),
    "Start": (60, 512),
    "Request": (60, 512),
}
"""Seconds, megabytes."""


@pytest.fixture
def template(whole: Template) -> Template:
    """The default settings with what needs all functions."""
    return whole


def function(template: Template, name: str) -> dict[str, Any]:
    properties: dict[str, Any] = resources_of(template, "AWS::Lambda::Function")[name]["Properties"]
    return properties


def test_there_are_no_other_functions(template: Template) -> None:
    assert set(resources_of(template, "AWS::Lambda::Function")) == set(EXPECTED)


def test_the_runtime_is_the_newest_the_library_knows() -> None:
    known = [name.removeprefix("PYTHON_3_") for name in dir(aws_lambda.Runtime) if name.startswith("PYTHON_3_")]
    assert RUNTIME.name == f"python3.{max(map(int, known))}" == f"python{PYTHON_VERSION}"


@pytest.mark.parametrize("name", EXPECTED)
def test_platform_and_size(template: Template, name: str) -> None:
    properties = function(template, name)
    seconds, megabytes = EXPECTED[name]
    assert properties["Runtime"] == RUNTIME.name
    assert properties["Architectures"] == ["arm64"]
    assert (properties["Timeout"], properties["MemorySize"]) == (seconds, megabytes)
    assert "ReservedConcurrentExecutions" not in properties


@pytest.mark.parametrize("name", EXPECTED)
def test_logs_are_json_in_a_group_of_its_own_with_retention(template: Template, green: Template, name: str) -> None:
    for variant, days in ((template, 90), (green, 7)):
        logging = text(in_partition(variant, function(variant, name)["LoggingConfig"], "aws"))
        assert logging == {"LogFormat": "JSON", "LogGroup": f"<{name}Logs>"}
        assert resources_of(variant, "AWS::Logs::LogGroup")[f"{name}Logs"]["Properties"]["RetentionInDays"] == days


@pytest.mark.parametrize(
    ("partition", "log_format", "traced"),
    [("aws", "JSON", True), ("aws-us-gov", "Text", True), ("aws-cn", "Text", False)],
)
def test_function_uses_only_lambda_features_of_its_partition(
    template: Template, partition: str, log_format: str, traced: bool
) -> None:
    for name in EXPECTED:
        properties = in_partition(template, function(template, name), partition)
        assert properties["LoggingConfig"]["LogFormat"] == log_format
        assert properties.get("TracingConfig") == ({"Mode": "Active"} if traced else None)


def test_every_log_group_has_retention(template: Template) -> None:
    groups = resources_of(template, "AWS::Logs::LogGroup")
    assert set(groups) == {*(f"{name}Logs" for name in EXPECTED), "ChaosLogs", "OnDemandLogs", *BENCH_LOGS}
    assert {group["Properties"]["RetentionInDays"] for group in groups.values()} == {90}


def test_logs_of_workflows_need_no_place_in_the_accounts_policy(template: Template, blue: Template) -> None:
    """It is the same for all whose names begin so. What is kept, or was rolled back, is not in a later one's way."""
    for variant, deletion in ((template, "RetainExceptOnCreate"), (blue, "Delete")):
        groups = resources_of(variant, "AWS::Logs::LogGroup")
        named = {name: group for name, group in groups.items() if "LogGroupName" in group["Properties"]}
        assert set(named) == {"ChaosLogs", "OnDemandLogs", *BENCH_LOGS}
        for name, group in named.items():
            role = name.removesuffix("Logs") + "Role"
            assert text(group["Properties"]["LogGroupName"]) == f"/aws/vendedlogs/states/<{role}>"
            assert "RoleName" not in resources_of(variant, "AWS::IAM::Role")[role]["Properties"], (
                "made up anew with each role"
            )
            assert group["DeletionPolicy"] == deletion


@pytest.mark.parametrize("name", EXPECTED)
def test_the_role_is_its_own_and_complete_before_the_function(template: Template, name: str) -> None:
    resource = resources_of(template, "AWS::Lambda::Function")[name]
    assert text(resource["Properties"]["Role"]) == f"<{name}Role.Arn>"
    assert resources_of(template, "AWS::IAM::Role")[f"{name}Role"]["Properties"]["Policies"]
    assert "DependsOn" not in resource


@pytest.mark.parametrize("name", EXPECTED)
def test_the_environment_is_what_the_function_and_its_wiring_ask_for(template: Template, name: str) -> None:
    variables = {Variable.DEPLOYMENT, *variables_of(handler_of(name)), *BESIDE.get(name, ())} - OPTIONAL
    variables -= {Variable.RELEASE}
    environment = text(function(template, name)["Environment"]["Variables"])
    release = environment.pop(Variable.RELEASE, None)
    assert release == (template["Metadata"][RELEASE_METADATA] if name == "Watchdog" else None)
    assert environment == {
        "POWERTOOLS_SERVICE_NAME": handler_of(name),
        "POWERTOOLS_METRICS_NAMESPACE": "Troop",
        "POWERTOOLS_LOG_LEVEL": "INFO",
        **{variable.value: VARIABLES[variable] for variable in variables},
    }


def test_who_looks_at_health_knows_how_many_schedules_there_are(template: Template, blue: Template) -> None:
    for variant in (template, blue):
        schedules = resources_of(variant, "AWS::Scheduler::Schedule")
        others = [name for name in schedules if not name.startswith("SchedulesCalendar")]
        for name in ("Api", "Watchdog"):
            assert function(variant, name)["Environment"]["Variables"][Variable.OTHER_SCHEDULES] == str(len(others))


def test_code_reads_every_variable_that_the_stack_sets() -> None:
    variables = {variable for name in EXPECTED for variable in variables_of(handler_of(name))}
    assert variables | OWN_FILES | {Variable.DEPLOYMENT} == set(Variable)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_handler_exists(template: Template, name: str) -> None:
    module, _, attribute = function(template, name)["Handler"].rpartition(".")
    source = FUNCTIONS.joinpath(*module.split(".")).with_suffix(".py")
    assert f"def {attribute}(" in source.read_text()


def test_who_has_pydantics_layer_and_who_that_of_html(template: Template) -> None:
    layers = {name: set(text(function(template, name)["Layers"])) for name in EXPECTED}
    further = {name: its - ALL_HAVE for name, its in layers.items() if its != ALL_HAVE}
    assert all(its >= ALL_HAVE for its in layers.values())
    assert further == {
        "Api": {"<ApiLayer>"},
        "Report": {"<ApiLayer>", "<ReportLayer>"},
        "Start": {"<ApiLayer>"},
        "Widgets": {"<ReportLayer>"},
    }
    measured = {handler: {f"<{layer.title()}Layer>" for layer in its} for handler, its in LAYERS_OF.items()}
    assert measured == {handler_of(name): {"<RuntimeLayer>", *its} for name, its in further.items()}, "cold_start.py"


def test_a_report_that_fails_is_tried_once_more_and_soon(template: Template) -> None:
    """What Lambda gives up is in a queue for as long as the alarm on that is to last."""
    assert _called_without_waiting(template)["<Report>"] == (900, 1)
    configs = [text(one["Properties"]) for one in resources_of(template, "AWS::Lambda::EventInvokeConfig").values()]
    destinations = {one["FunctionName"]: one["DestinationConfig"] for one in configs if "DestinationConfig" in one}
    for name in ("Start", "Risks"):
        assert destinations.pop(f"<{name}>") == {"OnFailure": {"Destination": "<SchedulesUndelivered.Arn>"}}
    assert destinations == {"<Report>": {"OnFailure": {"Destination": "<ReportsGivenUp.Arn>"}}}
    queue = resources_of(template, "AWS::SQS::Queue")["ReportsGivenUp"]["Properties"]
    assert (queue["MessageRetentionPeriod"], queue["SqsManagedSseEnabled"]) == (6 * 3600, True)


def test_function_with_a_schedule_is_repeated_by_the_schedule(template: Template) -> None:
    """And not by Lambda, hours later; but what the reaper has heard of its next rounds leave alone for a while."""
    rounds = {f"<{name}>": (900, 0) for name in ("Watchdog", "Sweep", "Notify")} | {"<Reaper>": (900, 2)}
    rounds["<Risks>"] = (900, 2)
    called = _called_without_waiting(template)
    del called["<Report>"]
    assert called.pop("<Start>") == (900, 2), "its schedules are created later"
    assert called.pop("<Hear>") == (300, 2), "rules call it"
    assert called.pop("<Inject>") == (6 * 3600, 2), "a late step is due, too"
    assert called == rounds
    scheduled = {
        text(one["Properties"]["Target"]["Arn"]) for one in resources_of(template, "AWS::Scheduler::Schedule").values()
    }
    assert "<Inject.Arn>" in scheduled
    assert scheduled - {"<ChaosMachine>", "<Inject.Arn>"} == {f"{name.removesuffix('>')}.Arn>" for name in rounds}


def _called_without_waiting(template: Template) -> dict[str, tuple[int, int]]:
    """By function (greatest age in seconds, further tries) of calls that nobody waits for."""
    configs = [text(one["Properties"]) for one in resources_of(template, "AWS::Lambda::EventInvokeConfig").values()]
    assert {one["Qualifier"] for one in configs} == {"$LATEST"}
    return {one["FunctionName"]: (one["MaximumEventAgeInSeconds"], one["MaximumRetryAttempts"]) for one in configs}


def test_all_functions_share_one_asset(template: Template) -> None:
    assert len({text(function(template, name)["Code"]["S3Key"]) for name in EXPECTED}) == 1


@pytest.mark.parametrize("layer", ["RuntimeLayer", "ApiLayer", "ReportLayer", "SettingsLayer"])
def test_layers_say_what_they_are_for(template: Template, layer: str) -> None:
    properties = resources_of(template, "AWS::Lambda::LayerVersion")[layer]["Properties"]
    assert properties["CompatibleRuntimes"] == [RUNTIME.name]
    assert properties["CompatibleArchitectures"] == ["arm64"]
