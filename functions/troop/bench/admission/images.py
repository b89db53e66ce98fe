"""Checks the machine images that a file names against the deployment's setting and the nodes that boot from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from troop.bench.admission.admission import InstanceType
from troop.bench.definition.definition import Benchmark, Fleet
from troop.bench.definition.limits import setting
from troop.bench.definition.problems import Problem
from troop.shared.values import IMAGE_ID

PUBLIC_PARAMETERS = "/aws/"
"""Beginning of the names of AWS's public parameters."""

LINUX = "Linux/UNIX"
"""EC2's name of the platform that costs nothing in addition to the instance."""

_ID = re.compile(IMAGE_ID)


@dataclass(frozen=True)
class ImageFacts:
    """An available image.

    Attributes:
        architecture: as EC2 names it.
        root_device: name of its root device; "" without a root device on EBS.
        root_gib: size of its root volume.
        more_volumes: number of its other EBS volumes.
        platform: what EC2 bills, such as :data:`LINUX`.
        is_product: whether it is a product of AWS Marketplace.
    """

    id: str
    architecture: str
    root_device: str
    root_gib: int
    more_volumes: int = 0
    platform: str = LINUX
    is_product: bool = False

    @property
    def document(self) -> dict[str, Any]:
        """The part that is stored with the run, as :class:`troop.bench.fleets.fleet_requests.Image` reads it."""
        return {"id": self.id, "root_device": self.root_device}


def is_id(image: str) -> bool:
    """Checks whether a name is the id of an image; otherwise it is the name of a parameter."""
    return _ID.fullmatch(image) is not None


def forbidden_images(benchmark: Benchmark, allowed: Sequence[str]) -> list[Problem]:
    """Lists the fleets whose image the deployment does not allow.

    Args:
        allowed: ids, and names or patterns of parameters.
    """
    return [
        Problem(
            ("fleets", fleet.role, "image"),
            f"is {fleet.image!r}",
            "an image that the deployment allows: "
            + setting("allowed_images", ", ".join(allowed) or "empty", ",".join([*allowed, fleet.image])),
        )
        for fleet in benchmark.fleets
        if fleet.image is not None and not any(fnmatchcase(fleet.image, one) for one in allowed)
    ]


def unusable_images(
    benchmark: Benchmark, images: Mapping[str, ImageFacts | str], offers: Mapping[str, InstanceType]
) -> list[Problem]:
    """Lists the fleets that cannot boot from their image.

    Args:
        images: by the name in the file; a text says why there is no such image.
        offers: by instance type; a type that is missing has a problem of its own.
    """
    return [
        problem
        for fleet in benchmark.fleets
        if fleet.image is not None
        for problem in _unusable(fleet, images[fleet.image], offers.get(fleet.instance_type))
    ]


def _unusable(fleet: Fleet, image: ImageFacts | str, offer: InstanceType | None) -> Iterator[Problem]:
    place, subject = ("fleets", fleet.role, "image"), f"is {fleet.image!r}"
    if isinstance(image, str):
        yield Problem(place, f"{subject}: {image}", "an available image in this region")
        return
    named = subject if image.id == fleet.image else f"{subject}, at present {image.id}"
    if offer is not None and image.architecture not in offer.architectures:
        runs = " or ".join(sorted(offer.architectures))
        yield Problem(place, f"{named}, for {image.architecture}", f"one for {runs}, as {fleet.instance_type} needs")
    if not image.root_device:
        yield Problem(place, f"{named}, without a root volume on EBS", "one that boots from EBS")
    if image.more_volumes:
        allowed = "one with its root volume alone: list other volumes in the file"
        yield Problem(place, f"{named}, with {image.more_volumes + 1} volumes", allowed)
    if fleet.root_volume_gib < image.root_gib:
        allowed = f"at least {image.root_gib}, the size of the root volume of {image.id}"
        yield Problem(("fleets", fleet.role, "root_volume_gib"), f"is {fleet.root_volume_gib}", allowed)
    if "windows" in image.platform.lower():
        yield Problem(place, f"{named}, for Windows", "one of Linux")
    elif (image.platform != LINUX or image.is_product) and not fleet.license_fee:
        product = image.platform if image.platform != LINUX else "a product of AWS Marketplace"
        allowed = f"set above 0: AWS bills {image.id} as {product}, in addition to the instance"
        yield Problem(("fleets", fleet.role, "license_fee"), "is 0", allowed)
