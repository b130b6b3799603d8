"""A filter that holds for everything called inside a ``with`` block: this thread, this task, and no other."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from prowess.arguments import check_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

_AMBIENT: ContextVar[tuple[str, ...]] = ContextVar("prowess_skill_filter", default=())


def skill_filter(pattern: str) -> AbstractContextManager[None]:
    """Narrow every session used inside the block to the skills that pass ``pattern``; nested blocks narrow further.

    Raises ``SourceError`` for a pattern that is no text, before the block.
    """
    check_text(pattern, "pattern")
    return _narrow(pattern)


@contextmanager
def _narrow(pattern: str) -> Iterator[None]:
    token = _AMBIENT.set((*_AMBIENT.get(), pattern) if pattern else _AMBIENT.get())
    try:
        yield
    finally:
        _AMBIENT.reset(token)


def current_skill_filter() -> str:
    """The innermost ambient filter, ``""`` outside of any."""
    return (_AMBIENT.get() or ("",))[-1]


def ambient_filters() -> tuple[str, ...]:
    """Every filter around the caller, outermost first."""
    return _AMBIENT.get()
