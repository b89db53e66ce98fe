"""Defines the role of fleets' nodes."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra import node_permissions
from infra.roles import make_role
from infra.settings import DeploymentSettings

SERVICE = f"ec2.{cdk.Aws.URL_SUFFIX}"
"""EC2's service name differs in China; other services have the same name everywhere."""


class Nodes(Construct):
    """The role of nodes, and the instance profile through which EC2 passes it to them.

    Attributes:
        role: the permissions of every node of every run.
        profile: names the role in launch templates.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: DeploymentSettings, results: s3.IBucket, vpc: str
    ) -> None:
        super().__init__(scope, construct_id)
        self.role = make_role(
            self,
            "Role",
            service=SERVICE,
            description="Runs benchmarks on the nodes of Troop's fleets",
            statements=node_permissions.node(
                results,
                settings.chaos.allowed_buckets,
                vpc,
                own_data=settings.chaos.own_data,
                queues=settings.chaos.queues,
            ),
        )
        self.profile = iam.InstanceProfile(self, "Profile", role=self.role)
