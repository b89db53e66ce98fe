"""Removes what looks like AWS credentials from text that scripts write and other people read.

It catches accidents, such as a script that prints its environment. A script that encodes credentials is not stopped.
"""

from __future__ import annotations

import re

REDACTED = "[redacted]"

_SIGNED = re.compile(r"(X-Amz-(?:Signature|Security-Token|Credential)=)[^&\s\"']+", re.IGNORECASE)
"""Signed parts of presigned URLs, whose keys stay, so that the reader knows what it was."""
_KEY_ID = re.compile(r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])")
_TOKEN = re.compile(r"[A-Za-z0-9+/_-]{100,}={0,2}")
"""Session tokens, which have several hundred characters."""
_SECRET = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/])")
_MIXED = tuple(map(re.compile, ("[a-z]", "[A-Z]", "[0-9]")))


def redacted(text: str) -> str:
    """Returns the text with access key ids, secret keys, session tokens and signatures replaced by :data:`REDACTED`.

    A secret key is known only by its 40 characters of all kinds, so other texts of this form are replaced, too. Apply
    it before cutting a text, because a part of a key has no form.
    """
    text = _SIGNED.sub(rf"\1{REDACTED}", text)
    text = _KEY_ID.sub(REDACTED, text)
    return _SECRET.sub(_unless_plain, _TOKEN.sub(_unless_plain, text))


def _unless_plain(match: re.Match[str]) -> str:
    """Spares hashes in hexadecimal digits, lines of dashes and the like."""
    return REDACTED if all(kind.search(match[0]) for kind in _MIXED) else match[0]
