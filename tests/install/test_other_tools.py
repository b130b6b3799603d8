"""What other tools recorded about the skills that they installed: shown by ``list``, and taken over by ``adopt``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from prowess.lockfile.read import read_lock
from tests.cli_processes import run_command
from tests.repositories import skill_text

if TYPE_CHECKING:
    from pathlib import Path

    import prowess
    from prowess.lockfile.read import LockEntry
    from tests.install.conftest import World


def own_skill(world: World, name: str, fields: str = "", *, root: Path | None = None) -> Path:
    """A skill in the shared folder of the project, or of another folder, that Prowess did not install."""
    folder = (root or world.project) / ".agents" / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text(name, fields=fields), encoding="utf-8")
    return folder


def write_skill_lock(root: Path, version: int = 3, **entries: dict[str, str]) -> None:
    """The lock file of version 3 that the npm tool and GitHub's write for a user."""
    (root / ".agents").mkdir(parents=True, exist_ok=True)
    data = {"version": version, "skills": entries, "dismissed": {}, "lastSelectedAgents": ["codex"]}
    (root / ".agents" / ".skill-lock.json").write_text(json.dumps(data), encoding="utf-8")


def github_fields(**fields: str) -> str:
    """The metadata that GitHub's tool writes into a SKILL.md."""
    rows = {"repo": "https://github.com/acme/skills", "ref": "refs/heads/main", "path": "skills/pdf", **fields}
    return "metadata:\n" + "".join(f"    github-{key}: {value}\n" for key, value in rows.items())


NPM_ENTRY = {
    "source": "acme/skills",
    "sourceType": "github",
    "sourceUrl": "https://github.com/acme/skills.git",
    "skillPath": "skills/pdf/SKILL.md",
    "skillFolderHash": "0" * 40,
    "installedAt": "2026-02-03T10:32:48.963Z",
    "updatedAt": "2026-02-03T10:32:48.963Z",
}


def recorded(entry: LockEntry) -> tuple[str, str, str, str]:
    return entry.source, entry.ref, entry.subpath, entry.select


@pytest.mark.parametrize(
    ("changes", "ref"),
    [({}, ""), ({"ref": "dev"}, "dev"), ({"pinnedRef": "v1.2"}, "v1.2"), ({"skillPath": "skills/pdf"}, "")],
)
def test_a_users_skill_lock_of_version_3_gives_the_source(
    world: World, installer: prowess.Installer, changes: dict[str, str], ref: str
) -> None:
    own_skill(world, "pdf", root=world.home)
    write_skill_lock(world.home, pdf={**NPM_ENTRY, **changes})
    assert [skill.full_name for skill in installer.adopt(project=False)] == ["acme/pdf"]
    entry = read_lock(str(world.home / ".config" / "prowess"))["acme/pdf"]
    assert recorded(entry) == ("https://github.com/acme/skills", ref, "skills/pdf", "pdf")


def test_the_state_folder_may_have_a_users_skill_lock(
    world: World, installer: prowess.Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_skill(world, "pdf", root=world.home)
    write_skill_lock(world.base / "elsewhere", pdf=NPM_ENTRY)
    state = world.base / "state" / "skills"
    state.mkdir(parents=True)
    (world.base / "elsewhere" / ".agents" / ".skill-lock.json").rename(state / ".skill-lock.json")
    monkeypatch.setenv("XDG_STATE_HOME", str(state.parent))
    assert [skill.full_name for skill in installer.adopt(project=False)] == ["acme/pdf"]


@pytest.mark.parametrize(
    ("fields", "ref"),
    [
        ({}, "main"),
        ({"ref": "refs/tags/v1.2"}, "v1.2"),
        ({"ref": "refs/tags/v1.2", "pinned": "v1.2"}, "v1.2"),
        ({"ref": "a" * 40, "pinned": "a" * 40}, "a" * 40),
        ({"path": "skills/pdf/SKILL.md"}, "main"),
    ],
)
def test_the_fields_of_githubs_tool_give_the_source(
    world: World, installer: prowess.Installer, fields: dict[str, str], ref: str
) -> None:
    own_skill(world, "pdf", github_fields(**fields))
    assert [skill.full_name for skill in installer.adopt()] == ["acme/pdf"]
    entry = read_lock(str(world.project))["acme/pdf"]
    assert recorded(entry) == ("https://github.com/acme/skills", ref, "skills/pdf", "pdf")
    assert installer.verify() == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"repo": "../../x"},
        {"repo": "file:///etc"},
        {"repo": "https://me:secret@host/x"},
        {"repo": "skills"},
        {"ref": "--upload-pack=id"},
        {"path": "../../etc"},
    ],
)
def test_an_origin_that_no_person_could_type_is_unknown(
    world: World, installer: prowess.Installer, fields: dict[str, str]
) -> None:
    own_skill(world, "pdf", github_fields(**fields))
    assert installer.adopt() == ()
    assert [issue.code for issue in installer.issues] == ["no-source"]


def test_a_lock_file_wins_over_the_metadata_of_a_skill(world: World, installer: prowess.Installer) -> None:
    own_skill(world, "pdf", github_fields(repo="https://github.com/other/skills"))
    write_skill_lock(world.project, pdf=NPM_ENTRY)
    assert [skill.full_name for skill in installer.adopt()] == ["acme/pdf"]


def test_a_skill_lock_of_another_version_records_nothing(world: World, installer: prowess.Installer) -> None:
    own_skill(world, "pdf")
    write_skill_lock(world.project, version=2, pdf=NPM_ENTRY)
    assert installer.adopt() == ()


def test_list_shows_what_other_tools_recorded(world: World) -> None:
    own_skill(world, "pdf", github_fields(ref="refs/tags/v1.2"))
    own_skill(world, "csv", root=world.home)
    own_skill(world, "mine")
    write_skill_lock(world.home, csv={**NPM_ENTRY, "sourceUrl": "https://git.example.com/acme/csv.git"})
    shown = json.loads(run_command(["list", "--json"]).stdout)
    assert {skill["name"]: skill["source"] for skill in shown["skills"]} == {
        "pdf": "https://github.com/acme/skills at v1.2 (another tool)",
        "csv": "https://git.example.com/acme/csv.git (another tool)",
        "mine": "",
    }
    (world.home / ".agents" / ".skill-lock.json").write_text("{", encoding="utf-8")
    assert run_command(["list"]).returncode == 0
    adopted = run_command(["adopt", "pdf", "--dry-run"]).stdout.decode()
    assert "as acme/pdf from https://github.com/acme/skills#v1.2:skills/pdf" in adopted
