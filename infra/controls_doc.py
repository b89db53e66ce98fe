"""Generates the table of controls in docs/reference/security.md: ``python -m infra.controls_doc`` writes it.

cdk-nag finds which rules of known standards the stack does not meet. This module adds why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import aws_cdk as cdk
from cdk_nag import HIPAASecurityChecks, NIST80053R5Checks, PCIDSS321Checks

from infra.generated import filled, table
from infra.roles_doc import PATH
from infra.settings import PREFIX, read_settings, written_context
from infra.stack import TroopStack

STANDARDS = {"NIST.800.53.R5": "NIST", "PCI.DSS.321": "PCI", "HIPAA.Security": "HIPAA"}
"""The beginning of a rule's name -> the standard in the table."""

NOT_MET, MET_OTHERWISE, BY_CHOICE, WITH_KEY = "not met", "met otherwise", "by choice", "met with `troop:key`"

CONTROLS: Mapping[str, tuple[str, str]] = {
    "APIGWAssociatedWithWAF": (
        NOT_MET,
        "IAM authorises every request. A web ACL would cost more than the API, which only your own people "
        "and programs call. You can associate one with the stage",
    ),
    "APIGWCacheEnabledAndEncrypted": (
        "no data",
        "the API has no cache",
    ),
    "APIGWExecutionLoggingEnabled": (
        MET_OTHERWISE,
        "the function logs each request with its caller, and `troop:api_access_logs` logs those that IAM "
        "refuses. Execution logs also contain bodies, and API Gateway keeps them forever",
    ),
    "APIGWSSLEnabled": (
        "does not apply",
        "a certificate identifies API Gateway to an HTTP backend. Here the backend is a function, called with IAM",
    ),
    "CloudWatchLogGroupEncrypted": (
        WITH_KEY,
        "by default, keys of CloudWatch Logs encrypt the logs",
    ),
    "DynamoDBInBackupPlan": (
        MET_OTHERWISE,
        "all tables have point-in-time recovery for 35 days, and protection from deletion. You can add them "
        "to a plan of AWS Backup by the tag `troop:data`",
    ),
    "IAMNoInlinePolicy": (
        BY_CHOICE,
        "each role has exactly one purpose and one policy, which nobody can attach to another role, and is "
        "complete as soon as it exists",
    ),
    "LambdaConcurrency": (
        BY_CHOICE,
        "a reservation takes from the rest of the account, and fails a deployment in a new one. The "
        "workflows limit their concurrency",
    ),
    "LambdaDLQ": (
        MET_OTHERWISE,
        "workflows retry, and calls on schedule go to a dead-letter queue with an alarm",
    ),
    "LambdaInsideVPC": (
        BY_CHOICE,
        "the functions call AWS's own services only. In a VPC they would need an endpoint for each",
    ),
    "S3BucketLoggingEnabled": (
        NOT_MET,
        "access logs need a bucket that outlives what they report on. CloudTrail can log the objects' data events",
    ),
    "S3BucketReplicationEnabled": (
        BY_CHOICE,
        "objects expire, and are results or lists that a step passes to the next",
    ),
    "S3BucketVersioningEnabled": (
        BY_CHOICE,
        "no role overwrites what counts, and versions would keep what should expire",
    ),
    "S3DefaultEncryptionKMS": (
        WITH_KEY,
        "by default, keys of S3 encrypt the objects",
    ),
    "SNSEncryptedKMS": (
        WITH_KEY,
        "alarms cannot use the key of AWS, and name only the alarm and the runbook",
    ),
    "SecretsManagerRotationEnabled": (
        BY_CHOICE,
        "a new salt rolls again for units of the day, and earlier rolls can no longer be verified",
    ),
    "SecretsManagerUsingKMSKey": (
        WITH_KEY,
        "by default, the key of AWS encrypts the salt",
    ),
    "VPCDefaultSecurityGroupClosed": (
        BY_CHOICE,
        "it has no members, see [the default security group](#code-spending-and-network). With "
        "`troop:network` there is no such group",
    ),
    "VPCFlowLogsEnabled": (
        BY_CHOICE,
        "see [flow logs](#code-spending-and-network). With `troop:network` there is no such network",
    ),
}
"""Rule -> whether the stack meets what it is for, and why."""

Findings = Mapping[str, list[str]]
"""The standards by the rules of theirs that have findings."""


def text(document: str, findings: Findings) -> str:
    """Returns docs/reference/security.md with a current table.

    Args:
        document: as it is now.
        findings: of the default settings.
    """
    rows = [(f"`{rule}`", ", ".join(standards), *CONTROLS[rule]) for rule, standards in sorted(findings.items())]
    return filled(document, "controls", table(["rule", "standards", "status", "why"], rows))


def find(folder: Path, key: str | None = None) -> Findings:
    """Returns the findings in a deployment with the default settings and this ``troop:key``.

    Args:
        folder: for the synthesis.
    """
    context = written_context()
    app = cdk.App(context=context, outdir=str(folder))
    cdk.Validations.of(app).add_plugins(HIPAASecurityChecks(app), NIST80053R5Checks(app), PCIDSS321Checks(app))
    TroopStack(app, read_settings(context | {f"{PREFIX}key": key}))
    with suppress(RuntimeError):  # which says that there are findings
        app.synth()
    report = json.loads((folder / "validation-report.json").read_text())
    rules: dict[str, set[str]] = {}
    for violation in (one for plugin in report["pluginReports"] for one in plugin["violations"]):
        standard, _, rule = violation["ruleName"].partition("[")[0].partition("-")
        rules.setdefault(rule, set()).add(STANDARDS[standard])
    return {rule: sorted(standards) for rule, standards in rules.items()}


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        current = find(Path(temporary))
    PATH.write_text(text(PATH.read_text(encoding="utf-8"), current), encoding="utf-8")
