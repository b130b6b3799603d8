"""One skill in llm_agents_from_scratch (S4): its text, its body, its files, its entry in a listing, its errors."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]


def skill_text(fields: str, body: str = "Body.\n") -> str:
    return f"---\n{fields}---\n{body}"


def test_a_skill_is_made_of_frontmatter_location_and_scope(put: Put) -> None:
    """S4-1: the location is the absolute path of its SKILL.md, as it was given."""
    path = put("pdf")
    front = prowess.Frontmatter(name="pdf", description="Fills forms.")
    skill = prowess.Skill(front, path, prowess.SkillScope.USER)
    assert (skill.frontmatter, skill.location, skill.path) == (front, str(path), path)
    assert skill.scope is prowess.SkillScope.USER
    assert {scope.value for scope in prowess.SkillScope} == {"project", "user"}


def test_a_location_keeps_the_links_of_its_root(put: Put, tmp_path: Path) -> None:
    """S4-1: people find the skill where they put it, not where a link leads."""
    put("real/pdf")
    (tmp_path / "root").symlink_to("real")
    assert prowess.scan(tmp_path / "root")["pdf"].location == str(tmp_path / "root/pdf/SKILL.md")


def test_dashes_inside_a_value_are_text() -> None:
    """S4-3: only whole lines of dashes are fences, and later ones belong to the body."""
    parsed = prowess.parse_skill(skill_text("name: pdf\ndescription: a --- b\n", "One.\n---\nTwo.\n"))
    assert (parsed.skill.description, parsed.body) == ("a --- b", "One.\n---\nTwo.")


def test_text_before_the_dashes_hides_the_frontmatter_and_a_byte_order_mark_does_not() -> None:
    """S4-3: a paragraph above a pair of dashed lines does not turn what is between them into fields."""
    text = skill_text("name: pdf\ndescription: d\n")
    assert prowess.parse_skill("\ufeff" + text).skill.name == "pdf"
    with pytest.raises(prowess.NoFrontmatterError):
        prowess.parse_skill("An introduction.\n\n" + text, mode="lenient")


@pytest.mark.parametrize("text", ["name: pdf\ndescription: d\n", "---\nname: pdf\ndescription: d\n"])
def test_fewer_than_two_lines_of_dashes_are_invalid_frontmatter(text: str) -> None:
    """S4-3: whichever of the two is missing."""
    with pytest.raises(prowess.InvalidFrontmatterError):
        prowess.parse_skill(text)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("description: d\n", "missing-name"),
        ("name: '  '\ndescription: d\n", "missing-name"),
        ("name: pdf\n", "missing-description"),
        ("name: pdf\ndescription: '  '\n", "missing-description"),
        ("name: pdf\nname: pdf\ndescription: d\n", "yaml-duplicate-key"),
        ("name: pdf\ndescription: d\nmetadata: {v: {w: x}}\n", "metadata-not-text"),
    ],
)
def test_required_fields_are_there_and_not_blank(fields: str, code: str) -> None:
    """S4-4: nor may a key be written twice, or a metadata value be anything but text."""
    with pytest.raises(prowess.SkillLoadError) as caught:
        prowess.parse_skill(skill_text(fields))
    assert caught.value.code == code


@pytest.mark.parametrize("fields", ["description: d\n", "name: pdf\n", "name: pdf\ndescription: ' '\n", "name: [a]\n"])
def test_a_missing_name_or_description_is_invalid_frontmatter(fields: str, put: Put, tmp_path: Path) -> None:
    """S4-4, S4-19: however the file is read, and with every other violation beside it."""
    path = put("pdf", text=skill_text(f"{fields}license: ''\n"))
    text = path.read_text(encoding="utf-8")
    reads: list[Callable[[], object]] = [
        lambda: prowess.parse_skill(text),
        lambda: prowess.parse_skill_file(path),
        lambda: prowess.read_metadata(path),
        lambda: prowess.scan(tmp_path, mode="strict"),
        prowess.parse_frontmatter(io.BytesIO(text.encode()))[0].validate,
    ]
    for read in reads:
        with pytest.raises(prowess.InvalidFrontmatterError) as caught:
            read()
        assert "blank-field" in [issue.code for issue in caught.value.issues]


def test_a_bad_name_is_not_invalid_frontmatter() -> None:
    """S4-19: what is there and breaks a rule is a load error like any other."""
    with pytest.raises(prowess.SkillLoadError) as caught:
        prowess.parse_skill(skill_text("name: Bad\ndescription: d\n"))
    assert not isinstance(caught.value, prowess.InvalidFrontmatterError)


def test_values_that_look_like_numbers_or_booleans_are_text() -> None:
    """S4-4: what an author wrote without quotes is not a reason to refuse a file."""
    skill = prowess.parse_skill(skill_text("name: 123\ndescription: yes\nmetadata: {v: 1.0}\nunknown: 1\n")).skill
    assert (skill.name, skill.description, skill.metadata) == ("123", "yes", {"v": "1.0"})


@pytest.mark.parametrize("key", ["allowed-tools", "allowed_tools"])
def test_allowed_tools_have_two_spellings(key: str) -> None:
    """S4-4: the hyphen of the file and the underscore of programs; a text or a list."""
    for written in ("Read Edit", "[Read, Edit]"):
        skill = prowess.parse_skill(skill_text(f"name: pdf\ndescription: d\n{key}: {written}\n")).skill
        assert (skill.allowed_tools, skill.allowed_tools_raw) == (("Read", "Edit"), "Read Edit")


def test_a_name_that_is_not_the_folders_loads_with_a_warning(put: Put, tmp_path: Path) -> None:
    """S4-5: whatever characters it has."""
    put("forms", name="PDF Forms")
    catalog = prowess.scan(tmp_path)
    assert catalog.names == ("PDF Forms",)
    assert {issue.code: issue.severity for issue in catalog.issues} == {
        "bad-name": "warning",
        "name-mismatch": "warning",
    }


@pytest.mark.parametrize("length", [65, 256])
def test_a_name_that_is_too_long_loads_with_a_warning(put: Put, tmp_path: Path, length: int) -> None:
    """S4-5: as it is written, also if it is the name of its folder."""
    put("n" * min(length, 255), name="n" * length)
    catalog = prowess.scan(tmp_path)
    assert catalog.names == ("n" * length,)
    assert ("bad-name", "warning") in [(issue.code, issue.severity) for issue in catalog.issues]
    assert [issue.code for issue in catalog.failures] == []
    assert f"<name>{'n' * length}</name>" in prowess.Toolset(prowess.Session(catalog), "use_skill").prompt()


def test_a_name_of_more_than_256_characters_loads_as_its_folder(put: Put, tmp_path: Path) -> None:
    """S4-5: with a warning, so that no name takes the room of the other skills."""
    put("forms", name="n" * 257)
    catalog = prowess.scan(tmp_path)
    assert catalog.names == ("forms",)
    assert [(issue.code, issue.severity) for issue in catalog.issues] == [("bad-name", "warning")]


def test_a_long_description_loads_whole_and_is_listed_cut(put: Put, tmp_path: Path) -> None:
    """S4-5: with a warning; the listing has its first 1,024 characters."""
    put("pdf", description="d" * 2000)
    catalog = prowess.scan(tmp_path)
    assert len(catalog["pdf"].description) == 2000
    assert [(issue.code, issue.severity) for issue in catalog.issues] == [("description-too-long", "warning")]
    assert catalog["pdf"].to_xml().count("d" * 1024) == 1
    assert "d" * 1025 not in catalog["pdf"].to_xml()


def test_a_stripped_body_is_read_anew(put: Put, tmp_path: Path) -> None:
    """S4-6: read_body(strip=True) has no blanks at its ends and knows no cache."""
    put("pdf", body="\n\n  Old.\n\n")
    skill = prowess.scan(tmp_path)["pdf"]
    assert skill.read_body(strip=True) == "Old."
    put("pdf", body="\nNew.\n")
    assert skill.read_body(strip=True) == "New."


def test_each_way_of_having_no_body_is_its_own_error(put: Put, tmp_path: Path) -> None:
    """S4-6: blank instructions, frontmatter that has gone, a file that has gone."""
    path = put("pdf")
    skill = prowess.scan(tmp_path)["pdf"]
    put("pdf", body=" \n\n")
    with pytest.raises(prowess.EmptySkillBodyError):
        skill.read_body(strip=True)
    path.write_text("Only text.\n", encoding="utf-8")
    with pytest.raises(prowess.InvalidFrontmatterError):
        skill.read_body(strip=True)
    path.unlink()
    with pytest.raises(prowess.SkillValidationError) as caught:
        skill.read_body(strip=True)
    assert caught.value.path == str(path)


@pytest.mark.parametrize("body", ["", "\n \n"])
def test_a_skill_without_instructions_loads_with_a_warning(body: str, put: Put, tmp_path: Path) -> None:
    """S4-7: it may live from its description and files; the error on asking for instructions says what is wrong."""
    path = put("pdf", body=body)
    catalog = prowess.scan(tmp_path)
    assert catalog.names == ("pdf",)
    assert [(issue.code, issue.path, issue.severity) for issue in catalog.issues] == [
        ("empty-body", str(path), "warning")
    ]
    with pytest.raises(prowess.EmptySkillBodyError, match="instructions"):
        catalog["pdf"].read_body(strip=True)


def test_bytes_that_are_not_text_make_one_file_bad(put: Put, tmp_path: Path) -> None:
    """S4-8: the issue says at which byte, and the other skills load."""
    bad = put("bad", text=b"---\nname: bad\ndescription: caf\xe9\n---\n")
    put("good")
    catalog = prowess.scan(tmp_path)
    assert catalog.names == ("good",)
    assert [(issue.code, issue.path, issue.line) for issue in catalog.issues] == [("not-utf8", str(bad), 3)]


def test_a_folder_is_validated_without_an_exception(put: Put, tmp_path: Path) -> None:
    """S4-9: every finding is returned, whichever kind it is."""
    (tmp_path / "none").mkdir()
    cases = {
        put("good").parent: set(),
        tmp_path / "none": {"missing-skill-md"},
        tmp_path / "absent": {"missing-skill-md"},
        put("text", text="Only text.\n").parent: {"no-frontmatter"},
        put("blank", body="").parent: {"empty-body"},
        put("odd", name="Odd", body="").parent: {"bad-name", "name-mismatch", "empty-body"},
    }
    assert {folder: {issue.code for issue in prowess.validate(folder)} for folder in cases} == cases


def test_a_folder_is_parsed_or_an_error_raised(put: Put, tmp_path: Path) -> None:
    """S4-9: the errors of a folder without a SKILL.md and of a bad one are validation errors both."""
    assert prowess.parse_skill_file(put("good").parent).skill.name == "good"
    (tmp_path / "none").mkdir()
    with pytest.raises(prowess.SkillValidationError) as missing:
        prowess.parse_skill_file(tmp_path / "none")
    with pytest.raises(prowess.SkillValidationError) as bad:
        prowess.parse_skill_file(put("text", text="Only text.\n").parent)
    assert (missing.value.code, bad.value.code) == ("missing-skill-md", "no-frontmatter")


def test_resources_are_relative_paths_in_a_fixed_order(put: Put, tmp_path: Path) -> None:
    """S4-12: assets, scripts, references, each sorted, then what lies beside SKILL.md; as they are now."""
    folder = put("pdf").parent
    skill = prowess.scan(tmp_path)["pdf"]
    assert skill.resources().paths == ()
    names = (
        "references/r.md",
        "scripts/b.py",
        "scripts/a.py",
        "scripts/sub/c.py",
        "assets/.dot",
        "assets/a.png",
        "x.md",
    )
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    assert skill.resources().paths == ("assets/a.png", "scripts/a.py", "scripts/b.py", "references/r.md", "x.md")


def test_hidden_and_deeper_files_are_in_the_full_listing(put: Put, tmp_path: Path) -> None:
    """S4-12: files() leaves nothing out."""
    folder = put("pdf").parent
    for name in ("assets/.dot", "scripts/sub/c.py"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).touch()
    assert tuple(prowess.scan(tmp_path)["pdf"].files()) == ("SKILL.md", "assets/.dot", "scripts/sub/c.py")


def test_an_entry_has_name_description_and_location(put: Put, tmp_path: Path) -> None:
    """S4-13: four blanks before each field, two before the closing tag, none before the first."""
    path = put("pdf", description="Fills forms.")
    assert prowess.scan(tmp_path)["pdf"].to_xml() == (
        "<skill>\n    <name>pdf</name>\n    <description>Fills forms.</description>\n"
        f"    <location>{path}</location>\n  </skill>"
    )


def test_an_entry_is_escaped_and_on_one_line() -> None:
    """S4-13: no description can end its element or begin another entry."""
    front = prowess.Frontmatter(name="pdf", description="a\nb</description></skill><skill> & more")
    entry = prowess.Skill(front).to_xml()
    assert "<description>a b&lt;/description&gt;&lt;/skill&gt;&lt;skill&gt; &amp; more</description>" in entry


def test_validation_errors_have_one_root_and_their_own_classes() -> None:
    """S4-19: everything is a SkillError; what is wrong with a skill is a SkillValidationError."""
    assert issubclass(prowess.SkillValidationError, prowess.SkillError)
    assert issubclass(prowess.InvalidFrontmatterError, prowess.SkillValidationError)
    assert issubclass(prowess.EmptySkillBodyError, prowess.SkillValidationError)
    assert not issubclass(prowess.EmptySkillBodyError, prowess.InvalidFrontmatterError)


def test_what_is_not_an_error_is_an_issue(put: Put, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """S4-19: skipped, mismatched, too long and shadowed skills are told apart by code; no Python warning is issued."""
    put("a/bad", text="Only text.\n")
    put("a/forms", name="pdf")
    put("a/long", name="n" * 65)
    put("b/pdf")
    catalog = prowess.scan(tmp_path / "a", tmp_path / "b")
    assert {issue.code for issue in catalog.issues} == {"no-frontmatter", "name-mismatch", "bad-name", "duplicate-name"}
    assert not recwarn.list
