"""Files in parts: text in ranges that give the whole again, binary files as data."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import prowess

Put = Callable[..., Path]
Talk = Callable[..., prowess.Session]

NOTE = "\n[lines "


def shown(result: prowess.ToolResult) -> str:
    """The text of a range without the note that says how to go on."""
    data = result.data
    more = data["offset"] + data["lines"] < data["total_lines"]
    return result.content.rpartition(NOTE)[0] if more else result.content


def whole(toolset: prowess.Toolset, path: str, limit: int | None) -> str | None:
    """A file read range after range, as the notes say; ``None`` when a range is refused."""
    parts: list[str] = []
    offset = 0
    while True:
        sent = {"name": "pdf", "path": path, "offset": offset}
        result = toolset.call("read_skill_file", sent if limit is None else {**sent, "limit": limit})
        if result.is_error:
            return None
        parts.append(shown(result))
        assert result.data["offset"] == offset
        offset += result.data["lines"]
        if offset >= result.data["total_lines"]:
            return "".join(parts)
        assert result.data["lines"] > 0, "a range goes on"
        assert f"offset={offset}" in result.content


lines = st.text(alphabet="ab \u00e9\u4e2d\U0001f600\t\u2028\u0085\f[]=", max_size=12)
texts = st.lists(st.tuples(lines, st.sampled_from(["\n", "\r\n", "\n\n", "\r", ""]))).map(
    lambda rows: "".join(line + end for line, end in rows)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=texts, limit=st.none() | st.integers(1, 7), most=st.integers(1, 200))
def test_ranges_after_each_other_are_the_whole_file(
    text: str, limit: int | None, most: int, put: Put, talk: Talk
) -> None:
    """Byte for byte; where a line alone is beyond the bound, it is refused aloud rather than cut."""
    put("pdf", files={"notes.md": text})
    toolset = prowess.Toolset(talk(), max_bytes=most)
    assert whole(toolset, "notes.md", limit) in {text, None}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=texts, limit=st.none() | st.integers(1, 7))
def test_ranges_below_the_bound_are_never_refused(text: str, limit: int | None, put: Put, talk: Talk) -> None:
    put("pdf", files={"notes.md": text})
    assert whole(prowess.Toolset(talk()), "notes.md", limit) == text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=texts, most=st.integers(1, 60))
def test_no_range_has_more_bytes_than_the_bound(text: str, most: int, put: Put, talk: Talk) -> None:
    put("pdf", files={"notes.md": text})
    result = prowess.Toolset(talk(), max_bytes=most).call("read_skill_file", {"name": "pdf", "path": "notes.md"})
    assert result.is_error or len(shown(result).encode()) <= most


@pytest.mark.parametrize("text", ["x" * 70_000, "\u00fc" * 40_000, "a\n" + "x" * 70_000])
def test_a_line_beyond_the_bound_is_not_lost_in_silence(text: str, put: Put, talk: Talk) -> None:
    """Such as JSON on one line: either every part of it can be had, or an error says why not."""
    put("pdf", files={"data.json": text})
    had = whole(prowess.Toolset(talk()), "data.json", None)
    assert had is None or len(had) == len(text)


def test_a_large_file_is_read_in_parts(put: Put, talk: Talk) -> None:
    """Each within the bound, and the note says where to go on."""
    text = "".join(f"line {number}: Gr\u00fc\u00dfe und so weiter\n" for number in range(5_000))
    put("pdf", files={"notes.md": text})
    toolset = prowess.Toolset(talk())
    first = toolset.call("read_skill_file", {"name": "pdf", "path": "notes.md"})
    assert len(first.content.encode()) <= 65_536 + 200
    assert (first.data["offset"], first.data["total_lines"]) == (0, 5_000)
    assert whole(toolset, "notes.md", None) == text


def test_offset_and_limit_choose_lines(put: Put, talk: Talk) -> None:
    put("pdf", files={"notes.md": "zero\none\ntwo\nthree\n"})
    toolset = prowess.Toolset(talk())
    result = toolset.call("read_skill_file", {"name": "pdf", "path": "notes.md", "offset": 1, "limit": 2})
    assert shown(result) == "one\ntwo\n"
    assert "offset=3" in result.content
    last = toolset.call("read_skill_file", {"name": "pdf", "path": "notes.md", "offset": 3, "limit": 9})
    assert last.content == "three\n"


def test_a_whole_file_has_no_note(put: Put, talk: Talk) -> None:
    for name, text in {"empty.md": "", "one.md": "one", "two.md": "one\ntwo\n"}.items():
        put("pdf", files={name: text})
        result = prowess.Toolset(talk()).call("read_skill_file", {"name": "pdf", "path": name})
        assert (result.is_error, result.content) == (False, text)


@pytest.mark.parametrize("offset", [4, 5, 10**30])
def test_beyond_the_end_there_is_nothing(offset: int, put: Put, talk: Talk) -> None:
    """And the data say how many lines there are."""
    put("pdf", files={"notes.md": "zero\none\ntwo\nthree\n"})
    sent = {"name": "pdf", "path": "notes.md", "offset": offset, "limit": 10**30}
    result = prowess.Toolset(talk()).call("read_skill_file", sent)
    assert "zero" not in result.content
    assert "three" not in result.content
    assert result.is_error or result.data["total_lines"] == 4


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0", b"\xff\xfe\x80", bytes(range(256)) * 20])
def test_a_binary_file_is_data(content: bytes, put: Put, talk: Talk) -> None:
    """The model is told that there is one, the host has its bytes."""
    put("pdf", files={"assets/logo.png": content})
    result = prowess.Toolset(talk()).call("read_skill_file", {"name": "pdf", "path": "assets/logo.png"})
    assert not result.is_error
    assert "assets/logo.png" in result.content
    assert str(len(content)) in result.content
    assert (result.data["type"], result.data["size"]) == ("binary", len(content))
    assert base64.b64decode(result.data["base64"], validate=True) == content


def test_a_binary_file_beyond_the_bound_is_refused(put: Put, talk: Talk) -> None:
    put("pdf", files={"assets/logo.png": bytes(2_000)})
    toolset = prowess.Toolset(talk(), max_bytes=1_000)
    result = toolset.call("read_skill_file", {"name": "pdf", "path": "assets/logo.png"})
    assert (result.is_error, result.data["reason"]) == (True, "too-large")
    assert "base64" not in result.data


def test_a_file_beyond_every_bound_is_refused(put: Put, talk: Talk) -> None:
    """Ten megabytes are the most that is looked at, text or not."""
    folder = put("pdf")
    for name, first in (("text.md", b"x"), ("data.bin", b"\0")):
        with (folder / name).open("wb") as file:
            file.write(first)
            file.truncate(10 * 1024 * 1024 + 1)
        result = prowess.Toolset(talk()).call("read_skill_file", {"name": "pdf", "path": name})
        assert (result.is_error, result.data["reason"]) == (True, "too-large")
