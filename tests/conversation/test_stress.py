"""Many threads on one session: no deadlock, and every rule holds during and after."""

import random
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import prowess
from prowess import Session

Put = Callable[..., Path]

THREADS = 32
PATIENCE = 120.0  # seconds that one round may take before it counts as a deadlock
MAX_ACTIVE = 4
PRELOADED = ("s0", "s1")
NAMES = tuple(f"s{n}" for n in range(12))
FILTERS = ("", "", "none", "skills/even/*", "skills/odd", "skills/**")
EXPECTED = (
    prowess.UnknownSkillError,
    prowess.SkillFilteredError,
    prowess.MaxActiveError,
    prowess.SkillNotActiveError,
)


def half(name: str) -> str:
    return "odd" if int(name[1:]) % 2 else "even"


def passes(pattern: str, name: str) -> bool:
    return pattern in {"", "skills/**"} or (pattern != "none" and f"/{half(name)}" in pattern)


@pytest.fixture
def catalogs(put: Put, tmp_path: Path) -> list[prowess.Catalog]:
    """Every skill; every skill with another text and other tools; half of them."""

    def loaded(version: str, names: tuple[str, ...]) -> prowess.Catalog:
        root = tmp_path / "skills" / version
        sources = [prowess.Source.directory(root, mount_as="skills")]
        kept = [root / half(name) / name for name in PRELOADED if name in names]
        return prowess.Catalog.from_sources([*sources, *(prowess.Source.directory(k, preload=True) for k in kept)])

    for version, shared_tool in (("first", "Read"), ("second", "Edit")):
        for name in NAMES:
            put(
                f"{version}/{half(name)}/{name}", tools=f"{shared_tool} Tool-{name}-{version}", body=f"{version} {name}"
            )
    for name in NAMES[::3]:
        put(f"third/{half(name)}/{name}", tools="Grep", body=f"third {name}")
    return [loaded("first", NAMES), loaded("second", NAMES), loaded("third", NAMES[::3])]


@pytest.fixture
def eager() -> Iterator[None]:
    """Threads take turns far more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Crowd:
    """Threads that call one session at random, in rounds, between which all of them rest."""

    def __init__(self, session: Session, catalogs: list[prowess.Catalog], seed: int, calls: int, rounds: int) -> None:
        self.session = session
        self.catalogs = catalogs
        self.seed = seed
        self.calls = calls
        self.rounds = rounds
        self.rest = threading.Barrier(THREADS + 1, timeout=PATIENCE)
        self.errors: list[BaseException] = []

    def call(self, rng: random.Random) -> None:
        session, name = self.session, rng.choice(NAMES)
        kind = rng.choices(range(7), weights=(40, 20, 5, 12, 5, 10, 8))[0]
        if kind == 0:
            found = session.activate(name)
            assert found.instructions in {f"{version} {name}" for version in ("first", "second", "third")}
        elif kind == 1:
            session.deactivate(name)
        elif kind == 2:
            assert set(session.set_filter(rng.choice(FILTERS))) <= set(NAMES)
        elif kind == 3:
            rows = session.index().split("\n")
            assert rows[0] in {"Available skills:", "No skills available."}
        elif kind == 4:
            report = session.refresh(rng.choice(self.catalogs))
            assert not set(report.added) & set(report.removed)
        elif kind == 5:
            assert len(session.active_skills) <= MAX_ACTIVE + len(PRELOADED)
            tools = session.active_tools
            assert tools == tuple(sorted(set(tools)))
        else:
            with prowess.skill_filter("skills/even/*"):
                assert all(half(active) == "even" for active in session.active_skills)

    def work(self, number: int) -> None:
        rng = random.Random(f"{self.seed} {number}")
        try:
            for _ in range(self.rounds):
                self.rest.wait()
                for _ in range(self.calls // self.rounds):
                    try:
                        self.call(rng)
                    except EXPECTED:
                        continue
                self.rest.wait()
        except threading.BrokenBarrierError:
            return
        except BaseException as error:  # noqa: BLE001 - told by the test, in its own thread
            self.errors.append(error)
            self.rest.abort()

    def run(self, check: Callable[[], None]) -> None:
        threads = [threading.Thread(target=self.work, args=(n,), daemon=True) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(self.rounds):
                self.rest.wait()
                self.rest.wait()
                check()
        except threading.BrokenBarrierError:
            if not self.errors:
                pytest.fail(f"the threads did not end within {PATIENCE:.0f} s: a deadlock")
        finally:
            self.rest.abort()
        for error in self.errors:
            raise error


def test_the_rules_hold_while_many_threads_call_one_session(
    catalogs: list[prowess.Catalog], seed: int, full: bool, eager: None
) -> None:
    """32 threads; 1,000 calls each in the whole run, 100 otherwise."""
    assert eager is None
    session = Session(catalogs[0], max_active=MAX_ACTIVE)

    def check() -> None:
        pattern = session.filter
        active = session.active_skills
        assert len(active) <= MAX_ACTIVE + len(PRELOADED)
        assert all(passes(pattern, name) for name in active), "the filter lets every active skill through"
        brought: set[str] = set()
        for name in active:
            again = session.activate(name)  # known, or vanished and still usable
            assert (name in session.catalog) or "no longer exists" in again.note
            brought.update(again.added_tools)
        assert session.active_skills == active
        assert session.active_tools == tuple(sorted(brought)), "the tools are those of the active skills, and no others"
        session.set_filter("")
        assert session.active_skills == active, "what a filter ended stays ended"
        session.set_filter(pattern)

    calls = 1_000 if full else 100
    Crowd(session, catalogs, seed, calls, rounds=calls // 10).run(check)


def test_nothing_is_left_when_every_thread_has_ended_what_it_began(
    catalogs: list[prowess.Catalog], eager: None
) -> None:
    """Each thread has a skill of its own, so every call must succeed whatever the others do."""
    assert eager is None
    session = Session(catalogs[0], tools="any")
    for name in PRELOADED:
        session.deactivate(name)
    errors: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for _ in range(50):
                assert session.activate(name).instructions == f"first {name}"
                assert name in session.active_skills
                assert f"Tool-{name}-first" in session.active_tools
                assert f"Tool-{name}-first" in session.deactivate(name)
        except BaseException as error:  # noqa: BLE001 - told below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in NAMES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    assert errors == []
    assert (session.active_skills, session.active_tools) == ((), ())


def activate_at_once(session: Session, name: str, start: threading.Barrier, refused: list[str]) -> None:
    start.wait()
    try:
        session.activate(name)
    except prowess.MaxActiveError:
        refused.append(name)


def test_the_limit_is_never_passed_by_activations_at_the_same_moment(
    catalogs: list[prowess.Catalog], eager: None
) -> None:
    assert eager is None
    for _ in range(20):
        session = Session(catalogs[0], max_active=3)
        start = threading.Barrier(len(NAMES), timeout=PATIENCE)
        refused: list[str] = []

        threads = [
            threading.Thread(target=activate_at_once, args=(session, name, start, refused), daemon=True)
            for name in NAMES
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert len(session.active_skills) == 3 + len(PRELOADED)
        assert {*session.active_skills, *refused} == set(NAMES)
