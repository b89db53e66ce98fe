"""Instances of moto with the profile of their launch template, which moto ignores."""

from __future__ import annotations

from typing import Any

import pytest
from moto.ec2.models.instances import InstanceBackend


def give_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    original = InstanceBackend.run_instances

    def run_instances(self: Any, *args: Any, **options: Any) -> Any:
        reservation = original(self, *args, **options)
        if template := options.get("launch_template"):
            profile = self._get_template_from_args(template).data.get("IamInstanceProfile")
            for instance in reservation.instances:
                instance.iam_instance_profile = profile and profile | {"Id": "AIPA1"}
        return reservation

    monkeypatch.setattr(InstanceBackend, "run_instances", run_instances)
