"""An immutable, name-keyed set of skills, with every issue met while they were gathered."""

from __future__ import annotations

import os
from _thread import allocate_lock  # not from threading, which a scan does without

from prowess.arguments import check_method, check_name, check_text, raise_bad_argument, show_path_argument
from prowess.errors import (
    MAX_LISTED_NAMES,
    DuplicateSkillError,
    FetchError,
    Issue,
    SkillError,
    SkillValidationError,
    SourceError,
    UnknownSkillError,
)
from prowess.files.directory import open_folder_beneath
from prowess.model import Explanation, Place, Shadowed, SkillScope
from prowess.records import replace

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Literal, Self, overload

    from prowess.files.directory import FolderEntries
    from prowess.limits import Bound
    from prowess.literals import OnBadBytes, OnDuplicate
    from prowess.skills.instructions import LoadedSkill
    from prowess.skills.search import SearchHit, SearchIndex
    from prowess.skills.skill import Skill
    from prowess.skills.skill_source import SkillSource

_AUTHOR_ONLY_CODES = frozenset(("unknown-field",))
"""Findings for authors that say nothing about loading: ``validate`` has them, a catalogue does not."""

_NOT_PICKLED = frozenset(("__weakref__", "_index", "_lock"))


class Catalog:
    """Skills by name. Iteration and every listing go by name; look-ups do not depend on how many there are.

    Immutable and safe to share between threads: a reload builds another. ``a | b`` merges, the left one winning.
    """

    __slots__ = (
        "__weakref__",
        "_by_name",
        "_found",
        "_index",
        "_issues",
        "_lock",
        "_maybe_equal",
        "_places",
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
            raise_bad_argument("skills", "is a list of prowess.Skill", skills, remedy)
        self._found = tuple(issues)
        self._places = tuple(places)
        self._by_name: dict[str, Skill] = {}
        self._skills: tuple[Skill, ...] | None = None
        self._issues: tuple[Issue, ...] | None = None
        self._index: SearchIndex[Skill] | None = None
        self._lock = allocate_lock()
        self._maybe_equal: dict[str, Skill] = {}
        shadowed: list[Shadowed] = []
        by_name = self._by_name
        for index, skill in enumerate(skills):
            # Discovery makes catalogues of thousands of skills: a type is looked at only where something is wrong.
            try:
                other = by_name.setdefault(skill._name, skill)
            except AttributeError:
                raise_bad_argument(f"skills[{index}]", "is a prowess.Skill", skill)
            if other is not skill:
                self._resolve_duplicate(other, skill, on_duplicate, shadowed)
        self._shadowed = tuple(replace(lost, winner=by_name[lost.name].location) for lost in shadowed)

    def _resolve_duplicate(
        self, first: Skill, second: Skill, on_duplicate: OnDuplicate, shadowed: list[Shadowed]
    ) -> None:
        _check_server_labels(first, second)
        if _is_same_file(first, second):  # one skill found twice, perhaps under two names for its folder
            self._by_name[first.name] = first if on_duplicate == "first" else second
            return
        if on_duplicate == "error":
            if may_be_equal(first, second) and _find_identical_copies({first.name: first}, {second.location: second}):
                return
            message = f"two skills are named {first.name!r}: {first.location} and {second.location}"
            raise DuplicateSkillError(message, second.location)
        winner, loser = (first, second) if on_duplicate == "first" else (second, first)
        self._by_name[winner.name] = winner
        if may_be_equal(winner, loser):
            self._maybe_equal[loser.location] = loser
        shadowed.append(
            Shadowed(loser.name, loser.location, winner.location, _shadow_reason(winner, loser, on_duplicate))
        )

    # -- copied ------------------------------------------------------------------------------------------------------

    def __copy__(self) -> Self:
        """Itself: nobody can change it."""
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        """Itself: nobody can change it."""
        return self

    def __getstate__(self) -> dict[str, object]:
        """What a pickle holds: not the lock, and not the index, which is made again when something is searched."""
        return {slot: getattr(self, slot) for slot in self.__slots__ if slot not in _NOT_PICKLED}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Take what a pickle holds."""
        for slot, value in state.items():
            setattr(self, slot, value)
        self._index = None
        self._lock = allocate_lock()

    @classmethod
    def from_sources(cls, sources: Iterable[SkillSource], on_duplicate: OnDuplicate = "first") -> Catalog:
        """The skills of several sources, in their order; ``preload`` of any copy of a name preloads the winner.

        A ``SourceError`` names the source that caused it by its place in the list. Two MCP servers of one label are
        such an error: what is known of the skills of one would be taken for the other's.
        """
        found: list[Catalog] = []
        sources = _check_sources(sources)
        _check_namespaces(sources)
        for source in sources:  # those that have to be waited for are waited for side by side
            getattr(source, "begin", _do_nothing)()
        for index, source in enumerate(sources):
            try:
                found.append(source.load())
            except SourceError as error:
                raise SourceError(f"sources[{index}]: {error.message}", error.path, error.code) from None
        merged = cls(
            _share_preload(skill for catalog in found for skill in catalog.skills),
            on_duplicate,
            issues=(issue for catalog in found for issue in catalog._found),
            places=(place for catalog in found for place in catalog._places),
        )
        merged._shadowed = (*(lost for catalog in found for lost in catalog._shadowed), *merged._shadowed)
        for catalog in found:
            merged._maybe_equal |= catalog._maybe_equal
        return merged

    def mapped(self, change: Callable[[Skill], Skill]) -> Catalog:
        """The same catalogue with every skill changed (not its name)."""
        other = Catalog((change(skill) for skill in self.skills), issues=self._found, places=self._places)
        other._shadowed = self._shadowed
        other._maybe_equal = self._maybe_equal
        return other

    # -- looking up --------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name or self._find_by_written_name(name) is not None

    def __getitem__(self, name: str) -> Skill:
        """The skill of that name; ``UnknownSkillError`` (a ``KeyError``) lists those that exist, nearest first."""
        check_name(name, "catalog.skills is in order")
        skill = self.get(name)
        if skill is None:
            raise self.make_unknown_error(name, self._by_name, why=self._explain_absence(name))
        return skill

    def make_unknown_error(
        self, name: str, names: Iterable[str], most: int = MAX_LISTED_NAMES, why: str = ""
    ) -> UnknownSkillError:
        """The error for a name that no skill has, which lists ``names``; where there are none, where was looked."""
        if self._by_name:
            return UnknownSkillError(name, names, most, why)
        absent = [f"{path} does not exist" for path in self._missing_roots()[:1]]
        reasons = "; ".join(dict.fromkeys(filter(None, [why, *absent])))
        there = [place.path for place in self._places if place.state != "missing" and os.path.isabs(place.path)]
        return UnknownSkillError(name, names, most, reasons, there)

    def _explain_absence(self, name: str) -> str:
        """What kept a skill in a folder of that name from loading, or which root there is none of."""
        found = (i for i in self._found if os.path.basename(os.path.dirname(i.path)) == name and i.severity == "error")
        missing = self._missing_roots()
        absent = f"{missing[0]} does not exist" if missing else ""
        return next((f"it was found and does not load: {issue}" for issue in found), absent)

    def _missing_roots(self) -> list[str]:
        """The folders that a caller named and that are not there: no issue, but never a secret."""
        return [place.path for place in self._places if place.scope is None and place.state == "missing"]

    def may_lack(self, name: str) -> bool:
        """True when a skill of that name may exist and is not here: its file, or a whole source, could not be read."""
        errors = [issue.path for issue in self._found if issue.severity == "error"]
        files = [path for path in errors if os.path.basename(path).lower() == "skill.md"]
        own = any(os.path.basename(os.path.dirname(path)) == name for path in files)
        return name not in self._by_name and (own or len(files) < len(errors))

    def check_names(self, names: Iterable[str], argument: str) -> None:
        """Raise ``UnknownSkillError`` for a name that no skill has; one whose source failed may be there later.

        ``argument``: what the caller gave the names as, for the message.
        """
        for name in names:
            if name not in self._by_name and not self.may_lack(name):
                raise self.make_unknown_error(name, self.names, why=f"{argument!r} names it")

    def get(self, name: str) -> Skill | None:
        """The skill that goes by that name, or whose file has it with a colon, or ``None``."""
        skill = self._by_name.get(name)
        return skill if skill is not None else self._find_by_written_name(name)

    def _find_by_written_name(self, name: object) -> Skill | None:
        """The skill whose file has this name, with a colon, and that goes by one with a hyphen."""
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

    def under(self, folder: str = "") -> tuple[Skill, ...]:
        """The skills whose virtual path lies under ``folder``, whole segments compared; all of them for ``""``."""
        if not folder:
            return self.skills
        wanted = _absolute_path(folder)
        return tuple(s for s in self.skills if not s.is_inline and _is_under(_absolute_path(s.virtual_path), wanted))

    def preloaded(self) -> tuple[LoadedSkill, ...]:
        """The skills marked for preloading, with instructions; one that cannot be loaded is left out."""
        loaded: list[LoadedSkill] = []
        for skill in self.skills:
            if skill.preload:
                try:
                    loaded.append(skill.load())
                except (SkillValidationError, FetchError):
                    continue
        return tuple(loaded)

    def __or__(self, other: Catalog) -> Catalog:
        """Both catalogues in one; where both have a name, this one's skill stays, preloaded if either copy is."""
        if not isinstance(other, Catalog):
            return NotImplemented
        skills = _share_preload((*self.skills, *other.skills))
        merged = Catalog(skills, issues=(*self._found, *other._found))
        merged._places = self._places + other._places
        merged._shadowed = self._shadowed + other._shadowed + merged._shadowed
        merged._maybe_equal |= self._maybe_equal | other._maybe_equal
        return merged

    def __repr__(self) -> str:
        """How many skills, and a folder that was named and is not there."""
        missing = self._missing_roots()
        return f"<Catalog of {len(self)} skills{f'; {missing[0]} does not exist' if missing else ''}>"

    # -- reading -----------------------------------------------------------------------------------------------------

    def load(self, name: str) -> LoadedSkill:
        """The skill and its instructions, read from its file now."""
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
        """The text of a file of the skill; ``max_bytes=None`` lifts the bound."""
        return self[name].read_resource(path, max_bytes)

    def search(self, query: str, limit: int = 10) -> tuple[SearchHit, ...]:
        """The skills whose names, descriptions and tags fit the words of ``query``, best first.

        The index is built when it is first needed and kept as long as the catalogue.
        """
        check_text(query, "query")
        from prowess.skills.search import SearchHit, SearchIndex  # noqa: PLC0415 - loads SQLite

        with self._lock:
            if self._index is None:
                self._index = SearchIndex(self.skills)
        return tuple(SearchHit(skill, score) for skill, score in self._index.rank(query, limit))

    # -- saying what happened ----------------------------------------------------------------------------------------

    @property
    def shadowed(self) -> tuple[Shadowed, ...]:
        """The copies that lost to another of their name; one in a standard place with the winner's very files did not.

        Whether two have the same files is looked at when this is first asked for: to load skills nothing is hashed.
        """
        if self._maybe_equal:
            equal = _find_identical_copies(self._by_name, self._maybe_equal)
            self._shadowed = tuple(one for one in self._shadowed if one.location not in equal)
            self._maybe_equal = {}
        return self._shadowed

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Everything that was wrong, by file and line: what was left out, what was mended, what should be.

        Checks that listing does not need are made when this is first asked for.
        """
        if self._issues is None:
            found = [*self._found, *_shadow_issues(self.shadowed, self._by_name)]
            known = {skill.location for skill in self.skills}
            for skill in self.skills:
                found += (issue for issue in _skill_issues(skill) if not _is_listed_itself(issue, known))
            found += _folder_collisions(self.skills)
            self._issues = tuple(sorted(found, key=lambda issue: (issue.path, issue.line, issue.code)))
        return self._issues

    @property
    def failures(self) -> tuple[Issue, ...]:
        """What kept skills, or whole places, from loading; found during discovery, hence without further looks."""
        return tuple(issue for issue in self._found if issue.severity == "error")

    @property
    def places(self) -> tuple[Place, ...]:
        """Every place that was looked at, in the order in which they win."""
        return self._places

    def explain(self, name: str) -> Explanation:
        """Where the name comes from, which copies lost and why, what was wrong, and every place looked at."""
        skill = self.get(name)
        name = name if skill is None else skill.name
        lost = tuple(s for s in self.shadowed if s.name == name)
        about = tuple(i for i in self.issues if _is_about(i, name, skill, lost))
        if skill is None:
            reasons = (UnknownSkillError(name, self._by_name).message,)
            return Explanation(name, None, visible=False, reasons=reasons, issues=about, places=self._places)
        return Explanation(
            name, skill.location, skill.model_invocable, _explain_skill(skill), lost, about, self._places
        )


def _do_nothing() -> None:
    """Most sources need no time."""


def _share_preload(skills: Iterable[Skill]) -> list[Skill]:
    """The skills in their order, each preloaded if any of its name is: whoever wins, what was preloaded stays so."""
    given = list(skills)
    preloaded = {skill.name for skill in given if skill.preload}
    return [skill.placed(preload=True) if skill.name in preloaded else skill for skill in given]


def _check_sources(sources: Iterable[SkillSource]) -> tuple[SkillSource, ...]:
    """The sources; raises ``SourceError`` for a path, or anything else without a ``load``, in their place."""
    if isinstance(sources, str | os.PathLike):
        raise_bad_argument(
            "sources", "is a list of sources", sources, f"pass [Source.directory({show_path_argument(sources)})]"
        )
    if not hasattr(sources, "__iter__"):
        raise_bad_argument(
            "sources", "is a list of sources", sources, "pass [source]" if hasattr(sources, "load") else ""
        )
    given = tuple(sources)
    for index, source in enumerate(given):
        check_method(source, f"sources[{index}]", "load", f"pass Source.directory({show_path_argument(source)})")
    return given


def _check_namespaces(sources: tuple[SkillSource, ...]) -> None:
    """Raise where two sources are known by one name of the caller's choosing."""
    seen: dict[str, int] = {}
    for index, source in enumerate(sources):
        namespace = getattr(source, "namespace", "")
        first = seen.setdefault(namespace, index) if namespace else index
        if sources[first] is not source:
            message = f"sources[{index}]: {namespace} is the name of sources[{first}] already"
            raise SourceError(message, code="duplicate-label")


def _check_server_labels(one: Skill, other: Skill) -> None:
    """Raise where two servers have one label: no skill of one may stand for a skill of the other."""
    if not one.told_by or one.told_by != other.told_by:
        return
    from prowess.skills.skill_files import get_server  # noqa: PLC0415 - only where names collide

    if get_server(one._home.contents) != get_server(other._home.contents):
        message = f"{one.name!r} is a skill of two servers, and both are {one.told_by}"
        raise SourceError(message, one.location, "duplicate-label")


def _is_same_file(one: Skill, other: Skill) -> bool:
    return one.identity is not None and other.identity is not None and one.identity[:2] == other.identity[:2]


def may_be_equal(one: Skill, other: Skill) -> bool:
    """True when two skills of one name may be copies for several agents: in standard places, their files as long."""
    if one.scope is None or one.scope is not other.scope or one.identity is None or other.identity is None:
        return False
    return bool(one._home.base and other._home.base) and one.identity[2] == other.identity[2]


def _find_identical_copies(winners: dict[str, Skill], losers: dict[str, Skill]) -> set[str]:
    """The locations of the losers that have the same files as the winner of their name; each is hashed once."""
    digests = {name: _try_digest(winners[name]) for name in {lost.name for lost in losers.values()} if name in winners}
    return {location for location, lost in losers.items() if (digests.get(lost.name) or "none") == _try_digest(lost)}


def _try_digest(skill: Skill) -> str:
    """The digest of a skill; ``""`` for a folder that cannot be hashed, which is then like no other."""
    try:
        return skill.digest()
    except (SkillError, OSError):
        return ""


def _shadow_reason(winner: Skill, loser: Skill, on_duplicate: OnDuplicate) -> str:
    if winner.scope is SkillScope.PROJECT and loser.scope is SkillScope.USER:
        return "a project's skill wins over the user's"
    return f"the {on_duplicate} one found wins"


def _shadow_issues(shadowed: tuple[Shadowed, ...], winners: dict[str, Skill]) -> Iterator[Issue]:
    for lost in shadowed:
        project = lost.reason.startswith("a project's")
        code = "shadowed-by-project" if project else "duplicate-name"
        winner = winners[lost.name].location
        message = f"{lost.name!r} is taken by {winner}: {lost.reason}"
        yield Issue(code, "name", message, lost.location, 0, "warning")


def _skill_issues(skill: Skill) -> list[Issue]:
    """The findings about one skill; discovery leaves those of the commonest heads for now."""
    issues = [issue for issue in skill.issues if issue.code not in _AUTHOR_ONLY_CODES]
    if not skill._home.body_seen:
        issues += _blank_body_issues(skill)
    if skill._home.base:
        issues += _folder_issues(skill)
    return issues


def _is_listed_itself(issue: Issue, known: set[str]) -> bool:
    """True for the information that a skill lies inside another when another root has led to it."""
    return issue.code == "nested-skill" and issue.path in known


def _blank_body_issues(skill: Skill) -> list[Issue]:
    try:
        blank = not skill.read_body().strip()
    except SkillError as error:
        return [Issue(error.code, "body", error.message, skill.location, 0, "warning")]
    message = "there are no instructions"
    return [Issue("empty-body", "body", message, skill.location, 0, "warning")] if blank else []


def _folder_issues(skill: Skill) -> list[Issue]:
    """The findings about the entries of a skill's folder: other spellings of its file, and skills further down."""
    try:
        with open_folder_beneath(skill._home.base, skill._parts()) as folder:
            found = folder.list_entries(skill._home.policy.limits.max_entries_per_skill)
    except OSError:
        return []
    issues = _filename_collisions(skill, found)
    # Most skills have no folders, and of those nothing needs to be listed.
    return issues + _nested_skill_issues(skill) if found.folders and not skill._home.searched else issues


def _nested_skill_issues(skill: Skill) -> list[Issue]:
    """The files below a skill that would be skills of their own had the search not ended at this one."""
    own = skill._home.file.lower()
    try:
        files = skill.files()
    except SkillError:  # a folder that cannot be listed is told by whoever reads it
        return []
    message = f"lies inside the skill {skill.name!r} and is part of it"
    return [
        Issue("nested-skill", "", message, os.path.join(skill._folder(), *path.split("/")), 0, "info")
        for path in files
        if "/" in path and path.rpartition("/")[2].lower() == own
    ]


def _filename_collisions(skill: Skill, found: FolderEntries) -> list[Issue]:
    own = skill._home.file
    if not found.complete:
        message = "the folder holds too many entries to look for another spelling of the file"
        return [Issue("too-many-files", "", message, skill.location, 0, "warning")]
    twins = [name for name in found.files if name != own and name.lower() == own.lower()]
    message = f"lies beside {', '.join(twins)}; {own} is used"
    return [Issue("filename-collision", "", message, skill.location, 0, "warning")] if twins else []


def _folder_collisions(skills: tuple[Skill, ...]) -> Iterator[Issue]:
    """Folders that are one on systems that ignore case or Unicode form."""
    import unicodedata  # noqa: PLC0415 - a scan does without it

    seen: dict[str, str] = {}
    for skill in skills:
        if not skill._home.base:
            continue
        folder = skill._folder()
        other = seen.setdefault(unicodedata.normalize("NFC", folder).casefold(), folder)
        if other != folder:
            message = f"differs from {other} only in case or Unicode form"
            yield Issue("folder-collision", "", message, skill.location, 0, "warning")


def _is_about(issue: Issue, name: str, skill: Skill | None, lost: tuple[Shadowed, ...]) -> bool:
    if skill is not None and issue.path == skill.location:
        return True
    folder = os.path.basename(os.path.dirname(issue.path))
    return folder == name or os.path.basename(issue.path) == name or any(issue.path == s.location for s in lost)


def _explain_skill(skill: Skill) -> tuple[str, ...]:
    places = {"url": "found on a site", "mcp": f"found on {skill.told_by}"}
    where = places.get(skill.origin, f"found in a {skill.origin}")
    whose = f"found in the {skill.scope.value}'s folders" if skill.scope else where
    sees = "models see it" if skill.model_invocable else "models do not see it: disable-model-invocation is set"
    calls = "people may call it" if skill.user_invocable else "people may not call it: user-invocable is false"
    return (whose, sees, calls)


def _absolute_path(path: str) -> str:
    return os.path.normpath(os.path.abspath(path)).replace(os.sep, "/")


def _is_under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
