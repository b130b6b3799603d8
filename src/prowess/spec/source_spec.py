"""What people type to say where skills come from, as data.

First match wins: ``@org/name[@version]``; a path (``./x``, ``../x``, ``/x``, ``~/x``, ``.``, or one with a drive), with
a ``#`` for a local repository; ``github:owner/repo`` and ``gitlab:owner/repo``; pages of GitHub, GitLab and Azure that
show a folder; archives by address; any other git address (``.git``, ``ssh://``, ``git@host:path``); any other
``https://`` address, where a well-known index is looked for; and ``owner/repo[/sub/path]`` on GitHub. After each of
them but the first ``[#REF][:SUBFOLDER][@SKILL,…]`` may follow: see ``source_parts``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from prowess.errors import BadReferenceError, PathTraversalError
from prowess.names import SKILL_FILE, split_relative_path
from prowess.spec.redaction import hide_secrets, is_path, show_address
from prowess.spec.rules import is_usable_name
from prowess.spec.skill_ref import SkillRef, check_part, check_version, is_safe_part
from prowess.spec.source_grammar import (
    ARCHIVE_SUFFIXES,
    DOWNLOAD_URL,
    SourceParts,
    is_shorthand,
    split_address,
    split_path,
    write_parts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from urllib.parse import SplitResult

SourceKind = Literal["git", "folder", "archive", "index"]

DEFAULT_SCHEMES = ("https", "ssh")
"""What a repository may be fetched by, unless the caller allows more."""

MAX_ADDRESS_CHARS = 2_000
_KNOWN_SCHEMES = frozenset(("https", "http", "ssh", "git", "file"))
_SCP = re.compile(r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]*)@)?(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*):(?P<path>[^/].*)")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]+")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PRINTABLE_ASCII = re.compile(r"[\x21-\x7e]*")
_GITHUB = re.compile(
    r"https://(?:www\.)?github\.com/([^/]+)/([^/]+?)(?:\.git)?(?:/(?:tree|blob)/([^/]+)(?:/(.*?))?)?/?"
)
_GITLAB = re.compile(r"(https://[^/]+/.+?)/-/(?:tree|blob)/([^/]+)(?:/(.*?))?/?")
_GITLAB_PROJECT = re.compile(r"https://gitlab\.com/[^/]+/.+?/?")
_AZURE = re.compile(r"https://[^/]+/.+/_git/[^/?]+")
_AZURE_QUERY_KEYS = frozenset(("path", "version", "_a"))
"""What the query of such a page may say: the folder, the version, and which tab is open."""
_SHORTHAND = re.compile(r"([A-Za-z0-9._-]+)/([A-Za-z0-9._-]+)((?:/[^@/]+)*)/?")


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Where skills come from: the kind of source, its address, and which part of it is wanted."""

    kind: SourceKind
    address: str
    """A git address, a path, or the address of an archive or an index."""
    org: str
    name: str
    ref: str = ""
    subpath: str = ""
    skills: tuple[str, ...] = ()
    local: bool = False
    """Whether the caller named a path of this machine."""
    base: str = ""
    """The folder that a relative path is meant from, where it is not the working folder."""

    def __post_init__(self) -> None:
        """Raise ``BadReferenceError`` for an address with a secret: addresses are shown, and recorded in lock files."""
        if not self.local:
            _refuse_secret(self.address)

    @property
    def full_name(self) -> str:
        """``org/name``: the folder below an install base."""
        return f"{self.org}/{self.name}"

    def __str__(self) -> str:
        """``address[#ref][:subpath][@skill,…]``, which ``parse_source`` reads as this source again."""
        of_repository = self.local and self.kind == "git" and _kind_of_path(self.address) != "git"
        plain = self.address + write_parts(self.ref, self.subpath, self.skills, marked=of_repository)
        if self.local or self.ref or split_address(plain)[0] == self.address:
            return plain
        return self.address + write_parts(self.ref, self.subpath, self.skills, marked=True)


def parse_source(text: str, *, github: str = "", is_there: Callable[[str], bool] | None = None) -> SourceSpec:
    """What ``text`` names; ``BadReferenceError`` when it names nothing, or something that could do harm.

    ``github``: a further host whose addresses are read like those of github.com (an enterprise server).
    ``is_there``: says whether a path of this machine is there, so that ``./my@folder`` is the folder of that name where
    there is one; without it, it is the skill ``folder`` of ``./my``.
    """
    if text.startswith("-"):
        message = f"a source must not begin with '-' (write ./ before a folder's name): {show_address(text)}"
        raise BadReferenceError(message)
    if not text.strip() or len(text) > MAX_ADDRESS_CHARS:
        raise BadReferenceError(f"this names no source of skills: {show_address(text)}")
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):  # noqa: PLR2004 - control characters
        raise BadReferenceError(f"an address must not hold control characters: {show_address(text)}")
    if text.startswith("@"):
        return spec_from_ref(SkillRef.parse(text))
    local = _parse_local(text, is_there)
    if local is not None:
        return local
    if not is_shorthand(text) and not _is_azure_page(text.partition("#")[0]):
        _refuse_secret(text)
    try:
        source, parts = split_address(text, github)
    except BadReferenceError:
        _refuse_secret(text)  # what is no part may be one of a password, and is not to be shown then
        raise
    # In a shorthand "a/b:c@d" is a folder and a skill, no password; what its parts hold is judged like a fragment.
    judged = source.partition("?")[0] if _is_azure_page(source) else source
    _refuse_secret(f"{judged}#{re.sub('[#:@]', '', text[len(source) :])}")
    return _with_source_parts(_parse_remote(source, github), parts)


def spec_from_ref(ref: SkillRef) -> SourceSpec:
    """The source behind a reference."""
    return SourceSpec("git", ref.git_url, ref.org, ref.name, ref.version)


def with_skills(spec: SourceSpec, skills: Sequence[str]) -> SourceSpec:
    """The same source with these of its skills; none named: what it says itself."""
    return replace(spec, skills=tuple(_check_skill_name(name) for name in skills)) if skills else spec


def with_parts(spec: SourceSpec, *, ref: str = "", subpath: str = "", skills: Sequence[str] = ()) -> SourceSpec:
    """The source with a version, a folder and skills that were given beside its address; empty ones say nothing.

    Raises ``BadReferenceError``: ``contradicting-source`` where the address says otherwise, and for an archive at a
    version, because only a repository has versions.
    """
    if ref:
        spec = _as_repository(spec, ref)
        _refuse_contradiction("version", spec.ref, check_version(ref))
        spec = replace(spec, ref=ref)
    if subpath:
        folder = _check_subpath(subpath)
        _refuse_contradiction("folder", spec.subpath, folder)
        spec = replace(spec, subpath=folder)
    if skills and {*skills} != {*spec.skills}:
        _refuse_contradiction("skill", ", ".join(spec.skills), ", ".join(skills))
        spec = with_skills(spec, tuple(dict.fromkeys(skills)))
    return spec


def _refuse_contradiction(what: str, said: str, given: str) -> None:
    if said and said != given:
        message = f"the address names the {what} {said!a}, and {given!a} is given beside it"
        raise BadReferenceError(message, code="contradicting-source")


def _as_repository(spec: SourceSpec, ref: str) -> SourceSpec:
    """A source that has versions: a path, or an address that could be a site's, is a repository once one is named."""
    if spec.kind == "folder":
        return replace(spec, kind="git")
    if spec.kind == "index":
        parts = urlsplit(spec.address)
        made = _git_spec(spec.address, parts.hostname or "", parts.path)
        return replace(spec, kind="git", org=made.org, name=made.name)
    if spec.kind != "git":
        raise BadReferenceError(f"only a repository has versions, so {ref!a} is none of {show_address(spec.address)}")
    return spec


def _with_source_parts(spec: SourceSpec, parts: SourceParts) -> SourceSpec:
    return with_parts(spec, ref=parts.ref, subpath=parts.folder, skills=parts.skills)


# -- this machine ------------------------------------------------------------------------------------------------------


def _parse_local(text: str, is_there: Callable[[str], bool] | None) -> SourceSpec | None:
    if text.lower().startswith("file://"):
        return _parse_file_url(text, is_there)
    if not is_path(text) and not is_path(re.split("[#:@]", text, maxsplit=1)[0]):
        return None
    path, parts = split_path(text, is_there)
    spec = SourceSpec(_kind_of_path(path), path, "local", _base_name(path), local=True)
    # A "#" says that a path is a repository, also where no version follows.
    return _with_source_parts(replace(spec, kind="git") if parts.has_hash and spec.kind == "folder" else spec, parts)


def _parse_file_url(text: str, is_there: Callable[[str], bool] | None) -> SourceSpec:
    _refuse_secret(text)
    host, slash, rest = text[len("file://") :].partition("/")
    if host.lower() not in {"", "localhost"}:
        raise BadReferenceError(f"a file address has no host: {show_address(text)}", code="bad-scheme")
    if not rest:
        raise BadReferenceError(f"the address names no folder: {show_address(text)}")
    confirmed = None if is_there is None else lambda encoded: is_there(unquote(encoded))
    encoded, parts = split_path(slash + rest, confirmed)
    path = unquote(encoded)
    if "\0" in path:  # encoded; other control characters may stand in the names of folders
        raise BadReferenceError(f"a path must not hold NUL: {show_address(text)}")
    return _with_source_parts(SourceSpec("git", path, "local", _base_name(path), local=True), parts)


def _kind_of_path(path: str) -> SourceKind:
    if path.rstrip("/\\").endswith(".git"):
        return "git"
    return "archive" if path.lower().endswith(ARCHIVE_SUFFIXES) else "folder"


def _base_name(path: str) -> str:
    """The name of a path's last part, without what says its format; ``""`` where only the disk knows (``.``)."""
    name = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    for ending in (".git", *ARCHIVE_SUFFIXES):
        if name.lower().endswith(ending) and len(name) > len(ending):
            name = name[: -len(ending)]
            break
    return "" if name in {"", ".", "..", "~"} else name


# -- elsewhere ---------------------------------------------------------------------------------------------------------


def _parse_remote(text: str, github: str) -> SourceSpec:
    for prefix, host in (("github:", "github.com"), ("gitlab:", "gitlab.com")):
        if text.startswith(prefix):
            return _parse_shorthand(text.removeprefix(prefix), host)
    if text.partition("://")[0].lower() in _KNOWN_SCHEMES and "://" in text:
        return _parse_url(check_address(text, tuple(_KNOWN_SCHEMES)), github)
    if ":" not in text:
        return _parse_shorthand(text, "github.com")
    _refuse_dash(text)
    scp = _SCP.fullmatch(text)
    if scp is None or "::" in text or not scp["user"]:
        raise BadReferenceError(f"this is no address of a repository: {show_address(text)}", code="bad-scheme")
    return _git_spec(check_address(text, ("ssh",)), scp["host"], scp["path"])


def _parse_url(text: str, github: str) -> SourceSpec:
    place = urlsplit(text).netloc
    if github and place.lower() == github.lower() and text.startswith("https://"):
        usual = f"https://github.com{text.removeprefix(f'https://{place}')}"
        if _GITHUB.fullmatch(usual):
            spec = _parse_github_page(usual)
            return replace(spec, address=spec.address.replace("https://github.com", f"https://{place}", 1))
    for pattern, make in _PAGE_PARSERS:
        if pattern.fullmatch(text):
            return make(text)
    parts = urlsplit(text)
    host = parts.hostname or ""
    if DOWNLOAD_URL.fullmatch(text) or parts.path.lower().endswith(ARCHIVE_SUFFIXES):
        return SourceSpec("archive", text, _to_folder_name(host), _to_folder_name(_base_name(parts.path) or host))
    if parts.scheme in {"ssh", "git"} or parts.path.rstrip("/").endswith(".git"):
        return _git_spec(text, host, parts.path)
    if _AZURE.fullmatch(text.partition("?")[0]):
        return _parse_azure_page(parts)
    return SourceSpec("index", text, _to_folder_name(host), _to_folder_name(_base_name(parts.path) or host))


def _git_spec(address: str, host: str, path: str) -> SourceSpec:
    """A repository by its address; the last two names of its path are where it is installed."""
    names = [name for name in path.removesuffix("/").removesuffix(".git").split("/") if name not in {"", "~"}]
    if not names:
        raise BadReferenceError(f"the address names no repository: {show_address(address)}")
    org = names[-2] if len(names) > 1 else host
    return SourceSpec("git", address, _to_folder_name(org), _to_folder_name(names[-1]))


def _parse_github_page(text: str) -> SourceSpec:
    found = _GITHUB.fullmatch(text)
    assert found is not None  # noqa: S101 - the table matched it
    org, name, ref, path = found.groups(default="")
    return _page_spec(f"https://github.com/{check_part(org)}/{check_part(name)}", org, name, (unquote(ref), path))


def _parse_gitlab_page(text: str) -> SourceSpec:
    found = _GITLAB.fullmatch(text)
    assert found is not None  # noqa: S101 - the table matched it
    address, ref, path = found.groups(default="")
    names = [_to_folder_name(name) for name in urlsplit(address).path.removesuffix(".git").split("/") if name]
    if len(names) < 2:  # noqa: PLR2004 - a group and a project
        raise BadReferenceError(f"the address names no repository: {show_address(text)}")
    return _page_spec(address, names[-2], names[-1], (unquote(ref), path))


def _parse_gitlab_project(text: str) -> SourceSpec:
    parts = urlsplit(text)
    return _git_spec(text.rstrip("/"), parts.hostname or "", parts.path)


def _page_spec(address: str, org: str, name: str, shown: tuple[str, str]) -> SourceSpec:
    """What a page of a repository shows: a folder, or a file whose folder is meant, at a version."""
    ref, path = shown
    subpath = unquote(path).removesuffix(SKILL_FILE).rstrip("/")
    spec = SourceSpec("git", address, check_part(org), check_part(name), subpath=_check_subpath(subpath))
    return replace(spec, ref=check_version(ref)) if ref else spec


def _is_azure_page(text: str) -> bool:
    """True for a page of Azure whose query says which folder at which version it shows, and nothing else."""
    page, _, query = text.partition("?")
    return (
        hide_secrets(page) == page
        and _AZURE.fullmatch(page) is not None
        and not parse_qs(query).keys() - _AZURE_QUERY_KEYS
    )


def _parse_azure_page(parts: SplitResult) -> SourceSpec:
    query = parse_qs(parts.query)
    spec = _git_spec(
        f"{parts.scheme}://{parts.netloc}{parts.path}", parts.hostname or "", parts.path.replace("/_git/", "/")
    )
    version = next(iter(query.get("version", [])), "")
    folder = next(iter(query.get("path", [])), "").strip("/")
    ref = check_version(version[2:]) if version[:2] in {"GB", "GT", "GC"} else ""
    return replace(spec, ref=ref, subpath=_check_subpath(folder))


_PAGE_PARSERS = ((_GITHUB, _parse_github_page), (_GITLAB, _parse_gitlab_page), (_GITLAB_PROJECT, _parse_gitlab_project))


def _parse_shorthand(text: str, host: str) -> SourceSpec:
    found = _SHORTHAND.fullmatch(text)
    if found is None:
        raise BadReferenceError(f"this names no source of skills: {show_address(text)}")
    org, name, path = found.groups(default="")
    org, name = check_part(org), check_part(name.removesuffix(".git"))
    return SourceSpec("git", f"https://{host}/{org}/{name}", org, name, subpath=_check_subpath(path.strip("/")))


# -- checks ------------------------------------------------------------------------------------------------------------


def check_address(text: str, schemes: tuple[str, ...]) -> str:
    """``text``, unless its scheme is not among ``schemes``, or it holds an option, a secret, or no host."""
    if _PRINTABLE_ASCII.fullmatch(text) is None:
        raise BadReferenceError(f"an address must be plain ASCII without blanks: {show_address(text)}")
    scheme, mark, _ = text.partition("://")
    if not mark:
        return _check_scp(text, schemes)
    if scheme.lower() not in schemes:
        raise BadReferenceError(f"{scheme} is not among {', '.join(schemes)}: {show_address(text)}", code="bad-scheme")
    if not _is_azure_page(text):
        _refuse_secret(text)
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise BadReferenceError(f"this is no address: {show_address(text)}") from None
    if host.startswith("-"):
        raise BadReferenceError(f"a host must not begin with '-': {show_address(text)}")
    if _HOST.fullmatch(host) is None:
        raise BadReferenceError(f"this is no host: {show_address(text)}")
    if any(name.startswith("-") and name != "-" for name in parts.path.split("/")):
        raise BadReferenceError(f"a name in an address must not begin with '-': {show_address(text)}")
    return text


def _refuse_dash(text: str, marks: str = "@:/") -> None:
    """Raise for an address with a part, behind one of ``marks``, that ssh or the git there could take for an option."""
    if any(part.startswith("-") for part in re.split(f"[{marks}]", text)):
        raise BadReferenceError(f"a name in an address must not begin with '-': {show_address(text)}")


def _check_scp(text: str, schemes: tuple[str, ...]) -> str:
    _refuse_dash(text)
    found = _SCP.fullmatch(text)
    harmless = found is not None and found["user"] and "::" not in text
    if not harmless or "ssh" not in schemes:
        raise BadReferenceError(f"this is no address of a repository: {show_address(text)}", code="bad-scheme")
    return text


def _refuse_secret(text: str) -> None:
    """Raise ``BadReferenceError`` for an address with a user (but that of ssh), a password or a query."""
    if hide_secrets(text) != text:
        _refuse_dash(text, "@#")  # an option reads like a password (``git@-oProxyCommand=x``), and is the worse of both
        message = f"an address must not hold a user, a password or a query: {show_address(text)}"
        raise BadReferenceError(message, code="secret-in-address")


def _check_subpath(path: str) -> str:
    if not path:
        return ""
    try:
        return "/".join(split_relative_path(path))
    except PathTraversalError as error:
        raise BadReferenceError(error.message) from None


def _check_skill_name(name: str) -> str:
    if not is_usable_name(name):
        raise BadReferenceError(f"{show_address(name)} is no name of a skill")
    return name


def _to_folder_name(name: str) -> str:
    """A name for a folder: what an address has, with odd characters replaced."""
    cleaned = re.sub(r"[^A-Za-z0-9._-]+", "-", unquote(name)).strip(".-")
    if not is_safe_part(cleaned):
        raise BadReferenceError(f"{show_address(name)} cannot name a folder")
    return cleaned
