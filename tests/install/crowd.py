"""The program of the tests with many processes: it answers a folder, a scenario and a number of rounds, in JSON.

Sixteen children begin at once, each with its own part of the scenario; what each of them met, and what is there at
the end, is judged here. The answer lists what went wrong.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import prowess
from prowess.files.tree import digest_tree, hash_tree

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Callable

CROWD = 16
READERS = 4
ALLOWED = {
    "same": {"done", "already-installed"},
    "versions": {"done", "already-installed"},
    "remove": {"done", "already-installed", "not-installed"},
    "list": {"done", "already-installed", "read"},
}


class Crowd:
    """A project, and a source folder for each version; every file of a version says which it is."""

    def __init__(self, base: Path, scenario: str) -> None:
        self.base, self.scenario = base, scenario
        self.project = base / "project"
        self.skills = self.project / ".prowess" / "skills"
        self.digests: set[str] = set()

    def begin(self) -> Crowd:
        (self.project / ".git").mkdir(parents=True)
        for version in range(CROWD):
            self._source(version)
        self._repository()
        if self.scenario in {"remove", "list"}:
            self.install(0, replace=False)
        return self

    def _source(self, version: int) -> None:
        folder = self.base / "sources" / str(version) / "pdf"
        for path in ("references/a.md", "references/b.md", f"scripts/{version}.py", "z.md"):
            where = folder / path
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_text(f"{version}\n" * 200, encoding="utf-8")
        (folder / "SKILL.md").write_text(f"---\nname: pdf\ndescription: d\n---\n{version}\n", encoding="utf-8")
        self.digests.add(digest_tree(hash_tree(str(folder), prowess.Limits()).files))

    def _repository(self) -> None:
        """One repository with a tag for each version."""
        if self.scenario != "versions":
            return
        made = Repository(self.base / "repository" / "pdf")
        for version in range(CROWD):
            made.git("rm", "-rq", "--ignore-unmatch", ".")
            shutil.copytree(self.base / "sources" / str(version) / "pdf", made.path, dirs_exist_ok=True)
            made.commit(tag=f"v{version}")

    def installer(self) -> prowess.Installer:
        return prowess.Installer(user_dir=self.base / "user", project_dir=self.skills)

    def install(self, version: int, *, replace: bool) -> None:
        source = self.base / "sources" / str(version) / "pdf"
        self.installer().install_local(source, project=True, replace=replace)

    def part(self, number: int) -> Callable[[], None]:
        """What one of the crowd does."""
        if self.scenario == "same":
            return lambda: self.install(0, replace=False)
        if self.scenario == "versions":
            ref = f"file://{self.base / 'repository' / 'pdf'}#v{number}"
            return lambda: _ignored(self.installer().install(ref, project=True, replace=number % 2 == 0))
        if self.scenario == "remove" and number % 2:
            return lambda: _ignored(self.installer().remove("@local/pdf"))
        return lambda: self.install(number, replace=True)

    def read(self, until: int) -> None:
        """List, load, hash and verify in a loop until the pipe ends: never half a skill."""
        os.set_blocking(until, False)
        while True:
            self._read_once()
            try:
                if os.read(until, 1) == b"":
                    return
            except BlockingIOError:
                continue

    def _read_once(self) -> None:
        (one,) = self.installer().list()
        digest = digest_tree(hash_tree(str(one.path), prowess.Limits()).files)
        if digest not in self.digests:
            raise AssertionError(f"half a skill: {sorted(hash_tree(str(one.path), prowess.Limits()).files)}")
        int(prowess.scan(self.skills).load("pdf").instructions)
        catalog = prowess.discover(cwd=self.project, home=self.base / "home", verify="lock")
        if catalog.names != ("pdf",):
            raise AssertionError(f"refused: {[str(issue) for issue in catalog.issues]}")

    def end(self) -> list[str]:
        """What is not right when all have gone."""
        wrong = [str(issue) for issue in self.installer().verify()]
        found = self.installer().list()
        if self.scenario != "remove" and len(found) != 1:
            wrong.append(f"installed: {found}")
        trees = [digest_tree(hash_tree(str(one.path), prowess.Limits()).files) for one in found]
        return wrong + ["the tree is not a version" for digest in trees if digest not in self.digests]


def _ignored(_: object) -> None:
    """A value that nobody needs."""


def child(crowd: Crowd, number: int, start: int, until: int, say: int) -> None:
    """One of the crowd: waits for the start, does its part, and says how it ended."""
    os.read(start, 1)
    try:
        if crowd.scenario == "list" and number < READERS:
            crowd.read(until)
            said = "read"
        else:
            crowd.part(number)()
            said = "done"
    except prowess.SkillError as error:
        said = error.code if error.code in ALLOWED[crowd.scenario] else f"{error.code}: {error}"
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is wrong
        said = repr(error)
    os.write(say, (said.replace("\n", " ") + "\n").encode()[:4000])


def once(base: Path, scenario: str) -> list[str]:
    """One round: what went wrong."""
    crowd = Crowd(base, scenario).begin()
    (start, go), (until, over), (heard, say) = os.pipe(), os.pipe(), os.pipe()
    writers: list[int] = []
    readers: list[int] = []
    for number in range(CROWD):
        pid = os.fork()
        if pid == 0:
            os.close(go)
            os.close(over)
            child(crowd, number, start, until, say)
            os._exit(0)
        (readers if scenario == "list" and number < READERS else writers).append(pid)
    os.close(say)
    os.close(go)
    for pid in writers:
        os.waitpid(pid, 0)
    os.close(over)
    for pid in readers:
        os.waitpid(pid, 0)
    with os.fdopen(heard, encoding="utf-8") as file:
        said = Counter(file.read().splitlines())
    for fd in (start, until):
        os.close(fd)
    wrong = [f"{count} x {text}" for text, count in said.items() if text not in ALLOWED[scenario]]
    if said.total() != CROWD or not said["done"] or (scenario == "same" and said["done"] != 1):
        wrong.append(f"ended as {dict(said)}")
    return wrong + crowd.end()


def prepare() -> Callable[..., None]:
    """What answers requests: this module has imported all that it needs."""
    return answer_request


def answer_request(folder: str, scenario: str, rounds: int) -> None:
    """Print what went wrong in so many rounds as JSON."""
    base = Path(folder)
    wrong: list[str] = []
    for number in range(rounds):
        wrong += once(base / str(number), scenario)
        shutil.rmtree(base / str(number))
    json.dump(wrong, sys.stdout)
