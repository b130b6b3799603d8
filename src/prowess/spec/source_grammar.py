"""Where a source ends in what people type, and the parts that follow it: ``SOURCE[#REF][:SUBFOLDER][@SKILL,…]``.

A ``#`` always ends the source, also with an empty REF (``https://host/page#@skill``). Without one, a ``:`` or an ``@``
ends it where it cannot be a letter of the source itself: behind ``owner/repo``, ``.git``, an archive's ending, the
address of a repository on GitHub, GitLab or Azure, an address of ssh or git, and, an ``@`` alone, in the last name of
any other address. Pages of a repository (``…/tree/…``) and downloads keep every letter. In a path of this machine any
mark may be a letter: the longest path that is there is meant. Parts are decoded (``%40`` is ``@``) after the split.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from prowess.errors import BadReferenceError
from prowess.spec.redaction import show_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SOURCE_FORMS = (
    ("owner/repo", "a repository on GitHub; github:owner/repo and gitlab:owner/repo name the host"),
    ("https://host/repo.git", "a repository anywhere; also ssh://user@host/repo and user@host:repo"),
    ("https://…/tree/REF/SUBFOLDER", "a page of a repository on GitHub, GitLab or Azure"),
    ("./folder", "a folder of this machine; also ../x, /x, ~/x, C:\\x and ."),
    ("./folder#", "a repository of this machine; also file:///folder and ./repo.git"),
    ("./x.zip", "an archive: .zip, .skill, .tar, .tar.gz, .tgz; also https://host/x.zip"),
    ("https://host/team", "a site that publishes skills"),
    ("…#REF", "a tag, a branch or a commit of it; %40 stands for an @ in it, %3A for a colon"),
    ("…:SUBFOLDER", "only this folder of it"),
    ("…@SKILL,SKILL", "only these skills of it"),
    ("@org/name@version", "the repository org/name on GitHub at that version: here the last @ names no skill"),
)
"""What people may type as a source, each form with what it means: shown by ``--help`` and in the documentation."""

ARCHIVE_SUFFIXES = (".zip", ".skill", ".tar.gz", ".tgz", ".tar")
DOWNLOAD_URL = re.compile(
    r"https://(?:raw\.githubusercontent\.com|codeload\.github\.com)/.+"
    r"|https://[^/]+/[^/]+/[^/]+/(?:archive|releases/download|raw)/.+"
    r"|https://[^/]+/.+/-/(?:archive|raw)/.+"
)
_TAIL = re.compile(r"(?P<mark>#(?P<ref>[^#:@]*))?(?P<colon>:(?P<folder>[^#:@]*))?(?P<at>@(?P<skills>[^#:@]*))?")
_SHORTHAND = re.compile(r"(?:github:|gitlab:)?[A-Za-z0-9._-]+/[^#:@]*")
_SCP = re.compile(r"[^/:@#]+@[^/:@#]+:[^#:@]*")
_PAGE = re.compile(r"https?://[^#]*(?:/(?:tree|blob)/|/-/|\?)")
_ENDINGS = "|".join(re.escape(ending) for ending in (".git", *ARCHIVE_SUFFIXES))
_REPOSITORY = re.compile(
    rf"[a-z]+://[^/]+/[^#]*?(?:{_ENDINGS}|/_git/[^/:@#]+)(?=[:@]|$)"
    r"|(?:ssh|git)://[^/]+/[^#]*?(?<!/)(?=(?::[^#:@]*)?(?:@[^#:@/]*)?$)"
    r"|https://(?:www\.)?git(?:hub|lab)\.com/[^#:@]*",
    re.IGNORECASE,
)
_LAST_NAME = re.compile(r"[a-z]+://[^/]+/(?:.*[^/])(?=@[^/@:]*$)", re.IGNORECASE)
_DRIVE = re.compile(r"/?[A-Za-z]:(?=[\\/])")
_PATH_TAIL = re.compile(r"(?::[^#:@]*)?(?:@[^#:@/\\]*)?")


class SourceParts(NamedTuple):
    """What follows a source: the version, the folder in it, the skills; ``has_hash`` when a ``#`` began it."""

    ref: str = ""
    folder: str = ""
    skills: tuple[str, ...] = ()
    has_hash: bool = False


def split_address(text: str, home: str = "") -> tuple[str, SourceParts]:
    """An address, or ``owner/repo``, without the parts that follow it, and those parts.

    ``home``: a further host whose addresses end like those of github.com. Raises ``BadReferenceError`` for parts that
    are none.
    """
    source, mark, _ = text.partition("#")
    end = len(source) if mark else _find_source_end(text, home)
    return text[:end], read_parts(text[end:], text)


def is_shorthand(text: str) -> bool:
    """True for ``owner/repo``, ``github:owner/repo`` and ``gitlab:owner/repo`` with whatever parts follow.

    In those a ``:`` before an ``@`` is the mark of a folder, and not that of a password.
    """
    return "://" not in text.partition("#")[0] and _SHORTHAND.match(text) is not None


def _find_source_end(text: str, home: str) -> int:
    """The place in an address without ``#`` where its parts begin, or its length when it has none."""
    if "://" not in text:
        match = _SHORTHAND.match(text) or _SCP.match(text)
        return match.end() if match else len(text)
    if _PAGE.match(text) or DOWNLOAD_URL.fullmatch(text) or text.lower().endswith(ARCHIVE_SUFFIXES):
        return len(text)
    usual = f"https://{home}/"
    if home and text.lower().startswith(usual.lower()):
        match = re.compile(r"[^#:@]*").match(text, len(usual))
    else:
        match = _REPOSITORY.match(text) or _LAST_NAME.match(text)
    return match.end() if match else len(text)


def split_path(text: str, is_there: Callable[[str], bool] | None = None) -> tuple[str, SourceParts]:
    """A path of this machine without the parts that follow it, and those parts.

    The longest path that ``is_there`` confirms is meant, because any mark may be a letter of a name; where it confirms
    none, the first ``#`` ends the path, and without one whatever can be a folder and skills at the end of it is that.
    """
    drive = _DRIVE.match(text)
    first = drive.end() if drive else 1
    ends = [at for at in range(len(text), first - 1, -1) if at == len(text) or text[at] in "#:@"]
    if is_there is not None:
        for end in ends:
            if _TAIL.fullmatch(text, end) and is_there(text[:end]):
                return text[:end], read_parts(text[end:], text)
    hash_at = text.find("#")
    if hash_at >= first:
        return text[:hash_at], read_parts(text[hash_at:], text)
    end = next(at for at in reversed(ends) if _PATH_TAIL.fullmatch(text, at))
    return text[:end], read_parts(text[end:], text)


def read_parts(tail: str, text: str = "") -> SourceParts:
    """The parts that a tail such as ``#v1:tools@pdf,csv`` names; ``text`` is what an error shows.

    Raises ``BadReferenceError`` for a tail that is none, and for a folder or a skill that is announced and not named.
    """
    match = _TAIL.fullmatch(tail)
    if match is None:
        message = f"{show_address(text or tail)} must end like #REF:SUBFOLDER@SKILL,…: write %40 for an '@' in a part"
        raise BadReferenceError(message)
    skills = tuple(dict.fromkeys(unquote(name) for name in (match["skills"] or "").split(",")))
    if (match["colon"] and not match["folder"]) or (match["at"] and not all(skills)):
        raise BadReferenceError(f"nothing follows a ':', an '@' or a ',' in {show_address(text or tail)}")
    folder = unquote(match["folder"] or "")
    return SourceParts(unquote(match["ref"] or ""), folder, skills if match["at"] else (), match["mark"] is not None)


def write_parts(ref: str, folder: str, skills: Iterable[str], *, marked: bool) -> str:
    """The tail that names these parts, such as ``#v1:tools@pdf,csv``. ``marked``: a ``#`` even without a version."""
    names = ",".join(_encode(name) for name in skills)
    tail = f":{_encode(folder)}" if folder else ""
    tail += f"@{names}" if names else ""
    return f"#{_encode(ref)}{tail}" if ref or marked else tail


def _encode(part: str) -> str:
    """A part with its marks written as ``%40`` and the like, and with what an address with a secret could hold."""
    return re.sub(r"[%#:@,?=&]", lambda mark: f"%{ord(mark[0]):02X}", part)
