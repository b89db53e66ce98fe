"""Assembles the stack from every capability of a deployment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.alarms import Alarms, AlarmSpec, AlarmTopics
from infra.alarms_warning import Written, benchmark_warning_specs, warning_specs
from infra.api import Api
from infra.benchmarks import Benchmarks
from infra.chaos import ChaosWorkflow
from infra.chaos_functions import make_chaos_functions
from infra.dashboards import Dashboards, Shown
from infra.data import Data
from infra.functions import Functions
from infra.health_targets import HealthTargets
from infra.hearing import Hearing
from infra.injections import Injections
from infra.keys import set_data_key
from infra.notifications import Notifications
from infra.observers import make_observers
from infra.on_demand import OnDemandWorkflow, make_request
from infra.periodic_schedules import (
    DUE,
    FAULTS,
    LETTER,
    REAPER,
    REDRIVE,
    RISKS,
    SWEEP,
    SWEPT,
    WATCHDOG,
    WRITTEN,
    Call,
    Calls,
)
from infra.queries import Queries
from infra.schedules import Schedules
from infra.settings import DeploymentSettings, feature_flags
from infra.settings_record import metadata
from infra.widgets import make_widgets
from troop.shared import outputs
from troop.shared.metrics import CHILDREN
from troop.shared.tables import DECISIONS
from troop.shared.tags import DEPLOYMENT_TAG
from troop.shared.variables import Variable


class TroopStack(cdk.Stack):
    """One deployment of Troop, for any account, region and partition.

    Resource names are generated, or contain the stack's name, so several deployments fit into one account and region.
    """

    def __init__(
        self,
        scope: Construct,
        settings: DeploymentSettings,
        construct_id: str | None = None,
        *,
        env: cdk.Environment | None = None,
        synthesizer: cdk.IStackSynthesizer | None = None,
        permissions_boundary: cdk.PermissionsBoundary | None = None,
        termination_protection: bool | None = None,
    ) -> None:
        name = settings.chaos.deployment
        self.settings = settings
        super().__init__(
            scope,
            construct_id or name,
            stack_name=name,
            description="Troop: Chaos Monkey and benchmark fleets",
            tags={DEPLOYMENT_TAG: name, **settings.chaos.tags},
            analytics_reporting=False,
            env=env,
            synthesizer=synthesizer,
            permissions_boundary=permissions_boundary,
            termination_protection=termination_protection,
        )
        # The template must not depend on the feature flags of the app.
        for flag, value in feature_flags().items():
            self.node.set_context(flag, value)
        if settings.key:
            set_data_key(self, settings.key)
        self.data = Data(self, "Data", retain=settings.retain_data)
        # CloudFormation generates names that no one reads. A stack's name is unique, as the name of a bus, an alarm or
        # a dashboard (with the region) must be.
        self.bus = events.EventBus(self, "Bus", event_bus_name=cdk.Aws.STACK_NAME, description="Events of Troop")
        self.functions = Functions(self, "Functions", settings=settings)
        self.leashed = settings.chaos.leashed
        self.chaos = make_chaos_functions(self.functions, self.data, leashed=self.leashed)
        self.injections: Injections | None = None
        if settings.chaos.inside_instances:
            self.injections = Injections(self, "Injections", data=self.data, functions=self.functions)
        self.workflow = ChaosWorkflow(
            self, "Chaos", settings=settings, data=self.data, functions=self.chaos, injections=self.injections
        )
        hearing = Hearing(self, "Hearing", function=self.chaos.hear)
        if self.injections:
            self.injections.hear(hearing)
        self.schedules = Schedules(self, "Schedules", settings=settings, workflow=self.workflow)
        targets = HealthTargets(
            self.workflow.machine, self.schedules.group.ref, self.schedules.undelivered, settings.tick_minutes
        )
        self.on_demand = OnDemandWorkflow(
            self, "OnDemand", settings=settings, functions=self.chaos, injections=self.injections
        )
        self.alarms = Alarms(self, "Alarms", settings=settings)
        self.allowed_buckets = settings.chaos.allowed_buckets
        self.benchmarks: Benchmarks | None = None
        if settings.chaos.benchmarks:
            request = None
            if settings.chaos.under_load:
                request = make_request(self.functions, self.data, self.on_demand.machine)
            self.benchmarks = Benchmarks(
                self,
                "Benchmarks",
                settings=settings,
                data=self.data,
                functions=self.functions,
                schedules=self.schedules,
                request=request,
                topics=AlarmTopics(self.alarms.act_now_topic, self.alarms.warning_topic),
            )
        self.observers = make_observers(
            self.functions,
            self.data,
            targets,
            self.on_demand.machine,
            self.benchmarks,
            self.alarms.act_now_topic,
            settings.runbook_url,
        )
        self.notifications = Notifications(
            self,
            "Notifications",
            data=self.data,
            bus=self.bus,
            functions=self.functions,
            weekly_letter=settings.weekly_letter,
            news_bus=settings.news_bus,
            undeliverable=self.schedules.undelivered,
        )
        bench_data = self.benchmarks.data if self.benchmarks else None
        self.widgets = make_widgets(self.functions, self.data, bench_data)
        calls = [
            Call("WatchdogSchedule", "watchdog", self.observers.watchdog, WATCHDOG),
            Call("SweepSchedule", "sweep", self.chaos.sweep, SWEEP, SWEPT),
            # The next round would be a day later.
            Call("RisksSchedule", "reading of risks", self.observers.risks, RISKS, tries_again=2, reports=True),
        ]
        if self.injections:
            calls.append(Call("FaultsSchedule", "round of open faults", self.injections.inject, FAULTS, DUE))
        if settings.weekly_letter:
            zone = settings.chaos.calendars["default"].time_zone
            notify = self.notifications.notify
            # The next round would be a week later, so Lambda tries again; a second redrive finds nothing to send.
            calls.append(
                Call("LetterSchedule", "weekly letter", notify, LETTER, WRITTEN, tries_again=2, time_zone=zone)
            )
        calls.append(Call("RedriveSchedule", "redrive of notifications", self.notifications.notify, REDRIVE))
        if self.benchmarks:
            # The reaper is also called for failed runs, which its scheduled rounds skip while they are too young.
            calls.append(Call("ReaperSchedule", "reaper", self.benchmarks.reaper, REAPER, tries_again=2))
        for call in calls:
            Calls(self, call, self.schedules)
        self.observers.set_other_schedules(len(calls))
        if self.benchmarks:
            scheduled = self.benchmarks.scheduled
            self.chaos.decide.add_environment(Variable.RUNS_TABLE, self.benchmarks.data.runs.table_name)
            self.observers.watchdog.add_environment(Variable.RUN_SCHEDULE_GROUP, scheduled.group.ref)
            self.observers.watchdog.add_environment(Variable.START_FUNCTION, scheduled.start.function_arn)
        self.api = Api(self, "Api", settings=settings, handler=self.observers.api)
        self.alarms.watch(
            targets=targets,
            on_demand=self.on_demand.machine,
            lost_notifications=self.notifications.undelivered,
            teardown=self.benchmarks.teardown if self.benchmarks else None,
            inside_instances=self.injections is not None,
            warning_specs=self._warning_specs(settings),
        )
        if settings.dashboards:
            self.dashboards = Dashboards(self, "Dashboards", shown=self._shown(settings))
        template_metadata, bus_metadata = metadata(settings)
        release = json.dumps(self.functions.release.document())
        self.template_options.metadata = {**template_metadata, outputs.RELEASE_METADATA: release}
        for key, text in bus_metadata.items():
            cast(cdk.CfnResource, self.bus.node.default_child).add_metadata(key, text)
        Queries(self, "Queries", functions=self.functions)
        cfn_outputs = {
            outputs.API_URL: (self.api.rest_api.url, "The address of the API, for signed requests"),
            outputs.GROUP_TAGS_TABLE: (
                self.data.group_tags.table_name,
                "Policies of units: edit its items to opt a unit out",
            ),
            "EventsTable": (self.data.events.table_name, "Terminations and their recovery"),
            outputs.STATE_TABLE: (self.data.state.table_name, "The switch and the counters"),
            "DecisionsTable": (self.data.decisions.table_name, "Each tick's decision about each unit, with its reason"),
            "ChangesTable": (self.data.changes.table_name, "Changes of policies and of the switch, with their authors"),
            outputs.SALT_SECRET: (
                self.data.salt.secret_arn,
                "Keys the rolls: anyone who may read it can recompute them",
            ),
            "ChaosStateMachineArn": (self.workflow.machine.state_machine_arn, "The workflow that every tick starts"),
            "OnDemandStateMachineArn": (self.on_demand.machine.state_machine_arn, "Carries out terminations on demand"),
            "ActNowTopicArn": (
                self.alarms.act_now_topic.topic_arn,
                "Subscribe the people on call",
            ),
            "WarningTopicArn": (self.alarms.warning_topic.topic_arn, "Subscribe the people who handle warnings"),
            "NewsTopicArn": (
                self.notifications.news.topic_arn,
                "Subscribe people who want news about terminations and changes",
            ),
            "WidgetsFunctionArn": (self.widgets.function_arn, "For custom widgets of your own dashboards"),
            "EventBusName": (self.bus.event_bus_name, "News for programs: create rules on this bus"),
            "WorkBucket": (
                self.data.work.bucket_name,
                "Lists that workflows pass to their steps; they expire automatically",
            ),
        }
        if self.benchmarks:
            bench = self.benchmarks
            cfn_outputs |= {
                outputs.RUNS_TABLE: (bench.data.runs.table_name, "Runs of benchmarks, and the resources of each"),
                "ResultsBucket": (
                    bench.data.results.bucket_name,
                    "Results of benchmarks, and what nodes read and wrote",
                ),
                "BenchmarkStateMachineArn": (bench.benchmark.state_machine_arn, "Runs a benchmark"),
                "FleetStateMachineArn": (bench.fleet.state_machine_arn, "Keeps a standing fleet"),
                "TeardownStateMachineArn": (bench.teardown.state_machine_arn, "Removes a run's resources"),
            }
        for output, (value, description) in cfn_outputs.items():
            cdk.CfnOutput(self, output, value=value, description=description)

    @property
    def _busy(self) -> list[lambda_.Function]:
        """The functions with many concurrent calls."""
        cell = [self.benchmarks.functions.cell] if self.benchmarks else []
        return [self.chaos.decide, self.chaos.terminate, self.observers.api, *cell]

    @property
    def _written(self) -> list[dynamodb.Table]:
        """The tables with many concurrent writes."""
        data = self.data
        return [data.decisions, data.events, data.state, *([self.benchmarks.data.runs] if self.benchmarks else [])]

    def _warning_specs(self, settings: DeploymentSettings) -> Iterator[AlarmSpec]:
        busy: dict[str, lambda_.IFunction] = {"Terminate": self.chaos.terminate}
        written: dict[str, Written] = {"Decisions": (self.data.decisions, [one.name for one in DECISIONS.indices])}
        if self.benchmarks:
            # Its indices hold only runs, not their resources, so they have few writes.
            busy["Cell"] = self.benchmarks.functions.cell
            written["Runs"] = (self.benchmarks.data.runs, ())
        yield from warning_specs(self.api.rest_api, busy, written)
        if self.benchmarks:
            failed_reports = self.benchmarks.functions.failed_reports
            yield from benchmark_warning_specs(self, settings.daily_cost_alarm, failed_reports)

    def _shown(self, settings: DeploymentSettings) -> Shown:
        chaos = self.workflow.machine.state_machine_arn
        machines = {
            "ticks": chaos,
            "terminations": f"{chaos}/{CHILDREN}",
            "on demand": self.on_demand.machine.state_machine_arn,
        }
        if self.benchmarks:
            bench = self.benchmarks
            workflows = {"benchmarks": bench.benchmark, "fleets": bench.fleet, "teardowns": bench.teardown}
            machines |= {name: machine.state_machine_arn for name, machine in workflows.items()}
        return Shown(
            functions=self.functions.by_name,
            machines=machines,
            busy=self._busy,
            written=self._written,
            queues={
                "schedules": self.schedules.undelivered,
                "notifications": self.notifications.undelivered,
                **({"failed reports": self.benchmarks.functions.failed_reports} if self.benchmarks else {}),
            },
            api=self.api.rest_api,
            act_now_alarms=self.alarms.act_now_alarms,
            warning_alarms=self.alarms.warning_alarms,
            benchmarks=self.benchmarks is not None,
            inside_instances=self.injections is not None,
            runbook_url=settings.runbook_url,
            widgets=self.widgets,
        )
