"""A skill without one of its folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess

if TYPE_CHECKING:
    from pathlib import Path


def make_skill(folder: Path) -> prowess.Skill:
    for path in ("evals/cases.json", "forms/evals/a.md", "evaluate.md"):
        (folder / "pdf" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "pdf" / path).write_text("inside\n", encoding="utf-8")
    (folder / "pdf" / "SKILL.md").write_text(
        "---\nname: pdf\ndescription: Reads PDF files.\n---\nRead.\n", encoding="utf-8"
    )
    return prowess.scan(folder)["pdf"]


@pytest.mark.parametrize("path", ["evals/cases.json", "./evals/cases.json", "Evals/cases.json", "evals//cases.json"])
def test_a_file_in_the_hidden_folder_is_as_if_it_were_not_there(tmp_path: Path, path: str) -> None:
    skill = make_skill(tmp_path).without_folder("evals")
    with pytest.raises(prowess.ResourceError):
        skill.read_resource(path)
    with pytest.raises(prowess.ResourceError):
        skill.read_bytes(path)


def test_everything_else_of_the_skill_stays(tmp_path: Path) -> None:
    whole = make_skill(tmp_path)
    skill = whole.without_folder("evals")
    assert skill.read_resource("forms/evals/a.md") == skill.read_resource("evaluate.md") == "inside\n"
    assert skill.load().instructions == whole.load().instructions == "Read."
    assert (skill.read_text(), skill.read_body()) == (whole.read_text(), whole.read_body())
    assert (skill.digest(), skill.files(), skill.resources()) == (whole.digest(), whole.files(), whole.resources())


def test_hidden_files_are_not_named(tmp_path: Path) -> None:
    whole = make_skill(tmp_path)
    (tmp_path / "pdf" / "evaluate.md").unlink()
    assert "evals/cases.json" in whole.readable_paths()
    assert whole.without_folder("evals").readable_paths() == ("forms/evals/a.md",)


def test_a_text_in_a_program_has_no_folder_to_hide() -> None:
    (skill,) = prowess.Catalog.from_sources([prowess.Source.inline("a", "Does a.", "Do a.")])
    assert skill.without_folder("evals") is skill
