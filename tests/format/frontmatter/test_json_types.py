"""Frontmatter as JSON with the types of YAML's core schema, and readings of other hosts."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import prowess
from prowess import InvalidFrontmatterError
from prowess.format.frontmatter.json_types import (
    find_differing_fields,
    find_type_issues,
    parse_styled_frontmatter,
    parse_typed_frontmatter,
    read_core_scalar,
)

if TYPE_CHECKING:
    from pathlib import Path

    from prowess.format.frontmatter.json_types import Json


def head(fields: str) -> bytes:
    return f"---\n{fields}\n---\nbody\n".encode()


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1.10", 1.1),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("12", 12),
        ("-7", -7),
        ("0o17", 15),
        ("0x1F", 31),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("yes", "yes"),
        ("no", "no"),
        ("1_000", "1_000"),
        ("2024-01-01", "2024-01-01"),
        ("1.2.3", "1.2.3"),
        ("text", "text"),
        ('"1.10"', "1.10"),
        ("'true'", "true"),
        ("|\n  12", "12\n"),
    ],
)
def test_a_value_has_the_type_that_every_host_gives_it(written: str, value: Json) -> None:
    found = parse_typed_frontmatter(head(f"key: {written}"))["key"]
    assert (found, type(found)) == (value, type(value))


def test_lists_and_mappings_are_typed_all_through() -> None:
    found = parse_typed_frontmatter(head('a: [1, "1", {b: true}]\nc:\n  d: 1.0\n  e: x'))
    assert found == {"a": [1, "1", {"b": True}], "c": {"d": 1.0, "e": "x"}}


@pytest.mark.parametrize("written", [".inf", "-.inf", ".nan", "9" * 5_000])
def test_what_json_cannot_carry_is_refused(written: str) -> None:
    with pytest.raises(InvalidFrontmatterError, match="number"):
        parse_typed_frontmatter(head(f"key: {written}"))


@pytest.mark.parametrize("fields", ["a: &x 1", "a: !!str 1", "a: 1\na: 2", "[a]", "a: [", "a: b\x85c"])
def test_json_keeps_to_the_rules_for_yaml(fields: str) -> None:
    with pytest.raises(InvalidFrontmatterError):
        parse_typed_frontmatter(head(fields))


@given(st.text(alphabet="0123456789.eE+-xoabtrufalsenN~ _", max_size=12).filter(lambda t: t.strip() == t))
def test_the_core_schema_is_json_or_text(text: str) -> None:
    value = read_core_scalar(text)
    if isinstance(value, float) and (value != value or value in {float("inf"), float("-inf")}):  # noqa: PLR0124
        return
    assert json.loads(json.dumps(value)) == value
    assert value == text or not isinstance(value, str)


@pytest.mark.parametrize(
    ("fields", "codes"),
    [
        ("name: pdf\ndescription: x", []),
        ("name: 12\ndescription: true", ["wrong-type", "wrong-type"]),
        ("allowed-tools: [a]", ["wrong-type"]),
        ("metadata: {a: 1, b: x, c: '1'}", ["metadata-not-text"]),
        ("metadata: x", ["wrong-type"]),
    ],
)
def test_fields_that_must_be_text_are_named(fields: str, codes: list[str]) -> None:
    assert [issue.code for issue in find_type_issues(parse_typed_frontmatter(head(fields)))] == codes


FIELDS = 'v: 1.10\nflag: yes\nq: "1"\nlist: [1, 010, off]\nhex: 0x10\nnone:\nmap: {a: on}\nday: 2024-01-01'


def test_each_version_of_yaml_is_a_reading() -> None:
    written = parse_styled_frontmatter(head(FIELDS))
    assert find_differing_fields(written, parse_typed_frontmatter(head(FIELDS))) == ()
    old = yaml.safe_load(FIELDS)
    assert find_differing_fields(written, {**old, "day": str(old["day"])}) == ()
    texts: dict[str, Json] = {"v": "1.10", "flag": "yes", "q": "1", "hex": "0x10", "none": "", "day": "2024-01-01"}
    assert find_differing_fields(written, {**texts, "list": ["1", "010", "off"], "map": {"a": "on"}}) == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("v", 1.2), ("v", True), ("flag", False), ("flag", 1), ("q", 1), ("q", True), ("list", [1, 8]), ("list", 1)),
        *(("map", {"a": False}), ("map", {}), ("none", 0), ("hex", 10), ("day", 2024), ("more", None)),
    ],
)
def test_a_value_that_is_not_a_reading_of_the_written_one_differs(key: str, value: Json) -> None:
    announced = {**parse_typed_frontmatter(head(FIELDS)), key: value}
    assert find_differing_fields(parse_styled_frontmatter(head(FIELDS)), announced) == (key,)


def test_a_field_that_is_missing_differs() -> None:
    announced = parse_typed_frontmatter(head(FIELDS))
    del announced["q"]
    assert find_differing_fields(parse_styled_frontmatter(head(FIELDS)), announced) == ("q",)


@pytest.mark.parametrize(
    "written", ["0x_", "0x__", "0b_", "0b", "-0x_", "+0b__", "0_", "00_", "0x_f", "0b_1", "1_", "-1_0"]
)
def test_a_number_of_yaml_1_1_is_read_as_one_or_stays_text(written: str) -> None:
    """A server may announce a number for a field that a lenient reader would take for one."""
    styled = parse_styled_frontmatter(head(f"foo: {written}"))
    try:
        number = yaml.safe_load(f"foo: {written}")["foo"]
    except ValueError:  # PyYAML itself stumbles over a prefix without digits
        number = written
    assert find_differing_fields(styled, {"foo": number}) == ()
    assert find_differing_fields(styled, {"foo": 4711}) == ("foo",)


SCALARS = st.text(alphabet="0123456789.eE+-xXobBaAfF_:~nulltrueyesonoff \t\"'[]{},#&*!|>%@`\u0661\ud7ff", max_size=10)


@given(st.lists(SCALARS, max_size=4), st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5))
def test_any_scalar_is_typed_compared_or_refused_with_a_typed_error(scalars: list[str], announced: Json) -> None:
    data = head("\n".join(f"key{number}: {text}" for number, text in enumerate(scalars)))
    try:
        styled = parse_styled_frontmatter(data)
        find_differing_fields(styled, dict.fromkeys(styled, announced))
        typed = parse_typed_frontmatter(data)
    except InvalidFrontmatterError:
        return
    assert find_differing_fields(styled, typed) == ()
    assert json.loads(json.dumps(typed, allow_nan=False)) == typed


# -- the fields of a head ----------------------------------------------------------------------------------------------


def typed(text: str, **options: object) -> dict[str, object]:
    return dict(prowess.parse_skill(text, **options).skill.frontmatter.typed())  # type: ignore[arg-type]


def test_the_fields_of_a_head_have_yamls_types_wherever_it_was_read(tmp_path: Path) -> None:
    text = "---\r\nname: 123\r\ndescription: d\r\nversion: 1.10\r\n---\r\nBody.\r\n"
    expected = {"name": 123, "description": "d", "version": 1.1}
    file = tmp_path / "123" / "SKILL.md"
    file.parent.mkdir()
    for written in (text, text.replace("\r", "")):
        file.write_bytes(written.encode())
        skill = prowess.scan(tmp_path)["123"]
        for front in (skill.frontmatter, skill.peek(), skill.load().skill.frontmatter):
            assert front.typed() == expected
        assert typed(written) == prowess.read_metadata(file).frontmatter.typed() == expected
        assert prowess.parse_frontmatter(io.BytesIO(written.encode()))[0].typed() == expected


def test_a_head_that_was_mended_has_texts() -> None:
    text = "---\nname: a\ndescription: b: c\nversion: 1.10\nmetadata: {k: '1'}\nallowed-tools: Read\ntags: [x]\n---\n"
    assert typed(text, mode="lenient") == {
        "name": "a",
        "description": "b: c",
        "version": "1.10",
        "metadata": {"k": "1"},
        "allowed-tools": "Read",
        "tags": ["x"],
    }
    assert typed("---\nname: a\ndescription: # Title\nn: 1\n---\n", mode="lenient") == {
        "name": "a",
        "description": "# Title",
        "n": 1,
    }


def test_fields_that_a_program_made_have_texts() -> None:
    front = prowess.Frontmatter(name="a", description="b", tags=("x",), model="m", extra={"n": "1"})
    assert front.typed() == {"name": "a", "description": "b", "tags": ["x"], "model": "m", "n": "1"}


@pytest.mark.parametrize("number", [".inf", "-.INF", ".nan", "1" * 400, "1e999"])
def test_a_number_that_json_cannot_carry_stays_the_text_that_was_written(number: str) -> None:
    found = typed(f"---\nname: a\ndescription: b\nn: {number}\n---\n")
    assert found["n"] == number
    assert json.loads(json.dumps(found, allow_nan=False)) == found
