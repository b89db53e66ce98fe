"""Nobody finds the account in redacted answers."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.prove.redaction import Redaction
from tests.unit.cli.prove.conftest import REGION

_ACCOUNTS = st.from_regex(r"[0-9]{12}", fullmatch=True)


_IDS = st.builds(
    "{}-{}".format, st.sampled_from(["i", "vpc", "eni", "eipalloc"]), st.from_regex("[0-9a-f]{17}", fullmatch=True)
)


_ARNS = st.builds("arn:{}:iam::{}:role/a b".format, st.sampled_from(["aws", "aws-cn", "aws-us-gov"]), _ACCOUNTS)


_SECRETS = st.one_of(_ACCOUNTS, _IDS, st.ip_addresses().map(str), _ARNS)


_AROUND = st.sampled_from(["", " ", "'", "(", "role ", ": ", "=", "\n", "x/"])


_TEXTS = st.builds("{}{}{}".format, _AROUND, _SECRETS, st.sampled_from(["", " ", "'", ")", ".", ",", "\n"]))


_DOCUMENTS = st.recursive(
    st.one_of(_TEXTS, st.integers(), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXTS, inner, max_size=3)),
    max_leaves=8,
)


_FORBIDDEN = re.compile(r"\d{12}|arn:|\b[a-z]+-[0-9a-f]{17}\b|\b\d{1,3}(\.\d{1,3}){3}\b|[0-9a-f]:[0-9a-f]*:")


@given(_DOCUMENTS)
def test_no_account_no_arn_no_id_and_no_address_is_left(document: Any) -> None:
    assert not _FORBIDDEN.search(json.dumps(Redaction().document(document)))


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("arn:aws:iam::111122223333:role/x and 111122223333", "<arn 1> and <account 1>"),
        ("111122223333, 444455556666, 111122223333", "<account 1>, <account 2>, <account 1>"),
        ("arn:aws-cn:sts::111122223333:assumed-role/Ada/ada@example.com", "<arn 1>"),
        ("s3://shop-prod-results/x of arn:aws:sts::111122223333:assumed-role/Shop-prod", "s3://<name 1>/x of <arn 1>"),
        ("AROAEXAMPLEEXAMPLEEX:i-0123456789abcdef0", "<principal 1>:<id 1>"),
        ("ip-10-0-1-2.eu-central-1.compute.internal, ip-10-0-1-2", "<host 1>, <host 2>"),
        ("https://b.s3.amazonaws.com/k?X-Amz-Signature=1", "<url 1>"),
        ("vol0123456789abcdef0 and AWS0123456789ABCDEF0 on 02:42:ac:11:00:02", "<id 1> and <id 2> on <mac 1>"),
        (
            "nvme-nvme.1d0f-766f6c3031323334353637383961626364656630-416d617a6f6e-00000001",
            "nvme-<id 1>-416d617a6f6e-00000001",
        ),
        ("fe80::1ff:fe23:4567:890a, 2001:db8:0:0:0:0:0:1", "<address 1>, <address 2>"),
        (
            "at 12:30:45 with 6.1.134-152.225.amzn2023 and 2.9.19",
            "at 12:30:45 with 6.1.134-152.225.amzn2023 and 2.9.19",
        ),
        ("ada@example.com", "<mail 1>"),
        ("the stack Shop-prod of shop-prod-results", "the stack <name 1> of <name 2>"),
    ],
)
def test_the_same_value_has_the_same_label(text: str, redacted: str) -> None:
    assert Redaction(["Shop-prod", "shop-prod-results", ""]).text(text) == redacted


_URL = f"https://shop-prod-results.s3.{REGION}.amazonaws.com/runs/r/c001/definition.json?X-Amz-Signature=1"
