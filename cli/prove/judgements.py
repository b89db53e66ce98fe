"""Judges what AWS answered. Pure: evidence in, verdict and sentence out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cli.prove.model import Judgement, Verdict

ALLOWED = "DryRunOperation"
"""EC2's code for a dry run that the caller's permissions allow."""
SUCCESS = "success"
"""The code of a call without an error."""
FAILED_CONDITION = "PreconditionFailed"
"""S3's code for a condition that does not hold."""
DENIED = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"})
_ABSENT = frozenset({"NoSuchEntity", "NoSuchEntityException"})
_GONE_SECONDS = 80
"""The longest time that Troop gives a cancelled fault and its proof."""


def mapping_tags(evidence: Mapping[str, int]) -> Judgement:
    """Judges the number of event source mappings, and of those with the deployment's tag."""
    mappings, tagged = evidence["mappings"], evidence["tagged"]
    if not mappings:
        return Verdict.OPEN, "the stack has no event source mapping"
    return _verdict(tagged == mappings), f"{tagged} of {mappings} mappings have the tag of the stack"


def late_termination(evidence: Sequence[Mapping[str, Any]]) -> Judgement:
    """Judges dry runs on terminated instances of groups: their tags, and the code with Troop's condition."""
    if not evidence:
        return Verdict.OPEN, "no instance of a group was terminated in the last hour: ask again after troop terminate"
    refused = [one for one in evidence if one["code"] in DENIED]
    if refused:
        bare = sum(not one["has_tag"] for one in refused)
        return Verdict.NO, f"IAM refuses {len(refused)} of {len(evidence)}, of which {bare} have lost the tag"
    return Verdict.YES, f"IAM refuses none of {len(evidence)}"


def absent_role(code: str) -> Judgement:
    """Judges the code of GetRole for a service-linked role that does not exist."""
    if code in _ABSENT:
        return Verdict.YES, "IAM says that the role does not exist"
    return (Verdict.NO if code in DENIED else Verdict.OPEN), f"IAM answers {code}"


def alarm_states(evidence: Mapping[str, int]) -> Judgement:
    """Judges how many alarms on filled metrics are in each state."""
    if not evidence:
        return Verdict.OPEN, "the stack has no alarm on filled metrics"
    without_data = evidence.get("INSUFFICIENT_DATA", 0)
    return _verdict(not without_data), f"{without_data} of {sum(evidence.values())} alarms have insufficient data"


def attribute_condition(evidence: Mapping[str, str]) -> Judgement:
    """Judges dry runs that read an allowed and another attribute of an instance."""
    if not evidence:
        return Verdict.OPEN, "the region has no instance to ask about"
    allowed, other = evidence["allowed"], evidence["other"]
    if allowed == ALLOWED and other in DENIED:
        return Verdict.YES, "IAM allows the named attribute, and refuses user data"
    if allowed == ALLOWED and other == ALLOWED:
        return Verdict.NO, "IAM allows user data, too"
    if allowed in DENIED:
        return Verdict.OPEN, "IAM refuses the named attribute: the policy may be too new, ask again"
    return Verdict.OPEN, f"EC2 answers {allowed} and {other}"


def leading_keys(evidence: Mapping[str, str]) -> Judgement:
    """Judges writes of an allowed item and of the switch, alone and in transactions that check the other one."""
    if evidence["item"] in DENIED:
        return Verdict.OPEN, "IAM refuses also the allowed item: the policy may be too new, ask again"
    allowed = [name for name in ("switch", "switch_if_item") if evidence[name] == SUCCESS]
    if allowed:
        return Verdict.NO, f"IAM allows a write of the switch: {', '.join(allowed)}"
    if evidence["item_if_switch"] in DENIED:
        return Verdict.NO, "IAM refuses a transaction that only checks the switch: claims need another policy"
    as_expected = evidence["item"] == evidence["item_if_switch"] == SUCCESS
    if as_expected and {evidence["switch"], evidence["switch_if_item"]} <= DENIED:
        return Verdict.YES, "IAM allows a transaction that checks the switch, and none that writes it"
    return Verdict.OPEN, f"DynamoDB answers {', '.join(evidence.values())}"


def runtime(evidence: Mapping[str, str]) -> Judgement:
    """Judges the codes of ListLayers for the runtime and the processor; "" for an answer without error."""
    if DENIED & set(evidence.values()):
        return Verdict.OPEN, "you may not call lambda:ListLayers"
    refused = [f"{part} ({code})" for part, code in evidence.items() if code]
    return _verdict(not refused), f"Lambda refuses {', '.join(refused)}" if refused else "Lambda accepts both"


def crashes(evidence: Mapping[str, Any]) -> Judgement:
    """Judges events: crashes as requested, those that became shutdowns, and what AWS said of the latter."""
    direct, shut_down = evidence["without_shutdown"], evidence["with_shutdown"]
    if not direct + shut_down:
        return Verdict.OPEN, "no crash is on record: ask again after troop terminate"
    return _verdict(not shut_down), f"{direct} of {direct + shut_down} crashes had no shutdown"


def stack_failures(evidence: Sequence[str]) -> Judgement:
    """Judges the reasons for which resources of the stack failed."""
    if not evidence:
        return Verdict.YES, "no resource has failed"
    return Verdict.NO, f"{len(evidence)} resources have failed: see the evidence"


def completion(evidence: Sequence[Mapping[str, str]]) -> Judgement:
    """Judges steps, in order; each has a step and a status."""
    if not evidence:
        return Verdict.OPEN, "the stack has no network with two zones"
    failed = [one for one in evidence if one["status"] != "done"]
    if not failed:
        return Verdict.YES, f"all {len(evidence)} steps succeeded"
    step, status = failed[0]["step"], failed[0]["status"]
    if any(code in status for code in DENIED):
        return Verdict.OPEN, f"you lack a permission for: {step}"
    return Verdict.NO, f"failed: {step}"


def conditional_writes(evidence: Mapping[str, str]) -> Judgement:
    """Judges two writes whose condition holds, and two whose condition does not."""
    if DENIED & set(evidence.values()):
        return Verdict.OPEN, "you may not write the object"
    if SUCCESS in (evidence["exists"], evidence["other"]):
        return Verdict.NO, "S3 writes although a condition does not hold"
    detail = f"S3 answers {', '.join(evidence.values())}"
    if {evidence["exists"], evidence["other"]} != {FAILED_CONDITION}:
        return Verdict.OPEN, detail
    return _verdict(evidence["new"] == evidence["same"] == SUCCESS), detail


def fault_documents(evidence: Mapping[str, Mapping[str, Any]]) -> Judgement:
    """Judges AWS's documents: which there are, and whether their parameters are those that Troop sends."""
    codes = {name: one["code"] for name, one in evidence.items() if "code" in one}
    if DENIED & set(codes.values()):
        return Verdict.OPEN, "you may not call ssm:DescribeDocument"
    if codes:
        return Verdict.NO, f"AWS does not have {', '.join(sorted(codes))} here"
    changed = [f"{name} ({', '.join([*one['unknown'], *one['lacking']])})" for name, one in evidence.items()]
    changed = [text for text, one in zip(changed, evidence.values(), strict=True) if one["unknown"] or one["lacking"]]
    if changed:
        return Verdict.NO, f"other parameters than Troop sends: {', '.join(changed)}"
    return Verdict.YES, f"all {len(evidence)} are here, with the parameters that Troop sends"


def command_rate(evidence: Sequence[Mapping[str, Any]]) -> Judgement:
    """Judges the quotas that name SendCommand."""
    if not evidence:
        return Verdict.OPEN, "Service Quotas names no rate of SendCommand"
    least = min(one["value"] for one in evidence)
    return _verdict(least >= 1), f"the lowest is {least:g}"


def injections(evidence: Mapping[str, Any]) -> Judgement:
    """Judges the lasting faults on record, and how their ends were proven."""
    if not evidence["sent"]:
        return Verdict.OPEN, "no fault inside an instance is on record: ask again after troop terminate --method"
    counts = ", ".join(f"{count} {by}" for by, count in evidence["proofs"].items())
    return _verdict(not evidence["unproven"]), f"of {evidence['sent']} faults: {counts}"


def command_tag(evidence: Mapping[str, str]) -> Judgement:
    """Judges commands of roles that ask for the right tag, for another value, and for the name of the group."""
    if not evidence:
        return Verdict.OPEN, "no instance with the tag troop:inside is online, or troop:inside_instances is false"
    group = f"by the group's name: {evidence['group_name']}"
    if evidence["other_value"] not in {*DENIED, "AccessDenied"}:
        return Verdict.NO, f"IAM lets a command through that asks for another value: {evidence['other_value']}"
    if evidence["consented"] in {*DENIED, "AccessDenied"}:
        return Verdict.NO, f"IAM refuses an instance that consents; {group}"
    return _verdict(evidence["consented"] == "Success"), f"IAM checks the tag; {group}"


def faults(evidence: Mapping[str, Any]) -> Judgement:
    """Judges AWS's documents that were run and cancelled, and the request with an alarm."""
    if not evidence:
        return Verdict.OPEN, "the account has no default network here, or troop:inside_instances is false"
    gone = {one["fault"]: one["gone_after"] for one in evidence["faults"] if "gone_after" in one}
    other = [f"{one['fault']}: {one['status']}" for one in evidence["faults"] if "gone_after" not in one]
    alarm = f"with an alarm: {evidence['alarm']}"
    if other:
        return Verdict.NO, f"{'; '.join(other)}; {alarm}"
    times = ", ".join(f"{name} {seconds} s" for name, seconds in gone.items())
    return _verdict(max(gone.values()) <= _GONE_SECONDS), f"gone after the cancel: {times}; {alarm}"


def cells(evidence: Mapping[str, Any]) -> Judgement:
    """Judges how the cells of a run ended."""
    failed = [one for one in evidence["cells"] if one["status"] != "SUCCEEDED"]
    if failed:
        return Verdict.NO, "; ".join(f"{one['label'] or 'the run'}: {one['reason']}" for one in failed)
    return Verdict.YES, f"all {len(evidence['cells'])} parts of the run succeeded"


def spot(evidence: Mapping[str, Any]) -> Judgement:
    """Judges a run with a part on spot, and with one whose maximum price no spot node has."""
    verdict, detail = cells(evidence)
    if verdict is not Verdict.YES:
        return verdict, detail
    bought = Counter((one["label"], one["purchase"]) for one in evidence["nodes"])
    if bought["spot", "on-demand"]:
        return Verdict.OPEN, "spot had no capacity at the moment: ask again later"
    if bought["backup", "spot"]:
        return Verdict.OPEN, "there are spot nodes for the lowest price"
    if len({one["zone"] for one in evidence["nodes"] if one["label"] == "spot"}) != 2:
        return Verdict.NO, "the nodes on spot are not in two zones"
    return Verdict.YES, f"{bought['spot', 'spot']} nodes on spot, {bought['backup', 'on-demand']} in their place"


def node_checks(evidence: Sequence[Mapping[str, Any]]) -> Judgement:
    """Judges the checks on a node."""
    if not evidence:
        return Verdict.OPEN, "no program is built: the README of each benchmark says how"
    failed = [str(one["name"]) for one in evidence if not one["ok"]]
    if failed:
        return Verdict.NO, f"{len(failed)} of {len(evidence)} checks failed: {', '.join(failed)}"
    return Verdict.YES, f"all {len(evidence)} checks passed"


def _verdict(holds: bool) -> Verdict:
    return Verdict.YES if holds else Verdict.NO
