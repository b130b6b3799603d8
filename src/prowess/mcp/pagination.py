"""Pagination: a cursor names the last item of a page, so the next page is right even when items come and go."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from prowess.errors import SourceError

if TYPE_CHECKING:
    from prowess.format.frontmatter.json_types import Json

NO_CACHE: dict[str, Json] = {"ttlMs": 0, "cacheScope": "private"}
"""The cache rule of every answer: it may be stale at once, since files change without notice."""


def encode_cursor(item: str) -> str:
    """Return the cursor of the page after ``item``."""
    return base64.urlsafe_b64encode(item.encode()).decode("ascii")


def decode_cursor(cursor: str | None) -> str:
    """Return the item that a page begins after, ``""`` for the first page.

    Raises ``SourceError`` for a cursor that this server did not make.
    """
    if cursor is None:
        return ""
    try:
        return base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        raise SourceError("this server did not make the cursor: ask for the first page, without one") from None


def make_page(key: str, items: list[Json], last: str | None) -> dict[str, Json]:
    """Return a page of a listing; ``last`` is the last item of the page when more follow, else ``None``."""
    more: dict[str, Json] = {} if last is None else {"nextCursor": encode_cursor(last)}
    return {"resultType": "complete", key: items, **more, **NO_CACHE}
