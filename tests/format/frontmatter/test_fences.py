"""Where the dashes are, to the byte."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prowess.errors import InvalidFrontmatterError, NoFrontmatterError, UnterminatedFrontmatterError
from prowess.format.frontmatter.fences import Fences, decode_frontmatter, find_fences

LINES = st.lists(
    st.sampled_from([b"---", b"--- ", b"---\t", b"----", b" ---", b"---x", b"a: b", b"", b"  ", b"\xef\xbb\xbf---"]),
    max_size=8,
)


def slow_locate(head: bytes) -> tuple[int, int, int] | str:
    """The fences by a plain walk over lines: what ``find_fences`` must find in a whole file."""
    at = 3 if head.startswith(b"\xef\xbb\xbf") else 0
    rows: list[tuple[int, bytes, int]] = []
    while at < len(head):
        end = head.find(b"\n", at) + 1 or len(head)
        rows.append((at, head[at:end], end))
        at = end
    opened = -1
    for begin, row, end in rows:
        is_fence = re.fullmatch(rb"---[ \t]*", row.removesuffix(b"\n").removesuffix(b"\r")) is not None
        if opened < 0 and not is_fence:
            if row.endswith(b"\n") and not row.strip(b" \t\r\n"):
                continue
            return "none"
        if is_fence and opened >= 0:
            return opened, begin, end
        opened = end if is_fence else opened
    return "open" if opened >= 0 else "none"


@given(LINES, st.sampled_from([b"\n", b"\r\n"]), st.booleans())
def test_the_fences_are_where_a_walk_over_the_lines_finds_them(rows: list[bytes], end: bytes, ended: bool) -> None:
    head = end.join(rows) + (end if ended else b"")
    try:
        found = find_fences(head, whole=True)
    except NoFrontmatterError:
        assert slow_locate(head) == "none"
    except UnterminatedFrontmatterError:
        assert slow_locate(head) == "open"
    else:
        assert found is not None
        assert found[:3] == slow_locate(head)


@given(LINES, st.sampled_from([b"\n", b"\r\n"]), st.integers(0, 60))
@example([b"\xef\xbb\xbf---", b"a: b", b"---"], b"\n", 1)
@example([b"\xef\xbb\xbf---", b"a: b", b"---"], b"\n", 2)
@example([b"---", b"a: b", b"---"], b"\n", 4)
@example([b"---", b"a: b", b"---"], b"\r\n", 4)
@example([b"---", b"a: b", b"---"], b"\r\n", 5)
def test_no_verdict_on_a_part_is_overturned_by_the_whole(rows: list[bytes], end: bytes, cut: int) -> None:
    head = end.join(rows) + end
    try:
        found = find_fences(head[:cut], whole=False)
    except NoFrontmatterError:
        assert slow_locate(head) == "none"
        return
    assert found is None or found[:3] == slow_locate(head)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"---\na: b\n---\nbody", Fences(4, 9, 13, 2)),
        (b"---\r\na: b\r\n---\r\nbody", Fences(5, 11, 16, 2)),
        (b"\xef\xbb\xbf---\na: b\n---\n", Fences(7, 12, 16, 2)),
        (b"\n \t\n---  \na: b\n---\t\nbody", Fences(10, 15, 20, 4)),
        (b"---\na: b\n---", Fences(4, 9, 12, 2)),
        (b"---\n---\n", Fences(4, 4, 8, 2)),
        (b"---\na: |\n  x\n---\n  y\n---\n", Fences(4, 13, 17, 2)),
    ],
)
def test_positions_count_bytes_and_lines_count_from_one(head: bytes, expected: Fences) -> None:
    assert find_fences(head, whole=True) == expected


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"----\n", "more than three dashes"),
        (b"--- #x\n", "text after the opening dashes"),
        (b"---name: a\n", "text after the opening dashes"),
        (b" ---\n", "indented"),
        (b"\t---\n", "indented"),
        (b"Title\n---\n", "first line is not '---'"),
    ],
)
def test_each_way_of_not_opening_is_named(head: bytes, why: str) -> None:
    with pytest.raises(NoFrontmatterError, match=why):
        find_fences(head, whole=True)


def test_text_is_decoded_with_lf_line_ends() -> None:
    head = "---\r\na: é\r\nb: c\r\n---\r\n".encode()
    fences = find_fences(head, whole=True)
    assert fences is not None
    assert decode_frontmatter(head, fences) == "a: é\nb: c\n"


@pytest.mark.parametrize("point", [0x00, 0x08, 0x0B, 0x0C, 0x1F, 0x7F, 0x80, 0x84, 0x86, 0x9F, 0xFFFE, 0xFFFF])
def test_control_characters_are_refused_wherever_they_stand(point: int) -> None:
    head = f"---\na: b\nc: {chr(point)}\n---\n".encode()
    fences = find_fences(head, whole=True)
    assert fences is not None
    with pytest.raises(InvalidFrontmatterError) as caught:
        decode_frontmatter(head, fences)
    (issue,) = caught.value.issues
    assert (issue.code, issue.line) == ("control-character", 3)
    assert issue.message == f"control character U+{point:04X} at byte 12"


@pytest.mark.parametrize("point", [0x09, 0x85, 0xA0, 0x2028, 0x200B, 0xE000, 0x1F600, 0x10FFFF])
def test_characters_that_other_rules_judge_are_let_through(point: int) -> None:
    head = f"---\na: {chr(point)}\n---\n".encode()
    fences = find_fences(head, whole=True)
    assert fences is not None
    assert decode_frontmatter(head, fences) == f"a: {chr(point)}\n"
