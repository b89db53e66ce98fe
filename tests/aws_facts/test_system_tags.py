"""Tags whose names begin with ``aws:``: which service sets them on which resources."""

from __future__ import annotations

import pytest

from tests.aws_facts.code import system_tags
from tests.aws_facts.sources import text_of
from tests.infra.registry import schema

ON_INSTANCES = {
    "aws:autoscaling:groupName": "Tag Auto Scaling groups and instances - Amazon EC2 Auto Scaling",
    "aws:ec2launchtemplate:id": "Launch EC2 instances using a launch template - Amazon Elastic Compute Cloud",
    "aws:ec2:fleet-id": "Launching EC2 Spot Instances via EC2 Fleet - EC2 Spot Workshops",
    "aws:ec2spot:fleet-request-id": "Best practices and strategies - Tagging AWS Resources and Tag Editor",
    "aws:elasticmapreduce:job-flow-id": "Tag clusters - Amazon EMR",
}
"""The title of the page that says so, by tag."""
ON_SNAPSHOTS = {
    "aws:backup:source-resource": "AWSBackupServiceRolePolicyForRestores - AWS Managed Policy",
}
FROM_CLOUDFORMATION = {"aws:cloudformation:stack-id": "AWS::SecretsManager::Secret"}
"""The type of the resources of which the code reads the tag, by tag."""


def test_every_system_tag_has_a_source() -> None:
    named = {tag for _, tag in system_tags()}
    assert named >= ON_INSTANCES.keys(), "the tags are no longer found"
    assert named <= ON_INSTANCES.keys() | ON_SNAPSHOTS.keys() | FROM_CLOUDFORMATION.keys()


@pytest.mark.parametrize(("tag", "kind"), FROM_CLOUDFORMATION.items())
def test_cloudformation_sets_its_tags_where_the_registry_says_so(tag: str, kind: str) -> None:
    assert schema(kind)["tagging"]["cloudFormationSystemTags"] is True


def test_nobody_else_can_set_them() -> None:
    assert "May not begin with aws:" in text_of("ec2 Tag.Key")
