"""Which folders count as a project's and as a user's, and where the walk up ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from prowess import AGENTS, SkillScope, SourceError, discover
from prowess.discovery.agents import install_bases, standard_places
from prowess.files.projects import git_root, project_folders

if TYPE_CHECKING:
    from pathlib import Path

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def folder(path: Path, *, git: bool = False) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    if git:
        (path / ".git").mkdir()
    return path


def projects(cwd: Path, home: Path) -> list[Path]:
    return [type(cwd)(found) for found in project_folders(str(cwd), str(home))]


# -- the walk up -------------------------------------------------------------------------------------------------------


def test_folders_count_from_the_working_folder_up_to_the_git_root(home: Path, tmp_path: Path) -> None:
    repo = folder(tmp_path / "w" / "repo", git=True)
    deep = folder(repo / "a" / "b")
    assert projects(deep, home) == [deep, repo / "a", repo]
    assert projects(repo, home) == [repo]
    assert git_root(str(deep), str(home)) == str(repo)


def test_the_nearest_git_root_ends_the_walk(home: Path, tmp_path: Path) -> None:
    folder(tmp_path / "w" / "outer", git=True)
    inner = folder(tmp_path / "w" / "outer" / "inner", git=True)
    deep = folder(inner / "x")
    assert projects(deep, home) == [deep, inner]


def test_a_git_file_marks_a_root_too(home: Path, tmp_path: Path) -> None:
    repo = folder(tmp_path / "w" / "tree")
    (repo / ".git").write_text("gitdir: elsewhere\n", encoding="utf-8")
    deep = folder(repo / "x")
    assert projects(deep, home) == [deep, repo]


def test_without_a_git_root_only_the_working_folder_counts(home: Path, tmp_path: Path) -> None:
    deep = folder(tmp_path / "w" / "plain" / "x")
    assert projects(deep, home) == [deep]
    assert git_root(str(deep), str(home)) is None


def test_the_walk_ends_at_the_home_folder(home: Path) -> None:
    folder(home, git=True)
    deep = folder(home / "work" / "x")
    assert projects(deep, home) == [deep]
    repo = folder(home / "work" / "repo", git=True)
    assert projects(folder(repo / "y"), home) == [repo / "y", repo]


def test_the_home_folder_itself_is_not_a_project(home: Path) -> None:
    folder(home, git=True)
    assert projects(home, home) == []


@pytest.mark.needs_links
def test_the_home_folder_is_known_through_a_link(home: Path, tmp_path: Path) -> None:
    folder(home, git=True)
    (tmp_path / "alias").symlink_to("home")
    assert projects(home, tmp_path / "alias") == []
    assert projects(tmp_path / "alias", home) == []
    deep = folder(home / "x")
    assert projects(deep, tmp_path / "alias") == [deep]


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a folder away")
@pytest.mark.parametrize("whose", ["repo", "repo/a"])
def test_the_walk_ends_at_a_folder_that_someone_else_owns(home: Path, tmp_path: Path, whose: str) -> None:
    repo = folder(tmp_path / "w" / "repo", git=True)
    deep = folder(repo / "a" / "b")
    assert len(projects(deep, home)) == 3
    os.chown(tmp_path / "w" / whose, 54321, -1)
    assert projects(deep, home) == [deep]
    assert git_root(str(deep), str(home)) is None


@pytest.mark.needs_modes
@pytest.mark.parametrize("open_to_all", ["repo", "repo/a"])
def test_the_walk_ends_at_a_folder_that_everyone_may_write_to(home: Path, tmp_path: Path, open_to_all: str) -> None:
    repo = folder(tmp_path / "w" / "repo", git=True)
    deep = folder(repo / "a" / "b")
    (tmp_path / "w" / open_to_all).chmod(0o1777)
    assert projects(deep, home) == [deep]


MOUNTED = """
import subprocess, sys
from prowess.files.projects import git_root, project_folders
where, home = sys.argv[1:]
deep = where + "/mounted/x/y"
before = project_folders(deep, home)
done = subprocess.run(["mount", "-t", "tmpfs", "none", where + "/mounted"])
if done.returncode: sys.exit(77)
subprocess.run(["mkdir", "-p", deep], check=True)
print(len(before), *project_folders(deep, home), git_root(deep, home))
"""


def test_the_walk_ends_where_another_file_system_begins(home: Path, tmp_path: Path) -> None:
    repo = folder(tmp_path / "w" / "repo", git=True)
    deep = folder(repo / "mounted" / "x" / "y")
    command = ["unshare", "--mount", sys.executable, "-c", MOUNTED, str(repo), str(home)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no unshare command")
    if done.returncode:
        pytest.skip("a file system cannot be mounted here")
    assert done.stdout.split() == ["4", str(deep), "None"]


# -- places ------------------------------------------------------------------------------------------------------------


def test_the_standard_places_in_the_order_in_which_they_win(home: Path, tmp_path: Path) -> None:
    repo = folder(tmp_path / "w" / "repo", git=True)
    deep = folder(repo / "x")
    places = standard_places(str(deep), str(home))
    assert [(p.path, p.scope) for p in places] == [
        *(
            (str(at / name), SkillScope.PROJECT)
            for at in (deep, repo)
            for name in (".prowess/skills", ".agents/skills", ".claude/skills", ".github/skills")
        ),
        (str(home / ".config/prowess/skills"), SkillScope.USER),
        (str(home / ".agents/skills"), SkillScope.USER),
        (str(home / ".claude/skills"), SkillScope.USER),
    ]


def test_a_skill_of_github_copilot_is_found(home: Path, tmp_path: Path) -> None:
    repo = folder(tmp_path / "w" / "repo", git=True)
    path = folder(repo / ".github" / "skills" / "review") / "SKILL.md"
    path.write_text("---\nname: review\ndescription: Reviews.\n---\nReview.\n", encoding="utf-8")
    assert discover(folder(repo / "src"), home)["review"].path == path


def test_the_project_may_be_left_out(home: Path, tmp_path: Path) -> None:
    repo = folder(tmp_path / "w" / "repo", git=True)
    places = standard_places(str(repo), str(home), project=False)
    assert {p.scope for p in places} == {SkillScope.USER}
    assert len(places) == 3


def test_agents_add_their_folders_behind_the_standard_ones(home: Path, tmp_path: Path) -> None:
    repo = folder(tmp_path / "w" / "repo", git=True)
    usual = [p.path for p in standard_places(str(repo), str(home))]
    more = [p.path for p in standard_places(str(repo), str(home), agents=["kiro-cli", "goose", "claude-code"])]
    assert more == [
        *usual[:4],
        str(repo / ".kiro/skills"),
        str(repo / ".goose/skills"),
        *usual[4:],
        str(home / ".kiro/skills"),
        str(home / ".config/goose/skills"),
    ]


def test_no_place_is_named_twice(home: Path, tmp_path: Path) -> None:
    repo = folder(tmp_path / "w" / "repo", git=True)
    paths = [p.path for p in standard_places(str(repo), str(home), agents=AGENTS)]
    assert len(paths) == len(set(paths))


def test_an_unknown_agent_is_refused(home: Path) -> None:
    with pytest.raises(SourceError, match="frobnicator") as caught:
        standard_places(str(home), str(home), agents=["kiro-cli", "frobnicator"])
    assert caught.value.code == "unknown-agent"


@pytest.mark.needs_posix
@pytest.mark.parametrize(
    ("env", "agents", "moved"),
    [
        ({"XDG_CONFIG_HOME": "/cfg"}, [], "/cfg/prowess/skills"),
        ({"XDG_CONFIG_HOME": "/cfg"}, ["goose"], "/cfg/goose/skills"),
        ({"CLAUDE_CONFIG_DIR": "/cl"}, [], "/cl/skills"),
        ({"CODEX_HOME": "/cx"}, ["codex"], "/cx/skills"),
        ({"GROK_HOME": "/gr"}, ["grok"], "/gr/skills"),
        ({"HERMES_HOME": "/he"}, ["hermes-agent"], "/he/skills"),
        ({"VIBE_HOME": "/vi"}, ["mistral-vibe"], "/vi/skills"),
        ({"AUTOHAND_HOME": "/au"}, ["autohand-code"], "/au/skills"),
    ],
)
def test_variables_move_folders(home: Path, env: dict[str, str], agents: list[str], moved: str) -> None:
    fixed = [p.path for p in standard_places(str(home), str(home), agents=agents)]
    paths = [p.path for p in standard_places(str(home), str(home), agents=agents, env=env)]
    assert moved in paths
    assert moved not in fixed
    assert len(paths) == len(fixed)


@pytest.mark.parametrize("value", ["", "relative/path"])
def test_a_variable_that_names_no_absolute_folder_moves_nothing(home: Path, value: str) -> None:
    env = dict.fromkeys(("XDG_CONFIG_HOME", "CODEX_HOME", "GROK_HOME"), value)
    agents = ["codex", "grok", "goose"]
    usual = standard_places(str(home), str(home), agents=agents)
    assert standard_places(str(home), str(home), agents=agents, env=env) == usual


@pytest.mark.needs_posix
def test_installers_put_skills_in_two_bases(home: Path) -> None:
    assert install_bases(str(home), {}) == (str(home / ".config/prowess/skills"), str(home / ".agents/skills"))
    assert install_bases(str(home), {"XDG_CONFIG_HOME": "/cfg"})[0] == "/cfg/prowess/skills"


# -- agents ------------------------------------------------------------------------------------------------------------


def test_every_agent_has_an_id_a_title_and_a_folder_in_a_project() -> None:
    assert len(AGENTS) == 79
    for key, agent in AGENTS.items():
        assert key == agent.id
        assert agent.title
        assert agent.project
        assert not agent.project.startswith(("/", "~"))
        assert ".." not in agent.project
        assert all(path.startswith("~/") and ".." not in path for path in agent.user)
        assert bool(agent.variable) == bool(agent.own)


def test_the_table_holds_what_is_known_of_each_agent(shared: Path) -> None:
    rows = json.loads((shared / "reference" / "agents.json").read_text(encoding="utf-8"))
    assert {row["id"] for row in rows} == set(AGENTS)
    for row in rows:
        agent = AGENTS[row["id"]]
        assert (agent.title, agent.project) == (row["name"], row["project"])
        wanted = row["global"]
        assert wanted in agent.user if isinstance(wanted, str) and wanted.startswith("~") else not agent.user, row["id"]
