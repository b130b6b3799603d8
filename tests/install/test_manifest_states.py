"""One sync that may remove makes manifest, lock file and disk agree, no matter what was done to them."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import tomllib
from contextlib import suppress
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import prowess
from prowess.lockfile.read import read_lock
from tests.repositories import skill_text

HELD = {"x": ("a", "b"), "y": ("b", "c")}
"""The skills of two sources; both have one of the same name."""
ORDINARY, FULL = (4, 6), (300, 20)
"""How many examples of how many steps."""

Entry = tuple[str, tuple[str, ...], tuple[str, ...]]
"""A source, the skills that are chosen of it (none: the whole of it), the agents."""


def skills_of(entry: Entry) -> tuple[str, ...]:
    return entry[1] or HELD[entry[0]]


def is_free_of_conflicts(entries: list[Entry]) -> bool:
    """Whether each skill is declared once: a sync cannot decide between two declarations."""
    declared = [skill for entry in entries for skill in skills_of(entry)]
    return len(declared) == len(set(declared))


ENTRIES: list[Entry] = [
    (source, chosen, agents)
    for source, held in HELD.items()
    for chosen in ((), *permutations(held, 1), *permutations(held, 2))
    for agents in ((), ("claude-code",))
]
MANIFESTS = st.sampled_from(  # of all that there are, each as often as any other: most of them have something to move
    [list(rows) for count in range(4) for rows in permutations(ENTRIES, count) if is_free_of_conflicts([*rows])]
)


class Project(RuleBasedStateMachine):
    """A project with two sources of skills, of whose manifest, lock file and disk anything may become."""

    def __init__(self) -> None:
        super().__init__()
        self.base = Path(tempfile.mkdtemp(prefix="prowess-states-"))
        self.project = self.base / "project"
        self.skills = self.project / ".prowess" / "skills"
        self.lock = self.project / "prowess.lock"
        self.entries: list[Entry] = []
        self.locks: list[str] = []
        (self.project / ".git").mkdir(parents=True)
        for source, names in HELD.items():
            for name in names:
                folder = self.base / source / "skills" / name
                folder.mkdir(parents=True)
                (folder / "SKILL.md").write_text(skill_text(name, f"From {source}.\n"), encoding="utf-8")
        self.installer = prowess.Installer(self.base / "home" / ".config" / "prowess" / "skills", self.skills)

    def teardown(self) -> None:
        """Bring them together at last, so that no example ends without that."""
        try:
            self.sync_and_remove()
        finally:
            shutil.rmtree(self.base)

    # -- the manifest ------------------------------------------------------------------------------------------------

    @initialize(entries=MANIFESTS)
    def begin(self, entries: list[Entry]) -> None:
        self.declare(entries)

    @rule(entries=MANIFESTS, is_synced=st.booleans())
    def change_manifest(self, entries: list[Entry], *, is_synced: bool) -> None:
        self.declare(entries)
        if is_synced:
            self.sync_and_remove()

    def declare(self, entries: list[Entry]) -> None:
        """Declare something else: added, taken out, moved, in another order, for other agents."""
        self.entries = entries
        (self.project / "prowess.toml").write_text(f"skills = [{', '.join(map(shown, entries))}]\n", encoding="utf-8")

    @rule(entry=st.sampled_from(ENTRIES))
    def install(self, entry: Entry) -> None:
        """A person installs something; when something is in the way, nothing changes."""
        source, skills, agents = entry
        before = list(self.entries)
        if not is_free_of_conflicts([*before, entry]):
            return
        with suppress(prowess.AlreadyInstalledError, prowess.NameTakenError):
            self.installer.install_local(self.base / source, project=True, select=skills or None, agents=agents)
            assert set(skills_of(entry)) <= {skill for other in self.read_entries() for skill in skills_of(other)}
            before = self.read_entries()
        self.entries = self.read_entries()
        assert self.entries == before

    @rule(which=st.integers(0, 9))
    def remove(self, which: int) -> None:
        """A person removes an install: the manifest declares it no more."""
        if found := self.installs():
            path = found[which % len(found)]
            self.installer.remove(f"@{path.parent.name}/{path.name}")
            self.entries = self.read_entries()
            gone = ("", ()) if path.name not in HELD else (path.name, HELD[path.name])
            assert path.name not in {skill for entry in self.entries for skill in entry[1]}
            assert (gone[0], (), ()) not in self.entries

    def read_entries(self) -> list[Entry]:
        """What the manifest declares now."""
        data = tomllib.loads((self.project / "prowess.toml").read_text(encoding="utf-8"))
        tables = [{"source": entry} if isinstance(entry, str) else entry for entry in data["skills"]]
        return [
            (Path(table["source"]).name, tuple(table.get("skills", ())), tuple(table.get("agents", ())))
            for table in tables
        ]

    # -- the lock file -----------------------------------------------------------------------------------------------

    @rule()
    def lose_lock(self) -> None:
        """The lock file is deleted: nothing that lies here is recorded any more."""
        self.lock.unlink(missing_ok=True)

    @rule(which=st.integers(0, 9))
    def check_out_lock(self, which: int) -> None:
        """An earlier lock file is back, as after a checkout."""
        if self.locks:
            self.lock.write_text(self.locks[which % len(self.locks)], encoding="utf-8")

    # -- the disk ----------------------------------------------------------------------------------------------------

    def installs(self) -> list[Path]:
        return sorted(path for path in self.skills.glob("[!.]*/*") if path.is_dir())

    @rule(which=st.integers(0, 9))
    def delete_install(self, which: int) -> None:
        if found := self.installs():
            shutil.rmtree(found[which % len(found)])

    @rule(which=st.integers(0, 9))
    def edit_install(self, which: int) -> None:
        if found := self.installs():
            (found[which % len(found)] / "notes.md").write_text("mine", encoding="utf-8")

    @rule(name=st.sampled_from(["local/x", "local/a", "acme/tool"]))
    def put_unknown(self, name: str) -> None:
        """A folder lies where installs do, and nobody knows from where it came."""
        if not (self.skills / name).exists():
            (self.skills / name).mkdir(parents=True)
            (self.skills / name / "own.md").write_text("own", encoding="utf-8")

    @rule(which=st.integers(0, 9))
    def delete_link(self, which: int) -> None:
        if found := sorted((self.project / ".agents" / "skills").glob("*")):
            found[which % len(found)].unlink()

    @rule()
    def delete_everything_installed(self) -> None:
        shutil.rmtree(self.project / ".prowess", ignore_errors=True)

    # -- what brings them together -----------------------------------------------------------------------------------

    def remember_lock(self) -> None:
        if self.lock.exists():
            self.locks.append(self.lock.read_text(encoding="utf-8"))

    @rule()
    def sync(self) -> None:
        """A sync that may not remove: it deletes no install, and fails only where something unknown is in the way."""
        before = self.installs()
        with suppress(prowess.AlreadyInstalledError):
            self.installer.sync()
        given_up = {path for path in before if not path.exists()}
        assert {path.name for path in given_up} <= {"x", "y", "a", "b", "c"}
        for skill in (skill for path in given_up for skill in HELD.get(path.name, (path.name,))):
            assert os.path.lexists(self.project / ".agents" / "skills" / skill), "a skill is replaced, never removed"
        self.remember_lock()

    @rule()
    def sync_and_remove(self) -> None:
        """A sync that may remove: the three agree after it, and a second one has nothing to do."""
        self.installer.sync(remove=True)
        self.remember_lock()
        assert self.installer.verify() == ()
        assert (self.installer.difference(remove=True), self.installer.issues) == ((), ())
        assert (self.installer.sync(locked=True), self.installer.issues) == ((), ())
        assert (self.installer.sync(), self.installer.issues) == ((), ())
        locked = read_lock(str(self.project))
        wanted = {skill: entry[0] for entry in self.entries for skill in skills_of(entry)}
        assert {skill for entry in locked.values() for skill in entry.skills} == wanted.keys()
        links = sorted((self.project / ".agents" / "skills").glob("*"))
        assert [link.name for link in links] == sorted(wanted)
        for link in links:
            assert f"From {wanted[link.name]}." in (link / "SKILL.md").read_text(encoding="utf-8")
        linked = {skill for entry in self.entries if entry[2] for skill in skills_of(entry)}
        claude = {link.name for link in (self.project / ".claude" / "skills").glob("*")}
        assert linked <= claude
        # An entry without agents is linked for those that are on this machine when it is installed.
        assert claude - linked <= {skill for entry in self.entries if not entry[2] for skill in skills_of(entry)}
        assert [path.relative_to(self.skills).as_posix() for path in self.installs()] == sorted(locked)


def shown(entry: Entry) -> str:
    """An entry as people write it."""
    source, skills, agents = entry
    address = f'"../{source}"'
    if not skills and not agents:
        return address
    rows = [f"source = {address}"]
    rows += [f"skills = {json.dumps(skills)}"] if skills else []
    rows += [f"agents = {json.dumps(agents)}"] if agents else []
    return f"{{ {', '.join(rows)} }}"


@pytest.fixture
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.mark.usefixtures("_own_home")
def test_a_sync_that_may_remove_makes_manifest_lock_file_and_disk_agree_whatever_happened_to_them(
    *, full: bool
) -> None:
    examples, steps = FULL if full else ORDINARY
    run_state_machine_as_test(
        Project, settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    )
