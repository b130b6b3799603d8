"""The source of skills that a person types, parsed into its kind, its address and the wanted part of it.

``parse_source`` tries these forms, and the first that matches wins:

1. ``@org/name[@version]``;
2. a path (``./x``, ``../x``, ``/x``, ``~/x``, ``.``, or one with a drive), with a ``#`` for a local repository;
3. a published site: ``s3://``, ``gs://`` or ``az://``, or a path or ``https://`` behind ``site:``;
4. ``oci://host/repository[:tag][@sha256:digest]``;
5. ``github:owner/repo`` and ``gitlab:owner/repo``;
6. a page of GitHub, GitLab or Azure that shows a folder;
7. the address of an archive;
8. any other address of git (``.git``, ``ssh://``, ``git@host:path``);
9. any other ``https://`` address, where a well-known index is expected;
10. ``owner/repo[/sub/path]`` on GitHub.

After each form but the first, ``[#REF][:SUBFOLDER][@SKILL,…]`` may follow: see ``source_grammar``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from prowess.addresses.skill_ref import SkillRef, check_part, check_ref, check_version, is_commit, to_folder_name
from prowess.addresses.source_grammar import (
    ARCHIVE_SUFFIXES,
    AZURE_REPOSITORY,
    DOWNLOAD_URL,
    SourceParts,
    check_address,
    is_azure_page,
    is_shorthand,
    match_scp_address,
    read_parts,
    refuse_secret,
    split_address,
    split_path,
    write_parts,
)
from prowess.errors import BadReferenceError, PathTraversalError
from prowess.format.rules import is_usable_name
from prowess.names import SKILL_FILE, split_relative_path
from prowess.text.redaction import is_path, show_address
from prowess.text.versions import LEADING_RANGE, is_range

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from urllib.parse import SplitResult

SourceKind = Literal["git", "folder", "archive", "index", "site", "oci"]
VERSIONED_KINDS = frozenset(("git", "site", "oci"))
"""The kinds of sources that keep their versions: each can be had again by what the lock file records."""
STORE_SCHEMES = ("s3", "gs", "az")
SITE_PREFIX = "site:"
MAX_ADDRESS_CHARS = 2_000
# All that parse: which of them may be fetched is decided where they are fetched (``schemes`` of ``Installer``).
_KNOWN_SCHEMES = ("https", "http", "ssh", "git", "file")
_GITHUB = re.compile(
    r"https://(?:www\.)?github\.com/([^/]+)/([^/]+?)(?:\.git)?(?:/(?:tree|blob)/([^/]+)(?:/(.*?))?)?/?"
)
_GITLAB = re.compile(r"(https://[^/]+/.+?)/-/(?:tree|blob)/([^/]+)(?:/(.*?))?/?")
_GITLAB_PROJECT = re.compile(r"https://gitlab\.com/[^/]+/.+?/?")
_SLASH_BEFORE_DRIVE = re.compile(r"\A/(?=[A-Za-z]:[\\/])")
_OCI = re.compile(
    r"(?P<address>oci://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?/[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?(?:@sha256:(?P<digest>[0-9a-f]{64}))?(?P<tail>[#@].*)?"
)
_SHORTHAND = re.compile(r"([A-Za-z0-9._-]+)/([A-Za-z0-9._-]+)((?:/[^@/]+)*)/?")


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A source of skills: its kind, its address, and which part of it is wanted."""

    kind: SourceKind
    address: str
    """A git address, a path, or the address of an archive, an index, a published site or an OCI repository."""
    org: str
    name: str
    ref: str = ""
    subpath: str = ""
    skills: tuple[str, ...] = ()
    local: bool = False
    """Whether the address is a path of this machine."""
    base: str = ""
    """The folder that a relative path starts from, where that is not the working folder."""

    def __post_init__(self) -> None:
        """Raise ``BadReferenceError`` for an address with a secret: addresses are shown, and recorded in lock files."""
        if not self.local:
            refuse_secret(self.address)

    @property
    def full_name(self) -> str:
        """The owner and the name as ``org/name``, which is the folder below an install base."""
        return f"{self.org}/{self.name}"

    def __str__(self) -> str:
        """Return ``address[#ref][:subpath][@skill,…]``, which ``parse_source`` reads as this source again."""
        if self.kind == "oci":
            return self._write_oci()
        if self.kind == "site" and not self.address.startswith(tuple(f"{scheme}://" for scheme in STORE_SCHEMES)):
            return f"{SITE_PREFIX}{self.address}{self._write_tail(self.ref)}"
        needs_hash = self.local and self.kind == "git" and _kind_of_path(self.address) != "git"
        plain = self.address + write_parts(self.ref, self.subpath, self.skills, marked=needs_hash)
        if self.local or self.ref or split_address(plain)[0] == self.address:
            return plain
        # Without a "#" a part would be read as a letter of the address.
        return self.address + write_parts(self.ref, self.subpath, self.skills, marked=True)

    def _write_tail(self, ref: str) -> str:
        # Behind a "#", so that no part is read as a letter of the address.
        return write_parts(ref, self.subpath, self.skills, marked=bool(self.subpath or self.skills))

    def _write_oci(self) -> str:
        if is_commit(self.ref):
            return f"{self.address}@sha256:{self.ref}{self._write_tail('')}"
        is_tag = self.ref and not is_range(self.ref)
        return (
            f"{self.address}:{self.ref}{self._write_tail('')}" if is_tag else self.address + self._write_tail(self.ref)
        )


def parse_source(text: str, *, github: str = "", is_there: Callable[[str], bool] | None = None) -> SourceSpec:
    """Return the source that ``text`` names.

    Raises ``BadReferenceError`` when it names none, or one that could do harm.

    ``github``: a further host whose addresses are read like those of github.com (an enterprise server).
    ``is_there``: says whether a path exists on this machine. If ``./my@folder`` exists, then it is that folder.
    Otherwise, and without ``is_there``, it is the skill ``folder`` of ``./my``.
    """
    if text.startswith("-"):
        raise BadReferenceError(
            f"a source must not begin with '-' (write ./ before a folder's name): {show_address(text)}"
        )
    if not text.strip() or len(text) > MAX_ADDRESS_CHARS:
        raise BadReferenceError(f"this names no source of skills: {show_address(text)}")
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):  # noqa: PLR2004 - control characters
        raise BadReferenceError(f"an address must not hold control characters: {show_address(text)}")
    if text.startswith("@"):
        return spec_from_ref(SkillRef.parse(text))
    known = _parse_published(text, is_there) or _parse_local(text, is_there)
    if known is not None:
        return known
    if not is_shorthand(text) and not is_azure_page(text.partition("#")[0]):
        refuse_secret(text)
    try:
        source, parts = split_address(text, github)
    except BadReferenceError:
        refuse_secret(text)  # first: the message would show what may be a piece of a password
        raise
    # In a shorthand "a/b:c@d" is a folder and a skill, not a password. So its parts are checked like a fragment.
    _refuse_secret_in(source.partition("?")[0] if is_azure_page(source) else source, text[len(source) + 1 :])
    return _with_source_parts(_parse_remote(source, github), parts)


def _refuse_secret_in(address: str, tail: str) -> None:
    """Raise ``BadReferenceError`` for a secret in an address, or in the parts behind it."""
    tail = LEADING_RANGE.sub("", tail, count=1)  # its "=" does not make it a query
    refuse_secret(f"{address}#{re.sub('[#:@]', '', tail)}")


def spec_from_ref(ref: SkillRef) -> SourceSpec:
    """Return the source of a reference: a repository on GitHub."""
    return SourceSpec("git", ref.git_url, ref.org, ref.name, ref.version)


def with_skills(spec: SourceSpec, skills: Sequence[str]) -> SourceSpec:
    """Return ``spec`` with these skills as the wanted ones, or ``spec`` itself when ``skills`` is empty.

    Raises ``BadReferenceError`` for a string that cannot be the name of a skill.
    """
    for name in skills:
        if not is_usable_name(name):
            raise BadReferenceError(f"{show_address(name)} is not the name of a skill")
    return replace(spec, skills=tuple(skills)) if skills else spec


def with_parts(spec: SourceSpec, *, ref: str = "", subpath: str = "", skills: Sequence[str] = ()) -> SourceSpec:
    """Return the source with a version, a folder and skills that were given beside its address; empty ones are ignored.

    Raises ``BadReferenceError``: with the code ``contradicting-source`` when the address names other ones, and for a
    version of an archive, because only a repository has versions.
    """
    if ref:
        spec = as_repository(spec)
        _refuse_contradiction("version", spec.ref, check_ref(ref))
        spec = replace(spec, ref=ref)
    if subpath:
        folder = _check_subpath(subpath)
        _refuse_contradiction("folder", spec.subpath, folder)
        spec = replace(spec, subpath=folder)
    if skills and {*skills} != {*spec.skills}:
        _refuse_contradiction("skill", ", ".join(spec.skills), ", ".join(skills))
        spec = with_skills(spec, tuple(dict.fromkeys(skills)))
    return spec


def _refuse_contradiction(what: str, in_address: str, given: str) -> None:
    if in_address and in_address != given:
        message = f"the address names the {what} {in_address!a}, and {given!a} is given beside it"
        raise BadReferenceError(message, code="contradicting-source")


def as_repository(spec: SourceSpec) -> SourceSpec:
    """Return the source as one that has versions.

    A path, or the address of a possible index, is a git repository once a version is named. Raises
    ``BadReferenceError`` for an archive.
    """
    if spec.kind == "folder":
        return replace(spec, kind="git")
    if spec.kind == "index":
        parts = urlsplit(spec.address)
        repository = _git_spec(spec.address, parts.hostname or "", parts.path)
        return replace(spec, kind="git", org=repository.org, name=repository.name)
    if spec.kind not in VERSIONED_KINDS:
        raise BadReferenceError(f"only a repository has versions, and this is not one: {show_address(spec.address)}")
    return spec


def _with_source_parts(spec: SourceSpec, parts: SourceParts) -> SourceSpec:
    return with_parts(spec, ref=parts.ref, subpath=parts.folder, skills=parts.skills)


# -- published skills --------------------------------------------------------------------------------------------------


def _parse_published(text: str, is_there: Callable[[str], bool] | None) -> SourceSpec | None:
    scheme = text.partition("://")[0].lower()
    if scheme == "oci":
        return _parse_oci(text)
    if not text.startswith(SITE_PREFIX):
        return _parse_site(text, STORE_SCHEMES) if scheme in STORE_SCHEMES else None
    rest = text.removeprefix(SITE_PREFIX)
    if not is_path(rest) and not is_path(re.split("[#:@]", rest, maxsplit=1)[0]):
        return _parse_site(rest, (*STORE_SCHEMES, "https", "http"))
    path, parts = split_path(rest, is_there)
    return _with_source_parts(SourceSpec("site", path, "local", _base_name(path), local=True), parts)


def _parse_site(text: str, schemes: tuple[str, ...]) -> SourceSpec:
    source, parts = split_address(text)
    _refuse_secret_in(source, text[len(source) + 1 :])
    address = check_address(source, schemes).rstrip("/")
    url = urlsplit(address)
    host = url.hostname or ""
    spec = SourceSpec("site", address, to_folder_name(host), to_folder_name(_base_name(url.path) or host))
    return _with_source_parts(spec, parts)


def _parse_oci(text: str) -> SourceSpec:
    match = _OCI.fullmatch(text)
    if match is None:
        refuse_secret(text)
        wanted = "oci://HOST/REPOSITORY[:TAG][@sha256:DIGEST], in lower case"
        raise BadReferenceError(f"this is not {wanted}: {show_address(text)}")
    address, tag, digest, tail = match.group("address", "tag", "digest", "tail")
    _refuse_secret_in(address, (tail or "")[1:])
    url = urlsplit(check_address(address, ("oci",)))
    names = url.path.strip("/").split("/")
    org = names[-2] if len(names) > 1 else url.hostname or ""
    spec = SourceSpec("oci", address, to_folder_name(org), to_folder_name(names[-1]), digest or tag or "")
    return _with_source_parts(spec, read_parts(tail or "", text))


# -- this machine ------------------------------------------------------------------------------------------------------


def _parse_local(text: str, is_there: Callable[[str], bool] | None) -> SourceSpec | None:
    if text.lower().startswith("file://"):
        return _parse_file_url(text, is_there)
    if not is_path(text) and not is_path(re.split("[#:@]", text, maxsplit=1)[0]):
        return None
    path, parts = split_path(text, is_there)
    spec = SourceSpec(_kind_of_path(path), path, "local", _base_name(path), local=True)
    if parts.has_hash and spec.kind == "folder":  # a "#" makes a path a repository, even where no version follows
        spec = replace(spec, kind="git")
    return _with_source_parts(spec, parts)


def _parse_file_url(text: str, is_there: Callable[[str], bool] | None) -> SourceSpec:
    refuse_secret(text)
    host, slash, rest = text[len("file://") :].partition("/")
    if host.lower() not in {"", "localhost"}:
        raise BadReferenceError(f"a file address has no host: {show_address(text)}", code="bad-scheme")
    if not rest:
        raise BadReferenceError(f"the address names no folder: {show_address(text)}")
    confirmed = None if is_there is None else lambda encoded: is_there(_decode_path(encoded))
    encoded, parts = split_path(slash + rest, confirmed)
    path = _decode_path(encoded)
    if "\0" in path:  # encoded; other control characters may be in the names of folders
        raise BadReferenceError(f"a path must not hold NUL: {show_address(text)}")
    return _with_source_parts(SourceSpec("git", path, "local", _base_name(path), local=True), parts)


def _decode_path(encoded: str) -> str:
    """Return the path that a file address names. The slash before a drive (``file:///C:/x``) is not part of it."""
    return _SLASH_BEFORE_DRIVE.sub("", unquote(encoded))


def _kind_of_path(path: str) -> SourceKind:
    if path.rstrip("/\\").endswith(".git"):
        return "git"
    return "archive" if path.lower().endswith(ARCHIVE_SUFFIXES) else "folder"


def _base_name(path: str) -> str:
    """Return the last name of a path without the ending of a format; ``""`` where only the disk knows it (``.``)."""
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
        return _parse_url(check_address(text, _KNOWN_SCHEMES), github)
    if ":" not in text:
        return _parse_shorthand(text, "github.com")
    scp = match_scp_address(text)
    return _git_spec(check_address(text, ("ssh",)), scp["host"], scp["path"])


def _parse_url(text: str, github: str) -> SourceSpec:
    parts = urlsplit(text)
    netloc, host = parts.netloc, parts.hostname or ""
    if github and netloc.lower() == github.lower() and text.startswith("https://"):
        on_github = f"https://github.com{text.removeprefix(f'https://{netloc}')}"
        if _GITHUB.fullmatch(on_github):
            spec = _parse_github_page(on_github)
            return replace(spec, address=spec.address.replace("https://github.com", f"https://{netloc}", 1))
    for pattern, parse_page in _PAGE_PARSERS:
        if pattern.fullmatch(text):
            return parse_page(text)
    if DOWNLOAD_URL.fullmatch(text) or parts.path.lower().endswith(ARCHIVE_SUFFIXES):
        return SourceSpec("archive", text, to_folder_name(host), to_folder_name(_base_name(parts.path) or host))
    if parts.scheme in {"ssh", "git"} or parts.path.rstrip("/").endswith(".git"):
        return _git_spec(text, host, parts.path)
    if AZURE_REPOSITORY.fullmatch(text.partition("?")[0]):
        return _parse_azure_page(parts)
    return SourceSpec("index", text, to_folder_name(host), to_folder_name(_base_name(parts.path) or host))


def _git_spec(address: str, host: str, path: str) -> SourceSpec:
    """Return the source of a repository; the last two names of its path are the folder that it is installed in.

    Raises ``BadReferenceError`` when the path names nothing.
    """
    names = [name for name in path.removesuffix("/").removesuffix(".git").split("/") if name not in {"", "~"}]
    if not names:
        raise BadReferenceError(f"the address names no repository: {show_address(address)}")
    org = names[-2] if len(names) > 1 else host
    return SourceSpec("git", address, to_folder_name(org), to_folder_name(names[-1]))


def _parse_github_page(text: str) -> SourceSpec:
    match = _GITHUB.fullmatch(text)
    assert match is not None
    org, name, ref, path = match.groups(default="")
    return _page_spec(f"https://github.com/{check_part(org)}/{check_part(name)}", org, name, (unquote(ref), path))


def _parse_gitlab_page(text: str) -> SourceSpec:
    match = _GITLAB.fullmatch(text)
    assert match is not None
    address, ref, path = match.groups(default="")
    names = [to_folder_name(name) for name in urlsplit(address).path.removesuffix(".git").split("/") if name]
    if len(names) < 2:  # noqa: PLR2004 - a group and a project
        raise BadReferenceError(f"the address names no repository: {show_address(text)}")
    return _page_spec(address, names[-2], names[-1], (unquote(ref), path))


def _parse_gitlab_project(text: str) -> SourceSpec:
    parts = urlsplit(text)
    return _git_spec(text.rstrip("/"), parts.hostname or "", parts.path)


def _page_spec(address: str, org: str, name: str, shown: tuple[str, str]) -> SourceSpec:
    """Return the source that a page of a repository shows: a folder, or the folder of a file, at a version."""
    ref, path = shown
    subpath = unquote(path).removesuffix(SKILL_FILE).rstrip("/")
    spec = SourceSpec("git", address, check_part(org), check_part(name), subpath=_check_subpath(subpath))
    return replace(spec, ref=check_version(ref)) if ref else spec


def _parse_azure_page(parts: SplitResult) -> SourceSpec:
    query = parse_qs(parts.query)
    spec = _git_spec(
        f"{parts.scheme}://{parts.netloc}{parts.path}", parts.hostname or "", parts.path.replace("/_git/", "/")
    )
    version = next(iter(query.get("version", [])), "")
    folder = next(iter(query.get("path", [])), "").strip("/")
    # Azure writes a letter pair before the version: G with B for a branch, T for a tag, C for a commit.
    ref = check_version(version[2:]) if version[:2] in {"GB", "GT", "GC"} else ""
    return replace(spec, ref=ref, subpath=_check_subpath(folder))


# The order counts: every page of a folder on gitlab.com also has the shape of a project there.
_PAGE_PARSERS = ((_GITHUB, _parse_github_page), (_GITLAB, _parse_gitlab_page), (_GITLAB_PROJECT, _parse_gitlab_project))


def _parse_shorthand(text: str, host: str) -> SourceSpec:
    match = _SHORTHAND.fullmatch(text)
    if match is None:
        raise BadReferenceError(f"this names no source of skills: {show_address(text)}")
    org, name, path = match.groups(default="")
    org, name = check_part(org), check_part(name.removesuffix(".git"))
    return SourceSpec("git", f"https://{host}/{org}/{name}", org, name, subpath=_check_subpath(path.strip("/")))


# -- checks of the parts -----------------------------------------------------------------------------------------------


def _check_subpath(path: str) -> str:
    if not path:
        return ""
    try:
        return "/".join(split_relative_path(path))
    except PathTraversalError as error:
        raise BadReferenceError(error.message) from None
