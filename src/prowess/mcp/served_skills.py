"""The skills that a server offers at one moment: by name all that load, and by path those that the extension serves.

The extension serves only skills that are valid by the specification, since other hosts refuse the rest. Tools, prompts
and the listing serve every skill that loads, by name. A path leads from a served folder to the skill's folder, such as
``billing/pdf``. The first served folder wins a path, and the first skill wins a name. A skill that lost its name to
another, or that models are not to see, is not listed; a client that has its address can still read it.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from contextlib import suppress
from functools import cached_property, partial
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from prowess.discovery.scan import find_skills, find_standard_skills, resolve_standard_places
from prowess.discovery.walk import ScanRules
from prowess.discovery.watch import linked_folders
from prowess.errors import Issue, PathTraversalError
from prowess.files.paths import path_inside
from prowess.format.head import LoadPolicy
from prowess.mcp.answers import has_changed
from prowess.names import split_resource_path
from prowess.skills.catalog import Catalog
from prowess.skills.explanation import Place, may_be_identical
from prowess.skills.mcp_rules import find_refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from prowess.discovery.scan import ScanResult
    from prowess.limits import Limits
    from prowess.skills.skill import Skill


class Refused(NamedTuple):
    """A skill that the extension does not serve, with every reason."""

    location: str
    issues: tuple[Issue, ...]
    loads: bool = True
    """Whether tools, prompts and the listing serve it nevertheless."""


class LeftOut(NamedTuple):
    """How many skills a server does not serve, judged by their frontmatter and names alone."""

    extension: int
    """The skills that the extension leaves out; tools, prompts and the listing serve them."""
    broken: int
    """The skills that cannot be loaded, which nothing serves."""


class ExtensionSkills(NamedTuple):
    """All skills that the extension serves, by path, and those that it leaves out."""

    skills: dict[str, Skill]
    listed_paths: list[str]
    """The paths of the skills that the extension lists, sorted."""
    refused: tuple[Refused, ...]
    copies: tuple[Refused, ...]
    """Skills that are not served and may be copies of a served one; only hashing their files would show it."""


class ServedSkills:
    """An immutable set of served skills; a reload builds another.

    ``catalog`` holds every skill that loads, and ``loaded`` also those that lost their name to another. ``get_path``
    returns the path of a skill in the extension. The extension judges a skill by its files, and to list the files of
    every skill takes longer than the scan. So a skill is judged when somebody asks for it, and all of them only for the
    lists of the extension; a handshake and the tools do without.
    """

    def __init__(
        self, catalog: Catalog, loaded: Iterable[Skill], get_path: Callable[[Skill], str], limits: Limits
    ) -> None:
        self.former_names: dict[str, str] = {}
        """The locations of skills that fail to load now, by the names that they had before."""
        self.catalog = catalog
        self.loaded = tuple(loaded)
        self._get_path = get_path
        self._limits = limits
        # By identity: two equal skills, such as copies in two folders, are served under two paths.
        self._refusals: dict[int, tuple[Issue, ...]] = {}
        self._extension: ExtensionSkills | None = None
        self._lock = Lock()  # requests are answered in several threads

    @cached_property
    def _candidates(self) -> dict[str, list[Skill]]:
        """The skills by their paths; the first one that the extension can serve has the path."""
        candidates: dict[str, list[Skill]] = {}
        for skill in self.loaded:
            candidates.setdefault(self._get_path(skill), []).append(skill)
        return candidates

    def _find_refusals(self, skill: Skill, path: str) -> tuple[Issue, ...]:
        known = self._refusals.get(id(skill))
        if known is None:
            known = self._refusals.setdefault(id(skill), _find_lasting_refusals(skill, path, self._limits))
        return known

    def find_skill(self, path: str) -> Skill | None:
        """Return the skill that the extension serves under ``path``, or ``None``."""
        candidates = self._candidates.get(path, ())
        return next((skill for skill in candidates if not self._find_refusals(skill, path)), None)

    @property
    def extension(self) -> ExtensionSkills:
        """All skills of the extension; the first caller waits until every skill is judged."""
        with self._lock:
            if self._extension is None:
                self._extension = self._judge_all()
            return self._extension

    def _judge_all(self) -> ExtensionSkills:
        skills: dict[str, Skill] = {}
        refused: list[Refused] = []
        copies: list[Refused] = []
        for skill in self.loaded:
            path = self._get_path(skill)
            problems = self._find_refusals(skill, path)
            if not problems and path in skills:
                message = f"its path, {path}, is taken by {skills[path].location}"
                problems = (Issue("duplicate-name", "", message, skill.location),)
            if problems:
                winner = self.catalog[skill.name]
                is_copy = winner is not skill and may_be_identical(winner, skill)
                (copies if is_copy else refused).append(Refused(skill.location, problems, winner is skill))
            else:
                skills[path] = skill
        # Names are compared among these alone: a skill that the extension leaves out must not hide one that it serves.
        first = Catalog(skills.values()).get
        listed = sorted(p for p, skill in skills.items() if first(skill.name) is skill and skill.model_invocable)
        return ExtensionSkills(skills, listed, tuple(refused), tuple(copies))

    @property
    def skills(self) -> dict[str, Skill]:
        """All skills that the extension serves, by path."""
        return self.extension.skills

    def __len__(self) -> int:
        return len(self.skills)

    def remember_names(self, before: ServedSkills) -> None:
        """Take over the names of skills that could be loaded ``before`` and cannot be loaded now.

        A model that asks for such a skill by its name learns what is wrong, not that it does not exist.
        """
        failing = {issue.path for issue in self.catalog.failures}
        names = {**before.former_names, **{skill.name: skill.location for skill in before.catalog}} if failing else {}
        self.former_names = {name: location for name, location in names.items() if location in failing}

    def find_failure(self, name: str) -> Issue | None:
        """Return why a skill that had this name, or whose folder has it, cannot be loaded, or ``None``."""
        former = self.former_names.get(name)
        for issue in self.catalog.failures:
            if issue.path == former or os.path.basename(os.path.dirname(issue.path)) == name:
                return issue
        return None

    @property
    def left_out(self) -> LeftOut:
        """How many skills are not served, judged by their frontmatter and names alone."""
        return LeftOut(len(self.extension.refused), len(self.catalog.failures))

    def path_of(self, skill: Skill) -> str:
        """Return the path under which the extension serves a skill; ``""`` for a skill that it leaves out."""
        path = self._get_path(skill)
        return path if self.find_skill(path) is skill else ""

    def resolve_path(self, parts: Sequence[str]) -> tuple[str, Skill, tuple[str, ...]] | None:
        """Return the path of the innermost skill that ``parts`` lead into, the skill, and the remaining parts.

        Returns ``None`` when they lead into no skill.
        """
        # The longest path first: a skill may lie inside another one, and its files are then its own.
        for length in range(len(parts), 0, -1):
            path = "/".join(parts[:length])
            if (skill := self.find_skill(path)) is not None:
                return path, skill, tuple(parts[length:])
        return None

    def next_paths(self, path: str, limit: int) -> list[str]:
        """Return at most ``limit`` listed paths that follow ``path``, which may be gone itself."""
        listed = self.extension.listed_paths
        begin = bisect_right(listed, path) if path else 0
        return listed[begin : begin + limit]


def build_from_scan(scanned: ScanResult, limits: Limits) -> ServedSkills:
    """Return the skills to serve from the result of a scan."""
    catalog = Catalog(scanned.skills, issues=scanned.issues)
    return ServedSkills(catalog, scanned.skills, partial(_served_path, places=scanned.places), limits)


def build_from_catalog(catalog: Catalog, limits: Limits) -> ServedSkills:
    """Return the skills to serve from a catalogue, each under its name."""
    return ServedSkills(catalog, catalog, attrgetter("name"), limits)


def _find_lasting_refusals(skill: Skill, path: str, limits: Limits) -> tuple[Issue, ...]:
    """Return why the extension leaves out a skill: nothing when its SKILL.md has changed since the load.

    Whoever asks for such a skill learns that it is gone or changed, and the next load decides about it. The extension
    leaves out skills without a folder on this machine, such as remote ones.
    """
    if not skill.is_local:
        return (Issue("no-files", "", "the extension serves only skills in a folder", skill.location),)
    problems = find_refusals(skill, path, limits)
    return () if problems and has_changed(skill) else tuple(problems)


def _served_path(skill: Skill, places: Sequence[Place]) -> str:
    # A linked skill has its files elsewhere: its path is that of the link, which is in a served folder.
    if skill.found.link_folder is None:
        return "/".join(skill.parts) or skill.folder_name
    for place in places:
        inner = path_inside(skill.folder, place.path)
        if inner:
            return inner.replace(os.sep, "/")
    return skill.folder_name


_SCHEME = "skill://"
URI_TEMPLATE = "skill://{+skill}/{+file}"

# A "%" without two digits is refused, since decoders disagree about it: some keep it, some fail.
_HALF_ENCODED = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNSAFE_PARTS = frozenset(("", ".", ".."))


def make_uri(path: str, file: str = "") -> str:
    """Return the address of a skill's folder, or of a file in it."""
    whole = f"{path}/{file}" if file else path
    return _SCHEME + "/".join(quote(part, safe="") for part in whole.split("/"))


def split_uri(uri: str) -> tuple[str, ...]:
    """Return the decoded parts of an address: the folders, and the file at the end.

    Raises ``PathTraversalError`` for an address that is not ours, or that could lead out of a folder.
    """
    if not uri.startswith(_SCHEME):
        raise _make_uri_error(uri, f"does not begin with {_SCHEME}")
    rest = uri[len(_SCHEME) :]
    if "?" in rest or "#" in rest or _HALF_ENCODED.search(rest):
        raise _make_uri_error(uri, "is not a plain path")
    # Split first, then decode, and only once: an encoded "/" or ".." must not become a separator or a way up.
    parts = tuple(_decode_part(part, uri) for part in rest.split("/"))
    if any(part in _UNSAFE_PARTS or "/" in part for part in parts):
        raise _make_uri_error(uri, "holds an empty part, '.', '..' or an encoded '/'")
    return split_resource_path("/".join(parts))


def _decode_part(part: str, uri: str) -> str:
    try:
        return unquote_to_bytes(part).decode("utf-8")
    except UnicodeError:
        raise _make_uri_error(uri, "is not UTF-8") from None


def _make_uri_error(uri: str, why: str) -> PathTraversalError:
    return PathTraversalError(f"address {uri[:200]!r} {why}", code="bad-path")


class SkillLoader:
    """Loads the served skills from named folders, or from the standard places when none are named."""

    def __init__(self, roots: tuple[str, ...], limits: Limits) -> None:
        self._roots = roots
        self._limits = limits
        self._rules = ScanRules(LoadPolicy(limits=limits), nested=True)

    def load(self) -> ServedSkills:
        """Scan the places, and return the skills to serve."""
        if self._roots:
            found = find_skills(self._places(), self._rules)
        else:
            found = find_standard_skills(resolve_standard_places(), self._rules)
        return build_from_scan(found, self._limits)

    def watched_folders(self, served: ServedSkills | None) -> Iterable[str]:
        """Return what to watch for changes: the places, their lock files, and where links of ``served`` lead."""
        linked = linked_folders(served.loaded) if served is not None else ()
        lock_files = resolve_standard_places().lock_files if not self._roots else ()
        return (*(place.path for place in self._places()), *lock_files, *linked)

    def is_small(self) -> bool:
        """Return whether the places hold so few files and folders that loading them takes only a moment.

        Entries are counted and no clock is read, so whether a client waits for its listing does not depend on chance.
        """
        left = self._limits.max_awaited_entries
        waiting = [place.path for place in self._places()]
        while waiting:
            # By paths and not by handles, in half of the time: the number decides nothing but who waits.
            with suppress(OSError), os.scandir(waiting.pop()) as entries:  # what is missing costs nothing to load
                for entry in entries:
                    left -= 1
                    if left < 0:
                        return False
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        return True

    def _places(self) -> tuple[Place, ...]:
        return tuple(Place(root) for root in self._roots) if self._roots else resolve_standard_places().places
