"""The program of the crash and fault matrices: it answers a folder and a request, in JSON. Run by a fork server.

A child of this process makes a change and dies at a chosen call (or at a chosen time); this process then looks at
what a reader would see, has the next command recover, and looks again. Or the change is made here, and a chosen call
fails. The answer lists what went wrong, nothing when all is well.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import prowess
from prowess.files import syscalls
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Callable

Tree = dict[str, bytes]

OLD: Tree = {
    "SKILL.md": b"---\nname: pdf\ndescription: d\n---\nOld.\n",
    "references/a.md": b"old a\n",
    "only-old.md": b"x\n",
}
NEW: Tree = {
    "SKILL.md": b"---\nname: pdf\ndescription: d\n---\nNew.\n",
    "references/a.md": b"new a\n",
    "scripts/only-new.py": b"x\n",
}
REF = "@local/pdf"
COPIES = "copies: "
"""What an operation begins with that is about copies, not links."""
PARTS = "parts: "
"""What an operation begins with that is about an install of several skills, of which only some differ."""


def skill(name: str, body: str) -> Tree:
    """The files of one of several skills."""
    text = f"---\nname: {name}\ndescription: d\n---\n{body}.\n"
    return {f"skills/{name}/SKILL.md": text.encode(), f"skills/{name}/references/{body}.md": b"x\n"}


SAME: Tree = {path: data for name in ("one", "three", "two") for path, data in skill(name, "Old").items()}
OLD_PARTS: Tree = SAME | skill("changed", "Old") | skill("removed", "Old")
NEW_PARTS: Tree = SAME | skill("changed", "New") | skill("tools-added", "New")
LEFT = re.compile(r"journal\.json|\.prowess\.journal|\.prowess-.*|.*\.(?:tmp|new|spare)")


class Scene:
    """A project with a source folder, and the state that a change begins with."""

    def __init__(self, base: Path, operation: str) -> None:
        self.base = base
        self.operation = operation.removeprefix(COPIES).removeprefix(PARTS)
        self.copy = operation.startswith(COPIES)
        self.parts = operation.startswith(PARTS)
        self.old, self.new = (OLD_PARTS, NEW_PARTS) if self.parts else (OLD, NEW)
        self.source = base / "source" / "pdf"
        self.project = base / "project"
        self.place = self.project / ".prowess" / "skills" / "local" / "pdf"
        self.link = self.project / ".agents" / "skills" / "pdf"
        if self.copy:  # the copies are the install
            self.place = self.link

    def begin(self) -> Scene:
        if self.base.exists():
            shutil.rmtree(self.base)
        self.project.mkdir(parents=True)
        self.give(self.old if self.operation != "install" else self.new)
        if self.operation != "install":
            self.installer().install_local(self.source, project=True, copy=self.copy)
            self.give(self.new)
        return self

    def give(self, tree: Tree) -> None:
        if self.source.exists():
            shutil.rmtree(self.source)
        for path, content in tree.items():
            where = self.source / path
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_bytes(content)

    def installer(self) -> prowess.Installer:
        return prowess.Installer(user_dir=self.base / "user", project_dir=self.project / ".prowess" / "skills")

    def change(self) -> None:
        """Make the change of this operation."""
        if self.operation == "install":
            self.installer().install_local(self.source, project=True, agents=["claude-code"], copy=self.copy)
        elif self.operation == "update":
            self.installer().update(REF)
        else:
            self.installer().remove(REF)

    # -- looking -----------------------------------------------------------------------------------------------------

    def tree(self, folder: Path) -> Tree | None:
        """The files of a folder, ``None`` when it is not there."""
        if not os.path.lexists(folder):
            return None
        paths = (Path(where, name) for where, _, names in os.walk(folder) for name in names)
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}

    def expected(self) -> tuple[Tree | None, Tree | None]:
        """Before and after the change."""
        old, new = self.old, self.new
        return {"install": (None, new), "update": (old, new), "remove": (old, None)}[self.operation]

    def wrong_at_once(self) -> list[str]:
        """What a reader sees the moment after: the old skill or the new one, whole."""
        wrong = [f"a reader sees {seen and sorted(seen)}" for seen in self._find_torn()]
        roots = (self.project / ".prowess" / "skills", self.project / ".agents" / "skills")
        loaded = {skill.load().instructions for skill in prowess.scan(*roots)}
        return wrong + [f"a reader loads {text!r}" for text in loaded - {"Old.", "New."}]

    def _find_torn(self) -> list[Tree | None]:
        """What is neither old nor new: the whole install, or where only some of its skills are replaced, each skill."""
        if not self.parts:
            seen = self.tree(self.place)
            return [] if seen in self.expected() else [seen]
        names = {path.split("/")[1] for tree in (self.old, self.new) for path in tree}
        torn = []
        for name in sorted(names):
            seen = self.tree(self.place / "skills" / name)
            trees = [
                {path.removeprefix(f"skills/{name}/"): data for path, data in tree.items() if f"/{name}/" in path}
                for tree in (self.old, self.new)
            ]
            if (seen or {}) not in trees:
                torn.append(seen)
        return torn

    def wrong_after_recovery(self) -> list[str]:
        """What is not right once a command that changes things, and finds nothing to do, has recovered."""
        assert self.installer().adopt() == ()
        issues = self.installer().verify()
        wrong = [str(issue) for issue in issues]
        seen = self.tree(self.place)
        if seen not in self.expected():
            wrong.append(f"neither old nor new: {seen and sorted(seen)}")
        locked = read_lock(str(self.project))
        if (seen is not None) != ("local/pdf" in locked):
            wrong.append(f"lock file and disk disagree: {sorted(locked)} and {seen and sorted(seen)}")
        links = [self.link.with_name(path.split("/")[1]) for path in seen or {}] if self.parts else [self.link]
        if any((seen is not None) != link.exists() for link in links):
            wrong.append("the link and the disk disagree")
        return wrong + self.litter()

    def litter(self) -> list[str]:
        """What an interrupted change left behind for ever.

        A copy that never got its place is kept in the backups: without a journal nobody knows whose a folder was.
        """
        found = (Path(where, name) for where, folders, files in os.walk(self.project) for name in (*folders, *files))
        kept = ".backup" if self.copy else "\0"
        return [f"left behind: {path}" for path in found if LEFT.fullmatch(path.name) and kept not in path.parts]

    def wrong_after_all(self) -> list[str]:
        """What is wrong after somebody asked for the change once more."""
        with suppress(prowess.AlreadyInstalledError, prowess.NotInstalledError):
            self.change()
        wrong = [f"at last: {issue}" for issue in self.installer().verify()]
        if self.tree(self.place) != self.expected()[1]:
            wrong.append("a further try did not succeed")
        return wrong + self.litter()


class Counting:
    """Counts calls, and acts at a chosen call."""

    def __init__(
        self, at: int = -1, moment: str = "before", act: Callable[[str], None] | None = None, *, on: bool = False
    ) -> None:
        self.count, self.at, self.moment, self.act, self.on = 0, at, moment, act, on
        self.names: list[tuple[str, bool]] = []
        self.paths: list[str] = []

    def __call__(self, name: str, moment: str, path: str) -> None:
        if moment == "before":
            self.count += 1
            self.names.append((name, False))
            self.paths.append(path)
        else:
            self.names[-1] = (name, True)
        reached = self.count >= self.at if self.on else self.count == self.at
        if self.act is not None and reached and moment == self.moment:
            self.act(path)


def points(base: Path, operation: str) -> list[tuple[str, bool]]:
    """The calls that a change makes, in order: the name, and whether it was done (a folder may not be empty)."""
    return _counted(base, operation).names


def moments(base: Path, operation: str) -> list[tuple[str, str]]:
    """The calls that a change makes, in order: the name, and the last part of the path."""
    counted = _counted(base, operation)
    return [(name, Path(path).name) for (name, _), path in zip(counted.names, counted.paths, strict=True)]


def _counted(base: Path, operation: str) -> Counting:
    scene = Scene(base, operation).begin()
    counting = Counting()
    syscalls.set_watcher(counting)
    scene.change()
    syscalls.set_watcher(None)
    return counting


def die(base: Path, operation: str, at: int, moment: str) -> list[str]:
    """A child dies at a call."""
    scene = Scene(base, operation).begin()
    return _after(scene, lambda: syscalls.set_watcher(Counting(at, moment, lambda _: os._exit(9))), 9)


def kill(base: Path, operation: str, seconds: float) -> list[str]:
    """A child is killed at a time, wherever it is then."""
    scene = Scene(base, operation).begin()
    return _after(scene, lambda: signal.setitimer(signal.ITIMER_REAL, seconds), None)


def _after(scene: Scene, arm: Callable[[], object], status: int | None) -> list[str]:
    wrong = _died(scene, arm, status)
    return wrong + scene.wrong_at_once() + scene.wrong_after_recovery() + scene.wrong_after_all()


def _died(scene: Scene, arm: Callable[[], object], status: int | None) -> list[str]:
    """A child makes the change; whether it ended as it should."""
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            arm()
            scene.change()
        finally:
            os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return [] if status in {None, ended} else [f"the child ended with {ended}"]


def fail(base: Path, operation: str, at: int, code: str, *, on: bool) -> list[str]:
    """A call fails, alone or with all that follow; then the disk is well again."""
    scene = Scene(base, operation).begin()

    def refuse(path: str) -> None:
        number = getattr(errno, code)
        raise OSError(number, os.strerror(number), path)

    wrong: list[str] = []
    syscalls.set_watcher(Counting(at, "before", refuse, on=on))
    try:
        scene.change()
    except prowess.SkillError as error:
        if not error.code or not error.message:
            wrong.append("an error that says nothing")
    except BaseException as error:  # noqa: BLE001 - any other error is what is looked for
        wrong.append(f"not typed: {error!r}")
    finally:
        syscalls.set_watcher(None)
    return wrong + scene.wrong_at_once() + scene.wrong_after_recovery() + scene.wrong_after_all()


def following(base: Path, command: str) -> list[str]:
    """An update dies between the swap and the lock file; then another command comes."""
    scene = Scene(base, "update").begin()
    names = [name for name, _ in points(base, "update")]
    scene.begin()
    swapped = len(names) - names[::-1].index("exchange")
    wrong = _died(scene, lambda: syscalls.set_watcher(Counting(swapped, "after", lambda _: os._exit(9))), 9)
    installer = scene.installer()
    commands: dict[str, Callable[[], object]] = {
        "sync": installer.sync,
        "update": installer.update,
        "install": lambda: installer.install(str(scene.source), project=True, replace=True),
        "recover": installer.recover,
        "remove": lambda: installer.remove(REF),
        "adopt": installer.adopt,
    }
    done = commands[command]()
    if command in {"sync", "adopt"} and done != ():
        wrong.append(f"{command} found something to do: {done}")
    if command != "remove" and scene.tree(scene.place) != NEW:
        wrong.append("the new version is not there")
    return wrong + [str(issue) for issue in installer.verify()] + scene.litter()


VERBS: dict[str, Callable[..., list[Any]]] = {
    "points": points,
    "moments": moments,
    "die": die,
    "kill": kill,
    "fail": fail,
    "next": following,
}


def prepare() -> Callable[..., None]:
    """What answers requests: this module has imported all that it needs."""
    return answer_request


def answer_request(folder: str, request: list[list[Any]]) -> None:
    """Print the answer to each part of a request as JSON."""
    base = Path(folder)
    answer: list[Any] = []
    for number, (verb, *arguments) in enumerate(request):
        options = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        answer.append(VERBS[verb](base / str(number), *arguments, **options))
        shutil.rmtree(base / str(number), ignore_errors=True)
    json.dump(answer, sys.stdout)
