"""Whatever two people change, a merge without a conflict gives a manifest and a lock file that agree."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import prowess
from tests.repositories import Repository

if TYPE_CHECKING:
    from pathlib import Path

NAMES = "abcdefgh"
ORDINARY, FULL = 5, 150
"""How many examples."""
CHANGES = st.one_of(
    st.tuples(st.sampled_from(["add", "remove", "update"]), st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(["version", "agents", "mode"]), st.just("")),
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository with eight skills in two versions."""
    made = Repository(tmp_path_factory.mktemp("merged") / "source")
    for tag in ("v1", "v2"):
        for name in NAMES:
            made.skill(f"skills/{name}", body=f"This is {tag}.\n")
        made.commit(tag=tag)
    return made


class Project:
    """A copy of the project, in which one person works."""

    def __init__(self, root: Path, source: Repository) -> None:
        self.root, self.source = root, source
        self.manifest, self.lock = root / "prowess.toml", root / "prowess.lock"
        self.installer = prowess.Installer(root.parent / "home", root / ".prowess" / "skills")

    def make(self, change: tuple[str, str]) -> None:
        """Make one change, and sync; a change for which there is nothing to do is passed over."""
        kind, name = change
        has_skill = f"local/{name}" in {skill.full_name for skill in self.installer.list()}
        if kind == "add" and not has_skill:
            self.installer.install(f"{self.source.address}#v1", project=True, select=name)
        elif kind == "remove" and has_skill:
            self.installer.remove(f"@local/{name}")
        elif kind == "update" and has_skill:
            self.installer.update(f"@local/{name}@v2")
        elif kind in {"version", "agents", "mode"}:
            text = self.manifest.read_text(encoding="utf-8")
            edits = {
                "version": ('ref = "v1"', 'ref = "v2"'),
                "agents": (", skills", ', agents = ["claude-code"], skills'),
                "mode": (", skills", ', mode = "copy", skills'),
            }
            if not (kind != "version" and f"{kind} = " in text):
                self.manifest.write_text(text.replace(*edits[kind], 1), encoding="utf-8")
        self.installer.sync(remove=True)
        assert self.installer.difference(locked=True) == ()


def copy_of(project: Project, name: str) -> Project:
    root = project.root.parent / name
    shutil.copytree(project.root, root, symlinks=True)
    return Project(root, project.source)


def merge_by_lines(*files: Path) -> str | None:
    """What git makes of a file by lines; ``None`` for a conflict."""
    done = subprocess.run(["git", "merge-file", "--stdout", *map(str, files)], capture_output=True, check=False)
    return done.stdout.decode() if done.returncode == 0 else None


def test_a_merge_without_a_conflict_leaves_nothing_to_do(
    tmp_path_factory: pytest.TempPathFactory, source: Repository, monkeypatch: pytest.MonkeyPatch, *, full: bool
) -> None:
    @given(st.sets(st.sampled_from(NAMES), min_size=1, max_size=5), st.lists(CHANGES, max_size=3), st.lists(CHANGES))
    @settings(max_examples=FULL if full else ORDINARY, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def check(begin: set[str], mine: list[tuple[str, str]], theirs: list[tuple[str, str]]) -> None:
        folder = tmp_path_factory.mktemp("two")
        monkeypatch.setenv("HOME", str(folder / "home"))
        (folder / "base").mkdir()
        base = Project(folder / "base", source)
        base.manifest.write_text("skills = []\n", encoding="utf-8")
        base.installer.install(f"{source.address}", project=True, select=sorted(begin), replace=True)
        base.manifest.write_text(
            base.manifest.read_text(encoding="utf-8").replace(", skills", ', ref = "v1", skills'), encoding="utf-8"
        )
        base.installer.sync()
        sides = [copy_of(base, "mine"), copy_of(base, "theirs")]
        for side, changes in zip(sides, (mine, theirs[:3]), strict=True):
            for change in changes:
                side.make(change)
        texts = [side.lock.read_text(encoding="utf-8") if side.lock.exists() else "" for side in (base, *sides)]
        merged_lock = prowess.merge_locks(*texts)
        merged_manifest = merge_by_lines(sides[0].manifest, base.manifest, sides[1].manifest)
        if merged_lock.conflicts or merged_manifest is None:
            return
        merged = Project(folder / "merged", source)
        merged.root.mkdir()
        merged.manifest.write_text(merged_manifest, encoding="utf-8")
        merged.lock.write_text(merged_lock.text, encoding="utf-8")
        merged.installer.sync(locked=True)
        assert merged.lock.read_text(encoding="utf-8") == merged_lock.text
        assert (merged.installer.difference(), merged.installer.issues) == ((), ())

    check()
