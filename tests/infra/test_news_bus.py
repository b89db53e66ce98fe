"""News for a bus of the organization: the rule and its role, and the policy of that bus as the guide has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from moto.events.models import EventPattern

from infra.settings import read_settings
from tests.infra.cfn import resources_of, text
from tests.infra.conftest import CONTEXT
from tests.infra.conftest import NEWS_BUS as BUS
from tests.infra.documented_policies import evaluate, policy_below
from troop.shared.errors import SettingsError

Template = Mapping[str, Any]

HEADING = "## One bus for the news of all deployments"
ORGANIZATION = "o-a1b2c3d4e5"

MAY = """
from ministack.core.iam_evaluator import EvalContext, evaluate_resource_policy
def may(policy, action, resource, principal, request):
    return evaluate_resource_policy(policy, EvalContext(
        "arn:aws:sts::444455556666:assumed-role/Troop-Forwarding/session", "AssumedRole", "444455556666",
        action, resource, "eu-central-1", principal_keys=principal, service_context=request,
    )).decision == "Allow"
"""


def test_the_rule_forwards_only_news_of_its_own_deployment(whole: Template) -> None:
    rule = text(resources_of(whole, "AWS::Events::Rule")["NotificationsForwardingRule"]["Properties"])
    assert (rule["EventBusName"], rule["State"]) == ("<Bus>", "ENABLED")
    forwards = EventPattern.load(json.dumps(rule["EventPattern"])).matches_event
    own = {"account": "<AWS::AccountId>", "region": "<AWS::Region>", "detail": {"deployment": "<AWS::StackName>"}}
    assert forwards({"source": "troop", **own})
    assert not forwards({"source": "aws.ec2", **own})
    for other in ({"account": "111122223333"}, {"region": "eu-west-1"}, {"detail": {"deployment": "Troop-staging"}}):
        assert not forwards({"source": "troop", **own, **other})
    (target,) = rule["Targets"]
    assert (target["Arn"], target["RoleArn"]) == (BUS, "<NotificationsForwardingRole.Arn>")
    assert target["DeadLetterConfig"] == {"Arn": "<SchedulesUndelivered.Arn>"}


def test_the_role_of_the_rule_may_send_to_that_bus_alone(whole: Template) -> None:
    role = resources_of(whole, "AWS::IAM::Role")["NotificationsForwardingRole"]["Properties"]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "events.amazonaws.com"}
    (policy,) = role["Policies"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement == {"Effect": "Allow", "Action": "events:PutEvents", "Resource": BUS}
    policies = resources_of(whole, "AWS::IAM::Policy").values()
    assert not [one for one in policies if "NotificationsForwardingRole" in text(one["Properties"]["Roles"])]


def test_without_the_setting_nothing_is_forwarded(template: Template) -> None:
    assert not [name for name in template["Resources"] if name.startswith("NotificationsForwarding")]


@pytest.mark.parametrize("bus", ["troop-news", "arn:aws:sns:eu-central-1:111122223333:news", BUS.replace("2222", "2")])
def test_only_the_arn_of_a_bus_is_accepted(bus: str) -> None:
    with pytest.raises(SettingsError, match=r"news_bus is .*must be null, or the ARN of an event bus"):
        read_settings(CONTEXT | {"troop:news_bus": bus})


def test_bus_named_like_the_deployment_is_refused() -> None:
    own = BUS.replace("troop-news", "Troop")
    with pytest.raises(SettingsError, match="another name than the deployment's own"):
        read_settings(CONTEXT | {"troop:news_bus": own})
    assert read_settings(CONTEXT | {"troop:news_bus": own, "troop:deployment": "Other"}).news_bus == own


MEMBER, STRANGER, NOBODY = ({"aws:principalorgid": one} for one in (ORGANIZATION, "o-0000000000", None))
TROOP, ANOTHER = ({"events:source": one} for one in ("troop", "com.example"))

CALLS = [
    ("events:PutEvents", BUS, MEMBER, TROOP, True),
    ("events:PutEvents", BUS, STRANGER, TROOP, False),
    ("events:PutEvents", BUS, NOBODY, TROOP, False),  # an account of no organization
    ("events:PutEvents", BUS, MEMBER, ANOTHER, False),
    ("events:PutEvents", f"{BUS}-2", MEMBER, TROOP, False),
    ("events:PutRule", BUS, MEMBER, TROOP, False),
    ("events:PutPermission", BUS, MEMBER, TROOP, False),
]


def test_the_guides_policy_admits_only_news_from_the_organization() -> None:
    policy = policy_below("guides/organization.md", HEADING)
    assert evaluate(MAY, policy, [call[:-1] for call in CALLS]) == [call[-1] for call in CALLS]
