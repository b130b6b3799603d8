"""Hostile beginnings of a SKILL.md: frontmatter that never ends, is not text, or is missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import prowess

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from tests.hostile.conftest import Children
    from tests.hostile.invariants import Library, Mode

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
GENEROUS = 2.0  # seconds; what is measured takes milliseconds on an idle machine
MOST_READ = 64 * KIB + 4 * KIB + 1  # the first page is read again when more is needed


def sparse(path: Path, size: int) -> None:
    """Let a file end ``size`` bytes from its start without writing them."""
    with path.open("r+b") as file:
        file.truncate(size)


# -- endless files -----------------------------------------------------------------------------------------------------

SCAN = "result = [[i.code, i.message] for i in library.scan().issues]"
TWIN = "naive.skill(library.evil / 'SKILL.md')"


def test_frontmatter_that_never_closes_is_refused_after_the_head(library: Library, child: Children) -> None:
    """Case 18: five gibibytes without a closing line cost as much as 64 KiB."""
    path = library.write("---\nname: evil\n")
    sparse(path, 5 * GIB)
    outcome = child.answer(SCAN, library, memory=64)
    assert [code for code, _ in outcome.result] == ["frontmatter-too-large"]
    assert outcome.read[str(path)] <= MOST_READ
    assert outcome.grown < 8 * MIB
    assert outcome.busy < GENEROUS


@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_every_reader_of_a_head_stops_at_the_limit(library: Library, child: Children, mode: Mode) -> None:
    """Case 18: this holds for a file by its path, for a stream and for validation."""
    path = library.write("---\nname: evil\n")
    sparse(path, 5 * GIB)
    outcome = child.answer(
        """
path, mode = library.evil / "SKILL.md", args[0]
with path.open("rb", buffering=0) as stream:
    result = [library.assert_refused(lambda: prowess.parse_frontmatter(stream)).code]
    class Pipe:
        total = 0
        def read(self, size):
            self.total += size
            return stream.read(size)
    pipe = Pipe()
    result += [library.assert_refused(lambda: prowess.parse_frontmatter(pipe)).code, 0 < pipe.total <= 65537]
result += [library.assert_refused(lambda: prowess.read_metadata(path, mode=mode)).code]
result += [library.assert_refused(lambda: prowess.parse_skill_file(path, mode=mode)).code]
result += [i.code for i in prowess.validate(path)]
""",
        library,
        mode,
        memory=64,
    )
    refusals = ["frontmatter-too-large", "frontmatter-too-large", True, "frontmatter-too-large"]
    assert outcome.result == [*refusals, "frontmatter-too-large", "frontmatter-too-large"]
    assert outcome.read[str(path)] <= 4 * MOST_READ
    assert outcome.grown < 8 * MIB
    assert outcome.busy < GENEROUS


def test_an_endless_body_is_listed_and_not_loaded(library: Library, child: Children) -> None:
    """Case 19: five gibibytes of body are listed by their head; loading states that they are too many."""
    path = library.write("---\nname: evil\ndescription: d\n---\nBody.\n")
    sparse(path, 5 * GIB)
    outcome = child.answer(
        """
catalog = library.scan()
read = dict(meter.read)
codes = [library.assert_refused(call).code for call in (
    lambda: catalog.load("evil"), lambda: catalog.load_body("evil"), lambda: catalog["evil"].read_body(strip=True))]
result = [list(catalog.names), codes, read, library.assert_refused(lambda: catalog.load("evil")).message]
""",
        library,
        memory=64,
    )
    names, codes, read, message = outcome.result
    assert names == ["evil", "good"]
    assert codes == ["body-too-large"] * 3
    assert read[str(path)] <= MOST_READ
    assert str(MIB) in message
    assert outcome.grown < 8 * MIB
    assert outcome.busy < GENEROUS


@pytest.mark.parametrize("text", ["---\nname: evil\n", "---\nname: evil\ndescription: d\n---\nBody.\n"])
def test_the_twin_runs_out_of_memory_on_an_endless_file(library: Library, child: Children, text: str) -> None:
    """Twin of cases 18, 19: it reads the whole file."""
    sparse(library.write(text), 5 * GIB)
    assert child(TWIN, library, memory=256).raised == "MemoryError"


NEWLINES = "---" + "\n" * 100_000 + "x"


def test_a_hundred_thousand_line_ends_do_not_make_a_pattern_backtrack(library: Library, child: Children) -> None:
    """Case 20: dashes and line ends without end are refused in the time that it takes to look at them."""
    library.write(NEWLINES)
    outcome = child.answer(
        """
library.assert_rejected("frontmatter-too-large")
text = (library.evil / "SKILL.md").read_text()
for mode in ("strict", "lenient"):
    for before in ("", "\\n", " \\n", "\\r", "<!--\\n", "```\\n-", "---\\n", "--- ", "a: \\n", "'"):
        library.assert_refused(lambda: prowess.parse_skill(before * 30_000 + text, mode=mode))
""",
        library,
    )
    assert outcome.busy < GENEROUS


def test_the_twin_backtracks(library: Library, child: Children) -> None:
    """Twin of case 20: two quantifiers side by side try every way to share the line ends."""
    library.write(NEWLINES)
    assert child(TWIN, library, kill_after=GENEROUS).killed


# -- bytes that are not text -------------------------------------------------------------------------------------------

VALID = b"---\nname: evil\ndescription: d\n---\nBody.\n"


@pytest.mark.parametrize(
    ("data", "at", "line"),
    [
        pytest.param(b"---\nname: evil\ndescription: a\0b\n---\nBody.\n", 29, 3, id="in a value"),
        pytest.param(b"---\nname: evil\ndescription: d\nk\0: v\n---\nBody.\n", 31, 4, id="in a key"),
        pytest.param(b"\0" + VALID, 0, 1, id="before the dashes"),
        pytest.param(b"\n\n\0" + VALID, 2, 3, id="after blank lines"),
        pytest.param(b"\0" * MIB, 0, 1, id="nothing else"),
    ],
)
def test_a_nul_is_refused_with_its_place(library: Library, data: bytes, at: int, line: int) -> None:
    """Case 22: NUL in a value, in a key, before the dashes, or a mebibyte of nothing else."""
    library.write(data)
    issue = library.assert_rejected("control-character")
    assert f"U+0000 at byte {at}" in issue.message
    assert issue.line == line


def test_the_twin_knows_no_byte_for_a_nul(library: Library, naive: ModuleType) -> None:
    """Twin of case 22: the parser's own error, or no frontmatter at all, and the good skill is gone with it."""
    library.write(b"---\nname: evil\ndescription: a\0b\n---\nBody.\n")
    with pytest.raises(naive.yaml.YAMLError):
        naive.scan(library.root)
    library.write(b"\0" + VALID)
    with pytest.raises(ValueError, match="no frontmatter"):
        naive.scan(library.root)


NOT_UTF8 = [
    pytest.param(b"\xff\xfe\x80", id="stray bytes"),
    pytest.param(b"\xc0\xaf", id="overlong"),
    pytest.param(b"\xed\xa0\x80", id="surrogate"),
    pytest.param(b"\xf4\x90\x80\x80", id="beyond Unicode"),
    pytest.param(b"\xe2\x82", id="cut short"),
]


@pytest.mark.parametrize("bad", NOT_UTF8)
def test_bytes_that_are_not_utf8_in_the_frontmatter_are_refused_with_their_place(library: Library, bad: bytes) -> None:
    """Case 23: stray bytes, overlong forms and encoded surrogates between the dashes."""
    library.write(b"---\nname: evil\ndescription: ab" + bad + b"\n---\nBody.\n")
    issue = library.assert_rejected("not-utf8")
    assert "at byte 30" in issue.message
    assert issue.line == 3


@pytest.mark.parametrize("bad", NOT_UTF8)
def test_bytes_that_are_not_utf8_in_the_body_are_refused_when_it_is_loaded(library: Library, bad: bytes) -> None:
    """Case 23: the skill is listed by its head; loading says where the body stops being text."""
    library.write(VALID + bad + b"\n")
    catalog = library.scan()
    assert "evil" in catalog
    for call in (lambda: catalog.load("evil"), lambda: catalog.load_body("evil")):
        assert f"at byte {len(VALID)}" in library.assert_refused(call, "body-not-text").message


def test_the_twin_loses_the_good_skill_to_a_bad_byte(library: Library, naive: ModuleType) -> None:
    """Twin of case 23: a bare UnicodeDecodeError ends the whole scan."""
    library.write(VALID + b"\xff\n")
    with pytest.raises(UnicodeDecodeError):
        naive.scan(library.root)


def test_a_byte_order_mark_and_crlf_are_accepted(library: Library) -> None:
    """Case 24: the mark is skipped, offsets and body stay byte-exact, models get plain line ends."""
    data = b"\xef\xbb\xbf" + VALID.replace(b"\n", b"\r\n") + b"More.\r\n"
    library.write(data)
    for mode in ("strict", "lenient"):
        skill = library.scan(mode=mode)["evil"]
        assert (skill.name, skill.description) == ("evil", "d")
        assert data[skill.body_offset :] == b"Body.\r\nMore.\r\n"
        assert skill.read_body() == "Body.\r\nMore.\r\n"
        assert skill.load().instructions == "Body.\nMore."


def test_the_twin_refuses_a_byte_order_mark(library: Library, naive: ModuleType) -> None:
    """Twin of case 24: the mark stands before the dashes, so there is no frontmatter."""
    library.write(b"\xef\xbb\xbf" + VALID.replace(b"\n", b"\r\n"))
    with pytest.raises(ValueError, match="no frontmatter"):
        naive.skill(library.evil / "SKILL.md")


ENCODED = [
    pytest.param("utf-16-le", b"\xff\xfe", "UTF-16", id="UTF-16LE"),
    pytest.param("utf-16-be", b"\xfe\xff", "UTF-16", id="UTF-16BE"),
    pytest.param("utf-32-le", b"\xff\xfe\0\0", "UTF-32", id="UTF-32LE"),
    pytest.param("utf-32-be", b"\0\0\xfe\xff", "UTF-32", id="UTF-32BE"),
]


@pytest.mark.parametrize(("encoding", "mark", "named"), ENCODED)
def test_another_encoding_is_refused_by_its_name(library: Library, encoding: str, mark: bytes, named: str) -> None:
    """Case 25: UTF-16 and UTF-32 in either byte order, recognised by their mark."""
    library.write(mark + VALID.decode().encode(encoding))
    assert f"looks like {named}" in library.assert_rejected("not-utf8").message


def test_latin_1_is_refused_with_its_place(library: Library) -> None:
    """Case 25: a byte that is a letter elsewhere is not UTF-8."""
    library.write("---\nname: evil\ndescription: café\n---\nBody.\n".encode("latin-1"))
    assert "0xE9 at byte 31" in library.assert_rejected("not-utf8").message


def test_the_twin_reads_no_other_encoding(library: Library, naive: ModuleType) -> None:
    """Twin of case 25: a bare UnicodeDecodeError that names no file."""
    library.write(b"\xff\xfe" + VALID.decode().encode("utf-16-le"))
    with pytest.raises(UnicodeDecodeError):
        naive.scan(library.root)


HALF = [
    pytest.param(r'description: "a\ud800b"', id="description"),
    pytest.param(r'description: "a\uDFFFb"', id="the other half"),
    pytest.param(r'description: "a\U0000d800b"', id="long escape"),
    pytest.param('description: d\nmetadata:\n  k: "\\ud800"', id="metadata"),
    pytest.param('description: d\nx: ["\\ud800"]', id="list"),
]


@pytest.mark.parametrize("row", HALF)
def test_half_a_character_never_leaves_the_parser(library: Library, row: str) -> None:
    """Case 26: an escape that makes a lone surrogate must not reach JSON, the screen or a database."""
    path = library.write(f"---\nname: evil\n{row}\n---\nBody.\n")
    library.assert_refused(lambda: prowess.parse_skill_file(path, mode="strict"))
    library.scan(repair=False)
    assert "evil" not in prowess.scan(library.root, repair=False)
    for skill in library.scan():
        json.dumps([skill.to_dict(), str(skill.frontmatter)], ensure_ascii=False).encode()
        prowess.render_catalog([skill]).encode()


def test_half_a_character_in_a_description_is_rejected_in_both_modes(library: Library) -> None:
    """Case 26: the description is refused, not fixed."""
    library.write('---\nname: evil\ndescription: "a\\ud800b"\n---\nBody.\n')
    library.assert_rejected("yaml-surrogate", "yaml-syntax")


def test_the_twin_hands_out_half_a_character(naive: ModuleType) -> None:
    """Twin of case 26: the value cannot be written anywhere."""
    values = naive.frontmatter('---\nname: evil\ndescription: "a\\ud800b"\n---\n')
    with pytest.raises(UnicodeEncodeError):
        values["description"].encode()


# -- no frontmatter ----------------------------------------------------------------------------------------------------

NONE = {
    "no frontmatter": ("# Title\n\nText.\n", "no-frontmatter", 1),
    "empty file": ("", "no-frontmatter", 1),
    "nothing between": ("---\n---\n", "empty-frontmatter", 2),
    "only an opening line": ("---", "unterminated-frontmatter", 1),
    "four dashes": ("----\nname: evil\ndescription: d\n----\n", "no-frontmatter", 1),
    "indented dashes": (" ---\nname: evil\ndescription: d\n---\n", "no-frontmatter", 1),
    "a comment after the dashes": ("--- #x\nname: evil\ndescription: d\n---\n", "no-frontmatter", 1),
    "no mapping": ("---\njust text\n---\n", "yaml-not-a-mapping", 2),
}


@pytest.mark.parametrize("kind", NONE)
def test_what_is_not_frontmatter_is_rejected_with_its_line(library: Library, kind: str) -> None:
    """Case 28: nothing, nothing between the dashes, dashes that are too many, indented or followed by text."""
    text, code, line = NONE[kind]
    library.write(text)
    assert library.assert_rejected(code, "yaml-syntax").line == line


def test_tabs_as_indentation_are_rejected_in_strict_mode(library: Library) -> None:
    """Case 28: tab-indented YAML has a line; lenient mode either fixes it with an issue or leaves it out."""
    path = library.write("---\nname: evil\nmetadata:\n\tk: v\ndescription: d\n---\nBody.\n")
    assert library.assert_rejected("yaml-syntax", mode="strict").line == 4
    assert [i.line for i in library.scan(repair=False).issues if i.severity == "error"] == [4]
    assert [i.code for i in library.scan().issues if i.path == str(path)]


def test_each_way_of_having_no_frontmatter_has_its_own_message(library: Library) -> None:
    """Case 28: nobody has to guess which of them it was."""
    texts = [text for text, _, _ in NONE.values()] + ["---\nname: evil\nmetadata:\n\tk: v\n---\n"]
    messages = []
    for text in texts:
        library.write(text)
        messages.append(library.assert_refused(lambda: prowess.read_metadata(library.evil)).message)
    assert len(set(messages)) == len(texts)


def test_the_twin_has_one_bare_error_for_all_of_them(naive: ModuleType) -> None:
    """Twin of case 28: no line, no file, one message; and indented or empty frontmatter passes for none."""
    messages = set()
    for text in ("# Title\n", "", "---", "----\na: b\n----\n", "--- #x\na: b\n---\n"):
        with pytest.raises(ValueError, match="no frontmatter") as raised:
            naive.frontmatter(text)
        messages.add(str(raised.value))
    assert len(messages) == 1
