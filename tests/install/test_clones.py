"""A repository that was cloned may hold links and a lock file that mean harm: what is the user's stays where it is."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.repositories import Repository, skill_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Act = Callable[[prowess.Installer], object]


class Clone:
    """A repository with an installed skill, and a clone of it in a home with skills of the user's own."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "home"
        self.root = self.home / "project"
        self.own = self.home / ".claude" / "skills" / "mine"
        self.source = base / "source" / "notes"
        self.author = Repository(base / "author")
        for folder, name in ((self.source, "notes"), (self.own, "mine")):
            folder.mkdir(parents=True)
            (folder / "SKILL.md").write_text(skill_text(name), encoding="utf-8")
        prowess.Installer(project_dir=self.author.path / ".prowess" / "skills").install_local(self.source, project=True)

    @property
    def lock(self) -> Path:
        return self.author.path / "prowess.lock"

    def clone(self) -> prowess.Installer:
        """Commit everything, clone it, and have an installer for the clone."""
        self.author.git("add", "--force", "--all")
        self.author.commit()
        subprocess.run(["git", "clone", "-q", str(self.author.path), str(self.root)], check=True)
        return prowess.Installer(project_dir=self.root / ".prowess" / "skills")

    def outside(self) -> dict[str, bytes | str]:
        """Everything in the home folder but the clone, and the source."""
        paths = [path for top in (self.home, self.source) for path in top.rglob("*")]
        kept = [path for path in paths if path != self.root and self.root not in path.parents]
        return {
            str(path): str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else "folder"
            for path in kept
        }


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return Clone(tmp_path)


ACTS: dict[str, Act] = {
    "sync": lambda installer: installer.sync(),
    "locked": lambda installer: installer.sync(locked=True),
    "remove": lambda installer: installer.remove("@local/notes"),
    "update": lambda installer: installer.update("@local/notes", force=True),
    "adopt": lambda installer: installer.adopt(),
    "unlink": lambda installer: installer.unlink("@local/notes", ["claude-code"]),
}


def install_again(clone: Clone) -> Act:
    return lambda installer: installer.install_local(clone.source, project=True, replace=True, agents=["claude-code"])


def edit(root: Path) -> None:
    """Change what is installed: a sync, a removal or an update then keeps it as a backup."""
    (root / ".prowess" / "skills" / "local" / "notes" / "SKILL.md").write_text("edited", encoding="utf-8")


FOLDERS = (".prowess", ".prowess/skills", ".prowess/skills/.backup", ".prowess/skills/.store", ".prowess/skills/local")


@pytest.mark.parametrize("inside", [False, True], ids=["out of the project", "within the project"])
@pytest.mark.parametrize("where", FOLDERS)
def test_a_committed_link_in_place_of_a_folder_of_ours_is_refused(clone: Clone, where: str, inside: bool) -> None:
    edit(clone.author.path)
    folder = clone.author.path / where
    aim = clone.author.path / "elsewhere" if inside else clone.base / "home" / "aim"
    aim.parent.mkdir(exist_ok=True)
    if folder.exists():
        shutil.move(folder, aim)
    else:
        aim.mkdir()
        (aim / "kept.md").write_text("kept", encoding="utf-8")
    folder.symlink_to(os.path.relpath(aim, folder.parent) if inside else aim)
    installer = clone.clone()
    before = clone.outside()
    kept = {path: path.read_bytes() for path in (clone.root / "elsewhere").rglob("*") if path.is_file()}
    codes = set()
    for act in (*ACTS.values(), install_again(clone)):
        try:
            act(installer)
        except prowess.InstallError as error:
            codes.add(error.code)
        assert clone.outside() == before
        assert {path: path.read_bytes() for path in (clone.root / "elsewhere").rglob("*") if path.is_file()} == kept
    # A link around one install is refused where something would be put there; what else is wrong may be met before.
    assert "link-refused" in codes
    assert codes <= {"link-refused"} | ({"lock-mismatch", "name-taken"} if where.endswith("local") else set())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs folders of two owners")
@pytest.mark.parametrize("where", FOLDERS)
def test_a_folder_of_ours_that_somebody_else_owns_is_refused(clone: Clone, where: str) -> None:
    edit(clone.author.path)
    installer = clone.clone()
    (clone.root / where).mkdir(exist_ok=True)
    os.chown(clone.root / where, 65534, 65534)
    with pytest.raises(prowess.InstallError) as caught:
        installer.sync()
    assert caught.value.code == "foreign-folder"
    os.chown(clone.root, 65534, 65534)  # whoever owns the project may have made its folders
    installer.sync()


# -- lock files --------------------------------------------------------------------------------------------------------

LINKS = 'links = [".agents/skills/notes"]'


def absolute(clone: Clone) -> str:
    return str(clone.own)


def upwards(_clone: Clone) -> str:
    return "../.claude/skills/mine"


def through_a_link(clone: Clone) -> str:
    (clone.author.path / ".claude").symlink_to(clone.home / ".claude")
    return ".claude/skills/mine"


def through_a_linked_folder(clone: Clone) -> str:
    (clone.author.path / ".claude").mkdir()
    (clone.author.path / ".claude" / "skills").symlink_to(clone.home / ".claude" / "skills")
    return ".claude/skills/mine"


@pytest.mark.parametrize(
    "extra",
    ["", '\ncopies = ["{path}"]', '\ncopies = [".agents/skills/notes", "{path}"]\nmode = "copy"'],
    ids=["as a link", "as a copy", "as an install of copies"],
)
@pytest.mark.parametrize("name", [absolute, upwards, through_a_link, through_a_linked_folder])
def test_a_lock_file_that_names_the_users_own_skill_outside_the_project_moves_nothing(
    clone: Clone, name: Callable[[Clone], str], extra: str
) -> None:
    path = name(clone)
    text = clone.lock.read_text(encoding="utf-8")
    extra = extra.replace("{path}", path)
    assert LINKS in text
    clone.lock.write_text(text.replace(LINKS, f'links = [".agents/skills/notes", "{path}"]{extra}'), encoding="utf-8")
    installer = clone.clone()
    before = clone.outside()
    codes = []
    for act in (prowess.Installer.verify, *ACTS.values()):
        try:
            act(installer)
        except prowess.InstallError as error:
            codes.append(error.code)
        assert clone.outside() == before
    absent = (
        {"missing-skill", "not-installed"} if "mode" in extra else set()
    )  # no copy is in the clone, and one outside does not count
    assert set(codes) <= {"bad-lock", "link-refused"} | absent
    assert len(codes) >= len(ACTS) - 1, "an update that has nothing to do looks at no link, nor does adopt"


@pytest.mark.parametrize("act", ["sync", "remove", "update", "unlink", "replace another"])
@pytest.mark.parametrize("copied", [False, True], ids=["as a link", "as a copy"])
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_lock_file_that_names_the_users_own_skill_in_the_project_moves_nothing(
    clone: Clone, kind: str, copied: bool, act: str
) -> None:
    """The user put it there after cloning; the lock file says that it is a link, or a copy, of what is installed."""
    text = clone.lock.read_text(encoding="utf-8")
    links = '".agents/skills/notes", ".claude/skills/notes"'
    extra = '\ncopies = [".claude/skills/notes"]' if copied else ""
    changed = text.replace(LINKS, f'agents = ["claude-code"]\nlinks = [{links}]{extra}')
    clone.lock.write_text(changed, encoding="utf-8")
    installer = clone.clone()
    mine = clone.root / ".claude" / "skills" / "notes"
    mine.parent.mkdir(parents=True)
    if kind == "folder":
        mine.mkdir()
        (mine / "SKILL.md").write_text(skill_text("notes", "My own.\n"), encoding="utf-8")
    else:
        mine.symlink_to(clone.own)
    number = mine.lstat().st_ino
    (clone.source / "SKILL.md").write_text(skill_text("notes", "Newer.\n"), encoding="utf-8")
    other = clone.base / "other" / "notes"
    shutil.copytree(clone.source, other)
    spec = prowess.SourceSpec("folder", str(other), "other", "notes", local=True)
    try:
        if act in ACTS:
            ACTS[act](installer)
        else:
            installer.install(spec, project=True, replace=True)
    except prowess.InstallError as error:
        assert error.code in {"name-taken", "lock-mismatch"}  # noqa: PT017 - or it is passed over
    assert mine.lstat().st_ino == number
    assert clone.own.joinpath("SKILL.md").read_text(encoding="utf-8") == skill_text("mine")
