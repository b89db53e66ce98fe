"""Reads files that people write, strictly: YAML or JSON, which is also YAML."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from cli.shared.errors import CliError, Exit, why
from troop.shared.values import excess, json_in, shown


class NoYamlError(CliError):
    """Text that is not YAML.

    Attributes:
        line: the line of the mistake, from 1; None if unknown.
    """

    def __init__(self, message: str, line: int | None) -> None:
        self.line = line
        super().__init__(Exit.USAGE, message)


class _TooMuchError(Exception):
    """YAML that expands to more than any of Troop's files needs."""

    def __init__(self, event: yaml.Event, problem: str) -> None:
        self.line = event.start_mark.line + 1 if event.start_mark else 1
        super().__init__(problem)


MOST_NODES = 1_000_000
"""The most keys and values that a YAML file may contain. JSON, which is read much faster, has no such bound."""
MOST_REPEATED = 100_000
"""The most keys, values and characters that all aliases and merges of a file may expand to."""
DEEPEST = 64
"""The most levels of a document."""

_LARGEST = 20_000_000


def read(file: Path) -> str:
    """Reads the text of a file; of stdin for ``-``.

    Raises:
        CliError: USAGE.
    """
    try:
        if str(file) == "-":
            return sys.stdin.read(_LARGEST + 1)
        with file.open(encoding="utf-8-sig") as stream:
            return stream.read(_LARGEST + 1)  # a device has no end
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(Exit.USAGE, f"{file} cannot be read: {why(error)}") from None


class Document:
    """The values of a document, and their lines.

    Args:
        name: the document's name in messages.

    Attributes:
        values: JSON-like values. No key occurs twice, and aliases expand to at most :data:`MOST_REPEATED` values.

    Raises:
        CliError: USAGE.
    """

    def __init__(self, text: str, name: str) -> None:
        if len(text) > _LARGEST:
            raise CliError(Exit.USAGE, f"{name} is longer than {_LARGEST:,} characters")
        self._text, self._places = text, dict[int, dict[str, _Pair]]()
        self._root: yaml.Node | None = None
        self.values = self._parsed(name)
        # Only an escape or stdin can contain one: files are read as UTF-8.
        if _SUSPECT.search(text) and (half := next(_halves(self.values), None)) is not None:
            raise CliError(Exit.USAGE, f"{name}: {half[:80]!r} has half of a surrogate pair, which is not a character")

    def _parsed(self, name: str) -> Any:
        try:
            if self._text.lstrip()[:1] in ("[", "{"):
                try:
                    values = json_in(self._text, _once)  # much faster, if it is JSON
                except json.JSONDecodeError:
                    pass
                else:
                    if too_much := excess(values, DEEPEST):
                        raise ValueError(f"it {too_much}")
                    return values
            loader = _Strict(self._text)
            self._root = loader.get_single_node()
            return None if self._root is None else loader.construct_document(self._root)
        except _TooMuchError as error:
            raise NoYamlError(f"{name}:{error.line}: {error}", error.line) from None
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            message = " ".join(str(error).split()).replace(' in "<unicode string>",', " in")
            mark = getattr(error, "problem_mark", None)
            raise NoYamlError(f"{name} is not YAML: {message}", mark.line + 1 if mark else None) from None

    def line_of(self, place: Sequence[str | int]) -> int | None:
        """Returns the line (from 1) of a value, or of the nearest value around it; None without one.

        Args:
            place: keys of mappings and positions in lists, from the top.
        """
        if self._root is None:  # it was read as JSON
            try:
                self._root = _Strict(self._text).get_single_node()
            except (yaml.YAMLError, _TooMuchError, RecursionError, ValueError):
                return None
        line, node = None, self._root
        for step in place:
            pair = self._inner(node, step)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        return line if line is not None or node is None else int(node.start_mark.line) + 1

    def comment_at(self, place: Sequence[str | int]) -> str:
        """Returns the comment at the end of the line of a value; "" without one."""
        line = self.line_of(place)
        text = _QUOTED.sub("", self._text.splitlines()[line - 1]) if line else ""
        match = _COMMENT.search(text)
        return match[1].strip() if match else ""

    def rewritten(self) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
        """Yields place, text and number of each number whose text is not the number's: ``3.10`` is 3.1, and
        ``1234567e8`` is 123456700000000. JSON has none: who writes it means numbers.
        """
        rest: list[tuple[tuple[str | int, ...], yaml.Node | None]] = [((), self._root)]
        seen = set[int]()
        while rest:
            place, node = rest.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, yaml.MappingNode):
                rest += [((*place, str(key.value)), value) for key, value in reversed(node.value)]
            elif isinstance(node, yaml.SequenceNode):
                rest += [((*place, n), value) for n, value in reversed([*enumerate(node.value)])]
            elif isinstance(node, yaml.ScalarNode) and node.tag in _NUMBERS:
                text = repr(float(node.value)) if node.tag == _FLOAT else str(int(node.value))
                plain = f"{Decimal(text):f}"
                if node.value not in (text, plain, whole := plain.removesuffix(".0")):
                    yield place, node.value, whole

    def _inner(self, node: Any, step: str | int) -> _Pair | None:
        """Returns the nodes of a key and its value, or twice the node of a list's entry."""
        if isinstance(node, yaml.MappingNode):
            if id(node) not in self._places:
                pairs = (pair for pair in node.value if isinstance(pair[0], yaml.ScalarNode))
                self._places[id(node)] = {pair[0].value: pair for pair in pairs}
            return self._places[id(node)].get(str(step))
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            return node.value[step], node.value[step]
        return None


_Pair = tuple[yaml.Node, yaml.Node]


def parse(text: str, name: str) -> Any:
    """Returns the values of a document, as :class:`Document` does."""
    return Document(text, name).values


_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_COMMENT = re.compile(r"(?:^|\s)#\s*(.*)$")
_SUSPECT = re.compile("[\ud800-\udfff]|\\\\[uU]")
_HALF = re.compile("[\ud800-\udfff]")


def _halves(document: Any) -> Iterator[str]:
    """Yields texts, including keys, that no encoding can represent."""
    rest, seen = [document], set[int]()
    while rest:
        value = rest.pop()
        if isinstance(value, str) and _HALF.search(value):
            yield value
        elif isinstance(value, (dict, list)) and id(value) not in seen:  # YAML's aliases can make circles
            seen.add(id(value))
            rest += [*value.keys(), *value.values()] if isinstance(value, dict) else value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            raise ValueError(f"{shown(key)} occurs twice")
        mapping[key] = value
    return mapping


class _Strict(yaml.SafeLoader):
    """A loader with the scalars of JSON: in YAML 1.1, 15:00 is the number 900, NO is false, and 2026-13-01 an error.

    Refuses a key that occurs twice: YAML would silently use the later one. Knows only the explicit tags of these
    scalars: no file needs dates, bytes or sets.

    Counts, while it composes, how much aliases expand to: a few lines of aliases of aliases can expand to more than
    any memory holds, and merging them takes as long.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._weights: dict[str, int] = {}
        """Keys, values and characters by anchor."""
        self._weight = self._nodes = self._repeated = self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in self.anchors:  # else the base class refuses it
                self._repeat(event)
            return super().compose_node(parent, index)
        self._nodes, self._depth = self._nodes + 1, self._depth + 1
        if self._nodes > MOST_NODES:
            raise _TooMuchError(event, f"has more than {MOST_NODES:,} keys and values: write it as JSON")
        if self._depth > DEEPEST:
            raise _TooMuchError(event, f"is nested deeper than {DEEPEST} levels")
        outer, self._weight = self._weight, 1
        node = super().compose_node(parent, index)
        if isinstance(node, yaml.ScalarNode):
            self._weight += len(node.value)
        elif isinstance(node, yaml.MappingNode):
            _refuse_twice(node)
        if event.anchor is not None:
            self._weights[event.anchor] = self._weight
        self._weight, self._depth = self._weight + outer, self._depth - 1
        return node

    def _repeat(self, alias: yaml.AliasEvent) -> None:
        if alias.anchor not in self._weights:
            raise _TooMuchError(alias, f"the alias *{alias.anchor} refers to a value that contains it")
        weight = self._weights[alias.anchor]
        self._repeated, self._weight = self._repeated + weight, self._weight + weight
        if self._repeated > MOST_REPEATED:
            raise _TooMuchError(alias, f"its aliases expand to more than {MOST_REPEATED:,} keys, values and characters")


def _refuse_twice(node: yaml.MappingNode) -> None:
    seen = set()
    for key_node, _ in node.value:
        if isinstance(key_node, yaml.ScalarNode):
            if key_node.value in seen:
                raise yaml.composer.ComposerError(
                    None, None, f"{shown(key_node.value)} occurs twice", key_node.start_mark
                )
            seen.add(key_node.value)


def _unknown(_: _Strict, node: yaml.Node) -> Any:
    tag = str(node.tag).replace("tag:yaml.org,2002:", "!!")
    raise yaml.constructor.ConstructorError(
        None, None, f"the tag {tag} is not supported: write the value without it", node.start_mark
    )


def _value(loader: _Strict, node: yaml.Node) -> Any:
    """Constructs a scalar; checks its value, which an explicit tag bypasses."""
    kind = str(node.tag).rpartition(":")[2]
    text = loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else None
    if text is None or not any(_VALUES[one][0].match(text) for one in {kind, "int" if kind == "float" else kind}):
        subject = "the value" if text is None else shown(text)
        raise yaml.constructor.ConstructorError(None, None, f"{subject} is not of type {kind}", node.start_mark)
    if kind != "bool" and (len(text) > _LONGEST_NUMBER or not math.isfinite(float(text))):
        raise yaml.constructor.ConstructorError(None, None, f"{shown(text)} is too large for a number", node.start_mark)
    return yaml.SafeLoader.yaml_constructors[node.tag](loader, node)


_FLOAT = "tag:yaml.org,2002:float"
_NUMBERS = frozenset({_FLOAT, "tag:yaml.org,2002:int"})
_LONGEST_NUMBER = 310
"""Characters: whole numbers with more digits exceed every float."""


_Strict.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("null", "merge")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_VALUES = {
    "bool": (re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    "int": (re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), "-+0123456789"),
    "float": (
        re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$"),
        "-+.0123456789",
    ),
}
"""The pattern of values and their first characters, by the name of their tag."""

_Strict.yaml_constructors = {
    f"tag:yaml.org,2002:{name}": yaml.SafeLoader.yaml_constructors[f"tag:yaml.org,2002:{name}"]
    for name in ("null", "str", "seq", "map")
} | {None: _unknown}
for _name, (_pattern, _first) in _VALUES.items():
    _tag = f"tag:yaml.org,2002:{_name}"
    _Strict.add_implicit_resolver(_tag, _pattern, list(_first))
    _Strict.yaml_constructors[_tag] = _value


def is_taken_for_a_value(text: str) -> bool:
    """Checks whether text without quotes would be read as another type; YAML 1.1 knows fewer numbers."""
    resolvers = _Strict.yaml_implicit_resolvers.get(text[:1], [])
    return any(pattern.match(text) for _, pattern in resolvers)
