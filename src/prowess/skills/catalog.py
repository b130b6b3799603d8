"""The catalogue: an immutable set of skills by name, with every issue that was met while they were gathered."""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING, Literal, Self, overload

from prowess.arguments import check_name, check_number, check_text, raise_bad_argument
from prowess.errors import (
    MAX_LISTED_NAMES,
    DuplicateSkillError,
    FetchError,
    Issue,
    SkillValidationError,
    SourceError,
    UnknownSkillError,
)
from prowess.files.paths import show_path_argument
from prowess.names import SKILL_FILE
from prowess.skills.explanation import Explanation, Place, Shadowed, SkillScope

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from prowess.limits import Bound
    from prowess.literals import OnBadBytes, OnDuplicate, SearchMode, Semantic
    from prowess.search.encoder import Encoder
    from prowess.search.library_index import LibraryIndex
    from prowess.skills.search_library import SearchHits
    from prowess.skills.skill import LoadedSkill, Skill
    from prowess.skills.source_list import SkillSource

_NOT_PICKLED = frozenset(("__weakref__", "_index", "_lock"))
"""Slots that another process makes anew: neither a lock nor a database in memory can be pickled."""


class Catalog:
    """Skills by name. Iteration and every listing go by name; look-ups do not depend on how many there are.

    Immutable and safe to share between threads: a reload builds another. ``a | b`` merges, the left one winning.
    """

    __slots__ = (
        "__weakref__",
        "_by_name",
        "_index",
        "_issues",
        "_lock",
        "_maybe_identical",
        "_places",
        "_scan_issues",
        "_shadowed",
        "_skills",
    )

    def __init__(
        self,
        skills: Iterable[Skill] = (),
        on_duplicate: OnDuplicate = "first",
        *,
        issues: Iterable[Issue] = (),
        places: Iterable[Place] = (),
    ) -> None:
        """The ``skills``, each name once: the ``first`` wins, or the ``last``, or a repeat is an ``error``."""
        if on_duplicate not in {"first", "last", "error"}:
            raise SourceError(f"on_duplicate must be 'first', 'last' or 'error', not {on_duplicate!r}")
        if isinstance(skills, str | os.PathLike):
            remedy = f"pass prowess.scan({show_path_argument(skills)}) to look in a folder"
            raise_bad_argument("skills", "must be a list of prowess.Skill", skills, remedy)
        self._scan_issues = tuple(issues)
        self._places = tuple(places)
        self._by_name: dict[str, Skill] = {}
        self._skills: tuple[Skill, ...] | None = None
        self._issues: tuple[Issue, ...] | None = None
        self._index: LibraryIndex | None = None
        self._lock = Lock()
        self._maybe_identical: dict[str, Skill] = {}
        losers: list[tuple[Skill, str]] = []
        by_name = self._by_name
        for index, skill in enumerate(skills):
            # Discovery makes catalogues of thousands of skills (bench row "scan"): the private attribute saves a call,
            # and only a Skill has it, so no type needs to be checked. A path, for one, has a ``name`` too.
            try:
                first = by_name.setdefault(skill._name, skill)
            except AttributeError:
                raise_bad_argument(f"skills[{index}]", "must be a prowess.Skill", skill)
            if first is not skill:
                self._resolve_duplicate(first, skill, on_duplicate, losers)
        # Only now all winners are known: with "last", the winner of a name may have lost to a later skill itself.
        self._shadowed = tuple(
            Shadowed(skill.name, skill.location, by_name[skill.name].location, reason) for skill, reason in losers
        )

    def _resolve_duplicate(
        self, first: Skill, second: Skill, on_duplicate: OnDuplicate, losers: list[tuple[Skill, str]]
    ) -> None:
        """Keep one of two skills with the same name, and add the other to ``losers`` with the reason.

        Raises ``DuplicateSkillError`` where ``on_duplicate`` asks for it.
        """
        from prowess.skills import explanation

        explanation.check_server_labels(first, second)
        # One skill found twice, perhaps under two names for its folder, has one device and inode. Sizes and times do
        # not show it: those of two copies may be equal.
        if first.identity is not None and second.identity is not None and first.identity[:2] == second.identity[:2]:
            self._by_name[first.name] = first if on_duplicate == "first" else second
            return
        if on_duplicate == "error":
            if explanation.may_be_identical(first, second) and explanation.find_identical_copies(
                {first.name: first}, {second.location: second}
            ):
                return
            raise DuplicateSkillError(
                f"two skills are named {first.name!r}: {first.location} and {second.location}", second.location
            )
        winner, loser = (first, second) if on_duplicate == "first" else (second, first)
        self._by_name[winner.name] = winner
        if explanation.may_be_identical(winner, loser):  # hashed when somebody asks for ``shadowed``, and not before
            self._maybe_identical[loser.location] = loser
        is_project_over_user = winner.scope is SkillScope.PROJECT and loser.scope is SkillScope.USER
        reason = (
            "a project's skill wins over the user's" if is_project_over_user else f"the {on_duplicate} one found wins"
        )
        losers.append((loser, reason))

    # -- copied ------------------------------------------------------------------------------------------------------

    def __copy__(self) -> Self:
        """Itself: nobody can change it."""
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        """Itself: nobody can change it."""
        return self

    def __getstate__(self) -> dict[str, object]:
        """The slots that a pickle holds: neither the lock nor the search index, which is made again."""
        return {slot: getattr(self, slot) for slot in self.__slots__ if slot not in _NOT_PICKLED}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Set the slots that a pickle holds."""
        for slot, value in state.items():
            setattr(self, slot, value)
        self._index = None
        self._lock = Lock()

    @classmethod
    def from_sources(cls, sources: Iterable[SkillSource], on_duplicate: OnDuplicate = "first") -> Catalog:
        """Return the skills of several sources, in their order; ``preload`` of any copy of a name preloads the winner.

        A ``SourceError`` names the source that caused it by its place in the list. Two MCP servers of one label are
        such an error: what is known of the skills of one would be taken for the other's.
        """
        from prowess.skills import source_list

        catalogs = source_list.load_sources(sources)
        skills = _share_preload(skill for catalog in catalogs for skill in catalog.skills)
        return cls._join(skills, catalogs, on_duplicate)

    @classmethod
    def _join(
        cls, skills: Iterable[Skill], catalogs: Sequence[Catalog], on_duplicate: OnDuplicate = "first"
    ) -> Catalog:
        """A catalogue of ``skills`` that keeps the issues, places and lost copies of the ``catalogs`` they are from."""
        joined = cls(
            skills,
            on_duplicate,
            issues=(issue for catalog in catalogs for issue in catalog._scan_issues),
            places=(place for catalog in catalogs for place in catalog._places),
        )
        joined._shadowed = (*(lost for catalog in catalogs for lost in catalog._shadowed), *joined._shadowed)
        for catalog in catalogs:
            joined._maybe_identical |= catalog._maybe_identical
        return joined

    def map_skills(self, change: Callable[[Skill], Skill]) -> Catalog:
        """Return a catalogue where each skill is what ``change`` makes of it; names must stay as they are."""
        return self._join(map(change, self.skills), (self,))

    def without(self, refused: Mapping[str, Issue]) -> Catalog:
        """Return a catalogue without some skills, by name, each of which is an issue instead."""
        joined = self._join((skill for skill in self.skills if skill.name not in refused), (self,))
        joined._scan_issues += tuple(refused.values())
        return joined

    # -- looking up --------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name or self._find_by_written_name(name) is not None

    def __getitem__(self, name: str) -> Skill:
        """The skill with that name; ``UnknownSkillError`` (a ``KeyError``) lists those that exist, nearest first."""
        check_name(name, "catalog.skills is in order")
        skill = self.get(name)
        if skill is None:
            raise self.make_unknown_error(name, self._by_name, why=self._explain_absence(name))
        return skill

    def make_unknown_error(
        self, name: str, names: Iterable[str], most: int = MAX_LISTED_NAMES, why: str = ""
    ) -> UnknownSkillError:
        """Return the error for a name that no skill has. It lists ``names``, or, without any skill, where it looked."""
        if self._by_name:
            return UnknownSkillError(name, names, most, why)
        absent = [f"{path} does not exist" for path in self._missing_roots()[:1]]
        reasons = "; ".join(dict.fromkeys(filter(None, [why, *absent])))
        searched = [place.path for place in self._places if place.state != "missing" and os.path.isabs(place.path)]
        return UnknownSkillError(name, names, most, reasons, searched)

    def _explain_absence(self, name: str) -> str:
        """The reason why a skill in a folder with that name did not load, or else the root that does not exist."""
        errors = (issue for issue in self.failures if _folder_of(issue.path) == name)
        missing = self._missing_roots()
        absent = f"{missing[0]} does not exist" if missing else ""
        return next((f"it was found and does not load: {issue}" for issue in errors), absent)

    def _missing_roots(self) -> list[str]:
        """Return the folders that a caller named and that do not exist: a likely reason why a skill is not found."""
        return [place.path for place in self._places if place.scope is None and place.state == "missing"]

    def may_lack(self, name: str) -> bool:
        """True when a skill with that name may exist but is not here: its file, or a whole source, cannot be read."""
        errors = [issue.path for issue in self.failures]
        files = [path for path in errors if os.path.basename(path).lower() == SKILL_FILE.lower()]
        failed = any(_folder_of(path) == name for path in files)
        return name not in self._by_name and (failed or len(files) < len(errors))

    def check_names(self, names: Iterable[str], argument: str) -> None:
        """Raise ``UnknownSkillError`` for a name that no skill has, unless the source that may have it failed.

        ``argument``: the name of the caller's argument that holds the names, for the message.
        """
        for name in names:
            if name not in self._by_name and not self.may_lack(name):
                raise self.make_unknown_error(name, self.names, why=f"{argument!r} names it")

    def get(self, name: str) -> Skill | None:
        """Return the skill with that name, or the one whose file has that name with a colon; else ``None``."""
        skill = self._by_name.get(name)
        return skill if skill is not None else self._find_by_written_name(name)

    def _find_by_written_name(self, name: object) -> Skill | None:
        """Return the skill whose file has this name, with a colon, where the catalogue has it with a hyphen.

        Else ``None``.
        """
        if not isinstance(name, str) or ":" not in name:
            return None
        skill = self._by_name.get(name.replace(":", "-"))
        return skill if skill is not None and skill.written_name == name else None

    def __iter__(self) -> Iterator[Skill]:
        return iter(self.skills)

    @property
    def skills(self) -> tuple[Skill, ...]:
        """Every skill, by name."""
        if self._skills is None:
            self._skills = tuple(self._by_name[name] for name in sorted(self._by_name))
        return self._skills

    @property
    def names(self) -> tuple[str, ...]:
        """Every name, in order."""
        return tuple(skill.name for skill in self.skills)

    def keys(self) -> tuple[str, ...]:
        """``names``, as a mapping calls them, so that ``dict(catalog)`` works."""
        return self.names

    def values(self) -> tuple[Skill, ...]:
        """``skills``, as a mapping calls them."""
        return self.skills

    def items(self) -> tuple[tuple[str, Skill], ...]:
        """Return every name with its skill, by name."""
        return tuple((skill.name, skill) for skill in self.skills)

    def under(self, folder: str = "") -> tuple[Skill, ...]:
        """Return the skills whose virtual path is under ``folder``, whole segments compared; all of them for ``""``."""
        if not folder:
            return self.skills
        # Both sides end with a slash, so that whole segments are compared.
        wanted = _absolute_path(folder).rstrip("/") + "/"
        return tuple(
            s for s in self.skills if not s.is_inline and f"{_absolute_path(s.virtual_path)}/".startswith(wanted)
        )

    def preloaded(self) -> tuple[LoadedSkill, ...]:
        """Return the skills marked for preloading, with instructions; one that cannot be loaded is left out."""
        loaded: list[LoadedSkill] = []
        for skill in self.skills:
            if skill.preload:
                try:
                    loaded.append(skill.load())
                except (SkillValidationError, FetchError):
                    continue
        return tuple(loaded)

    def __or__(self, other: Catalog) -> Catalog:
        """Both catalogues in one. Where both have a name, the left one's skill stays, preloaded if either is."""
        if not isinstance(other, Catalog):
            return NotImplemented
        return self._join(_share_preload((*self.skills, *other.skills)), (self, other))

    def __repr__(self) -> str:
        """The number of skills, and why a folder that was named may have none."""
        missing = [f"{path} does not exist" for path in self._missing_roots()]
        reasons = missing or ([] if self else [str(issue) for issue in self._scan_issues])
        return f"<Catalog of {len(self)} skills{f'; {reasons[0]}' if reasons else ''}>"

    # -- reading -----------------------------------------------------------------------------------------------------

    def load(self, name: str) -> LoadedSkill:
        """Return the skill and its instructions, read from its file now."""
        return self[name].load()

    if TYPE_CHECKING:

        @overload
        def load_body(
            self, name: str, *, errors: Literal["strict", "replace"] = "strict", max_bytes: Bound = ...
        ) -> str: ...

        @overload
        def load_body(self, name: str, *, errors: Literal["bytes"], max_bytes: Bound = ...) -> bytes: ...

    def load_body(self, name: str, *, errors: OnBadBytes = "strict", max_bytes: Bound = ...) -> str | bytes:
        """Everything after the frontmatter, byte for byte; the keywords are those of ``Skill.read_body``."""
        if errors == "bytes":
            return self[name].read_body(errors="bytes", max_bytes=max_bytes)
        return self[name].read_body(errors=errors, max_bytes=max_bytes)

    def read_resource(self, name: str, path: str, max_bytes: Bound = ...) -> str:
        """Return the text of a file of the skill; ``max_bytes=None`` lifts the bound."""
        return self[name].read_resource(path, max_bytes)

    # -- searching ---------------------------------------------------------------------------------------------------

    def search(self, query: str, limit: int = 10, *, semantic: Semantic | Encoder = "auto") -> SearchHits:
        """Return the skills that fit the request ``query``, the best first.

        The words of names, descriptions, tags, triggers and instructions are compared with those of the request. With
        ``semantic="auto"`` meaning counts too where ``prepare_search`` has prepared every skill for it. ``True``, or an
        encoder, raises ``SourceError`` where that is not so (``search-not-prepared``) or nothing is installed
        (``missing-extra``). ``False`` goes by words alone. ``mode`` of the hits says what the search went by.

        What is not indexed yet is indexed first. The index is in the cache folder, for its owner alone.
        """
        return self.rank_skills(query, None, limit, semantic=semantic)

    def rank_skills(
        self, query: str, among: Collection[str] | None, limit: int, *, semantic: Semantic | Encoder = "auto"
    ) -> SearchHits:
        """The skills that ``among`` names which fit a request, the best first: ``search`` over a part of the catalogue.

        ``None`` stands for every name. Skills that ``among`` does not name never take the places of others.
        """
        from prowess.search import library_search
        from prowess.skills import search_library

        check_text(query, "query")
        check_number(limit, "limit")
        _check_semantic(semantic)
        ranking = library_search.rank_library(self._open_index(), query, among, limit, semantic)
        hits = (search_library.SearchHit(self._by_name[name], score, why) for name, score, why in ranking.skills)
        return search_library.SearchHits(hits, ranking.mode)

    def prepare_search(self, *, semantic: Semantic | Encoder = "auto") -> SearchMode:
        """Index every skill now, make the vectors that a search by meaning needs, and return what searches go by.

        With ``semantic="auto"`` vectors are made where the extra ``semantic`` is installed. ``True`` raises
        ``SourceError`` (``missing-extra``) where it is not, an encoder of your own takes its place, and ``False`` makes
        no vectors. ``prowess.progress`` gets the steps. What was made before an interrupt is kept.
        """
        from prowess.search import preparation

        _check_semantic(semantic)
        return preparation.prepare_library(self._open_index(), semantic)

    def _open_index(self) -> LibraryIndex:
        """The index of this process: a connection to a database must not be used by a process that was forked."""
        from prowess.search import library_index
        from prowess.skills import search_library

        index = self._index
        if index is None or index.is_inherited:
            with self._lock:
                if self._index is index:
                    library = search_library.CatalogLibrary(self._by_name, self._places)
                    self._index = library_index.LibraryIndex(library)
                index = self._index
        return index  # type: ignore[return-value]

    # -- saying what happened ----------------------------------------------------------------------------------------

    @property
    def shadowed(self) -> tuple[Shadowed, ...]:
        """The copies that lost to another skill of their name, except copies whose files all equal the winner's.

        Files are compared when this is first asked for: nothing is hashed to load skills.
        """
        from prowess.skills import explanation

        if self._maybe_identical:
            identical = explanation.find_identical_copies(self._by_name, self._maybe_identical)
            self._shadowed = tuple(lost for lost in self._shadowed if lost.location not in identical)
            self._maybe_identical = {}
        return self._shadowed

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Everything that was wrong, by file and line: what was left out, what was fixed, what should be.

        Checks that listing does not need are made when this is first asked for.
        """
        from prowess.skills import catalog_issues

        if self._issues is None:
            issues = (*self._scan_issues, *catalog_issues.find_catalog_issues(self.skills, self.shadowed))
            self._issues = tuple(sorted(issues, key=lambda issue: (issue.path, issue.line, issue.code)))
        return self._issues

    @property
    def scan_issues(self) -> tuple[Issue, ...]:
        """What was wrong with files and folders during discovery; ``issues`` has more, and looks at each skill."""
        return self._scan_issues

    @property
    def failures(self) -> tuple[Issue, ...]:
        """The errors that kept skills, or whole places, from loading; nothing is read to find them."""
        return tuple(issue for issue in self._scan_issues if issue.severity == "error")

    @property
    def places(self) -> tuple[Place, ...]:
        """Every place that was searched; where two have a skill with the same name, the earlier place wins."""
        return self._places

    def explain(self, name: str) -> Explanation:
        """Return where the name comes from, which copies lost and why, what was wrong, and every place looked at."""
        from prowess.skills import explanation

        skill = self.get(name)
        name = name if skill is None else skill.name
        lost = tuple(s for s in self.shadowed if s.name == name)
        about = tuple(i for i in self.issues if explanation.is_about(i, name, skill, lost))
        if skill is None:
            reasons = (UnknownSkillError(name, self._by_name).message,)
            return Explanation(name, None, visible=False, reasons=reasons, issues=about, places=self._places)
        why = explanation.explain_skill(skill)
        return Explanation(name, skill.location, skill.model_invocable, why, lost, about, self._places)


def _share_preload(skills: Iterable[Skill]) -> list[Skill]:
    """Return the skills in their order, each preloaded if any skill with its name is, whichever of them wins."""
    given = list(skills)
    preloaded = {skill.name for skill in given if skill.preload}
    return [skill.with_source(preload=True) if skill.name in preloaded else skill for skill in given]


def _check_semantic(semantic: Semantic | Encoder) -> None:
    from prowess.search import encoder

    if not isinstance(semantic, bool) and semantic != "auto":  # the check of an encoder loads its module
        encoder.check_semantic(semantic)


def _folder_of(path: str) -> str:
    """Return the name of the folder that holds a file."""
    return os.path.basename(os.path.dirname(path))


def _absolute_path(path: str) -> str:
    return os.path.normpath(os.path.abspath(path)).replace(os.sep, "/")
