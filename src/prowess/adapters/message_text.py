"""The text of messages that are dictionaries, as clients of providers and several frameworks have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def find_text(content: str | Iterable[Any] | None) -> str:
    """Return the text of a message's content, its parts on lines of their own."""
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in content or () if isinstance(part, Mapping)]
    return "\n".join(part for part in parts if isinstance(part, str))


def find_query(messages: Sequence[Any]) -> str:
    """Return the text of the user's last message that has text; ``""`` when there is none.

    Results of calls, and images of tools, may be in messages of the user too, without text.
    """
    said = (message for message in reversed(messages) if isinstance(message, Mapping))
    texts = (find_text(message.get("content")) for message in said if message.get("role") == "user")
    return next(filter(None, texts), "")
