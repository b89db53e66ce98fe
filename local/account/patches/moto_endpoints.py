"""Emulates interface endpoints of SQS: their states, names, network interfaces, client tokens and pages.

moto's are available at once, have no security groups on their network interfaces and one name, and are described for
ever once they are deleted. It ignores client tokens, and its lists have no pages. Gateway endpoints stay moto's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from ministack.core import iam_evaluator
from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.vpcs import VPCBackend, VPCEndPoint
from moto.ec2.responses import EC2Response
from moto.ec2.utils import generic_filter, random_vpc_ep_id

from ..config import REGION
from ..delays import Delays
from ..endpoints import AVAILABLE, INTERFACE, SERVICE, SERVICE_NAME
from ._wrap import wrap

_ZONE = "Z7HUB22UULQXV"
"""AWS's hosted zone of the names of endpoints in this Region."""
_MOST = 1000
_LONGEST_POLICY = 20_480
_FILTERS = frozenset(
    {"service-name", "tag-key", "vpc-endpoint-id", "vpc-endpoint-state", "vpc-endpoint-type", "vpc-id"}
)
_PENDING, _DELETING = "pending", "deleting"

Token = tuple[str, dict[str, Any]]
"""The parameters of a creation as text, and its answer."""


class InterfaceEndpoint(VPCEndPoint):  # type: ignore[misc]  # moto has no types
    """An interface endpoint. Its creation makes a network interface in each of its subnets."""

    def __init__(self, backend: Any, subnets: list[Any], groups: list[str], **parameters: Any) -> None:
        identifier = random_vpc_ep_id()
        interfaces = [
            backend.create_network_interface(
                one.id, "", group_ids=groups, description=f"VPC Endpoint Interface {identifier}"
            )
            for one in subnets
        ]
        for one in interfaces:
            one.interface_type, one.requester_managed, one.status = "vpc_endpoint", True, "in-use"
        super().__init__(
            backend,
            identifier,
            endpoint_type=INTERFACE,
            route_table_ids=[],
            subnet_ids=[one.id for one in subnets],
            network_interface_ids=[one.id for one in interfaces],
            security_group_ids=groups,
            **parameters,
        )
        self.state = _PENDING
        self.zones = [one.availability_zone for one in subnets]

    @property
    def vpc_endpoint_id(self) -> str:
        """Returns the value of the filter ``vpc-endpoint-id``."""
        return str(self.id)

    def _names(self) -> Iterator[str]:
        """Yields the names of the endpoint: the one of all zones first."""
        domain = f"{SERVICE}.{REGION}.vpce.amazonaws.com"
        unique = f"{self.id}-{self.id[-8:]}"
        yield f"{unique}.{domain}"
        yield from (f"{unique}-{zone}.{domain}" for zone in self.zones)

    def description(self) -> dict[str, Any]:
        return {
            "VpcEndpointId": self.id,
            "VpcEndpointType": INTERFACE,
            "VpcId": self.vpc_id,
            "ServiceName": self.service_name,
            "State": self.state,
            "PolicyDocument": self.policy_document,
            "RouteTableIds": [],
            "SubnetIds": self.subnet_ids,
            "Groups": self.groups,
            "IpAddressType": "ipv4",
            "PrivateDnsEnabled": False,
            "RequesterManaged": False,
            "NetworkInterfaceIds": self.network_interface_ids,
            "DnsEntries": [{"DnsName": name, "HostedZoneId": _ZONE} for name in self._names()],
            "CreationTimestamp": self.creation_timestamp,
            "Tags": [{"Key": tag["key"], "Value": tag["value"]} for tag in self.get_tags()],
            "OwnerId": self.owner_id,
            "ServiceRegion": REGION,
        }


@cache
def apply(delays: Delays) -> None:
    """Applies the patch. `delays`: until a new endpoint is available, and one that is deleted is gone."""

    @wrap(EC2Response, "create_vpc_endpoint")
    def create(original: Callable[..., Any], self: Any) -> Any:
        return _create(self, delays) if self._get_param("VpcEndpointType") == INTERFACE else original(self)

    @wrap(VPCBackend, "describe_vpc_endpoint_services")
    def services(original: Callable[..., Any], self: Any, *, filters: list[dict[str, Any]], **others: Any) -> Any:
        """Lists services; moto looks for the values of a filter under another name than its own parser's."""
        return original(self, filters=[{"Value": one.get("Values", []), **one} for one in filters], **others)

    def delete(self: Any) -> ActionResult:
        backend, unsuccessful = self.ec2_backend, []
        for identifier in self._get_param("VpcEndpointIds", []):
            endpoint = backend.vpc_end_points.get(identifier)
            if endpoint is None:
                message = f"The Vpc Endpoint Id '{identifier}' does not exist"
                error = {"Code": "InvalidVpcEndpoint.NotFound", "Message": message}
                unsuccessful.append({"ResourceId": identifier, "Error": error})
            elif isinstance(endpoint, InterfaceEndpoint):
                endpoint.state = _DELETING
                delays.later(lambda gone=endpoint: _finish(backend, gone))  # type: ignore[misc]
            else:
                backend.delete_vpc_endpoints([identifier])
                del backend.vpc_end_points[identifier]
        return ActionResult({"Unsuccessful": unsuccessful})

    EC2Response.delete_vpc_endpoints = delete
    EC2Response.describe_vpc_endpoints = _describe
    EC2Response.modify_vpc_endpoint = _modify


def _create(self: Any, delays: Delays) -> ActionResult:
    backend, token = self.ec2_backend, self._get_param("ClientToken")
    parameters = json.dumps({name: values for name, values in self.querystring.items() if name != "ClientToken"})
    tokens: dict[str, Token] = backend.__dict__.setdefault("endpoint_tokens", {})
    if token and token in tokens:
        earlier, answer = tokens[token]
        if earlier != parameters:
            message = f"The token '{token}' was used for a request with other parameters."
            raise EC2ClientError("IdempotentParameterMismatch", message)
        return ActionResult(answer)
    endpoint = _new(self)
    backend.vpc_end_points[endpoint.id] = endpoint
    answer = {"VpcEndpoint": endpoint.description(), "ClientToken": token}
    if token:
        tokens[token] = parameters, answer
    delays.later(lambda: _open(endpoint))
    return ActionResult(answer)


def _new(self: Any) -> InterfaceEndpoint:
    backend, service, vpc = self.ec2_backend, self._get_param("ServiceName"), self._get_param("VpcId")
    if service != SERVICE_NAME:
        raise EC2ClientError("InvalidServiceName", f"The Vpc Endpoint Service '{service}' does not exist")
    backend.get_vpc(vpc)
    subnets = [backend.get_subnet(one) for one in self._get_param("SubnetIds", [])]
    for number, one in enumerate(subnets):
        if one.vpc_id != vpc:
            raise EC2ClientError("InvalidParameter", f"Subnet {one.id} does not belong to VPC {vpc}")
        if one.availability_zone in [other.availability_zone for other in subnets[:number]]:
            message = f"Found another VPC endpoint subnet in the availability zone of {one.id}."
            raise EC2ClientError("DuplicateSubnetsInSameZone", message)
    policy = self._get_param("PolicyDocument")
    if policy and (problem := _problem(policy)):
        raise EC2ClientError("InvalidPolicyDocument", f"Invalid policy document: {problem}")
    if self._get_bool_param("PrivateDnsEnabled", if_none=True):
        raise EC2ClientError("UnsupportedOperation", "endpoints have no private name in local AWS")
    return InterfaceEndpoint(
        backend,
        subnets,
        _groups(backend, vpc, self._get_param("SecurityGroupIds", [])),
        vpc_id=vpc,
        service_name=service,
        policy_document=policy,
        private_dns_enabled=False,
        tags=self._parse_tag_specification().get("vpc-endpoint", {}),
    )


def _problem(policy: str) -> str | None:
    """Returns why an endpoint cannot have a policy; None if it can."""
    if len(policy) > _LONGEST_POLICY:
        return f"it has more than {_LONGEST_POLICY} characters"
    if problem := iam_evaluator.validate_policy_document(policy):
        return str(problem)
    statements = json.loads(policy)["Statement"]
    named = ("Principal" in one for one in ([statements] if isinstance(statements, dict) else statements))
    return None if all(named) else "a statement has no Principal"


def _groups(backend: Any, vpc: str, named: list[str]) -> list[str]:
    """Returns the ids of an endpoint's security groups: by default, the network's default group."""
    if not named:
        return [group.id for group in backend.groups[vpc].values() if group.name == "default"]
    for identifier in named:
        group = backend.get_security_group_from_id(identifier)
        if group is None:
            message = f"The security group '{identifier}' does not exist"
            raise EC2ClientError("InvalidSecurityGroupID.NotFound", message)
        if group.vpc_id != vpc:
            raise EC2ClientError("InvalidParameter", f"Security group {identifier} does not belong to VPC {vpc}")
    return named


def _open(endpoint: InterfaceEndpoint) -> None:
    if endpoint.state == _PENDING:
        endpoint.state = AVAILABLE


def _finish(backend: Any, endpoint: InterfaceEndpoint) -> None:
    if backend.vpc_end_points.pop(endpoint.id, None) is not None:
        backend.delete_tags([endpoint.id], {})
        for identifier in endpoint.network_interface_ids:
            backend.enis.pop(identifier, None)


def _describe(self: Any) -> ActionResult:
    known, filters = self.ec2_backend.vpc_end_points, self._filters_from_querystring()
    if unknown := [one for one in filters if one not in _FILTERS and not one.startswith("tag:")]:
        raise EC2ClientError("InvalidParameterValue", f"The filter '{unknown[0]}' is invalid")
    named = self._get_param("VpcEndpointIds", [])
    for identifier in named:
        if identifier not in known:
            message = f"The Vpc Endpoint Id '{identifier}' does not exist"
            raise EC2ClientError("InvalidVpcEndpointId.NotFound", message)
    matching = generic_filter(filters, [known[one] for one in named] if named else list(known.values()))
    token = self._get_param("NextToken") or "0"
    if not token.isdecimal():
        raise EC2ClientError("InvalidNextToken", f"The token '{token}' is invalid")
    start = int(token)
    end = start + min(self._get_int_param("MaxResults") or _MOST, _MOST)
    page = [one.description() if isinstance(one, InterfaceEndpoint) else one for one in matching[start:end]]
    return ActionResult({"VpcEndpoints": page, "NextToken": str(end) if end < len(matching) else None})


def _modify(_self: Any) -> ActionResult:
    raise EC2ClientError("UnsupportedOperation", "endpoints are not modified in local AWS")
