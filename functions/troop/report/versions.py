"""Lists the versions of a run: Troop, the agent, images and kernels of the nodes, artifacts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from troop.bench.definition.names import node_of
from troop.bench.records import archive as files
from troop.bench.records.archive import Archive, DamagedError
from troop.report.document import Cell, Version
from troop.report.sources import Sources

IMAGES = "images/"

_NODE_KEYS = (("kernel", "kernel"), ("agent", "agent"), ("python", "Python of the agent"), ("image", "image"))

_SHORT = 16
"""Digits of a hash that are enough to distinguish versions."""


def versions(archive: Archive, sources: Sources, cells: Sequence[Cell]) -> list[Version]:
    """Returns the known versions. Reads one node of each role, because all nodes of a run boot from the same images."""
    versions: dict[tuple[str, str], None] = {}
    if sources.record and sources.record.troop:
        versions["Troop", sources.record.troop] = None
    for image in _documents(archive, archive.names(IMAGES)):
        if isinstance(image.get("id"), str):
            versions["image", image["id"]] = None
    for name, version in _nodes(archive, cells):
        versions[name, version] = None
    for artifact in _artifacts(sources.definition):
        versions[artifact] = None
    return [Version(what=name, version=version) for name, version in versions]


def _nodes(archive: Archive, cells: Sequence[Cell]) -> Iterator[tuple[str, str]]:
    documents: set[str] = set()
    for cell in cells:
        for phase in cell.phases:
            for node in phase.members:
                if node.role not in documents:
                    documents.add(node.role)
                    listed = archive.names(f"{cell.cell}/{files.NODES}")
                    for document in _documents(archive, (one for one in listed if node_of(one) == node.node)):
                        yield from _node_versions(document)


def _node_versions(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, name in _NODE_KEYS:
        if isinstance(value := document.get(key), str) and value:
            yield name, value[:_SHORT] if key == "agent" else value


def _artifacts(definition: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    artifacts = definition.get("artifacts")
    for one in artifacts if isinstance(artifacts, list) else []:
        with suppress(KeyError, TypeError):
            yield f"artifact {one['name']}", f"{one['source']}, SHA-256 {str(one['sha256'])[:_SHORT]}"


def _documents(archive: Archive, names: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """Reads documents and skips unreadable ones, because a missing version must not hide the others."""
    for name in names:
        with suppress(DamagedError):
            if (document := files.document(archive, name)) is not None:
                yield document
