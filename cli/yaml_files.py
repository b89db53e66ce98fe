"""Files that people write: YAML or, since that is YAML as well, JSON; read strictly."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from cli.errors import CliError, Exit, why


class NoYamlError(CliError):
    """What was to be YAML is none.

    Attributes:
        line: where, the first is 1; None where that is not known.
    """

    def __init__(self, message: str, line: int | None) -> None:
        self.line = line
        super().__init__(Exit.USAGE, message)


_LARGEST = 20_000_000


def read(file: Path) -> str:
    """The text of a file; of stdin for ``-``.

    Raises:
        CliError: USAGE.
    """
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(Exit.USAGE, f"{file} cannot be read: {why(error)}") from None


def parse(text: str, name: str) -> Any:
    """The values of a document; no key may be given twice.

    Args:
        name: what messages call it.

    Raises:
        CliError: USAGE.
    """
    if len(text) > _LARGEST:
        raise CliError(Exit.USAGE, f"{name} is longer than {_LARGEST:,} characters")
    value = _parsed(text, name)
    # Only an escape can have brought one in, or stdin: files are read as UTF-8.
    if _SUSPECT.search(text) and (half := next(_halves(value), None)) is not None:
        raise CliError(Exit.USAGE, f"{name}: {half[:80]!r} has half of a surrogate pair, which is no character")
    return value


_SUSPECT = re.compile("[\ud800-\udfff]|\\\\[uU]")
_HALF = re.compile("[\ud800-\udfff]")


def _halves(document: Any) -> Iterator[str]:
    """Texts, keys among them, that no encoding can hold."""
    rest, seen = [document], set[int]()
    while rest:
        value = rest.pop()
        if isinstance(value, str) and _HALF.search(value):
            yield value
        elif isinstance(value, (dict, list)) and id(value) not in seen:  # YAML's aliases can make circles
            seen.add(id(value))
            rest += [*value.keys(), *value.values()] if isinstance(value, dict) else value


def _parsed(text: str, name: str) -> Any:
    try:
        if text.lstrip()[:1] in ("[", "{"):
            try:
                return json.loads(text, object_pairs_hook=_once)  # much faster, where it will do
            except json.JSONDecodeError:
                pass
        return yaml.load(text, Loader=_Strict)  # a SafeLoader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        said = " ".join(str(error).split()).replace(' in "<unicode string>",', " in")
        mark = getattr(error, "problem_mark", None)
        raise NoYamlError(f"{name} is no YAML: {said}", mark.line + 1 if mark else None) from None


def line_of(text: str, place: Sequence[str | int]) -> int | None:
    """The line (the first is 1) of a value of a document, or of what is nearest around it; None when it has none.

    Args:
        place: keys of mappings and positions in lists, from the top.
    """
    try:
        node: Any = yaml.compose(text, Loader=_Strict)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    line = None
    for step in place:
        found = None
        if isinstance(node, yaml.MappingNode):
            found = next((pair for pair in node.value if getattr(pair[0], "value", None) == str(step)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            found = (node.value[step], node.value[step])
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line if line is not None or node is None else int(node.start_mark.line) + 1


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key!r} is given twice")
        found[key] = value
    return found


class _Strict(yaml.SafeLoader):
    """Scalars are those of JSON: in YAML 1.1, 15:00 is the number 900, NO (Norway) is false, and 2026-13-01 an error.

    Refuses a key that is given twice: YAML would let the later one win without a word. Of the tags that can be written
    out only those of such values are known: nothing reads dates, bytes or sets.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                if key_node.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{key_node.value!r} is given twice", key_node.start_mark
                    )
                seen.add(key_node.value)
        return super().construct_mapping(node, deep)


def _unknown(_: _Strict, node: yaml.Node) -> Any:
    tag = str(node.tag).replace("tag:yaml.org,2002:", "!!")
    raise yaml.constructor.ConstructorError(
        None, None, f"the tag {tag} is not known here: write the value without it", node.start_mark
    )


def _value(loader: _Strict, node: yaml.Node) -> Any:
    """A scalar whose tag may be written out: then nobody has looked yet whether it is one."""
    kind = str(node.tag).rpartition(":")[2]
    text = loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else None
    if text is None or not any(_VALUES[one][0].match(text) for one in {kind, "int" if kind == "float" else kind}):
        told = "what is here" if text is None else repr(text)
        raise yaml.constructor.ConstructorError(None, None, f"{told} is no {kind}", node.start_mark)
    return yaml.SafeLoader.yaml_constructors[node.tag](loader, node)


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
"""How values are written, and with which characters they begin, by the name of their tag."""

_Strict.yaml_constructors = {
    f"tag:yaml.org,2002:{name}": yaml.SafeLoader.yaml_constructors[f"tag:yaml.org,2002:{name}"]
    for name in ("null", "str", "seq", "map")
} | {None: _unknown}
for _name, (_pattern, _first) in _VALUES.items():
    _tag = f"tag:yaml.org,2002:{_name}"
    _Strict.add_implicit_resolver(_tag, _pattern, list(_first))
    _Strict.yaml_constructors[_tag] = _value


def is_taken_for_a_value(text: str) -> bool:
    """Whether text without quotes would be read as something else, such as a number; YAML 1.1 knows fewer numbers."""
    resolvers = _Strict.yaml_implicit_resolvers.get(text[:1], [])
    return any(pattern.match(text) for _, pattern in resolvers)
