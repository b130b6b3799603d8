"""Install, update and remove happen completely or not at all, whenever the process dies and whichever call fails."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.fork_server import fork_server_for

if TYPE_CHECKING:
    import random

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that die on their own")

OPERATIONS = ("install", "update", "remove")
ERRORS = ("ENOSPC", "EIO", "EACCES", "EROFS", "EMFILE")
SAMPLE = 7
KILLS = (30, 300)


def ask(folder: Path, request: list[list[Any]]) -> list[Any]:
    """What the program of the matrix answers to each part of a request."""
    done = fork_server_for(Path(__file__).parent / "dying.py").run(str(folder), request, seconds=600)
    assert done.returncode == 0, done.stderr
    answer: list[Any] = json.loads(done.stdout)
    return answer


def wrong(folder: Path, request: list[list[Any]]) -> dict[str, list[str]]:
    answers = zip(request, ask(folder, request), strict=True)
    return {json.dumps(part): answer for part, answer in answers if answer}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_change_is_made_by_calls_that_can_be_watched(tmp_path: Path, operation: str) -> None:
    (names,) = ask(tmp_path, [["points", operation]])
    assert {"rename", "fsync", "create", "write", "unlink"} <= {name for name, _ in names}
    assert len(names) > 15
    if operation == "update":
        assert ["exchange", True] in names or sys.platform != "linux"


def deaths(operation: str, names: list[tuple[str, bool]], *, full: bool) -> list[list[Any]]:
    """Before and after each call; else what leaves the disk in each of its states once.

    After a call it is as before the next one, and a process that dies loses nothing that is not on the disk yet.
    """
    if full:
        moments = {True: ("before", "after"), False: ("before",)}
        return [["die", operation, at, moment] for at, (_, done) in enumerate(names, 1) for moment in moments[done]]
    changes = [at for at, (name, done) in enumerate(names, 1) if done and name != "fsync"]
    return [*(["die", operation, at, "before"] for at in changes), ["die", operation, changes[-1], "after"]]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_process_that_dies_at_any_call_leaves_the_old_or_the_new(tmp_path: Path, operation: str, full: bool) -> None:
    """Case by case; then the next command recovers, and a further try succeeds."""
    (names,) = ask(tmp_path, [["points", operation]])
    assert wrong(tmp_path, deaths(operation, names, full=full)) == {}


def test_copies_too_are_the_old_or_the_new_when_a_process_dies(tmp_path: Path, rng: random.Random, full: bool) -> None:
    request: list[list[Any]] = []
    for operation in (f"copies: {name}" for name in OPERATIONS):
        (names,) = ask(tmp_path, [["points", operation]])
        request += deaths(operation, names, full=full)
    assert wrong(tmp_path, request if full else rng.sample(request, SAMPLE)) == {}


def test_skills_of_one_install_are_the_old_or_the_new_when_a_process_dies(
    tmp_path: Path, rng: random.Random, full: bool
) -> None:
    """An update that changes, adds and removes a skill of an install, and leaves the others where they are."""
    (names,) = ask(tmp_path, [["points", "parts: update"]])
    (paths,) = ask(tmp_path, [["moments", "parts: update"]])
    assert "three" not in {path for _, path in paths}
    request = deaths("parts: update", names, full=full)
    assert wrong(tmp_path, request if full else rng.sample(request, SAMPLE)) == {}


def test_a_process_that_is_killed_at_any_time_leaves_the_old_or_the_new(
    tmp_path: Path, full: bool, rng: random.Random
) -> None:
    request: list[list[Any]] = [["kill", rng.choice(OPERATIONS), rng.uniform(0.0005, 0.06)] for _ in range(KILLS[full])]
    assert wrong(tmp_path, request) == {}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_call_that_fails_is_a_typed_error_and_nothing_is_lost(
    tmp_path: Path, operation: str, full: bool, rng: random.Random
) -> None:
    """Each call in turn, alone or with all that follow, with each of the errors that disks give."""
    (names,) = ask(tmp_path, [["points", operation]])
    request: list[list[Any]] = [
        ["fail", operation, at, code, {"on": on}]
        for at in range(1, len(names) + 1)
        for code in ERRORS
        for on in (False, True)
    ]
    assert wrong(tmp_path, request if full else rng.sample(request, SAMPLE)) == {}


@pytest.mark.parametrize("command", ["sync", "update", "install", "recover", "remove", "adopt"])
def test_every_command_that_changes_something_first_finishes_what_was_interrupted(tmp_path: Path, command: str) -> None:
    """An update whose lock file was not written yet: the next command finds the new version, and so it is locked."""
    (answer,) = ask(tmp_path, [["next", command]])
    assert answer == []
