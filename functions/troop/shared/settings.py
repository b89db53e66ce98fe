"""Defines the settings that functions use: typed, checked, and the same at synth and in Lambda.

At synth they come from the context of cdk.json. The functions read them from a layer of their own, because calendars
can exceed the 4 KB limit of environment variables, and the code must be the same in every stage.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from troop import faults
from troop.shared import targets, values
from troop.shared.calendars import Calendar, parse_calendar
from troop.shared.choice import Choice, parse_choices
from troop.shared.errors import SettingsError

SETTINGS_FILE = "deployment.json"
"""The file of a deployment's settings, on the functions' module path."""

PARTICIPATION = ("opt-out", "opt-in")
OLDEST_TICK = timedelta(minutes=15)
"""The greatest age of a tick. An older one is not delivered, and does nothing: another one has followed, or the day is
over.
"""

TICK_MINUTES = (1, 5, 10, 15)
"""The minutes between two ticks: divisors of an hour, for the cron expression, up to :data:`OLDEST_TICK`."""


class Section(StrEnum):
    """The headings of docs/reference/settings.md, in its order."""

    DEPLOYMENT = "The deployment"
    ACCOUNT = "The account"
    CHAOS = "Chaos"
    RETENTION = "Retention"
    OPERATION = "Operation"
    BENCHMARKS = "Benchmarks"


MORE_TERMINATIONS, HIGHER_COSTS = "more terminations", "higher costs"


@dataclass(frozen=True)
class Setting:
    """The declaration of one setting: cdk.json, documents, the construct and the defaults of tests follow from it.

    Attributes:
        section: its place in docs/reference/settings.md.
        default: the JSON value that cdk.json has.
        parse: converts a JSON value, or the text of one; raises :class:`troop.shared.values.BadValue`.
        accepts: the Python type of values in an app's code; None for the type of the parsed value.
        higher: what a higher value makes more likely, such as ``more terminations``; "" if nothing is known of it.
        lower: what a lower value makes more likely.
        text: what the setting means to its users, in Markdown.
    """

    section: Section
    default: Any
    parse: Callable[[Any], Any]
    accepts: str | None = None
    higher: str = ""
    lower: str = ""
    text: str = ""

    def means(self, text: str) -> Any:
        """Adds the text, and returns the field of a dataclass that declares the setting; it has no default."""
        return field(metadata={"setting": replace(self, text=text)})


def declared(settings: type) -> dict[str, Setting]:
    """Returns the settings that a dataclass declares, by key."""
    return {one.name: one.metadata["setting"] for one in fields(settings) if "setting" in one.metadata}


def _deployment(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,30}", value):
        raise values.BadValue("a letter, then letters, digits and hyphens, at most 31 in all")
    return value


def _listed(pattern: str, allowed: str) -> Callable[[Any], tuple[str, ...]]:
    """Parses ids and names, of which there may be none; as text they are a JSON list, or separated by commas."""

    def parse(value: Any) -> tuple[str, ...]:
        if isinstance(value, str) and value.lstrip().startswith("["):
            try:
                value = values.json_in(value)
            except ValueError:
                raise values.BadValue(allowed) from None
        try:
            listed = () if value in ("", [], ()) else values.names(value)
        except values.BadValue:
            raise values.BadValue(allowed) from None
        if not all(re.fullmatch(pattern, one) for one in listed):
            raise values.BadValue(allowed)
        return listed

    return parse


_buckets = _listed(
    values.BUCKET_NAME,
    'a list of bucket names, such as ["my-data"], each of 3 to 63 lower-case letters, digits, dots and hyphens',
)
_images = _listed(
    rf"{values.IMAGE_ID}|{values.PARAMETER_NAME}(/?\*)?",
    'a list of image ids and of names of SSM parameters, such as ["ami-0123456789abcdef0", "/images/*"]: a * is '
    "allowed at the end of a name",
)
_snapshots = _listed(
    rf"{values.SNAPSHOT_ID}|\*",
    'a list of snapshot ids, such as ["snap-0123456789abcdef0"], or ["*"] for all of the account',
)
_TARGETS = (
    'a list of targets with TCP ports, such as ["shop:443", "10.20.0.0/16:8000-8100", "sg-0123456789abcdef0:5432"]: '
    "names of load balancers, IPv4 addresses, and ids of security groups"
)


def _targets(value: Any) -> tuple[str, ...]:
    listed = _listed(r".+", _TARGETS)(value)
    try:
        for one in listed:
            targets.parse_allowed(one)
    except values.BadValue:
        raise values.BadValue(_TARGETS) from None
    return listed


_GLOBS = 'a list of instance type patterns, such as ["c7g.*", "m7g.large"]: * matches any text, ? matches one character'


def _instance_types(value: Any) -> tuple[str, ...]:
    globs = _listed(r"[a-z0-9*?-]+(\.[a-z0-9*?-]+)?", _GLOBS)(value)
    # Every type contains a dot, so a pattern without a dot or a star matches none.
    if not globs or not all("." in glob or "*" in glob for glob in globs):
        raise values.BadValue(_GLOBS)
    return globs


NO_LIMIT = "none"
"""The value for no limit. It is a word, so that a missing limit does not count as no limit."""

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


@dataclass(frozen=True)
class Settings:
    """The settings that functions use. Each value is as its parser returns it: costs are None for no limit, and
    ``units`` are pairs of a glob over group names and a unit's name.
    """

    deployment: str = Setting(Section.DEPLOYMENT, "Troop", _deployment).means(
        "The stack's name, which commands use to find it (`troop -d NAME`). Another name is another deployment, with "
        "its own tables, salt and switch."
    )
    leashed: bool = Setting(Section.CHAOS, True, values.boolean, lower=MORE_TERMINATIONS).means(
        "Whether chaos only decides and records. It applies until somebody uses the switch (`troop unleash`, `troop "
        "leash`); from then on the switch decides."
    )
    participation: str = Setting(
        Section.CHAOS,
        "opt-out",
        values.one_of(*PARTICIPATION),
        accepts='Literal["opt-out", "opt-in"]',
        higher=MORE_TERMINATIONS,
    ).means(
        "`opt-out`: every unit takes part unless it is opted out. `opt-in`: no unit takes part until it is opted in."
    )
    probability: float = Setting(Section.CHAOS, 0.2, values.number(0, 1), higher=MORE_TERMINATIONS).means(
        "The probability of a termination for each unit and business day: 1 is one a day, 0.2 one a week on average, "
        "0 none. An owner's `probability` overrides it."
    )
    min_healthy: int = Setting(Section.CHAOS, 2, values.whole(1, 10_000), lower=MORE_TERMINATIONS).means(
        "The fewest healthy instances in service with which a group takes part. An owner's `min_healthy` overrides it."
    )
    lowest_min_healthy: int = Setting(Section.CHAOS, 1, values.whole(1, 10_000), lower=MORE_TERMINATIONS).means(
        "The lowest `min_healthy` that owners can set, at most `troop:min_healthy`. A lower value in the table or in "
        "a tag counts as this one; `troop group` then shows this setting as its source."
    )
    min_days_between: int = Setting(Section.CHAOS, 0, values.whole(0, 250), lower=MORE_TERMINATIONS).means(
        "Business days from one termination of a unit to its next; 0 and 1 both allow one on every business day. An "
        "owner's `min_days_between` overrides it."
    )
    method: tuple[Choice, ...] = Setting(Section.CHAOS, "crash", parse_choices, accepts="str").means(
        "The faults that may hit, separated by commas; the day's roll chooses one of them. "
        + " ".join(f"`{fault.name}`: {fault.summary}." for fault in faults.FAULTS)
        + f" Inside an instance, with `troop:inside_instances`: {', '.join(fault.name for fault in faults.LASTING)}."
        " See [what data a crash can lose](../guides/chaos.md#what-a-crash-can-lose). "
        "An owner's `method` overrides it."
    )
    inside_instances: bool = Setting(Section.CHAOS, False, values.boolean, higher=MORE_TERMINATIONS).means(
        "Whether faults inside instances can happen: processes, network and disk, in place of the whole instance. "
        "Only instances whose owners consent with the tag `troop:inside` can have one. Not in regions of China, whose "
        "endpoints AWS's documents do not know."
    )
    max_per_day: int = Setting(Section.CHAOS, 20, values.whole(1, 100_000), higher=MORE_TERMINATIONS).means(
        "The most terminations of the whole deployment in a day, on-demand ones included. The day is the calendar's "
        "local day."
    )
    max_in_flight: int = Setting(Section.CHAOS, 5, values.whole(1, 1000), higher=MORE_TERMINATIONS).means(
        "The most terminations of the whole deployment whose groups have not recovered yet."
    )
    halt_after_broken: int = Setting(Section.CHAOS, 3, values.whole(0, 100)).means(
        "The deployment halts itself when this many units were broken within an hour: an alarm went off, or the group "
        "did not recover in time. Units that one alarm has broken count once. 0: never."
    )
    on_demand: bool = Setting(Section.CHAOS, True, values.boolean, higher=MORE_TERMINATIONS).means(
        "Whether the API accepts requests to terminate an instance (`troop terminate`). IAM controls who can send them."
    )
    under_load: bool = Setting(Section.CHAOS, False, values.boolean, higher=MORE_TERMINATIONS).means(
        "Whether benchmarks can request terminations and faults of units, while their own nodes load them "
        "([more](../guides/chaos.md#hits-under-load)). The unit's owner must agree (`under_load`), and whoever starts "
        "or schedules the run must have the right to terminate on demand. Needs `troop:on_demand` and "
        "`troop:benchmarks`."
    )
    recovery_timeout_minutes: int = Setting(Section.CHAOS, 30, values.whole(1, 720)).means(
        "Minutes that a group has to recover. After that it is `UNRECOVERED`, and Troop skips its unit until somebody "
        "opts it in."
    )
    decision_retention_days: int = Setting(Section.RETENTION, 90, values.whole(1, 3650)).means(
        "Days for which decisions are stored, which explain why Troop skipped a unit. Events and changes are stored "
        "permanently."
    )
    # A run of a week must not lose its inputs.
    results_retention_days: int = Setting(Section.RETENTION, 365, values.whole(8, 3650)).means(
        "Days for which the results and reports of benchmarks are stored. A fleet cannot be extended "
        "beyond a day less, counted from its start. Uploaded artifacts are stored for 30 days."
    )
    benchmarks: bool = Setting(Section.BENCHMARKS, True, values.boolean).means(
        "Whether the deployment includes the part that runs [benchmarks](../guides/benchmarks.md) and fleets. "
        "With false it has no network, and no role that can launch anything."
    )
    max_nodes: int = Setting(Section.BENCHMARKS, 600, values.whole(1, 5000), higher=HIGHER_COSTS).means(
        "The most nodes that one run can have at one time. The limit also applies to one standing fleet: "
        "500 nodes on spot fit, with the fifth that a [backup](../guides/standing-fleets.md#spot-with-a-backup) needs."
    )
    max_nodes_total: int = Setting(Section.BENCHMARKS, 700, values.whole(1, 100_000), higher=HIGHER_COSTS).means(
        "The most nodes of all open runs and standing fleets together. A run holds its largest number of nodes from "
        "its admission until its teardown ends; a fleet holds its size."
    )
    max_run_cost: float | None = Setting(
        Section.BENCHMARKS, 500, _run_cost, accepts='float | Literal["none"]', higher=HIGHER_COSTS
    ).means(
        "What one run or standing fleet can cost, in US dollars (in China, yuan); `none` for no limit "
        "([more](../background/costs.md#limits)). Troop refuses one that it expects to cost more, "
        "and stops one that has cost more."
    )
    max_scheduled_cost: float | None = Setting(
        Section.BENCHMARKS, 500, _run_cost, accepts='float | Literal["none"]', higher=HIGHER_COSTS
    ).means(
        "What the runs that schedules start in one month (UTC) can cost in the worst case, in dollars (in China, "
        "yuan); `none` for no limit ([more](../guides/running-benchmarks.md#schedules)). Then Troop refuses starts."
    )
    instance_types: tuple[str, ...] = Setting(Section.BENCHMARKS, ["*"], _instance_types).means(
        "The instance types that nodes can have, as patterns: `c7g.*` matches all sizes of c7g. IAM enforces them, "
        "too: the launching role cannot start another type."
    )
    allowed_buckets: tuple[str, ...] = Setting(Section.BENCHMARKS, [], _buckets).means(
        "S3 buckets that nodes can read. The file of a benchmark or fleet must name a bucket, too (`buckets`)."
    )
    allowed_images: tuple[str, ...] = Setting(Section.BENCHMARKS, [], _images).means(
        "Machine images that a benchmark or fleet can name as `image`, besides Amazon Linux 2023, which is the "
        "default: ids of images, and names of SSM parameters that contain an id "
        "([more](../guides/benchmark-nodes.md#images)). IAM enforces them, too."
    )
    allowed_snapshots: tuple[str, ...] = Setting(Section.BENCHMARKS, [], _snapshots).means(
        "Snapshots of EBS whose data the volumes of a benchmark or fleet can have (`snapshot`): ids, or `*` for all "
        "snapshots of the account ([more](../guides/benchmark-nodes.md#snapshots)). IAM enforces them, too."
    )
    allowed_targets: tuple[str, ...] = Setting(Section.BENCHMARKS, [], _targets).means(
        "What nodes can reach besides S3 and each other, if the file of a benchmark or fleet names it, too "
        "(`targets`): load balancers and security groups in `troop:network`, and IPv4 addresses, each with its TCP "
        "ports ([more](../guides/benchmark-nodes.md#targets))."
    )
    own_data: bool = Setting(Section.BENCHMARKS, False, values.boolean).means(
        "Whether benchmarks can create and delete objects below `data/` of the results bucket, to measure with them "
        "([more](../guides/benchmark-scripts.md#data-of-a-cell)). The file must request it, too. IAM enforces the "
        "setting."
    )
    queues: bool = Setting(Section.BENCHMARKS, False, values.boolean, higher=HIGHER_COSTS).means(
        "Whether standing fleets can have a queue of tasks, which costs an interface endpoint in each of their zones. "
        "The fleet's file must request it, too (`queue`). With false, no role can create a queue or an endpoint, "
        "and fleets that have a queue cannot use it: remove them first."
    )
    tags: Mapping[str, str] = Setting(Section.ACCOUNT, {}, _tags).means(
        "Tags of the stack, of its resources, and of everything that runs and fleets create, such as those that your "
        "organization demands ([more](../guides/organization.md#tags-boundaries-and-controls))."
    )
    units: tuple[tuple[str, str], ...] = Setting(Section.CHAOS, {}, _units, accepts="Mapping[str, str]").means(
        "The groups that belong together, by patterns of their names: all groups that match share one unit's policy, "
        "roll and history. The first pattern that matches counts; a group's tag `troop:unit` overrides it."
    )
    calendars: Mapping[str, Calendar] = Setting(
        Section.CHAOS,
        {
            "default": {
                "time_zone": "America/Los_Angeles",
                "weekdays": ["MON", "TUE", "WED", "THU", "FRI"],
                "open": "09:00",
                "close": "15:00",
                "country": "US",
                "subdivision": None,
                "extra_dates": [],
                "freezes": [],
            }
        },
        json_object,
    ).means(
        "When chaos can happen: calendars by name. `default` applies to every group that names no other (`calendar`)."
    )

    def __hash__(self) -> int:
        return hash(self.deployment)  # cheap: caches use settings as keys, once for every unit


SETTINGS = declared(Settings)
KEYS = tuple(SETTINGS)
"""Every key that :func:`parse_settings` accepts, without prefix; all are required."""


def parse_settings(raw: Mapping[str, Any], prefix: str = "troop:") -> Settings:
    """Parses settings from JSON-like values. Scalars can be text, and objects JSON text, as ``cdk -c`` passes them.

    Args:
        raw: the values by key, without prefix.
        prefix: the prefix of the keys in error messages.

    Raises:
        SettingsError: names the key, the value and what is allowed; also for a missing or unknown key.
    """
    refuse_unknown(raw, KEYS, prefix)
    parsed = {key: parse_value(prefix + key, raw.get(key), one.parse) for key, one in SETTINGS.items()}
    if parsed["lowest_min_healthy"] > parsed["min_healthy"]:
        allowed = f"at most {prefix}min_healthy, which is {parsed['min_healthy']}"
        raise SettingsError(prefix + "lowest_min_healthy", raw["lowest_min_healthy"], allowed)
    lasting = [one.name for one in parsed["method"] if one.lasting]
    if lasting and not parsed["inside_instances"]:
        allowed = f"without {lasting[0]}, because {prefix}inside_instances is false"
        raise SettingsError(prefix + "method", raw["method"], allowed)
    if parsed["under_load"] and (off := [key for key in ("on_demand", "benchmarks") if not parsed[key]]):
        raise SettingsError(prefix + "under_load", raw["under_load"], f"false, because {prefix}{off[0]} is false")
    calendars = parsed["calendars"]
    if "default" not in calendars:
        raise SettingsError(prefix + "calendars", raw.get("calendars"), "an object with a calendar named default")
    for name in calendars:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name):
            allowed = "named by a letter, then letters, digits, hyphens and underscores, at most 64 in all"
            raise SettingsError(f"{prefix}calendars.{name}", calendars[name], allowed)
    parsed["calendars"] = {name: parse_calendar(prefix + "calendars", name, one) for name, one in calendars.items()}
    return Settings(**parsed)


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


def load_settings(path: Path) -> Settings:
    """Reads the settings of this deployment from :data:`SETTINGS_FILE`."""
    return parse_settings(json.loads(path.read_text(encoding="utf-8")), prefix="")
