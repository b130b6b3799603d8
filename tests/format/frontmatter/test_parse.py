"""A stream is read up to its body and no further, and nothing but a typed error comes of bad bytes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prowess.errors import (
    InvalidFrontmatterError,
    NoFrontmatterError,
    SkillLoadError,
    UnterminatedFrontmatterError,
)
from prowess.format.frontmatter.parse import needs_more_bytes, parse_frontmatter, parse_head
from prowess.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from prowess.format.frontmatter.fields import Frontmatter

MOST = 64 * 1024 + 1


# -- streams that count ------------------------------------------------------------------------------------------------


class Seekable(io.BytesIO):
    """Gives at most ``step`` bytes at a time, and counts them."""

    def __init__(self, data: bytes, step: int) -> None:
        super().__init__(data)
        self.step = step
        self.taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        part = super().read(self.step if size is None or size < 0 else min(size, self.step))
        self.taken += len(part)
        return part


class Raw(io.RawIOBase):
    """A raw stream that cannot seek, as a pipe is; ``readline`` is the standard library's."""

    def __init__(self, data: bytes, step: int) -> None:
        self._data = io.BytesIO(data)
        self.step = step
        self.taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]  # all that callers pass
        part = self._data.read(min(len(buffer), self.step))
        buffer[: len(part)] = part
        self.taken += len(part)
        return len(part)


class OnlyReads:
    """Nothing but ``read``."""

    def __init__(self, data: bytes, step: int) -> None:
        self._data = io.BytesIO(data)
        self.step = step
        self.taken = 0

    def read(self, size: int = -1, /) -> bytes:
        part = self._data.read(self.step if size < 0 else min(size, self.step))
        self.taken += len(part)
        return part


class Piped(OnlyReads):
    """``read`` and ``readline``, and a ``seek`` that is not to be used."""

    def readline(self, size: int = -1, /) -> bytes:
        line = self._data.readline(size)
        self.taken += len(line)
        return line

    def seekable(self) -> bool:
        return False

    def seek(self, _to: int) -> int:
        raise io.UnsupportedOperation("seek")


Stream = Seekable | Raw | OnlyReads
KINDS: list[Callable[[bytes, int], Stream]] = [Seekable, Raw, OnlyReads, Piped]


# Which of these is said about a first line that is not an opener depends on how much of it a stream has given so far.
NO_OPENER = frozenset(("no-frontmatter", "not-utf8", "control-character"))


class Outcome(NamedTuple):
    front: Frontmatter | None
    offset: int
    codes: AbstractSet[str] = frozenset()


def outcome(stream: Stream) -> Outcome:
    try:
        front, offset = parse_frontmatter(stream)
    except SkillLoadError as error:
        return Outcome(None, error.offset, {"no opener" if i.code in NO_OPENER else i.code for i in error.issues})
    return Outcome(front, offset)


def rest_of(stream: Stream) -> bytes:
    rest = b""
    while part := stream.read(4096):
        rest += part
    return rest


def check_every_stream(data: bytes, step: int) -> Outcome:
    """The outcome for ``data``, the same on every kind of stream, each left where it must be."""
    expected = outcome(Seekable(data, 1 << 20))
    for kind in KINDS:
        stream = kind(data, step)
        assert outcome(stream) == expected, (kind, step)
        assert stream.taken <= MOST, kind
        if expected.front is not None:
            assert rest_of(stream) == data[expected.offset :], (kind, step)
        elif isinstance(stream, Seekable):
            assert stream.tell() == 0
    return expected


# -- any bytes ---------------------------------------------------------------------------------------------------------

FRAGMENTS = [
    *(b"---", b"---\n", b"---\r\n", b"--- \n", b"----", b"--", b" ---\n", b"\n", b"\r\n", b"\r", b"\xef\xbb\xbf", b" "),
    *(b"name: a\n", b"description: b\n", b"description: b: c\n", b"key:\n  - x\n", b"a: [b, c]\n", b"a: {b: c}\n"),
    *(
        b"a: &x b\n",
        b"a: *x\n",
        b"a: !!str b\n",
        b"<<: *x\n",
        b"%YAML 1.1\n",
        b"? [a]\n: b\n",
        b"a: >\n  b\n",
        b"a: |2\n",
    ),
    *(b'a: "\\ud800"\n', b'a: "\\x', b"'", b'"', b"[" * 20, b"{" * 20, b"\t", b"# c\n", b"<!-- c -->\n", b"```\n"),
    *(
        b"\0",
        b"\xff",
        b"\xff\xfe",
        b"\xc2\x85",
        b"\xe2\x80\xa8",
        b"\xed\xa0\x80",
        b"\xc0\xaf",
        b"\x1b",
        b"\xf0\x9f\x98\x80",
    ),
    *("a: 漢\n".encode(), b"...\n", b"--- x\n", b"# Title\n", b"body", b"<<", b"a: b\na: c\n", b"-\0-\0-\0"),
]
BUILT = st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=4), max_size=12).map(b"".join)
INSIDE = BUILT.map(lambda data: b"---\n" + data + b"\n---\nbody\n")
STEPS = st.sampled_from([1, 2, 3, 4, 5, 7, 100, 4096, 1 << 20])


@given(st.binary(max_size=300) | BUILT | INSIDE, STEPS)
@example(b"", 1)
@example(b"\xef\xbb\xbf---\nname: a\n---\nbody", 1)
@example(b"---\nname: a\n---\nbody", 1)
@example(b"---\nname: a\n---\nbody", 4)
@example(b"---\n---\n", 1)
@example(b"\n\r\n  \n---\t\r\nname: a\r\n---\r\nbody", 3)
@example(b"\xff\xfe-\0-\0-\0\n\0", 1)
@example(b"---\n" + b"[" * 5000 + b"\n---\n", 4096)
def test_any_bytes_give_the_same_answer_or_typed_error_on_every_kind_of_stream(data: bytes, step: int) -> None:
    check_every_stream(data, step)


@given(st.binary(max_size=300) | BUILT | INSIDE, st.booleans(), st.booleans())
def test_no_bytes_raise_anything_but_a_typed_error_when_they_are_repaired_either(
    data: bytes, lenient: bool, repair: bool
) -> None:
    try:
        head = parse_head(data, lenient=lenient, repair=repair)
    except InvalidFrontmatterError as error:
        issues, severity = error.issues, "error"
    else:
        issues, severity = head.issues, "warning"
        assert 0 < head.body_offset <= len(data)
    assert issues or severity == "warning"
    assert all(issue.severity == severity and issue.line >= 1 and issue.hint for issue in issues)


@given(data=BUILT | INSIDE, cut=st.integers(0, 40), repair=st.booleans())
@example(data=b"---\n", cut=0, repair=False)
@example(data=b"\n" * 4092 + b"---\nname: a\n---\n", cut=12, repair=False)
@example(data=b"<!-- c -->\n\x00", cut=0, repair=True)
@example(data=b"<!-- c -->\n\x00\n", cut=1, repair=True)
@example(data=b"<!--\n---\nname: a\n---\n-->\nbody", cut=8, repair=True)
@example(data=b"<!--\n---\nname: a\n---\n\n-->\nbody", cut=5, repair=True)
@example(data=b"```\n---\nname: a\n---\n```\nbody", cut=6, repair=True)
@example(data=b"<!-- c -->\n---\nname: a\n---\nbody", cut=30, repair=True)
@example(data=b"\x0b~~~\n---\nname: a\n---\nbody", cut=23, repair=True)
@example(data=b"\x0b~~~\n---\nname: a\n---\nbody", cut=24, repair=True)
def test_a_head_that_needs_no_more_means_the_same_with_more_behind_it(data: bytes, cut: int, repair: bool) -> None:
    shorter = data[: max(0, len(data) - cut)]
    if needs_more_bytes(shorter, repair=repair):
        return
    assert _meaning(shorter, whole=False, repair=repair) == _meaning(data, whole=True, repair=repair)


def _meaning(head: bytes, *, whole: bool, repair: bool) -> object:
    try:
        found = parse_head(head, whole=whole, lenient=True, repair=repair)
    except InvalidFrontmatterError as error:
        return type(error), [(issue.code, issue.line) for issue in error.issues]
    return found.front, found.body_offset, found.issues


# -- where the stream is left ------------------------------------------------------------------------------------------

ENDS = st.sampled_from([b"\n", b"\r\n", b" \n", b"\t\r\n"])


@given(
    before=st.sampled_from([b"", b"\xef\xbb\xbf", b"\n", b"  \r\n\n", b"\xef\xbb\xbf\n"]),
    opener=ENDS,
    rows=st.lists(st.sampled_from([b"a: b", "b: 漢".encode(), b"c:", b"d: [e]", b" ---x: y", b""]), unique=True),
    closer=ENDS,
    body=st.binary(max_size=60),
    step=STEPS,
)
def test_the_stream_is_left_at_the_first_byte_of_the_body(
    *, before: bytes, opener: bytes, rows: list[bytes], closer: bytes, body: bytes, step: int
) -> None:
    end = b"\r\n" if b"\r" in opener else b"\n"
    head = before + b"---" + opener + b"z: z" + end + b"".join(row + end for row in rows) + b"---" + closer
    found = check_every_stream(head + body, step)
    if found.front is not None:
        assert found.offset == len(head)
    else:
        assert b" ---x: y" in rows, "everything else here is plain"


@pytest.mark.parametrize("kind", KINDS)
def test_a_closing_line_at_the_end_of_the_file_needs_no_line_end(kind: Callable[[bytes, int], Stream]) -> None:
    stream = kind(b"---\nname: a\n---", 5)
    front, offset = parse_frontmatter(stream)
    assert (front.name, offset, rest_of(stream)) == ("a", 15, b"")


def test_offsets_count_from_where_the_stream_stood() -> None:
    stream = io.BytesIO(b"before---\nname: a\n---\nbody")
    stream.seek(6)
    assert parse_frontmatter(stream)[1] == 16
    assert stream.read() == b"body"


def test_a_stream_that_is_refused_is_back_where_it_stood() -> None:
    stream = io.BytesIO(b"before---\nname: [\n---\nbody")
    stream.seek(6)
    with pytest.raises(InvalidFrontmatterError):
        parse_frontmatter(stream)
    assert stream.tell() == 6


# -- how far it is read ------------------------------------------------------------------------------------------------


def of_size(size: int) -> bytes:
    """Closed frontmatter of exactly ``size`` bytes, fences included."""
    rows = b"".join(b"k%05d: %s\n" % (n, b"v" * 91) for n in range(size // 100 - 1))
    fill = size - len(rows) - len(b"---\n") - len(b"x: \n---\n")
    return b"---\n" + rows + b"x: " + b"y" * fill + b"\n---\n"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "data",
    [
        b"---\n" + b"k: v\n" * 40_000,
        b"---\n" + b"\n" * 200_000,
        b"\n" * 200_000,
        b"---" + b" " * 200_000,
        b"-" * 200_000,
        b"---\nx: " + b"y" * 200_000,
        b"\0" * 200_000,
        b" " * 200_000,
    ],
    ids=["rows", "blank-rows", "blank", "opener", "dashes", "one-row", "zeros", "spaces"],
)
def test_no_more_than_64_kib_and_one_byte_is_ever_read(kind: Callable[[bytes, int], Stream], data: bytes) -> None:
    stream = kind(data, 1 << 20)
    with pytest.raises(InvalidFrontmatterError):
        parse_frontmatter(stream)
    assert stream.taken <= MOST


def test_a_seekable_stream_is_read_in_steps_of_4_kib() -> None:
    stream = Seekable(b"---\nname: a\n---\n" + b"x" * 100_000, 1 << 20)
    parse_frontmatter(stream)
    assert stream.taken == 4096
    stream = Seekable(of_size(5_000) + b"x" * 100_000, 1 << 20)
    parse_frontmatter(stream)
    assert stream.taken == 8192


@pytest.mark.parametrize("size", [65_000, 65_535, 65_536, 65_537, 70_000])
@pytest.mark.parametrize("body", [b"", b"body\n"])
def test_frontmatter_near_the_limit_is_judged_alike_on_every_kind_of_stream(size: int, body: bytes) -> None:
    found = check_every_stream(of_size(size) + body, 1 << 20)
    if size < 65_536:
        assert found.offset == size
    if size > 65_536:
        assert found.codes == {"frontmatter-too-large"}


def test_a_smaller_limit_is_kept() -> None:
    limits = Limits(head_step=16, max_frontmatter_bytes=64)
    stream = Seekable(b"---\nname: a\ndescription: " + b"b" * 100 + b"\n---\n", 1 << 20)
    with pytest.raises(InvalidFrontmatterError, match="longer than 64 bytes"):
        parse_frontmatter(stream, limits=limits)
    assert stream.taken <= 65


# -- which error -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "error", "code", "line"),
    [
        (b"", NoFrontmatterError, "no-frontmatter", 1),
        (b"\n\n", NoFrontmatterError, "no-frontmatter", 3),
        (b"# Title\n", NoFrontmatterError, "no-frontmatter", 1),
        (b"\n\n# Title\n", NoFrontmatterError, "no-frontmatter", 3),
        (b"----\nname: a\n---\n", NoFrontmatterError, "no-frontmatter", 1),
        (b" ---\nname: a\n---\n", NoFrontmatterError, "no-frontmatter", 1),
        (b"--- #x\nname: a\n---\n", NoFrontmatterError, "no-frontmatter", 1),
        (b"---", UnterminatedFrontmatterError, "unterminated-frontmatter", 1),
        (b"---\nname: a\n", UnterminatedFrontmatterError, "unterminated-frontmatter", 1),
        (b"---\nname: a\n ---\n", UnterminatedFrontmatterError, "unterminated-frontmatter", 1),
        (b"---\nname: a\n----\n", UnterminatedFrontmatterError, "unterminated-frontmatter", 1),
        (b"---\nname: a\n--- x\n", UnterminatedFrontmatterError, "unterminated-frontmatter", 1),
        (b"---\n---\n", InvalidFrontmatterError, "empty-frontmatter", 2),
        (b"---\n# only\n---\n", InvalidFrontmatterError, "empty-frontmatter", 2),
        (b"---\n- a\n---\n", InvalidFrontmatterError, "yaml-not-a-mapping", 2),
        (b"---\na: b\nc: d: e\n---\n", InvalidFrontmatterError, "yaml-syntax", 3),
        (b"---\na: b\n\tc: d\n---\n", InvalidFrontmatterError, "yaml-syntax", 3),
        (b"---\na: \xff\n---\n", InvalidFrontmatterError, "not-utf8", 2),
        (b"---\na: b\nc: \xed\xa0\x80\n---\n", InvalidFrontmatterError, "not-utf8", 3),
        (b"---\na: b\0\n---\n", InvalidFrontmatterError, "control-character", 2),
        (b"\0---\na: b\n---\n", InvalidFrontmatterError, "control-character", 1),
        (b"---\na: b\xc2\x85c\n---\n", InvalidFrontmatterError, "line-break", 2),
        (b"---\na: b\rc\n---\n", InvalidFrontmatterError, "line-break", 2),
    ],
)
def test_each_fault_has_its_own_error_code_and_line(
    data: bytes, error: type[SkillLoadError], code: str, line: int
) -> None:
    with pytest.raises(error) as caught:
        parse_frontmatter(io.BytesIO(data))
    assert type(caught.value) is error
    assert [(issue.code, issue.line) for issue in caught.value.issues] == [(code, line)]
    assert caught.value.offset == 0


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"---\na: b\nc: \xff\n---\n", "0xFF at byte 12"),
        ("---\né: ".encode() + b"\x80\n---\n", "0x80 at byte 8"),
        (b"\xef\xbb\xbf---\na: \xc0\xaf\n---\n", "0xC0 at byte 10"),
    ],
)
def test_bad_utf8_is_reported_with_its_byte(data: bytes, where: str) -> None:
    with pytest.raises(InvalidFrontmatterError, match=where):
        parse_frontmatter(io.BytesIO(data))


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"---\na: b\nc: \x00\n---\n", "U\\+0000 at byte 12"),
        ("---\né: ".encode() + b"\x1b\n---\n", "U\\+001B at byte 8"),
        ("---\na: \x9b\n---\n".encode(), "U\\+009B at byte 7"),
        (b"---\r\na: \x7f\r\n---\r\n", "U\\+007F at byte 8"),
    ],
)
def test_a_control_character_is_reported_with_its_byte(data: bytes, where: str) -> None:
    with pytest.raises(InvalidFrontmatterError, match=where):
        parse_frontmatter(io.BytesIO(data))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_named(encoding: str) -> None:
    text = "---\nname: a\ndescription: long enough to be recognised\n---\nbody\n"
    with pytest.raises(InvalidFrontmatterError, match=r"not UTF-8 .looks like UTF-(16|32)"):
        parse_frontmatter(io.BytesIO(text.encode(encoding)))


def test_parsing_does_not_validate_fields() -> None:
    front, _ = parse_frontmatter(io.BytesIO(b"---\nname: Not A Name!\nother: [x]\n---\n"))
    assert (front.name, front.description, front.extra) == ("Not A Name!", "", {"other": ["x"]})


@pytest.mark.parametrize("point", ["\r", "\x85", "\u2028", "\u2029"])
def test_odd_line_breaks_are_refused_or_in_lenient_mode_become_blanks(point: str) -> None:
    head = f"---\na: b\ndescription: one{point}two\n---\nbody".encode()
    with pytest.raises(InvalidFrontmatterError):
        parse_head(head)
    found = parse_head(head, lenient=True)
    assert found.front.description == "one two"
    assert [(issue.code, issue.line, issue.severity) for issue in found.issues] == [("line-break", 3, "warning")]
    assert head[found.body_offset :] == b"body"
