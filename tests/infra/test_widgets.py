"""Custom widgets: what CloudWatch is given, and that a dashboard can call nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infra.bundling import stage_code
from tests.infra.cfn import resources_of, text

Template = Mapping[str, Any]


def test_no_resource_policy_allows_calls(template: Template) -> None:
    """A viewer's own credentials call it, so a resource policy would only open it to others."""
    called = [
        text(one["Properties"]["FunctionName"]) for one in resources_of(template, "AWS::Lambda::Permission").values()
    ]
    assert called
    assert not [name for name in called if "Widgets" in name]


def test_output_names_the_function_for_dashboards(template: Template) -> None:
    assert text(template["Outputs"]["WidgetsFunctionArn"]["Value"]) == "<Widgets.Arn>"


def test_the_templates_are_in_the_asset() -> None:
    templates = stage_code("{}", "lambda") / "troop" / "widgets" / "templates"
    assert {"events.html", "decisions.html", "units.html", "unit.html", "runs.html"} <= {
        path.name for path in templates.iterdir()
    }
