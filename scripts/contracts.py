"""Defines the import contract of rules: ``lint-imports`` reads it from ``.importlinter``."""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class RulesContract(Contract):
    """Allows only pure imports in rules: modules of ``package`` that are not in a layer of their flat.

    A rule must not import a module of a layer, nor one of the libraries. Direct imports are enough: every rule is
    checked.
    """

    package = fields.StringField()
    layers = fields.SetField(subfield=fields.StringField())
    libraries = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002
        """Lists the forbidden imports of all rules."""
        rules = [m for m in graph.find_descendants(self.package) if not self._layer(m)]  # type: ignore[arg-type]
        broken = sorted(
            f"{rule} -> {imported}"
            for rule in rules
            for imported in graph.find_modules_directly_imported_by(rule)
            if self._layer(imported) or imported in self.libraries  # type: ignore[operator]
        )
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Prints each forbidden import."""
        for line in check.metadata["broken"]:
            output.print_error(line)

    def _layer(self, module: str) -> bool:
        """Checks whether a module is in a layer: ``<package>.<flat>.<layer>``."""
        parts = module.split(".")
        return parts[0] == self.package and len(parts) > 2 and parts[2] in self.layers  # type: ignore[operator]
