"""Installs the tool, and creates a folder with the plan, the other files, and this driver's part of the data.

Parameters: ``tool``, ``software``, ``plan``, ``csv``, ``csv_header``, ``target``, ``host``, ``system``.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tarfile
from pathlib import Path

import commands
from node import Node
from parts import write_part

from troop.measure.collectors.log_space import lacking

PACKAGES = {"jmeter": "java-17-amazon-corretto-headless", "locust": "python3.11"}
"""Packages of Amazon Linux 2023 by the tool that needs them."""
CONNECT_SECONDS = 5.0
ERROR = re.compile(r"error|exception", re.IGNORECASE)
NOISE = re.compile(r"Exception ignored|greenlet is being finalized")
"""What Locust's Python reports when it ends."""


def main() -> None:
    node = Node.of_script()
    if node.tool not in ("k6", "jmeter", "locust"):
        sys.exit(f"tool is {node.tool!r}: must be k6, jmeter or locust")
    if node.tool == "jmeter" and (problem := lacking(node.shared, float(node.parameters.get("rate") or 0))):
        sys.exit(problem)
    shutil.rmtree(node.work, ignore_errors=True)
    shutil.rmtree(node.software, ignore_errors=True)
    collect_files(node)
    install(node)
    reach(*node.target())
    check(node)
    print(f"{node.tool} is ready, with the plan {node.plan}")


def collect_files(node: Node) -> None:
    """Creates the folder in which the tool runs. Plans find their data beside them, as on the author's machine."""
    node.work.mkdir(parents=True)
    data = [str(name) for name in node.parameters.get("csv") or []]
    for name in [node.plan, *data]:
        if not any((folder / name).is_file() for folder in (node.files, node.artifacts)):
            sys.exit(f"there is no file or artifact {name}")
    for folder in (node.files, node.artifacts):
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.name in data:
                header = bool(node.parameters.get("csv_header", True))
                count = write_part(path, node.work / path.name, node.rank, node.drivers, header=header)
                print(f"{path.name}: {count:,} records for driver {node.rank} of {node.drivers}")
            elif path.name == node.plan:
                shutil.copyfile(path, node.work / path.name)
            elif not (node.work / path.name).exists():
                (node.work / path.name).symlink_to(path)


def install(node: Node) -> None:
    software = node.artifacts / str(node.parameters["software"])
    if not software.is_file():
        sys.exit(f"there is no artifact {software.name}, which the parameter software names")
    if node.parameters.get("system", True) and (package := PACKAGES.get(node.tool)):
        run(["dnf", "install", "--assumeyes", "--quiet", package], f"the package {package} could not be installed")
    node.software.mkdir(parents=True)
    if node.tool == "k6":
        shutil.copyfile(software, node.software / "k6")
        (node.software / "k6").chmod(0o755)
        return
    try:
        with tarfile.open(software) as archive:
            archive.extractall(node.software)
    except (tarfile.TarError, EOFError) as error:
        sys.exit(f"the artifact {software.name} is not a tar archive: {error}")


def reach(host: str, port: int) -> None:
    """Ends the script if the target does not accept connections: better now than after the warm-up."""
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError as error:
        sys.exit(
            f"{host}:{port} does not accept a connection: {error}. Check that the application runs, that the target "
            "names this port, and that the application's security group admits the nodes' subnets"
        )


def check(node: Node) -> None:
    """Ends the script if the tool does not run on this node, or cannot read the plan."""
    machine = platform.machine()
    if node.tool == "k6":
        program = str(node.software / "k6")
        run([program, "version"], f"k6 does not run on this node: it needs a build for {machine}")
        pairs = [word for name, value in node.properties().items() for word in ("-e", f"{name}={value}")]
        run(
            [program, "inspect", *pairs, node.plan],
            f"k6 cannot read the plan {node.plan}",
            node.work,
            commands.K6_QUIET,
        )
    elif node.tool == "jmeter":
        run(["java", "-version"], "Java does not run on this node")
        commands.jmeter(node)
    else:
        command = commands.locust(node)
        problem = f"Locust cannot read the plan {node.plan} (its archive needs packages for {machine} and Python 3.11)"
        run([*command.words[:3], "-f", node.plan, "--list"], problem, node.work, command.environment)


def run(words: list[str], problem: str, folder: Path | None = None, environment: dict[str, str] | None = None) -> None:
    """Runs a command; ends the script with its last lines if it fails."""
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        sys.exit(f"{problem}: {error}")
    if done.returncode:
        print(done.stdout[-4000:])
        sys.exit(f"{problem}: {reason(done.stdout)}")


def reason(output: str) -> str:
    """Returns the line of a tool's output that says most: the last with an error, otherwise the last."""
    lines = [line.strip()[:500] for line in output.splitlines() if line.strip() and not NOISE.search(line)]
    errors = [line for line in lines if ERROR.search(line)]
    return (errors or lines or ["no output"])[-1]


if __name__ == "__main__":
    main()
