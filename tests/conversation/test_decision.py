"""What an activation does in each state of a skill: refusals come first, and what is active stays while it may."""

import shutil
import threading
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

import prowess
from prowess import Session

Put = Callable[..., Path]
Scanned = Callable[..., prowess.Catalog]
ALREADY, CHANGED, GONE = "it was active already", "it has changed since", "the skill no longer exists"


def in_state(state: str, put: Put, scanned: Scanned) -> Session:
    """Return a session in which the skill ``a`` is in this state, and one more skill may be active."""
    path = put("a", body="first")
    put("b")
    session = Session(scanned(), max_active=2)
    if state != "inactive":
        session.activate("a", run=state != "unrun")
    if state == "stale":
        put("a", body="second, and longer")
    if state == "gone":
        shutil.rmtree(path.parent)
    session.refresh(scanned())
    return session


STATES = ("inactive", "active", "stale", "gone")


@pytest.mark.parametrize(
    ("state", "text", "note"),
    [
        ("inactive", "first", ""),
        ("active", "first", ALREADY),
        ("stale", "second, and longer", CHANGED),
        ("gone", "first", GONE),
    ],
)
@pytest.mark.parametrize("run", [True, False])
def test_each_state_has_one_outcome(  # noqa: PLR0917 - fixtures
    state: str, text: str, note: str, run: bool, put: Put, scanned: Scanned
) -> None:
    activation = in_state(state, put, scanned).activate("a", run=run)
    assert (activation.instructions, activation.note.startswith(note)) == (text, True)
    assert bool(activation.note) == bool(note)


def test_commands_that_were_left_unrun_matter_only_to_a_call_that_runs_them(put: Put, scanned: Scanned) -> None:
    put("a", body="Now: !`date`")
    session = Session(scanned())
    assert session.activate("a", run=False).note == ""
    assert session.activate("a", run=False).note == ALREADY
    assert session.activate("a").note == ""  # read anew, for its commands
    assert session.activate("a").note == ALREADY


@pytest.mark.parametrize("state", STATES)
def test_what_a_filter_hides_is_refused_in_every_state(state: str, put: Put, scanned: Scanned) -> None:
    session = in_state(state, put, scanned)
    for run, is_full in product((False, True), repeat=2):
        if is_full:
            session.activate("b")
        with pytest.raises(prowess.SkillFilteredError):
            session.activate("a", "skills/b", run=run)


@pytest.mark.parametrize("state", STATES)
def test_the_limit_refuses_only_what_is_not_active(state: str, put: Put, scanned: Scanned) -> None:
    session = in_state(state, put, scanned)
    put("c")
    session.refresh(scanned())
    for name in ("b", "c") if state == "inactive" else ("b",):
        session.activate(name)
    if state == "inactive":
        with pytest.raises(prowess.MaxActiveError):
            session.activate("a")
    else:
        assert session.activate("a").skill.name == "a"


def test_two_activations_at_the_same_moment_get_the_text_of_the_first(put: Put, scanned: Scanned) -> None:
    path = put("a", body="0")
    session = Session(scanned())
    start, told = threading.Barrier(9), []

    def activate() -> None:
        start.wait()
        told.append(session.activate("a").instructions)

    threads = [threading.Thread(target=activate) for _ in range(8)]
    for thread in threads:
        thread.start()
    start.wait()
    for number in range(20):
        put("other", name="a", body=str(number) * (number + 1)).replace(path)
    for thread in threads:
        thread.join()
    assert set(told) == {session.activate("a").instructions}
