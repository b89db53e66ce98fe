"""What Auto Scaling says of launches that fail, as AWS words it, and what Troop makes of it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from troop.bench.fleets.refusals import SPREAD, is_for_capacity, is_permanent, is_vain, launch_refusals, remedy

DIED = "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: "
FAILED = " Launching EC2 instance failed."

UNVERIFIED = [
    "PendingVerification - Your account is currently being verified. Verification normally takes less than 2 hours. "
    "Until your account is verified, you may not be able to launch additional instances." + FAILED,
    "Your account is currently being verified." + FAILED,
]
ON_THE_FREE_PLAN = [
    "The specified instance type is not eligible for Free Tier. For a list of Free Tier instance types, run "
    "'describe-instance-types' with the filter 'free-tier-eligible=true'." + FAILED,
    "Could not launch On-Demand Instances. InvalidParameterCombination - The specified instance type is not "
    "eligible for Free Tier." + FAILED,
    "InvalidParameterCombination: The instance type c7a.48xlarge is not eligible for Free Tier",
]
PERMANENT = [
    "You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket that the "
    "specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an "
    "adjustment to this limit." + FAILED,
    "You have requested more instances (21) than your current instance limit of 20 allows for the specified instance "
    "type. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit." + FAILED,
    "Your quota allows for 0 more running instance(s). You requested at least 1." + FAILED,
    "You have exceeded your maximum gp3 storage limit of 50 TiB in this region. Please contact AWS Support to request "
    "an Elastic Block Store service limit increase." + FAILED,
    "You have exceeded your maximum io2 iops limit in this region." + FAILED,
    DIED + "Client.VolumeLimitExceeded: Volume limit exceeded",
    DIED + "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state",
    DIED + "Client.InternalError: Client error on launch",
    "Your request for accessing resources in this region is being validated, and you will not be able to launch "
    "additional resources in this region until the validation is complete." + FAILED,
    *UNVERIFIED,
    *ON_THE_FREE_PLAN,
    "This account is currently blocked and not recognized as a valid account." + FAILED,
    "You are not authorized to perform this operation. Encoded authorization failure message: abc" + FAILED,
    "You are not subscribed to this service. Please go to http://aws.amazon.com to subscribe." + FAILED,
    "Invalid IAM Instance Profile name" + FAILED,
    "Invalid IamInstanceProfile: arn:aws:iam::123456789012:instance-profile/x" + FAILED,
    "There are not enough free addresses in subnet 'subnet-0123' to satisfy the requested number of instances."
    + FAILED,
    "The image id '[ami-0123]' does not exist" + FAILED,
    "The security group 'sg-0123' does not exist in VPC 'vpc-0123'" + FAILED,
    "The subnet ID 'subnet-0123' does not exist" + FAILED,
    "Your requested instance type (x8g.large) is not supported in your requested Availability Zone (us-east-1e)."
    + FAILED,
    "The requested configuration is currently not supported. Please check the documentation for supported "
    "configurations." + FAILED,
    "The architecture 'arm64' of the specified instance type does not match the architecture 'x86_64' of the specified "
    "AMI." + FAILED,
]
LACK_OF_VOLUMES = [
    "There is not enough capacity to fulfill your EBS volume provision request. You can try to provision a different "
    "volume type, EBS volume in a different availability zone, or you can wait." + FAILED,
    DIED + "Server.InsufficientVolumeCapacity: Insufficient volume capacity to satisfy instance launch request",
]
PASSING = [
    "We currently do not have sufficient c7g.large capacity in the Availability Zone you requested (us-east-1a). Our "
    "system will be working on provisioning additional capacity." + FAILED,
    "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request "
    "configuration. Please adjust your request and try again." + FAILED,
    "There is no Spot capacity available that matches your request." + FAILED,
    *LACK_OF_VOLUMES,
    "Request limit exceeded." + FAILED,
    "You have exceeded your maximum volume initialization rate." + FAILED,
    DIED + "Server.InternalError: Internal error on launch",
    "Access denied when attempting to assume role arn:aws:iam::123456789012:role/aws-service-role/"
    "autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling. You must use a valid fully-formed launch template.",
    "Access denied when attempting to assume role AutoScaling. Validating load balancer configuration failed.",
]
NO_SPOT = [
    "Could not launch Spot Instances. MaxSpotInstanceCountExceeded - Max spot instance count exceeded." + FAILED,
    "Could not launch Spot Instances. SpotMaxPriceTooLow - Your Spot request price is lower than the minimum required "
    "Spot request fulfillment price." + FAILED,
    "Could not launch Spot Instances. AuthFailure.ServiceLinkedRoleCreationNotPermitted - The provided credentials do "
    "not have permission to create the service-linked role for EC2 Spot Instances." + FAILED,
]


@pytest.mark.parametrize("message", PERMANENT)
def test_the_next_try_would_be_refused_as_well(message: str) -> None:
    assert is_permanent(message)
    assert is_vain(message)


@pytest.mark.parametrize("message", ON_THE_FREE_PLAN)
def test_a_refusal_of_the_free_plan_says_what_to_do(message: str) -> None:
    assert re.search("free plan.*free-tier-eligible,Values=true.*paid plan", remedy(message))


@pytest.mark.parametrize("message", UNVERIFIED)
def test_a_refusal_of_an_account_that_aws_verifies_says_what_to_do(message: str) -> None:
    assert "AWS still verifies this new account" in remedy(message)


def test_other_refusals_stay_as_aws_words_them() -> None:
    assert not any(remedy(message) for message in PERMANENT if message not in (*ON_THE_FREE_PLAN, *UNVERIFIED))


@pytest.mark.parametrize("message", LACK_OF_VOLUMES)
def test_another_zone_may_have_room_for_volumes(message: str) -> None:
    assert is_for_capacity(message)


@pytest.mark.parametrize("message", PASSING)
def test_temporary_refusal_is_not_permanent(message: str) -> None:
    assert not is_permanent(message)
    assert not is_vain(message)


@pytest.mark.parametrize("message", NO_SPOT)
def test_spot_that_never_comes_is_launched_on_demand(message: str) -> None:
    assert not is_permanent(message)
    assert is_vain(message)


def activity(status: str, message: str | None = None, description: str = "Launching a new EC2 instance") -> Any:
    """As DescribeScalingActivities has it; its message may be missing."""
    return {"StatusCode": status, "Description": description} | ({"StatusMessage": message} if message else {})


def test_a_refusal_of_rights_from_before_a_role_was_known_everywhere_is_not_believed() -> None:
    created = datetime(2026, 11, 20, 9, tzinfo=UTC)
    since = created + timedelta(seconds=SPREAD)
    denied = activity("Failed", "You are not authorized to perform this operation." + FAILED)
    no_quota = activity("Failed", "VolumeLimitExceeded." + FAILED)
    few_vcpus, no_vcpus = (
        activity("Failed", f"VcpuLimitExceeded: your current vCPU limit of {limit} allows" + FAILED)
        for limit in (32, 0)
    )
    early, late = ({"StartTime": created + timedelta(seconds=after)} for after in (5, SPREAD))
    assert list(launch_refusals([denied | late], settled_since=since)) == [denied["StatusMessage"]]
    assert list(launch_refusals([denied | early, few_vcpus | early, no_quota | early], settled_since=since)) == [
        no_quota["StatusMessage"]
    ]
    assert list(launch_refusals([no_vcpus | early], settled_since=since)) == [no_vcpus["StatusMessage"]]


KEY = DIED + "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state"


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (activity("Failed", "no"), ["no"]),
        (activity("Failed"), ["Launching a new EC2 instance"]),
        (activity("Failed", description=""), ["no reason given"]),
        (activity("Cancelled", KEY), [KEY]),
        (
            activity("Cancelled", description=f"Launching a new EC2 instance: i-01. Status Reason: {KEY}"),
            [f"Launching a new EC2 instance: i-01. Status Reason: {KEY}"],
        ),
        # Cancelled by a deletion, a smaller size, or a suspension.
        (activity("Cancelled", DIED + "Client.UserInitiatedShutdown: User initiated shutdown"), []),
        (activity("Cancelled", "Spot instance request: sir-01 has been cancelled."), []),
        (activity("Cancelled"), []),
        (activity("Failed", "no", "Terminating EC2 instance: i-01"), []),
        (activity("Successful"), []),
        (activity("PreInService"), []),
    ],
)
def test_failed_launches_and_instances_that_died_while_pending_tell_why(one: Any, expected: list[str]) -> None:
    assert list(launch_refusals([one])) == expected


def test_failures_before_the_last_success_are_ignored() -> None:
    seen = [
        activity("Cancelled", KEY),
        activity("Successful", description="Terminating EC2 instance: i-02"),
        activity("Failed", "no"),
        activity("Successful"),
        activity("Failed", "long ago"),
    ]
    assert list(launch_refusals(seen, since_success=True)) == [KEY, "no"]
    assert list(launch_refusals(seen)) == [KEY, "no", "long ago"]
