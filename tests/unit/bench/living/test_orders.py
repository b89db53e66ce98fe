"""The orders that nodes read."""

from __future__ import annotations

from tests.unit.bench.living.build import NOW
from troop.bench.living.orders import to_document


def test_the_same_orders_are_the_same_document() -> None:
    expected = {
        "format": "troop.orders/1",
        "expires_at": int(NOW.timestamp()),
        "drain": ["i-1", "i-2"],
        "restart": {"i-3": "r-3", "i-4": "r-4"},
    }
    document = to_document(NOW, ["i-2", "i-1"], {"i-4": "r-4", "i-3": "r-3"})
    assert document == expected
    assert list(document["restart"]) == ["i-3", "i-4"]
    assert to_document(NOW) == expected | {"drain": [], "restart": {}}
