"""A folder for a while: for its owner alone, and gone afterwards, whatever happens meanwhile."""

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


@contextmanager
def temporary_folder(prefix: str = "prowess-", parent: str | None = None) -> Iterator[str]:
    """A new folder with a name that cannot be guessed; at the end it is deleted, as far as the system allows.

    It may be renamed meanwhile: then it stays.
    """
    where = os.path.join(os.path.abspath(parent or tempfile.gettempdir()), prefix + secrets.token_hex(8))
    ours = True
    try:
        try:
            syscalls.make_folder(where, 0o700)
        except FileExistsError:
            ours = False
            raise
        yield where
    finally:
        if ours:
            _delete_folder(where)


def _delete_folder(where: str) -> None:
    """Also when somebody is in a hurry: an interrupt waits until the folder is gone."""
    with suppress(OSError):
        try:
            delete_tree(where)
        except KeyboardInterrupt:
            delete_tree(where)
            raise
