"""Choosing some of many on a terminal: a list that scrolls and is filtered as one types, or a numbered question.

What happens to the choice (``PickerState``) and how it is drawn (``render_frame``) know no terminal; ``pick_names``
alone does. It
draws on the alternate screen, so that nothing of it is left, and gives the terminal back as it was, whatever ends it.
"""

from __future__ import annotations

import os
import re
import select
import signal
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import click

from prowess.cli.render.plain_text import cell_width
from prowess.escapes import escape_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import FrameType
    from typing import Any

    from prowess.cli.terminal import Terminal

_MIN_ROWS = 8
"""A screen of fewer rows shows only the list."""
_DEFAULT_SIZE = (80, 24)
"""Taken for the size of a terminal that does not tell it."""
_MAX_FILTER_LENGTH = 60
_NAME_WIDTH = 32
_ESCAPE_SECONDS = 0.05
"""So long after an escape character the rest of a key's sequence may come; else the key Esc was pressed."""

_ENTER_SCREEN = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""The alternate screen, no cursor, and no wrapping: a character that is wider than expected moves nothing."""
_LEAVE_SCREEN = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_PLAIN, _BOLD, _DIM, _REVERSE = "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[7m"

_KEYS = {
    **dict.fromkeys(("\x1b[A", "\x1bOA", "\x10"), "up"),
    **dict.fromkeys(("\x1b[B", "\x1bOB"), "down"),
    **dict.fromkeys(("\x1b[C", "\x1bOC", "\x01"), "all"),
    **dict.fromkeys(("\x1b[D", "\x1bOD", "\x0e"), "none"),
    **dict.fromkeys(("\x1b[H", "\x1bOH", "\x1b[1~"), "first"),
    **dict.fromkeys(("\x1b[F", "\x1bOF", "\x1b[4~"), "last"),
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    **dict.fromkeys(("\r", "\n"), "enter"),
    **dict.fromkeys(("\x7f", "\x08"), "backspace"),
    **dict.fromkeys(("\x1b", "\x15"), "clear"),
    " ": "toggle",
}
_HELP = "space: choose  right: all  left: none  type: filter  enter: go on  ctrl-c: leave"
_KEY_PATTERN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|$)|[^\x1b]", re.DOTALL)


class Choice(NamedTuple):
    """One of the things to choose from."""

    name: str
    about: str
    """What it is, in a sentence or two."""
    short: str = ""
    """A few words that stand beside its name."""
    details: tuple[str, ...] = ()
    """Lines that are shown while it is the current one."""


@dataclass
class PickerState:
    """What is chosen so far, by the keys that were pressed."""

    choices: Sequence[Choice]
    chosen: set[str]
    query: str = ""
    position: int = 0
    """The current one among those that fit the filter."""
    page: int = 10
    _matches: list[Choice] | None = field(default=None, repr=False)

    @property
    def matches(self) -> list[Choice]:
        """The choices whose names or descriptions hold what was typed."""
        if self._matches is None:
            wanted = self.query.casefold()
            self._matches = [one for one in self.choices if wanted in f"{one.name}\n{one.about}".casefold()]
        return self._matches

    @property
    def current(self) -> Choice | None:
        """The choice that the keys are about."""
        return self.matches[self.position] if self.matches else None

    def press_key(self, key: str) -> None:
        """Do what a key says; one that says nothing is ignored."""
        moves = {"up": -1, "down": 1, "page up": -self.page, "page down": self.page}
        names = {one.name for one in self.matches}
        if key in moves or key in {"first", "last"}:
            self.position = {"first": 0, "last": len(self.matches) - 1}.get(key, self.position + moves.get(key, 0))
        elif key == "toggle" and self.current is not None:
            self.chosen ^= {self.current.name}
        elif key == "all":
            self.chosen |= names
        elif key == "none":
            self.chosen -= names
        elif key in {"clear", "backspace"} or (len(key) == 1 and key.isprintable()):
            self._set_filter("" if key == "clear" else self.query[:-1] if key == "backspace" else self.query + key)
        self.position = max(0, min(self.position, len(self.matches) - 1))

    def _set_filter(self, query: str) -> None:
        self.query, self._matches, self.position = query[:_MAX_FILTER_LENGTH], None, 0


# -- how it looks ------------------------------------------------------------------------------------------------------


def render_frame(picking: PickerState, heading: str, columns: int, rows: int) -> list[str]:
    """The lines of the screen, at most ``rows``, none wider than ``columns``; the current choice is among them."""
    if rows < _MIN_ROWS:
        picking.page = max(rows, 1)
        return _render_list(picking, columns, max(rows, 1))
    details = _render_details(picking, columns)[: rows // 3]
    room = rows - len(details) - 4
    picking.page = room
    count = f"{len(picking.chosen)} of {len(picking.choices)} chosen"
    typed = f"filter: {picking.query}_" if picking.query else "filter: type"
    left = len(picking.choices) - len(picking.matches)
    hidden = f" ({left} do not fit)" if left else ""
    return [
        f"{_BOLD}{cut_line(heading, columns)}{_PLAIN}",
        cut_line(f"{count}; {typed}{hidden}", columns),
        *_render_list(picking, columns, room),
        f"{_DIM}{cut_line('-' * columns, columns)}{_PLAIN}",
        *details,
        f"{_DIM}{cut_line(_HELP, columns)}{_PLAIN}",
    ]


def _render_list(picking: PickerState, columns: int, room: int) -> list[str]:
    fitting = picking.matches
    if not fitting:
        return [cut_line("nothing fits; esc shows everything again", columns)]
    first = max(0, min(picking.position - room // 2, len(fitting) - room))
    widest = min(_NAME_WIDTH, max(cell_width(escape_line(one.name)) for one in fitting), max(columns // 2, 1))
    lines = []
    for at, one in enumerate(fitting[first : first + room], first):
        mark = "[x]" if one.name in picking.chosen else "[ ]"
        name = cut_line(one.name, widest)
        short = f"  {one.short}" if one.short else ""
        text = f"{mark} {name}{' ' * (widest - cell_width(name))}{short}  {one.about}"
        shown = cut_line(f"{'>' if at == picking.position else ' '} {text}", columns)
        lines.append(f"{_REVERSE}{shown}{_PLAIN}" if at == picking.position else shown)
    return lines


def _render_details(picking: PickerState, columns: int) -> list[str]:
    one = picking.current
    if one is None:
        return []
    return [row for text in (one.about, *one.details) for row in wrap_line(text, columns)]


def cut_line(text: str, columns: int) -> str:
    """``text`` on one line of at most so many columns, harmless for a terminal; what is cut ends with an ellipsis."""
    shown = escape_line(text)
    if cell_width(shown) <= columns:
        return shown
    kept = ""
    used = 0
    for character in shown:
        used += cell_width(character)
        if used > columns - 1:
            break
        kept += character
    return f"{kept}…" if columns > 0 else ""


def wrap_line(text: str, columns: int) -> list[str]:
    """``text`` as lines of at most so many columns, harmless for a terminal, broken between words where that can be."""
    rows: list[str] = []
    row = ""
    for word in escape_line(" ".join(text.split())).split(" "):
        longer = f"{row} {word}" if row else word
        if cell_width(longer) <= columns:
            row = longer
            continue
        if row:
            rows.append(row)
        row = cut_line(word, columns)
    return [*rows, row] if row else rows


# -- on the terminal ---------------------------------------------------------------------------------------------------


def can_draw(env: dict[str, str] | os._Environ[str] = os.environ) -> bool:
    """Whether the terminal can be drawn on: one without cursor movement or without colours is asked line by line."""
    return env.get("TERM", "") not in {"", "dumb", "unknown"} and not env.get("NO_COLOR") and os.name == "posix"


def pick_names(choices: Sequence[Choice], preset: Iterable[str], heading: str, terminal: Terminal) -> list[str]:
    """Let a person choose; the names that were chosen, in the order of the choices. At first those in ``preset`` are.

    Raises ``KeyboardInterrupt`` on Ctrl-C and ``click.Abort`` when the terminal goes away.
    """
    if not can_draw():
        return ask_numbers(choices, preset, heading, terminal)
    picking = PickerState(choices, set(preset))
    with _open_screen(terminal) as (next_keys, draw):
        draw(picking, heading)
        while True:
            for key in next_keys():
                if key == "enter":
                    return [one.name for one in choices if one.name in picking.chosen]
                picking.press_key(key)
            draw(picking, heading)


@contextmanager
def _open_screen(terminal: Terminal) -> Iterator[tuple[Callable[[], list[str]], Callable[[PickerState, str], None]]]:
    """Give two functions: one waits for keys (or a new size of the screen), the other draws; then all is as before."""
    import termios  # noqa: PLC0415 - POSIX has it; elsewhere nothing is drawn
    import tty  # noqa: PLC0415

    handle = terminal.keys.fileno()
    signalled, told = os.pipe()
    os.set_blocking(told, False)
    before = termios.tcgetattr(handle)

    def draw(picking: PickerState, heading: str) -> None:
        columns, rows = _screen_size(terminal.screen.fileno())
        lines = render_frame(picking, heading, columns, rows)
        terminal.screen.write("\x1b[H" + "\x1b[K\r\n".join(lines) + "\x1b[K\x1b[J")
        terminal.screen.flush()

    with ExitStack() as undo:
        undo.callback(os.close, signalled)
        undo.callback(os.close, told)
        undo.enter_context(_handle_signals(told))
        # At once, not when the output is drained: a terminal that nobody reads would hold the process.
        undo.callback(termios.tcsetattr, handle, termios.TCSANOW, before)
        undo.callback(_write_screen, terminal, _LEAVE_SCREEN)
        tty.setcbreak(handle, termios.TCSANOW)
        termios.tcflush(handle, termios.TCIFLUSH)  # what was typed before there was anything to see chooses nothing
        _disable_suspend_key(handle)
        _write_screen(terminal, _ENTER_SCREEN)
        yield lambda: _wait_for_keys(handle, signalled), draw


def _write_screen(terminal: Terminal, text: str) -> None:
    terminal.screen.write(text)
    terminal.screen.flush()


def _disable_suspend_key(handle: int) -> None:
    """Take the key that suspends a process: a shell would get the terminal while it is drawn on."""
    import termios  # noqa: PLC0415

    settings: list[Any] = termios.tcgetattr(handle)
    settings[6][termios.VSUSP] = b"\x00"
    termios.tcsetattr(handle, termios.TCSANOW, settings)


@contextmanager
def _handle_signals(told: int) -> Iterator[None]:
    """Tell a pipe of every signal, such as a new size of the screen; have a process that is ended clean up first."""

    def ignore_signal(_number: int, _frame: FrameType | None) -> None:
        """Do nothing: the pipe has told of it."""

    def exit_on_signal(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    handlers: dict[int, Callable[[int, FrameType | None], object]] = {
        signal.SIGWINCH: ignore_signal,
        signal.SIGTERM: exit_on_signal,
        signal.SIGHUP: exit_on_signal,
    }
    # Only what is written into a pipe ends every wait for keys: Python handles a signal that comes just before the wait
    # begins, or in another thread, when the wait is over.
    wakeup = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)


def _screen_size(handle: int) -> tuple[int, int]:
    try:
        columns, rows = os.get_terminal_size(handle)
    except OSError:
        return _DEFAULT_SIZE
    return columns or _DEFAULT_SIZE[0], rows or _DEFAULT_SIZE[1]


def _wait_for_keys(handle: int, signalled: int) -> list[str]:
    """Wait for keys, by their names; an empty list means that a signal came: the screen may have another size."""
    ready, _, _ = select.select([handle, signalled], [], [])
    if signalled in ready:
        os.read(signalled, 1024)
        return []
    data = _read_keys(handle)
    while _is_partial_key(data) and select.select([handle], [], [], _ESCAPE_SECONDS)[0]:
        data += _read_keys(handle)
    return [_KEYS.get(key, key) for key in _KEY_PATTERN.findall(data.decode("utf-8", "replace"))]


def _read_keys(handle: int) -> bytes:
    data = os.read(handle, 1024)
    if not data:
        raise click.Abort
    return data


def _is_partial_key(data: bytes) -> bool:
    """Whether the rest of a key's sequence, or of a character, may still be under way."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.end == len(data) and error.reason == "unexpected end of data"
    return re.search(r"\x1b(?:\[[0-?]*[ -/]*|O)?\Z", text) is not None


# -- line by line ------------------------------------------------------------------------------------------------------


def ask_numbers(choices: Sequence[Choice], preset: Iterable[str], heading: str, terminal: Terminal) -> list[str]:
    """Let a person choose by numbers or names, on a terminal that cannot be drawn on; the names that were chosen.

    An empty line means those in ``preset``. Raises ``click.Abort`` where the input ends.
    """
    names = [one.name for one in choices]
    usual = [name for name in names if name in set(preset)]
    default = "all" if usual == names else ", ".join(str(names.index(name) + 1) for name in usual) or "none"
    width = len(str(len(choices)))
    terminal.screen.write(f"{escape_line(heading)}\n")
    for number, one in enumerate(choices, 1):
        terminal.screen.write(f"{number:>{width}}  {escape_line(one.name)}  {escape_line(one.short)}\n")
        for text in (one.about, *one.details):
            terminal.screen.write(f"{' ' * width}  {escape_line(' '.join(text.split()))}\n")
    while True:
        terminal.screen.write(f"Which? Numbers or names, all, or none [{default}]: ")
        terminal.screen.flush()
        answer = terminal.keys.readline()
        if not answer:
            raise click.Abort
        chosen, unknown = _parse_numbers(answer if answer.strip() else default, names)
        if not unknown:
            return chosen
        terminal.screen.write(f"There is no {', '.join(map(escape_line, unknown))}.\n")


def _parse_numbers(answer: str, names: list[str]) -> tuple[list[str], list[str]]:
    """The names that an answer such as ``1, 3-5 pdf`` chooses, in their order; and the words that mean nothing."""
    words = answer.replace(",", " ").split()
    chosen: set[str] = set()
    unknown: list[str] = []
    for word in words:
        first, dash, last = word.partition("-")
        if word in names:
            chosen.add(word)
        elif word in {"all", "none"}:
            chosen = set(names) if word == "all" else set()
        elif (
            first.isdecimal() and (last.isdecimal() or not dash) and 1 <= int(first) <= int(last or first) <= len(names)
        ):
            chosen.update(names[int(first) - 1 : int(last or first)])
        else:
            unknown.append(word)
    return [name for name in names if name in chosen], unknown
