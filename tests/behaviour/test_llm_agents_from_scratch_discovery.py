"""How llm_agents_from_scratch (S4) finds the user's and the project's skills."""

from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]


def test_the_working_folder_and_the_home_folder_are_looked_up_at_each_call(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4-2: .agents/skills in both, whatever they are at that moment."""
    for place in ("one", "two"):
        put(f"{place}/work/.agents/skills/project-{place}")
        put(f"{place}/home/.agents/skills/user-{place}")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    for place in ("one", "two"):
        monkeypatch.chdir(tmp_path / place / "work")
        monkeypatch.setenv("HOME", str(tmp_path / place / "home"))
        monkeypatch.setenv("USERPROFILE", str(tmp_path / place / "home"))
        catalog = prowess.discover()
        assert {skill.name: skill.scope for skill in catalog} == {
            f"project-{place}": prowess.SkillScope.PROJECT,
            f"user-{place}": prowess.SkillScope.USER,
        }


def test_files_beside_skills_and_folders_without_one_are_nothing(put: Put, tmp_path: Path) -> None:
    """S4-10: neither is worth an issue; a missing folder of either scope is not either."""
    put("work/.agents/skills/pdf")
    (tmp_path / "work/.agents/skills/README.md").touch()
    (tmp_path / "work/.agents/skills/empty").mkdir()
    catalog = prowess.discover(cwd=tmp_path / "work", home=tmp_path / "home")
    assert (catalog.names, catalog.issues) == (("pdf",), ())


def test_hidden_folders_are_not_skills_unless_asked_for(put: Put, tmp_path: Path) -> None:
    """S4-10: scan(skip_prefixes=()) takes them."""
    put(".dot")
    assert len(prowess.scan(tmp_path)) == 0
    assert prowess.scan(tmp_path, max_depth=1, skip_prefixes=()).names == (".dot",)


def test_a_linked_skill_of_the_project_has_the_name_of_the_link(put: Put, tmp_path: Path) -> None:
    """S4-10: a link into the project is followed, and the link is the folder that the name is compared with."""
    (tmp_path / "repo/.git").mkdir(parents=True)
    put("repo/store/pdf-v2", name="pdf")
    link = tmp_path / "repo/.agents/skills/pdf"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../store/pdf-v2")
    catalog = prowess.discover(cwd=tmp_path / "repo", home=tmp_path / "home")
    assert (catalog.names, catalog.issues) == (("pdf",), ())
    assert catalog["pdf"].dir == link


def test_a_link_to_an_installed_skill_is_followed_and_the_skill_found_once(put: Put, tmp_path: Path) -> None:
    """S4-10: from a project into the user's own folder, outside every git repository."""
    put("home/.agents/skills/pdf")
    link = tmp_path / "work/.agents/skills/pdf"
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "home/.agents/skills/pdf")
    catalog = prowess.discover(cwd=tmp_path / "work", home=tmp_path / "home")
    assert (catalog.names, catalog.shadowed, catalog.issues) == (("pdf",), (), ())
    assert catalog["pdf"].dir == link


def test_a_projects_skill_wins_over_the_users_with_a_warning(put: Put, tmp_path: Path) -> None:
    """S4-11: both copies are named, and so is why."""
    project = put("work/.agents/skills/pdf")
    user = put("home/.agents/skills/pdf")
    catalog = prowess.discover(cwd=tmp_path / "work", home=tmp_path / "home")
    assert (catalog["pdf"].path, catalog["pdf"].scope) == (project, prowess.SkillScope.PROJECT)
    assert [(issue.code, issue.path, issue.severity) for issue in catalog.issues] == [
        ("shadowed-by-project", str(user), "warning")
    ]
    assert [(lost.name, lost.location, lost.winner) for lost in catalog.shadowed] == [("pdf", str(user), str(project))]


def test_the_projects_skills_can_be_left_out(put: Put, tmp_path: Path) -> None:
    """S4-11: project=False gives the user's copy and shadows nothing."""
    put("work/.agents/skills/pdf")
    user = put("home/.agents/skills/pdf")
    catalog = prowess.discover(cwd=tmp_path / "work", home=tmp_path / "home", project=False)
    assert (catalog["pdf"].path, catalog.shadowed) == (user, ())


def test_within_one_place_the_first_folder_wins_or_the_last_if_asked(put: Put, tmp_path: Path) -> None:
    """S4-11: on_duplicate="last" is for those who want the later one; the order stays by name."""
    put("a", name="pdf", description="Of a.")
    put("b", name="ant")
    put("c", name="pdf", description="Of c.")
    assert [skill.description for skill in prowess.scan(tmp_path)] == ["Does one thing.", "Of a."]
    last = prowess.scan(tmp_path, on_duplicate="last")
    assert [skill.description for skill in last] == ["Does one thing.", "Of c."]
