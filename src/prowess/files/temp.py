"""A temporary folder that only its owner may enter, and that is deleted at the end whatever happens meanwhile."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from prowess.files import syscalls
from prowess.files.delete import delete_tree

if TYPE_CHECKING:
    from collections.abc import Iterator


def make_temporary_folder(prefix: str = "prowess-", parent: str | None = None) -> str:
    """Create a folder with a name that cannot be guessed; return its path. The caller deletes it."""
    path = os.path.join(os.path.abspath(parent or tempfile.gettempdir()), prefix + secrets.token_hex(8))
    syscalls.make_folder(path, 0o700)
    return path


@contextmanager
def temporary_folder(prefix: str = "prowess-", parent: str | None = None) -> Iterator[str]:
    """Create a folder with a name that cannot be guessed, and delete it at the end as far as the system allows.

    A caller who wants to keep the folder renames it meanwhile.
    """
    path = os.path.join(os.path.abspath(parent or tempfile.gettempdir()), prefix + secrets.token_hex(8))
    # The folder counts as ours before it is made: an interrupt right after the call must not leave it behind.
    is_ours = True
    try:
        try:
            syscalls.make_folder(path, 0o700)
        except FileExistsError:
            is_ours = False
            raise
        yield path
    finally:
        if is_ours:
            with suppress(OSError):
                try:
                    delete_tree(path)
                except KeyboardInterrupt:  # raised only after the folder is gone
                    delete_tree(path)
                    raise
