"""References to shared skills, ``@org/name[@version]``, and the checks that make their parts safe in a path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from prowess.errors import BadReferenceError
from prowess.names import is_safe_part
from prowess.text.redaction import show_address
from prowess.text.versions import is_range

MAX_VERSION_CHARS = 200
_VERSION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+@-]*")
_COMMIT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})")
_SHORT_COMMIT = re.compile(r"[0-9a-f]{7,39}")
_LOCAL_PREFIXES = ("./", "../", "/")


@dataclass(frozen=True, slots=True)
class SkillRef:
    """A shared skill: its owner, its name, and its version.

    The version is a tag, a branch, a commit, a range of tags, or ``""``: the newest commit of the default branch.
    """

    org: str
    name: str
    version: str = ""

    @classmethod
    def parse(cls, text: str) -> SkillRef:
        """Return the reference that ``text`` is, or raise ``BadReferenceError`` with what is wrong with it.

        The version is what follows the last ``@``. It may hold slashes, because it may be a branch.
        """
        if not text.startswith("@"):
            org, slash, name = text.partition("/")
            suggestion = f"; is '@{text}' meant?" if slash and is_safe_part(org) and is_safe_part(name) else ""
            raise BadReferenceError(f"a skill reference must start with @: {show_address(text)}{suggestion}")
        full_name, mark, version = text[1:].rpartition("@")
        if not mark:
            full_name, version = version, ""
        elif not version:
            raise BadReferenceError(f"empty version in skill reference: {show_address(text)}")
        org, slash, name = full_name.partition("/")
        if not slash or not org or not name:
            raise BadReferenceError(f"a skill reference must be @org/name: {show_address(text)}")
        if "/" in name:
            raise BadReferenceError(f"a skill name must not contain /: {show_address(name)}")
        return cls(check_part(org), check_part(name), check_ref(version) if version else "")

    @property
    def full_name(self) -> str:
        """The owner and the name, as ``org/name``."""
        return f"{self.org}/{self.name}"

    @property
    def git_url(self) -> str:
        """The address of the repository from which the skill is fetched."""
        return f"https://github.com/{self.org}/{self.name}"

    def __str__(self) -> str:
        """Return the text that ``parse`` reads as this reference."""
        return f"@{self.full_name}" + (f"@{self.version}" if self.version else "")


def is_local_path(text: str) -> bool:
    """Return whether ``text`` names a path of this machine: it begins with ``./``, ``../`` or ``/``."""
    return text.startswith(_LOCAL_PREFIXES)


def to_folder_name(name: str) -> str:
    """Return a name of an address as the name of a folder, with '-' for what is not safe in one.

    Raises ``BadReferenceError`` when nothing safe is left.
    """
    cleaned = re.sub(r"[^A-Za-z0-9._-]+", "-", unquote(name)).strip(".-")
    if not is_safe_part(cleaned):
        raise BadReferenceError(f"{show_address(name)} cannot name a folder")
    return cleaned


def check_part(text: str) -> str:
    """Return ``text``, an owner or a name. Raises ``BadReferenceError`` unless it is one plain name in a path."""
    if text.startswith("-"):  # git would take it for an option
        raise BadReferenceError(f"{show_address(text)} is not a plain name: a name must not begin with '-'")
    if not is_safe_part(text):
        raise BadReferenceError(f"{show_address(text)} is not a plain name: letters, digits, '.', '_' and '-'")
    return text


def check_ref(text: str) -> str:
    """Return ``text``, which names a tag, a branch, a commit, or a range of tags such as ``^1.2``.

    Raises ``BadReferenceError`` (code ``bad-version``) for anything else.
    """
    return text if is_range(text) else check_version(text)


def check_version(text: str) -> str:
    """Return ``text``, which names a tag, a branch or a commit.

    Raises ``BadReferenceError`` (code ``bad-version``) when git could take it for anything else.
    """
    # The rules of ``git check-ref-format``, in ASCII: ``..`` is a range of commits, ``.lock`` a file of git's own.
    parts = text.split("/")
    is_refused = (
        len(text) > MAX_VERSION_CHARS
        or _VERSION.fullmatch(text) is None
        or ".." in text
        or any(not part or part.startswith(".") or part.endswith((".", ".lock")) for part in parts)
    )
    if is_refused:
        why = ": a version must not begin with '-'" if text.startswith("-") else ""
        raise BadReferenceError(f"{show_address(text)} is not a version{why}", code="bad-version")
    return text


def is_commit(version: str) -> bool:
    """Return whether a version is a whole commit id: it always means one commit, as a tag or a branch does not."""
    return _COMMIT.fullmatch(version) is not None


def is_short_commit(version: str) -> bool:
    """Return whether a version can be the first digits of a commit id: seven or more, as git itself shows them."""
    return _SHORT_COMMIT.fullmatch(version) is not None
