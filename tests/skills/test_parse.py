"""One SKILL.md by itself: from text, from a file, head only, or judged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from prowess import (
    InvalidFrontmatterError,
    Limits,
    SkillLoadError,
    SkillValidationError,
    parse_skill,
    parse_skill_file,
    read_metadata,
    validate,
)
from prowess.format.head import LoadPolicy, read_head
from prowess.skills.parse import text_issues

if TYPE_CHECKING:
    from collections.abc import Callable

    Put = Callable[..., Path]

TEXT = "---\nname: kit\ndescription: d\n---\n\n Do it. \n"


# -- text --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [TEXT, TEXT.encode(), TEXT.replace("\n", "\r\n"), "\ufeff" + TEXT])
def test_text_or_bytes_make_a_skill_with_a_stripped_body(text: str | bytes) -> None:
    parsed = parse_skill(text)
    skill, body, issues = parsed
    assert (skill.name, body, issues) == ("kit", "Do it.", ())
    assert parsed.skill.is_inline
    assert skill.read_body().strip() == "Do it."


def test_the_body_of_parsed_text_is_byte_exact() -> None:
    assert parse_skill(TEXT).skill.read_body() == "\n Do it. \n"


def test_nothing_is_opened_for_text_at_a_path(tmp_path: Path) -> None:
    parsed = parse_skill(TEXT, tmp_path / "kit" / "SKILL.md")
    assert parsed.skill.path == tmp_path / "kit" / "SKILL.md"
    assert parsed.body == "Do it."
    assert not (tmp_path / "kit").exists()


def test_the_name_must_be_the_folders_unless_that_is_not_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "other" / "SKILL.md"
    with pytest.raises(SkillLoadError) as caught:
        parse_skill(TEXT, path)
    assert [i.code for i in caught.value.issues] == ["name-mismatch"]
    assert caught.value.path == str(path)
    assert parse_skill(TEXT, path, check_dir=False).issues == ()
    assert [i.code for i in parse_skill(TEXT, path, "lenient").issues] == ["name-mismatch"]


def test_strict_is_the_default_and_collects_everything() -> None:
    with pytest.raises(SkillLoadError) as caught:
        parse_skill("---\nname: A B\nlicense: ''\n---\n")
    assert {i.code for i in caught.value.issues} == {"bad-name", "missing-description", "blank-field"}
    for issue in caught.value.issues:
        assert issue.message in str(caught.value)


def test_lenient_mode_repairs_unless_told_not_to() -> None:
    text = "---\nname: kit\ndescription: a: b\n---\nbody"
    parsed = parse_skill(text, mode="lenient")
    assert (parsed.skill.description, [i.code for i in parsed.issues]) == ("a: b", ["repaired-colon"])
    with pytest.raises(InvalidFrontmatterError):
        parse_skill(text, mode="lenient", repair=False)


@pytest.mark.parametrize("body", ["", "\n", "  \n\t"])
def test_an_empty_body_loads_with_a_warning(body: str) -> None:
    parsed = parse_skill(f"---\nname: kit\ndescription: d\n---\n{body}")
    assert parsed.body == ""
    assert [(i.code, i.severity) for i in parsed.issues] == [("empty-body", "warning")]


def test_hidden_text_in_the_body_is_a_warning() -> None:
    parsed = parse_skill("---\nname: kit\ndescription: d\n---\na\u200bb\n")
    assert [(i.code, i.field, i.severity) for i in parsed.issues] == [("hidden-text", "body", "warning")]
    assert "U+200B" in parsed.issues[0].message
    assert parsed.body == "a\u200bb"


def test_a_body_that_is_not_utf8_is_refused_with_its_byte() -> None:
    with pytest.raises(SkillLoadError, match="0xFF at byte 41"):
        parse_skill(b"---\nname: kit\ndescription: d\n---\n" + b"x" * 8 + b"\xff")


@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_half_a_character_in_text_is_refused(mode: str) -> None:
    with pytest.raises(SkillLoadError):
        parse_skill("---\nname: kit\ndescription: \ud800\n---\nbody", mode=mode)  # type: ignore[arg-type]  # widened
    with pytest.raises(SkillLoadError):
        parse_skill("---\nname: kit\ndescription: d\n---\n\udfff", mode=mode)  # type: ignore[arg-type]  # widened


# -- a file ------------------------------------------------------------------------------------------------------------


def test_a_file_or_its_folder_may_be_named(put: Put) -> None:
    folder = put("kit", body="\n Do it. \n")
    for path in (folder, folder / "SKILL.md", str(folder)):
        parsed = parse_skill_file(path)
        assert (parsed.skill.name, parsed.body, parsed.skill.path) == ("kit", "Do it.", folder / "SKILL.md")
        skill = read_metadata(path)
        assert (skill.name, skill.path, skill.read_body()) == ("kit", folder / "SKILL.md", "\n Do it. \n")


@pytest.mark.needs_links
@pytest.mark.needs_fifo
@pytest.mark.parametrize("read", [parse_skill_file, read_metadata])
def test_a_file_that_cannot_be_read_is_a_validation_error(tmp_path: Path, read: Callable[[Path], object]) -> None:
    folder = tmp_path / "kit"
    folder.mkdir()
    with pytest.raises(SkillValidationError) as caught:
        read(folder)
    assert (caught.value.code, caught.value.path) == ("missing-skill-md", str(folder / "SKILL.md"))
    os.mkfifo(folder / "SKILL.md")
    with pytest.raises(SkillValidationError) as caught:
        read(folder)
    assert caught.value.code == "not-a-regular-file"
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").symlink_to("/dev/zero")
    with pytest.raises(SkillValidationError) as caught:
        read(folder)
    assert caught.value.code == "path-escape"


def test_only_the_head_is_read_for_metadata(put: Put) -> None:
    path = put("kit", body="") / "SKILL.md"
    os.truncate(path, 5 << 30)
    assert read_metadata(path).name == "kit"
    with pytest.raises(SkillValidationError) as caught:
        parse_skill_file(path)
    assert caught.value.code == "body-too-large"


def test_metadata_does_not_care_about_a_broken_body(put: Put) -> None:
    path = put("kit") / "SKILL.md"
    path.write_bytes(path.read_bytes() + b"\xff")
    assert read_metadata(path).name == "kit"


def test_a_large_body_is_bounded(put: Put) -> None:
    folder = put("kit", body="x" * 2000)
    limits = Limits(max_frontmatter_bytes=100, max_body_bytes=1000)
    with pytest.raises(SkillValidationError) as caught:
        parse_skill_file(folder, limits=limits)
    assert caught.value.code == "body-too-large"
    assert len(parse_skill_file(folder, limits=Limits(max_frontmatter_bytes=100, max_body_bytes=2000)).body) == 2000


# -- validate ----------------------------------------------------------------------------------------------------------


def test_the_findings_of_a_head_that_was_parsed_are_those_of_its_text(real_heads: list[bytes]) -> None:
    for data in real_heads:
        try:
            document = read_head(data, quick=False, whole=True, policy=LoadPolicy(check_dir=False), folder="kit")
        except SkillLoadError:
            continue
        for folder in ("kit", document.front.name):
            path = str(Path(f"/{folder}/SKILL.md").absolute())  # with a drive on Windows
            assert text_issues(data, path, head=document.parsed) == text_issues(data, path)


def test_a_good_skill_has_no_findings(put: Put) -> None:
    folder = put("kit")
    assert validate(folder) == validate(str(folder / "SKILL.md")) == ()


@pytest.mark.parametrize(
    ("rows", "body", "expected"),
    [
        ("name: kit\n", "x", {"missing-description"}),
        (
            "name: A\nlicense: ''\n",
            "",
            {"bad-name", "name-mismatch", "missing-description", "blank-field", "empty-body"},
        ),
        ("name: other\ndescription: d\nfrobnicate: x\n", "", {"name-mismatch", "unknown-field", "empty-body"}),
        ("name: kit\ndescription: a: b\n", "x", {"yaml-syntax"}),
        ("name: kit\ndescription: d\nmodel: x\n", "a\u200b", {"inert-field", "hidden-text"}),
        ("name: kit\ndescription: &a d\n", "x", {"yaml-anchor"}),
    ],
)
def test_every_finding_about_a_skill_is_returned(put: Put, rows: str, body: str, expected: set[str]) -> None:
    folder = put("kit", rows, body)
    issues = validate(folder)
    assert {i.code for i in issues} == expected
    assert all(i.path == str(folder / "SKILL.md") and i.hint for i in issues)


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_findings_about_the_folder_are_returned_too(put: Put) -> None:
    folder = put("kit")
    (folder / "link").symlink_to("SKILL.md")
    os.mkfifo(folder / "pipe")
    assert [(i.code, i.field, i.severity) for i in validate(folder)] == [
        ("link-in-skill", "link", "warning"),
        ("special-file", "pipe", "warning"),
    ]


def test_a_skill_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "none", tmp_path / "none" / "SKILL.md"):
        assert [i.code for i in validate(path)] == ["missing-skill-md"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 100,
        b"\xff\xfe",
        b"---\n" + b"[" * 50_000,
        b"---\nname: kit\ndescription: d\n---\n\xff",
        b"---\n" + b"\n" * 10**5,
    ],
)
def test_validation_never_raises_for_a_bad_file(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "SKILL.md").write_bytes(data)
    issues = validate(tmp_path / "kit")
    assert [i.severity for i in issues][:1] == ["error"]


@pytest.mark.needs_links
@pytest.mark.needs_fifo
@pytest.mark.parametrize("make", ["pipe", "folder", "link"])
def test_validation_never_raises_for_what_is_not_a_file(tmp_path: Path, make: str) -> None:
    (tmp_path / "kit").mkdir()
    path = tmp_path / "kit" / "SKILL.md"
    if make == "pipe":
        os.mkfifo(path)
    elif make == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    assert [i.severity for i in validate(tmp_path / "kit")][:1] == ["error"]
