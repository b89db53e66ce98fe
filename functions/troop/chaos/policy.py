"""Computes a unit's effective policy from its layers: table item over group tags over settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date
from functools import lru_cache
from operator import itemgetter
from typing import Any, Generic, TypeVar

from troop.chaos.groups import Group
from troop.chaos.hypothesis import Hypothesis
from troop.chaos.near_keys import folded_tag, named, shown
from troop.chaos.units import LONGEST_UNIT_BYTES, is_unit
from troop.shared import values
from troop.shared.choice import Choice, parse_choices, text_of
from troop.shared.records import record
from troop.shared.settings import Settings
from troop.shared.tags import CONSENTS

TAG_PREFIX = "troop:"

LONGEST_ALARM = 255
"""The most characters of an alarm's name. CloudWatch refuses a request that contains a longer one."""

MOST_ALARMS = 50
"""The most names in a value: every event stores them."""

LONGEST_RECOVERY = 86_400
"""The most seconds of ``recovery_within``."""


def _alarms(value: Any) -> tuple[str, ...]:
    names = values.names(value)
    if len(names) > MOST_ALARMS:
        raise values.BadValue(f"at most {MOST_ALARMS} names")
    if any(len(name) > LONGEST_ALARM for name in names):
        raise values.BadValue(f"names separated by commas, of at most {LONGEST_ALARM} characters each")
    return names


PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "opt_out": values.boolean,
    "opt_in": values.boolean,
    "probability": values.number(0, 1),
    "min_healthy": values.whole(1, 10_000),
    "min_days_between": values.whole(0, 250),
    "until": values.day,
    "reason": values.text(),
    "owner": values.text(),
    "stop_alarms": _alarms,
    "success_alarms": _alarms,
    "recovery_within": values.whole(1, LONGEST_RECOVERY),
    "calendar": values.text(),
    "method": parse_choices,
    "under_load": values.boolean,
}
"""The keys that people can set: in a unit's table item or, with the prefix ``troop:``, as tags of a group."""

BOOKKEEPING: Mapping[str, Callable[[Any], Any]] = dict.fromkeys(
    ("unit", "schema", "version", "changed_at", "changed_by", "changed_request"), lambda value: value
)
"""Attributes of a table item that Troop writes; not part of the policy."""


def has_values(item: Mapping[str, Any]) -> bool:
    """Checks whether an item of ``GroupTags`` has more than what Troop writes about it."""
    return not item.keys() <= BOOKKEEPING.keys()


def _unit(value: Any) -> str:
    name = values.text()(value)
    if name != value:
        raise values.BadValue("without surrounding blanks")
    if not is_unit(name):
        raise values.BadValue(f"without control characters, and at most {LONGEST_UNIT_BYTES} bytes in UTF-8")
    return name


def _consent(value: Any) -> str:
    if value not in CONSENTS:  # IAM compares it exactly
        raise values.BadValue(" or ".join(CONSENTS))
    return str(value)


OTHER_TAGS: Mapping[str, Callable[[Any], Any]] = {
    # A malformed unit must be a problem: otherwise the group would escape its unit's opt-out.
    "unit": _unit,
    "inside": _consent,
    **dict.fromkeys(("protected", "fleet", "deployment", "run", "cell", "role", "expires_at"), lambda value: value),
}
"""Tags with Troop's prefix that are not part of the policy."""

_BY_FOLDED = {folded_tag(TAG_PREFIX + key): TAG_PREFIX + key for key in (*PARSERS, *OTHER_TAGS)}

MOST_NEAR = 3
"""The most keys of items that a policy's problem names."""

T = TypeVar("T")


@record
class SourcedValue(Generic[T]):
    """A value and its source: ``item``, ``tag of <group>``, ``settings``, or :data:`FLOOR`."""

    value: T
    source: str


@record
class Policy:
    """The policy of a unit on a day.

    Attributes:
        takes_part: whether chaos may select it, by opt-out or opt-in.
        until: the last day of the current opt-out; None without an opt-out, or without an end.
        recovery_within: see :class:`Hypothesis`; None if not set.
        method: the faults that may hit; the roll of the day chooses one, see :func:`troop.chaos.roll.choose`.
        under_load: whether benchmarks may request hits while they load the unit.
        reason, owner: free text from people; "" if not set.
        problems: malformed values, one sentence each; if there are any, do not use the other values.
    """

    takes_part: SourcedValue[bool]
    until: SourcedValue[date | None]
    probability: SourcedValue[float]
    min_healthy: SourcedValue[int]
    min_days_between: SourcedValue[int]
    method: SourcedValue[tuple[Choice, ...]]
    calendar: SourcedValue[str]
    stop_alarms: SourcedValue[tuple[str, ...]]
    success_alarms: SourcedValue[tuple[str, ...]]
    recovery_within: SourcedValue[int | None]
    under_load: SourcedValue[bool]
    reason: SourcedValue[str]
    owner: SourcedValue[str]
    problems: tuple[str, ...] = ()

    @property
    def hypothesis(self) -> Hypothesis:
        """The hypothesis of a termination that is claimed under this policy."""
        return Hypothesis(self.success_alarms.value, self.stop_alarms.value, self.recovery_within.value)

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Returns ``{key: {"value": ..., "source": ...}}`` in JSON's types, for records and responses."""
        return {key: {"value": _plain(key, s.value), "source": s.source} for key, s in self._sourced()}

    def _sourced(self) -> Iterable[tuple[str, SourcedValue[Any]]]:
        return ((key, getattr(self, key)) for key in VALUES)


VALUES = tuple(field.name for field in fields(Policy) if field.name != "problems")

_values: Callable[[Mapping[str, SourcedValue[Any]]], Any] = itemgetter(*VALUES)
"""Returns the values in the order of the fields of :class:`Policy`, from a mapping that can have other keys too."""

SETTINGS = "settings"
FLOOR = "lowest_min_healthy of the settings"
"""The source of a minimum that an owner has set too low."""

_IN, _OUT = SourcedValue(True, SETTINGS), SourcedValue(False, SETTINGS)
_NO_END: SourcedValue[date | None] = SourcedValue(None, SETTINGS)

_Layer = dict[str, SourcedValue[Any]]


def _plain(key: str, value: Any) -> Any:
    if key == "method":
        return text_of(value)
    if isinstance(value, date):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


def effective_policy(
    groups: Sequence[Group],
    item: Mapping[str, Any],
    settings: Settings,
    today: Callable[[str], date],
    near: Sequence[str] = (),
) -> Policy:
    """Computes the policy of a unit: the strictest of its groups' policies.

    Any opt-out wins (the one that lasts longest), then the smallest probability and time to recover, the largest
    minimum and distance, the faults that all of them allow, and all alarms together. Benchmarks may hit it if all of
    them agree. Groups on different calendars, and groups that allow no common fault, are malformed.

    Args:
        groups: the unit's groups, at least one.
        item: the unit's item in the table ``GroupTags``, as stored; empty if there is none.
        settings: the deployment's.
        today: returns the local date on a calendar of the settings, by name.
        near: the keys of other items that nearly name the unit, see :mod:`troop.chaos.strays`. Each can be its opt-out,
            so they are a problem.
    """
    item_layer, problems = _read_layer(item, "item", "attribute ", "", BOOKKEEPING) if item else ({}, [])
    if near:
        problems.append(_nearly_named(near))
    members = []
    for group in groups:
        tag_layer, tag_problems = _read_tags(group)
        problems += tag_problems
        member, member_problems = _member(item_layer, tag_layer, settings, today)
        problems += member_problems
        members.append(member)
    merged, merge_problems = _strictest(members)
    return Policy(*(*_values(merged), tuple(dict.fromkeys(problems + merge_problems))))


def _nearly_named(near: Sequence[str]) -> str:
    more = len(near) - MOST_NEAR
    keys = ", ".join(map(shown, near[:MOST_NEAR])) + (f" and {more} more" if more > 0 else "")
    return f"the key of an item is {keys}: must be exactly the unit's name, or the item must be deleted"


def says_anything(group: Group) -> bool:
    """Checks whether a group has tags with Troop's prefix, in any spelling."""
    return any(map(_meant, group.tags))


@lru_cache(maxsize=4096)  # groups share most of their keys
def _meant(key: str) -> str | None:
    """Returns the tag of Troop's that a key is, or nearly is; None for tags of others.

    Nearly: except for blanks, invisible characters, separators, and capital or small letters.
    """
    if key.startswith(TAG_PREFIX):
        return key
    if near := _BY_FOLDED.get(folded_tag(key)):
        return near
    plain = key.strip().lower()
    return plain if plain.startswith(TAG_PREFIX) else None


def _read_tags(group: Group) -> tuple[_Layer, list[str]]:
    ours, problems = {}, []
    for key, value in group.tags.items():
        meant = _meant(key)
        if meant == key:
            ours[key.removeprefix(TAG_PREFIX)] = value
        elif meant:  # it would have no effect
            problems.append(f"{group.name}: tag {named(key)} is unknown: must be spelled {meant}")
    layer, layer_problems = _read_layer(ours, f"tag of {group.name}", f"{group.name}: tag ", TAG_PREFIX, OTHER_TAGS)
    return layer, problems + layer_problems


def _read_layer(
    raw: Mapping[str, Any], source: str, where: str, prefix: str, others: Mapping[str, Callable[[Any], Any]]
) -> tuple[_Layer, list[str]]:
    layer: _Layer = {}
    problems = []
    for key, value in raw.items():
        parse = PARSERS.get(key) or others.get(key)
        if parse is None:
            problems.append(
                f"{where}{named(prefix + key)} is unknown: must be {values.spelling(key, (*PARSERS, *others), prefix)}"
            )
            continue
        try:
            layer[key] = SourcedValue(parse(value), source)
        except values.BadValue as error:
            problems.append(f"{where}{prefix}{key} is {str(value)[:80]!r}: must be {error}")
    return layer, problems


def _member(
    item: _Layer, tags: _Layer, settings: Settings, today: Callable[[str], date]
) -> tuple[dict[str, SourcedValue[Any]], list[str]]:
    member = {**_defaults(settings), **tags, **item}
    if member["min_healthy"].value < settings.lowest_min_healthy:
        member["min_healthy"] = SourcedValue(settings.lowest_min_healthy, FLOOR)
    calendar = member["calendar"]
    problems = []
    if calendar.value not in settings.calendars:
        known = ", ".join(settings.calendars)
        problems.append(f"calendar is {calendar.value!r} ({calendar.source}): must be one of {known}")
        day = date.min  # no opt-out ends
    else:
        day = today(calendar.value)
    member["takes_part"], member["until"] = _takes_part((item, tags), settings.participation == "opt-in", day)
    return member, problems


@lru_cache(maxsize=16)
def _defaults(settings: Settings) -> _Layer:
    values_of_settings: dict[str, Any] = {
        "probability": settings.probability,
        "min_healthy": settings.min_healthy,
        "min_days_between": settings.min_days_between,
        "method": settings.method,
        "calendar": "default",
        "stop_alarms": (),
        "success_alarms": (),
        "recovery_within": None,
        "under_load": False,
        "reason": "",
        "owner": "",
    }
    return {key: SourcedValue(value, SETTINGS) for key, value in values_of_settings.items()}


def _takes_part(
    layers: Sequence[_Layer], must_opt_in: bool, day: date
) -> tuple[SourcedValue[bool], SourcedValue[date | None]]:
    """Returns the decision of the first layer that has one; an opt-out precedes an opt-in.

    ``until`` is the last day of its own layer's opt-out, and implies one. After that day the layer has no opt-out.
    ``opt_out: false`` cancels a lower layer's opt-out, but opts nothing in. ``opt_in: false`` opts out.
    """
    put_back: SourcedValue[bool] | None = None
    for layer in layers:
        opt_out, opt_in, until = layer.get("opt_out"), layer.get("opt_in"), layer.get("until")
        ended = until is not None and until.value < day
        out = opt_out or (until and SourcedValue(True, until.source))
        if out and out.value and not ended and put_back is None:
            return SourcedValue(False, out.source), until or SourcedValue(None, out.source)
        if opt_in:
            return opt_in, _NO_END
        if opt_out and not opt_out.value:
            put_back = put_back or SourcedValue(True, opt_out.source)
    return (_OUT if must_opt_in else put_back or _IN), _NO_END


def _strictest(members: Sequence[dict[str, SourcedValue[Any]]]) -> tuple[dict[str, SourcedValue[Any]], list[str]]:
    if len(members) == 1:
        return members[0], []

    def pick(key: str, rank: Callable[[Any], Any]) -> SourcedValue[Any]:
        return min((m[key] for m in members), key=lambda s: rank(s.value))

    def together(key: str) -> SourcedValue[Any]:
        alarms = [m[key] for m in members]
        sources = ", ".join(dict.fromkeys(a.source for a in alarms if a.value)) or alarms[0].source
        return SourcedValue(tuple(dict.fromkeys(name for a in alarms for name in a.value)), sources)

    problems = []
    calendars = sorted({str(m["calendar"].value) for m in members})
    if len(calendars) > 1:
        problems.append("its groups are on different calendars: " + ", ".join(calendars))
    success_alarms = together("success_alarms")
    if (count := len(success_alarms.value)) > MOST_ALARMS:  # a verdict reads and stores the history of each
        problems.append(f"its groups have {count} success_alarms together: must be at most {MOST_ALARMS}")
    method = _common(members)
    if not method.value:
        problems.append(f"its groups allow no common method: {method.source}")
    # The reason comes from the group whose opt-out lasts longest.
    decisive = min(members, key=lambda m: (m["takes_part"].value, -(m["until"].value or date.max).toordinal()))
    return {
        "takes_part": decisive["takes_part"],
        "until": decisive["until"],
        "probability": pick("probability", float),
        "min_healthy": pick("min_healthy", lambda v: -v),
        "min_days_between": pick("min_days_between", lambda v: -v),
        "method": method,
        "calendar": members[0]["calendar"],
        "stop_alarms": together("stop_alarms"),
        "success_alarms": success_alarms,
        "recovery_within": pick("recovery_within", lambda v: v or LONGEST_RECOVERY + 1),
        "under_load": pick("under_load", bool),
        "reason": decisive["reason"] if decisive["reason"].value else pick("reason", lambda v: not v),
        "owner": pick("owner", lambda v: not v),
    }, problems


def _common(members: Sequence[dict[str, SourcedValue[Any]]]) -> SourcedValue[tuple[Choice, ...]]:
    """Returns the faults that all groups allow, with the source of the smallest set; or none, with every source."""
    methods = [member["method"] for member in members]
    effects = [{one.effect for one in method.value} for method in methods]
    common = tuple(one for one in methods[0].value if all(one.effect in some for some in effects))
    if not common:
        return SourcedValue((), "; ".join(dict.fromkeys(f"{text_of(one.value)} ({one.source})" for one in methods)))
    return SourcedValue(common, min(methods, key=lambda method: len(method.value)).source)
