"""The sandbox ``landlock`` on older kernels: it names what they cannot prevent, and the rest works."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from prowess.conversation.acting.sandbox import Jail
from prowess.conversation.acting.sandbox.landlock import describe_version, landlock_command
from prowess.conversation.acting.supervised import ProcessLimits, make_environment, run_under_supervisor
from tests.conversation.conftest import require_sandbox

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("version", "count", "automatic", "newest_gap"),
    [
        (1, 5, False, "signals"),
        (2, 4, False, "signals"),
        (3, 3, True, "signals"),
        (4, 2, True, "signals"),
        (5, 1, True, "signals"),
        (6, 0, True, ""),
        (99, 0, True, ""),
    ],
)
def test_what_an_older_version_lacks_is_said_and_the_oldest_are_not_taken_by_auto(
    version: int, count: int, automatic: bool, newest_gap: str
) -> None:
    found = describe_version(version)
    assert (found.usable, found.automatic, len(found.gaps)) == (True, automatic, count)
    assert newest_gap in "".join(found.gaps[-1:])


PROBE = """
import os, sys
outside, inside = sys.argv[1:]
def may(action):
    try:
        action()
    except OSError:
        return False
    return True
print([may(lambda: open(outside).read()), may(lambda: open(outside, "a")), may(lambda: open(inside, "w").write("x"))])
"""


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6, None])
def test_with_no_more_than_a_version_of_landlock_has_files_are_closed(tmp_path: Path, version: int | None) -> None:
    """The kernel of this machine, asked for what that version knows."""
    require_sandbox("landlock")
    for name in ("skill", "work", "tmp", "shm"):
        (tmp_path / name).mkdir()
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    argv = [sys.executable, "-c", PROBE, str(secret), str(tmp_path / "work" / "x")]
    skill, work, temporary, memory = (str(tmp_path / name) for name in ("skill", "work", "tmp", "shm"))
    jail = Jail(skill, work, temporary, memory, needs=(sys.prefix, sys.base_prefix))
    confined = landlock_command(argv, jail, version=version)
    finished = run_under_supervisor(confined, ProcessLimits(20, 4096), cwd=work, env=make_environment())
    assert (finished.stdout, finished.stderr) == (b"[False, False, True]\n", b"")
