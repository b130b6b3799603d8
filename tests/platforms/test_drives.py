"""Paths on two drives of Windows: no relative path leads from one to the other."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.platforms.conftest import Machine

pytestmark = pytest.mark.skipif(os.name != "nt", reason="only Windows has drives")


@pytest.fixture
def elsewhere(machine: Machine) -> Iterator[Path]:
    """A folder on another drive than the home folder: that of this checkout."""
    with TemporaryDirectory(dir=Path(__file__).parents[2] / "build") as folder:
        if Path(folder).drive == machine.home.drive:
            pytest.skip("needs the checkout and the temporary folder on two drives")
        yield Path(folder)


def test_a_skill_is_linked_for_an_agent_on_another_drive(
    machine: Machine, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(elsewhere))
    machine.must("install", str(machine.skill()), "--agent", "claude-code", "--yes")
    assert (elsewhere / "skills" / "unit" / "SKILL.md").is_file()
    assert machine.must("verify", "--user")["issues"] == []
    assert machine.must("sync", "--user", "--locked")["installed"] == []
    assert machine.must("remove", "unit", "--user", "--yes")["issues"] == []
    assert not (elsewhere / "skills" / "unit").exists()


def test_a_filter_finds_skills_on_another_drive(machine: Machine, elsewhere: Path) -> None:
    folder = machine.skill(into=elsewhere / "skills")
    found = {}
    for pattern in (str(folder.parent), folder.parent.as_posix(), "**/unit", "unit", str(machine.home)):
        ran = machine.run("prompt", "--dir", str(folder.parent), "--filter", pattern)
        found[pattern] = (ran.status, b"Measures lengths" in ran.out)
    assert list(found.values()) == [*[(0, True)] * 3, *[(0, False)] * 2]
