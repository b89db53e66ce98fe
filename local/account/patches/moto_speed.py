"""Makes moto faster without changing its responses.

Computed once instead of for every field of every response: the names that a field can have, whether XML allows a name,
and the functions of a class. Visitors of an update expression visit only nodes of their kind, and checks of the whole
run only at its root. A transaction copies each of its tables once. Keys that sign nothing are not created. Folders of
services are listed once. Tests of handlers use this patch too, because they spend most of their time in moto.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from copy import copy, deepcopy
from functools import cache, lru_cache, wraps
from types import SimpleNamespace
from typing import Any

import botocore.useragent
import moto.backends
import moto.core.responses
import moto.dynamodb.models
import moto.ec2.models.tags
import moto.ec2.utils
import moto.kms.models
import xmltodict
from moto import backend_index
from moto.core.base_backend import BaseBackend
from moto.core.serialize import MISSING, AttributePickerContext, ResponseSerializer, XFormedAttributePicker, get_value
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.table import Table
from moto.dynamodb.parsing.ast_nodes import DepthFirstTraverser, Node
from moto.dynamodb.parsing.validators import ActionCountValidator, OverlappingPathsValidator

from ._wrap import wrap


@cache  # applying it twice would be slower
def apply() -> None:
    _methods_of_a_class()
    _names_of_a_field()
    _names_of_elements()
    _patterns_of_filters()
    _nodes_of_an_expression()
    _rules_of_a_whole_expression()
    _tables_of_a_transaction()
    _keys_that_sign_nothing()
    _addresses_of_what_is_called_most()
    _addresses_of_a_service()
    _names_of_services()
    _names_of_the_caller()


def _methods_of_a_class() -> None:
    moto.core.responses.method_names_from_class = cache(moto.core.responses.method_names_from_class)


def _names_of_a_field() -> None:
    """Caches names, which depend only on the field's shape and the object's class."""
    known: dict[Any, tuple[str, ...]] = {}
    picked = ResponseSerializer.get_value

    def attribute(picker: XFormedAttributePicker, value: Any, key: str, shape: Any) -> Any:
        which = (value.__class__, key, shape, getattr(shape, "parent", None))
        if (names := known.get(which)) is None:
            context = AttributePickerContext(value, key, shape)
            names = known[which] = tuple(dict.fromkeys(picker.get_possible_keys(context)))
        if value.__class__ is dict:
            for name in names:
                if name in value:
                    return value[name]
            return None
        for name in names:
            content = get_value(value, name, MISSING)
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

    def at_the_root(validator: type, name: str) -> None:
        @wrap(validator, name)
        def check(original: Callable[..., Any], self: Any, node: Any) -> Any:
            return original(self, node) if node.parent is None else node

    at_the_root(ActionCountValidator, "verify_action_counts")
    at_the_root(OverlappingPathsValidator, "check_for_overlapping_paths")


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
    most = ("dynamodb", "ec2", "autoscaling")
    backend_index.backend_url_patterns.sort(key=lambda known: known[0] not in most)


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
