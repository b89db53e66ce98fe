"""Runs MiniStack with its patches: all services except EC2, Auto Scaling and load balancing."""

from __future__ import annotations

import sys

from .config import Config
from .endpoints import Endpoints
from .patches import (
    _executions,
    alarm_changes,
    alarm_relations,
    api_throttle,
    check_versions,
    cloudformation_alarm,
    cloudformation_custom,
    cloudformation_document,
    cloudformation_names,
    cloudformation_queries,
    cloudformation_record,
    cloudformation_schedule,
    cloudformation_secret,
    cloudformation_tags,
    cloudformation_templates,
    cloudformation_ttl,
    cloudformation_url,
    decision_log,
    endpoint_policies,
    lambda_credentials,
    lambda_errors,
    lambda_events,
    lambda_runtime,
    lambda_settings,
    lambda_start,
    lambda_workers,
    leading_keys,
    listeners,
    metric_dimensions,
    ministack_speed,
    node_credentials,
    policy_documents,
    precise_resources,
    queue_metrics,
    resource_types,
    root_key,
    s3_requests,
    scheduler,
    service_linked_roles,
    sqs_messages,
    sqs_queues,
    ssm_calendars,
    ssm_public,
    ssm_run_command,
    states_definitions,
    states_map,
    states_nested,
    states_retry,
    states_roles,
    states_start,
    states_stop,
    states_timeout,
    states_tokens,
    states_wait,
    supported_resources,
    unmapped_actions,
)
from .reference import Reference
from .request_filter import Door
from .run_command import RunCommand
from .schemas import Schemas
from .secret import Secrets


def patch(config: Config, drawn: Secrets, commands: RunCommand) -> None:
    """Applies every patch. Raises an error if one no longer fits."""
    check_versions()
    schemas, reference = Schemas(config.schemas), Reference(config.reference)
    ministack_speed.apply()
    listeners.apply()
    root_key.apply(drawn)
    lambda_credentials.apply()
    node_credentials.apply()
    api_throttle.apply()
    endpoint_policies.apply()
    decision_log.apply()
    leading_keys.apply()
    supported_resources.apply(reference)
    unmapped_actions.apply()
    lambda_errors.apply()
    lambda_events.apply()
    lambda_settings.apply()
    lambda_start.apply(config.run)
    lambda_workers.apply(lambda_runtime.apply(config.run))
    _executions.track()
    states_tokens.apply()
    states_roles.apply()
    states_stop.apply()
    states_timeout.apply()
    states_wait.apply()
    states_nested.apply()
    states_map.apply()
    states_retry.apply()
    states_start.apply()
    states_definitions.apply(schemas)
    scheduler.apply()
    service_linked_roles.apply()
    policy_documents.apply()
    s3_requests.apply()
    resource_types.apply(reference)
    ssm_public.apply()
    ssm_run_command.apply(commands)
    commands.start()
    ssm_calendars.apply()
    precise_resources.apply()
    alarm_changes.apply()
    alarm_relations.apply()
    metric_dimensions.apply()
    queue_metrics.apply()
    sqs_queues.apply()
    sqs_messages.apply()
    cloudformation_alarm.apply()
    cloudformation_custom.apply()
    cloudformation_document.apply(commands)
    cloudformation_schedule.apply()
    cloudformation_secret.apply(config.secret)
    cloudformation_names.apply()
    cloudformation_record.apply()
    cloudformation_tags.apply(schemas)
    cloudformation_templates.apply(schemas)
    cloudformation_ttl.apply()
    cloudformation_url.apply()
    cloudformation_queries.apply()


def run(endpoints: Endpoints) -> None:
    """Runs MiniStack's main behind the door, until it ends."""
    from ministack import app

    app.app = Door(app.app, endpoints)
    sys.argv = ["ministack"]
    app.main()
