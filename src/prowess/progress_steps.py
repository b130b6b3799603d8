"""Progress of long work: a callback for a ``with`` block, and the loops that report their steps to it."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    ProgressCallback = Callable[[str, int, int], None]
    """Called with the step that begins now, how many steps are done, and how many there are in all."""

T = TypeVar("T")


class _ProgressListener:
    """The callback of one ``with`` block, and the step that is being done."""

    def __init__(self, callback: ProgressCallback) -> None:
        self.callback = callback
        self.is_in_loop = False
        """Whether a loop reports its steps now; loops inside it are silent then."""
        self.step: tuple[str, int, int] = ("", 0, 0)
        """The step that is being done; ``("", 0, 0)`` outside of loops."""


# A context variable, so that threads and tasks each report to the block that they were started in.
_LISTENER: ContextVar[_ProgressListener | None] = ContextVar("prowess_progress", default=None)


@contextmanager
def progress(report: ProgressCallback) -> Iterator[None]:
    """Call ``report(what, done, total)`` before each step of the long work inside the block, and once at the end.

    Of a loop with one step, the loops inside it report theirs instead. Work of unknown length, such as a fetch, reports
    how much there is so far: beside the step that it belongs to, or with a ``total`` of 0. An exception of ``report``
    ends the work.
    """
    token = _LISTENER.set(_ProgressListener(report))
    try:
        yield
    finally:
        _LISTENER.reset(token)


def report_steps(items: Sequence[T], what: Callable[[T], str]) -> Iterable[T]:
    """Return the items to loop over; each is reported as a step that ``what`` names, and at the end that all are done.

    The items themselves are returned where nobody listens.
    """
    listener = _LISTENER.get()
    if listener is None or listener.is_in_loop or len(items) < 2:  # noqa: PLR2004 - one step does not count as progress
        return items
    return _report_each(listener, items, what)


def _report_each(listener: _ProgressListener, items: Sequence[T], what: Callable[[T], str]) -> Iterator[T]:
    listener.is_in_loop = True
    try:
        for done, item in enumerate(items):
            listener.step = (what(item), done, len(items))
            listener.callback(*listener.step)
            yield item
        listener.callback("", len(items), len(items))
    finally:  # also when the caller leaves its loop early, so that the next loop can report
        listener.is_in_loop = False
        listener.step = ("", 0, 0)


def report_amount(amount: str) -> None:
    """Report how much of something there is so far, such as ``"1.2 MB"``, beside the step that is being done."""
    listener = _LISTENER.get()
    if listener is not None:
        what, done, total = listener.step
        listener.callback(f"{what}, {amount}" if what else amount, done, total)
