"""The ambient filter: it holds for what one thread or task calls inside a ``with`` block."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from prowess.arguments import check_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_AMBIENT_FILTERS: ContextVar[tuple[str, ...]] = ContextVar("prowess_skill_filter", default=())


@contextmanager
def skill_filter(pattern: str) -> Iterator[None]:
    """Narrow every session used inside the block to the skills that pass ``pattern``; nested blocks narrow further.

    It holds for the thread or task that enters the block, and for no other. Raises ``SourceError``, before the block
    begins, for a pattern that is no text.
    """
    check_text(pattern, "pattern")
    # An empty pattern lets everything through, so it need not be matched for each skill.
    token = _AMBIENT_FILTERS.set((*_AMBIENT_FILTERS.get(), pattern) if pattern else _AMBIENT_FILTERS.get())
    try:
        yield
    finally:
        _AMBIENT_FILTERS.reset(token)


def current_skill_filter() -> str:
    """Return the innermost ambient filter, ``""`` outside of any."""
    return (_AMBIENT_FILTERS.get() or ("",))[-1]


def ambient_filters() -> tuple[str, ...]:
    """Return every filter around the caller, outermost first."""
    return _AMBIENT_FILTERS.get()
