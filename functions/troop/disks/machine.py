"""Runs commands on this node, installs packages and loads modules. All changes of the node are here."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from troop.disks.errors import DiskError
from troop.disks.steps import Run, Step, Wait

WAIT_SECONDS = 30.0
"""The longest time until a new device exists."""
SECTORS = re.compile(r"\{sectors:([^}]+)\}")


class Machine:
    """This node."""

    def output(self, command: Sequence[str]) -> str:
        """Runs a command and returns its standard output.

        Raises:
            DiskError: it cannot run, or ends with another code than 0; with all that it printed.
        """
        try:
            done = subprocess.run(list(command), stdin=subprocess.DEVNULL, capture_output=True, check=False)
        except OSError as error:
            raise DiskError(f"cannot run {command[0]}: {error}") from error
        if done.returncode:
            printed = (done.stdout + done.stderr).decode(errors="replace").strip()
            raise DiskError(f"{' '.join(command)} failed with exit code {done.returncode}: {printed[-2000:]}")
        return done.stdout.decode(errors="replace")

    def succeeds(self, command: Sequence[str]) -> bool:
        try:
            self.output(command)
        except DiskError:
            return False
        return True

    def text(self, path: str) -> str:
        """Returns the content of a file; empty if it cannot be read."""
        try:
            return Path(path).read_text(encoding="ascii", errors="replace").strip()
        except OSError:
            return ""

    def perform(self, steps: Sequence[Step]) -> None:
        """Performs steps in their order, and prints them.

        Raises:
            DiskError: a step that may not fail has failed.
        """
        for step in steps:
            try:
                self._perform(step)
            except DiskError:
                if isinstance(step, Wait) or not step.may_fail:
                    raise

    def _perform(self, step: Step) -> None:
        if isinstance(step, Run):
            command = [SECTORS.sub(lambda match: self._sectors(match[1]), part) for part in step.command]
            self.output(command)
            print("$ " + " ".join(command))
        elif isinstance(step, Wait):
            self._wait(step.path)
        else:
            try:
                Path(step.path).write_text(step.text, encoding="ascii")
            except OSError as error:
                raise DiskError(f"cannot write {step.text} to {step.path}: {error}") from error
            print(f"$ echo {step.text} > {step.path}")

    def _sectors(self, path: str) -> str:
        return self.output(["blockdev", "--getsz", path]).strip()

    def _wait(self, path: str) -> None:
        until = time.monotonic() + WAIT_SECONDS
        while not Path(path).exists():
            if time.monotonic() > until:
                raise DiskError(f"{path} does not exist {WAIT_SECONDS:.0f} s after its creation: see dmesg")
            time.sleep(0.1)

    def settle(self) -> None:
        """Waits until udev has seen all changes, where there is udev."""
        self.succeeds(["udevadm", "settle", "--timeout=30"])

    def install(self, packages: Mapping[str, str]) -> None:
        """Installs the packages of those commands that are missing.

        Raises:
            DiskError: a command is missing all the same; names it and its package.
        """
        missing = {command: package for command, package in packages.items() if not self.has(command)}
        for command, package in missing.items():
            try:
                self.output(["dnf", "install", "--assumeyes", "--quiet", package])
            except DiskError as error:
                raise DiskError(
                    f"{command} is missing, and its package {package} cannot be installed from the repositories of "
                    f"this node: {error}"
                ) from error
            if not self.has(command):
                raise DiskError(f"{command} is missing, also after the installation of {package}")

    def has(self, command: str) -> bool:
        return any(os.access(f"{folder}/{command}", os.X_OK) for folder in os.get_exec_path())

    def load(self, modules: Sequence[str], targets: Sequence[str]) -> None:
        """Loads modules of the kernel, with the package of further modules if they need it.

        Raises:
            DiskError: the kernel has no such module or target; names it and the kernel.
        """
        for module in modules:
            if not self.succeeds(["modprobe", module]) and not self._load_from_package(module):
                raise DiskError(
                    f"the kernel {os.uname().release} has no module {module}, and its packages "
                    f"{' and '.join(packages_of_modules(os.uname().release))} do not provide it"
                )
        known = self.output(["dmsetup", "targets"]).split() if targets else []
        for target in targets:
            if target not in known:
                raise DiskError(f"the kernel {os.uname().release} has no device-mapper target {target}")

    def _load_from_package(self, module: str) -> bool:
        return any(
            self.succeeds(["dnf", "install", "--assumeyes", "--quiet", package]) and self.succeeds(["modprobe", module])
            for package in packages_of_modules(os.uname().release)
        )


def packages_of_modules(release: str) -> list[str]:
    """Returns the packages with a kernel's further modules, for example of ``6.1.34-59.116.amzn2023.x86_64``."""
    version = re.sub(r"\.(x86_64|aarch64)$", "", release)
    series = ".".join(version.split(".")[:2])
    return [f"kernel-modules-extra-{version}", f"kernel{series}-modules-extra-{version}"]
