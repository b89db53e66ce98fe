import json

from hypothesis import given
from hypothesis import strategies as st

from troop.bench.records.stored_table import LARGEST, stored_table


def row(number: int, kinds: int = 0) -> dict[str, object]:
    errors = {f"a-rather-long-kind-of-error-{kind:030d}": kind for kind in range(kinds)}
    return {"phase": "measure", "role": "drivers", "operation": f"op{number}", "count": 7, "errors": errors}


def test_small_table_is_stored_unchanged() -> None:
    table = [row(number) for number in range(64)]
    assert stored_table(table) == table


@given(rows=st.integers(1, 200), kinds=st.sampled_from([0, 3, 16]))
def test_whatever_was_measured_fits_into_an_item_and_nothing_is_left_out_silently(rows: int, kinds: int) -> None:
    table = [row(number, 10 * kinds) for number in range(rows)]
    excerpt = stored_table(table)
    assert sum(len(json.dumps(one)) for one in excerpt) < LARGEST + 1000
    if excerpt != table:
        assert excerpt[:-1] == table[: len(excerpt) - 1]
        assert excerpt[-1]["operation"] == f"{rows - len(excerpt) + 1} more rows in results.json"
