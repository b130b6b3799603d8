"""The steps of long work, told to whoever asked: a callable for a ``with`` block, and a loop that calls it."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    ProgressCallback = Callable[[str, int, int], None]
    """Called with what is begun now, how many steps are done, and how many there are in all."""

T = TypeVar("T")


class _ProgressListener:
    """Who is told; loops inside a loop that tells its steps are silent."""

    def __init__(self, told: ProgressCallback) -> None:
        self.callback = told
        self.is_in_loop = False
        self.step: tuple[str, int, int] = ("", 0, 0)
        """The step that is being done; of work that has none, nothing of nothing."""


_LISTENER: ContextVar[_ProgressListener | None] = ContextVar("prowess_progress", default=None)


@contextmanager
def progress(told: ProgressCallback) -> Iterator[None]:
    """Have long work inside the block tell its steps: ``told(what, done, total)`` before each, and once at the end.

    A loop of one step leaves the word to the loops inside it. Work whose end nobody knows, such as a fetch, tells how
    much there is so far, with the step that it belongs to, or with a ``total`` of 0. What ``told`` raises ends the
    work.
    """
    token = _LISTENER.set(_ProgressListener(told))
    try:
        yield
    finally:
        _LISTENER.reset(token)


def report_steps(items: Sequence[T], what: Callable[[T], str]) -> Iterator[T]:
    """The items one by one, each told when it is begun, named by ``what``; at the end that all are done."""
    listener = _LISTENER.get()
    if listener is None or listener.is_in_loop or len(items) < 2:  # noqa: PLR2004 - one step is no progress
        yield from items
        return
    listener.is_in_loop = True
    try:
        for done, item in enumerate(items):
            listener.step = (what(item), done, len(items))
            listener.callback(*listener.step)
            yield item
        listener.callback("", len(items), len(items))
    finally:
        listener.is_in_loop = False
        listener.step = ("", 0, 0)


def report_amount(amount: str) -> None:
    """Tell how much of something there is so far, such as ``"1.2 MB"``; beside the step that is being done."""
    listener = _LISTENER.get()
    if listener is not None:
        what, done, total = listener.step
        listener.callback(f"{what}, {amount}" if what else amount, done, total)
