"""Refuses what templates have and CloudFormation does not know: sections, attributes and properties of resources.

AWS refuses sections and attributes at once. It compares properties with the schemas of their types before it creates
anything (page "Validate stack deployments - AWS CloudFormation"). Tags that begin with ``aws:`` fail at the resource.
Macros may use any names: templates with them are compared only when MiniStack has applied them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ministack.services.cloudformation import engine, handlers, stacks

from ..schemas import Schemas, unknown_names
from ..shapes import reserved_tags
from ._wrap import wrap

_CUSTOM = ("Custom::", "AWS::CloudFormation::CustomResource")


def apply(schemas: Schemas) -> None:
    @wrap(engine, "_validate_template_statics")
    def statics(original: Callable[[Any], None], template: dict[str, Any]) -> None:
        if not handlers._uses_macro(template) and (problem := next(_template_problems(schemas, template), None)):
            raise ValueError(f"Template format error: {problem}")
        original(template)

    @wrap(stacks, "_validation_errors")
    def errors(
        original: Callable[..., list[Any]], resources: Any, ordered: Any, parameters: Any, conditions: Any, *more: Any
    ) -> list[Any]:
        problems = original(resources, ordered, parameters, conditions, *more)
        for name in ordered:
            resource = resources[name]
            if conditions.get(resource.get("Condition"), True):
                kind = resource.get("Type", "")
                problems += [
                    (name, kind, "PROPERTY_VALIDATION", f"/Resources/{name}/Properties{place[1:]}", problem)
                    for place, problem in _property_problems(schemas, kind, resource.get("Properties") or {})
                ]
        return problems


def _template_problems(schemas: Schemas, template: dict[str, Any]) -> Iterator[str]:
    resources = template.get("Resources")
    for _, name in unknown_names(schemas.part("other/template/configuration"), dict.fromkeys(template)):
        yield f"Invalid template property or properties [{name}]"
    if not isinstance(resources, dict) or not resources:
        yield "At least one Resources member must be defined."
        return
    known = schemas.part("other/resources/configuration")["definitions"]["ResourceConfiguration"]
    for logical, resource in resources.items():
        if not isinstance(resource, dict) or "Type" not in resource:
            yield f"[/Resources/{logical}] Every Resources object must contain a Type member."
            continue
        for _, name in unknown_names(known, dict.fromkeys(resource)):
            yield f"Invalid template resource property '{name}'"
        others = resource.get("DependsOn") or []
        for other in {others} if isinstance(others, str) else set(others):
            if other not in resources:
                yield f"Unresolved resource dependencies [{other}] in the Resources block of the template"


def _property_problems(schemas: Schemas, kind: str, properties: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the place and the problem of each property that AWS refuses."""
    if kind.startswith(_CUSTOM):
        return
    if schema := schemas.for_type(kind):
        for place, name in unknown_names(schema, properties):
            yield place, f"{place}: extraneous key [{name}] is not permitted"
    for name in reserved_tags(properties):
        yield "#", f"the tag {name} is reserved for AWS"
