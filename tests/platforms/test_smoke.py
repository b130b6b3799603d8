"""The first things that a user does, as processes with their streams in pipes: they work on every platform.

``make test-windows`` runs these tests with a Windows Python under Wine, and CI on each system. They need no git, and no
right to make links.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.platforms.conftest import SCRIPT, SKILL

if TYPE_CHECKING:
    from tests.platforms.conftest import Machine

HAS_MODES = os.name != "nt"


def archive_of(path: Path, executable: dict[str, bool]) -> Path:
    """A .tar.gz with a SKILL.md and files with these modes; none of them begins with ``#!``."""
    with tarfile.open(path, "w:gz") as archive:
        for name, is_executable in {"SKILL.md": False, **executable}.items():
            content = SKILL.format(name="tool").encode() if name == "SKILL.md" else b"print(1)\n"
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755 if is_executable else 0o644
            archive.addfile(info, io.BytesIO(content))
    return path


def test_a_folder_is_installed_verified_updated_and_removed(machine: Machine) -> None:
    folder = machine.skill()
    installed = machine.must("install", str(folder), "--project", "--yes")
    assert [skill["name"] for skill in installed["installed"]] == ["local/unit"]
    assert (machine.project / ".agents" / "skills" / "unit" / "SKILL.md").is_file()
    assert machine.must("verify")["issues"] == []
    assert machine.must("sync", "--locked")["installed"] == []

    answer = machine.must("list")
    listed = answer["skills"]
    assert not any(os.altsep and os.altsep in place["path"] for place in answer["places"])
    assert [(skill["name"], skill["description"]) for skill in listed] == [
        ("unit", "Measures lengths in µm. Use it for lengths.")
    ]
    assert "verified" in listed[0]["marks"]

    (folder / "more.md").write_bytes(b"More.\n")
    assert [row["status"] for row in machine.must("update", "--yes")["updates"]] == ["updated"]
    assert machine.must("verify")["issues"] == []
    assert machine.must("remove", "unit", "--yes")["issues"] == []
    assert machine.files_left() == []


def test_a_skill_is_installed_into_a_folder_of_the_caller(machine: Machine) -> None:
    machine.must("install", str(machine.skill()), "--into", "copied", "--yes")
    assert (machine.project / "copied" / "unit" / "SKILL.md").read_bytes() == SKILL.format(name="unit").encode()


def test_copies_for_a_repository_verify_and_sync(machine: Machine) -> None:
    machine.must("install", str(machine.skill()), "--project", "--copy", "--yes")
    assert (machine.project / ".agents" / "skills" / "unit" / "SKILL.md").is_file()
    assert machine.must("verify")["issues"] == []
    assert machine.must("sync", "--locked")["issues"] == []


def test_the_executable_bit_of_an_archive_survives(machine: Machine) -> None:
    archive = archive_of(machine.sources / "tool.tar.gz", {"run.py": True, "data.py": False})
    assert machine.must("install", str(archive), "--project", "--yes")["issues"] == []
    assert (machine.is_marked("run.py"), machine.is_marked("data.py")) == (True, False)
    assert machine.must("verify")["issues"] == []
    assert machine.must("sync", "--locked")["installed"] == []
    assert machine.must("list")["skills"][0]["marks"] == ["verified"]
    assert machine.must("update", "--yes")["updates"][0]["status"] == "current"
    machine.must("remove", "tool", "--yes")
    assert machine.files_left() == []


def test_an_edit_is_found_restored_and_kept_in_the_backups(machine: Machine) -> None:
    archive = archive_of(machine.sources / "tool.tar.gz", {"run.py": True})
    machine.must("install", str(archive), "--project", "--copy", "--yes")
    placed = machine.project / ".agents" / "skills" / "tool" / "run.py"
    placed.write_bytes(b"print(2)\n")
    verified = machine.run("verify", "--json")
    assert verified.status == 1
    assert [issue["code"] for issue in verified.data["issues"]] == ["changed-file"]
    machine.must("install", str(archive), "--project", "--copy", "--replace", "--yes")
    assert placed.read_bytes() == b"print(1)\n"
    assert machine.must("verify")["issues"] == []


def test_scripts_of_a_plain_folder_are_executable_and_a_guess_is_reported(machine: Machine) -> None:
    installed = machine.must("install", str(machine.skill()), "--project", "--yes")
    assert machine.is_marked("scripts/measure.py")
    assert not machine.is_marked("SKILL.md")
    assert [issue["code"] for issue in installed["issues"]] == ([] if HAS_MODES else ["guessed-executable"])


def test_the_null_device_is_not_a_user_who_could_answer(machine: Machine) -> None:
    ran = machine.run("install", str(machine.skill()), "--project")
    assert ran.status != 0
    assert b"[y/N]" not in ran.out + ran.err
    assert b"--yes" in ran.err


def test_a_missing_folder_is_reported_as_missing(machine: Machine) -> None:
    ran = machine.run("check", str(machine.sources / "nothing"), "--json")
    assert ran.status != 0
    assert b"not-a-directory" not in ran.out + ran.err


def test_a_skill_is_packed_and_unpacked_with_its_modes(machine: Machine) -> None:
    folder = machine.skill()
    packed = machine.must("pack", str(folder), "-o", str(machine.home / "unit.skill"))
    assert packed["name"] == "unit"
    with zipfile.ZipFile(machine.home / "unit.skill") as archive:
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
    assert modes == {"unit/SKILL.md": 0o100644, "unit/scripts/measure.py": 0o100755}
    machine.must("unpack", str(machine.home / "unit.skill"), "--dir", str(machine.home / "out"))
    assert (machine.home / "out" / "unit" / "scripts" / "measure.py").read_bytes() == SCRIPT
    machine.must("install", str(machine.home / "unit.skill"), "--project", "--yes")
    assert machine.is_marked("scripts/measure.py")


def test_a_skill_that_is_there_already_is_adopted(machine: Machine) -> None:
    machine.skill(into=machine.project / ".agents" / "skills")
    assert machine.must("adopt", "unit", "--yes")["adopted"]
    assert machine.must("verify")["issues"] == []
    assert machine.must("sync", "--locked")["installed"] == []


def test_a_new_skill_passes_the_check(machine: Machine) -> None:
    machine.must("new", "measuring", "--description", "Measures lengths. Use it for lengths.")
    assert machine.run("check", "measuring").status == 0


def test_instructions_reach_a_pipe_as_they_are_written(machine: Machine) -> None:
    machine.skill(into=machine.project / ".agents" / "skills")
    assert "Measure → write it down.\n".encode() in machine.run("read", "unit").out


def test_a_client_lists_and_loads_a_skill_over_mcp(machine: Machine) -> None:
    machine.skill()
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "smoke", "version": "1"}}
    requests: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call",
         "params": {"name": "load_skill", "arguments": {"name": "unit"}}},
    ]  # fmt: skip
    with machine.start("serve", str(machine.sources)) as server:
        answers = [server.ask(request) for request in requests]
    assert "load_skill" in {tool["name"] for tool in answers[2]["tools"]}
    assert "Measure → write it down." in answers[3]["content"][0]["text"]


@pytest.mark.skipif("PROWESS_EXCHANGE" not in os.environ, reason="run by make test-windows, which names a folder")
def test_what_another_system_locked_and_packed_verifies_here(machine: Machine) -> None:
    """Every system leaves a project and a packed skill in one folder, and uses what the others have left there."""
    exchange = Path(os.environ["PROWESS_EXCHANGE"])
    _leave_project(machine, exchange / os.name)
    for theirs in exchange.iterdir():
        project = machine.home / f"from-{theirs.name}"
        shutil.copytree(theirs, project, ignore=shutil.ignore_patterns(".prowess", ".agents"))
        lock = (project / "prowess.lock").read_bytes()
        assert _recorded_files(lock) == _recorded_files((exchange / os.name / "prowess.lock").read_bytes())
        assert len(machine.must("sync", "--locked", cwd=project)["installed"]) == 2
        assert machine.must("verify", cwd=project)["issues"] == []
        assert machine.must("sync", "--locked", cwd=project)["installed"] == []
        assert (project / "prowess.lock").read_bytes() == lock
        assert _packed_files(theirs / "unit.skill") == _packed_files(exchange / os.name / "unit.skill")
        machine.must("install", str(theirs / "unit.skill"), "--project", "--yes")
        assert machine.is_marked("scripts/measure.py")
        assert machine.must("verify")["issues"] == []
        machine.must("remove", "unit", "--yes")


def _recorded_files(lock: bytes) -> list[bytes]:
    """The lines of a lock file that say which bytes and modes were installed."""
    return [line for line in lock.splitlines() if line.startswith((b"digest", b"  "))]


def _packed_files(path: Path) -> list[tuple[str, int, bytes]]:
    with zipfile.ZipFile(path) as archive:
        return [(info.filename, info.external_attr, archive.read(info)) for info in archive.infolist()]


def _leave_project(machine: Machine, folder: Path) -> None:
    """Leave what a team commits: a skill, an archive with modes, a lock file for both, and the packed skill."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "unit.skill").exists():
        return
    (folder / ".git").mkdir()
    machine.skill(into=folder / "skills")
    archive_of(folder / "tool.tar.gz", {"run.py": True, "data.py": False})
    machine.must("install", "./skills/unit", "--project", "--yes", cwd=folder)
    machine.must("install", "./tool.tar.gz", "--project", "--yes", cwd=folder)
    machine.must("pack", "skills/unit", "-o", "unit.skill", cwd=folder)
