"""The quick readers of heads find what the parser finds, or nothing."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

import prowess
from bench.corpus import USABLE_BOUND, count_usable, head_of, outcome_of
from prowess.discovery.scan import find_skills
from prowess.discovery.walk import ScanRules
from prowess.errors import SkillError, SkillLoadError
from prowess.format.frontmatter.fences import decode_frontmatter, find_fences
from prowess.format.frontmatter.fields import build_frontmatter
from prowess.format.frontmatter.parse import parse_head
from prowess.format.frontmatter.quick.common_heads import MAX_CHARS, heads_before_compiling
from prowess.format.frontmatter.quick.faultless_heads import is_faultless
from prowess.format.frontmatter.yaml_events import YamlError, parse_yaml
from prowess.format.head import LoadPolicy, is_repair, read_head
from prowess.format.rules import field_issues, is_usable_name
from prowess.limits import DEFAULT_LIMITS
from prowess.skills.explanation import Place

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

deque(heads_before_compiling, maxlen=0)  # from now on the pattern of nested heads is used, as in a large library

SAMPLED_BOUND = 0.985
"""The share of usable heads below which no sample of 1,000 falls by chance."""

# -- what must hold ----------------------------------------------------------------------------------------------------


def agrees_with_parser(head: bytes) -> bool:
    """Return whether a quick reader knows ``head``; fails when the parser reads it differently."""
    seen = read_head(head, quick="only")
    if seen is None:
        return False
    parsed = read_head(head, quick=False, folder=seen.name)
    front = parsed.front
    assert (seen.name, seen.description, seen.body_offset) == (
        front.name,
        front.description.strip(),
        parsed.body_offset,
    ), head
    # Nothing was repaired, so that the bytes between the dashes are YAML that says the same.
    assert list(parsed.issues) == field_issues(front, mode="lenient", folder=seen.name), head
    values, lines = parse_yaml(seen.raw.decode())
    assert build_frontmatter(values, {key: line + 2 for key, line in lines.items()}, seen.raw) == front, head
    assert not is_faultless(seen.raw, seen.description) or parsed.issues == (), head
    assert seen.description, head
    assert head[seen.body_offset :].strip(), head
    return True


def in_fences(text: str) -> bytes:
    return f"---\n{text}---\nbody\n".encode("utf-8", "surrogatepass")


# -- a sample of heads, written in the shapes that occur ---------------------------------------------------------------

SAMPLE = Path(__file__).parent.parent.parent / "data" / "heads.txt"


def read_sample() -> list[tuple[str, str, bytes]]:
    """Return who reads each head of the sample, its shape, and the head."""
    _, *entries = SAMPLE.read_text(encoding="utf-8").split("\n=== ")
    sample = []
    for entry in entries:
        title, _, text = entry.partition("\n")
        reader, _, shape = title.partition(": ")
        sample.append((reader, shape, in_fences(text.removesuffix("\n") + "\n")))
    return sample


def find_reader(head: bytes) -> str:
    """Return who reads a head: a quick reader, the parser, the parser with a repair, or nobody."""
    if agrees_with_parser(head):
        return "quick"
    try:
        parsed = read_head(head, quick=False, folder="folder")
    except SkillLoadError:
        return "refused"
    return "repaired" if any(map(is_repair, parsed.issues)) else "parsed"


def test_the_sample_is_read_by_the_readers_that_it_names_and_they_agree() -> None:
    sample = read_sample()
    assert len(sample) > 200
    assert [(shape, find_reader(head)) for _, shape, head in sample] == [(shape, reader) for reader, shape, _ in sample]


def test_a_scan_finds_in_the_sample_what_the_parser_finds(tmp_path: Path) -> None:
    expected = []
    for number, (_, _, head) in enumerate(read_sample()):
        folder = tmp_path / f"folder-{number:03}"
        folder.mkdir()
        (folder / "SKILL.md").write_bytes(head)
        with suppress(SkillLoadError):
            parsed = read_head(head, quick=False, folder=folder.name, path=str(folder / "SKILL.md"))
            expected.append((parsed.front, parsed.front.lines, parsed.body_offset, parsed.issues))
    found = find_skills([Place(str(tmp_path))], ScanRules()).skills
    assert [
        (skill.frontmatter, skill.frontmatter.lines, skill.body_offset, skill.issues) for skill in found
    ] == expected


# -- real heads --------------------------------------------------------------------------------------------------------


def text_of(head: bytes) -> str | None:
    """The text between the dashes of ``head``, where there is one that the strict rules let through to YAML."""
    try:
        fences = find_fences(head, whole=True)
        text = decode_frontmatter(head, fences) if fences is not None else None
    except SkillError:
        return None
    return None if text is None or any(char in text for char in "\r\x85\u2028\u2029") else text


def is_accepted(text: str) -> bool:
    try:
        parse_yaml(text)
    except YamlError:
        return False
    return True


def test_on_real_heads_nearly_all_with_frontmatter_are_usable(real_rows: list[bytes], full: bool) -> None:
    rows, bound = (real_rows, USABLE_BOUND) if full else (real_rows[:1_000], SAMPLED_BOUND)
    usable, opening = count_usable([outcome_of(head_of(row)) for row in rows])
    assert opening > len(rows) * 0.9
    assert usable / opening >= bound


def test_on_real_heads_yaml_is_read_as_text_only(real_heads: list[bytes]) -> None:
    for head in real_heads:
        text = text_of(head)
        if text is not None and is_accepted(text):
            assert parse_yaml(text)[0] == yaml.load(text, Loader=yaml.CBaseLoader)  # noqa: S506 - builds text only


def test_on_real_heads_the_fast_matcher_and_the_parser_agree(real_heads: list[bytes]) -> None:
    seen = sum(agrees_with_parser(head) for head in real_heads)
    assert seen > len(real_heads) // 3


TIGHT = [replace(DEFAULT_LIMITS, **{name: bound}) for name, bound in (("max_yaml_depth", 3), ("max_scalar_chars", 200))]


@pytest.mark.parametrize("policy", [LoadPolicy("strict"), *(LoadPolicy(limits=limits) for limits in TIGHT)], ids=repr)
def test_no_quick_reader_is_asked_where_more_may_be_refused(policy: LoadPolicy) -> None:
    head = in_fences("name: kit\ndescription: Does it.\n")
    assert read_head(head, quick="only") is not None
    assert read_head(head, policy=policy, quick="only") is None
    assert read_head(head, policy=policy, folder="kit") == read_head(head, policy=policy, folder="kit", quick=False)


NOISE = [*":#-?'\"[]{},&*!|>%@`~\\ \t\n\r.<=", "  ", ": ", " #", "- ", "\n  ", "\n    ", "\n- ", "\n\n", "''", "---\n"]
NOISE += [*"\x00\x7f\x85\xa0\u2028\u2003\u3000\ufeff\ufffe\u200b\ud800", "é", "漢", "😀", "|", ">-", "a: b", "\n# c\n"]


def disturbed(text: str, rng: random.Random) -> str:
    """``text`` after a few typing errors."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        gone = rng.choice((0, 0, 1, 1, 2, 8))
        text = text[:at] + rng.choice(("", *NOISE)) + text[at + gone :]
    return text


def test_on_disturbed_real_heads_the_readers_still_agree(
    real_heads: list[bytes], rng: random.Random, full: bool
) -> None:
    rounds, seen = (8 if full else 1), 0
    for head in real_heads * rounds:
        text = text_of(head)
        if text is None:
            continue
        text = disturbed(text, rng).removesuffix("\n") + "\n"
        seen += agrees_with_parser(in_fences(text))
    assert seen > len(real_heads) // 20, "hardly anything was compared"


# -- generated text ----------------------------------------------------------------------------------------------------

KEYS = ["name", "description", "metadata", "tags", "a", "b", "key-1", "_x", "allowed-tools", "version"]
ODD_KEYS = [
    "A b",
    "1",
    "é",
    '"name"',
    "'a'",
    "<<",
    "a.b",
    "? a",
    "-",
    "key ",
    "漢",
    "~",
    "*a",
    "&a b",
    "!t a",
    "x" * 130,
]
WORDS = [
    "a",
    "word",
    "two words",
    "1.10",
    "yes",
    "null",
    "~",
    "x:y",
    "a#b",
    "don't",
    'say "hi"',
    "é",
    "漢字",
    "😀",
    "-x",
    "a -",
]
ODD_WORDS = [
    *("x: y", "a #b", "#", ":", "::", "a:", "- ", "-", "?", "? a", "|", ">", ">-", "|+", "{", "}", "{a: b}", "[", "]"),
    *("[a]", ",", "&a", "&a b", "*a", "!t", "!!str x", "%", "%YAML 1.1", "@", "`", "\\", "\\n", "'", '"', "''", '""'),
    *("\t", " \t ", "\u3000", "a:\u3000b", "\u3000#", "\u2003", "\x85", "\u2028", "\u2029", "\xa0", "\ufeff", "\ufffe"),
    *("\r", "\x00", "\x1b", "\x7f", "\u200b", "---", "...", "--- a", "<<", "=", "  ", "a  b", "\U0010ffff", "\ufffd"),
]
FLOW_WORDS = [
    "a",
    "b c",
    '"d, e"',
    "'f''g'",
    "-",
    "x:y",
    "",
    "?",
    "{a: b}",
    "[h]",
    "i: j",
    "*a",
    "漢",
    "\u3000",
    "#",
    " #k",
]


class Writer:
    """Frontmatter as people write it and as they should not, in the hand of one generator of choices."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._choose = choose

    def chance(self, one_in: int) -> bool:
        return self._choose(one_in) == 0

    def pick(self, options: list[str]) -> str:
        return options[self._choose(len(options))]

    def text(self) -> str:
        rows: list[str] = []
        for _ in range(1 + self._choose(5)):
            rows += self.entry(0, 0)
        if self.chance(6):
            at = self._choose(len(rows))
            rows[at] = rows[at][:-1] if self.chance(2) else rows[at] + self.pick([" ", "\t", ":", " #", "x", "'", '"'])
        return "\n".join(rows) + "\n"

    def entry(self, indent: int, depth: int) -> list[str]:
        if self.chance(12):
            return [self.odd_row(indent)]
        key = self.pick(ODD_KEYS) if self.chance(25) else self.pick(KEYS)
        colon = self.pick([":", ": ", ":  ", " :", ":\t"]) if self.chance(12) else ":"
        return self.valued(" " * indent + key + colon, indent, depth)

    def valued(self, begin: str, indent: int, depth: int) -> list[str]:
        kinds: list[Callable[[str, int, int], list[str]]] = [self.plain, self.plain, self.double, self.single]
        kinds += [self.flow, self.block, self.empty, self.json]
        if depth < 3:
            kinds += [self.listed, self.mapped, self.below]
        return kinds[self._choose(len(kinds))](begin, indent, depth)

    def odd_row(self, indent: int) -> str:
        begin = " " * max(0, indent + self._choose(5) - 2)
        return begin + self.pick(
            ["", "# c", "  ", "...", "---", "- ", "-", "? a", ": b", "%x", "a", "a: b", "\ta: b", "}"]
        )

    def words(self) -> str:
        many = range(1 + self._choose(4))
        return " ".join(self.pick(ODD_WORDS) if self.chance(8) else self.pick(WORDS) for _ in many)

    def deeper(self, indent: int) -> str:
        return " " * (max(0, indent + self._choose(6) - 2) if self.chance(6) else indent + 1 + self._choose(4))

    def plain(self, begin: str, indent: int, _depth: int) -> list[str]:
        rows = [f"{begin} {self.words()}"]
        while self.chance(4):
            rows.append("" if self.chance(6) else self.deeper(indent) + self.words())
        return rows

    def quoted(self, begin: str, indent: int, quote: str) -> list[str]:
        text = self.words().replace(quote, "" if self.chance(2) else quote * 2)
        while self.chance(4):
            text += self.pick(["", " "]) + ("\n" + self.deeper(indent) if self.chance(2) else " ") + self.words()
        end = "" if self.chance(12) else quote
        return f"{begin} {quote}{text}{end}{self.pick(['', '', '', ' ', ' # c', 'x'])}".split("\n")

    def double(self, begin: str, indent: int, _depth: int) -> list[str]:
        return self.quoted(begin, indent, '"')

    def single(self, begin: str, indent: int, _depth: int) -> list[str]:
        return self.quoted(begin, indent, "'")

    def flow(self, begin: str, _indent: int, _depth: int) -> list[str]:
        items = [self.pick(FLOW_WORDS) for _ in range(self._choose(5))]
        return [
            f"{begin} [{self.pick(['', ' '])}{self.pick([', ', ',', ' , ']).join(items)}{self.pick(['', ' ', ','])}]"
        ]

    def block(self, begin: str, indent: int, _depth: int) -> list[str]:
        style = self.pick(["|", ">", "|-", ">-", "|+", ">2", "| # c", "> text"])
        rows = [f"{begin} {style}"]
        inner = self.deeper(indent)
        for _ in range(self._choose(4)):
            row = "" if self.chance(6) else (self.deeper(indent) if self.chance(8) else inner) + self.words()
            rows.append(row + (" " if self.chance(6) else ""))
        return rows

    def json(self, begin: str, indent: int, depth: int) -> list[str]:
        text = f"{begin}{self.pick([' ', ' ', chr(10) + self.deeper(indent)])}{{{self.pick(['', ' '])}"
        for _ in range(self._choose(4)):
            key = self.pick(['"a"', '"b"', '"c d"', "e", '""', '"<<"'])
            text += key + self.pick([":", ": ", " : ", ":"]) + self.json_value(depth)
            text += self.pick([",", ", ", " , ", ",\n    "])
        text = text if self.chance(8) else text.rstrip(" \n,")
        text += self.pick(["}", "}", "}", " }", "\n  }", ""])
        return (text + self.pick([" ", " # c", "x", "\n"]) if self.chance(8) else text).split("\n")

    def json_value(self, depth: int) -> str:
        if depth < 3 and self.chance(3):
            inner = self.json_value(depth + 1)
            around = ["[{}]", "[{}, {}]", '{"k":{}}', '{"k": 1, "l": {}}', '{"k": 1, "k": {}}', "[]"]
            return self.pick(around).replace("{}", inner)
        return self.pick(["1", "-2.5e+3", "true", "null", "NaN", '"x"', '""', '"\\n"', '"é: #"', "x", "'y'", "01", ""])

    def empty(self, begin: str, _indent: int, _depth: int) -> list[str]:
        return [begin, *[self.pick(["", "  "]) for _ in range(self._choose(2))]]

    def below(self, begin: str, indent: int, _depth: int) -> list[str]:
        return [
            begin,
            self.deeper(indent) + self.words(),
            *([self.deeper(indent) + self.words()] if self.chance(2) else []),
        ]

    def mapped(self, begin: str, indent: int, depth: int) -> list[str]:
        inner = indent + 1 + self._choose(4)
        return [begin, *(row for _ in range(1 + self._choose(3)) for row in self.entry(inner, depth + 1))]

    def listed(self, begin: str, indent: int, depth: int) -> list[str]:
        at = indent + self._choose(4)
        rows = [begin]
        for _ in range(1 + self._choose(3)):
            bullet = " " * at + self.pick(["- ", "- ", "- ", "-  ", "-", "- - "])
            if self.chance(2):
                rows += self.valued(bullet.rstrip(), at, depth + 1)
                continue
            first, *more = self.entry(at + len(bullet.strip()) + 1, depth + 1)
            rows += [bullet + first.lstrip(" "), *more]
        return rows


@st.composite
def written(draw: st.DrawFn) -> str:
    return Writer(lambda below: draw(st.integers(0, below - 1))).text()


AROUND = [
    "{}",
    "name: n-1\ndescription: Does it.\n{}",
    "description: Does it.\n{}name: n-1\n",
    "name: n-1\n{}description: >\n  Does\n  it.\n",
    "description: Does\n  it.\nname: n-1\n{}",
    "name: n-1\ndescription: > Does it.\n{}",
    "name: n-1\ndescription: Does: it.\n{}",
    "name: n-1\ndescription: |- {}",
]


@given(text=written(), around=st.sampled_from(AROUND))
@example(text="b:\u3000c\n", around="name: a\ndescription: {}")
@example(text="b\u3000# c\n", around="name: a\ndescription: {}")
@example(text="\u2003b\n", around="name: a\ndescription: {}")
@example(text='"\u3000"\n', around="name: a\ndescription: {}")
@example(text="'\u3000b'\n", around="name: a\ndescription: {}")
@example(text="name: a b\n", around="description: b\n{}")
@example(text="x: y\nname: B b\n", around="name: a\n{}description: b\n")
@example(text="x: [*a]\n", around=AROUND[1])
@example(text="x: [a, *b]\n", around=AROUND[1])
@example(text="x:\n  y\r\n", around=AROUND[1])
@example(text="x: y\r\n", around=AROUND[1])
@example(text="description: |\n  b\n    \n", around="name: a\n{}")
def test_generated_text_means_the_same_to_the_fast_matcher_and_to_the_parser(text: str, around: str) -> None:
    agrees_with_parser(in_fences(around.replace("{}", text)))


PLAIN_CHARS = st.characters(exclude_categories=["Cs"]) | st.sampled_from(":# \t-'\"\u3000\u2003\x85\u2028\xa0\ufeff")


@given(
    st.text(PLAIN_CHARS, max_size=20),
    st.sampled_from(["{}", '"{}"', "'{}'", "[{}]", "[a, {}]", "\n  - {}", "\n  k: {}"]),
)
def test_any_text_as_a_value_means_the_same_to_every_reader(value: str, shape: str) -> None:
    text = f"name: n\ndescription: {shape.format(value)}\nx: {shape.format(value)}\n"
    agrees_with_parser(in_fences(text))


def test_a_great_deal_of_generated_text_means_the_same_to_every_reader(rng: random.Random, full: bool) -> None:
    seen = 0
    many = 200_000 if full else 5_000
    for _ in range(many):
        text = Writer(rng.randrange).text()
        seen += agrees_with_parser(in_fences(rng.choice(AROUND).replace("{}", text)))
    assert seen > many // 100, "hardly anything was compared"


# -- how far each reader goes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        b"---\nname: a\ndescription: b\n---\n",
        b"---\nname: a\ndescription: b\n---\n \n",
        b"---\nname: a\ndescription: ' '\n---\nbody\n",
        b"---\nname: a\n---\nbody\n",
        b"---\ndescription: b\n---\nbody\n",
        b"---\nname: a:b\ndescription: b\n---\nbody\n",
        b"---\nname: con\ndescription: b\n---\nbody\n",
        b"---\nname: |\n  a\ndescription: b\n---\nbody\n",
        b"---\nname: >-\n  a\ndescription: b\n---\nbody\n",
        b"---\nname: " + b"a" * 257 + b"\ndescription: b\n---\nbody\n",
        b"---\nname: a\nname: b\ndescription: b\n---\nbody\n",
        b"---\nname: a\ndescription: b\nmetadata:\n  x: 1\n  x: 2\n---\nbody\n",
        b"---\nname: a\ndescription: b\nlist:\n- x: 1\n  y: 2\n  x: 3\n---\nbody\n",
        b"---\nname: a\ndescription: b\nmetadata:\n  x:\n    y: 1\n    z:\n    - y\n    y: 2\n---\nbody\n",
        b'---\nname: a\ndescription: b\nmetadata: {"x": 1, "x": 2}\n---\nbody\n',
        b'---\nname: a\ndescription: b\nmetadata: {"x": 1} y\n---\nbody\n',
        b'---\nname: a\ndescription: b\nmetadata: {"c":{"d":["e"],"f":true}}\n---\nbody\n',
        b"---\nname: a\ndescription: " + b"b" * MAX_CHARS + b"\n---\nbody\n",
        b"---\nname: a\ndescription: \xff\n---\nbody\n",
        b"---\nname: a\ndescription: b\xc2\x85c\n---\nbody\n",
        b"\xef\xbb\xbf---\nname: a\ndescription: b\n---\nbody\n",
        b"---\r\nname: a\r\ndescription: b\r\n---\r\nbody\r\n",
        b"--- \nname: a\ndescription: b\n---\nbody\n",
    ],
)
def test_the_fast_matcher_leaves_every_doubtful_head_to_the_parser(head: bytes) -> None:
    assert read_head(head, quick="only") is None


@pytest.mark.parametrize(
    "rows",
    [
        'name: "a"\ndescription: b\n',
        "description: b\nname: 'a'\n",
        "name: a\ndescription: >\n  b \n  c  \n  d \n",
        "name: a\ndescription: |\n  b \n  c\nversion: 1\n",
        "name: a\ndescription: b\ntags:\n  - c\n  - c\ntools:\n- d\n- d\n",
        "name: a\ndescription: b\nmetadata:\n  author: c\n  authors: d\n",
        "name: a\ndescription: b\nnamespace: c\ndescent: d\n",
        "name: A title\ndescription: b\n",
        "name: a\ndescription: b\nmetadata:\n  c: d\n  e:\n  - f\n  g:\n    h:\n      i: [j, 'k']\n",
        "name: a\ndescription: b\nsources:\n- doi: c\n  title: d\n- doi: e\n  title: f\n",
        "name: a\ndescription: 'b''s\n\n  '\ntags:\n- c\n  d\n- e\n",
        "name: a\ndescription: |\n  b\n\n  c\n  \nversion: 1\n",
        "name: a\ndescription: >\n  b\n\n\n  c\n  d\n",
        'name: a\ndescription: "b \\"c\\""\n',
        "name: a\ndescription: b\n\nmetadata:\n    c: d\n    e: f\nrelated: \n",
    ],
)
def test_the_fast_matcher_reads_the_shapes_of_real_heads(rows: str) -> None:
    assert agrees_with_parser(in_fences(rows))


@pytest.mark.parametrize(
    "written_as",
    ["b:\u3000c", "b\u3000# c", "\u3000b", '"\u3000b"', "b\u2003#", "b:\u2003c"],
)
def test_a_skill_whose_text_holds_wide_blanks_has_all_its_fields(tmp_path: Path, written_as: str) -> None:
    (tmp_path / "a").mkdir()
    text = f"---\nname: a\ndescription: {written_as}\nlicense: MIT\n---\nbody\n"
    (tmp_path / "a" / "SKILL.md").write_text(text, encoding="utf-8")
    skill = prowess.scan(tmp_path)["a"]
    assert skill.license == "MIT"
    assert skill.description == skill.frontmatter.description.strip() == skill.load().skill.description


def test_a_description_of_wide_spaces_only_is_not_a_description(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "SKILL.md").write_text('---\nname: a\ndescription: "\u3000"\n---\n# A\n', encoding="utf-8")
    catalog = prowess.scan(tmp_path)
    assert len(catalog) == 0
    assert [issue.code for issue in catalog.issues] == ["missing-description"]


@pytest.mark.parametrize(
    "name", ["two words", "under_score", "a.b", "a-b.c", "a--b", "Capital", "a?b", "a#b", "a:b", "日本"]
)
@pytest.mark.parametrize(
    "order", ["name: {}\ndescription: b\n", "description: b\nname: {}\n", "x: y\nname: {}\ndescription: b\n"]
)
def test_a_name_that_is_not_the_specifications_is_never_cut_short(tmp_path: Path, name: str, order: str) -> None:
    (tmp_path / "folder").mkdir()
    head = f"---\n{order.format(name)}---\nbody\n".encode()
    (tmp_path / "folder" / "SKILL.md").write_bytes(head)
    written_name = parse_head(head).front.name
    assert written_name == name
    assert agrees_with_parser(head) is is_usable_name(name)
    assert prowess.scan(tmp_path).names == (name.replace(":", "-"),)


@pytest.mark.parametrize(
    "rows",
    [
        "name: a\nx: y\nname: B b\ndescription: c\n",
        "name: a\nx: y\nname: ~\ndescription: c\n",
        "name: a\ndescription: b\nname: c d\n",
        "description: b\nname: a\ndescription: [c]\n",
        "name: a\ndescription: b\ndescription:\n  c: d\n",
    ],
)
def test_a_repeated_key_is_refused_and_hides_no_other_skill(tmp_path: Path, rows: str) -> None:
    for folder, text in (("good", "name: good\ndescription: b\n"), ("twice", rows)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "SKILL.md").write_text(f"---\n{text}---\nbody\n", encoding="utf-8")
    catalog = prowess.scan(tmp_path)
    assert catalog.names == ("good",)
    assert [issue.code for issue in catalog.issues] == ["yaml-duplicate-key"]


@settings(max_examples=50)
@given(st.binary(max_size=200))
def test_no_bytes_make_the_fast_matcher_fail(data: bytes) -> None:
    agrees_with_parser(b"---\nname: a\ndescription: b\n" + data + b"---\nbody\n")
    agrees_with_parser(data)


@pytest.mark.parametrize("blank", ['""', "''", '" "', "' '", '"\u3000"', "\u3000", '"\u00a0"', "\u2003"])
@pytest.mark.parametrize("rows", ["name: a\ndescription: {}\n", "description: {}\nname: a\n"])
def test_no_fast_matcher_accepts_a_blank_description(blank: str, rows: str) -> None:
    assert not agrees_with_parser(in_fences(rows.format(blank)))


@pytest.mark.parametrize("text", ['"\'"', "'\"'", '"\'s"', "\u00e9t\u00e9", '"\u00e9t\u00e9 "', "x\u3000", '"- x"'])
@pytest.mark.parametrize("rows", ["name: a\ndescription: {}\n", "license: MIT\ndescription: {}\nname: a\n"])
def test_a_description_of_any_shape_is_what_the_parser_reads(text: str, rows: str) -> None:
    assert agrees_with_parser(in_fences(rows.format(text)))


def test_a_long_head_that_one_read_takes_in_has_all_its_fields(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    text = f"---\nname: a\ndescription: {'b' * MAX_CHARS}\nlicense: MIT\n---\nbody\n"
    (tmp_path / "a" / "SKILL.md").write_text(text, encoding="utf-8")
    skill = prowess.scan(tmp_path, limits=replace(DEFAULT_LIMITS, head_step=4 * MAX_CHARS))["a"]
    assert skill.license == "MIT"


def test_a_small_library_is_read_without_the_pattern_of_nested_heads(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    text = "---\nname: a\ndescription: b\nx:\n  y:\n    z: 1\n---\nbody\n"
    (tmp_path / "a" / "SKILL.md").write_text(text, encoding="utf-8")
    program = "import prowess, sys; assert prowess.scan(sys.argv[1]).names; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "prowess.format.frontmatter.parse" in done.stdout.split()
    assert "prowess.format.frontmatter.quick.nested_heads" not in done.stdout.split()
