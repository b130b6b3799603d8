"""The skills of a published site as a source: each archive is fetched when its skill is activated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from prowess.addresses.source_spec import parse_source
from prowess.errors import FetchError, Issue, PolicyError, ResourceNotFoundError, SkillError, SourceError
from prowess.fetch.cache import Cache
from prowess.fetch.cached_fetcher import CachedFetcher
from prowess.fetch.client import Fetcher
from prowess.fetch.stores import open_store
from prowess.fetch.url_policy import UrlPolicy, check_headers
from prowess.format.frontmatter.fields import Frontmatter
from prowess.format.head import LoadPolicy
from prowess.format.rules import field_issues
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE
from prowess.policy.files import current_policy
from prowess.policy.rules import to_address
from prowess.skills.catalog import Catalog
from prowess.skills.explanation import Place
from prowess.skills.remote_files import RemoteFiles
from prowess.skills.skill import make_remote_skill
from prowess.skills.skill_files import SkillLocation
from prowess.sources.fetched import FetchedSource
from prowess.sources.published.reader import PublishedSite, StoreSite, WebSite, read_plain_folder
from prowess.text.redaction import show_address

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from prowess.fetch.stores import SiteStore
    from prowess.files.write import NewFile
    from prowess.limits import Limits
    from prowess.skills.skill import Skill
    from prowess.sources.published.documents import ListedSkill
    from prowess.sources.published.reader import Selection


def open_site(
    address: str,
    *,
    local: bool = False,
    allowed: UrlPolicy = UrlPolicy(),  # noqa: B008 - a frozen default
    headers: Mapping[str, str] | None = None,
    allow_rollback: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> PublishedSite:
    """Return the site at an address; nothing is read yet.

    Raises ``FetchError`` for an address that may not be asked.
    """
    if local or not address.startswith(("https://", "http://")):
        files = StoreSite(open_store(address, local=local), limits, cached=not local)
        return PublishedSite(files, limits, allow_rollback=allow_rollback)
    fetcher = Fetcher(address, allowed, limits, check_headers(headers))
    downloads = CachedFetcher(fetcher, Cache(), limits, allow_rollback=allow_rollback)
    return PublishedSite(WebSite(address.rstrip("/"), downloads), limits, allow_rollback=allow_rollback)


class _PlainStoreSource(FetchedSource):
    """The folders of skills below a prefix of an object store, fetched whole."""

    kind = "site"

    def __init__(self, store: SiteStore, limits: Limits) -> None:
        super().__init__(store.address, missing="error", limits=limits)
        self._store, self._limits = store, limits
        self._fetched: tuple[NewFile, ...] = ()

    def resolve(self) -> str:
        state, self._fetched = read_plain_folder(self._store, self._limits)
        return state

    def read_files(self, state: str) -> tuple[NewFile, ...]:  # noqa: ARG002 - read with the state, at one time
        return self._fetched


class SiteSource:
    """The skills of a site at one version or alias."""

    def __init__(
        self,
        address: str,
        ref: str = "",
        *,
        allowed: UrlPolicy = UrlPolicy(),  # noqa: B008 - a frozen default
        headers: Mapping[str, str] | None = None,
        missing: Literal["ignore", "error"] = "ignore",
        allow_rollback: bool = False,
        limits: Limits | None = None,
    ) -> None:
        spec = parse_source(address)
        if spec.kind == "index":
            spec = parse_source(f"site:{address}")
        if spec.kind not in {"site", "folder"}:
            raise SourceError(f"{show_address(address)} is not the address of a published site", code="bad-address")
        if ref and spec.ref and ref != spec.ref:
            raise SourceError(f"{show_address(address)} names a version already, and ref is another: {ref!r}")
        if missing not in {"ignore", "error"}:
            raise SourceError(f"missing must be 'ignore' or 'error', not {missing!r}")
        self._spec, self._ref, self._missing = spec, ref or spec.ref, missing
        self._limits = limits or DEFAULT_LIMITS
        self._options = {"allowed": allowed, "headers": headers, "allow_rollback": allow_rollback}

    def __repr__(self) -> str:
        """Show the address and the version."""
        return f"Source.site({show_address(self._spec.address)}, {self._ref!r})"

    def load(self) -> Catalog:
        """Return the skills that the site has now under the version or the alias.

        Raises ``PolicyError`` for an address that the policy does not list, and ``FetchError`` when the site cannot be
        read and ``missing`` is ``"error"``.
        """
        spec = self._spec
        address = to_address(spec.address) if spec.local else spec.address
        policy = current_policy()
        policy.check_source(address)
        try:
            site = open_site(spec.address, local=spec.local, limits=self._limits, **self._options)  # type: ignore[arg-type]
            if site.is_plain_store(self._ref):
                return _PlainStoreSource(open_store(site.address), self._limits).load()
            selection = site.select(self._ref, spec.skills)
        except FetchError as error:
            if self._missing == "error":
                raise
            issue = Issue(error.code, "", error.message, error.path or address)
            return Catalog(issues=[issue], places=[Place(address, state="not fetched")])
        return make_site_catalog(site, selection, spec.skills)


def make_site_catalog(
    site: PublishedSite, selection: Selection, names: Collection[str] = (), *, prefetch: bool = False
) -> Catalog:
    """Return the skills that were selected, or those of some names; with ``prefetch``, their archives are fetched."""
    issues = [*selection.issues]
    wanted = []
    for one in selection.skills:
        if names and one.name not in names:
            continue
        try:  # the site says the digest, so that nothing is fetched to know it
            _check_revoked(site, one)
            wanted.append(one)
        except PolicyError as error:
            issues.append(Issue(error.code, one.name, error.message, site.address))
    for one in wanted if prefetch else ():
        try:
            site.read_files(one)
        except SkillError as error:
            issues.append(Issue(error.code, "", f"cannot be fetched: {error.message}", site.address, 0, "warning"))
    skills = [make_site_skill(site, one) for one in wanted]
    return Catalog(skills, issues=issues, places=[Place(site.address, found=len(skills))])


def _check_revoked(site: PublishedSite, listed: ListedSkill) -> None:
    current_policy().check_revoked(listed.name, listed.tree, to_address(site.address), listed.version)


def make_site_skill(site: PublishedSite, listed: ListedSkill) -> Skill:
    """Return a skill of a site, whose files are fetched when one of them is read."""
    front = Frontmatter(name=listed.name, description=listed.description)
    files = _SiteFiles(site, listed)
    virtual = f"{site.address.partition('://')[2] or site.address}/{listed.name}"
    home = SkillLocation(
        file=SKILL_FILE, policy=LoadPolicy(limits=files.limits), origin="url", virtual_path=virtual, files=files
    )
    return make_remote_skill(home, front, tuple(field_issues(front, mode="lenient", path=files.location)))


class _SiteFiles(RemoteFiles):
    """The files of one version of a skill: the list has their names, the archive their bytes."""

    def __init__(self, site: PublishedSite, listed: ListedSkill) -> None:
        self._site, self._listed = site, listed

    @property
    def location(self) -> str:
        return f"{self._site.address}/{self._listed.name}/{self._listed.version}/{SKILL_FILE}"

    @property
    def state(self) -> str:
        return f"sha256:{self._listed.archive}"

    @property
    def limits(self) -> Limits:
        return self._site.limits

    def known_files(self) -> tuple[str, ...]:
        return tuple(self._listed.files)

    def files(self) -> tuple[str, ...]:
        return tuple(self._listed.files)

    def read(self, path: str) -> bytes:
        # Unpacked at each read, as other archives are: the cache has the packed bytes.
        for file in self.read_all():
            if file.path == path:
                return file.content
        raise ResourceNotFoundError(f"no file {path!r}", path)

    def read_all(self) -> tuple[NewFile, ...]:
        _check_revoked(self._site, self._listed)
        return self._site.read_files(self._listed)

    def digest(self) -> str:
        # Known before anything is fetched; what is fetched is compared with it.
        return self._listed.tree
