"""The standard places, end to end: who wins, who is told, what is left out."""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING

import pytest

from prowess import AGENTS, Catalog, DuplicateSkillError, Limits, SkillScope, SourceError, discover, scan, watch
from tests.repositories import skill_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from prowess.literals import OnDuplicate

    Put = Callable[..., Path]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "w" / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "w" / "repo" / "pkg").mkdir()
    return tmp_path / "w" / "repo"


def kit(where: str) -> str:
    return f"name: kit\ndescription: {where}\n"


def test_skills_are_found_in_every_standard_place(put: Put, home: Path, repo: Path) -> None:
    for number, place in enumerate(
        [
            *("w/repo/.prowess/skills", "w/repo/.agents/skills", "w/repo/.claude/skills", "w/repo/pkg/.agents/skills"),
            *("home/.config/prowess/skills", "home/.agents/skills", "home/.claude/skills"),
        ]
    ):
        put(f"{place}/s{number}")
    catalog = discover(repo / "pkg", home)
    assert catalog.names == tuple(f"s{n}" for n in range(7))
    assert [s.scope for s in catalog] == [SkillScope.PROJECT] * 4 + [SkillScope.USER] * 3
    assert catalog.issues == ()
    assert not any(s.preload for s in catalog)


def test_the_nearest_folder_wins_then_the_project_then_the_user(put: Put, home: Path, repo: Path) -> None:
    order = [
        *("w/repo/pkg/.prowess/skills", "w/repo/pkg/.agents/skills", "w/repo/pkg/.claude/skills"),
        *("w/repo/.prowess/skills", "w/repo/.agents/skills", "w/repo/.claude/skills"),
        *("home/.config/prowess/skills", "home/.agents/skills", "home/.claude/skills"),
    ]
    folders = [put(f"{place}/kit", kit(place)) for place in order]
    for place, folder in zip(order, folders, strict=True):
        catalog = discover(repo / "pkg", home)
        assert catalog["kit"].description == place
        (folder / "SKILL.md").unlink()
    assert len(discover(repo / "pkg", home)) == 0


def test_a_project_skill_that_shadows_the_users_is_a_warning(put: Put, home: Path, repo: Path) -> None:
    mine = put("home/.agents/skills/kit")
    theirs = put("w/repo/.agents/skills/kit")
    catalog = discover(repo, home)
    assert catalog["kit"].scope is SkillScope.PROJECT
    (issue,) = catalog.issues
    assert (issue.code, issue.severity, issue.path) == ("shadowed-by-project", "warning", str(mine / "SKILL.md"))
    assert str(theirs / "SKILL.md") in issue.message
    (lost,) = catalog.shadowed
    assert (lost.location, lost.winner) == (str(mine / "SKILL.md"), str(theirs / "SKILL.md"))


def test_the_projects_skills_may_be_left_out(put: Put, home: Path, repo: Path) -> None:
    put("home/.agents/skills/mine")
    put("w/repo/.agents/skills/theirs")
    catalog = discover(repo, home, project=False)
    assert catalog.names == ("mine",)
    assert {p.scope for p in catalog.explain("mine").places} == {SkillScope.USER}


def test_a_skill_above_the_git_root_does_not_count(put: Put, home: Path, repo: Path) -> None:
    put("w/.agents/skills/above")
    put("w/repo/.agents/skills/here")
    assert discover(repo / "pkg", home).names == ("here",)


def test_without_a_git_root_only_the_working_folder_counts(put: Put, home: Path, tmp_path: Path) -> None:
    put("w/plain/.agents/skills/above")
    put("w/plain/pkg/.agents/skills/here")
    assert discover(tmp_path / "w" / "plain" / "pkg", home).names == ("here",)


def test_in_the_home_folder_there_is_no_project(put: Put, home: Path) -> None:
    put("home/.agents/skills/mine")
    put("home/.prowess/skills/planted")
    (home / ".git").mkdir()
    catalog = discover(home, home)
    assert catalog.names == ("mine",)
    assert catalog["mine"].scope is SkillScope.USER
    (home / "x").mkdir()
    assert discover(home / "x", home).names == ("mine",)


def test_agents_add_their_folders(put: Put, home: Path, repo: Path) -> None:
    put("w/repo/.kiro/skills/one")
    put("home/.kiro/skills/two")
    assert discover(repo, home).names == ()
    assert discover(repo, home, agents=["kiro-cli"]).names == ("one", "two")
    with pytest.raises(SourceError):
        discover(repo, home, agents=["none-such"])


def test_every_agent_can_be_asked_for_at_once(put: Put, home: Path, repo: Path) -> None:
    for agent in AGENTS.values():
        put(f"w/repo/{agent.project}/{agent.id}")
    assert set(discover(repo, home, agents=AGENTS).names) == set(AGENTS)


def test_environment_variables_move_folders_unless_a_home_is_given(
    put: Put, home: Path, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("cfg/prowess/skills/moved")
    put("claude/skills/also-moved")
    put("home/.config/prowess/skills/fixed")
    put("home/.agents/skills/shared")
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "cfg"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    assert discover(repo).names == ("also-moved", "moved", "shared")
    assert discover(repo, home).names == ("fixed", "shared")


def test_the_working_folder_is_the_default(put: Put, home: Path, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put("w/repo/.agents/skills/here")
    monkeypatch.chdir(repo / "pkg")
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(home))
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    catalog = discover()
    assert catalog["here"].path == repo / ".agents/skills/here/SKILL.md"


@pytest.mark.needs_posix
def test_every_place_is_explained(put: Put, home: Path, repo: Path) -> None:
    put("w/repo/.agents/skills/here")
    places = discover(repo, home).explain("here").places
    assert [(os.path.relpath(p.path, repo.parent.parent), p.state, p.found) for p in places] == [
        ("w/repo/.prowess/skills", "missing", 0),
        ("w/repo/.agents/skills", "scanned", 1),
        ("w/repo/.claude/skills", "missing", 0),
        ("w/repo/.github/skills", "missing", 0),
        ("home/.config/prowess/skills", "missing", 0),
        ("home/.agents/skills", "missing", 0),
        ("home/.claude/skills", "missing", 0),
    ]


def test_limits_hold_for_discovery_too(put: Put, home: Path, repo: Path) -> None:
    put("w/repo/.agents/skills/here")
    catalog = discover(repo, home, limits=Limits(max_scan_seconds=0))
    assert (catalog.names, [i.code for i in catalog.issues]) == ((), ["deadline"])


# -- links as installers make them -------------------------------------------------------------------------------------


def names_and_issues(catalog: Catalog) -> tuple[tuple[str, ...], list[str]]:
    return catalog.names, [issue.code for issue in catalog.issues]


@pytest.mark.needs_links
def test_a_link_from_one_place_to_another_gives_the_skill_once(put: Put, home: Path, repo: Path) -> None:
    for base in (repo, home):
        name = f"{base.name}-kit"
        put(f"{base.relative_to(home.parent)}/.agents/skills/{name}")
        (base / ".claude" / "skills").mkdir(parents=True)
        (base / ".claude" / "skills" / name).symlink_to(f"../../.agents/skills/{name}")
    assert names_and_issues(discover(repo, home)) == (("home-kit", "repo-kit"), [])


@pytest.mark.needs_links
def test_a_place_that_is_a_link_to_another_gives_its_skills_once(put: Put, home: Path, repo: Path) -> None:
    put("w/repo/.agents/skills/kit")
    (repo / ".claude").mkdir()
    (repo / ".claude" / "skills").symlink_to("../.agents/skills")
    assert names_and_issues(discover(repo, home)) == (("kit",), [])


@pytest.mark.needs_links
def test_a_link_within_the_project_is_followed(put: Put, home: Path, repo: Path) -> None:
    put("w/repo/vendor/kit")
    (repo / ".agents" / "skills").mkdir(parents=True)
    (repo / ".agents" / "skills" / "kit").symlink_to("../../vendor/kit")
    assert names_and_issues(discover(repo / "pkg", home)) == (("kit",), [])


@pytest.mark.needs_links
def test_a_link_into_an_install_base_is_followed(put: Put, home: Path, repo: Path) -> None:
    put("home/.agents/skills/.cache/kit")
    (repo / ".agents" / "skills").mkdir(parents=True)
    (repo / ".agents" / "skills" / "kit").symlink_to(home / ".agents/skills/.cache/kit")
    assert names_and_issues(discover(repo, home)) == (("kit",), ["skipped-directory"])


@pytest.mark.needs_links
def test_a_link_out_of_the_project_is_refused(put: Put, home: Path, repo: Path, tmp_path: Path) -> None:
    put("elsewhere/kit")
    put("home/private/kit")
    (repo / ".agents" / "skills").mkdir(parents=True)
    (repo / ".agents" / "skills" / "one").symlink_to(tmp_path / "elsewhere" / "kit")
    (repo / ".agents" / "skills" / "two").symlink_to(home / "private" / "kit")
    assert names_and_issues(discover(repo, home)) == ((), ["link-refused", "link-refused"])


@pytest.mark.needs_links
@pytest.mark.parametrize("link", [".agents/skills", ".claude", "pkg/.claude/skills"])
def test_a_place_that_leads_out_of_the_repository_is_not_searched(
    put: Put, home: Path, repo: Path, tmp_path: Path, link: str
) -> None:
    put("private/mine")
    put("private/skills/mine2")
    put("home/.agents/skills/own")
    (repo / link).parent.mkdir(parents=True, exist_ok=True)
    (repo / link).symlink_to(os.path.relpath(tmp_path / "private", (repo / link).parent))
    # A link to one skill, which a search of that place would permit.
    (repo / ".prowess/skills").mkdir(parents=True)
    (repo / ".prowess/skills/again").symlink_to(tmp_path / "private/mine")
    catalog = discover(repo / "pkg", home)
    assert catalog.names == ("own",)
    refused = {issue.path: issue.hint for issue in catalog.issues if issue.code == "link-refused"}
    place = str(repo / link / "skills") if link == ".claude" else str(repo / link)
    assert refused.keys() == {place, str(repo / ".prowess/skills/again")}
    assert "scan the folder that the link leads to" in refused[place]


@pytest.mark.needs_links
def test_a_place_may_lead_to_the_users_own_skills(put: Put, home: Path, repo: Path) -> None:
    put("home/.agents/skills/own")
    (repo / ".claude").mkdir()
    (repo / ".claude/skills").symlink_to(home / ".agents/skills")
    catalog = discover(repo, home)
    assert (catalog.names, catalog.issues) == (("own",), ())


@pytest.mark.needs_links
def test_a_users_link_into_a_project_is_refused_when_projects_are_left_out(put: Put, home: Path, repo: Path) -> None:
    put("w/repo/vendor/kit")
    (home / ".agents" / "skills").mkdir(parents=True)
    (home / ".agents" / "skills" / "kit").symlink_to(repo / "vendor" / "kit")
    assert names_and_issues(discover(repo, home, project=False)) == ((), ["link-refused"])


def test_the_users_skills_may_be_left_out(put: Put, home: Path, repo: Path) -> None:
    put("w/repo/.agents/skills/mine")
    for place in (".agents/skills", ".config/prowess/skills", ".goose/skills", ".config/goose/skills"):
        put(f"home/{place}/theirs-{place.count('.')}")
    catalog = discover(repo, home, agents=["goose"], user=False)
    assert (catalog.names, {place.scope for place in catalog.places}) == (("mine",), {SkillScope.PROJECT})
    assert discover(repo, home, project=False, user=False).places == ()


def test_discovery_takes_the_depth_the_prefixes_and_the_winner_of_a_scan(put: Put, home: Path, repo: Path) -> None:
    put("w/repo/.agents/skills/kit", kit("the project's"))
    put("w/repo/.agents/skills/_draft/a/low")
    put("home/.agents/skills/kit", kit("the user's"))
    assert discover(repo, home).names == ("kit",)
    assert discover(repo, home, skip_prefixes=()).names == ("kit", "low")
    assert discover(repo, home, skip_prefixes=(), max_depth=2).names == ("kit",)
    assert discover(repo, home, on_duplicate="last")["kit"].description == "the user's"
    with pytest.raises(DuplicateSkillError):
        discover(repo, home, on_duplicate="error")


def test_discovery_tells_of_issues_and_not_of_places_that_are_missing(put: Put, home: Path, repo: Path) -> None:
    put("w/repo/.agents/skills/bad", "name: bad\n")
    put("w/repo/.agents/skills/_draft")
    heard: list[str] = []
    catalog = discover(repo, home, on_issue=lambda issue: heard.append(issue.code))
    assert (heard, len(catalog.issues)) == (["skipped-directory", "description-from-body"], 2)
    assert [place.state for place in catalog.places].count("missing") > 1


@pytest.mark.parametrize("options", [{"max_depth": -1}, {"skip_prefixes": "_"}, {"on_issue": 3}])
def test_keywords_of_discovery_that_make_no_sense_are_refused(options: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=next(iter(options))):
        discover(tmp_path, tmp_path, **options)  # type: ignore[arg-type]  # on purpose


def test_watching_the_standard_places_takes_every_keyword_of_discovery(put: Put, home: Path, repo: Path) -> None:
    put("w/repo/.agents/skills/kit")
    with watch(cwd=repo, home=home, user=False, max_depth=1, on_duplicate="last") as catalogs:
        assert next(catalogs).names == ("kit",)


def _put_copy(folder: Path, body: str = "Do it.\n") -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text("pdf", body), encoding="utf-8")
    (folder / "notes.md").write_text("Of the skill.\n", encoding="utf-8")
    return folder


def test_copies_for_several_agents_are_one_skill_until_one_of_them_is_edited(tmp_path: Path) -> None:
    project = tmp_path / "home" / "project"
    first, second = (_put_copy(project / place / "pdf") for place in (".agents/skills", ".claude/skills"))

    def find(on_duplicate: OnDuplicate = "first") -> Catalog:
        return discover(cwd=project, home=tmp_path / "home", on_duplicate=on_duplicate)

    assert (find().names, find().shadowed, find().issues, find().explain("pdf").shadowed) == (("pdf",), (), (), ())
    assert find("error")["pdf"].location == str(first / "SKILL.md")
    merged = pickle.loads(pickle.dumps(find() | Catalog()))  # noqa: S301 - our own
    assert merged.shadowed == ()
    (second / "notes.md").write_text("Of thy skill.\n", encoding="utf-8")
    assert [lost.location for lost in find().shadowed] == [str(second / "SKILL.md")]
    assert [issue.code for issue in find().issues] == ["duplicate-name"]
    with pytest.raises(DuplicateSkillError):
        find("error")


def test_folders_that_a_program_names_keep_telling_of_equal_copies(tmp_path: Path) -> None:
    """Only where agents look are copies made on purpose."""
    first, second = _put_copy(tmp_path / "one" / "pdf"), _put_copy(tmp_path / "two" / "pdf")
    assert [lost.location for lost in scan(first, second).shadowed] == [str(second / "SKILL.md")]
