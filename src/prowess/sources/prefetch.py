"""A call that runs in a thread of its own, so that its result is there when it is needed."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Prefetch(Generic[T]):
    """Calls a function in a thread of its own. ``result`` returns what it returned, or raises what it raised."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._results: list[T] = []
        self._errors: list[BaseException] = []
        # A daemon: a server that never answers must not keep the program from ending.
        self._thread = Thread(target=self._run, args=(function,), daemon=True)
        self._thread.start()

    def _run(self, function: Callable[[], T]) -> None:
        try:
            self._results.append(function())
        except BaseException as error:  # noqa: BLE001 - result() raises it in the thread that waits
            self._errors.append(error)

    def result(self) -> T:
        """Wait for the function, and return what it returned, or raise what it raised."""
        self._thread.join()
        for error in self._errors:
            raise error
        return self._results[0]
