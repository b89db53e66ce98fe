"""Makes the commands that cure findings about a deployment's health. Pure."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass


@dataclass(frozen=True)
class Cures:
    """The names and addresses of a deployment's parts. Each command has them, so that a person can paste it.

    Attributes:
        deployment: the stack's name.
        machine: ARN of the chaos workflow.
        schedule_group: name of the group of all schedules.
        queue: URL of the queue of undeliverable messages.
        group_tags: name of the table GroupTags.
        act_now: ARN of the topic for alarms of the class "act now"; "" where alarms are not read.
        runbook: where people read the runbook: a path or an URL.
    """

    deployment: str
    region: str
    machine: str
    schedule_group: str
    queue: str
    group_tags: str
    act_now: str = ""
    runbook: str = "docs/guides/runbook.md"

    def entry(self, anchor: str) -> str:
        """Returns the address of an entry of the runbook."""
        return f"{self.runbook}#{anchor}"

    def aws(self, *words: str) -> str:
        """Returns a command of the AWS CLI for the deployment's region."""
        return f"{shlex.join(('aws', *words))} --region {self.region}"

    def troop(self, *words: str) -> str:
        """Returns a command of `troop` for this deployment."""
        deployment = "" if self.deployment == "Troop" else f" -d {self.deployment}"  # the default
        return f"troop{deployment} --region {self.region} {shlex.join(words)}"

    def deploy(self, *words: str) -> str:
        """Returns the command that deploys again, with all settings as they are. It runs in the checkout."""
        return " ".join((f"AWS_REGION={self.region} make deploy KEEP=1", *words, f"DEPLOYMENT={self.deployment}"))

    @property
    def deploy_back(self) -> str:
        """The command that undoes manual changes. A plain deployment changes nothing if the template is the same."""
        return self.deploy("REPAIR=1")

    @property
    def subscribe(self) -> str:
        """The command that subscribes a person to alarms that need action."""
        return self.aws(
            *("sns", "subscribe", "--topic-arn", self.act_now, "--protocol", "email"),
            *("--notification-endpoint", "YOU@EXAMPLE.COM"),
        )

    @property
    def schedules(self) -> str:
        """The command that lists all schedules with their state."""
        return self.aws(
            *("scheduler", "list-schedules", "--group-name", self.schedule_group),
            *("--query", "Schedules[].[Name,State]", "--output", "text"),
        )

    @property
    def failed_ticks(self) -> str:
        """The command that lists the last failed executions of the workflow."""
        return self.aws(
            *("stepfunctions", "list-executions", "--state-machine-arn", self.machine),
            *("--status-filter", "FAILED", "--max-items", "5"),
        )

    @property
    def dead_letters(self) -> str:
        """The command that reads undeliverable messages, and leaves them in the queue."""
        return self.aws(
            *("sqs", "receive-message", "--queue-url", self.queue, "--message-attribute-names", "All"),
            *("--max-number-of-messages", "10", "--visibility-timeout", "0"),
        )

    def errors(self, function: str) -> str:
        """Returns the command that prints a function's errors. Its log has the name that CloudFormation has made of the
        stack's name and the log's own.
        """
        name = self.aws(
            *("logs", "describe-log-groups", "--log-group-name-prefix", f"{self.deployment}-Functions{function}Logs"),
            *("--query", "logGroups[0].logGroupName", "--output", "text"),
        )
        read = self.aws("--filter-pattern", "ERROR", "--query", "events[].message", "--output", "text")
        return f'aws logs filter-log-events --log-group-name "$({name})" {read.removeprefix("aws ")}'

    def backups(self, table: str) -> str:
        """Returns the command that lists a table's backups, with those that DynamoDB makes of deleted tables."""
        return self.aws("dynamodb", "list-backups", "--table-name", table, "--backup-type", "ALL")

    def delete_item(self, key: str) -> str:
        """Returns the command that deletes an item of the table GroupTags."""
        words = ("dynamodb", "delete-item", "--table-name", self.group_tags, "--key")
        return self.aws(*words, json.dumps({"unit": {"S": key}}, ensure_ascii=False))

    def alarms(self, names: list[str]) -> str:
        """Returns the command that tells why alarms are on."""
        full = [f"{self.deployment}-{name}" for name in names]
        words = ("--query", "MetricAlarms[].[AlarmName,StateReason]", "--output", "text")
        return self.aws("cloudwatch", "describe-alarms", "--alarm-names", *full, *words)
