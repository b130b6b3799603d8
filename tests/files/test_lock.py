"""One process at a time holds the lock of a folder, and those who wait in vain learn who holds it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from prowess import BusyError, NotTrustedError
from prowess.files.lock import lock_folder
from prowess.files.owned_json import OwnedJson

if TYPE_CHECKING:
    from pathlib import Path

HOLD = """
import sys
from prowess.files.lock import lock_folder
with lock_folder(sys.argv[1], seconds=5):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def locking_process(tmp_path: Path) -> subprocess.Popen[str]:
    """A process that holds the lock of the folder until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


@pytest.mark.needs_posix
def test_a_folder_is_locked_once_at_a_time_and_nothing_is_left_in_it(tmp_path: Path) -> None:
    with lock_folder(str(tmp_path), seconds=1):
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(BusyError), lock_folder(str(tmp_path), seconds=0):
            pass
    with lock_folder(str(tmp_path), seconds=0):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.needs_posix
def test_the_error_names_the_process_that_holds_the_lock(
    tmp_path: Path, locking_process: subprocess.Popen[str]
) -> None:
    holder = tmp_path / "holder"
    try:
        for text, name in (
            ("process 7 on x", "process 7 on x"),
            ("\x1b[2J", "another process"),
            ("", "another process"),
        ):
            holder.write_text(text, encoding="utf-8")
            with pytest.raises(BusyError) as caught, lock_folder(str(tmp_path), seconds=0.05, holder=str(holder)):
                pass
            assert caught.value.message.startswith(name)
            assert caught.value.path == str(tmp_path)
    finally:
        kill(locking_process)


def test_a_killed_process_no_longer_holds_the_lock(tmp_path: Path, locking_process: subprocess.Popen[str]) -> None:
    kill(locking_process)
    with lock_folder(str(tmp_path), seconds=5):
        pass


def test_locking_a_folder_that_is_not_there_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), lock_folder(str(tmp_path / "x"), seconds=0):
        pass


@pytest.mark.needs_posix
def test_a_json_file_is_not_changed_while_another_process_holds_the_lock_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prowess.files.owned_json._MAX_LOCK_SECONDS", 0)
    file = OwnedJson(str(tmp_path / "grants.json"), "grants", "trust-store")
    with lock_folder(str(tmp_path), seconds=0), pytest.raises(NotTrustedError, match="another process is changing"):
        file.update(dict)
    assert list(tmp_path.iterdir()) == []
    file.update(lambda: {"version": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["grants.json"], "no lock file is left behind"
