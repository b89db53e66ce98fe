"""`scripts/names.py`: which names the lint rejects, where, and what it advises."""

from __future__ import annotations

import pytest

from scripts.names import rejected

LONG = "_".join(["test", *["word"] * 15])


@pytest.mark.parametrize(
    ("path", "line", "advice"),
    [
        ("tests/a.py", "def test_report_is_kept(): ...", "name the thing instead"),
        ("functions/a.py", "def f(told): ...", "name the thing instead"),
        ("functions/a.py", "class KeptRun: ...", "name the thing instead"),
        ("tests/a.py", "def test_nor_of_an_open_run(): ...", "a noun or a verb instead of nor"),
        ("infra/a.py", "def of_run(run): ...", "a noun or a verb instead of of"),
        ("tests/a.py", "def _of_run(run): ...", "a noun or a verb instead of of"),
        ("functions/lines.py", "class Line:\n    what: str", "a noun or a verb instead of what"),
        ("tests/a.py", "THAT_FAILS = 1", "a noun or a verb instead of that"),
        ("tests/a.py", "def f(what): ...", "a noun or a verb instead of what"),
        ("tests/a.py", "for it in (): ...", "a noun or a verb instead of it"),
        ("tests/a.py", f"class A:\n    def {LONG}(self): ...", "at most 14 words"),
        ("tests/test_it_fails.py", "", "a noun or a verb instead of it"),
    ],
)
def test_bad_name_is_rejected_with_advice(path: str, line: str, advice: str) -> None:
    (problem,) = rejected(path, line)
    assert problem.startswith(f"{path}:")
    assert problem.endswith(advice)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("tests/a.py", f"def {LONG.removesuffix('_word')}(): ..."),
        ("tests/a.py", "def resources_of_it(items): ..."),
        ("tests/a.py", "print(run.of(what))"),
        ("functions/document.py", "class Line:\n    what: str"),
        ("functions/a.py", f"def {LONG.removeprefix('test_')}(): ..."),
    ],
)
def test_good_name_is_accepted(path: str, line: str) -> None:
    assert rejected(path, line) == []
