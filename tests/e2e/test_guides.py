"""Marked commands of documents as printed, in one account: they print what the documents show. Skipped are only those
that need what is not there. The first hour is apart, with an account of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from local.demo.narrator import Narrator
from local.guides.block import read
from local.guides.walk import Walk, environment_for
from local.project import ROOT
from tests.e2e.conftest import Deployment

DOCUMENTS = ("start/first-termination.md", "guides/chaos.md", "start/first-benchmark.md")
"""In the order in which a reader takes them: chaos.md uses the group of the first one."""


@pytest.fixture(scope="module")
def environment(smoke: Deployment) -> Iterator[Mapping[str, str]]:
    yield environment_for(smoke.account, smoke.name)
    smoke.groups.delete("web")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reader")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_print_what_the_document_shows(
    document: str, smoke: Deployment, environment: Mapping[str, str], folder: Path
) -> None:
    blocks = read(ROOT / "docs" / document)
    assert [block for block in blocks if not block.skipped]
    Walk(environment, Narrator(), blocks, folder=folder, deployment=smoke.name).run()
