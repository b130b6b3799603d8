"""A search for skills over several indexes at once: sites that publish skills, and repositories.

The indexes are fetched and searched here, so the words of a query stay on this machine. The names and descriptions of
the skills of a repository are cached under its commit: a commit never changes, so none is fetched twice.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import InstallError, Issue, SkillError, SourceError
from prowess.fetch.cache import Cache, CacheRecord
from prowess.files.syscalls import wrap_os_errors
from prowess.install.fetch_source import STALE_CODES, load_site_catalog, select_stale_issues
from prowess.install.source_survey import survey_source
from prowess.install.typed_source import parse_typed_source
from prowess.limits import MAX_DESCRIPTION_LENGTH
from prowess.names import SKILL_FILE
from prowess.progress_steps import report_steps
from prowess.search.terms import tags_of
from prowess.text.redaction import hide_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.addresses.source_spec import SourceSpec
    from prowess.install.fetch_source import SourceAccess
    from prowess.install.source_tree import SourceTree
    from prowess.limits import Limits
    from prowess.search.terms import Searchable

_CACHE_KEY = "prowess-skills-1:{address}#{commit}:{subpath}"
"""The cache key for the skills of a commit; the number changes when other fields of a skill are cached."""


@dataclass(frozen=True, slots=True)
class IndexHit:
    """A skill of an index that fits a query; ``install(index, select=name)`` installs it."""

    name: str
    description: str
    index: str
    """The index as the caller named it, which is also the source to install from."""
    score: float


@dataclass(frozen=True, slots=True)
class IndexSearch:
    """The result of a search over indexes."""

    hits: tuple[IndexHit, ...]
    unanswered: tuple[Issue, ...]
    """The indexes that did not answer, each with the reason; ``path`` is the index as the caller named it."""
    issues: tuple[Issue, ...]
    """What is wrong in indexes that did answer."""
    skills: int
    """How many skills were searched."""
    fitting: int
    """How many of them fit the query; ``hits`` are the best of these."""


class ListedSkill(NamedTuple):
    """The fields of a skill in an index that are searched and shown."""

    name: str
    description: str
    tags: tuple[str, ...] = ()
    address: str = ""

    @property
    def metadata(self) -> Mapping[str, str]:
        """An empty mapping: the tags of the metadata are in ``tags`` already."""
        return {}


def search_indexes(query: str, indexes: Sequence[str], access: SourceAccess, limit: int) -> IndexSearch:
    """Ask every index, and rank the skills of all of them together.

    An index that cannot be asked is in ``unanswered``. Raises ``SourceError`` (``too-many-indexes``) for more than
    ``Limits.max_indexes``.
    """
    from prowess.search.ranking import rank_listing

    addresses = list(dict.fromkeys(indexes))
    if len(addresses) > access.limits.max_indexes:
        raise SourceError(
            f"{len(addresses)} indexes are more than max_indexes ({access.limits.max_indexes})", code="too-many-indexes"
        )
    skills: list[ListedSkill] = []
    unanswered: list[Issue] = []
    issues: list[Issue] = []
    for address in report_steps(addresses, hide_secrets):
        try:
            listed, noticed = _ask_index(address, access)
        except SkillError as error:
            unanswered.append(Issue(error.code, "", error.message, hide_secrets(address), 0, "warning"))
            continue
        skills += (skill._replace(address=address) for skill in listed)
        # When a site does not answer, an old copy of its index is searched: it has hits, and counts as unanswered.
        unanswered += (
            Issue(issue.code, issue.field, issue.message, hide_secrets(address), 0, "warning")
            for issue in noticed
            if issue.code in STALE_CODES
        )
        issues += (issue for issue in noticed if issue.code not in STALE_CODES)
    ranked = rank_listing(skills, query, access.limits)
    best = ((skills[place], score) for place, score in ranked[: max(limit, 0)])
    hits = tuple(IndexHit(skill.name, skill.description, skill.address, score) for skill, score in best)
    return IndexSearch(hits, tuple(unanswered), tuple(issues), len(skills), len(ranked))


class _IndexListing(NamedTuple):
    """The skills of an index, and what is wrong in it."""

    skills: list[ListedSkill]
    issues: tuple[Issue, ...] = ()


def _ask_index(address: str, access: SourceAccess) -> _IndexListing:
    """Return the skills of one index, or those that its address chooses.

    Raises ``SkillError`` when it does not answer.
    """
    spec = parse_typed_source(address)
    listing = _list_index(spec, access)
    return listing._replace(skills=[skill for skill in listing.skills if not spec.skills or skill.name in spec.skills])


def _list_index(spec: SourceSpec, access: SourceAccess) -> _IndexListing:
    if spec.kind in {"index", "site"}:
        catalog = load_site_catalog(spec, access)
        issues = (*catalog.failures, *select_stale_issues(catalog.issues))
        return _IndexListing([_to_listed_skill(skill, access.limits) for skill in catalog.skills], issues)
    if spec.kind != "git":
        # A folder or an archive has no commit under which it could be cached.
        with wrap_os_errors(), access.open_source(spec) as source_files:
            return _list_skills(source_files, spec, access.limits)
    cache, remote = Cache(), access.remote_for(spec)
    # Before the cache is read: an address that is not allowed is refused even when its skills are cached.
    remote.check_address()
    cached = _load_listing(cache, _cache_key(spec, remote.resolve_ref(spec.ref)), access.limits)
    if cached is not None:
        return cached
    with wrap_os_errors(), access.open_source(spec) as source_files:
        listing = _list_skills(source_files, spec, access.limits)
    _store_listing(cache, _cache_key(spec, source_files.commit), listing)
    return listing


def _to_listed_skill(skill: Searchable, limits: Limits) -> ListedSkill:
    """Return a skill as it is searched and shown.

    Its description is cut to the length that the specification allows.
    """
    return ListedSkill(skill.name, skill.description[:MAX_DESCRIPTION_LENGTH], tags_of(skill, limits))


# -- repositories, folders and archives --------------------------------------------------------------------------------


def _list_skills(source: SourceTree, spec: SourceSpec, limits: Limits) -> _IndexListing:
    """Return the skills of a source, as an install would find them, and what is wrong with others."""
    # Counted by their names before any is read: reading costs time and memory for each.
    if sum(path.rpartition("/")[2] == SKILL_FILE for path in source.paths) > limits.max_index_entries:
        raise InstallError(
            f"the source has more than max_index_entries ({limits.max_index_entries}) skills", code="too-many-entries"
        )
    survey = survey_source(source, spec, limits)
    skills = [_to_listed_skill(skill.document.front, limits) for skill in survey.skills if skill.is_default]
    return _IndexListing(
        skills, tuple(_to_issue(issue.code, issue.field, issue.message, issue.path) for issue in survey.issues)
    )


def _to_issue(code: str, field: str, message: str, path: str) -> Issue:
    """What is wrong with a skill of an index, as a warning with the fields that are cached."""
    return Issue(code, field, message, path, 0, "warning")


# -- the cache of commits ----------------------------------------------------------------------------------------------


def _cache_key(spec: SourceSpec, commit: str) -> str:
    return _CACHE_KEY.format(address=spec.address, commit=commit, subpath=spec.subpath)


def _store_listing(cache: Cache, key: str, listing: _IndexListing) -> None:
    """Cache the skills of a commit for the next search."""
    skills = [(skill.name, skill.description, skill.tags) for skill in listing.skills]
    issues = [(issue.code, issue.field, issue.message, issue.path) for issue in listing.issues]
    data = json.dumps({"skills": skills, "issues": issues}).encode()
    cache.write_record(CacheRecord(key, key, cache.write(data), len(data), time.time(), 0))


def _load_listing(cache: Cache, key: str, limits: Limits) -> _IndexListing | None:
    """Return the skills of a commit from the cache; ``None`` when they are not cached, or the cache is damaged."""
    record = cache.read_record(key)
    data = cache.read(record.digest, limits.max_index_bytes) if record is not None else None
    if data is None:
        return None
    try:
        rows = json.loads(data)
        skills = [ListedSkill(str(name), str(text), tuple(map(str, tags))) for name, text, tags in rows["skills"]]
        return _IndexListing(skills, tuple(_to_issue(*map(str, row)) for row in rows["issues"]))
    except (ValueError, TypeError, KeyError, RecursionError):  # the source is asked again
        return None
