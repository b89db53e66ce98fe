"""Where AWS on this machine answers for an API."""

from __future__ import annotations

import pytest

from cli.client.invoke_url import served_at


@pytest.mark.parametrize(
    ("address", "served"),
    [
        (
            "https://ab12.execute-api.eu-west-1.amazonaws.com/v1/",
            "https://127.0.0.1:4566/restapis/ab12/v1/_user_request_/",
        ),
        (
            "https://ab12.execute-api.cn-north-1.amazonaws.com.cn/v1",
            "https://127.0.0.1:4566/restapis/ab12/v1/_user_request_/",
        ),
        ("arn:aws:sns:eu-west-1:1:News", "arn:aws:sns:eu-west-1:1:News"),
    ],
)
@pytest.mark.parametrize("endpoint", ["https://127.0.0.1:4566", "https://127.0.0.1:4566/"])
def test_only_addresses_of_apis_become_local_ones(address: str, served: str, endpoint: str) -> None:
    assert served_at(endpoint, address) == served
