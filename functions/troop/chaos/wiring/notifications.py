"""Creates what sends notifications."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from troop.chaos.aws.bus import Bus
from troop.chaos.aws.queue import Queue
from troop.chaos.aws.streams import Streams
from troop.chaos.aws.topic import Topic
from troop.chaos.flows.notifier import Notifier
from troop.chaos.flows.repairs import Redrive
from troop.chaos.flows.weekly_letter import WeeklyLetter
from troop.chaos.wiring import tables
from troop.shared.aws.clients import client, quick_client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import settings, variable
from troop.shared.zones import zone


@cache
def notifier(client_of: Callable[[str], Any] = client) -> Notifier:
    """Creates the notifier. ``client_of``: returns a service's client."""
    return Notifier(
        deployment=settings().deployment,
        leashed=settings().leashed,
        events=variable(Variable.EVENTS_TABLE),
        changes=variable(Variable.CHANGES_TABLE),
        group_tags=variable(Variable.GROUP_TAGS_TABLE),
        state=variable(Variable.STATE_TABLE),
        change_table=tables.changes(client_of),
        queries=tables.event_queries(),
        bus=Bus(client_of("events"), variable(Variable.EVENT_BUS)),
        topic=Topic(client_of("sns"), variable(Variable.NEWS_TOPIC)),
    )


@cache
def weekly_letter() -> WeeklyLetter:
    return WeeklyLetter(
        deployment=settings().deployment,
        zone=zone(settings().calendars["default"].time_zone),
        queries=tables.event_queries(),
        bus=Bus(client("events"), variable(Variable.EVENT_BUS)),
        topic=Topic(client("sns"), variable(Variable.NEWS_TOPIC)),
    )


@cache
def redrive() -> Redrive:
    queue = Queue(quick_client("sqs"), variable(Variable.UNTOLD_QUEUE))
    return Redrive(queue, Streams(quick_client("dynamodbstreams")), notifier(quick_client), environment.now)
