"""Recognises keys that nearly match: people type keys by hand, and some differences cannot be seen."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Characters without a picture that Unicode counts among letters, marks and symbols."""

_TAG_SEPARATORS = frozenset("/.:+=@")
_ASCII_BLANKS = dict.fromkeys((*range(0x21), 0x7F))
_ASCII_SEPARATORS = _ASCII_BLANKS | dict.fromkeys(map(ord, "_-/.:+=@"))

LONGEST_SHOWN = 80
"""The most characters of a key in a sentence."""

_PLAIN = re.compile("[!-~]{1,80}")

_NEIGHBOURS = 25
"""Keys with a similar beginning, or end, among which the nearest is searched."""


def folded(key: str) -> str:
    """Returns a key without what people overlook: blanks, invisible characters, and the difference between capital and
    small letters. Characters that Unicode calls compatible, such as full-width letters, become the usual ones.
    """
    if key.isascii():
        return key.translate(_ASCII_BLANKS).lower()
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", key).casefold())
    return _UNSEEN.sub("", "".join(c for c in plain if unicodedata.category(c)[0] not in "CZ"))


def folded_tag(key: str) -> str:
    """Returns a tag's key as :func:`folded`, and without separators: ``_``, ``-`` and other dashes, ``/``, ``.``,
    ``:``, and the other signs that AWS allows in tags.
    """
    if key.isascii():
        return key.translate(_ASCII_SEPARATORS).lower()
    return "".join(c for c in folded(key) if c not in _TAG_SEPARATORS and unicodedata.category(c) not in ("Pd", "Pc"))


def shown(key: str) -> str:
    """Returns a key for a sentence: quoted, with escapes for what cannot be seen, and cut."""
    cut = key if len(key) <= LONGEST_SHOWN else key[: LONGEST_SHOWN - 3] + "..."
    return repr(cut)


def named(key: str) -> str:
    """Returns a key for a sentence, as :func:`shown` only if something in it cannot be seen, or if it is long."""
    return key if _PLAIN.fullmatch(key) else shown(key)


class Nearest:
    """Finds the nearest of many keys by spelling, or none.

    The keys are in order of their beginnings, and of their ends. Only neighbours of the given key in both orders are
    compared with it, so that a search takes milliseconds among a hundred thousand keys too.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._by_folded = {folded(key): key for key in keys}
        self._forwards = sorted(self._by_folded)
        self._backwards = sorted(key[::-1] for key in self._by_folded)

    def find(self, key: str) -> str | None:
        """Returns the nearest key; None if none is near."""
        fold = folded(key)[: 2 * LONGEST_SHOWN]
        near = {*_around(self._forwards, fold), *(k[::-1] for k in _around(self._backwards, fold[::-1]))}
        best = get_close_matches(fold, sorted(near), n=1)
        return self._by_folded[best[0]] if best else None


def _around(ordered: Sequence[str], fold: str) -> Sequence[str]:
    place = bisect(ordered, fold)
    return ordered[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS]
