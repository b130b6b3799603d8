"""A temporary folder: only its owner may enter it, and it is deleted, also when the work in it is interrupted."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from prowess.files import syscalls
from prowess.files.delete import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def unwatched() -> Iterator[None]:
    """Whatever a test watches, nobody does afterwards."""
    yield
    syscalls.set_watcher(None)


@pytest.mark.needs_modes
def test_a_temporary_folder_belongs_to_its_owner_alone_and_is_deleted_with_its_content(tmp_path: Path) -> None:
    with temporary_folder("mine-", str(tmp_path)) as one, temporary_folder("mine-", str(tmp_path)) as other:
        assert one != other
        assert stat.S_IMODE(os.stat(one).st_mode) == 0o700  # noqa: PTH116
        Path(one, "sub").mkdir()
        Path(one, "sub", "file").write_bytes(b"x")
        assert sorted(tmp_path.iterdir()) == sorted([Path(one), Path(other)])
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_folder_that_was_renamed_stays(tmp_path: Path) -> None:
    with temporary_folder(parent=str(tmp_path)) as where:
        Path(where).rename(tmp_path / "kept")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.usefixtures("unwatched")
@pytest.mark.parametrize(("name", "moment"), [("mkdir", "after"), ("unlink", "before"), ("rmdir", "before")])
def test_an_interrupt_while_a_temporary_folder_is_made_or_deleted_leaves_nothing(
    tmp_path: Path, name: str, moment: str
) -> None:
    pressed: list[str] = []

    def press(call: str, when: str, path: str) -> None:
        if (call, when) == (name, moment) and not pressed:
            pressed.append(path)
            raise KeyboardInterrupt

    def work() -> None:
        with temporary_folder(parent=str(tmp_path)) as where:
            Path(where, "file").write_bytes(b"x")

    syscalls.set_watcher(press)
    with pytest.raises(KeyboardInterrupt):
        work()
    assert pressed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("unwatched")
def test_a_folder_that_existed_before_is_not_deleted(tmp_path: Path) -> None:
    def first(call: str, when: str, path: str) -> None:
        if (call, when) == ("mkdir", "before"):
            Path(path).mkdir()
            Path(path, "theirs").write_bytes(b"x")

    syscalls.set_watcher(first)
    with pytest.raises(FileExistsError), temporary_folder(parent=str(tmp_path)):
        pass
    assert [path.name for path in tmp_path.rglob("theirs")] == ["theirs"]
