"""Which machine images a file may name, and which nodes boot from them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.bench.build import BENCHMARK
from troop.bench.admission.admission import InstanceType
from troop.bench.admission.images import ImageFacts, forbidden_images, unusable_images
from troop.bench.definition.definition import Benchmark, Fleet, from_document, to_document

AMI, PARAMETER = "ami-0123456789abcdef0", "/images/db/arm64"
GOOD = ImageFacts(AMI, "arm64", "/dev/xvda", 8)
OFFERS = {"c7g.large": InstanceType(frozenset({"arm64"}), frozenset({"eu-central-1a"}))}


def booting_from(image: str | None, **more: Any) -> Benchmark:
    return replace(BENCHMARK, fleets=(Fleet("servers", 1, "c7g.large", 1, 600, 8, image=image, **more),))


@pytest.mark.parametrize(
    ("image", "allowed", "passes"),
    [
        (None, (), True),
        (AMI, (), False),
        (AMI, (AMI,), True),
        (AMI, ("ami-0123456789abcdef1", "/images/*"), False),
        (PARAMETER, (PARAMETER,), True),
        (PARAMETER, ("/images/*",), True),
        (PARAMETER, ("/images/db",), False),
        (PARAMETER, ("/image",), False),
        ("/other/images/db", ("/images/*",), False),
    ],
)
def test_only_allowed_images_may_be_named(image: str | None, allowed: tuple[str, ...], passes: bool) -> None:
    problems = forbidden_images(booting_from(image), allowed)
    assert (problems == []) is passes
    if not passes:
        (problem,) = problems
        assert problem.where == "fleets.servers.image"
        assert f"-c 'troop:allowed_images={','.join([*allowed, str(image)])}'" in (problem.allowed or "")


@pytest.mark.parametrize(
    ("facts", "where", "words"),
    [
        (replace(GOOD, architecture="x86_64"), "image", "one for arm64, as c7g.large needs"),
        (replace(GOOD, root_device=""), "image", "one that boots from EBS"),
        (replace(GOOD, more_volumes=2), "image", "with 3 volumes"),
        (replace(GOOD, root_gib=30), "root_volume_gib", "at least 30"),
        (replace(GOOD, platform="Windows with SQL Server"), "image", "one of Linux"),
        (replace(GOOD, platform="Red Hat Enterprise Linux"), "license_fee", "as Red Hat Enterprise Linux"),
        (replace(GOOD, is_product=True), "license_fee", "as a product of AWS Marketplace"),
        ("there is no such parameter in this region", "image", "there is no such parameter"),
    ],
)
def test_an_image_that_nodes_cannot_boot_from_is_refused(facts: ImageFacts | str, where: str, words: str) -> None:
    (problem,) = unusable_images(booting_from(AMI), {AMI: facts}, OFFERS)
    assert problem.where == f"fleets.servers.{where}"
    assert words in f"{problem.message}: {problem.allowed}"


def test_software_that_costs_more_is_welcome_with_its_price() -> None:
    priced = booting_from(AMI, license_fee=Decimal("0.05"))
    assert unusable_images(priced, {AMI: replace(GOOD, platform="Red Hat Enterprise Linux")}, OFFERS) == []
    assert unusable_images(booting_from(AMI), {AMI: GOOD}, OFFERS) == []


def test_the_image_is_stored_with_the_definition() -> None:
    own = booting_from(PARAMETER)
    assert to_document(own)["fleets"]["servers"]["image"] == PARAMETER
    assert from_document(to_document(own)) == own
    assert "image" not in to_document(booting_from(None))["fleets"]["servers"]
