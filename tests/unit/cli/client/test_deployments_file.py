"""The file that lists deployments: what it may say, and how each of them is called."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cli.client import deployments_file
from cli.client.deployments_file import ListedDeployment, read
from cli.shared.errors import CliError, Exit

ROLE = "arn:aws:iam::111122223333:role/troop"


def file(folder: Path, *entries: str) -> Path:
    path = folder / "deployments.yaml"
    path.write_text("deployments:\n" + "".join(f"- {{{entry}}}\n" for entry in entries))
    return path


def labels(folder: Path, *entries: str) -> list[str]:
    return [one.label for one in read(file(folder, *entries))]


def test_every_field_is_read(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "name: Troop, region: eu-west-1, profile: dev, stage: staging",
        f"name: Shop, region: us-gov-west-1, role: '{ROLE}', external_id: x7",
        "name: Own, region: cn-north-1",
    )
    assert read(path) == (
        ListedDeployment("Troop", "eu-west-1", profile="dev", stage="staging", label="Troop"),
        ListedDeployment("Shop", "us-gov-west-1", role=ROLE, external_id="x7", label="Shop"),
        ListedDeployment("Own", "cn-north-1", label="Own"),
    )


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("name: Troop", "the deployment 'Troop' lacks region"),
        ("region: eu-west-1", "deployment 1 lacks name"),
        ("name: Troop, region: frankfurt", "has region 'frankfurt': must be a region, such as eu-west-1"),
        ("name: a b, region: eu-west-1", "has name 'a b': must be a letter, then letters"),
        ("name: Troop, region: eu-west-1, stage: 1", "has stage 1: must be a letter"),
        ("name: Troop, region: eu-west-1, accounts: x", "has the key 'accounts': must be one of name, region, profile"),
        ("name: Troop, region: eu-west-1, external-id: x", "has the key 'external-id': must be spelled external_id"),
        ("name: Troop, region: eu-west-1, role: troop", "has role 'troop': must be a role's ARN"),
        (f"name: Troop, region: eu-west-1, profile: dev, role: '{ROLE}'", "has both profile and role"),
        ("name: Troop, region: eu-west-1, external_id: x7", "has external_id without role"),
        (
            f"name: Troop, region: eu-west-1, role: '{ROLE}', external_id: 123456789012",
            "has external_id 123456789012: must be 2 to 1224 letters, digits or any of +=,.@:/-_; write it in quotes",
        ),
        ("name: Troop, region: eu-west-1, profile: ''", "has profile '': must be the name of a profile"),
    ],
)
def test_refusal_names_line_and_entry(tmp_path: Path, entry: str, words: str) -> None:
    path = file(tmp_path, entry)
    with pytest.raises(CliError) as refused:
        read(path)
    assert refused.value.code is Exit.USAGE
    assert str(refused.value).startswith(f"{path}:2: ")
    assert words in str(refused.value)


@pytest.mark.parametrize("text", ["", "[]", "deployments: []", "deployments: {}", "deployments: [{}]\nother: 1"])
def test_file_without_deployments_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "d.yaml").write_text(text)
    with pytest.raises(CliError, match="must have one key, deployments"):
        read(tmp_path / "d.yaml")


def test_unknown_line_of_a_json_file_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('{\n\t"deployments": [{"name": "Troop"}]\n}')
    with pytest.raises(CliError, match=r"d\.json: the deployment 'Troop' lacks region"):
        read(path)


def test_deployment_is_listed_once(tmp_path: Path) -> None:
    twice = "name: Troop, region: eu-west-1, role: 'arn:aws:iam::111122223333:role/"
    path = file(tmp_path, f"{twice}a', stage: x", f"{twice}b', stage: y")
    with pytest.raises(CliError, match=r":3: the deployment 'Troop' is the same deployment as that in line 2"):
        read(path)


def test_label_has_no_more_than_it_needs(tmp_path: Path) -> None:
    assert labels(
        tmp_path,
        "name: Shop, region: eu-west-1, stage: prod",
        "name: Troop, region: eu-west-1, stage: staging, profile: b",
        "name: Troop, region: eu-west-1, stage: prod",
        "name: Troop, region: us-east-1, stage: prod, profile: a",
        f"name: Troop, region: us-east-1, stage: prod, role: '{ROLE}'",
    ) == [
        "Shop",
        "Troop (staging)",
        "Troop (prod, eu-west-1)",
        "Troop (prod, us-east-1, a)",
        "Troop (prod, us-east-1, 111122223333)",
    ]


REGIONS = st.sampled_from(["eu-west-1", "us-east-1"])
ENTRIES = st.builds(
    ListedDeployment,
    name=st.sampled_from(["A", "B"]),
    region=REGIONS,
    profile=st.none() | st.sampled_from(["p", "eu-west-1"]),
    stage=st.none() | st.sampled_from(["s", "eu-west-1", "us-east-1"]),
)


@given(st.lists(ENTRIES, min_size=1, max_size=6, unique_by=lambda one: (one.name, one.region, one.account)))
def test_labels_differ_or_are_refused(entries: list[ListedDeployment]) -> None:
    try:
        named = deployments_file._labelled(entries, Path("f"))
    except CliError:
        assume(False)
    assert len({one.label for one in named}) == len(entries)
    assert all(one.label == one.name or one.label.startswith(f"{one.name} (") for one in named)
