"""The program of the interrupt matrix: it answers a folder, an operation, two numbers and a seed. Run by a fork server.

A child of this process runs a command line of ``prowess`` through its entry point and gets SIGINT before or after a
chosen call that changes the file system; this process then looks at how it ended and at what a reader would see, has
the next commands run, and looks again. The answer lists what went wrong, nothing when all is well.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import prowess
from prowess.cli.main import FAILED, INTERRUPTED, run
from prowess.files import syscalls
from prowess.lockfile.read import read_lock

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests import cli_processes
from tests.install.dying import LEFT, NEW, OLD, Counting, Tree
from tests.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Callable

OTHER: Tree = {"SKILL.md": b"---\nname: other\ndescription: d\n---\nOther.\n", "references/b.md": b"b\n"}


class Ended(NamedTuple):
    """How a command ended, and what it said on the error stream."""

    status: int
    err: str


class Scene:
    """A home folder with a project in it, sources, and a folder for temporary files, all of its own."""

    def __init__(self, base: Path, operation: str) -> None:
        self.base, self.operation = base, OPERATIONS[operation]
        self.home = base / "home"
        self.project = self.home / "project"
        self.skills = self.project / ".prowess" / "skills"
        self.temporary = base / "tmp"

    def begin(self) -> Scene:
        if self.base.exists():
            shutil.rmtree(self.base)
        (self.project / ".git").mkdir(parents=True)
        self.temporary.mkdir()
        os.environ.update(HOME=str(self.home), TMPDIR=str(self.temporary))
        tempfile.tempdir = str(self.temporary)
        os.chdir(self.project)
        self.operation.before(self)
        return self

    def give(self, tree: Tree, name: str = "pdf") -> Path:
        """A source with those files, instead of what it had."""
        source = self.base / "sources" / name
        if source.exists():
            shutil.rmtree(source)
        write(tree, source)
        return source

    def repository(self) -> None:
        """The source as a git repository."""
        made = Repository(self.base / "sources" / "pdf")
        for path, content in NEW.items():
            made.write(path, content)
        made.commit()

    def installed(self, tree: Tree = OLD) -> None:
        prowess.Installer().install_local(self.give(tree), project=True)

    # -- looking -----------------------------------------------------------------------------------------------------

    def trees(self) -> dict[str, Tree | None]:
        """What is at each place that the operation is about."""
        return {place: tree_at(self.project / place) for place in self.operation.places}

    def wrong_at_once(self) -> list[str]:
        """What a reader sees the moment after: each skill as it was or as it will be, whole."""
        seen = self.trees()
        wrong = [f"a reader sees {place} as {tree}" for place, tree in seen.items() if not self._is_whole(place, tree)]
        if sum(tree is not None for tree in seen.values()) < self.operation.least:
            wrong.append("it is at no place at all")
        return wrong

    def _is_whole(self, place: str, tree: Tree | None) -> bool:
        return tree in self.operation.places[place]

    def wrong_with_records(self) -> list[str]:
        """Where the lock file, the disk and the links say different things."""
        wrong: list[str] = []
        locked = read_lock(str(self.project))
        for place, tree in self.trees().items():
            if place.startswith(".prowess/skills/"):
                name = place.removeprefix(".prowess/skills/")
                if (tree is not None) != (name in locked) and not self.operation.restores:
                    wrong.append(f"lock file and disk disagree about {name}: {sorted(locked)}")
                shown = self.project / ".agents" / "skills" / name.partition("/")[2]
                if (tree is not None) != shown.exists() and not self.operation.stands:
                    wrong.append(f"the link and the disk disagree about {name}")
        return wrong

    def litter(self) -> list[str]:
        """What an interrupted command left behind for ever."""
        roots = (self.home, self.temporary)
        walked = (row for root in roots for row in os.walk(root))
        found = [Path(where, name) for where, folders, files in walked for name in (*folders, *files)]
        left = [path for path in found if LEFT.fullmatch(path.name) or self.temporary in path.parents]
        left += [path for path in found if path.name == "holder"]
        return [f"left behind: {path.relative_to(self.base)}" for path in left]


def pack(scene: Scene) -> None:
    prowess.write_packed(prowess.pack(scene.give(OLD)), scene.base / "sources" / "pdf.skill")


def outdated(scene: Scene) -> None:
    """Installed, and then changed at its source."""
    scene.installed()
    scene.give(NEW)


def lost(scene: Scene) -> None:
    """Installed and gone; and another one declared that was never installed."""
    scene.installed()
    shutil.rmtree(scene.skills / "local" / "pdf")
    scene.give(OTHER, "other")
    (scene.project / "prowess.toml").write_text('skills = ["../../sources/other"]\n', encoding="utf-8")


def write(tree: Tree, folder: Path) -> None:
    for path, content in tree.items():
        where = folder / path
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_bytes(content)


class Operation(NamedTuple):
    """A command line, what is there before it, and each place that it changes with what may be there."""

    words: tuple[str, ...]
    before: Callable[[Scene], object]
    places: dict[str, tuple[Tree | None, ...]]
    restores: bool = False
    """Whether the lock file may say more than there is: the command is about that."""
    stands: bool = False
    """Whether the skill is where agents look from the beginning."""
    least: int = 0
    """At how many of the places there is always something: what belongs to a person is never nowhere."""


DONE = re.compile(r"error\[(?:already-installed|already-there|not-installed)\]")
"""The command has been carried out before."""
PLACE = ".prowess/skills/local/pdf"
OPERATIONS: dict[str, Operation] = {
    "install": Operation(
        ("install", "../../sources/pdf", "--project", "--agent", "claude-code", "--yes"),
        lambda scene: scene.give(NEW),
        {PLACE: (None, NEW)},
    ),
    "install from git": Operation(
        ("install", "file://{base}/sources/pdf", "--project", "--yes"), Scene.repository, {PLACE: (None, NEW)}
    ),
    "install into": Operation(
        ("install", "../../sources/pdf", "--into", "vendor", "--yes"),
        lambda scene: scene.give(NEW),
        {"vendor/pdf": (None, NEW)},
    ),
    "update": Operation(("update", "--yes"), outdated, {PLACE: (OLD, NEW)}, least=1),
    "remove": Operation(("remove", "pdf", "--yes"), Scene.installed, {PLACE: (OLD, None)}),
    "sync": Operation(
        ("sync", "--yes"),
        lost,
        {PLACE: (None, OLD), ".prowess/skills/local/other": (None, OTHER)},
        restores=True,
    ),
    "unpack": Operation(("unpack", "../../sources/pdf.skill"), pack, {"pdf": (None, OLD)}),
    "link": Operation(
        ("link", "pdf", "--agent", "claude-code", "--yes"),
        Scene.installed,
        {PLACE: (OLD,), ".claude/skills/pdf": (None, OLD)},
    ),
    "adopt": Operation(
        ("adopt", "pdf", "--yes"),
        lambda scene: write(OLD, scene.project / ".agents" / "skills" / "pdf"),
        {PLACE: (None, OLD), ".agents/skills/pdf": (OLD,)},
        stands=True,
        least=1,
    ),
}


def tree_at(folder: Path) -> Tree | None:
    """The files of a folder, ``None`` when it is not there."""
    if not os.path.lexists(folder):
        return None
    paths = (Path(where, name) for where, _, names in os.walk(folder) for name in names)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def prowess_run(scene: Scene, words: tuple[str, ...], arm: Callable[[], object] = lambda: None) -> Ended:
    """A child runs a command line as the console script does."""
    said = scene.base / "said"
    child = os.fork()
    if child == 0:
        _become(words, said, arm)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Ended(status, said.read_text(encoding="utf-8"))


def _become(words: tuple[str, ...], said: Path, arm: Callable[[], object]) -> None:
    status = 99
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        sys.argv = ["prowess", *words]
        arm()
        run()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 98
    finally:
        syscalls.set_watcher(None)
        sys.stderr.flush()
        os._exit(status)


def words_of(scene: Scene) -> tuple[str, ...]:
    return tuple(word.format(base=scene.base) for word in scene.operation.words)


def points(base: Path, operation: str) -> list[tuple[str, bool]]:
    """The calls that a command makes, in order: the name, and whether it was done (a folder may not be empty)."""
    scene = Scene(base, operation).begin()
    written = base / "points"

    def arm() -> None:
        syscalls.set_watcher(_Writing(written))

    ended = prowess_run(scene, words_of(scene), arm)
    assert ended.status == 0, ended.err
    names: list[tuple[str, bool]] = []
    for row in written.read_text(encoding="utf-8").splitlines():
        moment, name = row.split()
        if moment == "before":
            names.append((name, False))
        else:
            names[-1] = (name, True)
    return names


class _Writing:
    """Writes down every call."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, name: str, moment: str, _path: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{moment} {name}\n")


def interrupt(base: Path, operation: str, at: int, moment: str, *, on: bool = False) -> list[str]:
    """SIGINT arrives at a call, or at it and all that follow; then ``adopt``, ``verify``, and the command again."""
    scene = Scene(base, operation).begin()
    ended = prowess_run(scene, words_of(scene), lambda: syscalls.set_watcher(Counting(at, moment, _press, on=on)))
    if on:  # whoever does not let it tidy up keeps what is in the folder for temporary files
        shutil.rmtree(scene.temporary)
        scene.temporary.mkdir()
    wrong = _wrongly_ended(ended) + scene.wrong_at_once()
    tidied = prowess_run(scene, ("adopt", "--yes"))  # finds nothing to do, and ends what was interrupted first
    if tidied.status:
        wrong.append(f"adopt ended with {tidied.status}: {tidied.err}")
    checked = prowess_run(scene, ("verify",))
    if checked.status != 0 and not scene.operation.restores:
        wrong.append(f"verify ended with {checked.status}: {checked.err}")
    wrong += scene.wrong_at_once() + scene.wrong_with_records() + scene.litter()
    again = prowess_run(scene, words_of(scene))
    if again.status and not (again.status == FAILED and DONE.search(again.err)):
        wrong.append(f"a further try ended with {again.status}: {again.err}")
    checked = prowess_run(scene, ("verify",))
    if checked.status:
        wrong.append(f"at last verify ended with {checked.status}: {checked.err}")
    for place, tree in scene.trees().items():
        if tree != scene.operation.places[place][-1]:
            wrong.append(f"a further try did not succeed: {place} is {tree}")
    return wrong + scene.litter()


def _press(_path: str) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _wrongly_ended(ended: Ended) -> list[str]:
    wrong = [] if ended.status == INTERRUPTED else [f"it ended with {ended.status}"]
    if not ended.err.endswith("\ninterrupted\n"):
        wrong.append(f"it said {ended.err!r}")
    unwanted = ("Traceback", "Exception ignored", "KeyboardInterrupt", "error[")
    return wrong + [f"it said {words}: {ended.err}" for words in unwanted if words in ended.err]


def moments(base: Path, operation: str) -> list[tuple[int, str]]:
    """Before and after each call that a command makes."""
    names = points(base, operation)
    both = {True: ("before", "after"), False: ("before",)}
    return [(at, moment) for at, (_, done) in enumerate(names, 1) for moment in both[done]]


def prepare() -> Callable[..., None]:
    """Import what the commands of the matrix need, before the forks."""
    cli_processes.prepare()
    for name in ("adopt", "link", "remove", "sync", "unpack", "update", "verify"):
        importlib.import_module(f"prowess.cli.commands.{name}")
    return answer_request


def answer_request(folder: str, operation: str, most: int, again: int, seed: int) -> None:
    """Try ``most`` moments (0: all of them), ``again`` of them with an interrupt at every call that follows."""
    base = Path(folder)
    known = moments(base / "points", operation)
    rng = random.Random(seed)
    chosen = [(known if not count else rng.sample(known, count)) if count >= 0 else [] for count in (most, again)]
    wrong: dict[str, list[str]] = {}
    for on, part in zip((False, True), chosen, strict=True):
        for at, moment in part:
            found = interrupt(base / "scene", operation, at, moment, on=on)
            wrong |= {f"{moment} call {at}{' and all that follow' if on else ''}": found} if found else {}
    json.dump({"moments": len(known), "tried": [len(part) for part in chosen], "wrong": wrong}, sys.stdout)
