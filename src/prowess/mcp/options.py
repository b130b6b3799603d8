"""The options of an MCP server: which parts it offers, where its listing of skills is, and its budget."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from prowess.arguments import check_count, check_texts
from prowess.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable

PARTS = ("extension", "tools", "instructions", "prompts")
LISTING_PLACES = ("instructions", "tools")
"""Where the listing may be: in the answer to the handshake, and in the description of the tool that loads."""
DEFAULT_BUDGET = 1_000  # tokens, which every conversation of every client pays
DEFAULT_MAX_CHARS = 4_000
"""Claude Code shows the first 4,096 characters of what a server says; other clients show more."""


class ServeOptions(NamedTuple):
    """What a server offers; every part can be switched off."""

    extension: bool = True
    """The skills extension, and the files as resources."""
    tools: bool = True
    instructions: bool = True
    """The text for the model in the answer to the handshake."""
    prompts: bool = True
    listing: tuple[str, ...] = LISTING_PLACES
    budget: int | None = DEFAULT_BUDGET
    """Tokens for the text in each place of the listing."""
    max_chars: int | None = DEFAULT_MAX_CHARS
    """The text in each place has fewer characters than this."""
    show_folders: bool = True
    """Whether clients see where the skills are on this machine."""

    def lists_in(self, place: str) -> bool:
        """Return whether the listing is in ``place``, and that part is offered."""
        return place in self.listing and bool(getattr(self, place))


def resolve_roots(roots: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Return the absolute folders that ``roots`` mean, with ``~`` expanded."""
    # Clients start a server without a shell, so nobody else expands "~" in their configuration.
    return tuple(os.path.abspath(os.path.expanduser(os.fspath(root))) for root in roots)


def make_options(
    *,
    listing: Iterable[str] = LISTING_PLACES,
    budget: int | None = DEFAULT_BUDGET,
    max_chars: int | None = DEFAULT_MAX_CHARS,
    show_folders: bool = True,
    **parts: bool,
) -> ServeOptions:
    """Return the options of a server; raises ``SourceError`` for an unknown place or a number that cannot be."""
    check_count(budget, "budget", optional=True)
    check_count(max_chars, "max_chars", optional=True)
    places = check_texts(listing, "listing")
    unknown = [place for place in places if place not in LISTING_PLACES]
    if unknown:
        raise SourceError(
            f"listing names places for the listing ({', '.join(LISTING_PLACES)}), not {unknown[0][:64]!r}"
        )
    return ServeOptions(**parts, listing=places, budget=budget, max_chars=max_chars, show_folders=show_folders)
