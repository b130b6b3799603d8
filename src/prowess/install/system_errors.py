"""What the system refuses, as errors that say so."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prowess.errors import InstallError, SkillError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def wrap_os_errors() -> Iterator[None]:
    """Turn every ``OSError`` inside into an ``InstallError`` that names the path."""
    try:
        yield
    except OSError as error:
        if isinstance(error, SkillError):
            raise
        where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
        raise InstallError(f"cannot go on: {error.strerror or error}", where, "write-failed") from error
