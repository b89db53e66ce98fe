"""Adds Amazon Linux 2023 for both architectures, and the public parameters that name the images.

MiniStack has one of the parameters, but its image is not in moto.
"""

from __future__ import annotations

from typing import Any

from ministack.services import ssm

_PARAMETER = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{architecture}"
_ROOT_DEVICE = "/dev/xvda"


def register(backend: Any) -> None:
    for architecture in ("x86_64", "arm64"):
        image = backend.register_image(name=f"al2023-ami-local-{architecture}", description="Amazon Linux 2023")
        image.architecture = architecture
        image.root_device_name = _ROOT_DEVICE
        image.owner_id, image.owner_alias = "137112412989", "amazon"
        ssm._PUBLIC_AMI_PARAMETERS[_PARAMETER.format(architecture=architecture)] = image.id
