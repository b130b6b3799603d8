"""Where nobody may make symbolic links, a junction takes their place: also to a tree that is only staged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from prowess.install.agent_links import stage_junction

if TYPE_CHECKING:
    from collections.abc import Callable


def make_junction(target: str, path: str) -> None:
    """What Windows does: it makes no junction to what does not exist."""
    assert Path(target).is_dir()
    Path(path).mkdir()


def refuse_junction(target: str, path: str) -> None:
    """What Windows does on a volume without junctions: it makes a folder, and fails to make a junction of it."""
    make_junction(target, path)
    raise OSError(22, "Request not supported")


@pytest.mark.parametrize(("make", "is_made"), [(make_junction, True), (refuse_junction, False), (None, False)])
def test_a_junction_to_a_staged_tree_leaves_its_place_free(
    make: Callable[[str, str], None] | None, is_made: bool, tmp_path: Path
) -> None:
    staged = tmp_path / "link"
    assert stage_junction(str(tmp_path / "base" / "org" / "name"), str(staged), make=make) is is_made
    assert staged.is_dir() is is_made
    assert not (tmp_path / "base").exists()


@pytest.mark.parametrize("make", [make_junction, refuse_junction])
def test_a_junction_to_a_tree_in_place_leaves_it_alone(make: Callable[[str, str], None], tmp_path: Path) -> None:
    (tmp_path / "name").mkdir()
    (tmp_path / "name" / "SKILL.md").write_bytes(b"x")
    stage_junction(str(tmp_path / "name"), str(tmp_path / "link"), make=make)
    assert (tmp_path / "name" / "SKILL.md").read_bytes() == b"x"
