"""The two fast readers of plain frontmatter say what the YAML parser says, or nothing."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

import prowess
from bench.corpus import USABLE_BOUND, count_usable, head_of, outcome_of
from prowess.errors import SkillError, SkillLoadError
from prowess.format.document import LoadPolicy, read_document
from prowess.format.frontmatter import repair, yaml_events
from prowess.format.frontmatter.broken_head import match_broken_head
from prowess.format.frontmatter.fast_match import MAX_HEAD_BYTES, heads_before_compiling, match_head
from prowess.format.frontmatter.fences import decode_frontmatter, find_fences
from prowess.format.frontmatter.parse import parse_head
from prowess.format.frontmatter.plain_yaml import MAX_PLAIN_CHARS, BrokenLineError, parse_plain_yaml, read_plain_yaml
from prowess.format.frontmatter.yaml_events import YamlError, YamlRefusedError, parse_yaml
from prowess.format.rules import field_issues, is_usable_name
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

deque(heads_before_compiling, maxlen=0)  # from now on the pattern of nested heads is used, as in a large library

SAMPLED_BOUND = 0.985
"""The share of usable heads below which no sample of 1,000 falls by chance."""

# -- what must hold ----------------------------------------------------------------------------------------------------


def agrees_with_yaml(text: str) -> bool:
    """Whether ``text`` took the fast path; fails when what that says is not what YAML says."""
    try:
        plain = read_plain_yaml(text)
    except BrokenLineError:
        with pytest.raises(YamlError) as caught:
            parse_yaml(text)
        assert not isinstance(caught.value, YamlRefusedError), repr(text)
        return False
    if plain is None:
        return False
    try:
        expected = parse_yaml(text)
    except YamlError as error:
        pytest.fail(f"refused by YAML ({error.code}: {error.message}), accepted as plain: {text!r}")
    assert plain == expected, repr(text)
    assert list(plain[0]) == list(expected[0]), repr(text)
    assert plain[0] == yaml.load(text, Loader=yaml.CBaseLoader), repr(text)  # noqa: S506 - builds text only
    return True


def agrees_with_interpret(head: bytes) -> bool:
    """Return whether the fast matcher matched ``head``; fails when the parser reads it differently."""
    seen = match_head(head)
    if seen is None:
        agrees_with_repair(head)
        return False
    name, description, raw, offset = seen
    careful = parse_head(head, whole=False)
    assert (name, description, offset) == (
        careful.front.name,
        careful.front.description.strip(),
        careful.body_offset,
    ), head
    assert careful.issues == (), head
    assert parse_plain_yaml(raw.decode()) is not None, head
    judged = read_document(head, whole=True, policy=LoadPolicy(), folder=name)
    assert (judged.front, judged.body_offset) == (careful.front, offset), head
    assert list(judged.issues) == field_issues(careful.front, mode="lenient", folder=name), head
    assert is_usable_name(name), head
    assert description, head
    assert head[offset:].strip(), head
    return True


def agrees_with_repair(head: bytes) -> bool:
    """Return whether the matcher of broken heads matched ``head``; fails when a repair reads it differently."""
    seen = match_broken_head(head)
    if seen is None:
        return False
    name, description, raw, offset = seen
    repaired = read_document(head, whole=False, policy=LoadPolicy(), folder="folder")
    assert (name, description, offset) == (
        repaired.front.name,
        repaired.front.description.strip(),
        repaired.body_offset,
    ), head
    assert repaired.issues[0].code in {"repaired-block-text", "repaired-colon"}, head
    assert raw == head[:offset]
    assert describe_outcome(raw, LoadPolicy()) == describe_outcome(head, LoadPolicy()), head
    assert parse_plain_yaml(text_of(head) or "") is None, head
    assert head[offset:].strip(), head
    return True


def in_fences(text: str) -> bytes:
    return f"---\n{text}---\nbody\n".encode("utf-8", "surrogatepass")


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


def test_on_real_heads_the_fast_path_and_yaml_agree_and_nearly_all_heads_take_it(
    real_heads: list[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [text for head in real_heads if (text := text_of(head)) is not None]
    fast = sum(agrees_with_yaml(text) for text in texts)
    accepted = sum(is_accepted(text) for text in texts)
    share = fast / accepted
    with capsys.disabled():
        sys.stdout.write(f"\nfast path: {fast} of {accepted} accepted heads, {share:.1%}\n")
    assert share > 0.85


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
    seen = sum(agrees_with_interpret(head[:MAX_HEAD_BYTES]) for head in real_heads)
    assert seen > len(real_heads) // 3


def test_on_real_heads_the_matcher_of_broken_heads_and_the_repair_agree(real_heads: list[bytes]) -> None:
    seen = sum(agrees_with_repair(head[:MAX_HEAD_BYTES]) for head in real_heads)
    assert seen > len(real_heads) // 30


MODES = [LoadPolicy("lenient"), LoadPolicy("lenient", repair=False), LoadPolicy("strict")]
TIGHT = [replace(DEFAULT_LIMITS, **{name: bound}) for name, bound in (("max_yaml_depth", 3), ("max_scalar_chars", 200))]
POLICIES = [*MODES, *(LoadPolicy("lenient", limits=limits) for limits in TIGHT)]


def describe_outcome(head: bytes, policy: LoadPolicy) -> object:
    """Everything that reading a head under a policy gives, or the issues with which it is refused."""
    try:
        front, body_offset, issues, _ = read_document(head, whole=True, policy=policy, folder="folder", path="SKILL.md")
    except SkillLoadError as error:
        return type(error), error.issues
    return front, list(front.extra), front.lines, front.findings, front.raw, front.written_name, body_offset, issues


def test_on_real_heads_every_mode_says_the_same_with_the_plain_reader_and_without(
    real_heads: list[bytes], rng: random.Random, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = [head[:MAX_HEAD_BYTES] for head in (real_heads if full else rng.sample(real_heads, 200))]
    fast = [[describe_outcome(head, policy) for policy in POLICIES] for head in heads]
    monkeypatch.setattr(yaml_events, "read_plain_yaml", lambda _text: None)
    monkeypatch.setattr(repair, "can_skip_limit_checks", lambda _limits: False)
    for head, outcomes in zip(heads, fast, strict=True):
        for policy, outcome in zip(POLICIES, outcomes, strict=True):
            assert describe_outcome(head, policy) == outcome, (policy, head)


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
    rounds, fast, seen = (8 if full else 1), 0, 0
    for head in real_heads * rounds:
        text = text_of(head)
        if text is None:
            continue
        text = disturbed(text, rng).removesuffix("\n") + "\n"
        fast += agrees_with_yaml(text)
        seen += agrees_with_interpret(in_fences(text)[:MAX_HEAD_BYTES])
    assert fast > len(real_heads) // 10, "hardly anything was compared"
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


@given(written())
@example('a: {"b":1, "c":{"d":["e", true, null, -1.5]}}\n')
@example('a:\n  {\n    "b": {"c": "d"},\n    "e": []\n  }\nf: g\n')
@example('a: {"b"\n  : 1}\n')
@example('a: {"b": 1, "b": 2}\n')
@example('a: {"b": {"c": 1, "c": 2}}\n')
@example('a: {"b":\u30001}\n')
@example('a: {"%s": 1}\n' % ("k" * 1100))
@example("a: \"b\n\n  c\"\nd: 'e\n\n\n  '\n")
@example("a: |\n  b\n\n  c\n  \nd: >\n  e\n\n\n  f\n")
@example('a: "b \\"c\\" \\\\"\n')
@example("a: >- b\n")
@example("a: b: c\n")
@example("a: **b**\n")
@example("a: b\n  - c\n")
@example('a: "\n  b"\n')
@example("a: 'b''\n  c'\n")
@example("a:\n- |\n b\n- c\n")
@example("a:\n  - b:\n    - c\n    d: e\n")
@example('m:\n  a: "x\n y"\n')
@example("a: >\n  b \n  c\n\nd: e\n")
@example("a: |\n b\n   \n")
@example("a: >-\n  b\n\n   \nc: d\n")
def test_generated_text_means_the_same_to_the_fast_path_and_to_yaml(text: str) -> None:
    agrees_with_yaml(text)


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
    agrees_with_interpret(in_fences(around.replace("{}", text)))


PLAIN_CHARS = st.characters(exclude_categories=["Cs"]) | st.sampled_from(":# \t-'\"\u3000\u2003\x85\u2028\xa0\ufeff")


@given(
    st.text(PLAIN_CHARS, max_size=20),
    st.sampled_from(["{}", '"{}"', "'{}'", "[{}]", "[a, {}]", "\n  - {}", "\n  k: {}"]),
)
def test_any_text_as_a_value_means_the_same_to_every_reader(value: str, shape: str) -> None:
    text = f"name: n\ndescription: {shape.format(value)}\nx: {shape.format(value)}\n"
    agrees_with_yaml(text)
    agrees_with_interpret(in_fences(text))
    agrees_with_repair(in_fences(f"name: n\ndescription: a: {value}\n"))
    agrees_with_repair(in_fences(f"name: n\ndescription: {value}: b\n"))
    agrees_with_repair(in_fences(f"name: n\ndescription: > {value}\n"))


def test_a_great_deal_of_generated_text_means_the_same_to_every_reader(rng: random.Random, full: bool) -> None:
    fast = seen = 0
    many = 200_000 if full else 5_000
    for _ in range(many):
        text = Writer(rng.randrange).text()
        fast += agrees_with_yaml(text)
        seen += agrees_with_interpret(in_fences(rng.choice(AROUND).replace("{}", text)))
    assert fast > many // 20, "hardly anything was compared"
    assert seen > many // 100, "hardly anything was compared"


def test_text_without_a_line_end_means_the_same_to_the_fast_path_and_to_yaml() -> None:
    for text in ("a: b", "a: |\n  b", "a: >\n  b", "a: |-\n  b", 'a: "b"', "a:\n  - b", "a:", "a: [b]"):
        agrees_with_yaml(text)


# -- how far each reader goes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "name: a\ndescription: b\n",
        'a: "b: c # d"\n',
        "a: 'it''s'\n",
        "a: [b, \"c, d\", 'e']\n",
        "metadata:\n  author: a\n  version: 1.10\n",
        "tags:\n- a\n- b\n",
        "tags:\n  - a\n  - b\n",
        "description: >\n  a\n  b\n",
        "description: |-\n  a\n  b\n",
        "description: a\n  b\n  c\n",
        'description: "a\n  b"\n',
        "hooks:\n  before:\n    - run: a\n      when: b\n",
        "a:\n\nb: c\n",
    ],
)
def test_the_commonest_ways_to_write_frontmatter_take_the_fast_path(text: str) -> None:
    assert agrees_with_yaml(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "# only a comment\n",
        "- a\n",
        "a: b: c\n",
        "a: &b c\n",
        "a: *b\n",
        "a: !t b\n",
        "a: b\na: c\n",
        "<<: {a: b}\n",
        "? a\n: b\n",
        "%YAML 1.2\na: b\n",
        "a: b # c\n",
        'a: "\\x41"\n',
        "a:\tb\n",
        "a: {b: c}\n",
        "a: b\n...\n",
        "  a: b\n",
        "a: b\u2028c\n",
        f"a: {'b' * MAX_PLAIN_CHARS}\n",
    ],
)
def test_text_that_is_not_surely_plain_is_left_to_yaml(text: str) -> None:
    assert parse_plain_yaml(text) is None


def test_the_longest_plain_text_stays_within_the_bound_on_events() -> None:
    rows = "k:\n" + "- a:\n" * ((MAX_PLAIN_CHARS - 3) // 5)
    assert agrees_with_yaml(rows)


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
        b"---\nname: a\ndescription: " + b"b" * MAX_PLAIN_CHARS + b"\n---\nbody\n",
        b"---\nname: a\ndescription: \xff\n---\nbody\n",
        b"---\nname: a\ndescription: b\xc2\x85c\n---\nbody\n",
        b"\xef\xbb\xbf---\nname: a\ndescription: b\n---\nbody\n",
        b"---\r\nname: a\r\ndescription: b\r\n---\r\nbody\r\n",
        b"--- \nname: a\ndescription: b\n---\nbody\n",
    ],
)
def test_the_fast_matcher_leaves_every_doubtful_head_to_the_parser(head: bytes) -> None:
    assert match_head(head) is None


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
        'name: a\ndescription: b\nmetadata: {"c":{"d":["e"],"f":true}}\n',
        'name: a\ndescription: b\nmetadata:\n  {\n    "c": { "d": 1 }\n  }\n',
        "name: a\ndescription: b\n\nmetadata:\n    c: d\n    e: f\nrelated: \n",
    ],
)
def test_the_fast_matcher_reads_the_shapes_of_real_heads(rows: str) -> None:
    assert agrees_with_interpret(in_fences(rows))


@pytest.mark.parametrize("description", ["> b", "|  b: c ", ">- b #c", "b: c", "b:", "b: 'c", "é: &d e", "b:c: d: e "])
@pytest.mark.parametrize(
    "rows", ["", "version: 1\n", "metadata:\n  a: b\n  c: d\ntags: [e, f]\n", "x:\n  y:\n    z: 1\n"]
)
def test_the_matcher_of_broken_heads_reads_a_description_that_a_repair_reads(description: str, rows: str) -> None:
    assert agrees_with_repair(in_fences(f"name: a\ndescription: {description}\n{rows}"))


@pytest.mark.parametrize(
    "rows",
    [
        "name: a\ndescription: b\n",
        "name: a\ndescription: > # b\n",
        "name: a\ndescription: b #c: d\n",
        "name: a\ndescription: b: c\n  d\n",
        "name: a\ndescription: b: c\nname: d\n",
        "name: a\ndescription: b: c\ndescription: d\n",
        "name: a\ndescription: b: c\nx: &y z\n",
        "name: a\ndescription: b: c\nx: y: z\n",
        "name: con\ndescription: b: c\n",
        "name: a\ndescription: b: \u2028c\n",
        "name: a\ndescription: b: \udc80\n",
        f"name: a\ndescription: b: {'c' * MAX_PLAIN_CHARS}\n",
    ],
)
def test_the_matcher_of_broken_heads_leaves_every_doubtful_head_to_the_repair(rows: str) -> None:
    assert match_broken_head(in_fences(rows)) is None


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


def test_a_description_of_wide_blanks_only_is_no_description(tmp_path: Path) -> None:
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
    assert agrees_with_interpret(head) is is_usable_name(name)
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
    agrees_with_interpret(b"---\nname: a\ndescription: b\n" + data + b"---\nbody\n")
    agrees_with_interpret(data)


@pytest.mark.parametrize("blank", ['""', "''", '" "', "' '", '"\u3000"', "\u3000", '"\u00a0"', "\u2003"])
@pytest.mark.parametrize("rows", ["name: a\ndescription: {}\n", "description: {}\nname: a\n"])
def test_no_fast_matcher_accepts_a_blank_description(blank: str, rows: str) -> None:
    assert not agrees_with_interpret(in_fences(rows.format(blank)))


@pytest.mark.parametrize("text", ['"\'"', "'\"'", '"\'s"', "\u00e9t\u00e9", '"\u00e9t\u00e9 "', "x\u3000", '"- x"'])
@pytest.mark.parametrize("rows", ["name: a\ndescription: {}\n", "license: MIT\ndescription: {}\nname: a\n"])
def test_a_description_of_any_shape_is_what_the_parser_reads(text: str, rows: str) -> None:
    assert agrees_with_interpret(in_fences(rows.format(text)))


def test_a_long_head_that_one_read_takes_in_has_all_its_fields(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    text = f"---\nname: a\ndescription: {'b' * MAX_PLAIN_CHARS}\nlicense: MIT\n---\nbody\n"
    (tmp_path / "a" / "SKILL.md").write_text(text, encoding="utf-8")
    skill = prowess.scan(tmp_path, limits=replace(DEFAULT_LIMITS, head_step=4 * MAX_PLAIN_CHARS))["a"]
    assert skill.license == "MIT"


def test_a_small_library_is_read_without_the_pattern_of_nested_heads(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    text = "---\nname: a\ndescription: b\nx:\n  y:\n    z: 1\n---\nbody\n"
    (tmp_path / "a" / "SKILL.md").write_text(text, encoding="utf-8")
    program = "import prowess, sys; assert prowess.scan(sys.argv[1]).names; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "prowess.format.frontmatter.parse" in done.stdout.split()
    assert "prowess.format.frontmatter.nested_head" not in done.stdout.split()
