"""What the tests of the file system share: they wait for the disk, as programs do."""

from __future__ import annotations

import importlib
import os

import pytest


@pytest.fixture(autouse=True)
def disk_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every ``fsync`` be that of the system, which the ordinary run skips elsewhere."""
    monkeypatch.setattr(os, "fsync", importlib.import_module(os.name).fsync)
