"""Creates what sends notifications."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from troop.aws.bus import Bus
from troop.aws.clients import client, quick_client
from troop.aws.queue import Queue
from troop.aws.stream import Streams
from troop.aws.topic import Topic
from troop.environment import Variable
from troop.flows.chaos.notify import Notifier
from troop.flows.repairs import Redrive
from troop.wiring import chaos_tables, environment
from troop.wiring.environment import settings, variable


@cache
def notifier(of: Callable[[str], Any] = client) -> Notifier:
    """Creates the notifier. ``of``: returns a service's client."""
    return Notifier(
        deployment=settings().deployment,
        leashed=settings().leashed,
        events=variable(Variable.EVENTS_TABLE),
        changes=variable(Variable.CHANGES_TABLE),
        group_tags=variable(Variable.GROUP_TAGS_TABLE),
        state=variable(Variable.STATE_TABLE),
        change_table=chaos_tables.changes(of),
        queries=chaos_tables.event_queries(),
        bus=Bus(of("events"), variable(Variable.EVENT_BUS)),
        topic=Topic(of("sns"), variable(Variable.NEWS_TOPIC)),
    )


@cache
def redrive() -> Redrive:
    queue = Queue(quick_client("sqs"), variable(Variable.UNTOLD_QUEUE))
    return Redrive(queue, Streams(quick_client("dynamodbstreams")), notifier(quick_client), environment.now)
