"""Output of scripts does not show credentials to those who read why a run has failed."""

from __future__ import annotations

import hashlib

import pytest

from troop.measure.redaction import REDACTED, redacted

KEY_ID = "ASIAQWERTYUIOPASDFGH"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
TOKEN = "IQoJb3JpZ2luX2VjE" + "aB3/+x" * 60 + "=="


@pytest.mark.parametrize(
    "written",
    [
        "AWS_ACCESS_KEY_ID={}\nAWS_SECRET_ACCESS_KEY={}\nAWS_SESSION_TOKEN={}",
        '{{"AccessKeyId": "{}", "SecretAccessKey": "{}", "Token": "{}"}}',
        "{} {} {}",
        "aws_access_key_id = '{}'; aws_secret_access_key = '{}', token:{}",
    ],
)
def test_credentials_are_replaced_in_whatever_they_stand(written: str) -> None:
    shown = redacted(written.format(KEY_ID, SECRET, TOKEN))
    assert shown == written.format(REDACTED, REDACTED, REDACTED)


def test_presigned_addresses_lose_what_signs_them() -> None:
    signed = f"X-Amz-Credential={KEY_ID}%2F20261121&X-Amz-Security-Token=IQo%2F&X-Amz-Signature={'0f' * 32}"
    url = f"https://b.s3.amazonaws.com/k?{signed}"
    shown = redacted(f"GET {url} failed")
    assert shown.startswith("GET https://b.s3.amazonaws.com/k?X-Amz-Credential=[redacted]&")
    assert KEY_ID not in shown
    assert "0f0f" not in shown
    assert "IQo" not in shown


@pytest.mark.parametrize(
    "text",
    [
        hashlib.sha1(b"x").hexdigest(),
        f"{hashlib.sha512(b'x').hexdigest()}  file",
        "i-0123456789abcdef0, AROAQWERTYUIOPASDFGH:i-0123456789abcdef0",
        "/var/lib/troop/phases/measure/results/read.json: No such file or directory",
        'Traceback (most recent call last):\n  File "/var/lib/troop/files/read.py", line 3, in <module>',
        "=" * 200,
        "-" * 200,
        "-" * 20 + " 99.9 % of 1,000,000 reads in 12.5 ms",
    ],
)
def test_other_output_stays(text: str) -> None:
    assert redacted(text) == text
