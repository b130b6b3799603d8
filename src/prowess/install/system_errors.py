"""Errors of the operating system, turned into errors of Prowess that name the path."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prowess.errors import InstallError, SkillError
from prowess.files.paths import find_shut_folder

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def wrap_os_errors() -> Iterator[None]:
    """Raise ``InstallError`` with the path instead of an ``OSError`` in the block.

    Its code is ``not-writable`` where a folder belongs to somebody else, and else ``write-failed``.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, SkillError):  # some errors of Prowess are an OSError too, and say more
            raise
        # A rename names two paths.
        paths = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
        path = paths[0] if paths else ""
        is_denied = error.errno in {errno.EACCES, errno.EPERM}
        for folder, owner in filter(None, map(find_shut_folder, paths if is_denied else ())):
            message = f"you may not write to this folder, which belongs to {owner}"
            raise InstallError(message, folder, "not-writable") from error
        raise InstallError(f"cannot go on: {error.strerror or error}", path, "write-failed") from error
