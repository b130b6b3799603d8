"""References to skills that are shared: ``@org/name[@version]``, checked before anything is joined to a path."""

from __future__ import annotations

import re
from dataclasses import dataclass

from prowess.errors import BadReferenceError
from prowess.names import is_device_name
from prowess.spec.redaction import show_address

MAX_PART_CHARS = 100
MAX_VERSION_CHARS = 200
_PART = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?")
_VERSION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+@-]*")
_COMMIT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})")
_SHORT_COMMIT = re.compile(r"[0-9a-f]{7,39}")
_NOT_IN_LINK_NAMES = re.compile(r"[^a-z0-9._]+")
_LOCAL_PREFIXES = ("./", "../", "/")


@dataclass(frozen=True, slots=True)
class SkillRef:
    """A shared skill: whose, which, and which version (``""``: the newest of the default branch)."""

    org: str
    name: str
    version: str = ""

    @classmethod
    def parse(cls, text: str) -> SkillRef:
        """The reference that ``text`` is; ``BadReferenceError`` says what is wrong with it.

        The version is what follows the last ``@`` and may hold slashes (a branch).
        """
        if not text.startswith("@"):
            org, slash, name = text.partition("/")
            meant = f"; is '@{text}' meant?" if slash and is_safe_part(org) and is_safe_part(name) else ""
            raise _bad_reference(f"a skill reference must start with @: {show_address(text)}{meant}")
        rest, at, version = text[1:].rpartition("@")
        if not at:
            rest, version = version, ""
        elif not version:
            raise _bad_reference(f"empty version in skill reference: {show_address(text)}")
        org, slash, name = rest.partition("/")
        if not slash or not org or not name:
            raise _bad_reference(f"a skill reference must be @org/name: {show_address(text)}")
        if "/" in name:
            raise _bad_reference(f"a skill name must not contain /: {show_address(name)}")
        return cls(check_part(org), check_part(name), check_version(version) if version else "")

    @property
    def full_name(self) -> str:
        """``org/name``."""
        return f"{self.org}/{self.name}"

    @property
    def git_url(self) -> str:
        """Where it is fetched from."""
        return f"https://github.com/{self.org}/{self.name}"

    def __str__(self) -> str:
        """The text that ``parse`` reads."""
        return f"@{self.full_name}" + (f"@{self.version}" if self.version else "")


def is_local_path(text: str) -> bool:
    """Whether ``text`` names a path of this machine: it begins with ``./``, ``../`` or ``/``."""
    return text.startswith(_LOCAL_PREFIXES)


def is_safe_part(text: str) -> bool:
    """Whether ``text`` is one plain name on every platform, in ASCII."""
    return len(text) <= MAX_PART_CHARS and _PART.fullmatch(text) is not None and not is_device_name(text)


def link_name(skill: str) -> str:
    """The folder name under which agents find a skill: its own, in the characters that every agent accepts.

    ``""`` when nothing is left, or when the name is not plain ASCII: such names are easily mistaken for others.
    """
    if not skill.isascii():
        return ""
    name = _NOT_IN_LINK_NAMES.sub("-", skill.lower()).strip(".-")
    return name if is_safe_part(name) else ""


def check_part(text: str) -> str:
    """``text``, which is an org or a name, unless it could be anything but one plain name in a path."""
    if text.startswith("-"):
        raise _bad_reference(f"{show_address(text)} is no plain name: a name must not begin with '-'")
    if not is_safe_part(text):
        raise _bad_reference(f"{show_address(text)} is no plain name: letters, digits, '.', '_' and '-'")
    return text


def check_version(text: str) -> str:
    """``text``, which names a tag, a branch or a commit, unless git could take it for anything else."""
    parts = text.split("/")
    odd = (
        len(text) > MAX_VERSION_CHARS
        or _VERSION.fullmatch(text) is None
        or ".." in text
        or any(not part or part.startswith(".") or part.endswith((".", ".lock")) for part in parts)
    )
    if odd:
        why = ": a version must not begin with '-'" if text.startswith("-") else ""
        raise BadReferenceError(f"{show_address(text)} is no version{why}", code="bad-version")
    return text


def is_commit(version: str) -> bool:
    """Whether a version is a whole commit id, which never means anything else later."""
    return _COMMIT.fullmatch(version) is not None


def is_short_commit(version: str) -> bool:
    """Whether a version can be the first digits of a commit id: seven or more, as git itself shows them."""
    return _SHORT_COMMIT.fullmatch(version) is not None


def _bad_reference(message: str) -> BadReferenceError:
    return BadReferenceError(message)
