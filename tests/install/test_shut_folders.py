"""Folders of installs that somebody else owns, as after a command with ``sudo``: named, and found by ``doctor``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.install.conftest import World

pytestmark = pytest.mark.needs_modes
FOLDERS = ("", ".prowess", ".prowess/skills", ".prowess/skills/local")
# Everything that the work needs is loaded by doing it once in the first project, while the interpreter may be read.
WORK = """
import json, os, sys
import prowess
source, warm_up, *projects = sys.argv[1:]
def work(project):
    os.environ["HOME"] = project + "/home"
    os.chdir(project)
    try:
        prowess.Installer().install(source, project=True)
        outcome = ["installed", "", ""]
    except prowess.InstallError as error:
        outcome = [error.code, error.path, error.message]
    return [outcome, [[found.code, found.path] for found in prowess.doctor() if found.topic == "owner"]]
work(warm_up), work(warm_up)
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(json.dumps([work(project) for project in projects]))
"""


def test_a_folder_of_somebody_else_is_named_with_its_owner_and_doctor_finds_it(world: World) -> None:
    as_root = os.geteuid() == 0
    projects = [world.home / f"project{number}" for number in range(len(FOLDERS))]
    for project, shut in zip(projects, FOLDERS, strict=True):
        (project / ".git").mkdir(parents=True)
        place = project / shut
        place.mkdir(parents=True, exist_ok=True)
        if as_root:
            for folder in (project, *project.rglob("*")):
                os.chown(folder, 65534, 65534)
            if shut:
                os.chown(place, 0, 0)
        elif shut:
            place.chmod(0o555)
    for folder in (world.base, *world.base.parents):
        folder.chmod(folder.stat().st_mode | 0o055)
        if folder.name.startswith("pytest-of-"):
            break
    words = [str(path) for path in (world.folder(), world.project, *projects)]
    try:
        done = subprocess.run([sys.executable, "-c", WORK, *words], check=True, capture_output=True, text=True)
    finally:
        for project, shut in zip(projects, FOLDERS, strict=True):
            (project / shut).chmod(0o755)
    fine, *failures = json.loads(done.stdout)
    assert fine == [["installed", "", ""], []]
    for project, shut, ((code, path, message), found) in zip(projects[1:], FOLDERS[1:], failures, strict=True):
        assert (code, path) == ("not-writable", str(project / shut))
        assert "root" in message or not as_root
        assert found[0] == ["not-writable", str(project / shut)]
