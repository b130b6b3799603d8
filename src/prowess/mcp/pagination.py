"""Listings in parts: a cursor names the last item of a page, so a page follows it whatever came or went meanwhile."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from prowess.errors import SourceError

if TYPE_CHECKING:
    from prowess.spec.frontmatter.json_types import Json

NO_CACHE: dict[str, Json] = {"ttlMs": 0, "cacheScope": "private"}
"""How long an answer may be kept: it is stale as soon as it is given, since files change without notice."""


def encode_cursor(item: str) -> str:
    """What continues a listing after ``item``."""
    return base64.urlsafe_b64encode(item.encode()).decode("ascii")


def decode_cursor(cursor: str | None) -> str:
    """The item after which a listing goes on, ``""`` for its beginning."""
    if cursor is None:
        return ""
    try:
        return base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        raise SourceError("the cursor is none that this server gave") from None


def make_page(key: str, items: list[Json], last: str | None) -> dict[str, Json]:
    """A page of a listing; ``last``: the item after which there is more."""
    more: dict[str, Json] = {} if last is None else {"nextCursor": encode_cursor(last)}
    return {"resultType": "complete", key: items, **more, **NO_CACHE}
