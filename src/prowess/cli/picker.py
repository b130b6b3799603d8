"""The picker: a person chooses some of many on a terminal.

It is a list that scrolls and is filtered as one types, or a numbered question on a terminal that cannot be drawn on.
The list is drawn on the alternate screen, so that nothing of it is left. Whatever ends the picker, the terminal gets
its own settings back.
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
from prowess.text.hidden_characters import escape_invisible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import FrameType
    from typing import Any

    from prowess.cli.terminal import Terminal


_DEFAULT_SIZE = (80, 24)
"""The size of a terminal that does not report its own."""
_ESCAPE_SECONDS = 0.05
"""How long the rest of a key's sequence may take after an escape character. After that the key Esc was pressed."""

_ENTER_SCREEN = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""The alternate screen, no cursor, and no wrapping: a character that is wider than expected moves nothing."""
_LEAVE_SCREEN = "\x1b[?7h\x1b[?25h\x1b[?1049l"

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
_KEY_PATTERN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|$)|[^\x1b]", re.DOTALL)


def pick_names(choices: Sequence[Choice], preset: Iterable[str], heading: str, terminal: Terminal) -> list[str]:
    """Let a person choose, and return the chosen names in the order of ``choices``. ``preset`` is chosen at first.

    Raise ``KeyboardInterrupt`` on Ctrl-C and ``click.Abort`` when the terminal goes away.
    """
    # Without cursor movement and colours a person is asked line by line.
    has_screen = os.environ.get("TERM", "") not in {"", "dumb", "unknown"} and os.name == "posix"
    if not has_screen or os.environ.get("NO_COLOR"):
        return ask_numbers(choices, preset, heading, terminal)
    state = PickerState(choices, set(preset))
    with _open_screen(terminal) as (next_keys, draw):
        draw(state, heading)
        while True:
            for key in next_keys():
                if key == "enter":
                    return [choice.name for choice in choices if choice.name in state.chosen]
                state.press_key(key)
            draw(state, heading)


@contextmanager
def _open_screen(terminal: Terminal) -> Iterator[tuple[Callable[[], list[str]], Callable[[PickerState, str], None]]]:
    """Yield a function that waits for keys and one that draws; at the end the terminal is as it was before."""
    import termios
    import tty

    handle = terminal.keys.fileno()
    signal_reader, signal_writer = os.pipe()
    os.set_blocking(signal_writer, False)  # many signals at once must not block the process on a full pipe
    before = termios.tcgetattr(handle)

    def draw(state: PickerState, heading: str) -> None:
        columns, rows = _screen_size(terminal.screen.fileno())
        lines = render_frame(state, heading, columns, rows)
        terminal.screen.write("\x1b[H" + "\x1b[K\r\n".join(lines) + "\x1b[K\x1b[J")
        terminal.screen.flush()

    # How to undo a change of the terminal is registered before the change: a signal may come in between.
    with ExitStack() as undo:
        undo.callback(os.close, signal_reader)
        undo.callback(os.close, signal_writer)
        undo.enter_context(_handle_signals(signal_writer))
        # At once, not when the output is drained: a terminal that nobody reads would hold the process.
        undo.callback(termios.tcsetattr, handle, termios.TCSANOW, before)
        undo.callback(_write_screen, terminal, _LEAVE_SCREEN)
        tty.setcbreak(handle, termios.TCSANOW)
        termios.tcflush(handle, termios.TCIFLUSH)  # what was typed before there was anything to see chooses nothing
        _disable_suspend_key(handle)
        _write_screen(terminal, _ENTER_SCREEN)
        yield lambda: _wait_for_keys(handle, signal_reader), draw


def _write_screen(terminal: Terminal, text: str) -> None:
    terminal.screen.write(text)
    terminal.screen.flush()


def _disable_suspend_key(handle: int) -> None:
    """Make Ctrl-Z an ordinary key: a suspended picker would leave its screen and settings to the shell."""
    import termios

    settings: list[Any] = termios.tcgetattr(handle)
    settings[6][termios.VSUSP] = b"\x00"
    termios.tcsetattr(handle, termios.TCSANOW, settings)


@contextmanager
def _handle_signals(signal_writer: int) -> Iterator[None]:
    """Write every signal into a pipe while the block runs, and let SIGTERM and SIGHUP clean up before the end."""

    def ignore_signal(_number: int, _frame: FrameType | None) -> None:
        """Do nothing: the byte in the pipe is enough to draw again."""

    def exit_on_signal(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    handlers: dict[int, Callable[[int, FrameType | None], object]] = {
        signal.SIGWINCH: ignore_signal,
        signal.SIGTERM: exit_on_signal,
        signal.SIGHUP: exit_on_signal,
    }
    # A race: Python runs a handler that comes just before the wait for keys, or in another thread, after the wait is
    # over. Only a byte in a pipe that the wait watches ends it every time.
    wakeup = signal.set_wakeup_fd(signal_writer, warn_on_full_buffer=False)
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


def _wait_for_keys(handle: int, signal_reader: int) -> list[str]:
    """Wait for keys and return their names. An empty list means a signal: the screen may have another size."""
    ready, _, _ = select.select([handle, signal_reader], [], [])
    if signal_reader in ready:
        os.read(signal_reader, 1024)
        return []
    data = _read_keys(handle)
    # A slow line may deliver the bytes of one key in parts.
    while _is_partial_key(data) and select.select([handle], [], [], _ESCAPE_SECONDS)[0]:
        data += _read_keys(handle)
    return [_KEYS.get(key, key) for key in _KEY_PATTERN.findall(data.decode("utf-8", "replace"))]


def _read_keys(handle: int) -> bytes:
    data = os.read(handle, 1024)
    if not data:  # the terminal was closed
        raise click.Abort
    return data


def _is_partial_key(data: bytes) -> bool:
    """Return True when the rest of a key's sequence, or of a character, may still follow."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.end == len(data) and error.reason == "unexpected end of data"
    return re.search(r"\x1b(?:\[[0-?]*[ -/]*|O)?\Z", text) is not None


# -- line by line ------------------------------------------------------------------------------------------------------


def ask_numbers(choices: Sequence[Choice], preset: Iterable[str], heading: str, terminal: Terminal) -> list[str]:
    """Ask for numbers or names on a terminal that cannot be drawn on, and return the chosen names.

    An empty line means those in ``preset``. Raise ``click.Abort`` if the input ends.
    """
    names = [choice.name for choice in choices]
    preset_names = [name for name in names if name in set(preset)]
    numbers = ", ".join(str(names.index(name) + 1) for name in preset_names)
    default = "all" if preset_names == names else numbers or "none"
    width = len(str(len(choices)))
    terminal.screen.write(f"{escape_invisible(heading)}\n")
    for number, choice in enumerate(choices, 1):
        terminal.screen.write(f"{number:>{width}}  {escape_invisible(choice.name)}  {escape_invisible(choice.short)}\n")
        for text in (choice.about, *choice.details):
            terminal.screen.write(f"{' ' * width}  {escape_invisible(' '.join(text.split()))}\n")
    while True:
        terminal.screen.write(f"Which? Numbers or names, all, or none [{default}]: ")
        terminal.screen.flush()
        answer = terminal.keys.readline()
        if not answer:
            raise click.Abort
        chosen, unknown = _parse_numbers(answer if answer.strip() else default, names)
        if not unknown:
            return chosen
        terminal.screen.write(f"There is no {', '.join(map(escape_invisible, unknown))}.\n")


def _parse_numbers(answer: str, names: list[str]) -> tuple[list[str], list[str]]:
    """Return the names that an answer such as ``1, 3-5 pdf`` chooses, in their order, and the unknown words."""
    words = answer.replace(",", " ").split()
    chosen: set[str] = set()
    unknown: list[str] = []
    for word in words:
        first, dash, last = word.partition("-")
        # Names come first: a skill may be called '1' or 'all'.
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


_MIN_ROWS = 8
"""A screen with fewer rows shows only the list."""
_MAX_FILTER_LENGTH = 60
_NAME_WIDTH = 32
_PLAIN, _BOLD, _DIM, _REVERSE = "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[7m"
_HELP = "space: choose  right: all  left: none  type: filter  enter: go on  ctrl-c: leave"


class Choice(NamedTuple):
    """One thing to choose."""

    name: str
    about: str
    """What it is, in a sentence or two."""
    short: str = ""
    """A few words beside its name."""
    details: tuple[str, ...] = ()
    """Lines that are shown while the cursor is on it."""


@dataclass
class PickerState:
    """What is chosen so far, what was typed, and where the cursor is."""

    choices: Sequence[Choice]
    chosen: set[str]
    query: str = ""
    position: int = 0
    """The place of the cursor among the choices that match the filter."""
    page: int = 10
    """How many rows the keys PgUp and PgDn move; drawing sets it to the rows of the screen."""
    _matches: list[Choice] | None = field(default=None, repr=False)

    @property
    def matches(self) -> list[Choice]:
        """The choices whose names or descriptions contain what was typed."""
        # Kept until the filter changes, since every frame asks several times.
        if self._matches is None:
            query = self.query.casefold()
            self._matches = [choice for choice in self.choices if query in f"{choice.name}\n{choice.about}".casefold()]
        return self._matches

    @property
    def current(self) -> Choice | None:
        """The choice under the cursor; ``None`` if nothing matches the filter."""
        return self.matches[self.position] if self.matches else None

    def press_key(self, key: str) -> None:
        """Change the state as a key says. A key without a meaning is ignored."""
        moves = {"up": -1, "down": 1, "page up": -self.page, "page down": self.page}
        names = {choice.name for choice in self.matches}
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
        # The filter may have left fewer matches than the place of the cursor.
        self.position = max(0, min(self.position, len(self.matches) - 1))

    def _set_filter(self, query: str) -> None:
        self.query, self._matches, self.position = query[:_MAX_FILTER_LENGTH], None, 0


# -- how it looks ------------------------------------------------------------------------------------------------------


def render_frame(state: PickerState, heading: str, columns: int, rows: int) -> list[str]:
    """Return the lines of the screen, at most ``rows``, none wider than ``columns``, with the cursor among them."""
    if rows < _MIN_ROWS:
        state.page = max(rows, 1)
        return _render_list(state, columns, max(rows, 1))
    # The list keeps at least two thirds of the screen, less four rows: heading, filter, ruler and help.
    details = _render_details(state, columns)[: rows // 3]
    room = rows - len(details) - 4
    state.page = room
    count = f"{len(state.chosen)} of {len(state.choices)} chosen"
    typed = f"filter: {state.query}_" if state.query else "filter: type"
    hidden_count = len(state.choices) - len(state.matches)
    hidden = f" ({hidden_count} do not fit)" if hidden_count else ""
    return [
        f"{_BOLD}{cut_line(heading, columns)}{_PLAIN}",
        cut_line(f"{count}; {typed}{hidden}", columns),
        *_render_list(state, columns, room),
        f"{_DIM}{cut_line('-' * columns, columns)}{_PLAIN}",
        *details,
        f"{_DIM}{cut_line(_HELP, columns)}{_PLAIN}",
    ]


def _render_list(state: PickerState, columns: int, room: int) -> list[str]:
    matches = state.matches
    if not matches:
        return [cut_line("nothing fits; esc shows everything again", columns)]
    # The cursor stays in the middle of the list, except near its ends.
    first = max(0, min(state.position - room // 2, len(matches) - room))
    longest = max(cell_width(escape_invisible(choice.name)) for choice in matches)
    name_width = min(_NAME_WIDTH, longest, max(columns // 2, 1))
    lines = []
    for position, choice in enumerate(matches[first : first + room], first):
        mark = "[x]" if choice.name in state.chosen else "[ ]"
        name = cut_line(choice.name, name_width)
        short = f"  {choice.short}" if choice.short else ""
        text = f"{mark} {name}{' ' * (name_width - cell_width(name))}{short}  {choice.about}"
        shown = cut_line(f"{'>' if position == state.position else ' '} {text}", columns)
        lines.append(f"{_REVERSE}{shown}{_PLAIN}" if position == state.position else shown)
    return lines


def _render_details(state: PickerState, columns: int) -> list[str]:
    choice = state.current
    strings = (choice.about, *choice.details) if choice is not None else ()
    return [row for text in strings for row in wrap_line(text, columns)]


def cut_line(text: str, columns: int) -> str:
    """Return ``text`` as one line of at most ``columns``, escaped for a terminal; a cut line ends with an ellipsis."""
    shown = escape_invisible(text)
    if cell_width(shown) <= columns:
        return shown
    # By columns, not characters: a Chinese character takes two columns.
    prefix = ""
    used = 0
    for character in shown:
        used += cell_width(character)
        if used > columns - 1:
            break
        prefix += character
    return f"{prefix}…" if columns > 0 else ""


def wrap_line(text: str, columns: int) -> list[str]:
    """Return ``text`` as lines of at most ``columns``, escaped for a terminal and broken between words."""
    rows: list[str] = []
    row = ""
    for word in escape_invisible(" ".join(text.split())).split(" "):
        longer = f"{row} {word}" if row else word
        if cell_width(longer) <= columns:
            row = longer
            continue
        if row:
            rows.append(row)
        row = cut_line(word, columns)
    return [*rows, row] if row else rows
