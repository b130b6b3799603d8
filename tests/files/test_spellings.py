"""One file or folder with two spellings: disks of macOS and Windows, and what links and mounts make of a path."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

import prowess
from prowess.files.paths import is_really_inside
from prowess.files.projects import is_project, project_folders
from prowess.files.tree import hash_tree, with_recorded_names
from prowess.installed.compare import compare_folder
from prowess.limits import DEFAULT_LIMITS
from tests.repositories import skill_text

COMPOSED = unicodedata.normalize("NFC", "résumé.md")
DECOMPOSED = unicodedata.normalize("NFD", "résumé.md")


# -- accents -----------------------------------------------------------------------------------------------------------


def test_a_name_that_the_disk_lists_in_another_form_is_the_recorded_one(tmp_path: Path) -> None:
    """A disk of macOS lists the one name, and opens the file by both: here a second name of the file does that."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / DECOMPOSED).write_bytes(b"x")
    listed = hash_tree(str(tmp_path), DEFAULT_LIMITS).files
    os.link(tmp_path / "docs" / DECOMPOSED, tmp_path / "docs" / COMPOSED)
    recorded = {f"docs/{COMPOSED}": listed[f"docs/{DECOMPOSED}"]}
    assert with_recorded_names(listed, recorded, str(tmp_path)) == recorded


def test_two_forms_of_a_name_are_two_names_where_the_disk_says_so(tmp_path: Path) -> None:
    (tmp_path / DECOMPOSED).write_bytes(b"x")
    files = hash_tree(str(tmp_path), DEFAULT_LIMITS).files
    if (tmp_path / COMPOSED).exists():
        pytest.skip("NOT TESTED: two forms with the same name; this disk takes them for one")
    recorded = {COMPOSED: files[DECOMPOSED]}
    assert with_recorded_names(files, recorded, str(tmp_path)) == files
    assert {row.code for row in compare_folder(recorded, str(tmp_path), DEFAULT_LIMITS)} == {
        "missing-file",
        "extra-file",
    }


def test_a_name_with_accents_verifies_in_whatever_form_the_disk_lists_it(tmp_path: Path) -> None:
    (tmp_path / COMPOSED).write_bytes(b"x")
    recorded = {COMPOSED: next(iter(hash_tree(str(tmp_path), DEFAULT_LIMITS).files.values()))}
    assert compare_folder(recorded, str(tmp_path), DEFAULT_LIMITS) == []


# -- folders -----------------------------------------------------------------------------------------------------------

MOUNT = """
import os, subprocess, sys
from prowess.files.paths import is_really_inside
from prowess.files.projects import is_project, project_folders
home, second = sys.argv[1:]
subprocess.run(["mount", "--bind", home, second], check=True)
project = os.path.join(second, "project")
print(is_really_inside(project, home), is_really_inside(home, project))
print(project_folders(second, home), is_project(second, home), len(project_folders(project, home)))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with a project, which is a git work tree; so is the home folder."""
    for folder in ("home/.git", "home/project/.git", "second"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path / "home"


def test_a_folder_that_is_mounted_twice_is_one_folder(home: Path) -> None:
    """As a folder has two spellings on a disk that ignores case."""
    words = ("unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", MOUNT)
    try:
        ran = subprocess.run(
            [*words, str(home), str(home.parent / "second")], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("NOT TESTED: a folder with two paths; there is no unshare")
    if "unshare:" in ran.stderr or "mount:" in ran.stderr:
        pytest.skip("NOT TESTED: a folder with two paths; this user may not mount")
    assert ran.stdout.splitlines() == ["True False", "() False 1"], ran.stderr


def test_two_spellings_are_one_folder_where_the_disk_ignores_case(home: Path) -> None:
    other = Path(str(home).upper()) if home.with_name("HOME").exists() else None
    if other is None or not other.exists():
        pytest.skip("NOT TESTED: a disk that ignores case; this one does not")
    assert is_really_inside(str(other / "project"), str(home))
    assert not is_really_inside(str(home), str(other / "project"))
    assert project_folders(str(other), str(home)) == ()
    assert not is_project(str(other), str(home))


@pytest.mark.needs_links
def test_a_project_below_a_link_installs_verifies_and_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As macOS has ``/var`` and ``/tmp``, which lead to ``/private``."""
    (tmp_path / "private" / "var" / "home" / "project" / ".git").mkdir(parents=True)
    (tmp_path / "var").symlink_to("private/var")
    home = tmp_path / "var" / "home"
    skill = home / "pdf" / "SKILL.md"
    skill.parent.mkdir()
    skill.write_text(skill_text("pdf"), encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "project")  # the system answers with the path below /private
    for project in (home / "project", tmp_path / "private" / "var" / "home" / "project"):
        installer = prowess.Installer(project_dir=project / ".prowess" / "skills")
        installer.install_local(skill.parent, project=True, agents=["claude-code"])
        assert installer.verify() == ()
        assert installer.sync(locked=True) == ()
        catalog = prowess.discover(cwd=project, verify="lock")
        assert catalog.names == ("pdf",)
        assert catalog.shadowed == ()
        assert [issue for issue in catalog.issues if issue.severity == "error"] == []
        installer.remove("@local/pdf")
        assert not os.path.lexists(project / ".claude" / "skills" / "pdf")
