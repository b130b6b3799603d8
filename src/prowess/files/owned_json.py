"""A small JSON file of the user's that decides what is trusted, such as the grants of scripts.

The file is read only while nobody else could have written it. One process at a time changes it.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, TypeVar

from prowess.errors import BusyError, NotTrustedError, ResourceError, ResourceNotFoundError
from prowess.files.lock import lock_folder
from prowess.files.paths import is_owned_alone
from prowess.files.read import OpenFile
from prowess.files.write import make_folders, write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_MAX_BYTES = 16 << 20
_MAX_LOCK_SECONDS = 10  # a change takes milliseconds: whoever waits longer waits for a process that hangs


class OwnedJson:
    """A JSON file of this user, changed by one process at a time and never half written.

    ``what`` names its content in messages, such as ``grants``; ``code`` is the code of its errors.
    """

    def __init__(self, path: str, what: str, code: str) -> None:
        self.path = path
        self._what = what
        self._code = code

    def read(self, parse: Callable[[object], T]) -> T | None:
        """Return what ``parse`` makes of the JSON in the file, or ``None`` without a file.

        Raises ``NotTrustedError`` when the file belongs to somebody else, others may write to it, it cannot be read, or
        ``parse`` raises ``ValueError``, ``TypeError``, ``KeyError`` or ``AttributeError``.
        """
        folder, name = os.path.split(self.path)
        try:
            with OpenFile(folder, (name,)) as file:
                # Of the open file, since another one may be swapped in at its path.
                if not is_owned_alone(file.info):
                    raise self._error(
                        f"the file with the {self._what} belongs to somebody else, or others may write to it"
                    )
                return parse(json.loads(file.read_all(_MAX_BYTES)))
        except ResourceNotFoundError:
            return None
        except ResourceError as error:
            raise self._error(f"cannot read the {self._what}: {error.message}") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise self._error(f"the file with the {self._what} is damaged") from None

    def update(self, new_content: Callable[[], object]) -> None:
        """Write what ``new_content`` returns; it is called, and may read the file, while no other process changes it.

        Raises ``NotTrustedError`` when the file cannot be written, or when another process changes a file in its folder
        for more than ten seconds.
        """
        folder = os.path.dirname(self.path)
        try:
            make_folders(folder, 0o700)
            with lock_folder(folder, seconds=_MAX_LOCK_SECONDS):
                write_atomic(self.path, json.dumps(new_content(), indent=2).encode() + b"\n")
        except BusyError:
            raise self._error(f"another process is changing the {self._what}") from None
        except OSError as error:
            raise self._error(f"cannot write the {self._what}: {error.strerror}") from None

    def _error(self, message: str) -> NotTrustedError:
        return NotTrustedError(message, self.path, self._code)
