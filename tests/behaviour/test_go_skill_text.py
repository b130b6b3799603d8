"""How the Go package ``skill`` (S0) reads a SKILL.md: where the frontmatter is, what it says, what validation finds."""

import io
import os
from typing import Literal

import pytest

import prowess


def head(text: str) -> prowess.Frontmatter:
    return prowess.parse_frontmatter(io.BytesIO(text.encode()))[0]


def codes(error: prowess.SkillLoadError) -> list[str]:
    return [issue.code for issue in error.issues]


def violations(front: prowess.Frontmatter) -> list[str]:
    with pytest.raises(prowess.SkillLoadError) as caught:
        front.validate()
    return codes(caught.value)


# -- where the frontmatter is ------------------------------------------------------------------------------------------


def test_name_description_tags_and_version_are_read_and_other_keys_kept() -> None:
    """S0-1: four fields are known here; a key that is not known is not an error and stays readable."""
    front = head("---\nname: pdf\ndescription: Fills forms.\ntags: [a, b]\nversion: 1.10\nmood: calm\n---\n")
    assert (front.name, front.description, front.tags, front.version) == ("pdf", "Fills forms.", ("a", "b"), "1.10")
    assert front.extra == {"tags": ["a", "b"], "version": "1.10", "mood": "calm"}
    front.validate()


@pytest.mark.parametrize("before", ["", "\n", " \n\r\n", "\ufeff", "\ufeff\n"])
@pytest.mark.parametrize("after", ["", " ", "\t ", "\r"])
def test_the_first_line_that_is_not_blank_opens(before: str, after: str) -> None:
    """S0-2: blank lines or a byte order mark may precede the dashes, and blanks may follow them."""
    assert head(f"{before}---{after}\nname: pdf\n---\n").name == "pdf"


@pytest.mark.parametrize("blank_lines", [4091, 4092, 4093, 5000])
def test_the_opening_dashes_may_stand_wherever_a_read_ends(blank_lines: int) -> None:
    """S0-2: a file is read in steps, and where one of them ends makes no difference."""
    data = b"\n" * blank_lines + b"---\nname: pdf\n---\nBody."
    front, offset = prowess.parse_frontmatter(io.BytesIO(data))
    assert (front.name, data[offset:]) == ("pdf", b"Body.")


@pytest.mark.parametrize("first", ["# Title", " ---", "----", "--- x", "--", "name: pdf"])
def test_any_other_first_line_is_not_frontmatter(first: str) -> None:
    """S0-2: text, indented dashes, more dashes or dashes with text do not open."""
    with pytest.raises(prowess.NoFrontmatterError):
        head(f"{first}\nname: pdf\n---\n")


@pytest.mark.parametrize("text", ["", "\n", " \n\n"])
def test_empty_input_has_no_frontmatter(text: str) -> None:
    """S0-3: nothing at all is missing frontmatter, not frontmatter that is not closed."""
    with pytest.raises(prowess.NoFrontmatterError):
        head(text)


@pytest.mark.parametrize("text", ["---", "---\n", "---\nname: pdf", "---\nname: pdf\n", "---\nname: pdf\n\nBody.\n"])
def test_frontmatter_that_is_not_closed_is_its_own_error(text: str) -> None:
    """S0-4: the end of the text before closing dashes is an unterminated frontmatter."""
    with pytest.raises(prowess.UnterminatedFrontmatterError):
        head(text)


def test_closing_dashes_may_end_the_file_without_a_line_end() -> None:
    """S0-4: the offset is then the length of the file, and the body is empty."""
    text = "---\nname: pdf\ndescription: Fills forms.\n---"
    stream = io.BytesIO(text.encode())
    assert prowess.parse_frontmatter(stream)[1] == len(text)
    assert prowess.parse_skill(text).body == ""


@pytest.mark.parametrize("line", ["----", "--- x", " ---", "---x", "--", "- --"])
def test_only_a_line_of_three_dashes_closes(line: str) -> None:
    """S0-5: more dashes, dashes with text and indented dashes do not close."""
    with pytest.raises(prowess.UnterminatedFrontmatterError):
        head(f"---\nname: pdf\n{line}\n")


@pytest.mark.parametrize("line", ["---", "--- ", "---\t", "---\r"])
def test_blanks_after_the_closing_dashes_are_allowed(line: str) -> None:
    """S0-5: nobody sees them, and the body begins on the next line."""
    stream = io.BytesIO(f"---\nname: pdf\n{line}\nBody.".encode())
    prowess.parse_frontmatter(stream)
    assert stream.read() == b"Body."


def test_dashes_at_the_margin_close_even_below_block_text() -> None:
    """S0-5: a line of dashes ends the frontmatter whatever YAML construct is open; indented ones are text."""
    front, offset = prowess.parse_frontmatter(io.BytesIO(b"---\ndescription: |\n  one\n  ---\n---\n  two\n---\n"))
    assert front.description == "one\n---\n"
    assert offset == len(b"---\ndescription: |\n  one\n  ---\n---\n")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_offset_counts_bytes_up_to_the_body(end: str) -> None:
    """S0-6: it includes the closing line with its line end, whatever that is, and characters of several bytes."""
    data = end.join(["---", "name: pdf", "description: Füllt 申請書 aus.", "---", "Body."]).encode()
    _, offset = prowess.parse_frontmatter(io.BytesIO(data))
    assert data[offset:] == b"Body."


@pytest.mark.parametrize("text", ["# Title\n", "---\nname: pdf\n", "---\nname: [\n---\n", "---\n- a\n---\n"])
def test_an_error_gives_nothing_and_leaves_the_stream_where_it_was(text: str) -> None:
    """S0-7: there is no half-read result, and the stream may be read again from its start."""
    stream = io.BytesIO(text.encode())
    with pytest.raises(prowess.InvalidFrontmatterError):
        prowess.parse_frontmatter(stream)
    assert stream.tell() == 0


def test_a_seekable_stream_is_left_at_the_body() -> None:
    """S0-8: the next read gives the first byte of the body, also when parsing began in mid-stream."""
    stream = io.BytesIO(b"junk---\nname: pdf\n---\nBody.\n")
    stream.seek(4)
    _, offset = prowess.parse_frontmatter(stream)
    assert (stream.read(), offset) == (b"Body.\n", 18)


def test_a_pipe_is_left_at_the_body() -> None:
    """S0-8: of a stream that cannot seek, not one byte of the body is read."""
    reader, writer = os.pipe()
    os.write(writer, b"---\nname: pdf\n---\nBody.\nMore.\n")
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        front, offset = prowess.parse_frontmatter(stream)
        assert (front.name, offset, stream.read()) == ("pdf", 18, b"Body.\nMore.\n")


def test_parsing_does_not_validate() -> None:
    """S0-9: fields that break every rule are read as they are; only validation complains."""
    front = head("---\nname: Not A Name!\n---\n")
    assert (front.name, front.description) == ("Not A Name!", "")
    assert violations(front) == ["bad-name", "missing-description"]


# -- YAML --------------------------------------------------------------------------------------------------------------


def test_numbers_and_booleans_in_text_fields_are_the_text_that_was_written() -> None:
    """S0-10: no value is converted on its way into a text field."""
    front = head("---\nname: 123\ndescription: yes\nversion: 1.10\n---\n")
    assert (front.name, front.description, front.version) == ("123", "yes", "1.10")


def test_a_key_without_a_value_is_empty_text() -> None:
    """S0-10: nothing after the colon leaves the field empty; the word null is text like any other."""
    assert (head("---\nname:\n---\n").name, head("---\nname: null\n---\n").name) == ("", "null")


def test_tags_may_be_written_as_one_text() -> None:
    """S0-10: a text instead of a list of tags is split at its commas."""
    assert head("---\ntags: a, b c\n---\n").tags == ("a", "b c")


@pytest.mark.parametrize("value", ["[a]", "{a: b}"])
def test_a_list_in_a_text_field_is_empty_until_it_is_validated(value: str) -> None:
    """S0-10: what was written is in typed()."""
    front, _ = prowess.parse_frontmatter(io.BytesIO(f"---\nname: {value}\ndescription: d\n---\n".encode()))
    assert (front.name, isinstance(front.typed()["name"], str)) == ("", False)
    with pytest.raises(prowess.SkillLoadError):
        front.validate()


@pytest.mark.parametrize("text", ["name: pdf\nname: pdf\n", "name: [\n", "- name\n", "name: 'pdf\n"])
def test_yaml_that_is_wrong_is_an_error(text: str) -> None:
    """S0-10: bad syntax, a repeated key or anything but a mapping is invalid frontmatter."""
    with pytest.raises(prowess.InvalidFrontmatterError):
        head(f"---\n{text}---\n")


def test_the_two_ways_of_having_no_frontmatter_can_be_told_apart() -> None:
    """S0-11: by class and by code."""
    with pytest.raises(prowess.NoFrontmatterError) as missing:
        head("Body.\n")
    with pytest.raises(prowess.UnterminatedFrontmatterError) as unclosed:
        head("---\nname: pdf\n")
    assert (missing.value.code, unclosed.value.code) == ("no-frontmatter", "unterminated-frontmatter")


# -- validation --------------------------------------------------------------------------------------------------------


def test_validation_reports_every_violation_names_first() -> None:
    """S0-12: one error carries them all."""
    front = prowess.Frontmatter(name="B" * 65, description="d" * 1025, compatibility=" ")
    assert violations(front) == ["bad-name", "bad-name", "description-too-long", "blank-field"]


@pytest.mark.parametrize("name", ["a_b", "-a", "a-", "a--b", "_"])
def test_names_beyond_the_specification_load_with_a_warning(name: str) -> None:
    """S0-13: underscores and stray hyphens are violations; lenient loading keeps the name and says so."""
    assert violations(prowess.Frontmatter(name=name, description="d")) == ["bad-name"]
    parsed = prowess.parse_skill(f"---\nname: {name}\ndescription: d\n---\nBody.\n", mode="lenient")
    assert parsed.skill.name == name
    assert [(issue.code, issue.severity) for issue in parsed.issues] == [("bad-name", "warning")]


@pytest.mark.parametrize("name", ["A", "a b", "a.b", "ä", ""])
def test_names_outside_the_characters_are_violations(name: str) -> None:
    """S0-13: capitals, blanks, dots and letters beyond ASCII are not allowed."""
    assert violations(prowess.Frontmatter(name=name, description="d")) == ["bad-name" if name else "missing-name"]


def test_lengths_are_counted_in_characters() -> None:
    """S0-14: 64 for the name and 1,024 for the description, however many bytes that is."""
    assert (prowess.MAX_NAME_LENGTH, prowess.MAX_DESCRIPTION_LENGTH) == (64, 1024)
    prowess.Frontmatter(name="n" * 64, description="書" * 1024).validate()
    assert violations(prowess.Frontmatter(name="n" * 65, description="書" * 1025)) == [
        "bad-name",
        "description-too-long",
    ]


@pytest.mark.parametrize(
    ("name", "description", "code", "field"),
    [
        ("", "d", "missing-name", "name"),
        ("A", "d", "bad-name", "name"),
        ("a" * 65, "d", "bad-name", "name"),
        ("a", "", "missing-description", "description"),
        ("a", "d" * 1025, "description-too-long", "description"),
    ],
)
def test_each_violation_has_a_code_and_a_field(name: str, description: str, code: str, field: str) -> None:
    """S0-15: a program sees which rule was broken and where without reading the message."""
    with pytest.raises(prowess.SkillLoadError) as caught:
        prowess.Frontmatter(name=name, description=description).validate()
    assert [(issue.code, issue.field) for issue in caught.value.issues] == [(code, field)]


@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_a_blank_description_is_a_missing_one(mode: Literal["strict", "lenient"]) -> None:
    """S0-16: blanks tell a model nothing, so such a file makes no skill in either mode."""
    with pytest.raises(prowess.SkillLoadError) as caught:
        prowess.parse_skill('---\nname: pdf\ndescription: "  "\n---\n', mode=mode)
    assert codes(caught.value) == ["missing-description"]


def test_the_name_is_the_folders_unless_that_is_not_checked() -> None:
    """S0-16, S1-7: another one is a violation, for lenient loading a warning, and nothing with check_dir=False."""
    text = "---\nname: pdf\ndescription: d\n---\nBody.\n"
    with pytest.raises(prowess.SkillLoadError) as caught:
        prowess.parse_skill(text, "/skills/forms/SKILL.md")
    assert codes(caught.value) == ["name-mismatch"]
    parsed = prowess.parse_skill(text, "/skills/forms/SKILL.md", mode="lenient")
    assert (parsed.skill.name, [issue.code for issue in parsed.issues]) == ("pdf", ["name-mismatch"])
    assert prowess.parse_skill(text, "/skills/forms/SKILL.md", check_dir=False).issues == ()


def test_a_line_end_after_the_name_is_part_of_it() -> None:
    """S0-17: the whole name must match, so a trailing line feed is a violation."""
    front = head("---\nname: |\n  pdf\ndescription: d\n---\n")
    assert front.name == "pdf\n"
    assert violations(front) == ["bad-name"]
