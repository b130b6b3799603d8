"""Errors of the operating system, turned into errors of Prowess that name the path."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prowess.errors import InstallError, SkillError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def wrap_os_errors() -> Iterator[None]:
    """Raise ``InstallError`` (``write-failed``) with the path instead of an ``OSError`` in the block."""
    try:
        yield
    except OSError as error:
        if isinstance(error, SkillError):  # some errors of Prowess are an OSError too, and say more
            raise
        path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
        raise InstallError(f"cannot go on: {error.strerror or error}", path, "write-failed") from error
