"""Which folders docker-agent (S2) looks in, and which copy of a skill wins."""

from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]


def test_what_is_not_a_known_place_is_refused(tmp_path: Path) -> None:
    """S2-1: an agent that is not in the table is an error, not silently nothing."""
    with pytest.raises(prowess.SourceError) as caught:
        prowess.discover(cwd=tmp_path, home=tmp_path / "home", agents=["no-such-agent"])
    assert caught.value.code == "unknown-agent"


def test_an_address_is_not_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S2-1: scanning looks at folders only, so an address finds nothing and nothing is fetched."""
    monkeypatch.chdir(tmp_path)
    assert len(prowess.scan("https://skills.invalid/")) == 0
    with pytest.raises(prowess.SourceError):
        prowess.scan("https://skills.invalid/", missing="error")


@pytest.mark.parametrize(
    ("winner", "loser"),
    [
        ("repo/sub/.agents/skills", "repo/.agents/skills"),
        ("repo/sub/.agents/skills", "repo/sub/.claude/skills"),
        ("repo/sub/.claude/skills", "home/.agents/skills"),
        ("repo/.agents/skills", "home/.agents/skills"),
        ("home/.agents/skills", "home/.claude/skills"),
        ("home/.claude/skills", "home/.codex/skills"),
        ("repo/sub/.claude/skills", "repo/.agents/skills"),
    ],
)
def test_the_projects_folders_win_over_the_users_and_the_nearest_first(
    winner: str, loser: str, put: Put, tmp_path: Path
) -> None:
    """S2-2: and .agents wins over .claude in the same folder; other agents' folders are asked for by name."""
    (tmp_path / "repo/.git").mkdir(parents=True)
    put(f"{loser}/pdf", description="Loses.")
    put(f"{winner}/pdf", description="Wins.")
    (tmp_path / "repo/sub").mkdir(exist_ok=True)
    catalog = prowess.discover(cwd=tmp_path / "repo/sub", home=tmp_path / "home", agents=["codex"])
    assert [skill.description for skill in catalog] == ["Wins."]
    assert [lost.location for lost in catalog.shadowed] == [str(tmp_path / loser / "pdf/SKILL.md")]


def test_the_folders_of_other_agents_are_asked_for(put: Put, tmp_path: Path) -> None:
    """S2-2: by the id of the agent, for its folders in the project and in the home folder."""
    put("home/.codex/skills/one")
    put("work/.windsurf/skills/two")
    work, home = tmp_path / "work", tmp_path / "home"
    assert len(prowess.discover(cwd=work, home=home)) == 0
    assert prowess.discover(cwd=work, home=home, agents=["codex", "windsurf"]).names == ("one", "two")


def test_skills_in_groups_are_found_in_every_place(put: Put, tmp_path: Path) -> None:
    """S2-2: no place is flat; a folder of skills may be sorted into folders."""
    put("work/.claude/skills/group/one")
    put("home/.agents/skills/group/two")
    assert prowess.discover(cwd=tmp_path / "work", home=tmp_path / "home").names == ("one", "two")


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_the_walk_ends_at_the_git_root(kind: str, put: Put, tmp_path: Path) -> None:
    """S2-3: everything from the working folder up to it counts, and nothing above, also below the home folder."""
    repo = tmp_path / "home/work/repo"
    (repo / "a/b").mkdir(parents=True)
    if kind == "folder":
        (repo / ".git").mkdir()
    else:
        (repo / ".git").write_text("gitdir: elsewhere\n", encoding="utf-8")
    for number, folder in enumerate(("home/work", "home/work/repo", "home/work/repo/a", "home/work/repo/a/b")):
        put(f"{folder}/.agents/skills/s{number}")
    assert prowess.discover(cwd=repo / "a/b", home=tmp_path / "home").names == ("s1", "s2", "s3")


def test_without_a_git_root_only_the_working_folder_counts(put: Put, tmp_path: Path) -> None:
    """S2-3: a folder above that merely happens to hold skills is nobody's project."""
    put("home/work/.agents/skills/above")
    put("home/work/here/.agents/skills/here")
    assert prowess.discover(cwd=tmp_path / "home/work/here", home=tmp_path / "home").names == ("here",)


def test_no_variable_replaces_the_standard_places(put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S2-4: a kit of skills is scanned by naming its folder."""
    put("work/.agents/skills/mine")
    put("kit/skills/group/theirs")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("DOCKER_AGENT_KIT_DIR", str(tmp_path / "kit"))
    assert prowess.discover(cwd=tmp_path / "work").names == ("mine",)
    assert prowess.scan(tmp_path / "kit/skills").names == ("theirs",)


def test_a_flat_scan_sees_the_folders_of_the_root_only(put: Put, tmp_path: Path) -> None:
    """S2-5: max_depth=1; hidden folders are left out, the root may itself be hidden."""
    for folder in ("one", "group/two", ".three"):
        put(f".skills/{folder}")
    assert prowess.scan(tmp_path / ".skills", max_depth=1).names == ("one",)


def test_a_deep_scan_leaves_out_hidden_folders_at_every_depth(put: Put, tmp_path: Path) -> None:
    """S2-5: max_depth=None goes all the way down; nested=True also finds skills inside skills."""
    deep = "/".join(f"d{n}" for n in range(10))
    for folder in ("one", "one/inner", f"{deep}/low", "group/.hidden/two"):
        put(folder)
    assert prowess.scan(tmp_path, max_depth=None, nested=True).names == ("inner", "low", "one")
    assert prowess.scan(tmp_path, max_depth=None).names == ("low", "one")


@pytest.mark.parametrize("max_depth", [1, None])
def test_a_linked_root_is_entered_and_a_link_around_is_not(max_depth: int | None, put: Put, tmp_path: Path) -> None:
    """S2-5: flat or deep, a root may be a link; a link to a folder around itself ends there."""
    put("real/pdf")
    (tmp_path / "real/loop").symlink_to(tmp_path / "real")
    (tmp_path / "root").symlink_to(tmp_path / "real")
    catalog = prowess.scan(tmp_path / "root", max_depth=max_depth)
    assert catalog.names == ("pdf",)
    assert [issue.code for issue in catalog.issues] == ["link-loop"]


def test_what_is_skipped_is_recorded(put: Put, tmp_path: Path) -> None:
    """S2-6: a bad file never stops a scan, and never vanishes without an issue."""
    put("good")
    bad = put("bad", text="# No frontmatter\n")
    odd = tmp_path / "odd/SKILL.md"
    odd.mkdir(parents=True)
    put("notes", file="README.md")
    catalog = prowess.scan(tmp_path, tmp_path / "missing")
    assert catalog.names == ("good",)
    assert [(issue.code, issue.path) for issue in catalog.issues] == [
        ("no-frontmatter", str(bad)),
        ("missing-root", str(tmp_path / "missing")),
        ("not-a-regular-file", str(odd)),
    ]


def test_the_order_is_by_name_wherever_the_skills_lie(put: Put, tmp_path: Path) -> None:
    """S2-7: neither the folders nor the order of the roots matter."""
    for folder in ("b/zebra", "b/ant", "a/mole"):
        put(folder)
    catalog = prowess.scan(tmp_path / "b", tmp_path / "a")
    assert [skill.name for skill in catalog] == ["ant", "mole", "zebra"]


def test_one_name_is_one_skill(put: Put, tmp_path: Path) -> None:
    """S2-8: the last wins where that was asked for, and catalogues that are merged keep the left one's skill."""
    put("a/pdf", description="Of a.")
    put("b/pdf", description="Of b.")
    last = prowess.scan(tmp_path / "a", tmp_path / "b", on_duplicate="last")
    assert [skill.description for skill in last] == ["Of b."]
    merged = prowess.scan(tmp_path / "a") | prowess.scan(tmp_path / "b")
    assert [skill.description for skill in merged] == ["Of a."]
    assert [lost.location for lost in merged.shadowed] == [str(tmp_path / "b/pdf/SKILL.md")]


def test_a_choice_of_names_is_made_from_the_catalogue(put: Put, tmp_path: Path) -> None:
    """S2-9: the chosen skills are a catalogue again, and a name that does not exist is an error."""
    for folder in ("ant", "bee", "cat"):
        put(folder)
    catalog = prowess.scan(tmp_path)
    chosen = prowess.Catalog(catalog[name] for name in ("cat", "ant"))
    assert chosen.names == ("ant", "cat")
    with pytest.raises(prowess.UnknownSkillError):
        catalog["dog"]
