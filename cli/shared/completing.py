"""Completes values of options and arguments in a shell; imports what reads them only when a shell asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from cli.shared.context import typed_options

Suggest = Callable[[str, Any, Mapping[str, Any]], list[str]]

_KINDS = {
    "unit": "units",
    "group": "groups",
    "owner": "owners",
    "calendar": "calendars",
    "run": "runs",
    "benchmark": "benchmarks",
    "fleet": "fleets",
    "sizes": "sizes",
    "deployment": "deployments",
    "profile": "profiles",
    "region": "regions",
}
"""Kinds of values by the name of an option or argument."""

_SPECIAL = {
    ("simulate", "unit"): None,
    ("bench report", "source"): "runs",
    ("bench compare", "a"): "runs",
    ("bench compare", "b"): "runs",
    ("bench unschedule", "name"): "schedules",
    ("thresholds", "fleet"): "fleet names",
    ("fleet list", "name"): "fleet names",
    ("fleet list", "status"): "fleet statuses",
}
"""The same for one command; None for values that only a file has."""


def complete_values(command: Any, words: Sequence[str], source: str) -> None:
    """Completes the values of a command's parameters by their names, except for those that do it themselves.

    Args:
        words: what a person types to get the command, without ``troop``.
        source: where :data:`Suggest` is, as ``module:attribute``.
    """
    for param in command.params:
        kind = _SPECIAL.get((" ".join(words), param.name), _KINDS.get(param.name))
        if kind is not None and param._custom_shell_complete is None:
            param._custom_shell_complete = _completer(kind, source)


def _completer(kind: str, source: str) -> Callable[[Any, Any, str], list[str]]:
    def complete(ctx: Any, _param: Any, incomplete: str) -> list[str]:
        module, _, attribute = source.partition(":")
        suggest: Suggest = getattr(import_module(module), attribute)
        # An option without its value ends parsing early, and leaves the arguments where they are.
        values = {"file": next(iter(ctx.args), None)} | {k: v for k, v in ctx.params.items() if v is not None}
        words = suggest(kind, typed_options(ctx), values)
        return [word for word in words if word.startswith(incomplete)]

    return complete
