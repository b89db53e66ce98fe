"""The stack: every capability of a deployment, and how they hang together."""

from __future__ import annotations

import json

import aws_cdk as cdk
from aws_cdk import aws_events as events
from constructs import Construct

from infra.alarms import Alarms
from infra.api import Api
from infra.benchmarks import Benchmarks
from infra.calls import REAPER, SWEEP, SWEPT, WATCHDOG, Calls
from infra.chaos import ChaosWorkflow
from infra.data import Data
from infra.functions import Functions
from infra.notifications import Notifications
from infra.on_demand import OnDemandWorkflow
from infra.queries import Queries
from infra.schedules import Schedules
from infra.settings import DeploymentSettings
from infra.watched import Watched

DEPLOYMENT_TAG = "troop:deployment"
SETTINGS_METADATA = "TroopSettings"
"""In the template's metadata: the settings that decide, as JSON text, for whoever wants to decide likewise."""


class TroopStack(cdk.Stack):
    """One deployment of Troop, for any account, region and partition.

    Nothing in it has a fixed physical name, so several deployments fit into one account and region.
    """

    def __init__(self, scope: Construct, settings: DeploymentSettings) -> None:
        name = settings.chaos.deployment
        super().__init__(
            scope,
            name,
            stack_name=name,
            description="Troop: Chaos Monkey and benchmark fleets",
            tags={DEPLOYMENT_TAG: name},
            analytics_reporting=False,
        )
        self.data = Data(self, "Data", retain=settings.retain_data)
        # CloudFormation makes up names for all resources but buses; a stack's name is unique where a bus's must be.
        self.bus = events.EventBus(self, "Bus", event_bus_name=cdk.Aws.STACK_NAME, description="What Troop reports")
        self.functions = Functions(self, "Functions", settings=settings, data=self.data)
        self.workflow = ChaosWorkflow(self, "Chaos", settings=settings, data=self.data, functions=self.functions)
        self.schedules = Schedules(self, "Schedules", settings=settings, workflow=self.workflow)
        watched = Watched(self.workflow.machine, self.schedules.group.ref, self.schedules.undelivered)
        self.on_demand = OnDemandWorkflow(self, "OnDemand", settings=settings, functions=self.functions)
        self.allowed_buckets = settings.chaos.allowed_buckets
        self.benchmarks: Benchmarks | None = None
        if settings.chaos.benchmarks:
            self.benchmarks = Benchmarks(
                self, "Benchmarks", settings=settings, functions=self.functions, schedules=self.schedules
            )
        self.functions.add_observers(watched, self.on_demand.machine, self.benchmarks)
        self.notifications = Notifications(
            self, "Notifications", data=self.data, bus=self.bus, functions=self.functions
        )
        calls = [
            ("WatchdogSchedule", "watchdog", self.functions.watchdog, WATCHDOG, {}),
            ("SweepSchedule", "sweep", self.functions.sweep, SWEEP, SWEPT),
        ]
        if self.benchmarks:
            calls.append(("ReaperSchedule", "reaper", self.functions.reaper, REAPER, {}))
        for schedule, what, function, expression, given in calls:
            Calls(
                self,
                schedule,
                what=what,
                function=function,
                expression=expression,
                given=given,
                schedules=self.schedules,
            )
        self.alarms = Alarms(
            self,
            "Alarms",
            settings=settings,
            watched=watched,
            on_demand=self.on_demand.machine,
            untold=self.notifications.undelivered,
            teardown=self.benchmarks.teardown if self.benchmarks else None,
            report=self.functions.report if self.benchmarks else None,
        )
        self.api = Api(self, "Api", settings=settings, handler=self.functions.api)
        self.template_options.metadata = {SETTINGS_METADATA: _told(settings)}
        Queries(self, "Queries", functions=self.functions)
        outputs = {
            "ApiUrl": (self.api.rest_api.url, "Where the API answers signed requests"),
            "GroupTagsTable": (self.data.group_tags.table_name, "Policy of units: edit its items to opt a unit out"),
            "EventsTable": (self.data.events.table_name, "Terminations and their recovery"),
            "StateTable": (self.data.state.table_name, "The switch and the counters"),
            "DecisionsTable": (self.data.decisions.table_name, "What each tick decided about each unit, and why"),
            "ChangesTable": (self.data.changes.table_name, "Who has changed which policy, or the switch"),
            "SaltSecretArn": (self.data.salt.secret_arn, "Keys the rolls: who may read it can recompute them"),
            "ChaosStateMachineArn": (self.workflow.machine.state_machine_arn, "The workflow every tick runs"),
            "OnDemandStateMachineArn": (self.on_demand.machine.state_machine_arn, "Carries out terminations on demand"),
            "ActNowTopicArn": (self.alarms.act_now.topic_arn, "Subscribe whoever is to be told that somebody must act"),
            "NewsTopicArn": (self.notifications.news.topic_arn, "Subscribe whoever wants to know what chaos does"),
            "EventBusName": (self.bus.event_bus_name, "The same for programs: rules on this bus"),
            "WorkBucket": (self.data.work.bucket_name, "Lists that workflows pass on; expire by themselves"),
        }
        if self.benchmarks:
            bench = self.benchmarks
            outputs |= {
                "RunsTable": (bench.data.runs.table_name, "Runs of benchmarks, and what each has created"),
                "ResultsBucket": (
                    bench.data.results.bucket_name,
                    "Results of benchmarks, and what nodes read and wrote",
                ),
                "BenchmarkStateMachineArn": (bench.benchmark.state_machine_arn, "Runs a benchmark"),
                "FleetStateMachineArn": (bench.fleet.state_machine_arn, "Keeps a standing fleet"),
                "TeardownStateMachineArn": (bench.teardown.state_machine_arn, "Removes what a run has created"),
            }
        for output, (value, description) in outputs.items():
            cdk.CfnOutput(self, output, value=value, description=description)


def _told(settings: DeploymentSettings) -> str:
    """What the functions decide by. As it is part of the stack, it changes when they do; the stack has the name."""
    told = json.loads(settings.chaos_json) | {"tick_minutes": settings.tick_minutes}
    return json.dumps({key: value for key, value in told.items() if key != "deployment"})
