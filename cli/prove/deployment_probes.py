"""Reads the deployment, and returns what AWS answers as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from cli.prove.probe import Probe, error_code
from troop.faults.crash import CRASH
from troop.shared.tags import DEPLOYMENT_TAG


class DeploymentProbes(Probe):
    """Steps that only read the deployment: its stack, functions, alarms and events."""

    def mapping_tags(self) -> dict[str, int]:
        client, mappings = self._client("lambda"), self._resources("AWS::Lambda::EventSourceMapping")
        lists = [
            client.list_tags(Resource=client.get_event_source_mapping(UUID=one)["EventSourceMappingArn"])["Tags"]
            for one in mappings
        ]
        return {"mappings": len(lists), "tagged": sum(DEPLOYMENT_TAG in one for one in lists)}

    def alarm_states(self) -> dict[str, int]:
        names = self._resources("AWS::CloudWatch::Alarm")
        pages = self._client("cloudwatch").get_paginator("describe_alarms")
        alarms = [
            alarm
            for start in range(0, len(names), 100)
            for page in pages.paginate(AlarmNames=names[start : start + 100])
            for alarm in page["MetricAlarms"]
        ]
        filled = [
            alarm for alarm in alarms if any("FILL" in one.get("Expression", "") for one in alarm.get("Metrics", []))
        ]
        return dict(Counter(alarm["StateValue"] for alarm in filled))

    def runtime(self) -> dict[str, str]:
        client = self._client("lambda")
        return {
            "python3.14": error_code(lambda: client.list_layers(CompatibleRuntime="python3.14", MaxItems=1), ""),
            "arm64": error_code(lambda: client.list_layers(CompatibleArchitecture="arm64", MaxItems=1), ""),
        }

    def crashes(self) -> dict[str, Any]:
        events = [one for one in self.client.events({}, 1000) if one["method"] == CRASH.name]
        called = [one for one in events if one["os_shutdown"] is not None]
        shut_down = [one for one in called if one["os_shutdown"]]
        unclear = [one for one in events if one["os_shutdown"] or one["status"] == "ABANDONED"]
        return {
            "without_shutdown": len(called) - len(shut_down),
            "with_shutdown": len(shut_down),
            "details": sorted({one["detail"].replace(one["group"], "GROUP") for one in unclear}),
        }

    def stack_failures(self) -> list[str]:
        pages = self._client("cloudformation").get_paginator("describe_stack_events")
        events = [event for page in pages.paginate(StackName=self.deployment.name) for event in page["StackEvents"]]
        failed = [event for event in events if event["ResourceStatus"].endswith("_FAILED")]
        return [f"{one['ResourceType']}: {one.get('ResourceStatusReason', '')}" for one in failed]
