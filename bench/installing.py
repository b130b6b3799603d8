"""What installing and verifying cost: ``python -m bench.installing TASK ROOT`` prints one JSON object.

An install is mostly other processes and the disk, so it is measured by the clock on the wall; verifying by CPU time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import prowess
from bench.floor import clocked
from bench.generate import VARIED, make_library
from prowess.files.tree import digest_tree, hash_tree
from prowess.install.installer import Installer
from prowess.lockfile.read import LockEntry
from prowess.lockfile.write import lock_text

if TYPE_CHECKING:
    from collections.abc import Callable

Measured = dict[str, float]

_ENV = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


UPDATED = 50
"""How many skills an update changes."""


def make_repository(root: Path) -> None:
    """A repository with one skill of ten files."""
    root.mkdir()
    (root / "SKILL.md").write_text("---\nname: pdf\ndescription: d\n---\n" + "Do it.\n" * 500, encoding="utf-8")
    for number in range(9):
        path = root / "references" / f"{number}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n" * 2_000, encoding="utf-8")
    for args in (("init", "-q", "."), ("add", "."), ("commit", "-qm", "skill")):
        _git(root, *args)


def _git(root: Path, *args: str) -> None:
    # Git would tidy a repository of thousands of files in the background, while something else is measured.
    command = ["git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", *args]
    subprocess.run(command, cwd=root, env={**os.environ, **_ENV}, check=True)


def make_installed(root: Path, count: int) -> None:
    """A project with so many installs, as ``Installer`` leaves them."""
    base = root / ".prowess" / "skills" / "acme"
    make_library(base, count, mix=VARIED)
    agents = root / ".agents" / "skills"
    agents.mkdir(parents=True)
    locked = {}
    for folder in sorted(base.iterdir()):
        files = hash_tree(str(folder), prowess.Limits()).files
        name = folder.name
        (agents / name).symlink_to(f"../../.prowess/skills/acme/{name}")
        locked[f"acme/{name}"] = LockEntry(
            f"acme/{name}",
            f"https://github.com/acme/{name}",
            skills={name: ""},
            digest=digest_tree(files),
            files=files,
            links=(f".agents/skills/{name}",),
        )
    (root / "prowess.lock").write_text(lock_text(locked) or "", encoding="utf-8")


def clone(root: str) -> Measured:
    """``git clone --depth 1``."""
    with tempfile.TemporaryDirectory(prefix="prowess-bench-") as folder:
        began = time.perf_counter()
        _git(Path(folder), "clone", "--quiet", "--depth", "1", f"file://{root}", "clone")
        return {"value": time.perf_counter() - began, "count": 1}


def install(root: str) -> Measured:
    """The same repository installed, linked and locked."""
    with tempfile.TemporaryDirectory(prefix="prowess-bench-") as folder:
        project = Path(folder) / "project"
        installer = Installer(Path(folder) / "user", project / ".prowess" / "skills")
        began = time.perf_counter()
        installer.install(f"file://{root}", project=True)
        seconds = time.perf_counter() - began
        assert not installer.verify()
        return {"value": seconds, "count": 1}


def verify(root: str) -> Measured:
    installer = Installer(Path(root) / "user", Path(root) / ".prowess" / "skills")
    seconds, issues = clocked(installer.verify)
    assert not issues, issues[:3]
    return {"value": seconds, "count": len(installer.list())}


def verify_floor(root: str) -> Measured:
    """Every file of the same installs found, read and hashed, and nothing else."""
    base = Path(root) / ".prowess" / "skills"
    seconds, _ = clocked(lambda: _hash_all(str(base)))
    return {"value": seconds, "count": len(list((base / "acme").iterdir()))}


def sync_locked(root: str) -> Measured:
    """``prowess sync --locked`` where nothing differs."""
    installer = Installer(Path(root) / "user", Path(root) / ".prowess" / "skills")
    seconds, done = clocked(lambda: installer.sync(locked=True))
    assert not done
    return {"value": seconds, "count": len(installer.list())}


def prompt(root: str) -> Measured:
    """``prowess prompt``, with what each skill costs."""
    return _command(root, "prompt")


def list_all(root: str) -> Measured:
    """``prowess list``."""
    return _command(root, "list")


def _command(root: str, name: str) -> Measured:
    """What a command of the command line costs in a project, without the start of the process."""
    from click.testing import CliRunner

    from prowess.cli.main import root as commands

    os.environ["HOME"] = tempfile.gettempdir()
    os.chdir(root)
    CliRunner().invoke(commands, [name, "--help"])  # what is imported is not counted
    seconds, result = clocked(lambda: CliRunner().invoke(commands, [name]))
    assert result.exit_code == 0, result.output
    return {"value": seconds, "count": len(list((Path(root) / ".agents" / "skills").iterdir()))}


def install_many(root: str) -> Measured:
    """Every skill of a folder chosen by its name, each installed in a place of its own."""
    names = sorted(folder.name for folder in Path(root).iterdir())
    with tempfile.TemporaryDirectory(prefix="prowess-bench-") as folder:
        installer = Installer(Path(folder) / "user", Path(folder) / "project" / ".prowess" / "skills")
        seconds, _ = clocked(lambda: installer.install(root, project=True, select=names))
        assert len(installer.list()) == len(names)
    return {"value": seconds, "count": len(names)}


def make_source(root: Path, count: int) -> None:
    """A folder with so many small skills, to be installed from."""
    for number in range(count):
        folder = root / f"skill-{number:05}"
        folder.mkdir(parents=True)
        text = f"---\nname: {folder.name}\ndescription: Does task {number}, when asked to.\n---\nDo it.\n"
        (folder / "SKILL.md").write_text(text, encoding="utf-8")


def make_skill_repository(root: Path, count: int) -> None:
    """A repository with so many skills of two files: one install holds no more of 5,000 of them."""
    make_source(root / "skills", count)
    for folder in (root / "skills").iterdir():
        (folder / "columns.md").write_text(f"The columns of {folder.name}.\n", encoding="utf-8")
    _git(root, "init", "-q", ".")
    _commit(root)


def _commit(root: Path) -> None:
    _git(root, "add", ".")
    _git(root, "commit", "-qm", "skills")


def outdated_chosen(root: str) -> Measured:
    """``outdated`` for every skill of a repository, each chosen; beside that for one install of all of them."""
    with tempfile.TemporaryDirectory(prefix="prowess-bench-") as folder:
        whole, chosen = (Installer(Path(folder) / "user", Path(folder) / name / ".prowess" / "skills") for name in "ab")
        names = _skill_names(root)
        whole.install(f"file://{root}", project=True)
        chosen.install(f"file://{root}", project=True, select=names)
        _change(root, names[:1])
        seconds = []
        for installer in (whole, chosen):
            began = time.perf_counter()
            found = installer.outdated()
            seconds.append(time.perf_counter() - began)
            assert len(found) == len(installer.list())
    return {"value": seconds[1], "floor": seconds[0], "count": len(names)}


def update_chosen(root: str) -> Measured:
    """An update that changes some skills of a repository, each chosen; beside the install of all of them."""
    return _update_some(root, _skill_names(root))


def update_whole(root: str) -> Measured:
    """An update that changes some skills of one install of a repository; beside that install."""
    return _update_some(root, None)


def _update_some(root: str, select: list[str] | None) -> Measured:
    with tempfile.TemporaryDirectory(prefix="prowess-bench-") as folder:
        installer = Installer(Path(folder) / "user", Path(folder) / "project" / ".prowess" / "skills")
        began = time.perf_counter()
        installer.install(f"file://{root}", project=True, select=select)
        installed = time.perf_counter() - began
        names = _skill_names(root)
        changed = names[:: max(1, len(names) // UPDATED)]
        _change(root, changed)
        began = time.perf_counter()
        updates = installer.update()
        seconds = time.perf_counter() - began
        assert sum(update.status == "updated" for update in updates) == (len(changed) if select else 1)
    return {"value": seconds, "floor": installed, "count": len(changed)}


def _skill_names(root: str) -> list[str]:
    return sorted(folder.name for folder in Path(root, "skills").iterdir())


def _change(root: str, names: list[str]) -> None:
    for name in names:
        with Path(root, "skills", name, "SKILL.md").open("a", encoding="utf-8") as file:
            file.write("One more line.\n")
    _commit(Path(root))


def make_declared_source(root: Path, count: int) -> None:
    """A repository with so many skills of ten files each."""
    for number in range(count):
        folder = root / "skills" / f"handle-request-{number:04}"
        (folder / "references").mkdir(parents=True)
        text = f"---\nname: {folder.name}\ndescription: Does task {number}, when asked to.\n---\nDo it.\n"
        (folder / "SKILL.md").write_text(text, encoding="utf-8")
        for chapter in range(9):
            (folder / "references" / f"chapter-{chapter}.md").write_text(f"{number}\n" * 500, encoding="utf-8")
    for args in (("init", "-q", "."), ("add", "."), ("commit", "-qm", "skills"), ("tag", "v1.0.0")):
        _git(root, *args)


def lock_bytes(root: str) -> Measured:
    """The size of the lock file of a project whose manifest chooses every skill of a repository by its name."""
    names = sorted(folder.name for folder in (Path(root) / "skills").iterdir())
    with tempfile.TemporaryDirectory(prefix="prowess-bench-") as folder:
        project = Path(folder) / "project"
        project.mkdir()
        entry = f"{{ source = {json.dumps(f'file://{root}')}, ref = 'v1.0.0', skills = {json.dumps(names)} }}"
        manifest = f"agents = ['claude-code']\nskills = [{entry}]\n"
        (project / "prowess.toml").write_text(manifest, encoding="utf-8")
        Installer(Path(folder) / "user", project / ".prowess" / "skills").sync()
        return {"value": (project / "prowess.lock").stat().st_size, "count": len(names)}


def _hash_all(base: str) -> list[str]:
    found: list[str] = []
    for where, _, names in os.walk(base):
        for name in names:
            fd = os.open(os.path.join(where, name), os.O_RDONLY)  # noqa: PTH118 - path objects cost more than reading
            found.append(hashlib.sha256(os.read(fd, 1 << 20)).hexdigest())
            os.close(fd)
    return found


TASKS: dict[str, Callable[[str], Measured]] = {
    task.__name__: task
    for task in (
        *(clone, install, verify, verify_floor, sync_locked, prompt, list_all, install_many, lock_bytes),
        *(outdated_chosen, update_chosen, update_whole),
    )
}


if __name__ == "__main__":
    assert shutil.which("git")
    print(json.dumps(TASKS[sys.argv[1]](sys.argv[2])))
