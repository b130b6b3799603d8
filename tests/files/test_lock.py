"""One process at a time in a folder, and what those who wait are told."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from prowess import BusyError
from prowess.files.lock import lock_folder

if TYPE_CHECKING:
    from pathlib import Path

HOLD = """
import sys
from prowess.files.lock import lock_folder
with lock_folder(sys.argv[1], seconds=5, holder=""):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path: Path) -> subprocess.Popen[str]:
    """A process that holds the folder until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_a_folder_is_held_once_and_nothing_is_left_in_it(tmp_path: Path) -> None:
    with lock_folder(str(tmp_path), seconds=1, holder=""):
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(BusyError), lock_folder(str(tmp_path), seconds=0, holder=""):
            pass
    with lock_folder(str(tmp_path), seconds=0, holder=""):
        pass
    assert list(tmp_path.iterdir()) == []


def test_those_who_wait_are_told_for_whom(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    holder = tmp_path / "holder"
    try:
        for text, said in (
            ("process 7 on x", "process 7 on x"),
            ("\x1b[2J", "another process"),
            ("", "another process"),
        ):
            holder.write_text(text, encoding="utf-8")
            with pytest.raises(BusyError) as caught, lock_folder(str(tmp_path), seconds=0.05, holder=str(holder)):
                pass
            assert caught.value.message.startswith(said)
            assert caught.value.path == str(tmp_path)
    finally:
        end(other)


def test_a_killed_process_holds_nothing(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    end(other)
    with lock_folder(str(tmp_path), seconds=5, holder=""):
        pass


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), lock_folder(str(tmp_path / "x"), seconds=0, holder=""):
        pass
