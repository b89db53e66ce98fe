"""latte for nodes: what its build takes from this machine, what it may need, and what is printed."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

import pytest

from local import latte
from local.tools import NoToolError


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ("GLIBC_2.2.5 GLIBC_2.34 OPENSSL_3.0.0 GCC_3.0 GLIBC_PRIVATE", []),
        ("GLIBC_2.9 GLIBC_2.35 GLIBC_2.38", ["GLIBC_2.35", "GLIBC_2.38"]),
        ("OPENSSL_3.0.1 OPENSSL_3.2.0 OPENSSL_1.1.1", ["OPENSSL_3.0.1", "OPENSSL_3.2.0"]),
        ("", []),
    ],
)
def test_newer_interfaces_than_nodes_have_are_named(needs: str, expected: list[str]) -> None:
    program = b"\x7fELF\0" + b"\0".join(name.encode() for name in needs.split()) + b"\0see GLIBC_2.99 for more\0"
    assert list(latte.too_new(program)) == expected


def test_the_artifact_is_printed_as_the_file_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = tmp_path / "build" / "latte"
    built.parent.mkdir()
    built.write_bytes(b"\0GLIBC_2.34\0")
    monkeypatch.setattr(latte, "BUILT", built)
    latte.build(lambda _: pytest.fail("it is there"))
    digest = hashlib.sha256(b"\0GLIBC_2.34\0").hexdigest()
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["  - name: latte", "    source: build/latte", f"    sha256: {digest}"]
    assert lines[3].endswith(f" --set artifacts.latte.sha256={digest}")
    built.write_bytes(b"\0GLIBC_2.38\0")
    with pytest.raises(NoToolError, match=r"needs GLIBC_2\.38, which Amazon Linux 2023 lacks"):
        latte.build(lambda _: None)


def test_another_architecture_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(latte, "BUILT", tmp_path / "latte")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(NoToolError, match="x86_64 or aarch64"):
        latte.build(lambda _: None)


@pytest.mark.parametrize("multiarch", ["x86_64-linux-gnu", ""])
def test_only_openssl_of_this_machine_is_visible(tmp_path: Path, multiarch: str) -> None:
    headers, libraries = tmp_path / "include", tmp_path / "lib"
    for path in ("include/openssl/ssl.h", "include/stdio.h", f"include/{multiarch}/openssl/opensslconf.h"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    libraries.mkdir()
    for name in ("libssl.so.3", "libcrypto.so", "libc.so"):
        (libraries / name).write_text(name)
    (libraries / "libssl.so").symlink_to("libssl.so.3")
    latte.openssl(tmp_path / "all", str(headers), str(libraries), multiarch)
    copied = sorted(str(path.relative_to(tmp_path / "all")) for path in (tmp_path / "all").rglob("*") if path.is_file())
    assert copied == [
        "include/openssl/opensslconf.h",
        "include/openssl/ssl.h",
        "lib/libcrypto.so",
        "lib/libssl.so",
    ]
    assert not (tmp_path / "all/lib/libssl.so").is_symlink()
