"""Places that keep the files of a published site: a folder, or a bucket of an object store.

Both write a file once, replace a file only while it is what was read, and so need no lock between publishers.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from prowess.errors import FetchError, MissingPackageError, ResourceError, ResourceNotFoundError
from prowess.files import syscalls
from prowess.files.lock import lock_folder
from prowess.files.read import OpenFile
from prowess.files.write import make_folders, write_atomic
from prowess.hints import explain_extra
from prowess.text.redaction import scrub_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_MAX_LOCK_SECONDS = 60
_PUBLIC_MODE = 0o644


class StoredFile(NamedTuple):
    """A file of a store: its bytes, and what the store calls this version of it."""

    data: bytes
    version: str


class SiteStore(Protocol):
    """Files by their paths. Every method raises ``FetchError`` when the store cannot be reached, or refuses."""

    address: str

    def read(self, path: str, max_bytes: int) -> StoredFile | None:
        """Return a file; ``None`` when there is none. Raises ``FetchError`` for one of more than ``max_bytes``."""
        ...

    def create(self, path: str, data: bytes) -> bool:
        """Write a file that does not exist; return ``False`` when it exists."""
        ...

    def replace(self, path: str, data: bytes, old: StoredFile | None) -> bool:
        """Replace a file while it is ``old`` (``None``: while there is none); return ``False`` when it is another."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Write a file in place of any other."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file, if there is one."""
        ...

    def list_files(self, most: int) -> dict[str, str]:
        """Return the paths of at most ``most`` files, each with its version, in byte order."""
        ...


def open_store(address: str, *, local: bool = False) -> SiteStore:
    """Return the store at an address: ``s3://``, ``gs://`` or ``az://``, or the path of a folder with ``local``.

    Raises ``MissingPackageError`` for an object store without the package that reads it.
    """
    return FolderStore(address) if local else ObjectStore(address)


class FolderStore:
    """A folder of this machine. One process at a time writes to it."""

    def __init__(self, path: str) -> None:
        self.address = os.path.abspath(path)

    def read(self, path: str, max_bytes: int) -> StoredFile | None:
        try:
            with OpenFile(self.address, tuple(path.split("/"))) as file:
                data = file.read_all(max_bytes)
        except ResourceNotFoundError:
            return None
        except ResourceError as error:
            raise FetchError(f"cannot read {path}: {error.message}", self._path_of(path), error.code) from None
        import hashlib

        return StoredFile(data, hashlib.sha256(data).hexdigest())

    def create(self, path: str, data: bytes) -> bool:
        return self.replace(path, data, None)

    def replace(self, path: str, data: bytes, old: StoredFile | None) -> bool:
        with self._locked():
            if old is None:
                if os.path.lexists(self._path_of(path)):
                    return False
            else:
                try:
                    now = self.read(path, len(old.data))
                except FetchError as error:
                    if error.code != "too-large":
                        raise
                    return False  # a longer one cannot be the one that was read
                if now is None or now.version != old.version:
                    return False
            self._write(path, data)
        return True

    def write(self, path: str, data: bytes) -> None:
        with self._locked():
            self._write(path, data)

    def delete(self, path: str) -> None:
        with self._locked():
            if os.path.lexists(self._path_of(path)):
                syscalls.delete_file(self._path_of(path))

    def list_files(self, most: int) -> dict[str, str]:
        found = []
        for folder, _, names in os.walk(self.address):
            below = os.path.relpath(folder, self.address).replace(os.sep, "/")
            found += [name if below == "." else f"{below}/{name}" for name in names]
            if len(found) >= most:
                break
        return dict.fromkeys(sorted(found, key=str.encode)[:most], "")

    def _path_of(self, path: str) -> str:
        return os.path.join(self.address, *path.split("/"))

    def _write(self, path: str, data: bytes) -> None:
        target = self._path_of(path)
        make_folders(os.path.dirname(target))
        write_atomic(target, data, mode=_PUBLIC_MODE)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            make_folders(self.address)
            with lock_folder(self.address, seconds=_MAX_LOCK_SECONDS):
                yield
        except OSError as error:
            message = f"cannot write to the folder: {error.strerror}"
            raise FetchError(message, error.filename or self.address, "unwritable") from None


class ObjectStore:
    """A bucket, or what is below a prefix of it. Credentials and endpoints are those of the environment."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        try:
            import obstore
            from obstore.store import from_url
        except ImportError:
            message = f"object stores are not installed: {explain_extra('store')}"
            raise MissingPackageError(message, self.address, "missing-extra") from None
        self._obstore: Any = obstore
        with self._translated(""):
            self._store: Any = from_url(self.address, **_client_options(self.address))

    def read(self, path: str, max_bytes: int) -> StoredFile | None:
        from obstore.exceptions import NotFoundError

        with self._translated(path):
            try:
                answer = self._obstore.get(self._store, path)
            except (NotFoundError, FileNotFoundError):
                return None
            size = answer.meta["size"]
            # The header may lie, so the bytes are counted too.
            data = bytearray()
            for piece in answer.stream() if size <= max_bytes else ():
                data += piece
                if len(data) > max_bytes:
                    break
            if max(size, len(data)) > max_bytes:
                raise FetchError(f"{path} has more than {max_bytes} bytes", self._path_of(path), "download-too-large")
            return StoredFile(bytes(data), answer.meta["e_tag"] or "")

    def create(self, path: str, data: bytes) -> bool:
        return self.replace(path, data, None)

    def replace(self, path: str, data: bytes, old: StoredFile | None) -> bool:
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        mode: Any = "create" if old is None else {"e_tag": old.version}
        with self._translated(path):
            try:
                self._obstore.put(self._store, path, data, mode=mode)
            except (AlreadyExistsError, FileExistsError, PreconditionError):
                return False
        return True

    def write(self, path: str, data: bytes) -> None:
        with self._translated(path):
            self._obstore.put(self._store, path, data)

    def delete(self, path: str) -> None:
        from obstore.exceptions import NotFoundError

        with self._translated(path):
            try:
                self._obstore.delete(self._store, path)
            except (NotFoundError, FileNotFoundError):
                return

    def list_files(self, most: int) -> dict[str, str]:
        found: dict[str, str] = {}
        with self._translated(""):
            for batch in self._obstore.list(self._store):
                found |= {row["path"]: row["e_tag"] or str(row["last_modified"]) for row in batch}
                if len(found) >= most:
                    break
        return {path: found[path] for path in sorted(found, key=str.encode)[:most]}

    def _path_of(self, path: str) -> str:
        return f"{self.address}/{path}" if path else self.address

    @contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

        try:
            yield
        except (PermissionDeniedError, UnauthenticatedError, PermissionError):
            message = "the store refuses: the credentials of the environment do not allow it"
            raise FetchError(f"{self._path_of(path)}: {message}", self._path_of(path), "login-needed") from None
        except (BaseError, OSError, ValueError) as error:
            # A long report of each attempt; its first line says what is wrong.
            reason = ascii(scrub_text(str(error)).strip().partition("\n")[0][:200])[1:-1]
            raise FetchError(f"{self._path_of(path)} cannot be reached: {reason}", self._path_of(path)) from None


def _client_options(address: str) -> dict[str, Any]:
    """Return the options of an object store that its own environment variables do not give."""
    from datetime import timedelta

    options: dict[str, Any] = {"retry_config": {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}}
    if not address.startswith("s3://"):
        return options
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    if endpoint:
        # The user's own setting: a store on this machine, or of the company, has no other name.
        options |= {"endpoint": endpoint, "client_options": {"allow_http": endpoint.startswith("http://")}}
    if not os.environ.get("AWS_ACCESS_KEY_ID"):
        try:  # profiles and single sign-on, where the package that knows them is installed
            from obstore.auth.boto3 import Boto3CredentialProvider

            options["credential_provider"] = Boto3CredentialProvider()
        except (ImportError, ValueError):
            pass
    return options
