"""Local AWS serves its user alone: whoever has neither a key nor a token is refused, on every port."""

from __future__ import annotations

import hashlib
import json
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import Session

from local import profiles
from local.launcher import LocalAccount
from local.process import write_private
from local.project import STATE

from .helpers import Fleet, World, allow, code, unique

_CALLS = {
    "ec2": "describe_instances",
    "autoscaling": "describe_auto_scaling_groups",
    "pricing": "describe_services",
    "sts": "get_caller_identity",
    "s3": "list_buckets",
    "dynamodb": "list_tables",
    "lambda": "list_functions",
    "iam": "list_roles",
}
"""Of both servers, and of each way in which a service answers errors."""
_REFUSED = {
    "AuthFailure",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
Answer = tuple[int, bytes, dict[str, str]]


@pytest.fixture(scope="module")
def other() -> Iterator[LocalAccount]:
    """A second account, begun by somebody whose files everybody may read."""
    before = os.umask(0o022)
    try:
        with LocalAccount("other", notice_seconds=0.5) as other:
            yield other
    finally:
        os.umask(before)


def ask(account: LocalAccount, url: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
    """Status, body and headers of an answer, errors included."""
    trusted = ssl.create_default_context(cafile=account.exports["AWS_CA_BUNDLE"])
    request = urllib.request.Request(url, data=body, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, context=trusted if url.startswith("https") else None, timeout=30) as got:
            return got.status, got.read(), dict(got.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read(), dict(error.headers)


def signed(account: LocalAccount, service: str, url: str, body: bytes = b"", **headers: str) -> Answer:
    """The answer to a POST that root has signed, its headers included."""
    sent = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    request = AWSRequest("POST", url, sent, body)
    credentials = account.session().get_credentials()
    assert credentials is not None
    SigV4Auth(credentials, service, account.exports["AWS_REGION"]).add_auth(request)
    return ask(account, url, "POST", body, **dict(request.headers.items()))


def refused(account: LocalAccount, service: str, key_id: str, key: str) -> str:
    session = account.session(aws_access_key_id=key_id, aws_secret_access_key=key)
    with pytest.raises(ClientError) as error:
        getattr(account.client(service, session), _CALLS[service])()
    return code(error)


@pytest.mark.parametrize("service", _CALLS)
def test_only_the_accounts_own_key_is_roots(account: LocalAccount, other: LocalAccount, service: str) -> None:
    own = account.exports
    keys = [
        ("test", "test"),
        ("test", own["AWS_SECRET_ACCESS_KEY"]),
        ("000000000000", "test"),
        ("000000000000", own["AWS_SECRET_ACCESS_KEY"]),
        (" ", "test"),
        (own["AWS_ACCESS_KEY_ID"], "test"),
        (other.exports["AWS_ACCESS_KEY_ID"], other.exports["AWS_SECRET_ACCESS_KEY"]),
    ]
    for key_id, key in keys:
        assert refused(account, service, key_id, key) in _REFUSED, key_id


def test_roots_key_is_new_at_every_start(account: LocalAccount, other: LocalAccount) -> None:
    for one in (account, other):
        assert one.client("sts").get_caller_identity()["Arn"] == "arn:aws:iam::000000000000:root"
    assert account.exports["AWS_ACCESS_KEY_ID"] != other.exports["AWS_ACCESS_KEY_ID"]
    assert account.exports["AWS_SECRET_ACCESS_KEY"] != other.exports["AWS_SECRET_ACCESS_KEY"]


@pytest.mark.parametrize(
    ("service", "body"),
    [
        ("ec2", b"Action=DescribeInstances&Version=2016-11-15"),
        ("sts", b"Action=GetCallerIdentity&Version=2011-06-15"),
    ],
)
@pytest.mark.parametrize("host", ["rebind.example:PORT", "localhost:PORT", "127.0.0.1", "127.0.0.1:1"])
def test_a_request_names_the_servers_own_address(account: LocalAccount, service: str, body: bytes, host: str) -> None:
    url = account.endpoint(service) + "/"
    assert signed(account, service, url, body)[0] == 200
    status, text, _ = signed(account, service, url, body, Host=host.replace("PORT", url.strip("/").rpartition(":")[2]))
    assert (status, text) == (403, b"the header Host must be the address of this server")


@pytest.mark.parametrize("path", ["_ministack/health", "restapis/api/v1/_user_request_/events"])
def test_unsigned_request_also_needs_the_right_host(account: LocalAccount, path: str) -> None:
    url = f"{account.exports['AWS_ENDPOINT_URL']}/{path}"
    assert b"header Host" not in ask(account, url)[1]
    assert b"header Host" in ask(account, url, Host="rebind.example")[1]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "_ministack/reset"),
        ("POST", "_ministack/config"),
        ("GET", "_ministack/lambda-code/name"),
        ("POST", "_ministack/health"),
        ("GET", "_aws/sqs/messages"),
        ("GET", "_localstack/health"),
    ],
)
def test_ministacks_own_endpoints_are_closed_to_root_even(account: LocalAccount, method: str, path: str) -> None:
    url = f"{account.exports['AWS_ENDPOINT_URL']}/{path}"
    assert ask(account, url, method)[0] == 404
    assert signed(account, "s3", url)[0] == 404


def test_motos_own_endpoints_are_closed_to_root_even(account: LocalAccount) -> None:
    body = b"Action=DescribeInstances&Version=2016-11-15"
    status, text, _ = signed(account, "ec2", account.endpoint("ec2") + "/moto-api/reset", body)
    assert (status, b"InvalidAction" in text) == (403, True)


@pytest.mark.parametrize("service", ["ec2", "sts", "s3", "dynamodb"])
def test_nothing_is_served_unsigned_nor_lent_to_web_pages(account: LocalAccount, service: str) -> None:
    url = account.endpoint(service) + "/"
    for method in ("GET", "POST", "OPTIONS"):
        status, _, headers = ask(account, url, method, Origin="https://page.example")
        assert status == 403
        assert not [name for name in headers if name.lower().startswith("access-control-")]


def test_an_object_is_not_served_unsigned_whatever_its_bucket_allows(account: LocalAccount) -> None:
    s3, bucket = account.client("s3"), unique("public")
    s3.create_bucket(Bucket=bucket)
    s3.delete_public_access_block(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="key", Body=b"secret")
    everybody = {**allow("s3:GetObject", f"arn:aws:s3:::{bucket}/*"), "Principal": "*"}
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [everybody]}))
    status, text, _ = ask(account, f"{account.endpoint('s3')}/{bucket}/key")
    assert (status, b"AccessDenied" in text) == (403, True)


@pytest.mark.parametrize("version", [None, "s3", "s3v4"])
def test_roots_presigned_addresses_work_as_they_were_signed(account: LocalAccount, version: str | None) -> None:
    plain, bucket = account.client("s3"), unique("presigned")
    plain.create_bucket(Bucket=bucket)
    for key in ("one", "two"):
        plain.put_object(Bucket=bucket, Key=key, Body=key.encode())
    s3 = boto3.client(
        "s3",
        endpoint_url=account.endpoint("s3"),
        region_name="us-east-1",
        aws_access_key_id=account.exports["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=account.exports["AWS_SECRET_ACCESS_KEY"],
        config=Config(signature_version=version) if version else None,
    )
    url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "one"})
    assert ask(account, url)[:2] == (200, b"one")
    status, text, _ = ask(account, url.replace("/one?", "/two?"))
    assert (status, b"SignatureDoesNotMatch" in text) == (403, True)


def test_a_forged_presigned_address_opens_no_route_that_ministack_leaves_open(account: LocalAccount) -> None:
    now = datetime.now(UTC)
    query = {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"test/{now:%Y%m%d}/us-east-1/s3/aws4_request",
        "X-Amz-Date": f"{now:%Y%m%dT%H%M%SZ}",
        "X-Amz-Expires": "60",
        "X-Amz-SignedHeaders": "host",
        "X-Amz-Signature": "0" * 64,
    }
    url = f"{account.exports['AWS_ENDPOINT_URL']}/oauth2/userInfo?{urllib.parse.urlencode(query)}"
    status, text, _ = ask(account, url)
    assert (status, b"InvalidAccessKeyId" in text) == (403, True)


@pytest.mark.parametrize(
    ("method", "endpoint"),
    [("GET", "decisions"), ("DELETE", "decisions"), ("GET", "instances"), ("POST", "mirror"), ("POST", "scarcity")],
)
def test_the_private_endpoint_needs_its_token(
    account: LocalAccount, other: LocalAccount, method: str, endpoint: str
) -> None:
    url = json.loads((account.run / "account.json").read_text())["control"] + endpoint
    foreign = json.loads((other.run / "account.json").read_text())["token"]
    for header in ({}, {"Authorization": "Bearer "}, {"Authorization": f"Bearer {foreign}"}):
        status, text, _ = ask(account, url, method, b'{"instance_type": "t3.micro", "left": 0}', **header)
        assert (status, b"token" in text) == (403, True)


def test_the_credentials_of_functions_cannot_be_computed(world: World) -> None:
    """MiniStack derives them from the two ARNs, which whoever sees a log knows."""
    role = world.role()
    function = world.function("def handler(event, context):\n    pass\n", role)
    world.functions.invoke(FunctionName=function)
    digest = hashlib.sha256(f"{function}:{role}".encode()).hexdigest()
    session = world.account.session(
        aws_access_key_id=f"ASIA{digest[:16].upper()}",
        aws_secret_access_key=hashlib.sha256(f"secret:{digest}".encode()).hexdigest(),
        aws_session_token=hashlib.sha256(f"token:{digest}".encode()).hexdigest(),
    )
    with pytest.raises(ClientError) as error:
        world.account.client("sts", session).get_caller_identity()
    assert code(error) == "InvalidClientTokenId"


_WRITES = "#!/bin/sh\necho secret > written\nmkdir folder\ntouch $READY_FILE\nexec sleep 600\n"


def test_nobody_else_can_read_what_it_writes(other: LocalAccount) -> None:
    s3, fleet, world = other.client("s3"), Fleet(other), World(other)
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="key", Body=b"secret")
    fleet.in_service(fleet.group(1, _WRITES), 1)
    world.functions.invoke(FunctionName=world.function("def handler(event, context):\n    print('secret')\n"))
    written = {path: path.lstat().st_mode for path in (STATE, other.run, *other.run.rglob("*"))}
    names = {path.name for path in written}
    assert names >= {"account.json", "account.log", "server.key", "instances", "user-data", "console.log", "written"}
    readable = [path for path, mode in written.items() if mode & 0o077 and not path.is_symlink()]
    assert not readable


@pytest.mark.parametrize("umask", [0, 0o022])
def test_file_with_keys_is_private_from_its_first_byte(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "env.sh"
    path.write_text("of an earlier run")
    path.chmod(0o644)
    before = os.umask(umask)
    try:
        write_private(path, "export A=b\n")
    finally:
        os.umask(before)
    assert (path.stat().st_mode & 0o777, path.read_text()) == (0o600, "export A=b\n")
    assert [one.name for one in tmp_path.iterdir()] == ["env.sh"]


def test_the_environment_is_all_that_sdks_need(account: LocalAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, setting in account.exports.items():
        monkeypatch.setenv(name, setting)
    session: Any = Session()
    assert session.create_client("sts").get_caller_identity()["Account"] == "000000000000"
    assert session.create_client("ec2").describe_instances()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_profiles_of_two_accounts_lead_to_their_own_servers(
    account: LocalAccount, other: LocalAccount, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [*account.exports, "AWS_PROFILE", "REQUESTS_CA_BUNDLE"]:
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "profiles"
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    for name, one in {"one": account, "two": other}.items():
        profiles.add(file, name, one.exports)
    assert file.stat().st_mode & 0o777 == 0o600
    vpcs = {}
    for name, one in {"one": account, "two": other}.items():
        session: Any = Session(profile=name)
        sts = session.create_client("sts")
        assert sts.meta.endpoint_url == one.exports["AWS_ENDPOINT_URL"]
        assert sts.get_caller_identity()["Account"] == "000000000000"
        vpcs[name] = {vpc["VpcId"] for vpc in session.create_client("ec2").describe_vpcs()["Vpcs"]}
    assert not vpcs["one"] & vpcs["two"]
    profiles.remove(file, "one")
    profiles.remove(file, "one")
    assert Session().available_profiles == ["two"]
