"""Skills looked for in several indexes at once: sites that publish skills, and repositories.

Indexes are fetched and compared here, so the words that somebody looks for stay on this machine. Of a repository the
names and descriptions of its skills are kept under its commit: a commit never changes, so none is fetched twice.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import InstallError, Issue, SkillError, SourceError
from prowess.fetch.cache import Cache, CacheRecord
from prowess.install.fetch_source import STALE_CODES, load_site_catalog
from prowess.install.plan import parse_typed_source
from prowess.install.system_errors import wrap_os_errors
from prowess.install.tree import survey_source
from prowess.limits import MAX_DESCRIPTION_LENGTH
from prowess.names import SKILL_FILE
from prowess.progress_steps import report_steps
from prowess.skills.search import SearchIndex, tags_of
from prowess.spec.redaction import hide_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.install.fetch_source import SourceAccess
    from prowess.install.tree import SourceFiles
    from prowess.limits import Limits
    from prowess.skills.search import Searchable
    from prowess.spec.source_spec import SourceSpec

_CACHE_KEY = "prowess-skills-1:{address}#{commit}:{subpath}"
"""Under which the skills of a commit are kept; the number changes with what is kept of them."""


@dataclass(frozen=True, slots=True)
class IndexHit:
    """A skill that an index has: how well it fits, and what to give to ``install`` with ``select=name``."""

    name: str
    description: str
    index: str
    """The index as it was named, which is also the source to install from."""
    score: float


@dataclass(frozen=True, slots=True)
class IndexSearch:
    """What a search over indexes gave."""

    hits: tuple[IndexHit, ...]
    unanswered: tuple[Issue, ...]
    """The indexes that did not answer, each with the reason; ``path`` is the index as it was named."""
    issues: tuple[Issue, ...]
    """What is wrong in indexes that did answer."""
    skills: int
    """How many skills were compared."""
    fitting: int
    """How many of them fit; ``hits`` are the best of these."""


class ListedSkill(NamedTuple):
    """What an index says of a skill, as far as it is searched and shown."""

    name: str
    description: str
    tags: tuple[str, ...] = ()
    address: str = ""

    @property
    def metadata(self) -> Mapping[str, str]:
        """Nothing: the tags in it are among ``tags`` already."""
        return {}


def search_indexes(query: str, indexes: Sequence[str], reach: SourceAccess, limit: int) -> IndexSearch:
    """Ask every index, and rank what all of them have together.

    Raises ``SourceError`` (``too-many-indexes``) for more than ``Limits.max_indexes``; whatever keeps one index from
    being asked is told in ``unanswered``.
    """
    wanted = list(dict.fromkeys(indexes))
    if len(wanted) > reach.limits.max_indexes:
        message = f"{len(wanted)} indexes are more than max_indexes ({reach.limits.max_indexes})"
        raise SourceError(message, code="too-many-indexes")
    skills: list[ListedSkill] = []
    unanswered: list[Issue] = []
    issues: list[Issue] = []
    for address in report_steps(wanted, hide_secrets):
        try:
            listed, noticed = _ask_index(address, reach)
        except SkillError as error:
            unanswered.append(Issue(error.code, "", error.message, hide_secrets(address), 0, "warning"))
            continue
        skills += (skill._replace(address=address) for skill in listed)
        # A copy of old stands in for a site that is away: it has hits, and did not answer all the same.
        unanswered += (_with_index(issue, address) for issue in noticed if issue.code in STALE_CODES)
        issues += (issue for issue in noticed if issue.code not in STALE_CODES)
    ranked = SearchIndex(skills).rank(query, len(skills))
    best = ranked[: max(limit, 0)]
    hits = tuple(IndexHit(skill.name, skill.description, skill.address, score) for skill, score in best)
    return IndexSearch(hits, tuple(unanswered), tuple(issues), len(skills), len(ranked))


def _with_index(issue: Issue, address: str) -> Issue:
    return Issue(issue.code, issue.field, issue.message, hide_secrets(address), 0, "warning")


class _IndexListing(NamedTuple):
    """The skills that an index has, and what is wrong in it."""

    skills: list[ListedSkill]
    issues: tuple[Issue, ...] = ()


def _ask_index(address: str, reach: SourceAccess) -> _IndexListing:
    """What one index has, or what its address chooses of it. Raises ``SkillError`` where it does not answer."""
    spec = parse_typed_source(address)
    listing = _list_index(spec, reach)
    skills = [skill for skill in listing.skills if not spec.skills or skill.name in spec.skills]
    return listing._replace(skills=skills)


def _list_index(spec: SourceSpec, reach: SourceAccess) -> _IndexListing:
    if spec.kind == "index":
        catalog = load_site_catalog(spec, reach)
        old_news = (issue for issue in catalog.issues if issue.code in STALE_CODES)
        return _IndexListing([_to_listed_skill(skill) for skill in catalog.skills], (*catalog.failures, *old_news))
    if spec.kind != "git":
        with wrap_os_errors(), reach.open_source(spec) as bundle:
            return _list_skills(bundle, spec, reach.limits)
    cache, remote = Cache(), reach.remote_for(spec)
    remote.check_address()  # what may not be asked is refused, whatever is kept of it
    kept = _load_listing(cache, _cache_key(spec, remote.resolve_ref(spec.ref)), reach.limits)
    if kept is not None:
        return kept
    with wrap_os_errors(), reach.open_source(spec) as bundle:
        listing = _list_skills(bundle, spec, reach.limits)
    _store_listing(cache, _cache_key(spec, bundle.commit), listing)
    return listing


def _to_listed_skill(skill: Searchable) -> ListedSkill:
    """A skill as it is searched and shown; a description is as long as the specification allows."""
    return ListedSkill(skill.name, skill.description[:MAX_DESCRIPTION_LENGTH], tags_of(skill))


# -- repositories, folders and archives --------------------------------------------------------------------------------


def _list_skills(bundle: SourceFiles, spec: SourceSpec, limits: Limits) -> _IndexListing:
    """The skills in what a source gave, as an install would find them; and what is wrong with others."""
    if sum(path.rpartition("/")[2] == SKILL_FILE for path in bundle.paths) > limits.max_index_entries:
        message = f"the source has more than max_index_entries ({limits.max_index_entries}) skills"
        raise InstallError(message, code="too-many-entries")
    survey = survey_source(bundle, spec, limits)
    skills = [_to_listed_skill(skill.document.front) for skill in survey.skills if skill.is_default]
    return _IndexListing(
        skills, tuple(_to_issue(issue.code, issue.field, issue.message, issue.path) for issue in survey.issues)
    )


def _to_issue(code: str, field: str, message: str, path: str) -> Issue:
    """What is wrong with a skill of an index: as much as is kept of it, and never a reason to stop."""
    return Issue(code, field, message, path, 0, "warning")


# -- what is kept of a commit ------------------------------------------------------------------------------------------


def _cache_key(spec: SourceSpec, commit: str) -> str:
    return _CACHE_KEY.format(address=spec.address, commit=commit, subpath=spec.subpath)


def _store_listing(cache: Cache, key: str, listing: _IndexListing) -> None:
    """Keep what a commit has for the next search."""
    skills = [(skill.name, skill.description, skill.tags) for skill in listing.skills]
    issues = [(issue.code, issue.field, issue.message, issue.path) for issue in listing.issues]
    data = json.dumps({"skills": skills, "issues": issues}).encode()
    cache.write_record(CacheRecord(key, key, cache.write(data), len(data), time.time(), 0))


def _load_listing(cache: Cache, key: str, limits: Limits) -> _IndexListing | None:
    """What a commit has, as an earlier search kept it; ``None`` where none did, or it is damaged."""
    kept = cache.read_record(key)
    data = cache.read(kept.digest, limits.max_index_bytes) if kept is not None else None
    if data is None:
        return None
    try:
        rows = json.loads(data)
        skills = [ListedSkill(str(name), str(text), tuple(map(str, tags))) for name, text, tags in rows["skills"]]
        return _IndexListing(skills, tuple(_to_issue(*map(str, row)) for row in rows["issues"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
