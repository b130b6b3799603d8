"""The grammar of sources, ``SOURCE[#REF][:SUBFOLDER][@SKILL,…]``, and the checks of the addresses that git is given.

- A ``#`` always ends the source, even with an empty REF (``https://host/page#@skill``).
- Without a ``#``, a ``:`` or an ``@`` ends the source where it cannot be a letter of it: behind ``owner/repo``,
  ``.git``, the ending of an archive, the address of a repository on GitHub, GitLab or Azure, and an address of ssh or
  git.
- In the last name of any other address an ``@`` ends the source, and a ``:`` does not.
- Pages of a repository (``…/tree/…``) and downloads keep every letter.
- In a path of this machine any mark may be a letter, so the longest path that exists is meant.

Parts are decoded after the split: ``%40`` is ``@``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

from prowess.errors import BadReferenceError
from prowess.text.redaction import hide_secrets, show_address
from prowess.text.versions import is_range

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
    ("site:https://host/team#REF", "a published site at a version or an alias; also site:./folder"),
    ("s3://bucket/prefix#REF", "a published site in an object store; also gs:// and az://"),
    ("oci://host/repo:TAG", "a skill in an OCI registry; also oci://host/repo@sha256:…"),
    ("…#REF", "a tag, a branch or a commit of it; %40 stands for an @ in it, %3A for a colon"),
    ("…#^1.2", "the latest tag from 1.2 on, below 2; #~1.2 is below 1.3; also #>=1.0,<2"),
    ("…:SUBFOLDER", "only this folder of it"),
    ("…@SKILL,SKILL", "only these skills of it; also @PLUGIN"),
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
_LAST_NAME = re.compile(r"[a-z][a-z0-9]*://[^/]+/(?:.*[^/])(?=@[^/@:]*$)", re.IGNORECASE)
_DRIVE = re.compile(r"/?[A-Za-z]:(?=[\\/])")
_PATH_TAIL = re.compile(r"(?::[^#:@]*)?(?:@[^#:@/\\]*)?")


class SourceParts(NamedTuple):
    """The parts that follow a source: the version, the folder, the skills, and whether a ``#`` began them."""

    ref: str = ""
    folder: str = ""
    skills: tuple[str, ...] = ()
    has_hash: bool = False


def split_address(text: str, home: str = "") -> tuple[str, SourceParts]:
    """Return an address, or ``owner/repo``, without the parts that follow it, and those parts.

    ``home``: a further host whose addresses end like those of github.com. Raises ``BadReferenceError`` when the text
    after the address does not have the form of parts.
    """
    source, mark, _ = text.partition("#")
    end = len(source) if mark else _find_source_end(text, home)
    return text[:end], read_parts(text[end:], text)


def is_shorthand(text: str) -> bool:
    """Return whether ``text`` is ``owner/repo``, ``github:owner/repo`` or ``gitlab:owner/repo``, with or without parts.

    In these forms a ``:`` before an ``@`` begins a folder, and not a password.
    """
    return "://" not in text.partition("#")[0] and _SHORTHAND.match(text) is not None


def _find_source_end(text: str, home: str) -> int:
    """Return the offset in an address without ``#`` at which its parts begin, or its length when it has none."""
    if "://" not in text:
        match = _SHORTHAND.match(text) or _SCP.match(text)
        return match.end() if match else len(text)
    # Pages first: their versions and folders may hold any mark, and say already what parts would say.
    if _PAGE.match(text) or DOWNLOAD_URL.fullmatch(text) or text.lower().endswith(ARCHIVE_SUFFIXES):
        return len(text)
    begin = f"https://{home}/"  # the host may have a port, whose colon ends nothing
    if home and text.lower().startswith(begin.lower()):
        match = re.compile(r"[^#:@]*").match(text, len(begin))
    else:
        match = _REPOSITORY.match(text) or _LAST_NAME.match(text)
    return match.end() if match else len(text)


def split_path(text: str, is_there: Callable[[str], bool] | None = None) -> tuple[str, SourceParts]:
    """Return a path of this machine without the parts that follow it, and those parts.

    Any mark may be a letter of a name. So the longest path that ``is_there`` confirms is meant. Where it confirms none,
    the first ``#`` ends the path. Without a ``#``, the longest end that has the form of a folder and skills is cut off.
    """
    drive = _DRIVE.match(text)  # the colon of a drive does not mark anything
    first = drive.end() if drive else 1
    ends = [end for end in range(len(text), first - 1, -1) if end == len(text) or text[end] in "#:@"]
    if is_there is not None:
        for end in ends:
            if _TAIL.fullmatch(text, end) and is_there(text[:end]):
                return text[:end], read_parts(text[end:], text)
    end = text.find("#")
    if end < first:
        end = next(end for end in reversed(ends) if _PATH_TAIL.fullmatch(text, end))
    return text[:end], read_parts(text[end:], text)


def read_parts(tail: str, text: str = "") -> SourceParts:
    """Return the parts that a tail such as ``#v1:tools@pdf,csv`` names; an error shows ``text``.

    Raises ``BadReferenceError`` when the tail has another form, and when nothing follows a ``:``, an ``@`` or a ``,``.
    """
    match = _TAIL.fullmatch(tail)
    if match is None:
        raise BadReferenceError(
            f"{show_address(text or tail)} must end like #REF:SUBFOLDER@SKILL,…: write %40 for an '@' in a part"
        )
    skills = tuple(dict.fromkeys(unquote(name) for name in (match["skills"] or "").split(",")))
    if (match["colon"] and not match["folder"]) or (match["at"] and not all(skills)):
        raise BadReferenceError(f"nothing follows a ':', an '@' or a ',' in {show_address(text or tail)}")
    folder = unquote(match["folder"] or "")
    return SourceParts(unquote(match["ref"] or ""), folder, skills if match["at"] else (), match["mark"] is not None)


def write_parts(ref: str, folder: str, skills: Iterable[str], *, marked: bool) -> str:
    """Return the tail that names these parts, such as ``#v1:tools@pdf,csv``; ``marked``: begin it with ``#`` always."""
    names = ",".join(_encode(name) for name in skills)
    tail = f":{_encode(folder)}" if folder else ""
    tail += f"@{names}" if names else ""
    written = ref if is_range(ref) else _encode(ref)
    return f"#{written}{tail}" if ref or marked else tail


def write_file_address(path: str) -> str:
    """Return the address of an absolute path: ``file:///srv/repo``, or ``file:///C:/srv/repo`` with a drive."""
    if path.startswith("/"):
        return f"file://{quote(path)}"
    path = path.replace("\\", "/")
    # The colon of a drive stays as it is: git would not know a drive without it.
    return f"file:///{path[:2]}{quote(path[2:])}" if _DRIVE.match(path) else f"file://{quote(path)}"


def _encode(part: str) -> str:
    """Return a part with its marks encoded, ``@`` as ``%40``."""
    # Also the marks of a query: a part that holds them would be refused as a secret.
    return re.sub(r"[%#:@,?=&]", lambda mark: f"%{ord(mark[0]):02X}", part)


DEFAULT_SCHEMES = ("https", "ssh")
"""The schemes by which a repository may be fetched, unless the caller allows more."""

AZURE_REPOSITORY = re.compile(r"https://[^/]+/.+/_git/[^/?]+")
_SCP_ADDRESS = re.compile(r"(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]*)@(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*):(?P<path>[^/].*)")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]+")
_PRINTABLE_ASCII = re.compile(r"[\x21-\x7e]*")
_AZURE_QUERY_KEYS = frozenset(("path", "version", "_a"))
"""What the query of a page of Azure may hold: the folder, the version, and which tab is open."""


def check_address(text: str, schemes: tuple[str, ...]) -> str:
    """Return ``text``, the address of a repository.

    Raises ``BadReferenceError`` when its scheme is not among ``schemes``, when it holds an option or a secret, and when
    it names no host.
    """
    if _PRINTABLE_ASCII.fullmatch(text) is None:
        raise BadReferenceError(f"an address must be plain ASCII without spaces: {show_address(text)}")
    scheme, mark, _ = text.partition("://")
    if not mark:
        match_scp_address(text, schemes)
        return text
    if scheme.lower() not in schemes:
        raise BadReferenceError(f"{scheme} is not among {', '.join(schemes)}: {show_address(text)}", code="bad-scheme")
    if not is_azure_page(text):
        refuse_secret(text)
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port  # a port that is not a number raises only when it is asked for
    except ValueError:
        raise BadReferenceError(f"this is not an address: {show_address(text)}") from None
    # ssh and git read a host or a name that begins with a dash as an option, which can run any program.
    if host.startswith("-"):
        raise BadReferenceError(f"a host must not begin with '-': {show_address(text)}")
    if _HOST.fullmatch(host) is None:
        raise BadReferenceError(f"this is not a host: {show_address(text)}")
    if any(name.startswith("-") and name != "-" for name in parts.path.split("/")):
        raise BadReferenceError(f"a name in an address must not begin with '-': {show_address(text)}")
    return text


def match_scp_address(text: str, schemes: tuple[str, ...] = ("ssh",)) -> re.Match[str]:
    """Return the match of an address such as ``git@host:path``, with the groups ``user``, ``host`` and ``path``.

    Raises ``BadReferenceError`` when it is no such address, when ``schemes`` has no ``ssh``, and when it holds an
    option.
    """
    _refuse_dash(text)
    match = _SCP_ADDRESS.fullmatch(text)
    # To git ``helper::address`` is a command: it runs the program git-remote-helper.
    if match is None or "::" in text or "ssh" not in schemes:
        raise BadReferenceError(f"this is not the address of a repository: {show_address(text)}", code="bad-scheme")
    return match


def _refuse_dash(text: str, marks: str = "@:/") -> None:
    """Raise ``BadReferenceError`` when a part behind one of ``marks`` begins with a dash, as an option of ssh does."""
    if any(part.startswith("-") for part in re.split(f"[{marks}]", text)):
        raise BadReferenceError(f"a name in an address must not begin with '-': {show_address(text)}")


def refuse_secret(text: str) -> None:
    """Raise ``BadReferenceError`` for an address with a password, a query, or a user other than that of ssh."""
    if hide_secrets(text) != text:
        _refuse_dash(text, "@#")  # an option reads like a password (``git@-oProxyCommand=x``), and is the worse of both
        raise BadReferenceError(
            f"an address must not hold a user, a password or a query: {show_address(text)}", code="secret-in-address"
        )


def is_azure_page(text: str) -> bool:
    """Return whether ``text`` is a page of Azure whose query names only a folder, a version and an open tab."""
    page, _, query = text.partition("?")
    return (
        hide_secrets(page) == page
        and AZURE_REPOSITORY.fullmatch(page) is not None
        and not parse_qs(query).keys() - _AZURE_QUERY_KEYS
    )
