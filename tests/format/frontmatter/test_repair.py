"""What real files get wrong is read as its author meant it, each repair under its own code and line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess.errors import InvalidFrontmatterError
from prowess.format.frontmatter.parse import ParsedHead, parse_head
from prowess.format.frontmatter.repair import MAX_ENTRIES, repair_yaml
from prowess.format.frontmatter.yaml_events import YamlError, parse_yaml
from prowess.hints import HINTS
from prowess.limits import DEFAULT_LIMITS


def repaired(rows: str) -> ParsedHead:
    """What lenient mode makes of ``rows``, which strict mode must refuse."""
    head = f"---\n{rows}---\nbody\n".encode()
    with pytest.raises(InvalidFrontmatterError):
        parse_head(head)
    with pytest.raises(InvalidFrontmatterError):
        parse_head(head, lenient=True)
    return parse_head(head, lenient=True, repair=True)


def repairs(head: ParsedHead) -> list[tuple[str, str, int]]:
    assert all(issue.severity == "warning" and issue.hint == HINTS[issue.code] for issue in head.issues)
    return [(issue.code, issue.field, issue.line) for issue in head.issues]


@pytest.mark.parametrize(
    ("written", "code", "text"),
    [
        ("Use when: always", "repaired-colon", "Use when: always"),
        ("a: b: c", "repaired-colon", "a: b: c"),
        ("Ends with a colon:", "repaired-colon", "Ends with a colon:"),
        ("First: one\n  second: two", "repaired-colon", "First: one second: two"),
        ("First: one\n\n  second: two", "repaired-colon", "First: one\nsecond: two"),
        ("First: one # not a comment", "repaired-colon", "First: one # not a comment"),
        ("Says: \"yes\" and 'no'", "repaired-colon", "Says: \"yes\" and 'no'"),
        ("> Text here", "repaired-block-text", "Text here"),
        ("> Text here\n  goes on", "repaired-block-text", "Text here goes on"),
        (
            ">- Text here: with a colon\n  goes on\n\n  and on",
            "repaired-block-text",
            "Text here: with a colon goes on\nand on",
        ),
        ("| Text here\n  goes on", "repaired-block-text", "Text here\ngoes on"),
        ("|- Text here", "repaired-block-text", "Text here"),
        (">+ Text", "repaired-block-text", "Text"),
        ("*bold* text", "repaired-leading-character", "*bold* text"),
        ("**Bold** text", "repaired-leading-character", "**Bold** text"),
        ("*text", "repaired-leading-character", "*text"),
        ("& more", "repaired-leading-character", "& more"),
        ("@mention someone", "repaired-leading-character", "@mention someone"),
        ("`code` first", "repaired-leading-character", "`code` first"),
        ("%d files", "repaired-leading-character", "%d files"),
        ("{{name}} does it", "repaired-leading-character", "{{name}} does it"),
        ("{{name}}", "repaired-leading-character", "{{name}}"),
        ("{{ name }}: does it", "repaired-leading-character", "{{ name }}: does it"),
        ("[a] [b]", "repaired-brackets", "[a] [b]"),
        ("[a] and text", "repaired-brackets", "[a] and text"),
        ("[never closed", "repaired-brackets", "[never closed"),
        ('"never closed', "repaired-quotes", "never closed"),
        ("'never closed", "repaired-quotes", "never closed"),
        ('"quoted" and more', "repaired-quotes", '"quoted" and more'),
        ("'quoted' and more", "repaired-quotes", "'quoted' and more"),
        ("'it's here'", "repaired-quotes", "it's here"),
        ('"she said "yes" twice"', "repaired-quotes", 'she said "yes" twice'),
        ('"never: closed\n  goes on', "repaired-quotes", "never: closed goes on"),
    ],
)
@pytest.mark.parametrize(
    "around", ["name: a\ndescription: {}\nlicense: MIT\n", "name: a\nlicense: MIT\ndescription: {}\n"]
)
def test_a_repaired_description_is_the_authors_text_whole(written: str, code: str, text: str, around: str) -> None:
    rows = around.replace("{}", written)
    found = repaired(rows)
    assert found.front.description == text
    assert (found.front.name, found.front.license) == ("a", "MIT")
    assert repairs(found) == [(code, "description", 2 + rows[: rows.index("description")].count("\n"))]


@pytest.mark.parametrize(
    ("written", "value"),
    [('"value"', "value"), ("'value'", "value"), ("'it''s'", "it's")],
)
def test_a_missing_blank_after_the_colon_is_repaired(written: str, value: str) -> None:
    found = repaired(f"name: a\ndescription:{written}\nlicense: MIT\n")
    assert (found.front.name, found.front.description, found.front.license) == ("a", value, "MIT")
    assert repairs(found) == [("repaired-missing-blank", "description", 3)]


def test_every_blank_may_be_missing() -> None:
    found = repaired('name:"a"\ndescription:"b"\n')
    assert (found.front.name, found.front.description) == ("a", "b")
    assert repairs(found) == [("repaired-missing-blank", "name", 2), ("repaired-missing-blank", "description", 3)]


def test_brackets_in_an_argument_hint_are_text() -> None:
    found = repaired("name: a\ndescription: b\nargument-hint: [file] [format]\n")
    assert found.front.extra == {"argument-hint": "[file] [format]"}
    assert repairs(found) == [("repaired-brackets", "argument-hint", 4)]


@pytest.mark.parametrize(
    "written",
    ['{"a": "b"', '{"a": "b" "c": "d"}', '{"a": b": "c"}', '{"a": "b"}}', "{a: {b: [c}"],
)
def test_broken_json_in_metadata_is_kept_as_text(written: str) -> None:
    found = repaired(f"name: a\ndescription: b\nmetadata: {written}\n")
    assert repairs(found) == [("repaired-metadata", "metadata", 4)]
    assert found.front.extra == {"metadata": written}
    assert found.front.description == "b"


def test_metadata_with_a_comma_too_many_is_mended() -> None:
    found = repaired('name: a\ndescription: b\nmetadata: {"a": "b", "c": "d",,}\n')
    assert repairs(found) == [("repaired-metadata", "metadata", 4)]
    assert found.front.metadata == {"a": "b", "c": "d"}


def test_an_entry_of_a_nested_block_is_mended_alone() -> None:
    found = repaired("name: a\ndescription: b\nmetadata:\n  author: x\n  note: see: here\n  version: 1.10\n")
    assert found.front.metadata == {"author": "x", "note": "see: here", "version": "1.10"}
    assert ("repaired-colon", "metadata.note", 6) in repairs(found)


def test_each_broken_entry_is_repaired_and_the_others_stay() -> None:
    found = repaired("name: a\ndescription: b: c\ntags: [x, y]\nlicense: @x\nmetadata:\n  k: v\n")
    assert (found.front.description, found.front.license) == ("b: c", "@x")
    assert (found.front.tags, found.front.metadata) == (("x", "y"), {"k": "v"})
    assert repairs(found) == [("repaired-colon", "description", 3), ("repaired-leading-character", "license", 5)]


def test_comments_between_broken_entries_are_left_out() -> None:
    found = repaired("# about\nname: a\n# more\ndescription: b: c\n# end\n")
    assert (found.front.name, found.front.description) == ("a", "b: c")


def test_a_description_that_yaml_takes_for_a_comment_is_read() -> None:
    found = parse_head(b"---\nname: a\ndescription: # Title of it\n---\nbody", lenient=True, repair=True)
    assert found.front.description == "# Title of it"
    assert repairs(found) == [("repaired-leading-character", "description", 3)]


def test_lines_of_every_key_are_known_after_a_repair() -> None:
    found = repaired("name: a\n\ndescription: b: c\n  d\nlicense: MIT\n")
    assert {key: found.front.lines[key] for key in ("name", "description", "license")} == {
        "name": 2,
        "description": 4,
        "license": 6,
    }


# -- what is never repaired --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ("name: a\ndescription: &x b\n", "yaml-anchor"),
        ("name: a\ndescription: b: c\nlicense: &x d\n", "yaml-anchor"),
        ("x: &x y\nname: a\ndescription: *x\n", "yaml-anchor"),
        ("name: a\ndescription: b: c\nmetadata:\n  k: &x v\n", "yaml-anchor"),
        ("name: a\ndescription: &x b: c\n", "yaml-anchor"),
        ("name: a\ndescription: !!str b\n", "yaml-tag"),
        ("name: a\ndescription: b: c\nlicense: !local d\n", "yaml-tag"),
        ("name: a\ndescription: b: c\nmetadata: !!python/object/apply:os.system ['true']\n", "yaml-tag"),
        ("name: a\ndescription: b\nname: c\n", "yaml-duplicate-key"),
        ("name: a\ndescription: b: c\nname: d\n", "yaml-duplicate-key"),
        ("name: a\ndescription: b: c\ndescription: d\n", "yaml-duplicate-key"),
        ("name: a\ndescription: b: c\nmetadata:\n  k: v\n  k: w\n", "yaml-duplicate-key"),
        ("name: a\ndescription: b: c\nmetadata: {k: v, k: w}\n", "yaml-duplicate-key"),
        ("%YAML 1.1\nname: a\ndescription: b\n", "yaml-directive"),
        ("%YAML 1.1\nname: a\ndescription: b: c\n", "yaml-directive"),
        ("%TAG ! tag:x,2020:\nname: a\ndescription: b\n", "yaml-directive"),
        ("name: a\ndescription: b\n<<: {c: d}\n", "yaml-merge-key"),
        ("name: a\n<<: *x\ndescription: b\n", "yaml-merge-key"),
        ("name: a\ndescription: b: c\n<<: {c: d}\n", "yaml-merge-key"),
        ("name: a\ndescription: b: c\nmetadata:\n  <<: {c: d}\n", "yaml-merge-key"),
        ("name: a\ndescription: b\n? [a, b]\n: c\n", "yaml-complex-key"),
        ("name: a\ndescription: b: c\n? [a, b]\n: d\n", "yaml-complex-key"),
        ("name: a\ndescription: > b\n  c\n? [a, b]\n: d\n", "yaml-complex-key"),
        ("name: a\ndescription: >\n  b\n? [a, b]\n: d\n", "yaml-complex-key"),
        ("name: a\ndescription: |\n  b\n?\n  - c\n: d\n", "yaml-complex-key"),
        ("name: a\ndescription: b: c\n? |\n  d\n: e\n", "yaml-complex-key"),
        ("name: a\ndescription: b: c\n[d, e]: f\n", "yaml-complex-key"),
        ("name: a\ndescription: b: c\n{d: e} : f\n", "yaml-complex-key"),
        ("? [a]\n: b\nname: a\ndescription: b: c\n", "yaml-complex-key"),
        ("name: a\ndescription: b: c\nmetadata:\n  ? [d]\n  : e: f\n", "yaml-complex-key"),
        ("name: a\ndescription: b: c\nmetadata: " + "[" * 20 + "]" * 20 + "\n", "yaml-too-deep"),
        ('name: a\ndescription: "b\\ud800c"\n', "yaml-surrogate"),
        ('name: a\ndescription: b: c\nlicense: "\\uDFFF"\n', "yaml-surrogate"),
    ],
)
def test_what_the_rules_refuse_is_refused_in_lenient_mode_too(rows: str, code: str) -> None:
    head = f"---\n{rows}---\nbody\n".encode()
    for repair in (False, True):
        with pytest.raises(InvalidFrontmatterError) as caught:
            parse_head(head, lenient=True, repair=repair)
    assert [issue.code for issue in caught.value.issues] == [code]


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ("name: a\ndescription: b: c\nlicense: &x d\n", 4),
        ("name: a\ndescription: b: c\nlicense: !local d\n", 4),
        ("name: a\ndescription: b: c\nmetadata:\n  k: v\n  k: w\n", 6),
        ("name: a\ndescription: b: c\nname: d\n", 4),
        ("name: a\ndescription: b: c\n? [d]\n: e\n", 4),
        ("name: a\ndescription: b: c\nmetadata:\n  ? [d]\n  : e: f\n", 5),
        ("name: a\ndescription: b: c\nmetadata:\n  k: v: w\n  ? [d]\n  : e\n", 6),
    ],
)
def test_a_refusal_met_while_repairing_points_to_its_line(rows: str, line: int) -> None:
    with pytest.raises(InvalidFrontmatterError) as caught:
        parse_head(f"---\n{rows}---\nbody\n".encode(), lenient=True, repair=True)
    assert [issue.line for issue in caught.value.issues] == [line]


@pytest.mark.parametrize("line", ["  ? [a, b]", "?really", "  [a, b]: c", "[a, b] c", "[a] (b): c", "what? [a]: b"])
def test_a_line_of_text_that_only_resembles_a_complex_key_stays_text(line: str) -> None:
    head = parse_head(f"---\nname: a\ndescription: b: c\n{line}\n---\n".encode(), lenient=True, repair=True)
    assert head.front.description == f"b: c {line.strip()}"


@pytest.mark.parametrize("rows", ["just text\n", "[a: b\n", '"a\n', "\tname: a\n", "{{\n", ": b\n"])
def test_text_without_any_entry_is_not_repaired(rows: str) -> None:
    with pytest.raises(InvalidFrontmatterError):
        parse_head(f"---\n{rows}---\nbody\n".encode(), lenient=True, repair=True)


def test_a_mass_of_entries_is_not_repaired() -> None:
    rows = "".join(f"k{n}: v: w\n" for n in range(MAX_ENTRIES + 1))
    with pytest.raises(YamlError, match="too many entries"):
        repair_yaml(rows, DEFAULT_LIMITS)


# -- any text ----------------------------------------------------------------------------------------------------------

VALUE = st.text(
    st.characters(exclude_categories=["C", "Z"]) | st.sampled_from(" :#'\"[]{}*&!>|%@`-"), min_size=1, max_size=30
)


def is_yaml(text: str) -> bool:
    try:
        parse_yaml(text)
    except YamlError:
        return False
    return True


@given(VALUE)
def test_a_repaired_line_keeps_every_character_but_the_quotes_around_it(value: str) -> None:
    value = " ".join(value.split())
    rows = f"name: a\ndescription: {value}\n"
    if not value or value[:1] in {">", "|", "#"} or is_yaml(rows):
        return
    try:
        found = parse_head(f"---\n{rows}---\nbody\n".encode(), lenient=True, repair=True)
    except InvalidFrontmatterError as error:
        refused = error.issues[0].code
    else:
        refused = ""
    assert refused != "yaml-syntax", "one line with a known key can always be read"
    if refused:
        return
    assert found.front.name == "a"
    got = found.front.description
    assert got in {value, value[1:-1], value[1:].lstrip()}
    assert got == value or value[0] in "\"'"
    assert len(found.issues) == 1


@given(
    st.lists(st.sampled_from(["name: a", "b: c: d", "e: *f", "g: [h", "- i", "  j: k", "l", "", "'m", "n: 'o", "#p"]))
)
def test_every_repair_leaves_an_issue(rows: list[str]) -> None:
    text = "\n".join(rows) + "\n"
    if is_yaml(text):
        return
    try:
        found = parse_head(f"---\n{text}---\nbody\n".encode(), lenient=True, repair=True)
    except InvalidFrontmatterError:
        return
    assert found.issues, "text that is not YAML was accepted in silence"
