"""Generates the tables of roles and callers in docs/reference/security.md: ``python -m infra.roles_doc`` writes them.

What a role may do comes from synthesised templates. This module adds why it may.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import aws_cdk as cdk

from infra import ROOT
from infra.api import GRANTS, STAGE
from infra.generated import filled, table
from infra.permissions import WRITE_ITEMS
from infra.settings import PREFIX, read_settings, written_context
from infra.stack import TroopStack
from troop.bench.definition.names import ANY_RUN

PATH = ROOT / "docs" / "reference" / "security.md"

Template = Mapping[str, Any]
Grant = tuple[str, str, str, str]
"""``Allow`` or ``Deny``, an action, and texts of the resource and of the condition; no condition is ""."""

WITHOUT_BENCHMARKS: Mapping[str, Any] = {
    "benchmarks": False,
    "news_bus": "arn:aws:events:us-east-1:111122223333:event-bus/YOUR-BUS",
}
WITH_MORE: Mapping[str, Any] = {
    "allowed_buckets": "your-bucket",
    "allowed_images": "ami-0123456789abcdef0,/your-parameter",
    "allowed_snapshots": "snap-0123456789abcdef0",
    "allowed_targets": "your-load-balancer:443,sg-0123456789abcdef0:443,10.20.0.0/16:443",
    "calendars": {"default": written_context()[f"{PREFIX}calendars"]["default"] | {"change_calendar": "CALENDAR"}},
    "inside_instances": True,
    "leashed": False,
    "network": json.dumps({"vpc": "vpc-0123456789abcdef0", "subnets": ["subnet-0123456789abcdef0"]}),
    "own_data": True,
    "queues": True,
    "under_load": True,
}
"""Settings that give roles further permissions. ``key`` gives them all the same ones, see :mod:`infra.keys`."""

CHAOS: Mapping[str, tuple[str, str]] = {
    "Decide": (
        "Decide",
        "decides for every unit, and records decisions, `LEASHED` events and items without a unit. The permission to "
        "read attributes includes user data, because IAM cannot tell attributes apart; Troop reads "
        "`disableApiTermination` and `disableApiStop` only. With `troop:leashed` false, it looks for data of an "
        "earlier deployment before it terminates anything, and reads no item of it",
    ),
    "Terminate": (
        "Terminate",
        "checks again, claims, terminates, and records the reason of a refusal. Only Auto Scaling can set the tag "
        "`aws:autoscaling:groupName`. The denials hold whatever a policy or a defect says",
    ),
    "CheckRecovery": ("CheckRecovery", "checks a group until it has recovered, and closes the event"),
    "Hear": (
        "Hear",
        "checks the groups of terminations in flight when AWS reports a change of them, and abandons claims when an "
        "alarm of the unit goes off",
    ),
    "Sweep": ("Sweep", "finds events that nothing watches any more, and closes them; it cannot terminate anything"),
    "Notify": (
        "Notify",
        "sends notifications, and distinguishes manual edits from those of the API; it changes no table",
    ),
    "Api": (
        "API",
        "answers its callers. It changes policies and the switch, and claims what a caller requests, if the guards "
        "allow it; IAM has a separate path for `POST /terminations`. It cannot terminate anything",
    ),
    "Widgets": (
        "Widgets",
        "shows [dashboards](../guides/dashboards.md). It cannot know who views them, "
        "so it reads neither the salt nor results",
    ),
    "Risks": (
        "Risks",
        "lists the account's groups, load balancers, images and leftovers once a day, and records "
        "[risks](../guides/risks.md) apart from decisions. It changes nothing of the account",
    ),
    "Watchdog": ("Watchdog", "checks health, and drops undelivered schedules that are settled"),
    "Chaos": ("Workflow", "calls its functions. A Distributed Map runs children of its own machine"),
    "OnDemand": ("Workflow on demand", "carries out what the API has claimed"),
    "Schedules": ("Schedules of calendars", "start the workflow. Only schedules of this deployment's group can"),
    "WatchdogSchedule": ("Schedule of Watchdog", "the same"),
    "SweepSchedule": ("Schedule of Sweep", "the same"),
    "RisksSchedule": ("Schedule of Risks", "the same"),
    "RedriveSchedule": ("Schedule of Notify", "the same"),
    "NotificationsForwarding": ("Rule for news", "sends them to `troop:news_bus`; only with this setting"),
}
"""Role -> its name for people, and why it has its permissions."""

BENCHMARKS: Mapping[str, tuple[str, str]] = {
    "Launch": (
        "Launch",
        "launches a cell's fleets, and finds what an earlier try has created. Auto Scaling checks that the creator of "
        "a group could launch its instances. Tags are set only at creation: an existing resource can never be made to "
        "appear as Troop's. `troop:instance_types` is a further condition on new instances",
    ),
    "Cell": (
        "Cell",
        "leads a cell through its phases, and has Auto Scaling replace nodes that do not come up. It writes no "
        "scripts, no definitions and nothing that nodes write",
    ),
    "Fleet": (
        "Fleet",
        "keeps standing fleets: it resizes their groups, has Auto Scaling replace nodes that fail, and tells people "
        "what fails. It gives nodes orders, but no scripts",
    ),
    "Teardown": (
        "Teardown",
        "removes what runs have created. Each condition is the best that IAM has for the action; the function "
        "[checks more](#what-may-be-removed). The denial holds whatever a defect says",
    ),
    "Reaper": (
        "Reaper",
        "finishes what a teardown has missed, and ends runs whose workflow has ended. `State` has its off switch",
    ),
    "Report": (
        "Report",
        "makes reports and lines of runs, and announces changes; it cannot overwrite stored measurements",
    ),
    "Api": (
        "API, in addition",
        "admits runs, shows them and their reports, and manages schedules; it launches nothing",
    ),
    "Widgets": ("Widgets, in addition", "lists runs, and merges what a run does for all viewers"),
    "Watchdog": ("Watchdog, in addition", "checks the table"),
    "Start": ("Start", "starts scheduled runs; Lambda puts starts that it gives up into the queue"),
    "BenchmarksBenchmark": ("Workflow of runs", "leads a run, and waits for its teardown"),
    "BenchmarksFleet": ("Workflow of fleets", "leads a standing fleet, and waits for its teardown"),
    "BenchmarksTeardown": ("Workflow of teardowns", "ends a run"),
    "BenchmarksScheduled": (
        "Schedules of benchmarks",
        "start runs. Only schedules of their own group can; the API creates them in that group only",
    ),
    "ReaperSchedule": ("Schedule of Reaper", "calls it every 15 minutes"),
    "BenchmarksNodes": (
        "**Nodes**",
        "run the code of a benchmark's file. `${aws:userid}` is the node's own session, so a node writes nothing in "
        "the name of another one. The permissions hold only in the nodes' network",
    ),
}

INSIDE: Mapping[str, tuple[str, str]] = {
    "Inject": (
        "Inject",
        "injects lasting faults by AWS's documents, reads with a document of the deployment, ends faults, and "
        "terminates an instance whose fault is not proven to be over. IAM allows a command if one statement allows the "
        "document, and another one the instance. `AWS-RunShellScript`, with which the role could do anything there, is "
        "not among them",
    ),
    "Injections": (
        "Backstops",
        "call Inject again although a workflow has died. Only schedules of their own group can; Inject creates them in "
        "that group only",
    ),
    "FaultsSchedule": ("Schedule of Inject", "calls it for all faults that are not over"),
}

UNDER_LOAD: Mapping[str, tuple[str, str]] = {
    "Request": (
        "Request",
        "claims what a benchmark requests, if the guards allow it and the unit's owner agrees, and reads the event. "
        "Only Cell requests hits; API and Start ask it which units may be hit. It cannot terminate anything",
    ),
}

_SHARED_ACTIONS = frozenset({"xray:PutTelemetryRecords", "xray:PutTraceSegments"})
_MACHINE_ACTIONS = _SHARED_ACTIONS | {
    *("xray:GetSamplingRules", "xray:GetSamplingTargets"),
    *(f"logs:{action}LogDelivery" for action in ("Create", "Delete", "Get", "Update")),
    *("logs:DescribeLogGroups", "logs:DescribeResourcePolicies", "logs:ListLogDeliveries", "logs:PutResourcePolicy"),
}
"""Actions on all resources, which the text before the tables names."""

_PHRASES = {
    "aws:RequestTag/troop:deployment": "created with this deployment's tag",
    "aws:ResourceTag/troop:deployment": "with this deployment's tag",
    "aws:SourceVpc": "from {}",
    "dynamodb:LeadingKeys": "with the keys {}",
    "ec2:Vpc": "in {}",
    "iam:PassedToService": "to {}",
    "s3:prefix": "below {}",
}
"""Conditions in words; others are shown as they are."""

_NAMES = {
    "AWS::StackName": "this deployment",
    "BenchmarksNetworkVpc": "NETWORK",
    "DataWorkBucket": "WorkBucket",
    "DataSalt": "Salt",
    "AWS::URLSuffix": "amazonaws.com",
}
_SCOPES = ("Data", "Functions", "BenchmarksData")
_HASH = re.compile(r"[0-9A-F]{8}$")
_OWN_NETWORK = re.compile(r"subnet/(subnet-\w+|BenchmarksNetworkVpc\w+)|vpc-0\w+")
_ACCOUNT = re.compile(r"^arn:[^:]*:[\w-]+:[^:]*:[^:]*:")


def text(document: str, without: Template, default: Template, more: Template) -> str:
    """Returns docs/reference/security.md with current tables.

    Args:
        document: as it is now.
        without, default, more: templates with :data:`WITHOUT_BENCHMARKS`, the default settings, :data:`WITH_MORE`.
    """
    chaos, benchmarks, settings = _role_grants(without), _role_grants(default), _role_grants(more)
    added = {role: its - chaos.get(role, set()) for role, its in benchmarks.items()}
    further = {role: its - benchmarks[role] for role, its in settings.items() if its - benchmarks.get(role, its)}
    names = {**CHAOS, **{role: (name.removesuffix(", in addition"), why) for role, (name, why) in BENCHMARKS.items()}}
    tables = {
        "chaos": table(["role", "why", "may"], [(*CHAOS[role], _cell(chaos[role])) for role in CHAOS]),
        "benchmarks": table(["role", "why", "may"], [(*BENCHMARKS[r], _cell(added[r])) for r in BENCHMARKS]),
        "settings": table(
            ["role", "may"], [(names[role][0], _cell(further[role])) for role in names if role in further]
        ),
        "faults inside instances": table(
            ["role", "why", "may"], [(*INSIDE[role], _cell(settings[role])) for role in INSIDE]
        ),
        "hits under load": table(
            ["role", "why", "may"], [(*UNDER_LOAD[role], _cell(settings[role])) for role in UNDER_LOAD]
        ),
    }
    for name, content in tables.items():
        document = filled(document, f"roles of {name}", content)
    callers = [
        (one.caller, _code(f".../{STAGE}/{resource.replace(' ', '', 1)}" for resource in one.resources), one.text)
        for one in GRANTS
    ]
    return filled(document, "callers", table(["for", "resource", "allows"], callers))


def _role_grants(template: Template) -> dict[str, set[Grant]]:
    """Returns what each role may, by its name without ``Role``."""
    grants: defaultdict[str, set[Grant]] = defaultdict(set)
    for key, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::IAM::Role":
            roles, documents = [key], [policy["PolicyDocument"] for policy in properties.get("Policies", [])]
        elif resource["Type"] == "AWS::IAM::Policy":
            roles, documents = [role["Ref"] for role in properties["Roles"]], [properties["PolicyDocument"]]
        else:
            continue
        for role in roles:
            name = _short(role).removesuffix("Role")
            its = (grant for document in documents for grant in _grants(document))
            grants[name] |= {grant for grant in its if not _is_common(name, grant)}
    return dict(grants)


def _grants(document: Mapping[str, Any]) -> Iterator[Grant]:
    for statement in document["Statement"]:
        condition = _condition(statement.get("Condition", {}))
        for action in _listed(statement["Action"]):
            for resource in _listed(statement["Resource"]):
                yield statement["Effect"], action, _resource(resource), condition


def _is_common(role: str, grant: Grant) -> bool:
    """Checks whether every function or workflow may that: log and trace."""
    _, action, resource, _ = grant
    if resource == f"{role}Logs":
        return action in ("logs:CreateLogStream", "logs:PutLogEvents")
    return resource == "*" and action in _MACHINE_ACTIONS


def _cell(grants: Iterable[Grant]) -> str:
    """Returns grants as lines: those with the same actions, and before that those with the same resources, are one."""
    actions: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for effect, action, resource, condition in grants:
        actions[effect, resource, condition].add(action)
    resources: defaultdict[tuple[str, str, tuple[str, ...]], set[str]] = defaultdict(set)
    for (effect, resource, condition), its in actions.items():
        resources[effect, condition, tuple(sorted(its))].add(resource)
    lines = [
        f"{'**denied:** ' if effect == 'Deny' else ''}{_named(its)} on {_code(sorted(those))}{condition}"
        for (effect, condition, its), those in resources.items()
    ]
    return "<br>".join(sorted(lines, key=lambda line: (line.startswith("**"), line))) or "nothing more"


def _named(actions: Sequence[str]) -> str:
    """Returns actions, each service's name once."""
    if set(actions) == set(WRITE_ITEMS):
        return "all writes of items"
    names: defaultdict[str, list[str]] = defaultdict(list)
    for action in actions:
        service, _, name = action.partition(":")
        names[service].append(name)
    return ", ".join(_code([f"{service}:{first}", *others]) for service, (first, *others) in names.items())


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _condition(conditions: Mapping[str, Any]) -> str:
    words = []
    compared = {key for operator, keys in conditions.items() if operator != "Null" for key in keys}
    for operator, keys in conditions.items():
        for key, value in keys.items():
            if operator != "Null":
                values = _code(dict.fromkeys(_shortened(_text(one)) for one in _listed(value)))
                phrase = _PHRASES.get(key, f"with `{key}` {{}}").format(values)
                words.append(f"{phrase} where IAM knows it" if operator.endswith("IfExists") else phrase)
            elif "/" in key:
                words.append(f"with the tag `{key.partition('/')[2]}`")
            elif key not in compared:  # otherwise it only requires that the other condition on it means something
                words.append(f"with `{key}`")
    return f" {', '.join(sorted(words))}" if words else ""


def _resource(value: Any) -> str:
    return _shortened(_text(value))


def _shortened(resource: str) -> str:
    resource = _ACCOUNT.sub("", resource).replace("autoScalingGroup:*:autoScalingGroupName/", "autoScalingGroup/")
    resource = resource.replace(f"runs/{ANY_RUN}", "RUN").replace(ANY_RUN, "RUN")
    resource = re.sub(r"-c\?{3}(?=-dead|$)", "-CELL", resource)  # of queues
    resource = resource.replace("/c???-?/", "/CELL/").replace("/c???/", "/CELL/").replace("vpc/NETWORK", "NETWORK")
    return "NETWORK" if resource.startswith("subnet/") else resource


def _text(value: Any) -> str:
    """Returns a value with the names of resources in place of references."""
    if isinstance(value, Mapping):
        if "Ref" in value:
            return _short(value["Ref"])
        if "Fn::GetAtt" in value:
            name, attribute = value["Fn::GetAtt"]
            return _short(name) + {"Arn": "", "Name": "", "StreamArn": "/stream"}[attribute]
        if "Fn::Join" in value:
            separator, parts = value["Fn::Join"]
            return str(separator).join(_text(part) for part in parts)
    return _OWN_NETWORK.sub("NETWORK", str(value))


def _short(name: str) -> str:
    if name in _NAMES:
        return _NAMES[name]
    name = _HASH.sub("", name)
    if name in _NAMES:
        return _NAMES[name]
    scope = next((one for one in _SCOPES if name.startswith(one) and name != one), "")
    return name.removeprefix(scope).removeprefix("AWS::")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def synthesised(**settings: Any) -> Template:
    """Returns the template of a deployment with the settings of ``cdk.json``, save those given (without prefix)."""
    context = written_context() | {PREFIX + key: value for key, value in settings.items()}
    with tempfile.TemporaryDirectory() as folder:
        app = cdk.App(context=context, outdir=folder)
        name = TroopStack(app, read_settings(context)).artifact_id
        template: Template = app.synth().get_stack_artifact(name).template
    return template


if __name__ == "__main__":
    templates = [synthesised(**settings) for settings in (WITHOUT_BENCHMARKS, {}, WITH_MORE)]
    PATH.write_text(text(PATH.read_text(encoding="utf-8"), *templates), encoding="utf-8")
