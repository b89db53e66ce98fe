"""Parses a file with pydantic and converts its errors to :class:`troop.bench.definition.problems.Problem`."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from troop.bench.definition.keys import NotAllowedError
from troop.bench.definition.problems import MOST_PROBLEMS, Place, Problem, shown
from troop.bench.file.fields import Description, Part
from troop.shared.values import spelling

_Model = TypeVar("_Model", bound=BaseModel)

_KINDS = {
    "model_type": "a mapping of keys to values",
    "dict_type": "a mapping of keys to values",
    "list_type": "a list",
}


def parse_structure(document: Any, model: type[_Model]) -> tuple[_Model | None, list[Problem]]:
    """Returns the parsed file, or None and its first problems. Does not check relations between values.

    Args:
        model: of the whole file.
    """
    try:
        return model.model_validate(document), []
    except ValidationError as refused:
        errors = refused.errors(include_url=False)
        return None, [_problem(dict(error), model) for error in errors[:MOST_PROBLEMS]]


def _problem(error: Mapping[str, Any], model: type[BaseModel]) -> Problem:
    # pydantic adds "[key]" after a mapping's key that is not allowed.
    place: Place = tuple(part for part in error["loc"] if part != "[key]")
    description = f"is {shown(error['input'])}"
    match error["type"]:
        case "missing":
            return Problem(place, "is missing", f"set ({_description(place, model)})")
        case "extra_forbidden":
            part, key = _inner(place[:-1], model), str(place[-1])
            if issubclass(part, Part) and (why := part.elsewhere.get(key)):
                return Problem(place, "is set", why)
            return Problem(place, "is not known", spelling(key, _fields(part)))
        case kind if kind in _KINDS:
            return Problem(place, description, _KINDS[kind])
        case "value_error" if isinstance(error["ctx"]["error"], NotAllowedError):
            is_key = error["loc"][-1] == "[key]"
            return Problem(place, "is not a valid name" if is_key else description, str(error["ctx"]["error"]))
        case "too_short":
            return Problem(place, "is empty", f"filled ({_description(place, model)})")
        case "too_long":
            number = error["ctx"]["actual_length"] or "too many"
            return Problem(place, f"has {number} entries", f"shorter ({_description(place, model)})")
        case _:  # no known error type
            return Problem(place, description, f"something else ({error['msg']})")


def _description(place: Place, model: type[BaseModel]) -> str:
    """Returns the description of the field at a place."""
    description = _fields(_inner(place[:-1], model))[str(place[-1])].description
    return description.short if isinstance(description, Description) else ""


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Returns the fields of a model by their keys in the file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _inner(place: Place, model: type[BaseModel]) -> type[BaseModel]:
    """Returns the model at a place."""
    inner_model: Any = model
    for part in place:
        is_model = isinstance(inner_model, type) and issubclass(inner_model, BaseModel)
        inner_model = _fields(inner_model)[str(part)].annotation if is_model else get_args(inner_model)[-1]
        if isinstance(inner_model, UnionType):  # with None
            inner_model = get_args(inner_model)[0]
    inner: type[BaseModel] = inner_model
    return inner
