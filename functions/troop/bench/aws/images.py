"""Looks up the machine images that files name, by id or by an SSM parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.admission.images import LINUX, PUBLIC_PARAMETERS, ImageFacts, is_id

_NO_IMAGE = frozenset({"InvalidAMIID.NotFound", "InvalidAMIID.Malformed", "InvalidAMIID.Unavailable"})
_NO_PARAMETER = frozenset({"ParameterNotFound", "ParameterVersionNotFound"})


def read_images(ec2: Any, ssm: Callable[[], Any], images: Iterable[str]) -> dict[str, ImageFacts | str]:
    """Returns the images by name; of one that does not exist, the reason as text.

    Args:
        ssm: returns a client of Systems Manager.
        images: ids of images, or names of parameters that contain one.

    Raises:
        ClientError: AWS refused.
    """
    return {image: _read(ec2, ssm, image) for image in sorted(set(images))}


def _read(ec2: Any, ssm: Callable[[], Any], image: str) -> ImageFacts | str:
    if is_id(image):
        return _described(ec2, image) or "there is no such image here, or it is not shared with this account"
    try:
        named = str(ssm().get_parameter(Name=image)["Parameter"]["Value"])
    except ClientError as error:
        if error.response["Error"]["Code"] in _NO_PARAMETER:
            return "there is no such parameter in this region"
        raise
    if not is_id(named):
        return "the parameter does not contain the id of an image"
    # IAM cannot limit a launch to what a parameter contains, only to the owners of images.
    owners = ["amazon"] if image.startswith(PUBLIC_PARAMETERS) else ["amazon", "self"]
    whose = "Amazon" if image.startswith(PUBLIC_PARAMETERS) else "this account or Amazon"
    facts = _described(ec2, named, *owners)
    return facts or f"it names {named}, which is not an available image of {whose}; to use it, allow its id"


def _described(ec2: Any, image: str, *owners: str) -> ImageFacts | None:
    owner_filter = {"Owners": list(owners)} if owners else {}
    try:
        answer = ec2.describe_images(ImageIds=[image], IncludeDeprecated=True, **owner_filter)
    except ClientError as error:
        if error.response["Error"]["Code"] in _NO_IMAGE:
            return None
        raise
    available = [one for one in answer["Images"] if one.get("State", "available") == "available"]
    return _facts(available[0]) if available else None


def _facts(image: Mapping[str, Any]) -> ImageFacts:
    root = "" if image.get("RootDeviceType") == "instance-store" else str(image.get("RootDeviceName") or "")
    volumes = {one.get("DeviceName"): one["Ebs"] for one in image.get("BlockDeviceMappings", []) if "Ebs" in one}
    return ImageFacts(
        id=image["ImageId"],
        architecture=str(image.get("Architecture", "")),
        root_device=root,
        root_gib=int(volumes.get(root, {}).get("VolumeSize") or 0),
        more_volumes=sum(device != root for device in volumes),
        platform=str(image.get("PlatformDetails") or LINUX),
        is_product=bool(image.get("ProductCodes")),
    )
