"""The lines of code that read a SKILL.md as another system reads it."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import prowess
from prowess.literals import Mode

Put = Callable[..., Path]

HEAD = "---\nname: pdf\ndescription: Does one thing.\n"
PLAIN = HEAD + "---\nBody.\n"


def parse(text: str) -> prowess.ParsedSkill:
    return prowess.parse_skill(text, check_dir=False)


@pytest.mark.parametrize("before", ["\ufeff", "\n", "\n\n"])
def test_a_host_may_insist_on_the_first_byte(before: str) -> None:
    """S0-2, S3-1: the text itself shows what stands before the dashes, whatever its line ends are."""
    for text in (PLAIN, PLAIN.replace("\n", "\r\n")):
        assert text.split("\n", 1)[0].rstrip("\r") == "---"
        assert parse(before + text).skill.name == "pdf"
        assert (before + text).split("\n", 1)[0].rstrip("\r") != "---"
        assert not (before + text).startswith("---")


def test_blanks_after_the_closing_dashes_stand_before_the_body(put: Put) -> None:
    """S0-5, S1-4: the host checks whether the bytes before the body end with exactly three dashes."""
    exact, loose = put("exact/pdf", text=PLAIN), put("loose/pdf", text=HEAD + "--- \nBody.\n")
    for path, is_exact in ((exact, True), (loose, False)):
        skill = prowess.parse_skill_file(path).skill
        assert path.read_bytes()[: skill.body_offset].rstrip(b"\r\n").endswith(b"\n---") == is_exact


def test_the_offset_alone_will_do(put: Put) -> None:
    """S0-8: a program can read the file again from the offset."""
    path = put("pdf")
    with path.open("rb") as stream:
        _, offset = prowess.parse_frontmatter(stream)
    assert path.read_bytes()[offset:] == b"Do it.\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "skill: no frontmatter"),
        ("# Title\n", "skill: no frontmatter"),
        (HEAD, "skill: unterminated frontmatter"),
        ("---\na: [\n---\n", "skill: parse frontmatter yaml"),
    ],
)
def test_a_host_gives_each_error_of_a_text_its_own_words(text: str, told: str) -> None:
    """S0-11, S1-5: the host has one table from classes to messages, with narrower classes first."""
    words = {
        prowess.NoFrontmatterError: "skill: no frontmatter",
        prowess.UnterminatedFrontmatterError: "skill: unterminated frontmatter",
        prowess.InvalidFrontmatterError: "skill: parse frontmatter yaml",
    }
    with pytest.raises(prowess.SkillValidationError) as caught:
        prowess.parse_frontmatter(io.BytesIO(text.encode()))
    assert next(said for kind, said in words.items() if isinstance(caught.value, kind)) == told


@pytest.mark.parametrize(
    ("name", "description", "told"),
    [
        ("", "d", "skill name is required"),
        ("A", "d", "invalid skill name"),
        ("A" * 65, "d", "invalid skill name"),
        ("a" * 65, "d", "skill name exceeds maximum length"),
        ("a", "", "skill description is required"),
        ("a", "d" * 1025, "skill description exceeds maximum length"),
    ],
)
def test_a_host_gives_each_violation_its_own_words(name: str, description: str, told: str) -> None:
    """S0-15, S1-8, S3-12: a table maps codes to messages. A host that wants only one takes the first issue.

    A name with wrong characters and one that is too long have one code, and the name itself tells them apart.
    """
    is_long = len(name) > prowess.MAX_NAME_LENGTH and name.islower()
    words = {
        "missing-name": "skill name is required",
        "bad-name": "skill name exceeds maximum length" if is_long else "invalid skill name",
        "missing-description": "skill description is required",
        "description-too-long": "skill description exceeds maximum length",
    }
    with pytest.raises(prowess.SkillLoadError) as caught:
        prowess.Frontmatter(name=name, description=description).validate()
    assert words[caught.value.issues[0].code] == told


def test_a_skill_with_a_blank_description_is_made_of_its_parts(put: Put) -> None:
    """S0-16: parse_frontmatter checks nothing, and a catalogue takes the skill that the host makes of the fields."""
    path = put("folder", name="pdf", description="' '")
    assert prowess.scan(path.parent)["pdf"].description == "Do it."
    assert prowess.scan(path.parent, repair=False).names == ()
    with path.open("rb") as stream:
        front, _ = prowess.parse_frontmatter(stream)
    catalog = prowess.Catalog([prowess.Skill(front, path)])
    assert (catalog["pdf"].description, catalog.load_body("pdf")) == ("", "Do it.\n")


def test_a_text_may_be_stripped_before_it_is_parsed() -> None:
    """S1-2: the dashes may then be indented. A byte order mark is not a blank, and the host can refuse it."""
    text = f" \n  {PLAIN}"
    with pytest.raises(prowess.NoFrontmatterError):
        parse(text)
    assert parse(text.strip()).skill.name == "pdf"
    assert f"\ufeff{PLAIN}".strip().startswith("\ufeff")


def test_text_after_the_opening_dashes_may_get_a_line_of_its_own() -> None:
    """S1-3: that system takes this text for YAML, and so does Prowess once it has its own line."""
    text = PLAIN.replace("---\n", "---", 1)
    with pytest.raises(prowess.NoFrontmatterError):
        parse(text)
    assert parse(text.replace("---", "---\n", 1)).skill.name == "pdf"


def test_the_line_ends_of_a_file_stay_in_its_stripped_body(put: Put, tmp_path: Path) -> None:
    """S1-6, S1-23, S1-31: read_body(strip=True) keeps the line ends. Instructions have line feeds."""
    put("pdf", body="\r\nOne.\r\nTwo.\r\n")
    catalog = prowess.scan(tmp_path)
    assert catalog["pdf"].read_body(strip=True) == "One.\r\nTwo."
    assert prowess.Session(catalog).activate("pdf").instructions == catalog.load("pdf").instructions == "One.\nTwo."


@pytest.mark.parametrize(("written", "is_list"), [("Read Bash", False), ("[Read, Bash]", True), ("[Read, 7]", True)])
def test_the_types_of_yaml_tell_a_list_of_tools_from_a_text(written: str, is_list: bool) -> None:
    """S1-9, S3-9: typed() lets a host refuse one text in place of a list, or items that are not text."""
    skill = parse(f"{HEAD}allowed-tools: {written}\n---\nBody.\n").skill
    tools = skill.frontmatter.typed().get("allowed-tools", [])
    assert isinstance(parse(PLAIN).skill.frontmatter.typed().get("allowed-tools", []), list)
    assert isinstance(tools, list) == is_list
    if isinstance(tools, list):
        assert all(isinstance(tool, str) for tool in tools) == ("7" not in written)


def test_a_whole_file_is_parsed_where_its_metadata_are_not_enough(put: Put) -> None:
    """S1-10: parse_skill_file reads the body too, and refuses a body that is not text."""
    path = put("pdf", text=PLAIN.encode() + b"\xff\n")
    assert prowess.read_metadata(path).name == "pdf"
    with pytest.raises(prowess.SkillLoadError):
        prowess.parse_skill_file(path)


@pytest.mark.parametrize(
    ("text", "body"),
    [
        (PLAIN, "Body."),
        (PLAIN.replace("\n", "\r"), "Body."),
        (f"---x{PLAIN[3:]}", "Body."),
        (PLAIN.replace("---\nB", "----\nB"), "-\nBody."),
        ("\ufeff" + PLAIN, None),
        ("\n" + PLAIN, None),
    ],
)
def test_fences_of_another_kind_are_made_whole_lines_by_the_host(text: str, body: str | None) -> None:
    """S2-11: the host replaces line ends, and gives the dashes a line of their own, before the text is parsed."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    fences = re.sub(r"\n---(?=.)", "\n---\n", re.sub(r"\A---.*", "---", text), count=1)
    assert (parse(fences).body if text.startswith("---") else None) == body


def test_the_lines_of_the_frontmatter_are_there_as_they_were_written() -> None:
    """S2-12: a host can read them one by one, with comments and folding marks in the values."""
    head = "name: pdf\ndescription: >\n  Folded.\nlicense: MIT # see\nmetadata:\n  a: b\n"
    front = parse(f"---\n{head}---\n").skill.frontmatter
    assert (front.description.strip(), front.license) == ("Folded.", "MIT")
    lines = front.raw.decode().splitlines()
    assert dict(line.split(": ", 1) for line in lines if line[:1].strip() and ": " in line) == {
        "name": "pdf",
        "description": ">",
        "license": "MIT # see",
    }


def test_what_follows_the_closing_dashes_may_get_a_line_of_its_own() -> None:
    """S3-2: that system lets this text begin the body, and so does Prowess once it has its own line."""
    text = PLAIN.replace("---\nBody", "---Body")
    with pytest.raises(prowess.UnterminatedFrontmatterError):
        parse(text)
    assert parse(re.sub(r"\n---(?=.)", "\n---\n", text, count=1)).body == "Body."


@pytest.mark.parametrize("text", ["Body.\n", "---\na: [\n---\n", "---\n- a\n---\n"])
@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_both_modes_raise_where_nothing_is_repaired(text: str, mode: Mode) -> None:
    """S3-4: repair=False does this. The field of the whole file is empty, and "or" gives another word for it."""
    with pytest.raises(prowess.InvalidFrontmatterError) as caught:
        prowess.parse_skill(text, mode=mode, repair=False)
    assert [issue.field or "_" for issue in caught.value.issues] == ["_"]


def test_what_stands_before_the_first_dashes_may_be_cut_off() -> None:
    """S4-3: an introduction is then ignored, as in that system. Dashes in a value are text."""
    text = f"Introduction.\n{PLAIN}".replace("one thing", "one --- thing")
    with pytest.raises(prowess.NoFrontmatterError):
        parse(text)
    assert parse("---" + text.partition("---")[2]).skill.description == "Does one --- thing."


@pytest.mark.parametrize("mode", ["strict", "lenient"])
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("license: &mine MIT", "yaml-anchor"),
        ("license: !!str MIT", "yaml-tag"),
        ("<<: {license: MIT}", "yaml-merge-key"),
    ],
)
def test_yaml_that_stands_for_something_else_is_refused(line: str, code: str, mode: Mode) -> None:
    """S0-10, S1-5, S3-4, S4-4: these systems resolve it. With the value itself in its place the text is read."""
    with pytest.raises(prowess.InvalidFrontmatterError) as caught:
        prowess.parse_skill(f"{HEAD}{line}\n---\nBody.\n", check_dir=False, mode=mode)
    assert [issue.code for issue in caught.value.issues] == [code]
    written = parse(f"{HEAD}license: MIT\n---\nBody.\n").skill
    assert (written.license, written.frontmatter.license) == ("MIT", "MIT")


def test_blanks_around_a_description_are_in_its_frontmatter() -> None:
    """S0-10, S1-7, S4-4: these systems keep the line end of block text. A listing of Prowess has no use for it."""
    skill = parse("---\nname: pdf\ndescription: |\n  Fills.\n  Reads.\n---\nBody.\n").skill
    assert (skill.description, skill.frontmatter.description) == ("Fills.\nReads.", "Fills.\nReads.\n")


@pytest.mark.parametrize("line", ["tags: [[a]]", "tags: {a: b}", "version: [1]", "model: [a]", "context: {a: b}"])
def test_strict_mode_checks_fields_that_only_prowess_reads(line: str, put: Put, tmp_path: Path) -> None:
    """S1-7, S3-10: these systems do not look at them. Lenient mode loads the skill without them."""
    put("pdf", fields=f"{line}\n")
    with pytest.raises(prowess.SkillLoadError) as caught:
        prowess.scan(tmp_path, mode="strict")
    assert [(issue.code, issue.field) for issue in caught.value.issues] == [("wrong-type", line.partition(":")[0])]
    catalog = prowess.scan(tmp_path, mode="lenient")
    assert catalog.names == ("pdf",)
    assert catalog["pdf"].frontmatter.typed()["name"] == "pdf"


def test_a_frontmatter_that_a_program_makes_is_checked_by_validate() -> None:
    """S4-4: that system checks it when it is made, and knows None where Prowess has an empty string or mapping."""
    blank = prowess.Frontmatter(name=" ", description="")
    with pytest.raises(prowess.SkillLoadError) as caught:
        blank.validate()
    assert {issue.field for issue in caught.value.issues} == {"name", "description"}
    text: Any = "Read Grep"
    front = prowess.Frontmatter(name="pdf", description="Fills.", allowed_tools=text)
    front.validate()
    assert (front.allowed_tools_raw, front.license, dict(front.metadata)) == ("Read Grep", None, {})
    frontmatter, _ = prowess.parse_frontmatter(io.BytesIO(b"---\nname: pdf\ndescription: d\nlicense:\n---\n"))
    assert (frontmatter.license, frontmatter.license or None) == ("", None)
