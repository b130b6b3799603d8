"""A question that is asked before its answer is needed."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Prefetch(Generic[T]):
    """Calls a function in a thread of its own, and gives what it gave, or raises what it raised."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._answers: list[T] = []
        self._errors: list[BaseException] = []
        self._thread = Thread(target=self._run, args=(ask,), daemon=True)
        self._thread.start()

    def _run(self, ask: Callable[[], T]) -> None:
        try:
            self._answers.append(ask())
        except BaseException as error:  # noqa: BLE001 - it is raised where the answer is asked for
            self._errors.append(error)

    def result(self) -> T:
        """Wait for the answer."""
        self._thread.join()
        for error in self._errors:
            raise error
        return self._answers[0]
