"""Plays Run Command of Systems Manager for the instances of the account: documents, commands, and their agents.

The connection to an agent is a folder of the instance, see :mod:`local.account.inside.ssm_agent`. An instance is
managed once its agent has been alive; the host decides which instances have one. Every change of a status is two events
of EventBridge, at the moment of the change.

Not emulated: targets by tags, outputs in S3 or CloudWatch Logs, notifications, alarms of a command, and rates. Requests
that want them are refused.
"""

from __future__ import annotations

import json
import re
import threading
import time
import traceback
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from .config import ACCOUNT_ID, REGION, instance_arn
from .fault_documents import fault_documents
from .ssm_documents import Document, DocumentError, parse

FINAL = ("Success", "Failed", "TimedOut", "Cancelled")
_POLL_SECONDS = 0.1
_PING_LOST_SECONDS = 300.0
"""The time without a sign of life after which an agent is not connected; scaled like the waits of state machines."""
_LEAST_PING_LOST = 5.0
_DELIVERY_SECONDS = 3600
_OUTPUT, _STANDARD_OUTPUT, _STANDARD_ERROR, _COMMENT = 2500, 24_000, 8000, 100
_UNSUPPORTED = (
    *("Targets", "OutputS3Region", "OutputS3BucketName", "OutputS3KeyPrefix", "ServiceRoleArn", "NotificationConfig"),
    *("CloudWatchOutputConfig", "AlarmConfiguration", "DocumentHash", "DocumentHashType"),
)
_DETAILS = {"InProgress": "In Progress", "TimedOut": "Execution Timed Out"}
_OWNED = re.compile(r"arn:aws:ssm:[a-z0-9-]+:(\d*):document/(.+)")
_REFUSAL = 'echo "this instance has the network of its machine, which this fault would harm" >&2; exit 1\n'

Answer = dict[str, Any]


class Refusal(Exception):
    """AWS refuses a request. `code`: of the API."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Instances(Protocol):
    """What Run Command knows of the account's instances."""

    def is_live(self, instance_id: str) -> bool:
        """Checks whether an instance is pending or running."""

    def live(self) -> list[str]:
        """Returns the ids of all such instances."""

    def home(self, instance_id: str) -> Path:
        """Returns an instance's folder, also after its end."""

    def has_network(self, instance_id: str) -> bool:
        """Checks whether an instance has a network of its own."""


class Events(Protocol):
    """The default bus of EventBridge."""

    def send(self, source: str, kind: str, detail: Mapping[str, Any], resources: Sequence[str]) -> None:
        """Sends an event that happens now."""


@dataclass
class Invocation:
    """A command on one instance. `due`: when it is delivered. `delivered`: whether its agent could have it."""

    instance_id: str
    due: float
    delivered: bool = False
    status: str = "Pending"
    details: str = "Pending"
    steps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return self.status in FINAL


@dataclass
class Command:
    """A command, with its steps as they run on the instances."""

    command_id: str
    request: Mapping[str, Any]
    document: Document
    steps: list[dict[str, Any]]
    requested: float
    invocations: dict[str, Invocation]

    @property
    def delivery_ends(self) -> float:
        return self.requested + float(self.request.get("TimeoutSeconds", _DELIVERY_SECONDS))

    @property
    def expires(self) -> float:
        """The end of the total timeout: of the delivery, and of the execution."""
        return self.delivery_ends + float(sum(step["timeout"] for step in self.steps))

    @property
    def status(self) -> str:
        statuses = [one.status for one in self.invocations.values()]
        unlike = [one for one in statuses if one != "Success"]
        if all(one.is_over for one in self.invocations.values()):
            return unlike[0] if unlike else "Success"
        return "Pending" if set(statuses) == {"Pending"} else "InProgress"


@dataclass
class Orders:
    """What tests order. `lost_answers`: how many accepted commands are answered by an error; `late_seconds`: how much
    later commands are delivered.
    """

    lost_answers: int = 0
    late_seconds: float = 0.0


class RunCommand:
    """Run Command. Every method of an API's action takes its request, and returns its answer or raises Refusal."""

    def __init__(self, instances: Instances, events: Events, wait_scale: float = 1.0) -> None:
        self._orders = Orders()
        self._instances = instances
        self._events = events
        self._ping_lost = max(_LEAST_PING_LOST, _PING_LOST_SECONDS * wait_scale)
        self._aws = {name: parse(name, content, needs) for name, (content, needs) in fault_documents().items()}
        self._own: dict[str, list[Document]] = {}
        self._commands: dict[str, Command] = {}
        self._lock = threading.RLock()

    def start(self) -> None:
        """Starts the thread that delivers commands and reads the reports of agents."""
        threading.Thread(target=self._run, name="run-command", daemon=True).start()

    # Orders of tests

    def order(self, lost_answers: int, late_seconds: float) -> None:
        """Lets the next requests for commands go wrong, see :class:`Orders`."""
        with self._lock:
            self._orders = Orders(lost_answers, late_seconds)

    def let_run(self, instance_id: str, agent: bool, atd: bool) -> None:
        """Decides whether the agent and atd may run on an instance; those that must not are killed."""
        for name, may_run in (("agent-off", agent), ("atd-off", atd)):
            file = self._folder(instance_id) / name
            if may_run:
                file.unlink(missing_ok=True)
            else:
                file.touch()

    def kill_shell(self, instance_id: str, command_id: str) -> None:
        """Kills the shell of a command, as the kernel may when memory is short."""
        (self._folder(instance_id) / "kill-shell" / command_id).touch()

    # Documents

    def document_arn(self, name: str) -> str:
        """Returns the ARN of a document, for policies. Documents of AWS have no account."""
        if name.startswith("arn:"):
            return name
        return f"arn:aws:ssm:{REGION}:{'' if name in self._aws else ACCOUNT_ID}:document/{name}"

    def create_document(self, name: str, content: str | Mapping[str, Any]) -> None:
        """Creates a document of the account. Raises Refusal."""
        with self._lock:
            if name in self._own or name in self._aws:
                raise Refusal("DocumentAlreadyExists", f"Document with name {name} already exists.")
            self._own[name] = [_parsed(name, content)]

    def update_document(self, name: str, content: str | Mapping[str, Any]) -> None:
        """Adds a version to a document, which becomes its default. Raises Refusal."""
        with self._lock:
            if name not in self._own:
                raise Refusal("InvalidDocument", f"Document with name {name} does not exist.")
            self._own[name].append(_parsed(name, content))

    def delete_document(self, name: str) -> None:
        with self._lock:
            self._own.pop(name, None)

    def _document(self, named: str, version: str) -> Document:
        arn = _OWNED.fullmatch(named)
        account, name = (arn[1], arn[2]) if arn else (None, named)
        if name in self._aws and not account:
            versions = [self._aws[name]]
        elif name in self._own and account != "":
            versions = self._own[name]
        else:
            raise Refusal("InvalidDocument", f"Document with name {named} does not exist.")
        if version in ("$DEFAULT", "$LATEST"):
            return versions[-1]
        if not version.isdecimal() or not 1 <= int(version) <= len(versions):
            raise Refusal("InvalidDocumentVersion", f"Document {name} has no version {version}.")
        return versions[int(version) - 1]

    # Actions

    def send_command(self, request: Mapping[str, Any]) -> Answer:
        if wrong := [name for name in _UNSUPPORTED if request.get(name)]:
            raise Refusal("ValidationException", f"Local AWS does not have {', '.join(wrong)} of SendCommand.")
        if len(request.get("Comment", "")) > _COMMENT:
            raise Refusal("ValidationException", f"Comment has more than {_COMMENT} characters.")
        with self._lock:
            document = self._document(request["DocumentName"], request.get("DocumentVersion", "$DEFAULT"))
            ids = self._targets(request.get("InstanceIds") or ())
            try:
                steps = document.fill(request.get("Parameters") or {})
            except DocumentError as error:
                raise Refusal(error.code, str(error)) from None
            now = time.time()
            due = now + self._orders.late_seconds
            command = Command(
                str(uuid.uuid4()), request, document, steps, now, {one: Invocation(one, due) for one in ids}
            )
            self._commands[command.command_id] = command
            for invocation in command.invocations.values():
                self._changed(command, invocation)
            if self._orders.lost_answers:
                self._orders.lost_answers -= 1
                raise Refusal("InternalServerError", "An error occurred on the server side.")
            return {"Command": _shown(command)}

    def _targets(self, ids: Sequence[str]) -> Sequence[str]:
        if len(set(ids)) < len(ids):
            raise Refusal("DuplicateInstanceId", "An instance is named twice.")
        wrong = [one for one in ids if not self._instances.is_live(one) or self._pinged(one) is None]
        if wrong or not ids:
            raise Refusal("InvalidInstanceId", f"Instances {list(wrong)} not in a valid state for account {ACCOUNT_ID}")
        return ids

    def cancel_command(self, request: Mapping[str, Any]) -> Answer:
        with self._lock:
            command = self._commands.get(request["CommandId"])
            if command is None:
                raise Refusal("InvalidCommandId", "The specified command does not exist.")
            ids = request.get("InstanceIds") or list(command.invocations)
            if unknown := [one for one in ids if one not in command.invocations]:
                raise Refusal("InvalidInstanceId", f"The command was not sent to {unknown}.")
            for invocation in map(command.invocations.__getitem__, ids):
                if invocation.is_over:
                    continue
                if not invocation.delivered:
                    self._change(command, invocation, "Cancelled")
                    continue
                (self._folder(invocation.instance_id) / "cancel" / command.command_id).touch()
                if invocation.status != "Cancelling":
                    self._change(command, invocation, "Cancelling")
        return {}

    def list_command_invocations(self, request: Mapping[str, Any]) -> Answer:
        filters = {one["key"]: one["value"] for one in request.get("Filters") or ()}
        if filters.keys() - {"DocumentName"}:
            raise Refusal("InvalidFilterKey", "Local AWS has only the filter DocumentName of ListCommandInvocations.")
        with self._lock:
            listed = [
                _invocation(command, one, bool(request.get("Details")))
                for command in reversed(list(self._commands.values()))
                for one in command.invocations.values()
                if request.get("CommandId") in (None, command.command_id)
                and request.get("InstanceId") in (None, one.instance_id)
                and filters.get("DocumentName") in (None, command.request["DocumentName"])
            ]
        return _page("CommandInvocations", listed, request)

    def list_commands(self, request: Mapping[str, Any]) -> Answer:
        if request.get("Filters"):
            raise Refusal("InvalidFilterKey", "Local AWS has no filters of ListCommands.")
        with self._lock:
            listed = [
                _shown(command)
                for command in reversed(list(self._commands.values()))
                if request.get("CommandId") in (None, command.command_id)
                and request.get("InstanceId") in (None, *command.invocations)
            ]
        return _page("Commands", listed, request)

    def get_command_invocation(self, request: Mapping[str, Any]) -> Answer:
        with self._lock:
            command = self._commands.get(request["CommandId"])
            invocation = command.invocations.get(request["InstanceId"]) if command else None
            if command is None or invocation is None:
                raise Refusal("InvocationDoesNotExist", "The command was not sent to this instance.")
            names = [step["name"] for step in command.steps]
            name = request.get("PluginName") or (names[0] if len(names) == 1 else "")
            if name not in names:
                raise Refusal("InvalidPluginName", f"The document has the steps {names}: name one of them.")
            return _step_result(command, invocation, name)

    def describe_instance_information(self, request: Mapping[str, Any]) -> Answer:
        filters = {one["Key"]: one["Values"] for one in request.get("Filters") or ()}
        filters |= {one["key"]: one["valueSet"] for one in request.get("InstanceInformationFilterList") or ()}
        names = {"InstanceIds": "InstanceId", "PingStatus": "PingStatus", "PlatformTypes": "PlatformType"}
        names["ResourceType"] = "ResourceType"
        if unknown := filters.keys() - names.keys():
            raise Refusal("InvalidFilterKey", f"Local AWS has no filter {sorted(unknown)} of this action.")
        known = filter(None, map(self._information, sorted(self._instances.live())))
        listed = [one for one in known if all(one[names[key]] in values for key, values in filters.items())]
        return _page("InstanceInformationList", listed, request)

    def _information(self, instance_id: str) -> Answer | None:
        pinged = self._pinged(instance_id)
        if pinged is None:
            return None
        return {
            "InstanceId": instance_id,
            "PingStatus": "Online" if time.time() - pinged < self._ping_lost else "ConnectionLost",
            "LastPingDateTime": pinged,
            "AgentVersion": "3.3.0.0",
            "IsLatestVersion": True,
            "PlatformType": "Linux",
            "PlatformName": "Amazon Linux",
            "PlatformVersion": "2023",
            "ResourceType": "EC2Instance",
        }

    def _folder(self, instance_id: str) -> Path:
        return self._instances.home(instance_id) / "ssm"

    def _pinged(self, instance_id: str) -> float | None:
        pinged: float | None = _read(self._folder(instance_id) / "ping")
        return pinged

    # What happens between requests

    def _run(self) -> None:
        while True:
            time.sleep(_POLL_SECONDS)
            with self._lock:
                for command in list(self._commands.values()):
                    for invocation in command.invocations.values():
                        if not invocation.is_over:
                            self._follow_safely(command, invocation)

    def _follow_safely(self, command: Command, invocation: Invocation) -> None:
        try:
            self.follow(command, invocation, time.time())
        except Exception:  # noqa: BLE001 - the other commands must go on
            traceback.print_exc()

    def follow(self, command: Command, invocation: Invocation, now: float) -> None:
        """Takes the next step of an invocation: delivers it, reads its agent's report, or lets it time out."""
        folder = self._folder(invocation.instance_id)
        message = folder / "inbox" / f"{command.command_id}.json"
        if not invocation.delivered:
            if now > command.delivery_ends:
                self._change(command, invocation, "TimedOut", "Delivery Timed Out")
            elif now >= invocation.due and self._instances.is_live(invocation.instance_id):
                self._deliver(command, invocation, message)
            return
        if now > command.delivery_ends and invocation.status == "Pending" and message.exists():
            message.unlink(missing_ok=True)  # no agent has taken it
            self._change(command, invocation, "TimedOut", "Delivery Timed Out")
            return
        report = _read(folder / "outbox" / f"{command.command_id}.json")
        if report is not None and report["status"] in FINAL:
            invocation.steps = report["steps"]
            self._change(command, invocation, report["status"])
        elif report is not None and invocation.status == "Pending":
            self._change(command, invocation, "InProgress")
        elif now > command.expires:
            self._change(command, invocation, "TimedOut", "Delivery Timed Out")

    def _deliver(self, command: Command, invocation: Invocation, message: Path) -> None:
        steps = command.steps
        if command.document.needs_network and not self._instances.has_network(invocation.instance_id):
            steps = [{**step, "script": _REFUSAL} for step in steps]
        part = message.with_suffix(".part")
        part.write_text(json.dumps({"steps": steps}), encoding="utf-8")
        part.rename(message)
        invocation.delivered = True

    def _change(self, command: Command, invocation: Invocation, status: str, details: str = "") -> None:
        invocation.status, invocation.details = status, details or _DETAILS.get(status, status)
        self._changed(command, invocation)

    def _changed(self, command: Command, invocation: Invocation) -> None:
        detail: Answer = {
            "command-id": command.command_id,
            "document-name": command.document.name,
            "requested-date-time": _iso(command.requested),
        }
        where = [instance_arn(invocation.instance_id)]
        one = detail | {"instance-id": invocation.instance_id, "status": invocation.status}
        self._events.send("aws.ssm", "EC2 Command Invocation Status-change Notification", one, where)
        whole = detail | {"expire-after": _iso(command.expires), "status": command.status}
        whole["parameters"] = dict(command.request.get("Parameters") or {})
        self._events.send("aws.ssm", "EC2 Command Status-change Notification", whole, where)


def _parsed(name: str, content: str | Mapping[str, Any]) -> Document:
    try:
        return parse(name, content)
    except DocumentError as error:
        raise Refusal(error.code, str(error)) from None


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _shown(command: Command) -> Answer:
    done = [one for one in command.invocations.values() if one.is_over]
    return {
        "CommandId": command.command_id,
        "DocumentName": command.document.name,
        "DocumentVersion": command.request.get("DocumentVersion", "$DEFAULT"),
        "Comment": command.request.get("Comment", ""),
        "ExpiresAfter": command.expires,
        "Parameters": command.request.get("Parameters") or {},
        "InstanceIds": list(command.invocations),
        "RequestedDateTime": command.requested,
        "Status": command.status,
        "StatusDetails": _DETAILS.get(command.status, command.status),
        "TargetCount": len(command.invocations),
        "CompletedCount": len(done),
        "ErrorCount": len([one for one in done if one.status in ("Failed", "TimedOut")]),
        "DeliveryTimedOutCount": len([one for one in done if one.details == "Delivery Timed Out"]),
        "TimeoutSeconds": command.request.get("TimeoutSeconds", _DELIVERY_SECONDS),
    }


def _invocation(command: Command, invocation: Invocation, with_plugins: bool) -> Answer:
    return {
        "CommandId": command.command_id,
        "InstanceId": invocation.instance_id,
        "Comment": command.request.get("Comment", ""),
        "DocumentName": command.document.name,
        "DocumentVersion": command.request.get("DocumentVersion", "$DEFAULT"),
        "RequestedDateTime": command.requested,
        "Status": invocation.status,
        "StatusDetails": invocation.details,
        "CommandPlugins": [_plugin(invocation, step["name"]) for step in command.steps] if with_plugins else [],
    }


def _plugin(invocation: Invocation, name: str) -> Answer:
    step = _step(invocation, name)
    if step is None:
        return {"Name": name, **_unstarted(invocation), "ResponseCode": -1, "Output": ""}
    errors = f"\n----------ERROR-------\n{step['stderr']}" if step["stderr"] else ""
    return {
        "Name": name,
        "Status": step["status"],
        "StatusDetails": _DETAILS.get(step["status"], step["status"]),
        "ResponseCode": step["code"],
        "ResponseStartDateTime": step["began"],
        "ResponseFinishDateTime": step["ended"],
        "Output": (step["stdout"] + errors)[:_OUTPUT],
    }


def _step_result(command: Command, invocation: Invocation, name: str) -> Answer:
    step = _step(invocation, name)
    both = ("CommandId", "InstanceId", "Comment", "DocumentName", "DocumentVersion")
    shown = _invocation(command, invocation, with_plugins=False)
    shared: Answer = {key: shown[key] for key in both} | {"PluginName": name}
    if step is None:
        texts = ("StandardOutputContent", "StandardErrorContent", "ExecutionStartDateTime", "ExecutionEndDateTime")
        return shared | dict.fromkeys(texts, "") | _unstarted(invocation) | {"ResponseCode": -1}
    return shared | {
        "ResponseCode": step["code"],
        "ExecutionStartDateTime": _iso(step["began"]),
        "ExecutionEndDateTime": _iso(step["ended"]),
        "ExecutionElapsedTime": f"PT{step['ended'] - step['began']:.3f}S",
        "Status": step["status"],
        "StatusDetails": _DETAILS.get(step["status"], step["status"]),
        "StandardOutputContent": step["stdout"][:_STANDARD_OUTPUT],
        "StandardErrorContent": step["stderr"][:_STANDARD_ERROR],
    }


def _step(invocation: Invocation, name: str) -> dict[str, Any] | None:
    return next((one for one in invocation.steps if one["name"] == name), None)


def _unstarted(invocation: Invocation) -> Answer:
    """Returns the status of a step that has not run, or not ended: that of its command, as plugins have no others."""
    status = "InProgress" if invocation.status == "Cancelling" else invocation.status
    return {"Status": status, "StatusDetails": _DETAILS.get(status, invocation.details)}


def _page(name: str, listed: Sequence[Answer], request: Mapping[str, Any]) -> Answer:
    token = request.get("NextToken") or "0"
    if not token.isdecimal():
        raise Refusal("InvalidNextToken", "The specified token isn't valid.")
    start, size = int(token), request.get("MaxResults") or 50
    more = {"NextToken": str(start + size)} if start + size < len(listed) else {}
    return {name: list(listed[start : start + size]), **more}
