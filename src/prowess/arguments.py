"""Checks of the arguments that a program passes to Prowess.

Every function raises ``SourceError`` (code ``bad-argument``). Its message names the argument, what it should be, what
it was, and, where that can be said, what to pass instead. Constructors check their arguments at once: an argument that
is only used later would fail far from the line that is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from prowess.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_SHOWN_CHARS = 80  # a message stays one line, even where somebody passed the text of a whole file


def describe_value(given: object) -> str:
    """Return a value as a message shows it: its type and, for plain data, the beginning of its value."""
    if given is None:
        return "None"
    # The text of other objects is theirs to choose, and may hold a secret or an address in memory.
    is_path = hasattr(given, "__fspath__")
    if not is_path and not isinstance(given, str | bytes | int | float | list | tuple | set | dict):
        return f"a {type(given).__name__}"
    return f"the {'string' if isinstance(given, str) else type(given).__name__} {shorten_value(repr(given))}"


def shorten_value(text: str) -> str:
    """Return the beginning of a value's text, as much as a message shows."""
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}…"


def raise_bad_argument(argument: str, expected: str, given: object, remedy: str = "") -> NoReturn:
    """Raise ``SourceError`` for a value that is not what is expected; ``remedy`` says what to pass instead."""
    hint = f"; {remedy}" if remedy else ""
    raise SourceError(f"{argument} {expected}, not {describe_value(given)}{hint}")


def check_text(given: object, argument: str) -> None:
    """Raise ``SourceError`` unless the value is a string."""
    if not isinstance(given, str):
        raise_bad_argument(argument, "must be a string", given)


def check_name(given: object, remedy: str = "") -> None:
    """Raise ``SourceError`` unless the value by which a skill is looked up is a string."""
    if not isinstance(given, str):
        raise_bad_argument("the name of a skill", "must be a string", given, remedy)


def check_texts(given: Iterable[str], argument: str) -> tuple[str, ...]:
    """Return the strings of a list, tuple, set or other iterable.

    Raises ``SourceError`` for a single string, which would count letter by letter, and for items that are not strings.
    """
    values = _as_tuple(given, argument, "must be a list of strings")
    for index, value in enumerate(values):
        check_text(value, f"{argument}[{index}]")
    return values


def check_variables(given: Iterable[str], argument: str) -> tuple[str, ...]:
    """Return the names of environment variables. Raises ``SourceError`` for a string that cannot be such a name."""
    names = check_texts(given, argument)
    for name in names:
        if not name or "=" in name or "\0" in name:
            raise_bad_argument(argument, "must be a list of names of variables", name)
    return names


def _as_tuple(given: Iterable[Any], argument: str, expected: str) -> tuple[Any, ...]:
    # A single string is iterable too: without this check ``skills="pdf"`` would mean the skills p, d and f.
    if isinstance(given, str | bytes):
        raise_bad_argument(argument, expected, given, f"pass [{describe_value(given).split(' ', 2)[2]}]")
    try:
        return tuple(given)
    except TypeError:
        raise_bad_argument(argument, expected, given)


def check_flag(given: object, argument: str) -> None:
    """Raise ``SourceError`` unless the value is ``True`` or ``False``: a string such as ``"no"`` is true."""
    if not isinstance(given, bool):
        raise_bad_argument(argument, "must be True or False", given)


def check_number(given: object, argument: str) -> None:
    """Raise ``SourceError`` unless the value is a whole number; it may be below 0."""
    # To Python ``True`` is the number 1, which nobody means.
    if not isinstance(given, int) or isinstance(given, bool):
        raise_bad_argument(argument, "must be a whole number", given)


def check_count(given: object, argument: str, *, optional: bool = False) -> None:
    """Raise ``SourceError`` unless the value is a whole number from 0, or ``None`` where that is ``optional``."""
    if optional and given is None:
        return
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise SourceError(f"{argument} must be a whole number from 0{' or None' if optional else ''}, not {given!r}")


def check_instance(given: object, argument: str, kind: type, *, optional: bool = False, remedy: str = "") -> None:
    """Raise ``SourceError`` unless the value is of the class ``kind``, or ``None`` where that is ``optional``."""
    if isinstance(given, kind) or (optional and given is None):
        return
    raise_bad_argument(argument, f"must be a prowess.{kind.__name__}{' or None' if optional else ''}", given, remedy)


def check_callable(given: object, argument: str) -> None:
    """Raise ``SourceError`` unless the value can be called, or is ``None``."""
    if given is not None and not callable(given):
        raise_bad_argument(argument, "must be callable", given)


def check_method(given: object, argument: str, method: str, remedy: str) -> None:
    """Raise ``SourceError`` unless the value has that method."""
    if not callable(getattr(given, method, None)):
        raise SourceError(f"{argument} must have a method {method}(), and {describe_value(given)} has none; {remedy}")
