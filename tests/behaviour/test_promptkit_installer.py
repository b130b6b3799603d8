"""The installer of PromptKit (S1): references, folders, what it copies, what it lists and what it removes."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from tests.repositories import Repository, skill_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    Put = Callable[..., Path]


@pytest.fixture
def installer(tmp_path: Path) -> prowess.Installer:
    """An installer with bases of its own."""
    return prowess.Installer(user_dir=tmp_path / "user", project_dir=tmp_path / "project")


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """A repository with a skill below its top and two versions."""
    made = Repository(tmp_path / "repos" / "pdf")
    made.skill("nested/deep/pdf")
    made.commit(tag="v1")
    made.skill("nested/deep/pdf", body="Two.\n")
    made.commit(tag="v2")
    return made


def at(repo: Repository, ref: str = "") -> prowess.SourceSpec:
    """The repository as if it were somebody's on a server."""
    return prowess.SourceSpec("git", str(repo.path), "acme", "pdf", ref, local=True)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("@acme/pdf", ("acme", "pdf", "")),
        ("@acme/pdf@v1.0.0", ("acme", "pdf", "v1.0.0")),
        ("@acme/pdf@feature/x", ("acme", "pdf", "feature/x")),
    ],
)
def test_a_reference_has_an_organisation_a_name_and_a_version(text: str, parts: tuple[str, str, str]) -> None:
    """S1-55: the version is what follows the last @."""
    ref = prowess.SkillRef.parse(text)
    assert (ref.org, ref.name, ref.version) == parts


@pytest.mark.parametrize("text", ["acme/pdf", "@acme", "@acme/", "@/pdf", "@acme/pdf@", "@acme/a/b", ""])
def test_text_that_is_not_a_reference_is_an_error(text: str) -> None:
    """S1-55: the error is a ValueError too."""
    with pytest.raises(prowess.BadReferenceError):
        prowess.SkillRef.parse(text)


@pytest.mark.parametrize(
    "text", ["@../x", "@acme/..", "@acme/.", "@acme/-x", "@acme/a\\b", "@acme/a@b@c", "@acme/x@-b"]
)
def test_a_reference_with_characters_of_paths_is_refused(text: str) -> None:
    """S1-55: it is refused before any path is made."""
    with pytest.raises(prowess.BadReferenceError):
        prowess.SkillRef.parse(text)


def test_each_mistake_in_a_reference_has_its_own_message() -> None:
    """S1-56: four mistakes have four messages."""
    said = {}
    for text in ("acme/pdf", "@acme/pdf@", "@acme", "@acme/a/b"):
        with pytest.raises(prowess.BadReferenceError) as caught:
            prowess.SkillRef.parse(text)
        said[text] = caught.value.message
    assert "must start with @" in said["acme/pdf"]
    assert said["acme/pdf"].endswith("; is '@acme/pdf' meant?")
    assert "empty version" in said["@acme/pdf@"]
    assert "must be @org/name" in said["@acme"]
    assert "must not contain /" in said["@acme/a/b"]


def test_a_reference_gives_the_full_name_and_the_address() -> None:
    """S1-56: the address does not end in .git."""
    ref = prowess.SkillRef.parse("@acme/pdf@v1")
    assert (ref.full_name, ref.git_url) == ("acme/pdf", "https://github.com/acme/pdf")


@pytest.mark.parametrize(
    ("text", "local"),
    [("./x", True), ("../x", True), ("/x", True), (".", False), ("..", False), ("~/x", False), ("a/b", False)],
)
def test_a_local_path_is_known_by_its_beginning(text: str, local: bool) -> None:
    """S1-57: nothing else of the text counts."""
    assert prowess.is_local_path(text) is local


def test_the_user_and_the_project_have_a_default_folder_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S1-58: the environment gives the first, and the working folder the second."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert prowess.default_user_dir() == tmp_path / "config" / "prowess" / "skills"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert prowess.default_user_dir() == tmp_path / "home" / ".config" / "prowess" / "skills"
    assert prowess.default_project_dir() == tmp_path / ".prowess" / "skills"


def test_a_repository_goes_to_org_and_name(installer: prowess.Installer, repo: Repository, tmp_path: Path) -> None:
    """S1-59: for the user, or for the project; a SKILL.md anywhere will do."""
    assert installer.install(at(repo)) == tmp_path / "user" / "acme" / "pdf"
    path = installer.install(at(repo), project=True)
    assert path == tmp_path / "project" / "acme" / "pdf"
    assert (path / "nested" / "deep" / "pdf" / "SKILL.md").is_file()
    assert not (path / ".git").exists()


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_an_install_does_not_touch_what_is_already_there(
    installer: prowess.Installer, repo: Repository, tmp_path: Path, kind: str
) -> None:
    """S1-59: this holds for a file, a folder and a link."""
    place = tmp_path / "user" / "acme" / "pdf"
    place.parent.mkdir(parents=True)
    if kind == "folder":
        place.mkdir()
    elif kind == "file":
        place.write_text("x", encoding="utf-8")
    else:
        place.symlink_to("nowhere")
    with pytest.raises(prowess.AlreadyInstalledError) as caught:
        installer.install(at(repo))
    assert f"already installed at {place}" in caught.value.message
    assert os.path.lexists(place)


def test_a_repository_without_a_skill_leaves_nothing(installer: prowess.Installer, tmp_path: Path) -> None:
    """S1-59: the error says that there is no skill."""
    empty = Repository(tmp_path / "repos" / "empty")
    empty.write("README.md", "x")
    empty.commit()
    with pytest.raises(prowess.InstallError) as caught:
        installer.install(at(empty))
    assert "does not contain a SKILL.md file" in caught.value.message
    assert installer.list() == ()


def test_a_repository_may_be_installed_into_a_given_folder(
    installer: prowess.Installer, repo: Repository, tmp_path: Path
) -> None:
    """S1-60: a second install into that folder is an error."""
    assert installer.install_into(at(repo), tmp_path / "mine") == tmp_path / "mine" / "pdf"
    with pytest.raises(prowess.AlreadyInstalledError) as caught:
        installer.install_into(at(repo), tmp_path / "mine")
    assert f"already exists at {tmp_path / 'mine' / 'pdf'}" in caught.value.message


def test_a_local_folder_is_copied_for_the_project_or_the_user_or_into_a_given_folder(
    installer: prowess.Installer, put: Put, tmp_path: Path
) -> None:
    """S1-61: the skill lies under ``local`` unless a folder is given."""
    source = put("src/notes").parent
    assert installer.install_local(source, project=True) == tmp_path / "project" / "local" / "notes"
    assert installer.install_local(source) == tmp_path / "user" / "local" / "notes"
    assert installer.install_local_into(source, tmp_path / "mine") == tmp_path / "mine" / "notes"
    assert installer.resolve("@local/notes") == tmp_path / "project" / "local" / "notes"


def test_a_local_folder_is_copied_under_a_name_that_a_reference_can_have(
    installer: prowess.Installer, put: Put, tmp_path: Path
) -> None:
    """S1-61: that system keeps the blank, and finds the install again as ``@local/my notes``."""
    source = put("src/my notes", name="my-notes").parent
    assert installer.install_local(source) == tmp_path / "user" / "local" / "my-notes"
    assert installer.resolve("@local/my-notes") == tmp_path / "user" / "local" / "my-notes"
    assert installer.install_local_into(source, tmp_path / "mine") == tmp_path / "mine" / "my-notes"


def test_a_local_source_that_is_not_a_folder_with_a_skill_is_an_error(
    installer: prowess.Installer, put: Put, tmp_path: Path
) -> None:
    """S1-61: the source is a file, does not exist, or has no skill."""
    file = put("src/notes")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "x").write_text("x", encoding="utf-8")
    for path in (file, tmp_path / "missing"):
        with pytest.raises(prowess.InstallError) as caught:
            installer.install_local(path)
        assert "is not a directory" in caught.value.message
    with pytest.raises(prowess.InstallError):
        installer.install_local(tmp_path / "empty")
    assert installer.list() == ()


def test_a_copy_holds_every_file_but_the_history(installer: prowess.Installer, put: Put) -> None:
    """S1-62: the folder ``.git`` is not copied."""
    source = put("src/notes").parent
    (source / ".hidden").write_text("x", encoding="utf-8")
    (source / "run.sh").write_text("x", encoding="utf-8")
    (source / "run.sh").chmod(0o700)
    (source / ".git").mkdir()
    (source / ".git" / "config").write_text("x", encoding="utf-8")
    path = installer.install_local(source)
    assert sorted(p.name for p in path.iterdir()) == [".hidden", "SKILL.md", "run.sh"]
    assert stat.S_IMODE((path / "run.sh").stat().st_mode) == 0o755


@pytest.mark.parametrize("target", ["SKILL.md", "..", "/etc/hostname", "nowhere"])
def test_a_folder_with_a_link_is_not_copied(installer: prowess.Installer, put: Put, target: str) -> None:
    """S1-62: it does not matter where the link leads."""
    source = put("src/notes").parent
    (source / "link").symlink_to(target)
    with pytest.raises(prowess.UnsafeTreeError) as caught:
        installer.install_local(source)
    assert caught.value.code == "link-in-skill"
    assert installer.list() == ()


def test_git_is_asked_for_one_commit(tmp_path: Path, repo: Repository) -> None:
    """S1-63, S1-67: with depth 1, and not again when that fails."""
    from prowess.fetch.git.process import GitProgram

    asked: list[Sequence[str]] = []

    def run(args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        asked.append(args)
        return GitProgram()(args, cwd, env)

    installer = prowess.Installer(tmp_path / "user", tmp_path / "project", run)
    installer.install(at(repo, "v1"))
    assert [args[0] for args in asked] == ["fetch", "cat-file"]
    assert "--depth=1" in asked[0]
    asked.clear()
    with pytest.raises(prowess.GitError):
        installer.install(at(repo, "nope"), project=True)
    assert [args[0] for args in asked] == ["fetch"]


def test_git_must_be_found_by_an_absolute_path(
    installer: prowess.Installer, repo: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """S1-63: one in a relative folder could be anybody's."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for path in ("bin", str(tmp_path / "nothing")):
        monkeypatch.setenv("PATH", path)
        with pytest.raises(prowess.GitError) as caught:
            installer.install(at(repo))
        assert (caught.value.code, "git executable not found" in caught.value.message) == ("git-missing", True)


@pytest.mark.parametrize("kind", ["tag", "branch", "commit"])
def test_every_kind_of_version_works_with_real_git(installer: prowess.Installer, repo: Repository, kind: str) -> None:
    """S1-64: and gives what that version holds."""
    repo.git("branch", "old", "v1")
    ref = {"tag": "v1", "branch": "old", "commit": repo.git("rev-parse", "v1")}[kind]
    path = installer.install(at(repo, ref))
    assert (path / "nested" / "deep" / "pdf" / "SKILL.md").read_text(encoding="utf-8") == skill_text("pdf")


def test_the_projects_install_is_resolved_and_removed_first(installer: prowess.Installer, repo: Repository) -> None:
    """S1-65: the folder of the organisation stays."""
    user, project = installer.install(at(repo)), installer.install(at(repo), project=True)
    assert installer.resolve("@acme/pdf@v9") == project
    installer.remove("@acme/pdf@v9")
    assert (project.exists(), project.parent.exists()) == (False, True)
    assert installer.resolve(prowess.SkillRef("acme", "pdf")) == user
    installer.remove("@acme/pdf")
    with pytest.raises(prowess.NotInstalledError) as caught:
        installer.resolve("@acme/pdf")
    assert "skill acme/pdf is not installed" in caught.value.message


def test_an_install_that_is_a_link_resolves_and_only_the_link_is_removed(
    installer: prowess.Installer, tmp_path: Path
) -> None:
    """S1-65: the target of the link stays."""
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / "kept").write_text("x", encoding="utf-8")
    place = tmp_path / "user" / "acme" / "pdf"
    place.parent.mkdir(parents=True)
    place.symlink_to(target)
    assert installer.resolve("@acme/pdf") == place
    installer.remove("@acme/pdf")
    assert not os.path.lexists(place)
    assert (target / "kept").is_file()


def test_installs_are_listed_by_location_and_then_by_name(installer: prowess.Installer, tmp_path: Path) -> None:
    """S1-66: installs of the project come before those of the user."""
    assert installer.list() == ()
    for path in ("user/b/x", "user/a/y", "project/z/z", "project/a/a/inner"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "user" / "a" / "file").write_text("x", encoding="utf-8")
    (tmp_path / "user" / "file").write_text("x", encoding="utf-8")
    (tmp_path / "user" / "a" / "link").symlink_to(tmp_path / "user" / "b" / "x")
    found = [(one.location, one.org, one.name, one.path) for one in installer.list()]
    assert found == [
        ("project", "a", "a", tmp_path / "project" / "a" / "a"),
        ("project", "z", "z", tmp_path / "project" / "z" / "z"),
        ("user", "a", "y", tmp_path / "user" / "a" / "y"),
        ("user", "b", "x", tmp_path / "user" / "b" / "x"),
    ]


def test_a_host_may_replace_git(tmp_path: Path) -> None:
    """S1-67: it gives a function, or an object with a method with that name."""

    def refuse(args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        raise prowess.GitError(f"asked for {args[0]} in {os.path.isdir(cwd)} with {len(env) > 0}")  # noqa: PTH112

    class Replaced:
        run = staticmethod(refuse)

    for git in (refuse, Replaced()):
        installer = prowess.Installer(tmp_path / "user", tmp_path / "project", git)  # type: ignore[arg-type]
        with pytest.raises(prowess.GitError) as caught:
            installer.install("@acme/pdf")
        assert caught.value.message.startswith("asked for")
        assert caught.value.message.endswith("in True with True")


@pytest.mark.parametrize("how", ["source", "listed"])
def test_a_reference_is_a_source(
    installer: prowess.Installer, repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """S1-21: the project's wins; mounting and preloading count, the version does not."""
    installer.install(at(repo, "v1"))
    installer.install(at(repo, "v2"), project=True)
    bases: dict[str, Any] = {"user_dir": tmp_path / "user", "project_dir": tmp_path / "project"}
    source: prowess.SkillSource
    if how == "source":
        source = prowess.Source.installed("@acme/pdf@v1", mount_as="team", preload=True, **bases)
    else:
        (tmp_path / ".prowess").mkdir()
        (tmp_path / ".prowess" / "skills").symlink_to(tmp_path / "project")
        monkeypatch.chdir(tmp_path)
        file = tmp_path / "sources.yaml"
        file.write_text('- dir: "@acme/pdf@v1"\n  mount_as: team\n  preload: true\n', encoding="utf-8")
        (source,) = prowess.load_sources(file)
    catalog = prowess.Catalog.from_sources([source])
    (skill,) = catalog
    assert (skill.virtual_path, skill.preload) == ("team/nested/deep/pdf", True)
    assert catalog.load("pdf").instructions == "Two."
    if how == "source":
        assert [issue.code for issue in catalog.issues] == ["version-mismatch"]


@pytest.mark.parametrize(
    ("ref", "said"), [("@acme/none", "resolving skill reference @acme/none"), ("@acme", "parsing skill reference")]
)
def test_a_reference_that_is_not_installed_or_malformed_is_an_error_of_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ref: str, said: str
) -> None:
    """S1-21: which names the source."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(prowess.SourceError) as caught:
        prowess.Catalog.from_sources([prowess.Source.installed(ref)])
    assert said in caught.value.message
