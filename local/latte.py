"""Builds latte for the nodes of cassandra-write, which run Amazon Linux 2023: `python -m local latte`.

cargo compiles it, and zig links it for the C library of the nodes, whichever newer one this machine has. The machine
must have the architecture of the nodes, because latte also links this machine's OpenSSL.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from .project import ROOT
from .tools import CARGO, LATTE_VERSION, LIBRARY, NoToolError, install, run

BUILT = ROOT / "benchmarks" / "cassandra-write" / "build" / "latte"
ZIG = ROOT / ".build" / "zig"
GLIBC, OPENSSL = (2, 34), (3, 0, 0)
"""The C library of Amazon Linux 2023, and the oldest interface of the OpenSSL 3 that it has."""
ARCHITECTURES = ("x86_64", "aarch64")
_VERSIONS = {"GLIBC": GLIBC, "OPENSSL": OPENSSL}
_SYMBOL = re.compile(rb"\0(GLIBC|OPENSSL)_(\d+(?:\.\d+)+)(?=\0)")


def build(tell: Callable[[str], None]) -> None:
    """Builds latte unless it is there, and prints its path and hash.

    Raises:
        NoToolError: a tool cannot be installed, the build fails, or the program needs newer libraries than nodes have.
    """
    if not BUILT.exists():
        _build(tell)
    if newer := list(too_new(BUILT.read_bytes())):
        raise NoToolError(
            f"{BUILT} needs {', '.join(newer)}, which Amazon Linux 2023 lacks: delete it, and build again"
        )
    print(description(BUILT))


def description(path: Path) -> str:
    """Returns the artifact as the benchmark's file expects it, and the option that sets its hash."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    source = path.relative_to(path.parents[1])
    return (
        f"  - name: latte\n    source: {source}\n    sha256: {digest}\n"
        f"troop bench run cassandra-write --size study --set artifacts.latte.sha256={digest}"
    )


def too_new(program: bytes) -> Iterator[str]:
    """Yields the versions of interfaces, such as ``GLIBC_2.38``, that a program needs and nodes lack."""
    names = {(match[1].decode(), match[2].decode()) for match in _SYMBOL.finditer(program)}
    for library, version in sorted(names):
        if tuple(int(part) for part in version.split(".")) > _VERSIONS[library]:
            yield f"{library}_{version}"


def _build(tell: Callable[[str], None]) -> None:
    machine = platform.machine()
    if platform.system() != "Linux" or machine not in ARCHITECTURES:
        raise NoToolError("latte for nodes is built on Linux with x86_64 or aarch64, the architecture of the drivers")
    if shutil.which("cargo") is None:
        raise NoToolError(CARGO)
    install(("cc", "pkg-config"), tell, () if LIBRARY[0].exists() else (LIBRARY[1],))
    tell(f"building latte {LATTE_VERSION} for {machine} nodes: about five minutes")
    BUILT.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ZIG.parent) as text:
        folder = Path(text)
        headers, libraries = (
            _output_of("pkg-config", f"--variable={one}", "openssl") for one in ("includedir", "libdir")
        )
        openssl(folder / "openssl", headers, libraries, _output_of("cc", "-print-multiarch"))
        run(
            [
                *("nice", str(ZIG / "bin" / "cargo-zigbuild"), "install", "--quiet", "--locked"),
                *("--target", f"{machine}-unknown-linux-gnu.{'.'.join(map(str, GLIBC))}"),
                *("--root", str(folder / "out"), "latte-cli", "--version", LATTE_VERSION),
            ],
            "latte could not be built",
            CARGO_TARGET_DIR=str(folder / "target"),
            # cargo-zigbuild asks the first Python for zig
            PATH=f"{ZIG / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            OPENSSL_DIR=str(folder / "openssl"),
            OPENSSL_STATIC="0",
        )
        (folder / "out" / "bin" / "latte").replace(BUILT)


def openssl(folder: Path, headers: str, libraries: str, multiarch: str) -> None:
    """Copies OpenSSL's headers and libraries alone into one folder. zig must not see others of this machine.

    Args:
        multiarch: the folder below ``headers`` with the architecture's headers, on Debian; "" elsewhere.
    """
    for part in (Path(headers) / "openssl", Path(headers) / multiarch / "openssl"):
        if part.is_dir():
            shutil.copytree(part, folder / "include" / "openssl", dirs_exist_ok=True)
    (folder / "lib").mkdir(parents=True)
    for name in ("libssl.so", "libcrypto.so"):
        shutil.copyfile(Path(libraries) / name, folder / "lib" / name)


def _output_of(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoToolError(f"OpenSSL's development files are missing: {' '.join(command)} failed ({error})") from None
