"""Agents that are found: who gets a skill by itself, who does not see it, and the matrix of skills and agents."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from prowess.discovery.agents import find_agents
from prowess.lockfile.read import read_lock
from tests.repositories import skill_text

if TYPE_CHECKING:
    from pathlib import Path

    import prowess
    from tests.install.conftest import World


def make_folders(root: Path, *names: str) -> None:
    """Folders as agents make them."""
    for name in names:
        (root / name).mkdir(parents=True, exist_ok=True)


@pytest.mark.parametrize(
    ("project", "home", "found"),
    [
        ((), (), ()),
        ((".claude",), (), ("claude-code",)),
        ((), (".claude", ".codex", ".codeium/windsurf"), ("claude-code", "codex", "windsurf")),
        ((".agents/skills", "skills", "data/skills", "agent"), (".agents/skills", ".config/agents/skills"), ()),
        ((), (".config/goose", ".gemini"), ("gemini-cli", "goose")),
        ((".goose",), (".gemini/antigravity",), ("antigravity", "gemini-cli", "goose")),
    ],
)
def test_agents_are_known_by_the_folders_that_only_they_make(
    world: World, project: tuple[str, ...], home: tuple[str, ...], found: tuple[str, ...]
) -> None:
    make_folders(world.project, *project)
    make_folders(world.home, *home)
    assert find_agents(str(world.project), str(world.home), {}) == found


def test_the_folders_of_a_project_tell_nothing_in_the_home_folder(world: World) -> None:
    make_folders(world.home, ".goose")
    assert find_agents("", str(world.home), {}) == ()


def test_a_variable_moves_the_folder_by_which_an_agent_is_found(world: World) -> None:
    make_folders(world.base, "moved")
    variables = {"CODEX_HOME": str(world.base / "moved")}
    assert find_agents(str(world.project), str(world.home), variables) == ("codex",)
    (world.home / ".codex").mkdir()
    assert find_agents(str(world.project), str(world.home), {"CODEX_HOME": str(world.base / "gone")}) == ()


def test_found_agents_are_preset_and_those_that_will_not_see_a_skill_are_named(
    world: World, installer: prowess.Installer
) -> None:
    make_folders(world.project, ".claude")
    make_folders(world.home, ".codeium/windsurf", ".cursor")
    assert installer.preset_agents(project=True) == ("claude-code", "windsurf"), "cursor reads the shared folder"
    assert installer.preset_agents(project=False) == ("cursor", "windsurf")
    plan = installer.plan(str(world.folder("pdf")), project=True, agents=["claude-code"])
    assert plan.unseen_by == ("windsurf",)
    assert plan.seen_by == ("claude-code", "cursor")
    assert "Windsurf will not see it" in str(plan)
    whole = installer.plan(str(world.base / "folders/pdf"), project=True, agents=installer.preset_agents(project=True))
    assert whole.unseen_by == ()


def test_the_agents_and_the_mode_of_the_manifest_count_for_an_install_by_hand(
    world: World, installer: prowess.Installer
) -> None:
    make_folders(world.home, ".codeium/windsurf")
    (world.project / "prowess.toml").write_text('agents = ["goose"]\nmode = "copy"\n', encoding="utf-8")
    assert installer.preset_agents(project=True) == ("goose",)
    installer.install_local(world.folder("pdf"), project=True, agents=["claude-code"])
    entry = read_lock(str(world.project))["local/pdf"]
    assert (set(entry.agents), entry.mode) == ({"goose", "claude-code"}, "copy")
    installer.install_local(world.folder("own"))
    assert read_lock(installer.user.lock_folder)["local/own"].agents == (), "the manifest is the project's"


# -- the matrix --------------------------------------------------------------------------------------------------------


def states(installer: prowess.Installer) -> dict[tuple[str, str], dict[str, str]]:
    """The cells of the matrix by the name and the location of the skill."""
    return {(row.name, row.location): dict(row.states) for row in installer.coverage().skills}


def test_the_matrix_says_of_each_skill_how_each_agent_has_it(world: World, installer: prowess.Installer) -> None:
    make_folders(world.home, ".codeium/windsurf", ".codex")
    installer.install_local(world.folder("linked"), project=True, agents=["claude-code"])
    installer.install_local(world.folder("copied"), project=True, agents=["claude-code"], copy=True)
    installer.install_local(world.folder("own"), agents=["windsurf"])
    matrix = installer.coverage()
    assert matrix.agents == ("claude-code", "codex", "windsurf")
    assert states(installer) == {
        ("copied", "project"): {"claude-code": "copied", "codex": "copied", "windsurf": "missing"},
        ("linked", "project"): {"claude-code": "linked", "codex": "linked", "windsurf": "missing"},
        ("own", "user"): {"claude-code": "missing", "codex": "linked", "windsurf": "linked"},
    }
    assert {row.install for row in matrix.skills} == {"local/copied", "local/linked", "local/own"}


def test_an_edited_copy_and_an_edited_install_show_for_the_agents_that_load_them(
    world: World, installer: prowess.Installer
) -> None:
    make_folders(world.home, ".codex")
    installer.install_local(world.folder("linked"), project=True, agents=["claude-code"])
    installer.install_local(world.folder("copied"), project=True, agents=["claude-code"], copy=True)
    (world.project / ".claude/skills/copied/SKILL.md").write_text(skill_text("copied", "Mine.\n"), encoding="utf-8")
    (world.skills / "local/linked/SKILL.md").write_text(skill_text("linked", "Mine.\n"), encoding="utf-8")
    assert states(installer) == {
        ("copied", "project"): {"claude-code": "edited", "codex": "copied"},
        ("linked", "project"): {"claude-code": "edited", "codex": "edited"},
    }
    shutil.rmtree(world.skills / "local/linked")
    (world.project / ".claude/skills/copied/SKILL.md").unlink()
    assert states(installer)["linked", "project"] == {"claude-code": "missing", "codex": "missing"}
    assert states(installer)["copied", "project"]["claude-code"] == "edited"


def test_what_hides_a_skill_from_an_agent_shows_as_shadowed(world: World, installer: prowess.Installer) -> None:
    installer.install_local(world.folder("pdf"), agents=["claude-code"])
    mine = world.project / ".claude" / "skills" / "pdf"
    make_folders(mine.parent, "pdf")
    (mine / "SKILL.md").write_text(skill_text("pdf", "Mine.\n"), encoding="utf-8")
    assert states(installer) == {
        ("pdf", "project"): {"claude-code": "copied"},
        ("pdf", "user"): {"claude-code": "shadowed"},
    }
    shutil.copytree(world.base / "folders" / "pdf", mine, dirs_exist_ok=True)
    assert states(installer)["pdf", "user"] == {"claude-code": "linked"}, "the same files are one skill"


def test_skills_that_nobody_installed_are_in_the_matrix_too(world: World, installer: prowess.Installer) -> None:
    make_folders(world.project, ".claude/skills", ".goose/skills")
    make_folders(world.home, ".codex")
    shutil.copytree(world.folder("own"), world.agents / "own")
    (world.project / ".claude/skills/own").symlink_to("../../.agents/skills/own")
    shutil.copytree(world.agents / "own", world.project / ".goose/skills/own")
    assert states(installer) == {
        ("own", "project"): {"claude-code": "linked", "codex": "copied", "goose": "copied"},
    }
    (world.project / ".goose/skills/own/SKILL.md").write_text(skill_text("own", "Other.\n"), encoding="utf-8")
    assert states(installer)["own", "project"]["goose"] == "shadowed"
    assert installer.coverage().skills[0].install == ""
