"""What is refused before it does harm: options in names, sources that hold their installs, bad locks, endless diffs."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.fetch.git.process import GitProgram
from prowess.files.write import NewFile
from prowess.install.file_diffs import diff_files
from prowess.installed.other_tools import parse_foreign_lock
from prowess.lockfile.read import parse_lock
from tests.repositories import skill_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.install.conftest import World

# -- names that begin with a dash --------------------------------------------------------------------------------------

DASHES = (
    *("-x", "--upload-pack=touch pwned", "-o/x", "owner/-x", "github:-o/x", "gitlab:o/-x", "@-x/name", "@x/-name"),
    *("owner/repo#-b", "owner/repo#--upload-pack=touch", "@org/name@--upload-pack=x", "./-x#--upload-pack=y"),
    *("https://-host/x/y.git", "ssh://-oProxyCommand=x/y", "ssh://git@-oProxyCommand=x/y", "git@-host:x/y"),
    *("git@host:-x", "git@host:x/-y", "git@host:a/--upload-pack=x", "https://h/a/-x.git", "https://h/-x.zip"),
    "https://github.com/o/r/tree/--upload-pack=x/a",
)


@pytest.mark.parametrize("written", DASHES)
def test_a_source_with_a_name_that_begins_with_a_dash_is_refused_and_says_so(world: World, written: str) -> None:
    asked: list[Sequence[str]] = []

    def git(args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        asked.append(args)
        return GitProgram()(args, cwd, env)

    with pytest.raises(prowess.BadReferenceError) as caught:
        prowess.Installer(git=git).install(written, project=True)
    assert "begin with '-'" in caught.value.message
    assert asked == []
    assert list(world.project.rglob("pwned")) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("source", "-x"),
        ("source", "ssh://-oProxyCommand=x/y"),
        ("source", "git@host:x/--upload-pack=y"),
        ("ref", "--upload-pack=touch pwned"),
        ("commit", "--upload-pack=touch pwned"),
    ],
)
def test_a_lock_file_cannot_hand_git_an_option(
    world: World, installer: prowess.Installer, key: str, value: str
) -> None:
    installer.install(f"{world.repository('pdf').address}#v1", project=True)
    rows = world.lock.read_text(encoding="utf-8").splitlines()
    changed = [f'{key} = "{value}"' if row.startswith(f"{key} = ") else row for row in rows]
    world.lock.write_text("\n".join(changed) + "\n", encoding="utf-8")
    (world.skills / "local" / "pdf" / "SKILL.md").unlink()
    asked: list[Sequence[str]] = []

    def git(args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        asked.append(args)
        return GitProgram()(args, cwd, env)

    made = prowess.Installer(git=git)
    if key != "ref":  # a sync asks for the commit
        with pytest.raises((prowess.BadReferenceError, prowess.InstallError)):  # of a commit the file itself is refused
            made.sync()
    if key != "commit":
        with pytest.raises(prowess.BadReferenceError):
            made.update("@local/pdf", force=True)
    assert all(value not in args for args in asked)


def test_folders_and_skills_that_begin_with_a_dash_never_reach_git(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("many", "-sub/a", "skills/b")
    spec = prowess.SourceSpec("git", str(repo.path), "local", "many", subpath="-sub", local=True)
    assert (installer.install(spec, project=True) / "a" / "SKILL.md").is_file()
    with pytest.raises(prowess.InstallError) as caught:
        installer.install(repo.address, project=True, select="-x", replace=True)
    assert caught.value.code == "unknown-skill"


# -- an install into its own source ------------------------------------------------------------------------------------


def test_a_source_that_holds_the_install_base_is_refused(world: World, installer: prowess.Installer) -> None:
    """Each install would copy the one before."""
    (world.project / "SKILL.md").write_text(skill_text("project"), encoding="utf-8")
    world.skills.mkdir(parents=True)
    for folder, project in ((".", True), (str(world.home), False), (str(world.project / ".prowess"), True)):
        with pytest.raises(prowess.InstallError) as caught:
            installer.install(folder, project=project)
        assert caught.value.code == "own-source"
    assert installer.list() == ()


def test_a_manifest_that_declares_the_project_itself_is_refused(world: World, installer: prowess.Installer) -> None:
    (world.project / "SKILL.md").write_text(skill_text("project"), encoding="utf-8")
    (world.project / "prowess.toml").write_text('skills = ["./"]\n', encoding="utf-8")
    with pytest.raises(prowess.InstallError) as caught:
        installer.sync()
    assert caught.value.code == "own-source"


@pytest.mark.parametrize("into", ["", "vendor", "a/b/vendor"])
def test_a_copy_into_a_folder_of_the_source_is_refused(world: World, installer: prowess.Installer, into: str) -> None:
    folder = world.folder("notes")
    with pytest.raises(prowess.InstallError) as caught:
        installer.install_local_into(folder, folder / into)
    assert caught.value.code == "own-source"
    assert [path.name for path in folder.iterdir()] == ["SKILL.md"]
    link = world.base / "link"
    link.symlink_to(folder)
    with pytest.raises(prowess.InstallError) as caught:
        installer.install_local_into(folder, link / into)
    assert caught.value.code == "own-source"


# -- lock files --------------------------------------------------------------------------------------------------------


def broken(world: World, old: str, new: str) -> tuple[str, int]:
    """A lock file with two entries, one text replaced where it stands last; and the line of that."""
    text = world.lock.read_text(encoding="utf-8")
    at = text.rindex(old)
    return text[:at] + new + text[at + len(old) :], text.count("\n", 0, at) + 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "local/two"', 'name = "../two"', "../two"),
        ('name = "local/two"', 'name = "local/one"', "twice"),
        ('kind = "git"', "kind = 1", "kind"),
        ('links = [".agents/skills/two"]', "links = 1", "links"),
        ('digest = "', 'digest = "0', "local/two"),
        (" SKILL.md", " ../SKILL.md", "../SKILL.md"),
        ('"two" = ""', '"two" = "../x"', "../x"),
        ('kind = "git"', "kind = git", "not TOML"),
        ("version = 1", "version = 0", "version 0"),
    ],
)
def test_an_error_in_a_lock_file_names_the_line_and_the_entry(
    world: World, installer: prowess.Installer, old: str, new: str, says: str
) -> None:
    for name in ("one", "two"):
        installer.install(world.repository(name).address, project=True)
    text, line = broken(world, old, new)
    with pytest.raises(prowess.InstallError) as caught:
        parse_lock(text, "prowess.lock")
    assert caught.value.code == "bad-lock"
    assert f"line {line}" in caught.value.message
    assert says in caught.value.message


def test_an_error_in_the_npm_tools_lock_file_names_the_line() -> None:
    with pytest.raises(prowess.InstallError, match="line 3"):
        parse_foreign_lock('{\n"skills": {\n oops\n}}')


# -- differences -------------------------------------------------------------------------------------------------------


def test_files_that_are_written_to_be_slow_to_compare_are_not_compared_line_by_line() -> None:
    """Every second line is equal, so that the comparison would cost the square of the number of lines."""
    count = 5_000
    old = "".join(f"{i}\n" if i % 2 else f"x{i}\n" for i in range(count))
    new = old.replace("x", "y")
    before, after = ([NewFile(f"{number}.md", text.encode()) for number in range(10)] for text in (old, new))
    rows = diff_files(before, after, prowess.Limits()).splitlines()
    assert rows == [f"{count} lines of {number}.md become {count} lines, too many to compare" for number in range(10)]


def test_the_lines_compared_are_bounded_for_all_files_together() -> None:
    before, after = ([NewFile(f"{name}.md", text) for name in "abc"] for text in (b"1\n2\n", b"3\n4\n"))
    diff = diff_files(before, after, prowess.Limits(max_diff_lines=8))
    assert diff.count("@@") == 4
    assert "2 lines of c.md become 2 lines, too many to compare\n" in diff


@pytest.mark.parametrize("index", [0, 1, 3, 4, 5_000, 9_997, 9_999])
def test_a_small_change_in_a_long_file_is_shown_as_a_whole_comparison_shows_it(index: int) -> None:
    """Equal lines at the beginning and at the end are not compared, and the line numbers are right nevertheless."""
    lines = [f"{number}\n" for number in range(10_000)]
    changed = [*lines[:index], "changed\n", *lines[index + 1 :]]
    before, after = ([NewFile("a.md", "".join(text).encode())] for text in (lines, changed))
    diff = diff_files(before, after, prowess.Limits())
    assert diff == "".join(difflib.unified_diff(lines, changed, "a/a.md", "b/a.md"))
