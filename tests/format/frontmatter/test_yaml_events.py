"""YAML by the rules: text only, judged before anything is built."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from prowess.format.frontmatter.yaml_events import (
    UndefinedAliasError,
    YamlError,
    YamlRefusedError,
    find_unindented_line,
    parse_yaml,
)
from prowess.limits import Limits


def refusal(text: str, limits: Limits | None = None) -> tuple[type[YamlError], str, int]:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text, limits or Limits())
    return type(caught.value), caught.value.code, caught.value.line


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1.10", "1.10"),
        ("yes", "yes"),
        ("null", "null"),
        ("~", "~"),
        ("", ""),
        ("2024-13-45", "2024-13-45"),
        ("0x1F", "0x1F"),
        ("1e3", "1e3"),
        ("=", "="),
        (".inf", ".inf"),
        ("9" * 5000, "9" * 5000),
        ("'it''s'", "it's"),
        (r'"a\tb\x41\u00e9"', "a\tbAé"),
        ("[a, {b: 1}]", ["a", {"b": "1"}]),
        ("{}", {}),
        ("[]", []),
        ("|\n  a\n   b\n", "a\n b\n"),
        (">-\n  a\n  b\n\n  c\n", "a b\nc"),
        ('"<<"', "<<"),
    ],
)
def test_every_scalar_is_the_text_that_was_written(written: str, value: object) -> None:
    assert parse_yaml(f"k: {written}\n")[0] == {"k": value}


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a: b\nc: &x d\n", "yaml-anchor", 1),
        ("c: &x d\ne: *x\n", "yaml-anchor", 0),
        ("&x a: b\n", "yaml-anchor", 0),
        ("&x\na: b\n", "yaml-anchor", 0),
        ("a: &x {self: *x}\n", "yaml-anchor", 0),
        ("a: [b, &x c]\n", "yaml-anchor", 0),
        ("a: !!str b\n", "yaml-tag", 0),
        ("a: !local b\n", "yaml-tag", 0),
        ("a: !<tag:x,2020:y> b\n", "yaml-tag", 0),
        ("a: !!binary aGk=\n", "yaml-tag", 0),
        ("a: !!set {b, c}\n", "yaml-tag", 0),
        ("a: b\nc: !!python/object/apply:os.system ['true']\n", "yaml-tag", 1),
        ("!!map\na: b\n", "yaml-tag", 0),
        ("! a: b\n", "yaml-tag", 0),
        ("a: ! b\n", "yaml-tag", 0),
        ("<<: {a: b}\n", "yaml-merge-key", 0),
        ("a:\n  <<: b\n", "yaml-merge-key", 1),
        ("a: b\na: c\n", "yaml-duplicate-key", 1),
        ("a: b\n'a': c\n", "yaml-duplicate-key", 1),
        ('a: b\n"\\x61": c\n', "yaml-duplicate-key", 1),
        ("m:\n  a: b\n  a: c\n", "yaml-duplicate-key", 2),
        ("m: {a: b, a: c}\n", "yaml-duplicate-key", 0),
        ("m: [{a: b, a: c}]\n", "yaml-duplicate-key", 0),
        ("a: b\n--- \nc: d\n", "yaml-documents", 1),
        ("", "empty-frontmatter", 0),
        ("# comment\n", "empty-frontmatter", 0),
    ],
)
def test_what_the_rules_refuse_is_never_worth_a_repair(text: str, code: str, line: int) -> None:
    assert refusal(text) == (YamlRefusedError, code, line)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("? [a]\n: b\n", "yaml-complex-key", 0),
        ("a: b\nc: {{d}}\n", "yaml-complex-key", 1),
        ("- a\n", "yaml-not-a-mapping", 0),
        ("text\n", "yaml-not-a-mapping", 0),
        ('name:"a"\n', "yaml-not-a-mapping", 0),
    ],
)
def test_what_is_yaml_and_no_frontmatter_is_refused(text: str, code: str, line: int) -> None:
    assert refusal(text)[1:] == (code, line)


@pytest.mark.parametrize("text", ["%YAML 1.1\n--- \na: b\n", "%TAG ! tag:x,2020:\n--- \na: b\n"])
def test_directives_are_refused(text: str) -> None:
    kind, code, _ = refusal(text)
    assert (kind, code) == (YamlRefusedError, "yaml-directive")


@pytest.mark.parametrize("escape", [r"\ud800", r"\uDFFF", r"\U0000D800", r"\ud83d\ude00"])
def test_half_a_character_is_refused(escape: str) -> None:
    assert refusal(f'a: "x{escape}y"\n')[1] in {"yaml-surrogate", "yaml-syntax"}


def test_an_alias_without_an_anchor_is_text_that_may_be_mended() -> None:
    assert refusal("a: *b\n") == (UndefinedAliasError, "yaml-anchor", 0)


@pytest.mark.parametrize(
    "text", ["a: b: c\n", "a: [b\n", 'a: "b\n', "a: 'b\n", "a: @b\n", "a: `b\n", "\ta: b\n", "a: {b\n"]
)
def test_broken_syntax_may_be_mended(text: str) -> None:
    kind, code, _ = refusal(text)
    assert (kind, code) == (YamlError, "yaml-syntax")


@pytest.mark.parametrize(
    "text",
    ["a: " + "[" * 17 + "]" * 17 + "\n", "".join(" " * n + "a:\n" for n in range(17)) + " " * 17 + "a: b\n"],
    ids=["flow", "block"],
)
def test_nesting_past_16_is_refused(text: str) -> None:
    assert refusal(text)[:2] == (YamlRefusedError, "yaml-too-deep")


def test_nesting_of_16_is_accepted() -> None:
    value: object = parse_yaml("a: " + "[" * 15 + "]" * 15 + "\n")[0]["a"]
    for _ in range(14):
        assert isinstance(value, list)
        (value,) = value
    assert value == []


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_absurd_nesting_costs_no_recursion(opening: str) -> None:
    assert refusal("a:\n  " + opening * 50_000)[1] in {"yaml-too-deep", "yaml-syntax"}


def test_events_are_counted() -> None:
    many = "a: [" + "b," * 3_990 + "b]\n"
    assert len(parse_yaml(many)[0]["a"]) == 3_991
    assert refusal("a: [" + "b," * 4_000 + "b]\n")[:2] == (YamlRefusedError, "yaml-too-many-events")
    assert refusal("a: [b, c, d]\n", Limits(max_yaml_events=5))[1] == "yaml-too-many-events"


def test_a_value_is_at_most_64_ki_characters_long() -> None:
    assert parse_yaml("a: " + "é" * 65_536 + "\n")[0] == {"a": "é" * 65_536}
    assert refusal("a: " + "b" * 65_537 + "\n")[:2] == (YamlRefusedError, "yaml-scalar-too-long")
    assert refusal("b" * 65_537 + "\n")[1] == "yaml-scalar-too-long"


def test_lines_are_known_for_two_levels_of_keys() -> None:
    text = "a: b\nmetadata:\n  x: 1\n\n  y:\n    z: 2\nlist:\n- k: v\n"
    assert parse_yaml(text)[1] == {"a": 0, "metadata": 1, "metadata.x": 2, "metadata.y": 4, "list": 6}


TREE = st.recursive(
    st.text(
        st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\ufffe\uffff\u2028\u2029"), max_size=12
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abcdef", min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=6), TREE, min_size=1, max_size=4), st.booleans())
def test_whatever_yaml_can_write_is_read_back(values: dict[str, object], flow: bool) -> None:
    text = yaml.dump(values, Dumper=yaml.SafeDumper, default_flow_style=flow, allow_unicode=True)
    assert parse_yaml(text)[0] == values


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('name: one\ndescription: "abc\nlicense: MIT\n', 1),
        ('name: one\ndescription: "abc\nlicense: "MIT"\n', 1),
        ("name: one\ndescription: 'abc\nlicense: MIT\nversion: 'b'\n", 1),
        ('name: "one\ndescription: "abc"\n', 0),
        ("name: one\ndescription: \"abc\nlicense: it's MIT\nversion: 1\n", 1),
        ('name: "one\n  two"\ndescription: a: b\n', 2),
        ('name: one\ndescription: "abc" def\n', 1),
    ],
)
def test_a_quote_that_is_not_closed_is_reported_at_its_own_line(text: str, line: int) -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text)
    assert (caught.value.code, caught.value.line) == ("yaml-syntax", line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a: "x\ny"', 1),
        ("a: 'x\n\ny'", 2),
        ('a: "x\n y"', None),
        ('a: "x\n\n y"', None),
        ('a: "x\n\ty"', 1),
        ('a: "x\n# y"', 1),
        ('m:\n  a: "x\n  y"', 2),
        ('m:\n  a: "x\n   y"', None),
        ('t:\n- "x\ny"', 2),
        ('t:\n- "x\n y"', None),
        ('t:\n  - k: "x\n    y"', 2),
        ("t: [a,\nb]", 1),
        ("t: {a: b,\nc: d}", 1),
        ("t: [a,\n b\n]", None),
        ("t: [a,\n# c\n b]", None),
        ("t: [[\n b\n]]", 2),
        ("m:\n  t: [a,\n   b\n]", 3),
        ("m:\n  t: [a,\nb ]", 2),
        ("m:\n  t: [a,\n   b\n  ]", None),
    ],
)
def test_a_value_that_goes_on_must_be_indented_for_other_readers(text: str, line: int | None) -> None:
    """Each as the YAML parser of the MCP Inspector judges it; PyYAML reads all of them."""
    assert parse_yaml(text)
    assert find_unindented_line(text) == line
