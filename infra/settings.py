"""Reads the context of cdk.json as typed, checked settings.

cdk.json has a value for every setting. ``troop:stage`` selects a stage (``troop:stages``), which overrides some values,
and ``cdk deploy -c troop:KEY=VALUE`` overrides both. :mod:`troop.shared.settings` declares the settings that functions
use; this module declares those that only a deployment needs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cli.shared.aws import is_local
from infra import ROOT
from troop.shared import settings as chaos
from troop.shared import stages, targets, values
from troop.shared.choice import text_of
from troop.shared.errors import SettingsError
from troop.shared.settings import TICK_MINUTES, Section, Setting

PREFIX = "troop:"
BUNDLES = ("auto", "lambda", "machine")
LOG_RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)
"""The values that CloudWatch Logs accepts."""

MOST_ZONES = 6
"""No region has more zones for fleets."""


@dataclass(frozen=True)
class ExistingNetwork:
    """An existing network.

    Attributes:
        vpc: its id.
        subnets: ids of the subnets to launch fleets into.
    """

    vpc: str
    subnets: tuple[str, ...]


_NETWORK = 'null, or an object such as {"vpc": "vpc-0123456789abcdef0", "subnets": ["subnet-0123456789abcdef0"]}'


def _network(value: Any) -> ExistingNetwork | None:
    if value is None or (isinstance(value, str) and value.strip() in ("", "null")):
        return None
    try:
        document = chaos.json_object(value)
    except values.BadValue:
        raise values.BadValue(_NETWORK) from None
    subnets = document.get("subnets")
    if document.keys() != {"vpc", "subnets"} or not isinstance(subnets, list) or not subnets:
        raise values.BadValue(_NETWORK)
    if not _is_id("vpc", document["vpc"]) or not all(_is_id("subnet", subnet) for subnet in subnets):
        raise values.BadValue(_NETWORK)
    if len(set(subnets)) < len(subnets):
        raise values.BadValue(f"{_NETWORK}, each subnet once")
    return ExistingNetwork(document["vpc"], tuple(subnets))


_KEY = re.compile(
    r"arn:aws[a-z-]*:kms:(?P<region>[a-z0-9-]+):\d{12}:key/"
    r"(mrk-[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
)
_KEY_ALLOWED = (
    "null, or the ARN of a KMS key in the region of the deployment, not of an alias, such as "
    "arn:aws:kms:us-east-1:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
)


def _key(value: Any) -> str | None:
    """Parses the ARN of a key. IAM and CloudWatch Logs do not accept aliases."""
    if value is None or (isinstance(value, str) and value.strip() in ("", "null")):
        return None
    if not isinstance(value, str) or not _KEY.fullmatch(value.strip()):
        raise values.BadValue(_KEY_ALLOWED)
    return value.strip()


_BUS = re.compile(r"arn:aws[a-z-]*:events:[a-z0-9-]+:\d{12}:event-bus/(?P<name>[A-Za-z0-9._/-]{1,256})")
_BUS_ALLOWED = "null, or the ARN of an event bus, such as arn:aws:events:us-east-1:111122223333:event-bus/troop-news"


def _bus(value: Any) -> str | None:
    """Parses the ARN of an event bus, of any account and region."""
    if value is None or (isinstance(value, str) and value.strip() in ("", "null")):
        return None
    if not isinstance(value, str) or not _BUS.fullmatch(value.strip()):
        raise values.BadValue(_BUS_ALLOWED)
    return value.strip()


_ZONE = re.compile(values.ZONE_NAME)
_ZONES = (
    f"a whole number from 1 to {MOST_ZONES}, or names of as many availability zones of one region, such as "
    '["us-east-1a", "us-east-1b"], each once'
)


def _zones(value: Any) -> int | tuple[str, ...]:
    """Parses the number or names of zones; in text, names are a JSON list or separated by commas."""
    try:
        return values.whole(1, MOST_ZONES)(value)
    except values.BadValue:
        pass
    parsed = value
    if isinstance(parsed, str) and parsed.lstrip().startswith("["):
        try:
            parsed = values.json_in(parsed)
        except ValueError:
            raise values.BadValue(_ZONES) from None
    parts = parsed.split(",") if isinstance(parsed, str) else parsed
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise values.BadValue(_ZONES)
    names = tuple(part.strip() for part in parts)
    is_one_region = len({name[:-1] for name in names}) == 1 and all(_ZONE.fullmatch(name) for name in names)
    if not is_one_region or len(set(names)) < len(names) or len(names) > MOST_ZONES:
        raise values.BadValue(_ZONES)
    return names


def _bundle(value: Any) -> str:
    """Parses ``lambda`` or ``machine``; ``auto`` selects by the AWS of the environment."""
    chosen: str = values.one_of(*BUNDLES)(value)
    if chosen != "auto":
        return chosen
    return "machine" if is_local() else "lambda"


def _is_id(kind: str, value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(rf"{kind}-([0-9a-f]{{8}}|[0-9a-f]{{17}})", value) is not None


ZONES_CHOSEN = "zones_chosen"
"""No setting: says that `make deploy` has chosen the zones, and not its caller."""

_PLACE_KEYS = frozenset({"deployment", "bundle", ZONES_CHOSEN})
"""Say where to deploy: no deployment can change them."""


@dataclass(frozen=True)
class DeploymentSettings:
    """All settings of a deployment: those of the functions, and those that only the deployment uses.

    Attributes:
        chaos: the functions' settings.
        chaos_json: the same as a JSON document with the keys of ``troop.shared.settings.KEYS``, for the functions'
            asset.
        zones: the number of availability zones of the own network, or their names, in the order of its subnets.
        stage: the stage whose values these are; None for the defaults.
        overrides: keys whose values come from the command line or from an app's code, and not from cdk.json.
    """

    chaos: chaos.Settings
    chaos_json: str
    tick_minutes: int = Setting(Section.CHAOS, 15, values.one_of(*TICK_MINUTES)).means(
        "Minutes between two ticks during the window of a calendar. A due termination waits for the next tick. Every "
        "tick writes a decision for every unit, so shorter intervals cost more."
    )
    log_retention_days: int = Setting(Section.RETENTION, 90, values.one_of(*LOG_RETENTION_DAYS)).means(
        "Days for which all logs are stored: of functions, workflows, and the API's requests. These are the values "
        "that CloudWatch Logs accepts."
    )
    retain_data: bool = Setting(Section.RETENTION, True, values.boolean, lower="removal deletes the records").means(
        "Whether tables, buckets, the salt and logs remain after the deployment is removed (`make destroy`), and "
        "tables are protected from deletion. With false they are removed, too."
    )
    api_access_logs: bool = Setting(Section.OPERATION, False, values.boolean).means(
        "Whether API Gateway logs each request, including those that IAM refuses. This requires a role in an account "
        "setting that applies to **all APIs of the region**. With true, the deployment creates a role and sets it "
        "there, in place of an existing one; both remain when the deployment is removed. With false, the API's "
        "function still logs each request that reaches it, with its caller."
    )
    runbook_url: str = Setting(Section.OPERATION, "docs/guides/runbook.md", values.text()).means(
        "Where your operators read [the runbook](../guides/runbook.md). Alarms link to it with `#` and an anchor; "
        "dashboards link to it if it begins with `https://`."
    )
    dashboards: bool = Setting(Section.OPERATION, True, values.boolean).means(
        "Whether the deployment has its two dashboards. An account has three free dashboards, and pays for each "
        "further one."
    )
    weekly_letter: bool = Setting(Section.OPERATION, False, values.boolean).means(
        "Whether subscribers of [the news topic](../guides/reports.md#the-weekly-letter) get a letter each Monday "
        "at 9:00 in the time zone of the calendar `default`: the terminations and verdicts of the last week, by owner."
    )
    news_bus: str | None = Setting(Section.OPERATION, None, _bus).means(
        "The ARN of an event bus that also gets [the news](../reference/notifications.md), such as one for all "
        "deployments of your organization; null for none. The bus's policy must admit it "
        "([more](../guides/organization.md#one-bus-for-the-news-of-all-deployments))."
    )
    daily_cost_alarm: float = Setting(Section.OPERATION, 100, values.number(0.01, 1_000_000)).means(
        "The cost of benchmarks and fleets within a day that turns an alarm on: US dollars, in China yuan. Running "
        "ones count, too."
    )
    bundle: str = Setting(Section.DEPLOYMENT, "auto", _bundle, accepts='Literal["auto", "lambda", "machine"]').means(
        "The platform for which the functions' packages are selected. Keep `auto`: it means `lambda`, or `machine` if "
        "`AWS_ENDPOINT_URL` points to local AWS."
    )
    key: str | None = Setting(Section.ACCOUNT, None, _key).means(
        "A KMS key of yours that encrypts tables, buckets, queues, topics, logs, the salt and the functions' "
        "variables; null for keys of AWS. Its policy must admit services of AWS "
        "([more](../guides/organization.md#a-key-of-your-own))."
    )
    network: ExistingNetwork | None = Setting(  # noqa: RUF009 - it is a field
        Section.BENCHMARKS, None, _network, accepts="Network | None"
    ).means(
        "Where fleets are launched: null for a VPC that the deployment creates, or an existing VPC with its subnets "
        "([more](../guides/network-and-quotas.md))."
    )
    zones: int | tuple[str, ...] = Setting(Section.BENCHMARKS, 3, _zones).means(
        "Availability zones of the VPC that the deployment creates, with a subnet in each; at most as many as your "
        "account has in the region. Ignored with `troop:network`."
    )
    dns_firewall: bool = Setting(Section.BENCHMARKS, False, values.boolean).means(
        "Whether the VPC that the deployment creates resolves only names of AWS and of the VPC, so that code on nodes "
        "cannot send data through DNS ([cost](../background/costs.md#benchmarks-while-none-runs)). "
        "Not with `troop:network`."
    )
    stage: str | None = None
    overrides: frozenset[str] = frozenset()


DEPLOYMENT_ONLY = chaos.declared(DeploymentSettings)
SETTINGS = chaos.SETTINGS | DEPLOYMENT_ONLY
"""Settings by key, without prefix: those that functions do not use, and all."""


def read_settings(context: Mapping[str, Any], written: Mapping[str, Any] | None = None) -> DeploymentSettings:
    """Reads the settings from a CDK context; ignores keys without the prefix ``troop:``.

    Checks all stages, not only the selected one.

    Args:
        written: the context from :func:`written_context`. Values that differ from it come from the command line or an
            app's code, and override the stage's. Without it, a stage overrides everything.

    Raises:
        troop.shared.errors.SettingsError: names the key, the value and what is allowed.
    """
    raw = {key.removeprefix(PREFIX): value for key, value in context.items() if key.startswith(PREFIX)}
    known = tuple(SETTINGS)
    chaos.refuse_unknown(raw, (*known, stages.STAGE, stages.STAGES, ZONES_CHOSEN), PREFIX)
    defaults = _parse({key: value for key, value in raw.items() if key in known}, PREFIX)
    override_keys = [] if written is None else [key for key in raw if _differs(raw[key], written, key)]
    by_stage = stages.stages_of(raw, known, PREFIX)
    # The defaults are valid, so any problem of them with a stage is the stage's.
    parsed = {
        name: _parse(stages.in_stage(raw, name, own, override_keys), f"{PREFIX}{stages.STAGES}.{name}.")
        for name, own in by_stage.items()
    }
    stage = stages.chosen(raw, by_stage, PREFIX)
    settings = parsed[stage] if stage else defaults
    not_own = _PLACE_KEYS | {"zones"} if ZONES_CHOSEN in raw else _PLACE_KEYS
    return replace(settings, stage=stage, overrides=frozenset(override_keys) - not_own)


def check_region(settings: DeploymentSettings, region: str) -> None:
    """Refuses a key and zones of another region, which CloudFormation would reject in the middle of a deployment, and
    faults inside instances in China, whose endpoints AWS's documents do not know.

    Args:
        region: the region of the deployment.

    Raises:
        troop.shared.errors.SettingsError: names the setting.
    """
    key_parts = _KEY.fullmatch(settings.key) if settings.key else None
    if key_parts and key_parts["region"] != region:
        raise SettingsError(f"{PREFIX}key", settings.key, f"a key of {region}, the region of the deployment")
    if settings.chaos.inside_instances and region.startswith("cn-"):
        allowed = f"false in {region}: AWS's documents know only the endpoints of amazonaws.com, not those of China"
        raise SettingsError(f"{PREFIX}inside_instances", True, allowed)
    zones = settings.zones
    if isinstance(zones, int) or settings.network or not settings.chaos.benchmarks:
        return
    if any(zone[:-1] != region for zone in zones):
        allowed = f"zones of {region}, the region of the deployment: name others, or set AWS_REGION"
        raise SettingsError(f"{PREFIX}zones", list(zones), allowed)


def written_context() -> dict[str, Any]:
    """Returns the context of cdk.json, as in the file."""
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    return context


def feature_flags() -> dict[str, Any]:
    """Returns the CDK's feature flags in cdk.json."""
    return {key: value for key, value in written_context().items() if key.startswith("@aws-cdk")}


def as_passed(value: Any) -> Any:
    """Returns a value as the CDK passes it from cdk.json: lists and dicts, which have no key without a value."""
    if isinstance(value, Mapping):
        return {key: as_passed(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [as_passed(inner) for inner in value]
    return value


def _differs(value: Any, written: Mapping[str, Any], key: str) -> bool:
    """Checks whether a value differs from the file's: the command line passes text where the file may have a number."""
    missing = object()
    there = written.get(PREFIX + key, missing)
    return type(value) is not type(there) or as_passed(value) != as_passed(there)


def _parse(raw: Mapping[str, Any], prefix: str) -> DeploymentSettings:
    settings = chaos.parse_settings({key: raw[key] for key in chaos.KEYS if key in raw}, prefix)
    parsed = {key: chaos.parse_value(prefix + key, raw.get(key), one.parse) for key, one in DEPLOYMENT_ONLY.items()}
    _check_targets(prefix, settings, parsed["network"])
    bus = _BUS.fullmatch(parsed["news_bus"] or "")
    if bus and bus["name"] == settings.deployment:  # the news would come back to it, as news again
        allowed = f"a bus with another name than the deployment's own, {settings.deployment}"
        raise SettingsError(f"{prefix}news_bus", raw["news_bus"], allowed)
    if parsed["dns_firewall"] and parsed["network"]:
        allowed = f"false with {prefix}network: the deployment does not change your network"
        raise SettingsError(f"{prefix}dns_firewall", raw["dns_firewall"], allowed)
    return DeploymentSettings(chaos=settings, chaos_json=_document(settings, raw), **parsed)


def _check_targets(prefix: str, settings: chaos.Settings, network: ExistingNetwork | None) -> None:
    """Refuses allowed targets that cannot be in the deployment's own network, which contains only nodes."""
    for entry in settings.allowed_targets if network is None and settings.benchmarks else ():
        if not targets.parse_allowed(entry).addresses:
            allowed = f"addresses without {prefix}network: load balancers and security groups are in your network"
            raise SettingsError(f"{prefix}allowed_targets", entry, allowed)


def _document(settings: chaos.Settings, raw: Mapping[str, Any]) -> str:
    """Returns scalars as parsed, faults and objects as written: the functions read exactly what was checked."""
    document = {key: getattr(settings, key) for key in chaos.KEYS}
    document = {key: chaos.NO_LIMIT if value is None else value for key, value in document.items()}
    document |= {key: chaos.json_object(raw[key]) for key in ("units", "calendars")}
    document["method"] = text_of(settings.method)
    return json.dumps(document, indent=2) + "\n"
