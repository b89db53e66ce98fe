"""The file that the proxy's token lies in: for this user alone, and for as long as the proxy runs."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from cli.web.proxy import token_file


def test_the_token_file_is_this_users_alone_and_goes(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with token_file(tmp_path / "troop", 8080, "abc") as file:
            assert file.read_text() == "X-Troop-Token: abc\n"
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert not file.exists()
    finally:
        os.umask(old)


def test_a_file_of_an_earlier_proxy_is_replaced_and_no_link_is_followed(tmp_path: Path) -> None:
    folder = tmp_path / "troop"
    folder.mkdir(mode=0o755)
    target = tmp_path / "elsewhere"
    (folder / "proxy-8080.header").symlink_to(target)
    with token_file(folder, 8080, "abc") as file:
        assert not file.is_symlink()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert not target.exists()


def test_a_folder_of_somebody_elses_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(PermissionError), token_file(tmp_path / "link", 1, "abc"):
        pass
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(PermissionError), token_file(tmp_path / "real", 1, "abc"):
        pass
