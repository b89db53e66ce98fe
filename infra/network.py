"""Defines the network of fleets: the deployment's own, whose only way out is S3, or an existing one."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_route53resolver as resolver
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra import node_permissions
from infra.settings import DeploymentSettings
from troop.shared.variables import Variable

ADDRESSES = "10.0.0.0/16"
"""These can be in use elsewhere, because the network is not connected to any other."""

SUBNET_MASK = 19
"""8,187 nodes in a zone. Fixed, so that existing subnets keep their addresses when their number grows."""

NAMES_OF_VPC = ("*.compute.internal", "*.ec2.internal")
"""Private names of instances; the second ones are those of us-east-1."""


class Network(Construct):
    """Subnets for the launch of fleets.

    The deployment's own network has neither an internet gateway nor NAT, and costs nothing. In an existing network
    nothing is created or changed.

    Attributes:
        vpc_id: of the network.
        subnet_ids: of its subnets; the own network has one in each zone.
        vpc: the own network; None for an existing one.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: DeploymentSettings, results: s3.IBucket
    ) -> None:
        super().__init__(scope, construct_id)
        self.vpc: ec2.Vpc | None = None
        if settings.network:
            self.vpc_id, self.subnet_ids = settings.network.vpc, list(settings.network.subnets)
            return
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(ADDRESSES),
            availability_zones=_zones(settings.zones),
            nat_gateways=0,
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="Nodes", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=SUBNET_MASK
                )
            ],
            # This would take a function and a role that may change security groups. No role of Troop's may launch into
            # the default group, which carries no tag of a run.
            restrict_default_security_group=False,
        )
        endpoint = self.vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        chaos = settings.chaos
        for statement in node_permissions.endpoint(results, chaos.allowed_buckets, own_data=chaos.own_data):
            statement.add_principals(iam.AnyPrincipal())
            endpoint.add_to_policy(statement)
        if settings.dns_firewall:
            self._filter_names(self.vpc)
        self.vpc_id = self.vpc.vpc_id
        self.subnet_ids = [subnet.subnet_id for subnet in self.vpc.isolated_subnets]

    def _filter_names(self, vpc: ec2.Vpc) -> None:
        """Blocks all names but those of AWS and of the network. Security groups and routes do not filter the network's
        resolver, which asks name servers of anybody.
        """
        allowed = [f"*.{cdk.Aws.URL_SUFFIX}", *NAMES_OF_VPC]
        known = resolver.CfnFirewallDomainList(self, "KnownNames", domains=allowed)
        every = resolver.CfnFirewallDomainList(self, "AllNames", domains=["*"])
        rule = resolver.CfnFirewallRuleGroup.FirewallRuleProperty
        rules = [
            rule(
                action="ALLOW",
                firewall_domain_list_id=known.attr_id,
                priority=100,
                # AWS chooses the names that its own names lead to.
                firewall_domain_redirection_action="TRUST_REDIRECTION_DOMAIN",
            ),
            rule(action="BLOCK", firewall_domain_list_id=every.attr_id, priority=200, block_response="NXDOMAIN"),
        ]
        group = resolver.CfnFirewallRuleGroup(self, "Names", firewall_rules=rules)
        resolver.CfnFirewallRuleGroupAssociation(
            self, "NamesOfVpc", firewall_rule_group_id=group.attr_id, priority=1000, vpc_id=vpc.vpc_id
        )

    def environment(self) -> dict[Variable, str]:
        """Returns the variables with the network's ids for a function."""
        return {
            Variable.NETWORK_VPC: self.vpc_id,
            Variable.NETWORK_SUBNETS: cdk.Fn.join(",", self.subnet_ids),
            Variable.NETWORK_IS_OWN: str(self.vpc is not None).lower(),
        }


def _zones(zones: int | tuple[str, ...]) -> list[str]:
    """Returns a zone for each subnet, in their order.

    `make deploy` passes names. Without them CloudFormation takes the first zones of the account and region, because
    synth looks nothing up. It does so again at every update: if its answer has changed, a subnet would have to move to
    another zone with its addresses, and every update is refused.
    """
    return [cdk.Fn.select(zone, cdk.Fn.get_azs()) for zone in range(zones)] if isinstance(zones, int) else list(zones)
