"""Adds SSM Change Calendars, which MiniStack lacks: `CreateDocument`, `DeleteDocument` and `GetCalendarState`."""

from __future__ import annotations

import datetime as dt
import json
import re
from typing import Any

from ministack.core import iam_actions
from ministack.core.responses import AccountRegionScopedDict, error_response_json, get_region, json_response
from ministack.services import ssm

from .. import change_calendars
from ..config import ACCOUNT_ID
from ._wrap import wrap

_documents = AccountRegionScopedDict()
_TYPE = "ChangeCalendar"
_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,128}")
_TIME = "%Y-%m-%dT%H:%M:%SZ"


def apply() -> None:
    actions = {"CreateDocument": _create, "DeleteDocument": _delete, "GetCalendarState": _state}

    @wrap(ssm, "handle_request")
    async def handle(original: Any, method: str, path: str, headers: Any, body: Any, query: Any) -> Any:
        action = actions.get(headers.get("x-amz-target", "").rpartition(".")[2])
        return action(json.loads(body)) if action else await original(method, path, headers, body, query)

    @wrap(iam_actions, "extract_resource_arn")
    def extract(
        original: Any, service: str, method: str, path: str, headers: Any, body: Any, *request: Any, **more: Any
    ) -> str:
        if service == "ssm" and headers.get("x-amz-target", "").rpartition(".")[2] in actions:
            # IAM checks each calendar; here only the first, because Troop names one in a request.
            data = json.loads(body)
            name = str(data.get("Name") or data["CalendarNames"][0])
            return name if name.startswith("arn:") else f"arn:aws:ssm:{get_region()}:{ACCOUNT_ID}:document/{name}"
        return str(original(service, method, path, headers, body, *request, **more))


def _create(data: dict[str, Any]) -> Any:
    name = data.get("Name", "")
    if data.get("DocumentType") != _TYPE or data.get("DocumentFormat") != "TEXT" or not _NAME.fullmatch(name):
        return error_response_json("InvalidDocumentContent", "The local account has Change Calendars only.", 400)
    if name in _documents:
        return error_response_json("DocumentAlreadyExists", "The specified document already exists.", 400)
    _documents[name] = data["Content"]
    return json_response({"DocumentDescription": {"Name": name, "DocumentType": _TYPE, "Status": "Active"}})


def _delete(data: dict[str, Any]) -> Any:
    if _documents.pop(data["Name"], None) is None:
        return error_response_json("InvalidDocument", "The specified document does not exist.", 400)
    return json_response({})


def _state(data: dict[str, Any]) -> Any:
    at = dt.datetime.now(dt.UTC).replace(microsecond=0)
    if text := data.get("AtTime"):
        at = dt.datetime.fromisoformat(text)
    states = []
    for name in data["CalendarNames"]:
        content = _documents.get(name.rpartition("/")[2])
        if content is None:
            return error_response_json("InvalidDocument", "The specified document does not exist.", 400)
        try:
            states.append(change_calendars.state(content, at))
        except change_calendars.CalendarError as error:
            return error_response_json(error.code, str(error), 400)
    changes = [change for _, change in states if change]
    answer = {"State": "OPEN" if all(is_open for is_open, _ in states) else "CLOSED", "AtTime": at.strftime(_TIME)}
    return json_response(answer | ({"NextTransitionTime": min(changes).strftime(_TIME)} if changes else {}))
