"""Plays a queue of SQS with dead letters, and a bucket, as AWS documents them. Pure: time is an attribute."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from troop.measure.s3.credentials import Credentials, CredentialStore
from troop.measure.s3.web import Answer
from troop.work.service import Service

URL, BUCKET, RESULTS = "https://sqs.us-west-2.amazonaws.com/123456789012/troop-work", "results", "runs/r/results/"
MOST_SECONDS = 12 * 3600


@dataclass
class Held:
    """A message of the queue.

    Attributes:
        hidden_until: when others can receive it.
        receipt: of the last time it was received; empty before.
        received_at: moment of that.
    """

    id: str
    body: str
    hidden_until: float = 0.0
    receipt: str = ""
    received_at: float = 0.0
    count: int = 0


@dataclass
class ModelAccount:
    """The queue, its dead letters, and the objects.

    Attributes:
        now: seconds.
        lease, tries: of the queue.
        writes: how often each object was written.
        choose: picks one of several visible messages.
        requests: the operations, in order.
    """

    lease: int = 30
    tries: int = 5
    now: float = 1000.0
    messages: dict[str, Held] = field(default_factory=dict)
    dead: list[Held] = field(default_factory=list)
    objects: dict[str, tuple[bytes, dict[str, str]]] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    choose: Callable[[list[str]], str] = min

    def send(self, name: str, body: str = "") -> None:
        self.messages[name] = Held(name, json.dumps({"id": name, "body": body}))

    def result(self, name: str) -> bytes | None:
        stored = self.objects.get(RESULTS + name)
        return None if stored is None else stored[0]

    def is_visible(self, *names: str) -> bool:
        """Checks whether any worker can receive these tasks at once."""
        return all(self.messages[name].hidden_until <= self.now for name in names)

    @property
    def hidden_until(self) -> float | None:
        """When the next message can be received; None without messages."""
        return min((one.hidden_until for one in self.messages.values()), default=None)

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Answers a request of either service."""
        if target := headers.get("x-amz-target"):
            operation = target.rpartition(".")[2]
            self.requests.append(operation)
            return self._queue(operation, json.loads(body))
        self.requests.append(method)
        return self._object(method, path.removeprefix(f"/{BUCKET}").lstrip("/"), headers, body)

    def _queue(self, operation: str, document: dict[str, Any]) -> Answer:
        assert document["QueueUrl"] == URL
        if operation == "ReceiveMessage":
            assert document["MessageSystemAttributeNames"] == ["ApproximateReceiveCount"]
            return _json(200, {"Messages": messages} if (messages := self._receive()) else {})
        one = next((one for one in self.messages.values() if one.receipt == document["ReceiptHandle"]), None)
        if operation == "DeleteMessage":
            if one is not None:  # an old receipt is accepted, and removes nothing
                del self.messages[one.id]
            return _json(200, {})
        assert operation == "ChangeMessageVisibility"
        if document["ReceiptHandle"].partition("/")[0] not in self.messages:
            return _invalid("ReceiptHandle", "Message does not exist or is not available for the change.")
        if one is None or one.hidden_until <= self.now:
            return _json(400, {"__type": "com.amazonaws.sqs#MessageNotInflight", "message": "not in flight"})
        seconds = document["VisibilityTimeout"]
        if self.now + seconds > one.received_at + MOST_SECONDS:
            return _invalid("VisibilityTimeout", "Total VisibilityTimeout for the message is beyond the limit")
        one.hidden_until = self.now + seconds
        return _json(200, {})

    def _receive(self) -> list[dict[str, Any]]:
        while visible := sorted(name for name, one in self.messages.items() if one.hidden_until <= self.now):
            one = self.messages[self.choose(visible)]
            if one.count >= self.tries:
                self.dead.append(self.messages.pop(one.id))
                continue
            one.count, one.received_at, one.hidden_until = one.count + 1, self.now, self.now + self.lease
            one.receipt = f"{one.id}/{one.count}"
            attributes = {"ApproximateReceiveCount": str(one.count)}
            return [{"MessageId": one.id, "ReceiptHandle": one.receipt, "Body": one.body, "Attributes": attributes}]
        return []

    def _object(self, method: str, key: str, headers: Mapping[str, str], body: bytes) -> Answer:
        if method == "PUT":
            if headers.get("if-none-match") == "*" and key in self.objects:
                return Answer(412, b"<Error><Code>PreconditionFailed</Code></Error>", "")
            metadata = {name: value for name, value in headers.items() if name.startswith("x-amz-meta-")}
            self.objects[key], self.writes[key] = (body, metadata), self.writes.get(key, 0) + 1
            return Answer(200, b"", "")
        if key not in self.objects:
            return Answer(403, b"", "")  # as S3 answers who may not list the bucket
        content, metadata = self.objects[key]
        return Answer(200, b"" if method == "HEAD" else content, "", metadata)


def _invalid(parameter: str, reason: str) -> Answer:
    text = f"Value {'of hundreds of characters ' * 20} for parameter {parameter} is invalid. Reason: {reason}"
    return _json(400, {"__type": "com.amazon.coral.service#InvalidParameterValueException", "message": text})


def _json(status: int, document: dict[str, Any]) -> Answer:
    return Answer(status, json.dumps(document).encode(), "")


class NodeLostError(BaseException):
    """The node is lost in the middle of a request."""


class ModelService(Service):
    """Sends requests to a model in place of AWS.

    Args:
        fate: called before each request; what it returns happens: ``""``, ``"request lost"``, ``"answer lost"``,
            ``"node lost before"`` it takes effect, ``"node lost after"``, or an HTTP status.
    """

    def __init__(self, name: str, account: ModelAccount, fate: Callable[[], str]) -> None:
        store = CredentialStore(lambda: Credentials("AKIA", "secret"))
        super().__init__(name, "us-west-2", "https://host", store, sleep=lambda _: None)
        self._account, self._fate = account, fate

    def _send(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        fate = self._fate()
        if fate == "request lost":
            raise ConnectionResetError(fate)
        if fate == "node lost before":
            raise NodeLostError
        if fate.isdigit():
            return Answer(int(fate), b"", "")
        answer = self._account.answer(method, path, headers, body)
        if fate == "answer lost":
            raise ConnectionResetError(fate)
        if fate == "node lost after":
            raise NodeLostError
        return answer
