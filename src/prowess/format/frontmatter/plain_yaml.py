"""The plain subset of YAML, in which nearly every real head is written, read without a YAML parser.

The subset has ``key: value`` lines, quoted values, wrapped and block text, and lists and mappings by indentation. A
text that is not surely in it is left to PyYAML. The two must agree on every text that the subset has:
tests/format/frontmatter/test_fast_paths.py compares them on real heads and on generated text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    from prowess.limits import Limits
    from prowess.model import Value

MAX_PLAIN_CHARS = 4096  # A text as short as this stays within every bound on events and lengths.
MAX_PLAIN_DEPTH = 8  # Real heads stay below it. Deeper ones are left to PyYAML, where ``Limits`` bound them.


class BrokenLineError(Exception):
    """The text is plain up to a line that YAML cannot read, so that parsing it as YAML would fail too."""


def can_skip_limit_checks(limits: Limits) -> bool:
    """Whether the limits are at least as large as anything that the plain reader accepts.

    A plain head then needs no check of its sizes.
    """
    return (
        limits.max_frontmatter_bytes >= 4 * MAX_PLAIN_CHARS
        and limits.max_yaml_depth >= MAX_PLAIN_DEPTH
        and limits.max_yaml_events >= MAX_PLAIN_CHARS - 96
        and limits.max_scalar_chars >= MAX_PLAIN_CHARS
    )


def parse_plain_yaml(text: str) -> tuple[dict[str, Value], dict[str, int]] | None:
    """Return what ``parse_yaml`` returns; ``None`` when the text is not surely in the plain subset."""
    try:
        return read_plain_yaml(text)
    except BrokenLineError:
        return None


def read_plain_yaml(text: str) -> tuple[dict[str, Value], dict[str, int]] | None:
    """Return what ``parse_plain_yaml`` returns; raise ``BrokenLineError`` where YAML would surely fail."""
    if len(text) > MAX_PLAIN_CHARS:
        return None
    return read_plain_text(text, MAX_PLAIN_DEPTH)


# Controls but for the line feed, breaks, and what YAML refuses. A text that holds one is not plain, so this is searched
# for once, and the patterns below need not name them: classes of such ranges took two thirds of the time to compile.
_ODD = r"[\x00-\x09\x0b-\x1f\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]"
_STARTS_PLAIN = r"(?=[^-?:,\[\]{}#&*!|>'\"%@`\s])"
_CHAR = r"[^:#\n]"
_REST = rf"{_CHAR}*+(?:(?::(?=[^\s\x85])|(?<=[^\s\x85])#){_CHAR}*+)*+"  # ':' and '#' only where they are text
_PLAIN = rf"{_STARTS_PLAIN}{_REST}"
_DOUBLE = r'"(?:[^"\\\n]|\\["\\])*+"'
_SINGLE = r"'(?:[^'\n]|'')*+'"
_OPEN_QUOTE = r"\"(?:[^\"\\\n]|\\[\"\\])*+(?=\n)|'(?:[^'\n]|'')*+(?=\n)"  # a quoted text that goes on in the next line
_ITEM = rf"(?:{_STARTS_PLAIN}(?:[^:#,\[\]{{}}?\n]++|:(?=[\w*./-]))++|{_DOUBLE}|{_SINGLE})"
_FLOW = rf"\[ *+(?:{_ITEM}(?: *+, *+{_ITEM})*+)?+ *+\]"
_VALUE = rf"({_PLAIN}|{_DOUBLE}|{_SINGLE}|{_FLOW}|{_OPEN_QUOTE}|[>|]-?|\{{[^\n]*+)"
_KEY = r"[A-Za-z_][A-Za-z0-9_-]{0,127}+"

_ENTRY = compile_pattern(rf"( *+)({_KEY}):(?: ++{_VALUE})? *+\n", re.ASCII)
_BULLET = compile_pattern(rf"( *+)(- ++)(?:(?={_KEY}:[ \n])|{_VALUE} *+\n)", re.ASCII)
_WRAPPED = compile_pattern(rf"( ++)(?=[^#\s])({_REST})\n", re.ASCII)
_BEGINS_BELOW = compile_pattern(rf"( ++)({_PLAIN}) *+\n", re.ASCII)
_QUOTED_MORE = {
    '"': compile_pattern(r'(\n*+) ++(?=[^ \n])((?:[^"\\\n]|\\["\\])*+)("? *+)\n', re.ASCII),
    "'": compile_pattern(r"(\n*+) ++(?=[^ \n])((?:[^'\n]|'')*+)('? *+)\n", re.ASCII),
}
_TEXT_LINE = compile_pattern(r"( *+)(\S[^\n]*+)\n", re.ASCII)
_BLANKS = compile_pattern(r"(?: *+\n)*+", re.ASCII)
_INDENT = compile_pattern(r" *+", re.ASCII)
_LINE_END = compile_pattern(r" *+\n")
_FLOW_ITEMS = compile_pattern(_ITEM, re.ASCII)
_ESCAPED = compile_pattern(r'\\(["\\])')
_FOLDED_BREAKS = compile_pattern(r"\n++")
# What YAML cannot read behind a key: an unquoted text with a colon and a blank in it, text on the line of a block's
# mark, and an unquoted text that begins with a character which no value may begin with.
_BROKEN_LINE = compile_pattern(rf"{_KEY}: ++(?:{_PLAIN}:[ \n]|[>|][-+]?+ ++[^ #\n]|[@`]|\*\*)", re.ASCII)


_BLANK = frozenset(("", " ", "\n", "\t"))


class _NotPlainError(Exception):
    """The text is not surely in the plain subset."""


def read_plain_text(text: str, max_depth: int) -> tuple[dict[str, Value], dict[str, int]] | None:
    """Return the values of a plain text and the lines of their keys; ``None`` when the text leaves the subset.

    Raises ``BrokenLineError`` where the text is plain up to a line that YAML cannot read.
    """
    if _has_odd_characters(text):
        return None
    reader = _PlainReader(text, max_depth)
    try:
        values = reader.read_mapping(0, "", 1)
    except _NotPlainError:
        return None
    return (values, reader.lines) if values and reader.at == len(reader.text) else None


def _has_odd_characters(text: str) -> bool:
    # Fast path: no odd character is printable, and Python knows at once whether all of a text is.
    return not text.replace("\n", "").isprintable() and re.search(_ODD, text) is not None


class _PlainReader:
    """One pass over the lines. ``at`` is the start of a line, or of a mapping that begins behind a bullet."""

    __slots__ = ("_counted", "_lacks_last_break", "_max_depth", "at", "lines", "text")

    def __init__(self, text: str, max_depth: int) -> None:
        self._lacks_last_break = not text.endswith("\n")  # a block of text would end without one, too
        self.text = text + "\n" if self._lacks_last_break else text
        self._max_depth = max_depth
        self.at = 0
        self.lines: dict[str, int] = {}
        self._counted = (0, 0)

    def read_mapping(self, indent: int, prefix: str, depth: int, *, inline: bool = False) -> dict[str, Value]:
        """Return the entries that stand at exactly ``indent``; ``inline``: the first one stands behind a bullet."""
        values: dict[str, Value] = {}
        if depth > self._max_depth:
            raise _NotPlainError
        text, match = self.text, _ENTRY.match
        while inline or self._has_entry_at(indent):
            entry = match(text, self.at)
            if entry is None:
                raise BrokenLineError if depth == 1 and _BROKEN_LINE.match(text, self.at) else _NotPlainError
            blanks, key, written = entry.groups()
            if len(blanks) != (0 if inline else indent) or key in values:
                raise _NotPlainError
            inline = False
            path = prefix + key
            if depth <= 2:  # noqa: PLR2004 - metadata.key is as deep as findings point
                self.lines[path] = self._line_number(self.at)
            self.at = entry.end()
            values[key] = self._read_value(written, indent, path + ".", depth)
        return values

    def _line_number(self, offset: int) -> int:
        """Return the line of a position; no later call may ask for an earlier one, so each break is counted once."""
        since, line = self._counted
        line += self.text.count("\n", since, offset)
        self._counted = (offset, line)
        return line

    def _has_entry_at(self, indent: int) -> bool:
        """Whether the next line that is not blank stands at ``indent``; one further right is not plain."""
        if self.text[self.at : self.at + 1] not in _BLANK:  # fast path: most lines begin at the margin
            return not indent
        self._skip_blanks()
        if self.at == len(self.text):
            return False
        width = self._measure_indent()
        if width > indent or self.text[self.at + width] == "\t":
            raise _NotPlainError
        return width == indent

    def _measure_indent(self) -> int:
        match = _INDENT.match(self.text, self.at)
        return match.end() - self.at if match else 0

    def _skip_blanks(self) -> None:
        blanks = _BLANKS.match(self.text, self.at)
        if blanks:
            self.at = blanks.end()

    def _read_value(self, written: str | None, indent: int, prefix: str, depth: int) -> Value:
        if written is None:
            return self._read_value_below(indent, prefix, depth)
        mark = written[0]
        if mark not in "\"'[{>|":
            return self._read_wrapped_text(written, indent)
        if mark in ">|":
            return self._read_block_text(written, indent)
        if mark == "{":
            return self._read_json(self.at - len(written) - 1, prefix, depth)
        if mark != "[" and (len(written) == 1 or written[-1] != mark or not _is_quote_complete(written)):
            return self._read_quoted_text(written)
        return _unquote_value(written)

    def _read_wrapped_text(self, first: str, indent: int) -> str:
        if not self.text.startswith(" ", self.at):
            return first.rstrip(" ")
        parts = [first.rstrip(" ")]
        while (line := _WRAPPED.match(self.text, self.at)) and len(line[1]) > indent:
            parts.append(line[2].rstrip(" "))
            self.at = line.end()
        return " ".join(parts)

    def _read_quoted_text(self, first: str) -> str:
        quote = first[0]
        text = first[1:].rstrip(" ")
        while line := _QUOTED_MORE[quote].match(self.text, self.at):
            self.at = line.end()
            empty, more, closing = line.groups()
            # A break is a blank, unless empty lines follow: each of them is a break.
            text += empty or " "
            if closing.startswith(quote):
                text += more
                return text.replace("''", "'") if quote == "'" else _ESCAPED.sub(r"\1", text)
            text += more.rstrip(" ")
        raise _NotPlainError

    def _read_block_text(self, style: str, indent: int) -> str:
        first = _TEXT_LINE.match(self.text, self.at)
        if first is None or len(first[1]) <= indent:
            raise _NotPlainError
        margin = len(first[1])
        lines: list[str] = []
        while True:
            line = _TEXT_LINE.match(self.text, self.at)
            if line is not None and line[1] == first[1]:
                lines.append(line[2])
                self.at = line.end()
            elif line is not None or not self._skip_empty_lines(lines, margin):
                break
        if line is not None and (len(line[1]) > margin or indent < len(line[1])):
            raise _NotPlainError  # text further right keeps its breaks even when folded
        return self._join_block(style, lines)

    def _skip_empty_lines(self, lines: list[str], margin: int) -> bool:
        """Add the empty lines of a block to ``lines``; return whether there were any, and the text goes on."""
        begin = self.at
        self._skip_blanks()
        empty = self.text[begin : self.at].split("\n")[:-1]
        if any(len(line) > margin for line in empty):  # blanks behind the margin are text
            raise _NotPlainError
        lines += [""] * len(empty)
        return bool(empty) and self.at < len(self.text)

    def _join_block(self, style: str, lines: list[str]) -> str:
        if self._lacks_last_break and self.at == len(self.text):
            raise _NotPlainError
        text = "\n".join(lines).rstrip("\n")
        if style[0] == ">":
            # One break is a blank. Of several in a row the first is nothing.
            text = _FOLDED_BREAKS.sub(lambda breaks: breaks[0][1:] or " ", text)
        return text if style.endswith("-") else text + "\n"

    def _read_json(self, start: int, prefix: str, depth: int) -> Value:
        """Return the JSON mapping that begins at ``start``, and go on behind its line."""
        from prowess.format.frontmatter.json_mapping import read_json_mapping

        mapping = read_json_mapping(self.text, start, self._max_depth - depth)
        end = _LINE_END.match(self.text, mapping[2]) if mapping is not None else None
        if mapping is None or end is None:
            raise _NotPlainError
        values, offsets, _ = mapping
        if depth == 1:
            for key, offset in offsets.items():
                self.lines[prefix + key] = self._line_number(offset)
        self.at = end.end()
        return values

    def _read_value_below(self, indent: int, prefix: str, depth: int) -> Value:
        self._skip_blanks()
        bullet = _BULLET.match(self.text, self.at)
        if bullet is not None and len(bullet[1]) >= indent:
            return self._read_list(len(bullet[1]), depth + 1)
        width = self._measure_indent()
        if self.at == len(self.text) or width <= indent:
            return ""
        if _ENTRY.match(self.text, self.at):
            return self.read_mapping(width, prefix, depth + 1)
        if self.text.startswith("{", self.at + width):
            return self._read_json(self.at + width, prefix, depth)
        begins = _BEGINS_BELOW.match(self.text, self.at)
        if begins is None:
            raise _NotPlainError
        self.at = begins.end()
        return self._read_wrapped_text(begins[2], indent)

    def _read_list(self, indent: int, depth: int) -> list[Value]:
        items: list[Value] = []
        if depth > self._max_depth:
            raise _NotPlainError
        while self._has_bullet_at(indent):
            bullet = _BULLET.match(self.text, self.at)
            if bullet is None:
                raise _NotPlainError
            self.at = bullet.end()
            if bullet[3] is None:
                items.append(self.read_mapping(indent + len(bullet[2]), "-", depth + 1, inline=True))
            else:
                items.append(self._read_value(bullet[3], indent, "-", depth))
        return items

    def _has_bullet_at(self, indent: int) -> bool:
        self._skip_blanks()
        width = self._measure_indent()
        if width > indent:
            raise _NotPlainError
        return width == indent and self.text.startswith("-", self.at + width)


def _is_quote_complete(written: str) -> bool:
    return re.fullmatch(_DOUBLE if written[0] == '"' else _SINGLE, written, re.ASCII) is not None


def _unquote_value(written: str) -> Value:
    if written[0] == '"':
        return _ESCAPED.sub(r"\1", written[1:-1]) if "\\" in written else written[1:-1]
    if written[0] == "'":
        return written[1:-1].replace("''", "'")
    if written[0] == "[":
        return [_unquote_value(item) for item in _FLOW_ITEMS.findall(written, 1)]
    return written.rstrip(" ")
