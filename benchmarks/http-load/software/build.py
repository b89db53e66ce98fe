"""Builds the software of http-load from package registries, for nodes with Amazon Linux 2023:
    python3 benchmarks/http-load/software/build.py k6 [arm64|x86_64]

``k6`` needs Go, ``jmeter`` Maven, and ``locust`` only Python with pip. All are pinned: k6 and Locust by digests in this
folder. The archives are in ``build`` of the benchmark's folder, and the same on each machine.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
TOOLCHAIN = "go1.26.8"
"""The release of Go: go downloads it if another one is installed. Other releases make another file."""
ARCHITECTURES = {"arm64": "arm64", "x86_64": "amd64"}
"""Go's names of architectures."""
PLATFORMS = {"arm64": "aarch64", "x86_64": "x86_64"}
"""Those of Python packages."""
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
LAUNCHER = "ApacheJMeter-5.6.3.jar"
CONFIG = "ApacheJMeter_config-5.6.3.jar"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", choices=("k6", "jmeter", "locust"))
    own = "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
    parser.add_argument("architecture", nargs="?", choices=sorted(ARCHITECTURES), default=None, help="by default both")
    parser.add_argument("--own", action="store_true", help=f"the architecture of this machine, {own}")
    options = parser.parse_args()
    BUILD.mkdir(exist_ok=True)
    architectures = [own] if options.own else [options.architecture] if options.architecture else sorted(ARCHITECTURES)
    built = (
        [jmeter()]
        if options.tool == "jmeter"
        else [{"k6": k6, "locust": locust}[options.tool](one) for one in architectures]
    )
    for path in built:
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path}")


def k6(architecture: str) -> Path:
    target = BUILD / f"k6-{architecture}"
    go = shutil.which("go") or "/usr/local/go/bin/go"
    environment = {"CGO_ENABLED": "0", "GOOS": "linux", "GOARCH": ARCHITECTURES[architecture]}
    environment |= {"GOTOOLCHAIN": TOOLCHAIN, "GOFLAGS": "", "GOWORK": "off", "GOAMD64": "v1", "GOARM64": "v8.0"}
    build = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", str(target)]
    run([*build, "go.k6.io/k6"], "install Go from https://go.dev/dl", HERE, environment)
    return target


def jmeter() -> Path:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        goal = [f"{PLUGIN}:copy-dependencies", "-f", str(HERE / "pom.xml"), f"-DoutputDirectory={folder}"]
        run(
            ["mvn", "--quiet", "--batch-mode", "-Dstyle.color=never", *goal],
            "install Maven, for example with apt-get install maven",
            HERE,
            {},
        )
        target = BUILD / "jmeter.tar"
        write_tar(target, jmeter_files(folder))
        return target


def jmeter_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yields names and contents in the layout of JMeter's distribution."""
    home = "apache-jmeter-5.6.3"
    with zipfile.ZipFile(folder / CONFIG) as packed:
        for name in sorted(packed.namelist()):
            if name.startswith("bin/") and not name.endswith("/"):
                yield f"{home}/{name}", packed.read(name)
    yield f"{home}/bin/ApacheJMeter.jar", (folder / LAUNCHER).read_bytes()
    yield f"{home}/lib/junit/README", b"JMeter expects this folder.\n"
    for path in sorted(folder.glob("*.jar")):
        if path.name not in (LAUNCHER, CONFIG):
            yield f"{home}/lib/{'ext/' if path.name.startswith('ApacheJMeter_') else ''}{path.name}", path.read_bytes()


def locust(architecture: str) -> Path:
    """Packs Locust with all it needs, for the Python 3.11 of Amazon Linux 2023."""
    target = BUILD / f"locust-{architecture}.tar"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        platforms = [f"manylinux{kind}_{PLATFORMS[architecture]}" for kind in ("2014", "_2_17", "_2_28")]
        options = [word for one in platforms for word in ("--platform", one)]
        options += ["--implementation", "cp", "--python-version", "3.11", "--only-binary=:all:", "--no-deps"]
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--require-hashes", *options]
        run([*install, "--target", name, "-r", str(HERE / "requirements.txt")], "install pip", HERE, {})
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.parts[-2] != "bin"]
        paths = [path for path in paths if path.relative_to(folder).parts[0] != "include"]  # releases of pip differ
        left_out = ("RECORD", "direct_url.json", "REQUESTED", "INSTALLER")
        files = ((str(p.relative_to(folder)), p.read_bytes()) for p in paths if p.name not in left_out)
        write_tar(target, files)
    return target


def write_tar(target: Path, files: Iterator[tuple[str, bytes]]) -> None:
    """Writes an archive that is the same for the same files."""
    partial = target.with_suffix(".part")
    with tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    partial.replace(target)


def run(words: list[str], remedy: str, folder: Path, environment: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(words, cwd=folder, env={**os.environ, **environment}, check=False)
    except OSError as error:
        sys.exit(f"cannot run {words[0]}: {error}: {remedy}")
    if done.returncode:
        sys.exit(f"{' '.join(words[:2])} failed with exit code {done.returncode}, see above")


if __name__ == "__main__":
    main()
