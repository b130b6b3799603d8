"""The strict YAML parser: every scalar is text, and nothing is built before the events have been checked.

Tags, anchors, aliases, merge keys, directives, duplicate keys, complex keys, several documents, deep nesting and
sheer size are refused. What is left has one meaning for every reader of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.limits import DEFAULT_LIMITS
from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeAlias

    from prowess.limits import Limits

    Value: TypeAlias = "str | list[Value] | dict[str, Value]"
    """A frontmatter value: a string as it was written, a list of values, or a mapping of strings to values."""

_ODD_LINE_ENDS = compile_pattern("[\x85\u2028\u2029]")
_OPENED_QUOTE = compile_pattern(r"""[ \t]*+[\w.-]++[ \t]*+:[ \t]++(["'])(?:(?!\1).)*+\Z""")
_SURROGATE = compile_pattern("[\ud800-\udfff]")


class YamlError(Exception):
    """The text breaks YAML's syntax, and a repair may help. ``line`` counts from 0."""

    def __init__(self, code: str, message: str, line: int) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line


class YamlRefusedError(YamlError):
    """The text is YAML that the rules refuse; it is never repaired."""


class UndefinedAliasError(YamlError):
    """An alias such as ``*text`` without its anchor: most likely a string that begins with an asterisk."""


def parse_yaml(text: str, limits: Limits = DEFAULT_LIMITS) -> tuple[dict[str, Value], dict[str, int]]:
    """Return the mapping that ``text`` holds, and the line (from 0) of each key of its first two levels.

    A key of the second level is written ``metadata.key``. Raises ``YamlError`` for anything but such a mapping, and
    ``YamlRefusedError`` for one that the rules refuse.
    """
    return _ValueBuilder(list(_check_events(_parse_events(text), limits))).build_document()


def parse_yaml_value(text: str, limits: Limits = DEFAULT_LIMITS) -> Value:
    """Return the value of one YAML document: text, a list or a mapping; ``""`` for an empty document.

    Raises ``YamlError`` and ``YamlRefusedError`` as ``parse_yaml`` does.
    """
    return _ValueBuilder(list(_check_events(_parse_events(text), limits))).build_any()


class PlainScalar(str):
    """A scalar without quotes, which a reader that types its values may take for something else than text."""

    __slots__ = ("column", "line")
    line: int
    """The line of the YAML on which it begins, counted from 0."""
    column: int
    """The character of that line at which it begins, counted from 0."""

    @classmethod
    def at(cls, text: str, line: int, column: int) -> PlainScalar:
        """Return the scalar ``text``, which begins at ``line`` and ``column``."""
        scalar = cls(text)
        scalar.line, scalar.column = line, column
        return scalar


def parse_styled_yaml(text: str, limits: Limits = DEFAULT_LIMITS) -> dict[str, Value]:
    """Return the mapping that ``parse_yaml`` returns, with every unquoted scalar as a ``PlainScalar``."""
    return _StyledBuilder(list(_check_events(_parse_events(text), limits))).build_document()[0]


def find_unindented_line(text: str) -> int | None:
    """Return the first line (from 0) that continues a quoted or bracketed value without being deeper than its key.

    PyYAML reads such a line. YAML 1.2, and the parsers of other hosts that keep to it, refuse it. Returns ``None`` when
    there is no such line. Raises ``YamlError`` where ``text`` breaks the syntax.
    """
    lines = [line.rstrip("\r") for line in text.split("\n")]
    for first, last, column, is_quoted in _iter_multiline_values(text, lines):
        for number in range(first + 1, last + 1):
            words = lines[number].lstrip(" ")
            is_comment = words.startswith("#") and not is_quoted
            if words and not is_comment and len(lines[number]) - len(words) <= column:
                return number
    return None


def _iter_multiline_values(text: str, lines: list[str]) -> Iterator[tuple[int, int, int, bool]]:
    """Yield for each quoted or bracketed value: its first and last line, the column of its block, whether it is quoted.

    The block is the mapping or list that the value is in.
    """
    blocks = [-1]  # the columns of the mappings and lists around an event
    brackets: list[int] = []  # the lines on which the brackets around it opened
    for event in _parse_events(text):
        kind = type(event).__name__
        mark = event.start_mark
        if kind == "ScalarEvent" and event.style in {"'", '"'}:
            yield mark.line, event.end_mark.line, blocks[-1], True
        elif kind in {"MappingStartEvent", "SequenceStartEvent"}:
            if event.flow_style:
                brackets.append(mark.line)
            else:
                blocks.append(mark.column)
        elif kind in {"MappingEndEvent", "SequenceEndEvent"}:
            if not brackets:
                blocks.pop()
                continue
            first = brackets.pop()
            # The outermost bracket may close on a line of its own right below its key, which every parser accepts.
            is_alone = not lines[mark.line][: mark.column].strip(" ")
            closes_below = is_alone and not brackets and mark.column == blocks[-1]
            yield first, mark.line - closes_below, blocks[-1], False


def parse_block_yaml(text: str, limits: Limits = DEFAULT_LIMITS) -> tuple[dict[str, Value], dict[str, int]]:
    """Return what ``parse_yaml`` returns, for the subset of YAML that the specification's reference validator reads.

    Beyond what ``parse_yaml`` refuses, ``[a]`` and ``{a: b}`` raise ``YamlRefusedError``, and so do mappings below one
    mapping that are indented differently.
    """
    # The validator's YAML 1.2 parser is a fork of PyYAML's Python one, so the two agree where the C parser does not,
    # most often about tabs. It ends lines at LF only; PyYAML would also end them at these three.
    events = list(_check_events(_parse_events(_ODD_LINE_ENDS.sub("\ufffd", text), fast=False), limits))
    for event in events:
        if getattr(event, "flow_style", False):
            message = "lists and mappings in brackets or braces are not allowed"
            raise YamlRefusedError("yaml-flow", message, event.start_mark.line)
    return _BlockBuilder(events).build_document()


def _parse_events(text: str, *, fast: bool = True) -> Iterator[Any]:
    """Yield the events of PyYAML's C parser where it is installed, or (not ``fast``) of its parser in Python.

    Raises ``YamlError`` where the text breaks the syntax.
    """
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader) if fast else yaml.BaseLoader
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = mark.line if mark else 0
        opening = _find_unclosed_quote(text, line)
        if opening is not None:
            raise YamlError("yaml-syntax", "the quotes around the value are not closed on this line", opening) from None
        indent = next((row[: len(row) - len(row.lstrip())] for row in text.split("\n")[line : line + 1]), "")
        if "\t" in indent:
            raise YamlError("yaml-syntax", "a tab indents this line: indent with spaces", line) from None
        message = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise YamlError("yaml-syntax", str(message), line) from None


def _find_unclosed_quote(text: str, line: int) -> int | None:
    """Return the line above ``line``, where a parser failed, on which a quote opens that is not closed before it.

    Returns ``None`` when there is none. A parser reads on to the next such quote, or to the end, and fails there, far
    from the line that its author has to fix.
    """
    lines = text.split("\n")[:line]
    for number in range(len(lines) - 1, -1, -1):
        opening = _OPENED_QUOTE.match(lines[number])
        if opening:
            return None if any(opening[1] in later for later in lines[number + 1 :]) else number
    return None


def _check_events(events: Iterable[Any], limits: Limits) -> Iterator[Any]:
    """Yield the events, and raise ``YamlRefusedError`` at the first that the rules refuse."""
    # While the parser runs, not after it, so that the limits end the parsing of a string that is too deep or too large.
    depth = documents = 0
    for count, event in enumerate(events):
        kind = type(event).__name__
        line = event.start_mark.line
        if count >= limits.max_yaml_events:
            raise YamlRefusedError("yaml-too-many-events", f"more than {limits.max_yaml_events} YAML events", line)
        if kind == "DocumentStartEvent":
            documents += 1
            _check_document(event, documents, line)
        elif kind in {"MappingStartEvent", "SequenceStartEvent"}:
            depth += 1
            if depth > limits.max_yaml_depth:
                raise YamlRefusedError("yaml-too-deep", f"nesting > {limits.max_yaml_depth}", line)
        elif kind in {"MappingEndEvent", "SequenceEndEvent"}:
            depth -= 1
        elif kind == "ScalarEvent":
            _check_scalar(event, line, limits)
        _check_node(event, kind, line)
        yield event


def _check_document(event: Any, documents: int, line: int) -> None:
    if event.version or event.tags:
        raise YamlRefusedError("yaml-directive", "YAML directives are not allowed", line)
    if documents > 1:
        raise YamlRefusedError("yaml-documents", "more than one YAML document", line)


def _check_scalar(event: Any, line: int, limits: Limits) -> None:
    if len(event.value) > limits.max_scalar_chars:
        raise YamlRefusedError(
            "yaml-scalar-too-long", f"a value has more than {limits.max_scalar_chars} characters", line
        )
    if not event.value.isascii() and _SURROGATE.search(event.value):
        raise YamlRefusedError("yaml-surrogate", "a value holds an unpaired surrogate (a lone surrogate)", line)


def _check_node(event: Any, kind: str, line: int) -> None:
    anchor = getattr(event, "anchor", None)
    if kind == "AliasEvent":  # every anchor is refused, so an alias that is reached has none
        raise UndefinedAliasError("yaml-anchor", f"alias *{str(anchor)[:40]} has no anchor", line)
    if anchor is not None:
        raise YamlRefusedError("yaml-anchor", f"YAML aliases are not allowed (anchor &{anchor[:40]})", line)
    if getattr(event, "tag", None) is not None:
        raise YamlRefusedError("yaml-tag", f"YAML tag not allowed ({event.tag[:80]})", line)


class _ValueBuilder:
    """Builds text, lists and mappings from events that were checked.

    The methods call each other to any depth, because ``_check_events`` has bounded it.
    """

    def __init__(self, events: list[Any]) -> None:
        self._events = iter(events)
        self._lines: dict[str, int] = {}

    def build_document(self) -> tuple[dict[str, Value], dict[str, int]]:
        """Return the mapping of the document, and the lines of its keys."""
        for event in self._events:
            kind = type(event).__name__
            if kind == "MappingStartEvent":
                return self.build_mapping("", 0), self._lines
            if kind in {"ScalarEvent", "SequenceStartEvent"}:
                raise YamlError("yaml-not-a-mapping", "the frontmatter is not a mapping", event.start_mark.line)
        raise YamlRefusedError("empty-frontmatter", "the frontmatter is empty", 0)

    def build_any(self) -> Value:
        """Return the value of the document, of whatever kind; ``""`` when it is empty."""
        for event in self._events:
            if type(event).__name__ in {"MappingStartEvent", "SequenceStartEvent", "ScalarEvent"}:
                return self.build_value(event, "", 0)
        return ""

    def build_value(self, event: Any, prefix: str, level: int) -> Value:
        """Return the value that begins with ``event``; ``prefix`` is written before its keys where lines are kept."""
        kind = type(event).__name__
        if kind == "MappingStartEvent":
            return self.build_mapping(prefix, level)
        if kind == "SequenceStartEvent":
            return self._build_sequence(level)
        text: str = event.value
        return text

    def _build_sequence(self, level: int) -> list[Value]:
        items: list[Value] = []
        for event in self._events:
            if type(event).__name__ == "SequenceEndEvent":
                break
            items.append(self.build_value(event, "", level + 1))
        return items

    def build_mapping(self, prefix: str, level: int) -> dict[str, Value]:
        """Return the mapping whose first event was taken, up to its last."""
        items: dict[str, Value] = {}
        for event in self._events:
            if type(event).__name__ == "MappingEndEvent":
                break
            key = self._read_key(event, items)
            path = f"{prefix}{key}"
            if level < 2 and (prefix or not level):  # noqa: PLR2004 - metadata.key is as deep as findings point
                self._lines[path] = event.start_mark.line
            items[key] = self.build_value(next(self._events), f"{path}.", level + 1)
        return items

    def _read_key(self, event: Any, items: dict[str, Value]) -> str:
        line = event.start_mark.line
        if type(event).__name__ != "ScalarEvent":
            raise YamlError("yaml-complex-key", "a key must be text", line)
        key: str = event.value
        if key == "<<" and not event.style:
            raise YamlRefusedError("yaml-merge-key", "YAML merge keys are not allowed", line)
        if key in items:
            raise YamlRefusedError("yaml-duplicate-key", f"duplicate key {key[:80]!r}", line)
        return key


class _StyledBuilder(_ValueBuilder):
    """Builds a ``PlainScalar`` of each scalar that had no quotes."""

    def build_value(self, event: Any, prefix: str, level: int) -> Value:
        value = super().build_value(event, prefix, level)
        if not isinstance(value, str) or event.style:
            return value
        return PlainScalar.at(value, event.start_mark.line, event.start_mark.column)


class _BlockBuilder(_ValueBuilder):
    """Refuses mappings that are values of one mapping and begin in different columns."""

    def __init__(self, events: list[Any]) -> None:
        super().__init__(events)
        self._columns: list[int | None] = []

    def build_mapping(self, prefix: str, level: int) -> dict[str, Value]:
        self._columns.append(None)
        items = super().build_mapping(prefix, level)
        self._columns.pop()
        return items

    def build_value(self, event: Any, prefix: str, level: int) -> Value:
        if prefix and type(event).__name__ == "MappingStartEvent":  # only an entry of a list has no prefix
            column = event.start_mark.column
            if self._columns[-1] not in {None, column}:
                message = "mappings side by side are indented differently"
                raise YamlRefusedError("yaml-indentation", message, event.start_mark.line)
            self._columns[-1] = column
        return super().build_value(event, prefix, level)
