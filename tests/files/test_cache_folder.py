"""The cache folder: the variable that names it, the user's own, and which folders are private."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from prowess.files.projects import default_cache_dir, is_private_folder

if TYPE_CHECKING:
    from pathlib import Path


def test_the_variable_names_the_folder(tmp_path: Path) -> None:
    assert default_cache_dir({"PROWESS_CACHE_DIR": str(tmp_path / "a" / ".." / "b")}) == str(tmp_path / "b")


@pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: other systems have other folders")
def test_the_folder_is_below_the_cache_folder_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere/someone")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_cache_dir({}) == "/somewhere/someone/.cache/prowess/skills"
    monkeypatch.setenv("XDG_CACHE_HOME", "/x/cache")
    assert default_cache_dir({}) == "/x/cache/prowess/skills"


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o500])
def test_a_folder_that_only_its_owner_may_change_is_private(tmp_path: Path, mode: int) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x").chmod(mode)
    assert is_private_folder(str(tmp_path / "x"))


@pytest.mark.needs_modes
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_change_is_not_private(tmp_path: Path, mode: int) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x").chmod(mode)
    assert not is_private_folder(str(tmp_path / "x"))


def test_neither_a_file_nor_nothing_is_a_private_folder(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    assert not is_private_folder(str(tmp_path / "x"))
    assert not is_private_folder(str(tmp_path / "y"))
    assert not is_private_folder(os.devnull)
