"""``.git``, however it is spelled, comes in by no way, and is not part of a skill for anyone."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prowess
from prowess.errors import FetchError, ResourceNotFoundError, SkillError, SkillValidationError
from prowess.fetch.archive.unpack import unpack, unpack_tree
from prowess.names import find_git_repository, is_git_name, split_relative_path
from prowess.sources.mcp.entry import parse_entry
from tests.fetch.packing import FILES, tarred, zipped
from tests.mcp_peers import entry_of, skill_md, talk
from tests.repositories import ENV, Repository, skill_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.mcp_peers import Talk
    from tests.web_sites import Site

PLAIN = (".git", ".GIT", ".Git")
DISGUISED = (
    *("GIT~1", "git~1", "Git~1 ", ".git.", ".git ", ".git . .", ".GIT...", "git~1."),
    *(".git::$INDEX_ALLOCATION", ".git:x", ".git .:x", "git~1::$DATA"),
    *(".g\u200cit", ".gi\u200dt", "\ufeff.git", ".git\u206f", "\u202e.G\u200fI\u2060T".replace("\u2060", "\u206a")),
)
OTHERS = (
    ".gitignore",
    ".gitattributes",
    ".github",
    "git",
    "x.git",
    ".git-x",
    ".gi",
    "git~2",
    "git~10",
    "..git",
    "digit~1",
)


@pytest.mark.parametrize("name", [*PLAIN, *DISGUISED])
def test_whatever_a_file_system_takes_for_git_is_known(name: str) -> None:
    assert is_git_name(name)
    with pytest.raises(prowess.PathTraversalError) as caught:
        split_relative_path(f"a/{name}/config")
    assert caught.value.code == "git-in-skill"


@pytest.mark.parametrize("name", OTHERS)
def test_other_names_are_not_taken_for_git(name: str) -> None:
    assert not is_git_name(name)
    assert split_relative_path(f"a/{name}") == ("a", name)


@given(
    st.lists(st.sampled_from((".git", ".GIT", ".g", "it", "git~1", "GIT~", "1", "2", *". :x\u200c\ufeff")), max_size=6)
)
def test_a_name_is_git_exactly_when_git_itself_protects_it(pieces: list[str]) -> None:
    """Git's own rule, written down a second time: ignorable code points, then dots and blanks up to a stream."""
    name = "".join(pieces)
    bare = "".join(char for char in name if char not in "\u200c\ufeff").lower()
    rest = next((bare[len(begin) :] for begin in (".git", "git~1") if bare.startswith(begin)), None)
    assert is_git_name(name) == (rest is not None and rest.split(":")[0].strip(". ") == "")


# -- coming in ---------------------------------------------------------------------------------------------------------


def repository_that_runs(marker: Path) -> dict[str, bytes]:
    """The files of a repository whose settings have git run a command."""
    config = f'[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "touch {marker}; false"\n'
    return {
        "SKILL.md": skill_text("evil").encode(),
        ".git/HEAD": b"ref: refs/heads/main\n",
        ".git/config": config.encode(),
        ".git/objects/info/x": b"",
        ".git/refs/heads/x": b"",
    }


def run_git_status(folder: Path) -> None:
    env = {**os.environ, **ENV, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    subprocess.run(["git", "status"], cwd=folder, env=env, capture_output=True, check=False)


def test_an_archive_with_settings_of_git_writes_nothing_that_git_would_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    data = zipped(repository_that_runs(marker))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:  # what any other program does with it
        archive.extractall(tmp_path / "naive" / "evil")
    run_git_status(tmp_path / "naive" / "evil")
    assert marker.exists()
    marker.unlink()
    (tmp_path / "evil.skill").write_bytes(data)
    (tmp_path / "here").mkdir()
    with pytest.raises(SkillValidationError) as caught:
        prowess.unpack_into(tmp_path / "evil.skill", tmp_path / "here")
    assert caught.value.code == "git-in-skill"
    done = subprocess.run(
        [sys.executable, "-m", "prowess", "unpack", str(tmp_path / "evil.skill")],
        cwd=tmp_path / "here",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "git-in-skill" in done.stderr
    assert list((tmp_path / "here").rglob("*")) == []
    run_git_status(tmp_path / "here")
    assert not marker.exists()


def bare_repository_that_runs(folder: str, marker: Path) -> dict[str, bytes]:
    """The files of a repository that is not called ``.git``, in which git still finds itself when it is run there."""
    files = {path.removeprefix(".git/"): content for path, content in repository_that_runs(marker).items()}
    files["config"] += b"\tbare = false\n\tworktree = .\n"
    return {path if path == "SKILL.md" else f"{folder}{path}": content for path, content in files.items()}


@pytest.mark.parametrize("folder", ["", "assets/"])
@pytest.mark.parametrize("way", ["unpack", "install folder", "install repository", "install archive", "adopt"])
def test_a_repository_that_is_not_called_git_comes_in_by_no_way(tmp_path: Path, folder: str, way: str) -> None:
    marker, source = tmp_path / "ran", tmp_path / "evil"
    files = bare_repository_that_runs(folder, marker)
    for path, content in files.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes(content)
    run_git_status(source / folder)
    assert marker.exists(), "git does run it where somebody puts it"
    marker.unlink()
    repository = Repository(tmp_path / "origin")
    for path, content in files.items():
        repository.write(path, content)
    repository.commit()
    base = tmp_path / "project" / ".prowess" / "skills"
    installer = prowess.Installer(user_dir=tmp_path / "user", project_dir=base)
    (tmp_path / "evil.zip").write_bytes(zipped(files))
    ways: dict[str, Callable[[], object]] = {
        "unpack": lambda: prowess.unpack_into(tmp_path / "evil.zip", tmp_path / "project"),
        "install folder": lambda: installer.install_local(source, project=True),
        "install repository": lambda: installer.install(repository.address, project=True),
        "install archive": lambda: installer.install(str(tmp_path / "evil.zip"), project=True),
        "adopt": lambda: installer.adopt("evil", project=True),
    }
    (tmp_path / "project").mkdir()
    if way == "adopt":
        shutil.copytree(source, tmp_path / "project" / ".agents" / "skills" / "evil")
    with pytest.raises(SkillError) as caught:
        ways[way]()
    assert caught.value.code == "git-in-skill"
    assert list(tmp_path.glob("project/.prowess/**/HEAD")) == []


@pytest.mark.parametrize(
    ("paths", "folder"),
    [
        (("a/HEAD", "a/objects/x", "a/refs/y"), "a"),
        (("Head", "OBJECTS/x", "Refs/y"), "."),
        (("a/b/HE\u200cAD", "a/b/objects/x", "a/b/refs/y"), "a/b"),
        (("a/HEAD", "a/commondir"), "a"),
        (("a/HEAD", "b/objects/x", "b/refs/y"), None),
        (("a/HEAD", "a/objects/x"), None),
        (("HEAD.md", "objects/x", "refs/y"), None),
        (("HEAD/x", "objects", "refs"), None),
    ],
)
def test_a_folder_is_a_repository_when_it_has_what_git_asks_of_one(paths: tuple[str, ...], folder: str | None) -> None:
    assert find_git_repository(paths) == folder


@pytest.mark.parametrize("name", [*PLAIN, *DISGUISED])
def test_an_archive_with_such_a_name_is_refused_as_a_whole(name: str) -> None:
    for path in (name, f"{name}/config", f"scripts/{name}", f"references/{name}/config"):
        files = {**FILES, path: b"x"}
        for data in (zipped(files), zipped(files, wrapper="pdf/"), tarred(files)):
            for reader in (unpack, unpack_tree):
                with pytest.raises(SkillValidationError) as caught:
                    reader(data)
                assert caught.value.code in {"git-in-skill", "bad-archive"}, path


@pytest.mark.parametrize("name", [*PLAIN, "GIT~1", ".g\u200cit"])
def test_an_index_that_lists_such_a_name_offers_no_such_skill(site: Site, tmp_path: Path, name: str) -> None:
    bad = site.old_entry("evil", {"SKILL.md": skill_md("evil")})
    bad["files"] = ["SKILL.md", f"{name}/config"]
    site.old_index(bad, site.old_entry("pdf", {"SKILL.md": skill_md("pdf")}))
    source = prowess.Source.url(site.url, allow_http=True, allow_private=True, cache_dir=tmp_path / "cache")
    catalog = source.load()
    assert catalog.names == ("pdf",)
    assert [issue.code for issue in catalog.issues] == ["git-in-skill"]


@pytest.mark.parametrize("name", [*PLAIN, "GIT~1", ".g%E2%80%8Cit"])
def test_an_mcp_skill_that_lists_such_a_name_is_not_used(name: str) -> None:
    entry = entry_of("pdf", {"SKILL.md": skill_md("pdf"), "a.md": b"x"})
    entry["resources"][1]["uri"] = f"skill://pdf/{name}/config"
    with pytest.raises(FetchError) as caught:
        parse_entry(entry, prowess.Limits())
    assert caught.value.code == "git-in-skill"


# -- no part of a skill ------------------------------------------------------------------------------------------------

INSIDE = (".git", ".GIT/config", "references/.Git/config", "scripts/.git", "assets/GIT~1", "references/.g\u200cit/x")


@pytest.fixture
def skill(tmp_path: Path) -> prowess.Skill:
    """A skill with a script, in the folder ``pdf``."""
    folder = tmp_path / "skills" / "pdf"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text("pdf"), encoding="utf-8")
    (folder / "scripts" / "run.sh").write_text('ls -aR "$(dirname "$0")/.."\n', encoding="utf-8")
    return prowess.read_metadata(folder)


def plant(skill: prowess.Skill, *paths: str) -> None:
    """Put files into a skill's folder that git could take for its own."""
    assert skill.dir is not None
    for path in paths:
        (skill.dir / path).parent.mkdir(parents=True, exist_ok=True)
        (skill.dir / path).write_text("#!/bin/sh\necho planted\n", encoding="utf-8")


@pytest.mark.parametrize("path", INSIDE)
def test_git_is_neither_listed_nor_hashed_nor_read_nor_packed(skill: prowess.Skill, path: str) -> None:
    assert skill.dir is not None
    before = (skill.digest(), tuple(skill.files()), skill.resources(), prowess.pack(skill.dir).digest)
    plant(skill, path)
    assert (skill.digest(), tuple(skill.files()), skill.resources(), prowess.pack(skill.dir).digest) == before
    assert skill.files().issues == ()
    for spelled in (path, f"./{path}"):
        with pytest.raises(ResourceNotFoundError):
            skill.read_resource(spelled)
        with pytest.raises(ResourceNotFoundError):
            skill.read_bytes(spelled)


@pytest.mark.parametrize("path", [".git", "references/.GIT"])
def test_a_link_that_is_called_git_is_not_part_either(skill: prowess.Skill, tmp_path: Path, path: str) -> None:
    before = skill.digest()
    assert skill.dir is not None
    (skill.dir / path).parent.mkdir(exist_ok=True)
    (skill.dir / path).symlink_to(tmp_path)
    assert skill.digest() == before
    assert (skill.files().issues, skill.resources().issues) == ((), ())
    with pytest.raises(ResourceNotFoundError):
        skill.read_resource(f"{path}/trust.json")


def test_a_grant_says_nothing_of_git_and_nothing_in_it_runs(skill: prowess.Skill, tmp_path: Path) -> None:
    trust = prowess.Trust(tmp_path / "trust.json")
    trust.grant(skill)
    plant(skill, *INSIDE)
    assert trust.is_trusted(skill)
    scripts = prowess.Scripts(sandbox="none")
    for script in ("scripts/.git", ".GIT/config", "assets/GIT~1"):
        with pytest.raises(ResourceNotFoundError):
            scripts.run(skill, script, trust=trust)
    seen = scripts.run(skill, "scripts/run.sh", trust=trust)
    assert "run.sh" in seen.stdout
    assert "git" not in seen.stdout.lower()


def test_a_server_neither_lists_nor_reads_git(skill: prowess.Skill, tmp_path: Path) -> None:
    plant(skill, *INSIDE)
    server = prowess.mcp.Server(tmp_path / "skills", notice=None)

    async def ask(connection: Talk) -> None:
        rows = [row for entry in await connection.all_skills() for row in entry["resources"]]
        assert sorted(row["uri"] for row in rows) == ["skill://pdf/SKILL.md", "skill://pdf/scripts/run.sh"]
        for path in (".git", ".GIT/config", "scripts/.git", "assets/GIT~1"):
            await connection.refusal("resources/read", uri=f"skill://pdf/{path}")
        children = await connection.ask("resources/directory/read", uri="skill://pdf")
        assert {row["name"] for row in children["resources"]} == {"SKILL.md", "scripts", "references", "assets"}
        await connection.refusal("resources/directory/read", uri="skill://pdf/.GIT")

    talk(server, ask)


def test_check_tells_of_git_at_the_root_and_warns_of_it_below(skill: prowess.Skill) -> None:
    plant(skill, ".GIT/config", "references/.git/config", "scripts/.git")
    assert skill.dir is not None
    found = {issue.field: issue.severity for issue in prowess.validate(skill.dir) if issue.code == "git-in-skill"}
    assert found == {".GIT": "info", "references/.git": "warning", "scripts/.git": "warning"}
    assert prowess.check(skill.dir).count("warning") == 2


@pytest.mark.parametrize("name", [".git", ".GIT", "GIT~1"])
def test_no_skill_is_found_in_git_even_where_hidden_folders_are_searched(tmp_path: Path, name: str) -> None:
    for folder in (f"{name}/evil", f"a/{name}/evil", ".fine"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "SKILL.md").write_text(skill_text(folder.rpartition("/")[2].strip(".")), encoding="utf-8")
    assert prowess.scan(tmp_path, skip_prefixes=()).names == ("fine",)


# -- copies ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> prowess.Installer:
    """An installer in a project of its own."""
    (tmp_path / "home" / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(tmp_path / "home" / "project")
    return prowess.Installer()


def git_entries(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if is_git_name(path.name)]


def test_a_folder_is_installed_without_its_git(
    skill: prowess.Skill, installer: prowess.Installer, tmp_path: Path
) -> None:
    plant(skill, ".git", "references/.GIT/config", "scripts/.Git")
    assert skill.dir is not None
    installer.install_local(skill.dir, project=True)
    assert git_entries(tmp_path / "home" / "project") == []
    assert installer.verify() == ()
    installer.install_local_into(skill.dir, tmp_path / "vendored")
    assert git_entries(tmp_path / "vendored") == []
    assert (tmp_path / "vendored" / "pdf" / "scripts" / "run.sh").exists()


@pytest.mark.parametrize("path", ["assets/GIT~1", "references/.g\u200cit/config", "scripts/.git."])
def test_a_folder_with_git_in_disguise_is_not_installed(
    skill: prowess.Skill, installer: prowess.Installer, tmp_path: Path, path: str
) -> None:
    plant(skill, path)
    assert skill.dir is not None
    with pytest.raises(SkillError) as caught:
        installer.install_local(skill.dir, project=True)
    assert caught.value.code == "unsafe-name"
    assert not (tmp_path / "home" / "project" / "prowess.lock").exists()


def test_a_repository_with_git_in_disguise_is_not_installed(installer: prowess.Installer, tmp_path: Path) -> None:
    repo = Repository(tmp_path / "repo")
    inner = repo.tree(("100644", "config", repo.blob("x")))
    own = ("100644", "SKILL.md", repo.blob(skill_text("repo")))
    top = repo.tree(("40000", ".g\u200cit", inner), own)
    repo.git("update-ref", "refs/heads/main", repo.git("commit-tree", "-m", "x", top))
    with pytest.raises(SkillError) as caught:
        installer.install(repo.address, project=True)
    assert caught.value.code == "unsafe-name"


def test_an_archive_with_git_is_not_installed(installer: prowess.Installer, tmp_path: Path) -> None:
    (tmp_path / "evil.zip").write_bytes(zipped(repository_that_runs(tmp_path / "ran")))
    with pytest.raises(SkillError) as caught:
        installer.install(str(tmp_path / "evil.zip"), project=True)
    assert caught.value.code == "git-in-skill"
    assert git_entries(tmp_path / "home") == []


def test_a_folder_is_adopted_without_its_git_which_is_not_lost(installer: prowess.Installer, tmp_path: Path) -> None:
    project = tmp_path / "home" / "project"
    folder = project / ".agents" / "skills" / "notes"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text("notes"), encoding="utf-8")
    (folder / ".git").write_text("gitdir: elsewhere", encoding="utf-8")
    installer.adopt("notes", project=True)
    place = project / ".prowess" / "skills" / "local" / "notes"
    assert [path.name for path in place.iterdir()] == ["SKILL.md"]
    kept = [path.read_text() for path in (project / ".prowess").rglob(".git")]
    assert kept == ["gitdir: elsewhere"]
