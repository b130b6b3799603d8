"""What a model gets of its active skills after its host has summarized the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from prowess import Session, SourceError, Toolset, scan
from tests.adapters.skill_library import write_library

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def toolset(tmp_path: Path) -> Toolset:
    return Toolset(Session(scan(write_library(tmp_path / "skills"))))


def test_nothing_is_active_and_there_is_nothing_to_recall(toolset: Toolset) -> None:
    assert toolset.recap() == ""


def test_active_skills_come_with_instructions_and_the_files_that_were_read(toolset: Toolset) -> None:
    for name in ("greet", "careful"):
        toolset.call("load_skill", {"name": name})
    toolset.call("read_skill_file", {"name": "greet", "path": "references/forms.md"})
    text = toolset.recap()
    assert text.index("Use look_up and nothing else.") < text.index("Say hello as references/forms.md says.")
    assert "Files of greet that were read: references/forms.md" in text
    assert "picture" not in text
    toolset.call("unload_skill", {"name": "greet"})
    assert "Say hello" not in toolset.recap()


def test_a_recap_keeps_its_budget_and_names_what_does_not_fit(toolset: Toolset) -> None:
    for name in ("greet", "careful", "picture"):
        toolset.call("load_skill", {"name": name})
    whole = toolset.recap()
    short = toolset.recap(budget=110)
    assert len(short) < len(whole)
    assert "Look at assets/pixel.png." in short  # the latest
    assert "Also active, without their instructions here: careful, greet. Call load_skill for them." in short
    with pytest.raises(SourceError):
        toolset.recap(budget=-1)
