"""The list of choices that the picker shows: what is chosen so far, and how the list is drawn.

Nothing here knows a terminal: keys come in by name, and lines of text go out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from prowess.cli.render.plain_text import cell_width
from prowess.text.hidden_characters import escape_invisible

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    texts = (choice.about, *choice.details) if choice is not None else ()
    return [row for text in texts for row in wrap_line(text, columns)]


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
