"""Makes moto faster without changing its responses.

Computed once instead of for every field of every response: the names that a field can have, whether XML allows a name,
and the functions of a class. Conditions are parsed once. Visitors of an update expression visit only nodes of their
kind, and checks of the whole run only at its root. A transaction copies each of its tables once. Keys that sign nothing
are not created. Folders of services are listed once. Requests, XML, and random names are built with fewer calls, and
botocore finds what an answer has with fewer. Tests of handlers use this patch too, because they spend most of their
time in moto.
"""

from __future__ import annotations

import json
import pickle
import string
import sys
import threading
from collections import deque
from collections.abc import Callable
from copy import copy, deepcopy
from functools import cache, lru_cache, wraps
from io import BytesIO
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit
from xml.sax.saxutils import escape, quoteattr

import botocore.parsers
import botocore.useragent
import moto.backends
import moto.core.responses
import moto.dynamodb.models
import moto.dynamodb.parsing.validators
import moto.ec2.models.tags
import moto.ec2.utils
import moto.kms.models
import xmltodict
from botocore.parsers import BaseJSONParser, BaseXMLResponseParser
from moto import backend_index
from moto.core.base_backend import BaseBackend
from moto.core.request import Request
from moto.core.serialize import MISSING, AttributePickerContext, ResponseSerializer, XFormedAttributePicker, get_value
from moto.dynamodb.comparisons import ConditionExpressionParser
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType, Item, LimitedSizeDict
from moto.dynamodb.models.table import Table
from moto.dynamodb.parsing.ast_nodes import DepthFirstTraverser, Node
from moto.dynamodb.parsing.expressions import UpdateExpressionParser
from moto.dynamodb.parsing.validators import ActionCountValidator, OverlappingPathsValidator
from moto.ec2.models.instance_types import InstanceTypeOfferingBackend
from moto.moto_api._internal.moto_random import MotoRandom

from ._wrap import wrap


@cache  # applying it twice would be slower
def apply() -> None:
    _methods_of_a_class()
    _names_of_a_field()
    _names_of_elements()
    _documents()
    _requests()
    _random_names()
    _offerings_of_a_type()
    _values_of_items()
    _copies_of_items()
    _patterns_of_filters()
    _texts_of_expressions()
    _texts_of_conditions()
    _nodes_of_an_expression()
    _rules_of_a_whole_expression()
    _tables_of_a_transaction()
    _keys_that_sign_nothing()
    _addresses_of_what_is_called_most()
    _addresses_of_a_service()
    _names_of_services()
    _names_of_the_caller()
    _elements_of_an_answer()
    _values_of_an_answer()
    _times_of_an_answer()


def _methods_of_a_class() -> None:
    moto.core.responses.method_names_from_class = cache(moto.core.responses.method_names_from_class)


def _names_of_a_field() -> None:
    """Caches names, which depend only on the field's shape and the object's class."""
    known: dict[Any, tuple[tuple[str, ...], Callable[..., Any]]] = {}
    picked = ResponseSerializer.get_value

    def attribute(picker: XFormedAttributePicker, value: Any, key: str, shape: Any) -> Any:
        which = (value.__class__, key, shape, getattr(shape, "parent", None))
        if (entry := known.get(which)) is None:
            context = AttributePickerContext(value, key, shape)
            names = tuple(dict.fromkeys(picker.get_possible_keys(context)))
            plain = not hasattr(value, "__getitem__") and not any("." in name for name in names)
            entry = known[which] = names, getattr if plain else get_value
        names, read = entry
        if value.__class__ is dict:
            for name in names:
                if name in value:
                    return value[name]
            return None
        for name in names:
            content = read(value, name, MISSING)
            if content is not MISSING:
                return content
        return None

    @wraps(picked)
    def value_of(self: Any, value: Any, key: str, shape: Any) -> Any:
        picker = self._value_picker
        if type(picker) is not XFormedAttributePicker:
            return picked(self, value, key, shape)
        content = attribute(picker, value, key, shape)
        if transformers := picker.response_transformers:
            of_keys = picker.__dict__.setdefault("_of_keys", {})  # of one response: moto may add transformers later
            if key not in of_keys:
                of_keys[key] = [path for path in transformers if key.endswith(path) or path.endswith(f".{key}")]
            for path in of_keys[key]:
                if ".".join((*self.path, key)).endswith(path):
                    return transformers[path](content)
        return content

    ResponseSerializer.get_value = value_of


def _names_of_elements() -> None:
    """Caches which names XML allows; xmltodict checks them again for each element, character by character."""
    xmltodict._validate_name = lru_cache(maxsize=4096)(xmltodict._validate_name)


def _documents() -> None:
    """Joins the parts of a document; xmltodict calls a content handler several times for each element."""
    original = xmltodict.unparse
    text = xmltodict._convert_value_to_string

    def emit(parts: list[str], key: str, value: Any, short: bool) -> None:
        xmltodict._validate_name(key, "element")
        for content in value if value.__class__ is list else (value,):
            if not isinstance(content, dict):
                if hasattr(content, "__iter__") and not isinstance(content, str):
                    raise LookupError
                inner = "" if content is None else escape(text(content))
                parts.append(f"<{key}/>" if short and not inner else f"<{key}>{inner}</{key}>")
                continue
            attributes = ""
            start = len(parts)
            parts.append("")
            for name, child in content.items():
                if name[0] == "#":
                    raise LookupError
                if name[0] == "@":
                    xmltodict._validate_name(name[1:], "attribute")
                    attributes += f" {name[1:]}={quoteattr(text(child))}"
                elif child != []:
                    emit(parts, name, child, short)
            empty = short and len(parts) == start + 1
            parts[start] = f"<{key}{attributes}{'/>' if empty else '>'}"
            if not empty:
                parts.append(f"</{key}>")

    @wraps(original)
    def unparse(document: Any, full_document: bool = True, short_empty_elements: bool = False, **options: Any) -> str:
        if not any(options.values()) and len(document) == 1:
            ((key, value),) = document.items()
            parts = ['<?xml version="1.0" encoding="utf-8"?>\n'] if full_document else []
            try:
                if full_document and value.__class__ is list:
                    raise LookupError
                emit(parts, key, value, short_empty_elements)
                return "".join(parts)
            except (LookupError, TypeError):  # what has another meaning, such as a comment
                pass
        both = {"full_document": full_document, "short_empty_elements": short_empty_elements}
        return str(original(document, **both, **options))

    xmltodict.unparse = unparse


def _requests() -> None:
    """Builds requests of the path ``/`` directly; werkzeug encodes and decodes their addresses several times."""

    @wrap(Request, "from_primitives")
    def from_primitives(original: Callable[..., Any], method: str, url: str, headers: Any, body: Any = None) -> Any:
        address = urlsplit(url)
        host = address.netloc
        simple = address.path == "/" and not address.query and host == address.hostname and host.isascii()
        if not simple or not isinstance(body, (str, bytes, type(None))) or any("_" in name for name in headers):
            return original(method, url, headers, body)
        content = body.encode() if isinstance(body, str) else body or b""
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": "/",
            "QUERY_STRING": "",
            "REQUEST_URI": "/",
            "RAW_URI": "/",
            "SERVER_NAME": host,
            "SERVER_PORT": "443" if address.scheme == "https" else "80",
            "HTTP_HOST": host,
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": address.scheme,
            "wsgi.input": BytesIO(content),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": False,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "moto.preserved_header_names": {},
        }
        for name, value in headers.items():
            key = name.upper().replace("-", "_")
            if key not in ("TRANSFER_ENCODING", "CONTENT_LENGTH"):
                at = key if key == "CONTENT_TYPE" else f"HTTP_{key}"
                environ[at] = value.decode() if isinstance(value, bytes) else value
        environ["CONTENT_LENGTH"] = str(len(content))
        request = Request(environ)
        request.url_root = f"{address.scheme}://{host}/"
        return request

    Request.from_primitives = staticmethod(from_primitives)


def _random_names() -> None:
    def random_string(self: Any, length: int = 20, include_digits: bool = True, lower_case: bool = False) -> str:
        pool = string.ascii_letters + (string.digits if include_digits else "")
        name = "".join(self.choices(pool, k=length))
        return name.lower() if lower_case else name

    MotoRandom.get_random_string = random_string


def _offerings_of_a_type() -> None:
    """Compares types directly; moto asks for each of hundreds of types, for each launch, whether it is that one."""

    @wrap(InstanceTypeOfferingBackend, "matches_filters")
    def matches(original: Callable[..., bool], self: Any, offering: dict[str, Any], filters: Any, kind: str) -> bool:
        if len(filters) == 1 and "instance-type" in filters:
            return offering.get("InstanceType") in filters["instance-type"]
        return original(self, offering, filters, kind)


def _values_of_items() -> None:
    """Measures texts without a copy of them, maps without a copy of their values, and compares texts directly."""
    measured, cast = DynamoType.size, DynamoType.cast_value

    @wraps(measured)
    def size(self: Any) -> int:
        value = self.value
        if value.__class__ is str and value.isascii():
            return len(value)
        if self.type == "M":
            return sum(len(key.encode()) + one.size() for key, one in value.items())
        return int(measured(self))

    DynamoType.size = size
    DynamoType.cast_value = property(lambda self: self.value if self.type == "S" else cast.fget(self))


def _copies_of_items() -> None:
    """Copies items without a memory of their parts, which have no cycles; each query and transaction copies items."""

    def value_of(value: Any, _memo: Any = None) -> Any:
        if value.__class__ is not DynamoType:
            return deepcopy(value)
        twin = DynamoType.__new__(DynamoType)
        twin.type, content = value.type, value.value
        if twin.type == "M":
            content = {key: value_of(one) for key, one in content.items()}
        elif content.__class__ is list:
            content = [one if one.__class__ is str else value_of(one) for one in content]
        twin.value = content
        return twin

    def item_of(item: Any, _memo: Any) -> Any:
        twin = Item.__new__(Item)
        twin.hash_key, twin.range_key = value_of(item.hash_key), value_of(item.range_key)
        twin.attrs = LimitedSizeDict()
        dict.update(twin.attrs, {key: value_of(value) for key, value in item.attrs.items()})
        return twin

    DynamoType.__deepcopy__, Item.__deepcopy__ = value_of, item_of


def _texts_of_expressions() -> None:
    """Parses an update expression once. Each validator changes a copy, which pickle makes faster than deepcopy."""
    UpdateExpressionParser.make = staticmethod(lru_cache(maxsize=1024)(UpdateExpressionParser.make))
    moto.dynamodb.parsing.validators.deepcopy = lambda node: pickle.loads(pickle.dumps(node, -1))


def _texts_of_conditions() -> None:
    """Splits a condition into words once, and parses it once with the same names and values; moto does both for each
    check of a write.
    """
    split = ConditionExpressionParser._lex_condition_expression
    words_of = lru_cache(maxsize=1024)(lambda text: tuple(split(ConditionExpressionParser(text, None, None))))
    ConditionExpressionParser._lex_condition_expression = lambda self: deque(words_of(self.condition_expression))
    parse = ConditionExpressionParser.parse

    @lru_cache(maxsize=4096)
    def parsed(text: str | None, names: str, values: str) -> Any:
        parser = ConditionExpressionParser(text, json.loads(names), json.loads(values))
        return parse(parser), parser.expr_attr_names_found, parser.expr_attr_values_found

    @wraps(parse)
    def parse_once(self: Any) -> Any:
        names, values = self.expression_attribute_names, self.expression_attribute_values
        operation, own_names, own_values = parsed(self.condition_expression, json.dumps(names), json.dumps(values))
        self.expr_attr_names_found.extend(own_names)
        self.expr_attr_values_found.extend(own_values)
        return operation

    ConditionExpressionParser.parse = parse_once


def _patterns_of_filters() -> None:
    pattern_of = lru_cache(maxsize=1024)(moto.ec2.utils.simple_aws_filter_to_re)
    moto.ec2.utils.simple_aws_filter_to_re = moto.ec2.models.tags.simple_aws_filter_to_re = pattern_of


def _nodes_of_an_expression() -> None:
    nodes: dict[type, bool] = {}

    def is_node(thing: Any) -> bool:
        kind = thing.__class__
        if kind not in nodes:
            nodes[kind] = isinstance(thing, Node)
        return nodes[kind]

    verdicts: dict[tuple[type, type], bool] = {}

    def traverse(self: Any, node: Any, child_id: int = -1) -> Any:
        if not is_node(node):
            return node
        parent = node.parent
        for number, child in enumerate(node.children or ()):
            self.pre_processing_of_child(node, number)
            if is_node(child):
                traverse(self, child, number)
        which = (self.__class__, node.__class__)
        if which not in verdicts:
            verdicts[which] = isinstance(node, self.nodes_to_be_processed())
        if verdicts[which]:
            node = self.process(node)
            node.parent = parent
            if parent:
                parent.children[child_id] = node
        return node

    DepthFirstTraverser.traverse_node_recursively = traverse


def _rules_of_a_whole_expression() -> None:
    """Checks clauses and paths only at the root, which has all of them."""

    ActionCountValidator.traverse = ActionCountValidator.verify_action_counts
    OverlappingPathsValidator.traverse = OverlappingPathsValidator.check_for_overlapping_paths


def _tables_of_a_transaction() -> None:
    """Copies each table of a transaction once for a rollback; moto copies it for each item."""
    copies = threading.local()

    def copied(thing: Any) -> Any:
        known = getattr(copies, "known", None)
        if known is None or not isinstance(thing, Table):
            return deepcopy(thing)
        if thing.name not in known:
            known[thing.name] = deepcopy(thing)
        return known[thing.name]

    @wrap(DynamoDBBackend, "transact_write_items")
    def transact(original: Callable[..., Any], self: Any, items: list[dict[str, Any]]) -> Any:
        copies.known = {}
        try:
            return original(self, items)
        finally:
            copies.known = None

    moto.dynamodb.models.copy = SimpleNamespace(copy=copy, deepcopy=copied)


def _keys_that_sign_nothing() -> None:
    """Shares one private key among symmetric keys, which do not use it; its creation takes longer than a test."""
    make = moto.kms.models.generate_private_key
    one = cache(make)

    def private_key(key_spec: str) -> Any:
        return one(key_spec) if key_spec == "SYMMETRIC_DEFAULT" else make(key_spec)

    moto.kms.models.generate_private_key = private_key


def _addresses_of_what_is_called_most() -> None:
    """Sorts the most used services first: for each call, moto tries the addresses of hundreds of services in turn."""
    most = ("dynamodb", "ec2", "autoscaling", "s3")
    backend_index.backend_url_patterns.sort(key=lambda known: most.index(known[0]) if known[0] in most else len(most))


def _addresses_of_a_service() -> None:
    """Caches the addresses of a service, which moto creates for each call; for S3, it even loads a module again."""
    known: dict[type, dict[str, Any]] = {}
    make = BaseBackend.urls.fget

    def urls(self: Any) -> dict[str, Any]:
        kind = self.__class__
        if kind not in known:
            known[kind] = make(self)
        return known[kind]

    BaseBackend.urls = property(urls)


def _names_of_services() -> None:
    """Lists moto's services once; its server lists their folders for each request."""
    services = tuple(moto.backends.list_of_moto_modules())
    moto.backends.list_of_moto_modules = lambda: services


def _names_of_the_caller() -> None:
    """Caches parts of the user agent, which botocore builds twice for each call, character by character."""
    plain = botocore.useragent.sanitize_user_agent_string_component
    botocore.useragent.sanitize_user_agent_string_component = lru_cache(maxsize=1024)(plain)


def _elements_of_an_answer() -> None:
    """Remembers which element a member of a shape is; botocore finds it out again for each, also where none is."""
    parse = BaseXMLResponseParser._handle_structure  # type: ignore[attr-defined]

    def members_of(self: Any, shape: Any) -> list[tuple[str, Any, str]] | None:
        elsewhere = ("location", "eventheader", "xmlAttribute")
        if shape.metadata.get("exception") or getattr(shape, "is_tagged_union", False):
            return None
        if any(member.serialization.get(key) for member in shape.members.values() for key in elsewhere):
            return None
        return [(name, member, self._member_key_name(member, name)) for name, member in shape.members.items()]

    @wraps(parse)
    def structure(self: Any, shape: Any, node: Any) -> Any:
        if (members := shape.__dict__.get("_elements", ())) == ():
            members = shape._elements = members_of(self, shape)
        if members is None:
            return parse(self, shape, node)
        nodes = self._build_name_to_xml_node(node)
        return {name: self._parse_shape(member, nodes[tag]) for name, member, tag in members if tag in nodes}

    BaseXMLResponseParser._handle_structure = structure  # type: ignore[attr-defined]


def _values_of_an_answer() -> None:
    """Finds the member of a structure that has one, as DynamoDB's values do, by its name; botocore tries all."""
    parse = BaseJSONParser._handle_structure  # type: ignore[attr-defined]

    def members_of(shape: Any) -> dict[str, tuple[str, Any]] | None:
        if shape.is_document_type or shape.is_tagged_union:
            return None
        return {member.serialization.get("name", name): (name, member) for name, member in shape.members.items()}

    @wraps(parse)
    def structure(self: Any, shape: Any, value: Any) -> Any:
        if value.__class__ is not dict or len(value) != 1:
            return parse(self, shape, value)
        if (members := shape.__dict__.get("_values", ())) == ():
            members = shape._values = members_of(shape)
        if members is None:
            return parse(self, shape, value)
        ((key, content),) = value.items()
        if content is None or key not in members:
            return {}
        name, member = members[key]
        return {name: self._parse_shape(member, content)}

    BaseJSONParser._handle_structure = structure  # type: ignore[attr-defined]


def _times_of_an_answer() -> None:
    """Parses a time once; parsers that exist already do not take part."""
    parse = botocore.parsers.parse_timestamp
    known = lru_cache(maxsize=4096)(parse)
    botocore.parsers.DEFAULT_TIMESTAMP_PARSER = lambda value: known(value) if value.__class__ is str else parse(value)
