"""Defines the settings that functions use: typed, checked, and the same at synth and in Lambda.

At synth they come from the context of cdk.json. The functions read them from ``deployment.json``, which the deployment
places beside the handlers, because calendars can exceed the 4 KB limit of environment variables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from troop import faults, targets, values
from troop.calendars import Calendar, parse_calendar
from troop.errors import SettingsError

PARTICIPATION = ("opt-out", "opt-in")
OLDEST_TICK = timedelta(minutes=15)
"""An older tick is not delivered, and does nothing: another one has followed, or the day is over."""

TICK_MINUTES = (1, 5, 10, 15)
"""The minutes between two ticks: divisors of an hour, for the cron expression, up to :data:`OLDEST_TICK`."""


@dataclass(frozen=True)
class Settings:
    """The settings of a deployment.

    Attributes:
        deployment: the stack's name; an account and region can have several deployments.
        leashed: the initial state of the switch: decide and record, but terminate nothing.
        participation: ``opt-out`` (units take part unless opted out) or ``opt-in``.
        probability: of a termination, for each unit and business day, 0..1.
        min_healthy: the fewest healthy instances in service with which a group takes part.
        lowest_min_healthy: the lower bound for an owner's ``min_healthy``.
        min_days_between: business days from one termination of a unit to the next; the next business day is 1, so 0 and
            1 have the same effect.
        method: the name of a fault (:data:`troop.faults.FAULTS`).
        max_per_day: terminations in the whole deployment on one local day.
        max_in_flight: terminations that can be waiting for recovery at one time.
        on_demand: whether the API accepts requests to terminate.
        units: (glob over group names, unit name), the first match wins.
        calendars: by name; there is always a ``default``.
        recovery_timeout_minutes: the time after which a group counts as unrecovered.
        decision_retention_days: how long decisions are stored.
        benchmarks: whether the deployment includes the part that runs benchmarks.
        max_nodes: the most nodes that one run can have at one time, in all its fleets together.
        max_nodes_total: the most nodes of all open runs and standing fleets together.
        max_run_cost: what one run or standing fleet can cost, in dollars, in China in yuan; None for no limit.
        max_scheduled_cost: what the runs that schedules start in a month can cost in the worst case, in dollars, in
            China in yuan; None for no limit.
        instance_types: globs over the instance types that nodes can have, such as ``c7g.*``.
        allowed_buckets: names of the buckets that nodes can read, if a benchmark requests them.
        allowed_images: machine images that a file can name: ids, and names of SSM parameters that contain an id. A
            name that ends with ``*`` allows all names with that beginning.
        allowed_snapshots: ids of snapshots that a file can name; ``*`` allows all of the account.
        allowed_targets: what nodes can reach if a file names it, as :func:`troop.targets.parse_allowed` reads it.
        tags: of everything that the deployment and its runs create, besides Troop's own.
        own_data: whether nodes can create and delete objects below ``data/`` of the results bucket, if a benchmark
            requests it.
    """

    deployment: str
    leashed: bool
    participation: str
    probability: float
    min_healthy: int
    lowest_min_healthy: int
    min_days_between: int
    method: str
    max_per_day: int
    max_in_flight: int
    on_demand: bool
    units: tuple[tuple[str, str], ...]
    calendars: Mapping[str, Calendar]
    recovery_timeout_minutes: int
    decision_retention_days: int
    benchmarks: bool
    max_nodes: int
    max_nodes_total: int
    max_run_cost: float | None
    max_scheduled_cost: float | None
    instance_types: tuple[str, ...]
    allowed_buckets: tuple[str, ...]
    allowed_images: tuple[str, ...]
    allowed_snapshots: tuple[str, ...]
    allowed_targets: tuple[str, ...]
    own_data: bool
    tags: Mapping[str, str]

    def __hash__(self) -> int:
        return hash(self.deployment)  # cheap: caches use settings as keys, once for every unit


def _deployment(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,30}", value):
        raise values.BadValue("a letter, then letters, digits and hyphens, at most 31 in all")
    return value


_BUCKET = re.compile(values.BUCKET_NAME)
_BUCKETS = 'a list of bucket names, such as ["my-data"], each of 3 to 63 lower-case letters, digits, dots and hyphens'


def _buckets(value: Any) -> tuple[str, ...]:
    return _listed(value, _BUCKET, _BUCKETS)


_IMAGE = re.compile(rf"{values.IMAGE_ID}|{values.PARAMETER_NAME}(/?\*)?")
_IMAGES = (
    'a list of image ids and of names of SSM parameters, such as ["ami-0123456789abcdef0", "/images/*"]: a * is '
    "allowed at the end of a name"
)


_SNAPSHOT = re.compile(rf"{values.SNAPSHOT_ID}|\*")
_SNAPSHOTS = 'a list of snapshot ids, such as ["snap-0123456789abcdef0"], or ["*"] for all of the account'


_TARGETS = (
    'a list of targets with TCP ports, such as ["shop:443", "10.20.0.0/16:8000-8100", "sg-0123456789abcdef0:5432"]: '
    "names of load balancers, IPv4 addresses, and ids of security groups"
)


def _targets(value: Any) -> tuple[str, ...]:
    listed = _listed(value, re.compile(r".+"), _TARGETS)
    try:
        for one in listed:
            targets.parse_allowed(one)
    except values.BadValue:
        raise values.BadValue(_TARGETS) from None
    return listed


def _images(value: Any) -> tuple[str, ...]:
    return _listed(value, _IMAGE, _IMAGES)


def _snapshots(value: Any) -> tuple[str, ...]:
    return _listed(value, _SNAPSHOT, _SNAPSHOTS)


def _listed(value: Any, pattern: re.Pattern[str], allowed: str) -> tuple[str, ...]:
    """Parses ids and names, of which there may be none; as text they are a JSON list, or separated by commas."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = values.json_in(value)
        except ValueError:
            raise values.BadValue(allowed) from None
    try:
        listed = () if value in ("", [], ()) else values.names(value)
    except values.BadValue:
        raise values.BadValue(allowed) from None
    if not all(pattern.fullmatch(one) for one in listed):
        raise values.BadValue(allowed)
    return listed


_GLOB = re.compile(r"[a-z0-9*?-]+(\.[a-z0-9*?-]+)?")
_GLOBS = 'a list of instance type patterns, such as ["c7g.*", "m7g.large"]: * matches any text, ? matches one character'


def _instance_types(value: Any) -> tuple[str, ...]:
    """Parses patterns; as text they are a JSON list, or separated by commas."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            raise values.BadValue(_GLOBS) from None
    try:
        globs = values.names(value)
    except values.BadValue:
        raise values.BadValue(_GLOBS) from None
    # Every type contains a dot, so a pattern without a dot or a star matches none.
    if not globs or not all(_GLOB.fullmatch(glob) and ("." in glob or "*" in glob) for glob in globs):
        raise values.BadValue(_GLOBS)
    return globs


NO_LIMIT = "none"
"""Means no limit. A word, so that a missing limit does not count as no limit."""

_COST = values.number(0.01, 10_000_000)


def _run_cost(value: Any) -> float | None:
    if isinstance(value, str) and value.strip() == NO_LIMIT:
        return None
    try:
        return _COST(value)
    except values.BadValue as error:
        raise values.BadValue(f"{NO_LIMIT}, or {error}") from None


_MOST_TAGS = 40
"""CloudFormation allows 50 tags of a stack, and resources have some of Troop and of AWS."""
_TAG = re.compile(r"[\w .:/=+@-]*")
_TAGS = (
    f'an object of at most {_MOST_TAGS} tags such as {{"CostCenter": "1234"}}: keys up to 128 and values 1 to 256 '
    "letters, digits, spaces and _.:/=+-@; keys differ in more than case, and do not begin with aws: or troop:"
)


def _tags(value: Any) -> Mapping[str, str]:
    """Parses tags, which AWS must accept, and which are not Troop's own."""
    try:
        tags = json_object(value)
    except values.BadValue:
        raise values.BadValue(_TAGS) from None
    for key, text in tags.items():
        is_text = isinstance(text, str) and 1 <= len(text) <= 256 and _TAG.fullmatch(text)
        if not is_text or not 1 <= len(key) <= 128 or not _TAG.fullmatch(key):
            raise values.BadValue(_TAGS)
        if key.lower().startswith(("aws:", "troop:")):
            raise values.BadValue(_TAGS)
    if len(tags) > _MOST_TAGS or len({key.lower() for key in tags}) < len(tags):  # IAM ignores case
        raise values.BadValue(_TAGS)
    return tags


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "deployment": _deployment,
    "leashed": values.boolean,
    "participation": values.one_of(*PARTICIPATION),
    "probability": values.number(0, 1),
    "min_healthy": values.whole(1, 10_000),
    "lowest_min_healthy": values.whole(1, 10_000),
    "min_days_between": values.whole(0, 250),
    "method": faults.parse_name,
    "max_per_day": values.whole(1, 100_000),
    "max_in_flight": values.whole(1, 1000),
    "on_demand": values.boolean,
    "recovery_timeout_minutes": values.whole(1, 720),
    "decision_retention_days": values.whole(1, 3650),
    "benchmarks": values.boolean,
    "max_nodes": values.whole(1, 5000),
    "max_nodes_total": values.whole(1, 100_000),
    "max_run_cost": _run_cost,
    "max_scheduled_cost": _run_cost,
    "instance_types": _instance_types,
    "allowed_buckets": _buckets,
    "allowed_images": _images,
    "allowed_snapshots": _snapshots,
    "allowed_targets": _targets,
    "own_data": values.boolean,
    "tags": _tags,
}

KEYS = (*_SCALARS, "units", "calendars")
"""Every key that :func:`parse_settings` accepts, without prefix; all are required."""


def parse_settings(raw: Mapping[str, Any], prefix: str = "troop:") -> Settings:
    """Parses settings from JSON-like values. Scalars can be text, and objects JSON text, as ``cdk -c`` passes them.

    Args:
        raw: the values by key, without prefix.
        prefix: of the keys in error messages.

    Raises:
        SettingsError: names the key, the value and what is allowed; also for a missing or unknown key.
    """
    refuse_unknown(raw, KEYS, prefix)
    parsed: dict[str, Any] = {key: parse_value(prefix + key, raw.get(key), parse) for key, parse in _SCALARS.items()}
    if parsed["lowest_min_healthy"] > parsed["min_healthy"]:
        allowed = f"at most {prefix}min_healthy, which is {parsed['min_healthy']}"
        raise SettingsError(prefix + "lowest_min_healthy", raw["lowest_min_healthy"], allowed)
    units = parse_value(prefix + "units", raw.get("units"), _units)
    calendars = parse_value(prefix + "calendars", raw.get("calendars"), json_object)
    if "default" not in calendars:
        raise SettingsError(prefix + "calendars", raw.get("calendars"), "an object with a calendar named default")
    for name in calendars:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name):
            allowed = "named by a letter, then letters, digits, hyphens and underscores, at most 64 in all"
            raise SettingsError(f"{prefix}calendars.{name}", calendars[name], allowed)
    return Settings(
        **parsed,
        units=units,
        calendars={name: parse_calendar(prefix + "calendars", name, value) for name, value in calendars.items()},
    )


def parse_value(key: str, value: Any, parse: Callable[[Any], Any]) -> Any:
    """Returns ``parse(value)``. Raises a :class:`SettingsError` with the key if the value is refused."""
    try:
        return parse(value)
    except values.BadValue as error:
        raise SettingsError(key, value, str(error)) from None


def refuse_unknown(raw: Mapping[str, Any], known: tuple[str, ...], prefix: str = "troop:") -> None:
    """Raises SettingsError for the first unknown key, and suggests the most similar known one."""
    for key in raw:
        if key not in known:
            raise SettingsError(prefix + key, raw[key], values.spelling(key, known, prefix))


def json_object(value: Any) -> dict[str, Any]:
    """Parses a JSON object, or the text of one."""
    if isinstance(value, str):
        try:
            value = values.json_in(value)
        except ValueError:
            raise values.BadValue("a JSON object") from None
    if not isinstance(value, Mapping):
        raise values.BadValue("a JSON object")
    return dict(value)


def _units(value: Any) -> tuple[tuple[str, str], ...]:
    name = values.text()
    try:
        return tuple((name(glob), name(unit)) for glob, unit in json_object(value).items())
    except values.BadValue:
        raise values.BadValue(
            'an object from patterns of group names to unit names, such as {"web-v*": "web"}'
        ) from None


def load_settings(path: Path) -> Settings:
    """Reads the settings of this deployment from the ``deployment.json`` beside the handlers."""
    return parse_settings(json.loads(path.read_text(encoding="utf-8")), prefix="")
