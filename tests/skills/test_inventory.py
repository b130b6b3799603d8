"""What is in a skill: every file with its cost, and everything that could run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def skill(tmp_path: Path) -> prowess.Skill:
    made = prowess.create_skill("one", tmp_path, parts=["scripts", "references"])
    with (made / "SKILL.md").open("a", encoding="utf-8") as file:
        file.write("\nNow: !`date`\n\n```!\nls\n```\n")
    (made / "assets").mkdir()
    (made / "assets" / "picture.png").write_bytes(b"\x89PNG\x00\xff")
    return prowess.read_metadata(made)


@pytest.mark.needs_modes
def test_files_have_sizes_tokens_and_execute_bits(skill: prowess.Skill) -> None:
    held = prowess.inventory(skill)
    found = {file.path: file for file in held.files}
    assert list(found) == list(skill.files())
    assert found["assets/picture.png"] == prowess.FileInfo("assets/picture.png", 6, None)
    assert found["scripts/count.py"].executable
    text = skill.read_resource("references/details.md")
    assert (found["references/details.md"].size, found["references/details.md"].tokens) == (
        len(text),
        prowess.estimate_tokens(text),
    )
    assert held.size == sum(file.size for file in held.files)


def test_commands_and_scripts_are_what_could_run(skill: prowess.Skill) -> None:
    held = prowess.inventory(skill)
    assert held.commands == ("date", "ls")
    assert held.scripts == ("scripts/count.py",)
    assert held.acts
    assert held.tokens == prowess.estimate_tokens(skill.read_body().strip())


def test_a_skill_of_text_alone_has_nothing_that_could_run() -> None:
    (skill,) = prowess.Source.inline("one", "Does it.", "Do it.").load()
    held = prowess.inventory(skill)
    assert (held.files, held.acts, held.tokens > 0) == ((), False, True)


@pytest.mark.needs_links
def test_a_file_that_cannot_be_read_is_an_issue(skill: prowess.Skill, tmp_path: Path) -> None:
    (tmp_path / "one" / "references" / "link.md").symlink_to("details.md")
    (tmp_path / "one" / "SKILL.md").write_bytes(b"---\nname: one\ndescription: x\n---\n\xff\n")
    held = prowess.inventory(skill)
    assert {issue.code for issue in held.issues} == {"link-in-skill", "body-not-text"}


def test_a_file_too_large_to_count_has_a_size_and_no_tokens(skill: prowess.Skill, tmp_path: Path) -> None:
    with (tmp_path / "one" / "big.txt").open("wb") as file:
        file.truncate(1 << 33)
    found = {file.path: file for file in prowess.inventory(skill).files}
    assert (found["big.txt"].size, found["big.txt"].tokens) == (1 << 33, None)
