"""What the tests of the file system share: a folder with every kind of entry, and a disk that is waited for."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def disk_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every ``fsync`` be that of the system, which the ordinary run skips elsewhere."""
    monkeypatch.setattr(os, "fsync", importlib.import_module(os.name).fsync)


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A folder with two of each kind, made in no order."""
    for name in ("zf", "af"):
        (tmp_path / name).write_bytes(name.encode())
    for name in ("zd", "ad"):
        (tmp_path / name).mkdir()
    (tmp_path / "zl").symlink_to("af")
    (tmp_path / "al").symlink_to("ad")
    os.mkfifo(tmp_path / "zp")
    os.mkfifo(tmp_path / "ap")
    return tmp_path
