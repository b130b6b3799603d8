"""What the commands say in a clone that is behind: after a pull, before the first sync, and with a wrong manifest."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_two_branches import Clones
from tests.repositories import skill_text

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command


@pytest.fixture
def clones(project: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Clones:
    """Two clones with three skills of one source, and git's merge by lines."""
    monkeypatch.chdir(project)
    return Clones(project.parent, command, "prowess.toml", "")


@pytest.fixture
def fresh(clones: Clones) -> Path:
    """A clone in which nobody has synced."""
    folder = clones.mine.with_name("fresh")
    shutil.copytree(clones.mine, folder, symlinks=True)
    for made in (".prowess", ".agents"):
        shutil.rmtree(folder / made)
    return folder


def test_after_a_pull_outdated_and_list_say_that_the_disk_is_behind(clones: Clones) -> None:
    clones.change(clones.theirs, "update", "m@v2", "--yes")
    assert clones.pull() == []
    ran = clones.run(clones.mine, "outdated")
    assert "prowess.lock has another version of local/m than is here: prowess sync --locked" in ran.err
    file = clones.mine / ".prowess/skills/local/x/SKILL.md"
    file.write_text(file.read_text(encoding="utf-8") + "mine\n", encoding="utf-8")
    shutil.rmtree(clones.mine / ".prowess/skills/local/b")
    shown = clones.run(clones.mine, "list", "--installed").out
    marks = {row.split()[0]: row.partition("[")[2].partition("]")[0] for row in shown.splitlines()[1:]}
    assert marks == {"local/b": "missing", "local/m": "not synced", "local/x": "changed since installed"}
    states = [one["state"] for one in clones.run(clones.mine, "list", "--installed", "--json").data["installed"]]
    assert states == ["missing", "not synced", "changed since installed"]
    clones.run(clones.mine, "sync", "--yes")
    assert "prowess sync" not in clones.run(clones.mine, "outdated").err
    assert "[" not in clones.run(clones.mine, "list", "--installed").out


def test_a_manifest_that_says_something_else_than_the_lock_file_is_found(clones: Clones) -> None:
    assert clones.run(clones.mine, "verify").status == 0
    manifest = clones.mine / "prowess.toml"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace('"x",', '"y",'), encoding="utf-8")
    ran = clones.run(clones.mine, "verify", "--json")
    found = [(issue["code"], issue["message"]) for issue in ran.data["issues"]]
    assert ran.status == 1
    assert [code for code, _ in found] == ["lock-outdated"] * 2
    assert found[0][1].endswith("(y) is declared and not locked")
    assert found[1][1] == "local/x is locked and not declared any more"
    ran = clones.run(clones.mine, "doctor")
    assert (ran.status, "local/x is locked and not declared any more" in ran.out) == (1, True)


def test_a_clone_that_was_never_synced_says_what_to_run(clones: Clones, fresh: Path) -> None:
    ran = clones.run(fresh, "update")
    assert (ran.status, "prowess sync --locked" in ran.err, "Nothing is installed" in ran.out) == (1, True, False)
    ran = clones.run(fresh, "doctor")
    assert "3 skills recorded" in ran.out
    assert "skills installed" not in ran.out
    (fresh / "prowess.lock").unlink()
    shown = clones.run(fresh, "list").out
    assert "prowess.toml declares skills that are not here: prowess sync\n" in shown
    assert "prowess new" not in shown
    ran = clones.run(fresh, "update")
    assert (ran.status, "prowess sync" in ran.err) == (1, True)
    ran = clones.run(fresh, "sync", "--dry-run")
    assert (ran.status, "--user" in ran.err) == (1, False)


def test_a_folder_without_a_manifest_says_how_to_begin(command: Command, project: Path) -> None:
    shutil.rmtree(project / ".agents")
    assert "prowess new NAME" in command("list").out
    assert command("update").status == 0


def test_a_dry_sync_gives_each_hint_once(clones: Clones) -> None:
    clones.edit(clones.mine, '    "x",\n', "")
    for name in ("one", "two"):
        own = clones.mine / ".prowess/skills/me" / name
        own.mkdir(parents=True)
        (own / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n---\nx\n", encoding="utf-8")
    manifest = clones.mine / "prowess.toml"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace('    "m",\n', ""), encoding="utf-8")
    rows = clones.run(clones.mine, "sync", "--dry-run").err.splitlines()
    hints = [row for row in rows if "hint:" in row]
    assert len([row for row in rows if row.startswith("warning")]) == 3
    assert len(hints) == len({*hints}) == 2


def test_an_update_that_brings_an_absent_skill_ends_with_status_0(command: Command, project: Path) -> None:
    source = project.parent / "source"
    for skill in ("one", "two"):
        write_skill(source / skill, skill)
    command("install", str(source), "--project", "--copy", "--yes")
    shutil.rmtree(project / ".agents/skills/one")
    ran = command("update", "--yes")
    assert (ran.status, "records 1 skill that is not here" in ran.err) == (1, True)
    write_skill(source / "two", "two", "Newer.\n")
    assert command("update", "--dry-run").status == 1
    ran = command("update", "--yes")
    assert (ran.status, "updated local/source" in ran.report) == (0, True)
    assert command("verify").status == 0


def write_skill(folder: Path, name: str, body: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(skill_text(name, body=body), encoding="utf-8")
