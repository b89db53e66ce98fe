"""Signatures, credentials and addresses of the benchmark s3-range-read, against AWS's examples and botocore."""

from __future__ import annotations

import calendar
import hashlib
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import botocore.session
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.agent.fake_account import REGION, FakeAccount
from tests.unit.agent.s3_scripts import module
from troop.measure.s3 import addresses, credentials, signing

s3 = module("s3")

EXAMPLE = credentials.Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
MIDNIGHT = calendar.timegm((2013, 5, 24, 0, 0, 0))
HOST = "examplebucket.s3.amazonaws.com"


def at(moment: Any) -> Callable[[], Any]:
    return lambda: moment


@pytest.mark.parametrize(
    ("method", "path", "query", "headers", "content", "signature"),
    [
        (
            "GET", "/test.txt", {}, {"range": "bytes=0-9"}, b"",
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            "PUT", "/test%24file.text", {},
            {"date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
            b"Welcome to Amazon S3.",
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        (
            "GET", "/", {"lifecycle": ""}, {}, b"",
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            "GET", "/", {"max-keys": "2", "prefix": "J"}, {}, b"",
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
)  # fmt: skip
def test_signatures_are_those_of_the_examples_in_s3s_documentation(
    method: str, path: str, query: dict[str, str], headers: dict[str, str], content: bytes, signature: str
) -> None:
    signer = signing.Signer(at(EXAMPLE), "us-east-1", at(MIDNIGHT))
    digest = hashlib.sha256(content).hexdigest()
    signed = signer.headers(method, path, signing.encoded_query(query), {"host": HOST, **headers}, digest)
    assert signed["authorization"].endswith(f",Signature={signature}")
    assert signed["x-amz-content-sha256"] == digest


KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80)


@given(
    key=st.one_of(
        KEYS, st.sampled_from(["a//b", "./a", "../a", "a b+c%20d", "~-._*", "ä/ö", "a?b#c&d=e", "%", "\x7f\n"])
    ),
    bucket=st.sampled_from(["data", "data.example.com"]),
    token=st.sampled_from(["", "abc/+="]),
    moment=st.integers(0, 4_000_000_000),
)
def test_signatures_of_any_key_are_botocores(key: str, bucket: str, token: str, moment: int) -> None:
    signer = signing.Signer(at(credentials.Credentials("AKIA", "se/cr+et", token)), "eu-west-1", at(moment))
    address = addresses.address_of(bucket, "eu-west-1")
    path = address.path(key)
    signed = signer.headers("GET", path, "", {"host": address.host, "range": "bytes=5-9"})
    others = {name: value for name, value in signed.items() if name != "authorization"}
    request = AWSRequest("GET", f"https://{address.host}{path}", headers=others)
    request.context["timestamp"] = signed["x-amz-date"]
    boto = S3SigV4Auth(BotoCredentials("AKIA", "se/cr+et", token), "s3", "eu-west-1")
    text = boto.string_to_sign(request, boto.canonical_request(request))
    assert signed["authorization"].endswith(f",Signature={boto.signature(text, request)}")
    assert "/eu-west-1/s3/aws4_request," in signed["authorization"]


@given(key=KEYS)
def test_the_path_of_any_key_is_botocores(key: str) -> None:
    assert addresses.address_of("data", "us-east-1").path(key) == _boto_url("us-east-1", "data", key).path


def _boto_url(region: str, bucket: str, key: str) -> Any:
    """What botocore would send a GetObject to."""
    if region not in _CLIENTS:
        client: Any = botocore.session.Session().create_client(
            "s3", region, aws_access_key_id="a", aws_secret_access_key="b"
        )
        client.meta.events.register("before-send.s3", _caught)
        _CLIENTS[region] = client
    try:
        _CLIENTS[region].get_object(Bucket=bucket, Key=key)
    except _CaughtError as error:
        return urlsplit(error.args[0])
    raise AssertionError


_CLIENTS: dict[str, Any] = {}


class _CaughtError(Exception):
    """Holds a URL."""


def _caught(request: Any, **_: Any) -> None:
    raise _CaughtError(request.url)


@pytest.mark.parametrize("bucket", ["data", "data.example.com"])
@pytest.mark.parametrize(
    "partition", ["aws", "aws-cn", "aws-us-gov", "aws-iso", "aws-iso-b", "aws-iso-e", "aws-iso-f", "aws-eusc"]
)
def test_addresses_of_all_partitions_are_botocores(partition: str, bucket: str) -> None:
    for region in botocore.session.Session().get_available_regions("s3", partition):
        address, boto = addresses.address_of(bucket, region), _boto_url(region, bucket, "key")
        host = boto.hostname.replace("s3.amazonaws.com", f"s3.{region}.amazonaws.com")  # the global name of us-east-1
        assert (address.host, address.path("key"), address.port) == (host, boto.path, 443), region


def test_a_local_endpoint_has_the_bucket_in_the_path() -> None:
    address = addresses.address_of("data", "us-west-2", "http://127.0.0.1:4566")
    assert (address.is_tls, address.host, address.name, address.port) == (False, "127.0.0.1:4566", "127.0.0.1", 4566)
    assert address.path("a b") == "/data/a%20b"


def test_a_key_is_derived_once_a_day_and_for_new_credentials() -> None:
    now, current = [MIDNIGHT - 1.0], [EXAMPLE]
    signer = signing.Signer(lambda: current[0], "us-east-1", lambda: now[0])

    def key() -> object:
        signer.headers("GET", "/a", "", {"host": "h"})
        return signer._key[2]

    before = key()
    assert key() is before
    now[0] += 1
    after_midnight = key()
    assert after_midnight != before
    current[0] = credentials.Credentials("ASIA", "another", "token")
    assert key() != after_midnight


# ------------------------------------------------------------------ credentials


class Service:
    """Issues credentials that last an hour, on a clock of its own."""

    def __init__(self) -> None:
        self.now, self.issued, self.broken = 1000.0, 0, False
        self.store = credentials.CredentialStore(self.fetch, lambda: self.now, self.sleep)

    def fetch(self) -> Any:
        if self.broken:
            raise credentials.CredentialsError("no answer")
        self.issued += 1
        return credentials.Credentials(f"ASIA{self.issued}", "secret", "token", self.now + 3600)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_credentials_are_renewed_before_they_expire_and_not_sooner() -> None:
    service = Service()
    for minute in range(44):
        service.now = 1000.0 + 60 * minute
        assert service.store.current().access_key == "ASIA1"
    service.now = 1000.0 + 60 * 46
    assert service.store.current().access_key == "ASIA2"
    assert service.issued == 2


def test_credentials_that_s3_refuses_are_renewed_at_once_but_not_in_a_storm() -> None:
    service = Service()
    service.now += 60
    service.store.refused("AccessDenied")
    assert service.store.current().access_key == "ASIA1"
    for _ in range(100):
        service.store.refused("ExpiredToken")
        service.store.current()
    assert service.issued == 2
    service.now += 11
    assert service.store.current().access_key == "ASIA3"


def test_old_credentials_stay_while_the_service_does_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    service = Service()
    service.broken, service.now = True, 1000.0 + 3000
    for _ in range(10):
        assert service.store.current().access_key == "ASIA1"
    assert capsys.readouterr().out == "cannot renew the credentials: no answer\n"
    service.broken = False
    service.now += 11
    assert service.store.current().access_key == "ASIA2"


def test_the_role_of_an_instance_needs_a_session_token(account: FakeAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", account.metadata_of("i-1"))
    role = credentials.instance_credentials()
    assert (role.access_key, role.secret, role.token) == ("ASIAFIRST", "secret", "token+/=")
    assert role.expires_at == pytest.approx(time.time() + 6 * 3600, abs=600)
    assert "secret" not in repr(role)


@pytest.mark.parametrize(
    "document",
    [{"Code": "Failed"}, {"Code": "Success", "AccessKeyId": "A", "SecretAccessKey": "B", "Token": "C"}, [], "x"],
)
def test_a_role_without_credentials_is_an_error(document: Any) -> None:
    with pytest.raises(ValueError, match="its answer"):
        credentials.parse(json.loads(json.dumps(document)))


def test_a_service_that_never_answers_ends_the_script_with_the_reason() -> None:
    slept: list[float] = []

    def fetch() -> Any:
        raise credentials.CredentialsError("no credentials from http://169.254.169.254")

    with pytest.raises(credentials.CredentialsError, match=r"169\.254"):
        credentials.CredentialStore(fetch, sleep=slept.append)
    assert len(slept) == credentials.TRIES - 1


# ------------------------------------------------------------------ requests


@pytest.fixture
def bucket(account: FakeAccount, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", account.metadata_of("i-1"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    return s3.Bucket("data", credentials.CredentialStore(), REGION, account.url)


NAMES = ["a b", "a+b", "a%2Bb", "ä/ö", "x//y", "~*'()", "q?r#s&t"]


def test_a_listing_has_all_keys_and_sizes_page_by_page(account: FakeAccount, bucket: Any) -> None:
    for size, name in enumerate(NAMES):
        account.put(f"data/{name}", bytes(size))
    account.page = 2
    pages = list(bucket.listing(""))
    assert [len(page) for page in pages] == [2, 2, 2, 1]
    assert {one.key: one.size for page in pages for one in page} == {name: size for size, name in enumerate(NAMES)}
    assert [one.key for page in bucket.listing("a%") for one in page] == ["a%2Bb"]
    assert account.connections == 4, "three of the metadata service, and one of S3"


def test_objects_are_written_read_and_deleted(account: FakeAccount, bucket: Any) -> None:
    for name in NAMES:
        bucket.put(name, name.encode())
    assert {key.removeprefix("data/"): body.decode() for key, body in account.objects.items()} == {n: n for n in NAMES}
    with bucket.open("ä/ö") as answer:
        assert answer.read().decode() == "ä/ö"
    assert bucket.delete(NAMES[1:]) == {}
    assert list(account.objects) == ["data/a b"]


def test_deletion_that_s3_refuses_while_busy_is_repeated(
    account: FakeAccount, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3 refuses whole requests, or single keys, with status 200."""
    monkeypatch.setattr(s3, "LONGEST_WAIT", 0.0)
    for name in NAMES:
        bucket.put(name, b"")
    account.busy = ["all", "some", "all", "some"]
    assert bucket.delete(NAMES) == {}
    assert account.objects == {}
    assert account.busy == []

    bucket.put("a", b"")
    account.busy = ["all"] * s3.TRIES_WHILE_BUSY
    assert bucket.delete(["a"]) == {"a": "SlowDown"}
    account.undeletable, before = True, account.requests["POST", "delete"]
    assert bucket.delete(["a"]) == {"a": "AccessDenied"}
    assert account.requests["POST", "delete"] == before + 1, "a second request would be refused as well"


def test_a_busy_s3_is_awaited_longer_than_a_broken_one(
    account: FakeAccount, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "LONGEST_WAIT", 0.0)
    account.refuse = s3.TRIES_WHILE_BUSY - 1
    bucket.put("a", b"")
    account.refuse = s3.TRIES_WHILE_BUSY
    with pytest.raises(s3.S3Error, match="503 SlowDown"):
        bucket.put("a", b"")


def test_a_refusal_has_s3s_status_and_code(bucket: Any) -> None:
    with pytest.raises(s3.S3Error, match="data: S3 answered 404 NoSuchKey to GET 'nothing'") as refusal:
        bucket.open("nothing")
    assert (refusal.value.status, refusal.value.code) == (404, "NoSuchKey")


def test_expired_credentials_are_renewed(account: FakeAccount, bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "PAUSE_SECONDS", 0)
    account.credentials = {**account.credentials, "AccessKeyId": "ASIASECOND"}
    assert list(bucket.listing("")) == [[]]
    assert account.issued == 2


@pytest.mark.parametrize("ahead", [-3600.0, 86_400.0])
def test_a_wrong_clock_is_corrected_and_named(
    account: FakeAccount, bucket: Any, capsys: pytest.CaptureFixture[str], ahead: float
) -> None:
    account.clock_ahead = ahead
    assert list(bucket.listing("")) == [[]]
    printed = capsys.readouterr().out
    assert f"The clock of this node is {'86,' if ahead > 0 else '3,'}" in printed
    assert ("behind" if ahead > 0 else "ahead of") in printed
