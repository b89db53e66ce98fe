"""What pydantic refuses, said as everything else is said here: where, what was found, what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from troop.bench.problems import Place, Problem, shown
from troop.bench_file.fields import NOT_ALLOWED
from troop.values import spelling

_Model = TypeVar("_Model", bound=BaseModel)

IN_FULL = 100
"""Problems for which the nearest known key is looked up: more than anybody reports, and the look-up takes its time."""

_KINDS = {
    "model_type": "a mapping of keys to values",
    "dict_type": "a mapping of keys to values",
    "list_type": "a list",
}


def parsed(document: Any, model: type[_Model]) -> tuple[_Model | None, list[Problem]]:
    """The file's values, each right by itself; or what is wrong with them.

    Args:
        model: of the whole file.
    """
    try:
        return model.model_validate(document), []
    except ValidationError as refused:
        errors = refused.errors(include_url=False)
        return None, [_problem(dict(error), model, in_full=n < IN_FULL) for n, error in enumerate(errors)]


def _problem(error: Mapping[str, Any], model: type[BaseModel], *, in_full: bool) -> Problem:
    # pydantic puts "[key]" behind the key of a mapping that is not allowed as a key.
    place: Place = tuple(part for part in error["loc"] if part != "[key]")
    description = f"is {shown(error['input'])}"
    match error["type"]:
        case "missing":
            return Problem(place, "is missing", f"given ({_description(place, model)})")
        case "extra_forbidden":
            known = _inner(place[:-1], model).model_fields if in_full else ()
            return Problem(place, "is not known", spelling(str(place[-1]), known) if known else "left out")
        case kind if kind in _KINDS:
            return Problem(place, description, _KINDS[kind])
        case kind if kind == NOT_ALLOWED:
            is_key = error["loc"][-1] == "[key]"
            return Problem(place, "is no name that can be used" if is_key else description, error["ctx"]["allowed"])
        case "too_short":
            return Problem(place, "is empty", f"given ({_description(place, model)})")
        case "too_long":
            return Problem(
                place, f"has {error['ctx']['actual_length']} entries", f"shorter ({_description(place, model)})"
            )
        case _:  # nothing is known that would come here
            return Problem(place, description, f"something else ({error['msg']})")


def _description(place: Place, model: type[BaseModel]) -> str:
    """Of the field of that place."""
    return _inner(place[:-1], model).model_fields[str(place[-1])].description or ""


def _inner(place: Place, model: type[BaseModel]) -> type[BaseModel]:
    """What is at that place, which is a mapping with keys of its own."""
    inner_model: Any = model
    for part in place:
        of_model = isinstance(inner_model, type) and issubclass(inner_model, BaseModel)
        inner_model = inner_model.model_fields[str(part)].annotation if of_model else get_args(inner_model)[-1]
    inner: type[BaseModel] = inner_model
    return inner
