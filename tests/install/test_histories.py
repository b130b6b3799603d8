"""Random histories of two developers: no edit is lost, no pristine tree kept, nothing unrecorded offered."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import prowess
from tests.cli_processes import run_command
from tests.install.teams import Developer, Team
from tests.repositories import ENV

if TYPE_CHECKING:
    import random

SKILLS = ("alpha", "beta", "gamma")
DEVELOPERS = st.sampled_from(("ada", "ben"))


class History(RuleBasedStateMachine):
    """What two people do with one project, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.base = Path(tempfile.mkdtemp(prefix="history-"))
        self.team = Team(self.base, *SKILLS)
        self.team.install(self.team.ada, *SKILLS[:2])
        self.team.ben.pull()
        self.edits: dict[str, list[str]] = {"ada": [], "ben": []}
        self.count = 0
        self.cache: Path | None = None

    def teardown(self) -> None:
        shutil.rmtree(self.base)

    def developer(self, name: str) -> Developer:
        return self.team.ada if name == "ada" else self.team.ben

    def holds_edit(self, name: str, folder: Path) -> bool:
        text = "".join(file.read_text(encoding="utf-8") for file in folder.rglob("*.md"))
        return any(mark in text for mark in self.edits[name])

    def number(self) -> int:
        self.count += 1
        return self.count

    # -- what people do ----------------------------------------------------------------------------------------------

    @rule(name=DEVELOPERS, skill=st.sampled_from(SKILLS), shares=st.booleans())
    def install(self, name: str, skill: str, shares: bool) -> None:
        with self.developer(name).working() as installer, suppress(prowess.AlreadyInstalledError):
            installer.install(self.team.source.address, project=True, select=skill)
        self.share(name, goes_on=shares)

    @rule(name=DEVELOPERS, skill=st.sampled_from(SKILLS), shares=st.booleans())
    def update(self, name: str, skill: str, shares: bool) -> None:
        """A new version of one skill is out, and somebody updates to it."""
        self.team.release(skill, self.number())
        with self.developer(name).working() as installer:
            installer.update()
        self.share(name, goes_on=shares)

    @rule(name=DEVELOPERS, skill=st.sampled_from(SKILLS), shares=st.booleans())
    def remove(self, name: str, skill: str, shares: bool) -> None:
        with self.developer(name).working() as installer, suppress(prowess.NotInstalledError):
            installer.remove(f"@local/{skill}")
        self.share(name, goes_on=shares)

    @rule(name=DEVELOPERS, skill=st.sampled_from(SKILLS))
    def edit(self, name: str, skill: str) -> None:
        file = self.developer(name).installed_file(skill)
        if file.exists() and skill in self.developer(name).recorded():
            mark = f"edit-{self.number()}-of-{name}"
            with file.open("a", encoding="utf-8") as opened:
                opened.write(f"{mark}\n")
            self.edits[name].append(mark)

    @rule(name=DEVELOPERS, pulls=st.booleans(), locked=st.booleans())
    def sync(self, name: str, pulls: bool, locked: bool) -> None:
        developer = self.developer(name)
        self.share(name, goes_on=pulls)
        with developer.working() as installer:
            refused = ""
            try:
                installer.sync(locked=locked)
            except prowess.LockMismatchError as error:
                refused = error.path
            if refused:
                assert self.holds_edit(name, Path(refused)), f"{refused} holds no edit that could be a reason"
            else:
                assert not [issue for issue in installer.verify() if issue.code != "not-in-lock"]

    def share(self, name: str, *, goes_on: bool) -> None:
        """Commit, merge what the other one pushed, and push the result."""
        developer = self.developer(name)
        if not goes_on or developer.git("branch", "--show-current") != "main":
            return
        developer.git("add", "--all")
        developer.git("commit", "--quiet", "--allow-empty", "--message", "work")
        self.merge(developer, "pull", "--no-rebase", "--no-edit")
        developer.git("push", "--quiet", "origin", "main")

    @rule(name=DEVELOPERS)
    def switch(self, name: str) -> None:
        """Go to another branch, or come back and merge it."""
        developer = self.developer(name)
        developer.git("add", "--all")
        developer.git("commit", "--quiet", "--allow-empty", "--message", "work")
        if developer.git("branch", "--show-current") == "main":
            developer.git("switch", "--quiet", "--force-create", f"side-{name}", "HEAD~1")
        else:
            developer.git("switch", "--quiet", "main")
            self.merge(developer, "merge", "--no-edit", f"side-{name}")

    def merge(self, developer: Developer, *command: str) -> None:
        try:
            developer.git(command[0], "--quiet", *command[1:])
        except AssertionError:
            self.resolve(developer)

    def resolve(self, developer: Developer) -> None:
        """Take our side of every conflict, of the lock file by its own command."""
        unmerged = developer.git("diff", "--name-only", "--diff-filter=U").split()
        assert unmerged, "git merges, or reports a conflict"
        if "prowess.lock" in unmerged:
            with developer.working():
                ran = run_command(["lock", "--merge", "--take", "mine"], env=ENV)
            assert ran.returncode == 0, ran.stderr
        for file in unmerged:
            if file != "prowess.lock":
                with suppress(AssertionError):  # our side has removed it
                    developer.git("checkout", "--quiet", "--ours", "--", file)
        developer.git("add", "--all")
        developer.git("commit", "--quiet", "--message", "merge")

    @rule()
    def run_ci(self) -> None:
        """A job with the cache of the job before it: it installs what the lock file records."""
        job = Developer(self.base, f"job-{self.number()}", self.team.hub)
        if self.cache is not None:
            shutil.copytree(self.cache, job.base.parent, symlinks=True)
        with job.working() as installer:
            installer.sync(locked=True)
            assert installer.verify() == ()
        assert job.backups() == []
        if job.base.parent.exists():
            self.cache = job.base.parent

    @rule(name=DEVELOPERS)
    def look_at_an_old_commit_offline(self, name: str) -> None:
        developer = self.developer(name)
        developer.git("add", "--all")
        developer.git("commit", "--quiet", "--allow-empty", "--message", "work")
        branch = developer.git("branch", "--show-current")
        developer.git("switch", "--quiet", "--detach", "HEAD~1")
        self.team.source.path.rename(self.base / "offline")
        with developer.working() as installer, suppress(prowess.GitError, prowess.LockMismatchError):
            installer.sync(locked=True)
        (self.base / "offline").rename(self.team.source.path)
        developer.git("switch", "--quiet", "--force", branch)

    # -- what always holds -------------------------------------------------------------------------------------------

    @invariant()
    def no_edit_is_lost(self) -> None:
        for name, marks in self.edits.items():
            kept = "".join(
                file.read_text(encoding="utf-8")
                for file in self.developer(name).base.rglob("*.md")
                if ".store" not in file.parts
            )
            for mark in marks:
                assert mark in kept

    @invariant()
    def no_pristine_tree_is_kept(self) -> None:
        for name in self.edits:
            for backup in self.developer(name).backups():
                assert self.holds_edit(name, backup), f"{backup} holds no edit"

    @invariant()
    def nothing_unrecorded_is_offered(self) -> None:
        for developer in (self.team.ada, self.team.ben):
            with suppress(prowess.InstallError):
                assert set(developer.offered()) <= developer.recorded()


@pytest.mark.parametrize("_number", range(3))
def test_random_histories_lose_no_edit_and_offer_nothing_unrecorded(
    _number: int, full: bool, rng: random.Random
) -> None:
    examples, steps = (25, 40) if full else (1, 5)
    run_state_machine_as_test(
        hypothesis.seed(rng.getrandbits(64))(History),  # the seed of the run alone would draw the same three times
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=(Phase.generate,),  # to shrink a history of real repositories takes longer than to read it
            suppress_health_check=list(HealthCheck),
        ),
    )
