"""Signatures of SSH keys, as git makes them: ``ssh-keygen`` signs, and names the key that signed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from prowess.errors import FetchError, MissingPackageError
from prowess.files.delete import delete_tree, make_temporary_folder
from prowess.files.write import write_new_file
from prowess.text.redaction import scrub_text

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_SECONDS = 60
_GOOD = re.compile(r"with \S+ key (SHA256:[A-Za-z0-9+/]{43})$", re.MULTILINE)
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
MAX_SIGNATURE_BYTES = 16 * 1024


def sign_bytes(data: bytes, key: str | os.PathLike[str], purpose: str) -> bytes:
    """Return the signature of ``data`` with the private key in a file, or with a public key that an agent has.

    ``purpose`` keeps a signature from counting for anything else. Raises ``FetchError`` (``not-signed``) when
    ``ssh-keygen`` cannot sign.
    """
    path = os.path.abspath(os.path.expanduser(os.fspath(key)))
    done = _run(["-Y", "sign", "-q", "-f", path, "-n", purpose], data)
    if done.returncode or not done.stdout:
        raise FetchError(f"cannot be signed: {_last_line(done.stderr)}", path, "not-signed")
    return done.stdout


def find_fingerprint(key: str | os.PathLike[str]) -> str:
    """Return the fingerprint (``SHA256:…``) of a key in a file; raises ``FetchError`` (``not-signed``) for no key."""
    path = os.path.abspath(os.path.expanduser(os.fspath(key)))
    done = _run(["-l", "-E", "sha256", "-f", path], b"")
    match = _FINGERPRINT.search(done.stdout.decode("ascii", "replace"))
    if done.returncode or match is None:
        raise FetchError(f"this is not an SSH key: {_last_line(done.stderr)}", path, "not-signed")
    return match[0]


def find_signing_key(data: bytes, signature: bytes, purpose: str) -> str:
    """Return the fingerprint (``SHA256:…``) of the key that signed ``data``.

    Raises ``FetchError`` (``bad-signature``) when no key did.
    """
    folder = make_temporary_folder("prowess-sig-")
    try:
        path = os.path.join(folder, "signature")
        write_new_file(path, signature)
        done = _run(["-Y", "check-novalidate", "-n", purpose, "-s", path], data)
    finally:
        delete_tree(folder)
    match = _GOOD.search(done.stdout.decode("ascii", "replace"))
    if done.returncode or match is None:
        raise FetchError("the signature is not that of the content", code="bad-signature")
    return match[1]


def is_signed_by(data: bytes, signature: bytes, purpose: str, name: str, allowed_signers: str) -> bool:
    """Return whether a key that the lines of an ``allowed_signers`` give to ``name`` signed ``data``.

    The validity of a key there is as of now, and not as of a date in the signed bytes, which its signer wrote.
    """
    folder = make_temporary_folder("prowess-sig-")
    try:
        paths = [os.path.join(folder, file) for file in ("signature", "allowed")]
        write_new_file(paths[0], signature)
        write_new_file(paths[1], f"{allowed_signers}\n".encode())
        words = ["-Y", "verify", "-f", paths[1], "-I", name, "-n", purpose, "-s", paths[0]]
        return _run(words, data).returncode == 0
    finally:
        delete_tree(folder)


def _run(arguments: Sequence[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("ssh-keygen")
    # A program in a relative folder of PATH would be one in the working folder, which may be anybody's.
    if program is None or not os.path.isabs(program):
        raise MissingPackageError("signatures need the program ssh-keygen, of OpenSSH 8.2 or later")
    # Without the variables of the user: only the agent is needed, and the program must not ask in a window.
    env = {name: os.environ[name] for name in ("PATH", "HOME", "SSH_AUTH_SOCK", "SYSTEMROOT") if name in os.environ}
    try:
        return subprocess.run(  # noqa: S603 - a list without a shell; the arguments are our own
            [program, *arguments], input=data, capture_output=True, check=False, env=env, timeout=_MAX_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise FetchError(f"ssh-keygen took longer than {_MAX_SECONDS} seconds", code="not-signed") from None


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return ascii(scrub_text(lines[-1])[:200])[1:-1] if lines else "ssh-keygen failed"
