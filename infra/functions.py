"""Creates the Lambda functions of Troop: all from one asset, each with a role and a log group of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra import permissions
from infra.bundling import AGENT, archive, bundle
from infra.byte_code import PYTHON_VERSION
from infra.keys import data_key
from infra.logs import make_log_group
from infra.partitions import in_china, in_govcloud
from infra.release import release
from infra.roles import as_listed, drop_depends_on, make_role
from infra.settings import DeploymentSettings
from troop.shared.metrics import NAMESPACE
from troop.shared.release import FUNCTIONS_ASSET
from troop.shared.variables import Variable

RUNTIME = lambda_.Runtime.PYTHON_3_14
ARCHITECTURE = lambda_.Architecture.ARM_64


class Functions(Construct):
    """Creates the functions of a deployment, and contains them.

    Attributes:
        api_layer: pydantic.
        report_layer: renders HTML.
        by_name: all functions that it has created.
        roles, log_groups: by the function's name.
        release: the code of all functions.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: DeploymentSettings) -> None:
        super().__init__(scope, construct_id)
        if RUNTIME.name != f"python{PYTHON_VERSION}":
            raise ValueError(f"the layers are bundled for Python {PYTHON_VERSION}, the functions run on {RUNTIME.name}")
        self._settings = settings
        self.by_name: dict[str, lambda_.Function] = {}
        self.roles: dict[str, iam.Role] = {}
        self.log_groups: dict[str, logs.ILogGroup] = {}
        bundled = bundle(settings.bundle, settings.chaos_json)
        archives = bundled.archives()
        self.release = release(archives, bundled.code / AGENT)
        self._code = lambda_.Code.from_asset(str(archives[FUNCTIONS_ASSET]))
        archives["settings"] = archive(bundled.settings)
        self._runtime_layer, self.api_layer, self.report_layer, self._settings_layer = (
            self._layer(name, path=str(archives[name]), description=description)
            for name, description in {
                "runtime": "Required by every function",
                "api": "Required by the API",
                "report": "Renders HTML",
                "settings": "The deployment's settings, read by every function",
            }.items()
        )

    def reads_change_calendars(self) -> list[iam.PolicyStatement]:
        """Allows reading the SSM Change Calendars of the settings."""
        return permissions.change_calendars(cdk.Stack.of(self), self._settings.chaos.calendars.values())

    def reads_registrations(self) -> list[iam.PolicyStatement]:
        """Allows reading which instances Systems Manager reaches, if faults inside instances can happen."""
        return [permissions.registrations()] if self._settings.chaos.inside_instances else []

    def reads_earlier_faults(self, state: dynamodb.ITable) -> list[iam.PolicyStatement]:
        """Allows reading which instances had a fault before, if faults inside instances can happen."""
        reads = permissions.allow(["dynamodb:BatchGetItem"], state.table_arn)
        return [reads] if self._settings.chaos.inside_instances else []

    def make(
        self,
        name: str,
        statements: Sequence[iam.PolicyStatement],
        environment: Mapping[Variable, str],
        *,
        layers: Sequence[lambda_.ILayerVersion] = (),
        seconds: int,
        megabytes: int,
    ) -> lambda_.Function:
        """Creates the function whose handler is ``handlers.NAME.handler``.

        Every function has the layers of the runtime and of the settings; ``layers`` are further ones.

        Reserves no concurrency: a new account has so little that any reservation can fail the deployment, and the
        workflow limits its own concurrency.
        """
        title = name.title().replace("_", "")
        log_group = make_log_group(self, f"{title}Logs", self._settings)
        role = make_role(
            self,
            f"{title}Role",
            service="lambda.amazonaws.com",
            description=f"Runs Troop's function {name}",
            statements=[*statements, *permissions.function_telemetry(log_group)],
        )
        self.roles[name] = role
        self.log_groups[name] = log_group
        function = lambda_.Function(
            self,
            title,
            handler=f"handlers.{name}.handler",
            code=self._code,
            layers=[self._runtime_layer, *layers, self._settings_layer],
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            role=as_listed(role),
            timeout=cdk.Duration.seconds(seconds),
            memory_size=megabytes,
            environment={
                "POWERTOOLS_SERVICE_NAME": name,
                "POWERTOOLS_METRICS_NAMESPACE": NAMESPACE,
                "POWERTOOLS_LOG_LEVEL": "INFO",
                Variable.DEPLOYMENT.value: cdk.Aws.STACK_NAME,
                **({Variable.STAGE.value: self._settings.stage} if self._settings.stage else {}),
                **{name.value: value for name, value in environment.items()},
            },
            log_group=log_group,
            environment_encryption=data_key(self),
        )
        drop_depends_on(function)
        _where_there_is(function)
        self.by_name[name] = function
        return function

    def _layer(self, name: str, *, path: str, description: str) -> lambda_.LayerVersion:
        return lambda_.LayerVersion(
            self,
            f"{name.title()}Layer",
            code=lambda_.Code.from_asset(path),
            description=description,
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[ARCHITECTURE],
        )


def _where_there_is(function: lambda_.Function) -> None:
    """Enables Lambda's own logs as JSON, and active tracing, where they exist. GovCloud lacks JSON logs, and China
    does not document them; China lacks tracing. The functions' own logs are JSON everywhere.
    """
    resource = function.node.default_child
    if not isinstance(resource, lambda_.CfnFunction):
        raise TypeError(f"{function.node.path} is not a single resource")
    outside_china = cdk.Fn.condition_if(in_govcloud(function), "Text", "JSON")
    log_format = cdk.Fn.condition_if(in_china(function), "Text", outside_china)
    resource.add_property_override("LoggingConfig.LogFormat", log_format)
    tracing = cdk.Fn.condition_if(in_china(function), cdk.Aws.NO_VALUE, {"Mode": "Active"})
    resource.add_property_override("TracingConfig", tracing)
