"""What security.md says of callers leaves no route out, and names none that there is not."""

from __future__ import annotations

import re

from infra import ROOT, openapi

ROUTES = {f"{method.upper()} {path}" for path, methods in openapi.document()["paths"].items() for method in methods}


def section(document: str, heading: str) -> str:
    text = (ROOT / document).read_text(encoding="utf-8")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_who_may_call_what_leaves_no_route_out() -> None:
    """But those that only show chaos, for which there is one resource. An asterisk is any path, as in IAM."""
    # An owner's policy is of one unit.
    roles, _, _ = section("docs/reference/security.md", "Who may call the API").partition("\n### ")
    entries = re.findall(r"v1/([A-Z]+)/([\w/*-]+)", roles)
    resources = [rf"{method} /{path.replace('*', '.+')}" for method, path in entries if (method, path) != ("GET", "*")]
    covered = {route for route in ROUTES if any(re.fullmatch(resource, route) for resource in resources)}
    benchmark_routes = {route for route in ROUTES if route.split("/")[1] in ("benchmarks", "fleets")}
    assert covered == benchmark_routes | {route for route in ROUTES if not route.startswith("GET ")}
    assert [one for one in resources if not any(re.fullmatch(one, route) for route in ROUTES)] == []
