"""Generates the faults in docs/guides/faults.md: ``python -m infra.faults_doc`` writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from infra import ROOT
from infra.generated import filled, table
from troop.faults import LASTING
from troop.faults.lasting_fault import LastingFault, Parameter, Trace

PATH = ROOT / "docs" / "guides" / "faults.md"

TRACES: Mapping[str, str] = {
    "qdiscs": "queueing disciplines of `tc` (netem, ingress, prio)",
    "drops": "rules of `iptables` that drop packets",
    "stress": "processes of `stress-ng`",
    "rollbacks": "flags and rollback scripts in `/var/lib/amazon/ssm`",
    "hosts": "lines in `/etc/hosts` that AWS's document marks",
    "used": "how full the root volume is",
}
"""What the probe's fields count, by field."""


def text(document: str) -> str:
    """Returns docs/guides/faults.md with current faults and programs."""
    faults = "\n".join(line for fault in LASTING for line in _section(fault))
    document = filled(document, "faults", faults)
    return filled(document, "programs", table(["program", "package", "faults"], _programs()))


def _section(fault: LastingFault) -> Iterator[str]:
    yield f"### `{fault.name}`: {fault.summary}"
    yield ""
    yield f"`{fault.document}`. {_end(fault)}"
    yield ""
    yield table(["parameter", "meaning", "values", "default"], [_parameter(one) for one in fault.parameters])


def _end(fault: LastingFault) -> str:
    if fault.returns:
        return "Over when a process of that name runs again."
    traces = ", ".join(_trace(one) for one in fault.traces)
    how = "`atd` undoes it when its shell has died" if fault.needs_timer else "it ends with its shell"
    return f"Over when these are as before: {traces}. If it is cancelled, {how}."


def _trace(trace: Trace) -> str:
    return TRACES[trace.field] + (f", to {trace.slack:g} points" if trace.slack else "")


def _parameter(parameter: Parameter) -> tuple[str, str, str, str]:
    default = "required" if parameter.default is None else f"`{parameter.default}`"
    return f"`{parameter.name}`", parameter.summary, parameter.values.words, default


def _programs() -> Iterator[tuple[str, str, str]]:
    packages = {tool: package for fault in LASTING for tool, package in fault.tools.items()}
    for tool, package in sorted(packages.items()):
        named = ", ".join(f"`{fault.name}`" for fault in LASTING if tool in fault.tools)
        module = any(tool in fault.modules for fault in LASTING)
        yield f"`{tool}`" + (" (kernel module)" if module else ""), f"`{package}`", named


if __name__ == "__main__":
    PATH.write_text(text(PATH.read_text(encoding="utf-8")), encoding="utf-8")
