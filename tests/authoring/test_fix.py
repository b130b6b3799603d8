"""Mending: mechanical, shown first, and never a change of what a file says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prowess
from prowess.authoring.fix import quote_yaml
from prowess.format.frontmatter.yaml_events import parse_yaml

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, text: str, name: str = "one") -> Path:
    where = folder / name
    where.mkdir(exist_ok=True)
    (where / "SKILL.md").write_bytes(text.encode())
    return where


@pytest.mark.parametrize(
    ("head", "fixed", "code"),
    [
        ("name: one\ndescription: Use when: x\n", 'name: one\ndescription: "Use when: x"\n', "repaired-colon"),
        ("name: one\ndescription: > Does\n  it.\n", "name: one\ndescription: Does it.\n", "repaired-block-text"),
        (
            "name: one\ndescription: *bold* text\n",
            'name: one\ndescription: "*bold* text"\n',
            "repaired-leading-character",
        ),
        (
            "name: one\ndescription: @file does\n",
            'name: one\ndescription: "@file does"\n',
            "repaired-leading-character",
        ),
        ('name: one\ndescription:"Does it"\n', "name: one\ndescription: Does it\n", "repaired-missing-blank"),
        ('name: one\ndescription: "Does it\n', "name: one\ndescription: Does it\n", "repaired-quotes"),
        ("name: two\ndescription: Does it.\n", "name: one\ndescription: Does it.\n", "name-mismatch"),
        ("name: One Skill\ndescription: Does it.\n", "name: one\ndescription: Does it.\n", "bad-name"),
        ("description: Does it.\n", "name: one\ndescription: Does it.\n", "repaired-name"),
        ("name: team:one\ndescription: Does it.\n", "name: one\ndescription: Does it.\n", "repaired-name-colon"),
        ("name: one\ndescription: Does it.\nlicense: ''\n", "name: one\ndescription: Does it.\n", "blank-field"),
        ("Name: one\nDescription: Does it.\n", "name: one\ndescription: Does it.\n", "unknown-field"),
        (
            "name: one\ndescription: Does it.\nAllowed-Tools:\n  - Read\nLICENSE: MIT\n",
            "name: one\ndescription: Does it.\nallowed-tools:\n  - Read\nlicense: MIT\n",
            "unknown-field",
        ),
        (
            "name: one\ndescription: Does it.\nUser-Invocable: false\n",
            "name: one\ndescription: Does it.\nuser-invocable: false\n",
            "unknown-field",
        ),
    ],
)
def test_what_is_mechanical_is_mended(tmp_path: Path, head: str, fixed: str, code: str) -> None:
    found = prowess.fix(write(tmp_path, f"---\n{head}---\nDo it.\n"))
    assert found.after == f"---\n{fixed}---\nDo it.\n"
    assert code in found.codes
    prowess.apply_fix(found)
    assert prowess.validate(tmp_path / "one") == ()
    assert not prowess.fix(tmp_path / "one")


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: one\ndescription: Does it.\n---# Title\nDo it.\n",
        "<!-- a comment -->\n---\nname: one\ndescription: Does it.\n---\nDo it.\n",
        "```yaml\n---\nname: one\ndescription: Does it.\n---\n```\nDo it.\n",
        "---\nname: one\ndescription: Does\u2028it.\n---\nDo it.\n",
        "---\n  name: one\n  description: Does it.\n  ---\n\n  Do it.\n",
        "\n\t---\n\tname: one\n\tdescription: Does: it.\n\t---\nDo it.\n",
    ],
)
def test_frontmatter_in_a_wrapping_is_put_where_it_belongs(tmp_path: Path, text: str) -> None:
    where = write(tmp_path, text)
    before = prowess.parse_skill_file(where, "lenient")
    found = prowess.fix(where)
    prowess.apply_fix(found)
    after = prowess.parse_skill_file(where)
    assert (after.body, after.skill.description) == (before.body, before.skill.description)


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: one\ndescription: Does it.\n---\nDo it.\n",
        "---\r\nname: one\r\ndescription: Does it.\r\n---\r\nDo it.\r\n",
        "no frontmatter\n",
        "---\nname: one\ndescription: a\ndescription: b\n---\nx\n",
        "---\nname: one\ndescription: &a [x]\n---\nx\n",
        "---\nname: one\n---\nx\n",
        "---\nname: one\ndescription: Does it.\nlicense: MIT\nLicense: Apache-2.0\n---\nx\n",
        "---\nname: one\ndescription: Does it.\nSomething: else\n---\nx\n",
    ],
)
def test_what_is_fine_or_not_mechanical_is_left_alone(tmp_path: Path, text: str) -> None:
    found = prowess.fix(write(tmp_path, text))
    assert (bool(found), found.after, found.diff()) == (False, text, "")


def test_a_folder_that_cannot_name_a_skill_gives_no_name(tmp_path: Path) -> None:
    assert not prowess.fix(write(tmp_path, "---\nname: one\ndescription: Does it.\n---\nx\n", "Odd Folder"))


def test_several_mistakes_are_mended_at_once(tmp_path: Path) -> None:
    head = "name: Two\ndescription: Use when: x\nargument-hint: [a] [b]\nlicense:\n"
    found = prowess.fix(write(tmp_path, f"---\n{head}---\nDo it.\n"))
    assert set(found.codes) == {"repaired-colon", "repaired-brackets", "bad-name", "blank-field"} | (
        {"name-mismatch"} & set(found.codes)
    )
    prowess.apply_fix(found)
    assert not [issue for issue in prowess.validate(tmp_path / "one") if issue.severity == "error"]


def test_line_ends_and_modes_outside_of_what_is_mended_stay(tmp_path: Path) -> None:
    where = write(tmp_path, "---\nname: two\ndescription: Does it.\n---\r\nDo\r\nit.\n")
    (where / "SKILL.md").chmod(0o640)
    prowess.apply_fix(prowess.fix(where))
    assert (where / "SKILL.md").read_bytes() == b"---\nname: one\ndescription: Does it.\n---\r\nDo\r\nit.\n"
    assert (where / "SKILL.md").stat().st_mode & 0o777 == 0o640


def test_a_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    where = write(tmp_path, "---\nname: two\ndescription: Does it.\n---\nx\n")
    found = prowess.fix(where)
    write(tmp_path, "---\nname: two\ndescription: Something else.\n---\nx\n")
    with pytest.raises(prowess.SkillValidationError) as caught:
        prowess.apply_fix(found)
    assert caught.value.code == "changed-during-read"
    assert "Something else" in (where / "SKILL.md").read_text(encoding="utf-8")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    where = write(tmp_path, "---\nname: two\ndescription: Does it.\n---\nx\n", "two")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "SKILL.md").symlink_to(where / "SKILL.md")
    with pytest.raises(prowess.SkillValidationError):
        prowess.fix(tmp_path / "one")


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t\"'\\:#")))
def test_a_quoted_text_is_read_back_as_it_was(text: str) -> None:
    odd = {"\x85", "\u2028", "\u2029", "\ufffe", "\uffff", "\ufeff"}
    if odd & set(text):
        return
    values, _ = parse_yaml(f"key: {quote_yaml(text)}\n", prowess.Limits())
    assert values["key"] == text


@pytest.mark.parametrize(
    "below",
    [
        "\tmetadata:\n\t  a: 1\n",
        "\tauthor: me\n",
        "  metadata:\n    a: 1\n",
        "  license: MIT\n",
        "  details:\n    a: 1\n",
    ],
)
def test_what_may_be_a_field_of_its_own_is_not_folded_into_a_text(tmp_path: Path, below: str) -> None:
    where = write(tmp_path, f"---\nname: one\ndescription: >- Does it.\n{below}---\nDo it.\n")
    assert not prowess.fix(where)
    assert [one.fixable for one in prowess.check(where).findings if one.code == "yaml-syntax"] == [False]


def test_lines_below_that_are_text_are_folded_still(tmp_path: Path) -> None:
    where = write(tmp_path, "---\nname: one\ndescription: >- Does it.\n  Note: all of it.\n---\nDo it.\n")
    assert 'description: "Does it. Note: all of it."\n' in prowess.fix(where).after


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_numbers_in_metadata_are_quoted_and_every_other_byte_stays(tmp_path: Path, end: str) -> None:
    rows = [
        "---",
        "name: one",
        "description: Größe — does it.",
        "metadata:   # what others read",
        "    größe:   1.50  # as written",
        '    "on" : true',
        "    none: ~",
        "    empty:",
        "    author:  me ",
        "    date: 2024-01-01",
        "version: 3",
        "---",
        "Body: 3",
        "",
    ]
    where = write(tmp_path, end.join(rows))
    fixed = prowess.fix(where)
    rows[4:8] = ['    größe:   "1.50"  # as written', '    "on" : "true"', '    none: "~"', '    empty: ""']
    assert (fixed.after, fixed.codes) == (end.join(rows), ("not-served-over-mcp",))
    prowess.apply_fix(fixed)
    assert prowess.check(where).ok(strict=True)
    assert prowess.mcp.check(tmp_path) == ()


def test_numbers_in_metadata_in_braces_are_quoted_one_by_one(tmp_path: Path) -> None:
    head = "---\nname: one\ndescription: Does it.\n"
    where = write(tmp_path, head + "metadata: {a: 1, b: c, d: 2}\nlicense: 3\n---\nBody\n")
    assert prowess.fix(where).after == head + 'metadata: {a: "1", b: c, d: "2"}\nlicense: "3"\n---\nBody\n'


@pytest.mark.parametrize(
    "head",
    [
        "name: one\ndescription: Use when: x\nlicense: MIT\n",
        "name: two\ndescription: Does it.\nlicense: MIT\n",
        "description: Does it.\nlicense: ''\n",
        "name: one\ndescription: Does\u2028it.\nlicense: MIT\n",
        "name: one\ndescription: *bold* text\n---# Title\n",
    ],
)
def test_mending_keeps_the_line_ends_of_the_file(tmp_path: Path, head: str) -> None:
    text = f"---\n{head}---\nBody\n\nmore\n"
    plain, windows = (prowess.fix(write(tmp_path, text.replace("\n", end))) for end in ("\n", "\r\n"))
    assert plain.codes == windows.codes != ()
    assert windows.after == plain.after.replace("\n", "\r\n")


@pytest.mark.parametrize("name", ["skill.md", "Skill.md"])
@pytest.mark.parametrize("description", ["Does it when asked.", "Use when: asked"])
def test_a_file_in_another_spelling_gets_its_name_and_keeps_what_it_says(
    tmp_path: Path, name: str, description: str
) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    text = f"---\r\nname: one\r\ndescription: {description}\r\n---\r\nBody\r\n"
    (folder / name).write_bytes(text.encode())
    (finding,) = [one for one in prowess.check(tmp_path).findings if one.code == "filename-case"]
    assert finding.fixable
    fixed = prowess.fix(folder / name)
    assert "filename-case" in fixed.codes
    assert f"rename from {name}\nrename to SKILL.md\n" in fixed.diff()
    prowess.apply_fix(fixed)
    assert [file.name for file in folder.iterdir()] == ["SKILL.md"]
    assert (folder / "SKILL.md").read_bytes().decode() == text.replace("Use when: asked", '"Use when: asked"')
    assert prowess.check(folder).ok(strict=True)


def test_a_file_that_is_not_a_skill_keeps_its_name(tmp_path: Path) -> None:
    (tmp_path / "skill.md").write_text("# How to learn\n", encoding="utf-8")
    assert not prowess.fix(tmp_path / "skill.md")


def test_a_file_in_another_spelling_never_takes_the_place_of_the_right_one(tmp_path: Path) -> None:
    folder = write(tmp_path, "---\nname: one\ndescription: Does it when asked.\n---\nBody\n")
    if (folder / "skill.md").exists():
        pytest.skip("there is no such second file on this file system")
    right = (folder / "SKILL.md").read_bytes()
    (folder / "skill.md").write_bytes(right + b"other\n")
    assert not prowess.fix(folder / "skill.md")
    (folder / "SKILL.md").unlink()
    fixed = prowess.fix(folder)
    assert fixed
    (folder / "SKILL.md").write_bytes(right)
    with pytest.raises(prowess.SkillValidationError) as caught:
        prowess.apply_fix(fixed)
    assert caught.value.code == "filename-collision"
    assert (folder / "SKILL.md").read_bytes() == right
