"""What the API makes of an image that a file names: looked up once, checked, and stored for all cells."""

from __future__ import annotations

import json

import pytest
from moto.backends import get_backend

from tests.unit.account.bench import Half, changed, post, problems
from troop.bench.definition import names
from troop.shared.aws.clients import client

KEY = "body.definition.fleets.drivers.image"
ALLOWED = ["ami-0123456789abcdef0", "/images/*", "/aws/service/canonical/*"]
pytestmark = pytest.mark.parametrize("settings", [{"allowed_images": ALLOWED}], indirect=True)


def image(architecture: str = "arm64") -> str:
    """An own image; its id."""
    ident: str = client("ec2").register_image(Name=f"own-{architecture}", RootDeviceName="/dev/sda1")["ImageId"]
    get_backend("ec2")["123456789012"]["eu-central-1"].amis[ident].architecture = architecture  # moto drops it
    return ident


def parameter(name: str, value: str) -> str:
    client("ssm").put_parameter(Name=name, Value=value, Type="String")
    return name


def test_a_parameter_is_looked_up_once_for_all_cells(half: Half) -> None:
    own = image()
    name = parameter("/images/db", own)
    status, run = post(definition=changed(image=name, root_volume_gib=16))
    assert status == 202, run
    key = names.image_key(run["run"], name)
    assert json.loads(half.objects()[key]) == {"id": own, "root_device": "/dev/sda1"}


def test_image_that_the_deployment_does_not_allow_is_not_looked_up(half: Half) -> None:
    refused = problems(definition=changed(image="/elsewhere/db"))
    assert "is '/elsewhere/db': must be an image that the deployment allows" in refused[KEY]
    assert "troop:allowed_images is ami-0123456789abcdef0, /images/*" in refused[KEY]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("/images/none", None, "there is no such parameter in this region"),
        ("/images/text", "latest", "does not contain the id of an image"),
        ("/images/gone", "ami-0123456789abcdef9", "not an available image of this account or Amazon"),
        ("ami-0123456789abcdef0", None, "there is no such image here"),
    ],
)
def test_an_image_that_does_not_exist_is_refused(half: Half, name: str, value: str | None, words: str) -> None:
    if value:
        parameter(name, value)
    assert words in problems(definition=changed(image=name))[KEY]


def test_an_image_that_does_not_fit_its_nodes_is_refused(half: Half) -> None:
    name = parameter("/images/x86", own := image("x86_64"))
    refused = problems(definition=changed(image=name, root_volume_gib=8))
    assert "at least 15" in refused["body.definition.fleets.drivers.root_volume_gib"]
    assert f"at present {own}, for x86_64: must be one for arm64" in refused[KEY]
