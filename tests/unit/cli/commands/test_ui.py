"""`troop ui`: what it prints, and opens."""

from __future__ import annotations

import io
import re
import stat
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from playwright.sync_api import Browser, expect

from cli.commands import ui
from cli.web.login_link import LoginLink
from cli.web.page_server import PageServer
from tests.patience import PAGE_PATIENCE_MS, PATIENCE
from tests.serving import running
from tests.unit.cli.web.page_world import Ahead, World, page_server


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Queue[str]:
    """What a browser is asked to open."""
    addresses: Queue[str] = Queue()
    monkeypatch.setattr(webbrowser, "open", addresses.put)
    return addresses


@pytest.fixture
def server() -> Iterator[PageServer]:
    world = World()
    with page_server(world, Ahead(world, "web"), []) as server:
        yield server


def path_of(address: str) -> Path:
    assert address.startswith("file:///")
    return Path(url2pathname(urlsplit(address).path))


def test_enter_makes_another_link_and_none_is_in_a_command_line(
    server: PageServer, opened: Queue[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other users may see the browser's command line, and could be quicker than the browser."""
    monkeypatch.setattr("sys.stdin", io.StringIO("\n\n"))
    with LoginLink() as login_link:
        server.used = login_link.used
        ui._links(server, login_link)
        files = [path_of(opened.get(timeout=PATIENCE)) for _ in range(2)]
        folder = files[0].parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        led = [re.findall('<a href="(.+)">', file.read_text())[0] for file in files]
        links = [*capsys.readouterr().out.split(), *led]
        assert len(set(links)) == 4
        tickets = [link.removeprefix(f"{server.address}/#ticket=") for link in links]
        assert server.redeem(tickets[2])
        assert [file.exists() for file in files] == [False, True]
        assert [server.redeem(ticket) for ticket in tickets] == [True, True, False, True]
        ui._show(server, login_link)
        assert path_of(opened.get(timeout=PATIENCE)).is_file()
    assert not folder.exists()


def test_the_file_leads_a_browser_in(browser: Browser, opened: Queue[str]) -> None:
    world = World()
    with running(page_server(world, Ahead(world, "web"), [])) as server, LoginLink() as login_link:
        server.used = login_link.used
        ui._show(server, login_link)
        address = opened.get(timeout=PATIENCE)
        page = browser.new_page()
        page.set_default_timeout(PAGE_PATIENCE_MS)
        page.goto(address)
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        assert not path_of(address).exists()
        page.close()


def test_without_a_browser_the_link_is_printed(
    server: PageServer, opened: Queue[str], capsys: pytest.CaptureFixture[str]
) -> None:
    ui._show(server, None)
    assert server.address in capsys.readouterr().out
    assert opened.empty()


def test_without_a_place_for_the_file_no_browser_is_opened_and_the_link_printed(
    server: PageServer, opened: Queue[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    ui._show(server, LoginLink())
    output = capsys.readouterr()
    assert server.address in output.out
    assert "cannot open a browser" in output.err
    assert opened.empty()
