"""Files of a few lines that stand for very much, and with more lines of the kind for more than any memory holds."""

from __future__ import annotations

from collections.abc import Callable

LEVELS, TIMES = 7, 9


def aliases() -> str:
    """Lists of lists: 9^6 entries: enough to be refused, and few enough for the test to fail, not to hang."""
    return _levels(lambda before: f"[{', '.join([before] * TIMES)}]")


def merges() -> str:
    """Mappings that merge mappings: one key, merged 9^6 times."""
    return _levels(lambda before: f"{{<<: [{', '.join([before] * TIMES)}]}}", first="{x: 1}")


def _levels(level: Callable[[str], str], first: str = "[1]") -> str:
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} {level(f'*a{n - 1}')}" for n in range(1, LEVELS)]
    return "\n".join(lines) + "\n"


def long_texts() -> str:
    """A thousand times one text of a thousand characters, a hundred times."""
    many = ", ".join(["*b"] * 100)
    return f"a: &a {'x' * 1000}\nb: &b [{', '.join(['*a'] * 1000)}]\nc: [{many}]\n"


def circle() -> str:
    """A list that is its own entry."""
    return "a: &a [*a]\n"


def nested() -> str:
    return "a: " + "[" * 100_000 + "\n"


MESSAGES = {
    aliases(): "aliases expand to more than 100,000 keys, values and characters",
    merges(): "aliases expand to more than 100,000 keys, values and characters",
    long_texts(): "aliases expand to more than 100,000 keys, values and characters",
    circle(): "the alias *a refers to a value that contains it",
    nested(): "is nested deeper than 64 levels",
}
"""What is said of each."""
