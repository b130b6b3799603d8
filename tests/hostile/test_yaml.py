"""YAML that explodes, recurses, runs code, or means different things to different readers."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

import prowess

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from tests.hostile.conftest import Children
    from tests.hostile.invariants import Library, Mode

MIB = 1 << 20
GENEROUS = 2.0  # seconds; what is measured takes milliseconds on an idle machine


def head(*rows: str) -> str:
    return "\n".join(("---", "name: evil", *rows, "---", "Body.", ""))


def _levels() -> list[str]:
    rows = ["a: &a [" + ",".join(["x"] * 9) + "]"]
    rows += [f"{b}: &{b} [" + ",".join([f"*{a}"] * 9) + "]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    return rows


def _merges() -> list[str]:
    rows = ["description: d", "p0: &p0 {" + ", ".join(f"k{n}: v" for n in range(10)) + "}"]
    return rows + [f"p{n}: &p{n} {{<<: [{', '.join([f'*p{n - 1}'] * 10)}]}}" for n in range(1, 9)]


ALIAS_BOMB = head(*_levels(), "description: *i")
METADATA_BOMB = head("description: d", *_levels(), "metadata:", "  k: *i")
MERGE_BOMB = head(*_merges())
RECURSIVE = head("description: d", "metadata: &a {self: *a}")
BRACKETS = head("description: d", "metadata: " + "[" * 50_000)
INDENTED = head("description: d", *(" " * n + "a:" for n in range(300)))
TOO_INDENTED = head("description: d", *(" " * n + "a:" for n in range(3_000)))
BULLETS = head("description: d", "metadata:", "  " + "- " * 20_000 + "x")

REJECT = """
issue = library.assert_rejected(*args)
result = [issue.code, issue.message]
"""
TWIN = "result = len(str(naive.frontmatter(library.evil.joinpath('SKILL.md').read_text())))"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(ALIAS_BOMB, "yaml-anchor", id="case 1"),
        pytest.param(METADATA_BOMB, "yaml-anchor", id="case 2"),
        pytest.param(MERGE_BOMB, "yaml-anchor", id="case 3"),
        pytest.param(RECURSIVE, "yaml-anchor", id="case 4"),
        pytest.param(BRACKETS, "yaml-too-deep", id="case 5"),
        pytest.param(INDENTED, "yaml-too-deep", id="case 6"),
        pytest.param(BULLETS, "yaml-too-deep", id="case 6 by bullets"),
        pytest.param(TOO_INDENTED, "frontmatter-too-large", id="case 6 by size"),
    ],
)
def test_a_bomb_is_refused_before_anything_is_built(library: Library, child: Children, text: str, code: str) -> None:
    """Cases 1, 2, 3, 4, 5, 6: whatever grows or deepens without end is refused while it is still small.

    Nine levels of nine aliases as the description, the same below metadata, eight levels of merge keys, a mapping that
    holds itself, 50,000 open brackets, hundreds and thousands of indented levels.
    """
    library.write(text)
    outcome = child.answer(REJECT, library, code, memory=256)
    assert outcome.result[0] == code
    assert outcome.busy < GENEROUS
    assert outcome.grown < 24 * MIB


def test_the_refusal_of_a_bomb_says_which_rule_it_breaks(library: Library) -> None:
    """Cases 1, 5: the message names aliases, or the depth that is allowed, and the line."""
    library.write(ALIAS_BOMB)
    issue = library.assert_rejected("yaml-anchor")
    assert "YAML aliases are not allowed" in issue.message
    assert issue.line == 3
    library.write(BRACKETS)
    assert "nesting > 16" in library.assert_rejected("yaml-too-deep").message


def test_a_merge_key_is_refused_without_any_anchor(library: Library) -> None:
    """Case 3: merging is forbidden as such, not only when it explodes."""
    library.write(head("description: d", "metadata:", "  <<: {k: v}"))
    library.assert_rejected("yaml-merge-key")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ALIAS_BOMB, id="case 1"),
        pytest.param(METADATA_BOMB, id="case 2"),
        pytest.param(MERGE_BOMB, id="case 3"),
        pytest.param(RECURSIVE, id="case 4"),
    ],
)
def test_a_syntax_error_in_front_does_not_smuggle_a_bomb_into_the_repair(library: Library, text: str) -> None:
    """Cases 1, 2, 3, 4: lenient mode fixes text that is not YAML, entry by entry, and refuses the bomb there too."""
    library.write(text.replace("name: evil\n", "name: evil\nlicense: a: b\n"))
    library.assert_rejected("yaml-anchor", "yaml-syntax")


def test_mending_deep_text_entry_by_entry_stays_bounded(library: Library, child: Children) -> None:
    """Case 6: a syntax error on every level would lead a repair that calls itself as deep as the text goes."""
    rows = [line for n in range(240) for line in (" " * n + "b: x: y", " " * n + "a:")]
    library.write(head("description: d", "top:", *(" " + row for row in rows)))
    outcome = child.answer(
        """
try:
    value = prowess.read_metadata(library.evil / "SKILL.md", mode="lenient").extra["top"]
except prowess.SkillError:
    value = ""
result = 0
while isinstance(value, dict):
    value, result = value.get("a"), result + 1
library.scan()
""",
        library,
        memory=256,
    )
    assert outcome.result <= 16
    assert outcome.busy < GENEROUS


@pytest.mark.sampled(0.25)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ALIAS_BOMB, id="case 1"),
        pytest.param(METADATA_BOMB, id="case 2"),
        pytest.param(MERGE_BOMB, id="case 3"),
        pytest.param(BRACKETS + "\n", id="case 5"),
        pytest.param(TOO_INDENTED, id="case 6"),
    ],
)
def test_the_twin_blows_up_on_a_bomb(library: Library, child: Children, text: str) -> None:
    """Twin of cases 1, 2, 3, 5, 6: it runs out of memory, of time or of stack."""
    library.write(text)
    outcome = child(TWIN, library, memory=64, kill_after=GENEROUS)
    assert outcome.killed or outcome.raised in {"MemoryError", "RecursionError"}


def test_the_twin_hands_out_a_mapping_that_holds_itself(library: Library, naive: ModuleType) -> None:
    """Twin of case 4: whoever walks through it never comes back."""
    values = naive.frontmatter(library.write(RECURSIVE).read_text(encoding="utf-8"))
    assert values["metadata"]["self"] is values["metadata"]


# -- values keep their text --------------------------------------------------------------------------------------------

IMPOSSIBLE_DATE = head("description: d", "metadata: {when: 2024-13-45}")
LONG_NUMBER = head("description: d", "metadata: {n: " + "9" * 5_000 + "}")


@pytest.mark.parametrize("mode", ["strict", "lenient"])
@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        pytest.param(IMPOSSIBLE_DATE, "when", "2024-13-45", id="case 7"),
        pytest.param(LONG_NUMBER, "n", "9" * 5_000, id="case 8"),
    ],
)
def test_no_value_is_given_a_type(library: Library, text: str, key: str, value: str, mode: Mode) -> None:
    """Cases 7, 8: a date that does not exist and a number of 5,000 digits are the text that was written."""
    library.write(text)
    assert library.scan(mode=mode)["evil"].metadata == {key: value}


@pytest.mark.parametrize("text", [pytest.param(IMPOSSIBLE_DATE, id="case 7"), pytest.param(LONG_NUMBER, id="case 8")])
def test_the_twin_fails_on_the_type_that_it_gives(naive: ModuleType, text: str) -> None:
    """Twin of cases 7, 8: a bare ValueError, for a date and for a number."""
    with pytest.raises(ValueError, match=r"month must be|digits"):
        naive.frontmatter(text)


@pytest.mark.parametrize("written", ["123", "null", "yes", "1e3", "~", "0x1F", "2024-01-01", "1_000"])
def test_a_scalar_is_kept_as_it_was_written(library: Library, written: str) -> None:
    """Case 14: numbers, nulls and booleans of other readers are text here, as a name and as a description."""
    path = library.write(f"---\nname: {written}\ndescription: {written}\n---\nBody.\n")
    front, _ = prowess.parse_frontmatter(io.BytesIO(path.read_bytes()))
    assert (front.name, front.description) == (written, written)
    assert written in [skill.description for skill in library.scan()]


@pytest.mark.parametrize(
    ("name", "description"),
    [("evil", "[a, b]"), ("evil", "{a: b}"), ("{a: b}", "d"), ("[a, b]", "d"), ("\n  - a", "d"), ("evil", "\n  a: b")],
)
def test_a_list_or_a_mapping_is_not_a_name_or_a_description(library: Library, name: str, description: str) -> None:
    """Case 14: collections where text belongs are refused in both modes."""
    library.write(f"---\nname: {name}\ndescription: {description}\n---\nBody.\n")
    assert library.assert_rejected("wrong-type", head=False).field in {"name", "description"}


def test_the_naive_version_gives_names_that_are_not_text(naive: ModuleType) -> None:
    """Twin of case 14: what comes out is an int, None, True, a list, a dict."""
    for written, kind in (("123", int), ("null", type(None)), ("yes", bool), ("[a, b]", list), ("{a: b}", dict)):
        values = naive.frontmatter(f"---\nname: {written}\ndescription: d\n---\n")
        assert isinstance(values["name"], kind)


# -- tags --------------------------------------------------------------------------------------------------------------

TAGGED = [
    "!!binary aGk=",
    "!!set {a, b}",
    "!!omap [a: b]",
    "!!timestamp 2024-01-01",
    "!!str text",
    "!local text",
    "!<tag:x,2020:y> text",
    "! text",
]


def test_a_tag_that_would_run_code_is_refused(library: Library) -> None:
    """Case 10: a tag of Python's that calls a command makes no file and no skill."""
    pwned = library.base / "pwned"
    library.write(head("description: d", f"metadata: !!python/object/apply:os.system ['touch {pwned}']"))
    assert "tag not allowed" in library.assert_rejected("yaml-tag").message
    assert not pwned.exists()


def test_the_twin_runs_the_code_of_a_tag(library: Library, child: Children) -> None:
    """Twin of case 10: with the loader that knows every tag, the command runs."""
    pwned = library.base / "pwned"
    library.write(head("description: d", f"metadata: !!python/object/apply:os.system ['touch {pwned}']"))
    child(
        "naive.frontmatter((library.evil / 'SKILL.md').read_text(), naive.yaml.UnsafeLoader)",
        library,
    )
    assert pwned.exists()


@pytest.mark.parametrize("value", TAGGED)
@pytest.mark.parametrize("key", ["description", "metadata", "x"])
def test_every_tag_is_refused(library: Library, key: str, value: str) -> None:
    """Case 11: standard tags, local ones, verbatim ones and the bare one, on any key."""
    rows = [f"{key}: {value}"] if key == "description" else ["description: d", f"{key}: {value}"]
    library.write(head(*rows))
    library.assert_rejected("yaml-tag")


def test_the_twin_builds_what_the_tags_ask_for(naive: ModuleType) -> None:
    """Twin of case 11: bytes and sets for known tags, an error of the parser's own for others."""
    assert isinstance(naive.frontmatter(head("description: !!binary aGk="))["description"], bytes)
    assert isinstance(naive.frontmatter(head("description: !!set {a, b}"))["description"], set)
    with pytest.raises(naive.yaml.YAMLError):
        naive.frontmatter(head("description: !local text"))


# -- one key, one value ------------------------------------------------------------------------------------------------

REPEATED = [
    ("description", "description"),
    ("description", '"description"'),
    ("description", "'description'"),
    ("description", r'"descriptio\u006e"'),
    (r'"descriptio\x6e"', "description"),
    ("description", "? description\n"),
]


@pytest.mark.parametrize(("first", "second"), REPEATED)
def test_a_key_that_is_written_twice_is_refused(library: Library, first: str, second: str) -> None:
    """Case 13: two spellings of one key would let a scanner and an agent see different values."""
    library.write(head(f"{first}: benign", f"{second}: hostile"))
    assert "duplicate key" in library.assert_rejected("yaml-duplicate-key").message


@pytest.mark.parametrize("row", ["  k: v\n  k: w", "  k: v\n  'k': w", r'  "\x6b": v' + "\n  k: w"])
def test_a_key_below_metadata_that_is_written_twice_is_refused(library: Library, row: str) -> None:
    """Case 13: the rule holds on every level."""
    library.write(head("description: d", "metadata:", row))
    library.assert_rejected("yaml-duplicate-key")


def test_mending_does_not_choose_between_two_values(library: Library) -> None:
    """Case 13: a repeated key is refused even where another line has to be repaired first."""
    library.write(head("license: a: b", "description: benign", "description: hostile"))
    library.assert_rejected("yaml-duplicate-key", "yaml-syntax")


def test_the_twin_takes_the_last_value_of_a_repeated_key(naive: ModuleType) -> None:
    """Twin of case 13: the benign text that a reviewer sees is not the one that counts."""
    for first, second in REPEATED[:5]:
        text = head(f"{first}: benign", f"{second}: hostile")
        assert naive.frontmatter(text)["description"] == "hostile"


# -- size --------------------------------------------------------------------------------------------------------------

# Functions, because every worker collects this file, and one of them makes a text.
LARGE: dict[str, Callable[[], str]] = {
    "case 16": lambda: head("description: d", *(f"k{n:05}: v" for n in range(100_000))),
    "case 17, scalar": lambda: head("description: " + "x" * 2_000_000),
    "case 17, line": lambda: head("description: d", "license: " + "y z " * (MIB // 4)),
    "case 17, flow map": lambda: head(
        "description: d", "metadata: {" + ", ".join(f"k{n}: v" for n in range(1_000_000)) + "}"
    ),
}


@pytest.mark.parametrize("case", LARGE)
def test_frontmatter_beyond_the_limit_is_refused_unread(library: Library, child: Children, case: str) -> None:
    """Cases 16, 17: a mebibyte of keys, a text of two million characters, one long line, a million keys in one map."""
    path = library.write(LARGE[case]())
    outcome = child.answer(
        """
catalog = library.scan()
result = [issue.code for issue in catalog.issues]
""",
        library,
        memory=256,
    )
    assert outcome.result == ["frontmatter-too-large"]
    assert outcome.busy < GENEROUS
    assert outcome.grown < 24 * MIB
    assert outcome.read[str(path)] <= 64 * 1024 + 4096 + 1  # the first page is read again when more is needed
    library.assert_rejected("frontmatter-too-large")


def test_the_refusal_of_large_frontmatter_states_the_limit(library: Library) -> None:
    """Case 16: the message says how much is allowed."""
    library.write(LARGE["case 16"]())
    assert "65536 bytes" in library.assert_rejected("frontmatter-too-large").message


def test_many_small_values_within_the_size_limit_are_refused_by_number(library: Library, child: Children) -> None:
    """Case 17: what fits into the size can still be too many events."""
    library.write(head("description: d", "metadata: {" + ", ".join(f"k{n}: v" for n in range(6_000)) + "}"))
    outcome = child.answer(REJECT, library, "yaml-too-many-events", memory=256)
    assert outcome.busy < GENEROUS


def test_mending_many_open_quotes_takes_no_longer_than_reading_them(library: Library, child: Children) -> None:
    """Case 17: quotes that never close make a repair join line after line; that is bounded, too."""
    library.write(head("description: d", *(f'k{n}: "' + "open " * 30 for n in range(390))))
    outcome = child.answer("library.scan()", library, memory=256)
    assert outcome.busy < GENEROUS


@pytest.mark.sampled(0.25)
@pytest.mark.parametrize("case", ["case 16", "case 17, scalar"])
def test_the_twin_accepts_any_size(library: Library, child: Children, case: str) -> None:
    """Twin of cases 16, 17: everything is read and built."""
    library.write(LARGE[case]())
    outcome = child(TWIN.replace(".read_text()", ".read_text(), naive.yaml.CSafeLoader"), library, kill_after=GENEROUS)
    assert outcome.killed or outcome.result > MIB
