"""Defines the environment variables of functions, which the stack sets and the wiring reads."""

from __future__ import annotations

from enum import StrEnum


class Variable(StrEnum):
    """Names of tables, buckets and the like, and ARNs of what functions call. infra/ defines which functions have
    which.
    """

    DEPLOYMENT = "TROOP_DEPLOYMENT"
    """The function's deployment. Without it failures are logged, but not counted."""
    STAGE = "TROOP_STAGE"
    """The deployment's stage; not set without one. Scripts on nodes have it, too."""
    RELEASE = "TROOP_RELEASE"
    """The release, as a JSON document of :class:`troop.shared.release.Release`."""

    GROUP_TAGS_TABLE = "TROOP_GROUP_TAGS_TABLE"
    EVENTS_TABLE = "TROOP_EVENTS_TABLE"
    STATE_TABLE = "TROOP_STATE_TABLE"
    DECISIONS_TABLE = "TROOP_DECISIONS_TABLE"
    CHANGES_TABLE = "TROOP_CHANGES_TABLE"
    RUNS_TABLE = "TROOP_RUNS_TABLE"

    WORK_BUCKET = "TROOP_WORK_BUCKET"
    RESULTS_BUCKET = "TROOP_RESULTS_BUCKET"
    SALT_SECRET = "TROOP_SALT_SECRET"

    CHAOS_MACHINE = "TROOP_CHAOS_MACHINE"
    ON_DEMAND_MACHINE = "TROOP_ON_DEMAND_MACHINE"
    BENCHMARK_MACHINE = "TROOP_BENCHMARK_MACHINE"
    FLEET_MACHINE = "TROOP_FLEET_MACHINE"
    TEARDOWN_MACHINE = "TROOP_TEARDOWN_MACHINE"
    FLEET_FUNCTION = "TROOP_FLEET_FUNCTION"
    REPORT_FUNCTION = "TROOP_REPORT_FUNCTION"
    REQUEST_FUNCTION = "TROOP_REQUEST_FUNCTION"
    """The function that requests hits on units under load; the stack sets it only with the setting ``under_load``."""

    RISKS_FUNCTION = "TROOP_RISKS_FUNCTION"
    START_FUNCTION = "TROOP_START_FUNCTION"
    RUN_SCHEDULE_GROUP = "TROOP_RUN_SCHEDULE_GROUP"
    RUN_SCHEDULE_ROLE = "TROOP_RUN_SCHEDULE_ROLE"
    RUN_SCHEDULE_UNDELIVERED = "TROOP_RUN_SCHEDULE_UNDELIVERED"

    SCHEDULE_GROUP = "TROOP_SCHEDULE_GROUP"
    UNDELIVERED_QUEUE = "TROOP_UNDELIVERED_QUEUE"
    TICK_MINUTES = "TROOP_TICK_MINUTES"
    OTHER_SCHEDULES = "TROOP_OTHER_SCHEDULES"

    PROBE_DOCUMENT = "TROOP_PROBE_DOCUMENT"
    """The name of the stack's document that reads on an instance."""
    BACKSTOP_GROUP = "TROOP_BACKSTOP_GROUP"
    BACKSTOP_ROLE = "TROOP_BACKSTOP_ROLE"
    """The schedule group and the role's ARN of the schedules that outlive a lost workflow. They call the function that
    creates them, whose ARN Lambda passes with each call.
    """

    EVENT_BUS = "TROOP_EVENT_BUS"
    NEWS_TOPIC = "TROOP_NEWS_TOPIC"
    UNTOLD_QUEUE = "TROOP_UNTOLD_QUEUE"
    ACT_NOW_TOPIC = "TROOP_ACT_NOW_TOPIC"
    WARNING_TOPIC = "TROOP_WARNING_TOPIC"
    RUNBOOK = "TROOP_RUNBOOK"
    """Where people read the runbook: a path or an URL."""

    NETWORK_VPC = "TROOP_NETWORK_VPC"
    NETWORK_SUBNETS = "TROOP_NETWORK_SUBNETS"
    """The ids of the subnets, separated by commas."""
    NETWORK_IS_OWN = "TROOP_NETWORK_IS_OWN"
    """``true`` if the deployment has created the network, otherwise ``false``."""
    NODE_PROFILE = "TROOP_NODE_PROFILE"
    NODE_ROLE_ID = "TROOP_NODE_ROLE_ID"
    DATA_KEY = "TROOP_DATA_KEY"
    """The ARN of the deployment's own KMS key; not set without one."""

    DEPLOYMENT_FILE = "TROOP_DEPLOYMENT_FILE"
    AGENT_FILE = "TROOP_AGENT_FILE"
    """Paths of the settings and of the agent, elsewhere than in the settings' layer and beside the handlers; the stack
    does not set them.
    """
