"""A file of JSON lines that belongs to one user and to one running process: lines are appended as things happen."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from prowess.agent.api_keys import hide_keys_in
from prowess.errors import BusyError, ResourceError, SourceError
from prowess.files import syscalls
from prowess.files.lock import lock_open_file
from prowess.files.paths import is_owned_alone
from prowess.files.read import OpenFile

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = 1
_MAX_BYTES = 1 << 30


class FileKind(NamedTuple):
    """What such a file is called in messages, and the code of an error about it."""

    name: str
    code: str


class JsonLines:
    """A file to which lines are appended, locked against other processes; a context manager."""

    def __init__(self, path: str, descriptor: int, kind: FileKind) -> None:
        self.path = path
        self._kind = kind
        self._descriptor = descriptor

    @classmethod
    def create(cls, path: str, kind: FileKind) -> Self:
        """Create a new file; raise ``FileExistsError`` where there is one, ``SourceError`` where none can be."""
        try:
            descriptor = syscalls.create_file(path, 0o600)
        except FileExistsError:
            raise
        except OSError as error:
            raise _unwritable_error(path, kind, error) from None
        lock_open_file(descriptor)  # nobody else can have it: the file is new
        return cls(path, descriptor, kind)

    @classmethod
    def reopen(cls, path: str, kind: FileKind) -> Self:
        """Open a file to go on in it; raise ``SourceError`` where there is none, ``BusyError`` while it is in use.

        Nothing is written yet: whoever goes on reads the file first, and then calls ``begin_line``.
        """
        try:
            descriptor = syscalls.open_to_append(path)
        except OSError as error:
            raise SourceError(f"cannot read the {kind.name}: {error.strerror}", path, kind.code) from None
        if not lock_open_file(descriptor):
            os.close(descriptor)
            raise BusyError(f"another run writes to this {kind.name}", path)
        return cls(path, descriptor, kind)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, and give up its lock."""
        os.close(self._descriptor)

    def begin_line(self) -> None:
        """Begin a new line: a crash may have cut the last one. Raises ``SourceError`` where it cannot be written."""
        self._write(b"\n")

    def write_line(self, data: dict[str, Any]) -> None:
        """Append one line without keys; raise ``SourceError`` where it cannot be written, as on a full disk."""
        # One call for one line: a reader never sees half of two lines, whatever ends this process.
        line = json.dumps({"version": VERSION, **hide_keys_in(data)}, ensure_ascii=True)
        self._write(line.encode() + b"\n")

    def _write(self, data: bytes) -> None:
        try:
            syscalls.write_all(self._descriptor, data, self.path)
        except OSError as error:
            raise _unwritable_error(self.path, self._kind, error) from None


def _unwritable_error(path: str, kind: FileKind, error: OSError) -> SourceError:
    return SourceError(f"cannot write the {kind.name}: {error.strerror}", path, "unwritable")


def read_json_lines(path: str, kind: FileKind) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file as mappings, without those that a crash has cut.

    Raises ``SourceError`` for a file that cannot be read, or that somebody else could have written.
    """
    folder, name = os.path.split(os.path.abspath(path))
    try:
        with OpenFile(folder, (name,)) as file:
            if not is_owned_alone(file.info):
                message = f"the {kind.name} belongs to somebody else, or others may write to it"
                raise SourceError(message, path, kind.code)
            text = file.read_all(_MAX_BYTES).decode("utf-8", "replace")
    except ResourceError as error:
        raise SourceError(f"cannot read the {kind.name}: {error.message}", path, kind.code) from None
    for line in text.splitlines():
        with suppress(ValueError, RecursionError):
            data = json.loads(line)
            if isinstance(data, dict) and data.get("version") == VERSION:
                yield data
