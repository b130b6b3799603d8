"""The skills in a repository or a folder, found in the places where people put them.

A SKILL.md at the top means that the whole tree is one skill. Otherwise these folders are searched three levels deep,
and never below a skill: the top, ``skills/`` with its ``.curated``, ``.experimental`` and ``.system``, the folders
where agents look, and the folders of plugins. When that finds nothing, everything is searched five
levels deep. The first skill of a name wins. Skills below a folder for tests, such as ``tests/fixtures``, are left out,
unless the folder is one of those above: they are there to be read by tests.

Two kinds of skills count only when somebody asks for them by name: skills that the repository itself got from elsewhere
(they are in its own ``skills-lock.json``), and skills that call themselves internal. Internal ones also count when the
variable ``INSTALL_INTERNAL_SKILLS`` is 1, as for other installers.
"""

from __future__ import annotations

import os
import posixpath
from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.discovery.agents import AGENTS
from prowess.errors import InstallError, Issue, SkillLoadError
from prowess.format.frontmatter.fields import is_true
from prowess.format.head import LoadPolicy, read_head
from prowess.install.plugins import list_manifests, name_plugins, read_plugins
from prowess.installed.other_tools import NPM_LOCK_FILE, parse_foreign_lock
from prowess.names import SKILL_FILE, folders_above

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from prowess.format.head import Head
    from prowess.install.plugins import Plugin
    from prowess.limits import Limits

    ReadFile = Callable[[str], bytes]
    Prefetch = Callable[[list[str]], None]

_SKIPPED_FOLDERS = frozenset(("node_modules", ".git", "dist", "build", "__pycache__"))
_CONTAINERS = ("", "skills", "skills/.curated", "skills/.experimental", "skills/.system")
_TEST_FOLDERS = frozenset(("test", "tests", "__tests__", "fixtures", "__fixtures__", "testdata"))
_INTERNAL_VARIABLE = "INSTALL_INTERNAL_SKILLS"
_CONTAINER_DEPTH = 3
_FALLBACK_DEPTH = 5


class TreeSkill(NamedTuple):
    """A skill in a tree: its name, its folder and its SKILL.md."""

    name: str
    folder: str
    document: Head
    text: bytes
    """The whole SKILL.md."""
    is_default: bool = True
    """True when the skill counts without being asked for by name."""
    plugin: str = ""
    """The name of the plugin that it belongs to, or ``""``."""

    @property
    def path(self) -> str:
        """The path of its SKILL.md in the tree."""
        return _skill_file_in(self.folder)


class FoundSkills(NamedTuple):
    """What a tree has: its skills in the order of precedence, what is wrong with others, and its plugins."""

    skills: list[TreeSkill]
    issues: list[Issue]
    plugins: tuple[Plugin, ...]


def find_skills(
    paths: Iterable[str], read: ReadFile, *, name: str, limits: Limits, prefetch: Prefetch | None = None
) -> FoundSkills:
    """Return the skills among ``paths``, what is wrong with others, and the plugins that group them.

    ``name`` is the name of a skill at the top that has none. ``prefetch`` is called with the files that are read next,
    so that one request can fetch all of them.
    """
    tree_paths = set(paths)
    prefetch = prefetch or _prefetch_nothing
    folders = sorted(posixpath.dirname(path) for path in tree_paths if posixpath.basename(path) == SKILL_FILE)
    # A plugin manifest may name further folders, and most name none. So one request fetches the manifests together with
    # the skills that are found without them.
    likely = list(_choose_folders(folders, _list_containers(())))
    lock_file = [NPM_LOCK_FILE] if NPM_LOCK_FILE in tree_paths else []
    prefetch([*list_manifests(tree_paths), *lock_file, *map(_skill_file_in, likely)])
    plugins, plugin_issues = read_plugins(tree_paths, read, limits)
    containers = dict.fromkeys(folder for plugin in plugins for folder in plugin.folders)
    chosen = list(_choose_folders(folders, _list_containers(containers))) if containers else likely
    prefetch([_skill_file_in(folder) for folder in chosen])
    plugin_of = name_plugins(chosen, plugins)
    issues = [*plugin_issues]
    foreign = _read_npm_locked_names(tree_paths, read)
    skills: dict[str, TreeSkill] = {}
    grouped: dict[str, list[str]] = {}
    hidden: set[str] = set()
    for folder in chosen:
        skill = _read_skill(folder, read, name, limits, issues)
        if skill is None:
            continue
        is_default = skill.is_default and skill.name not in foreign
        first = skills.setdefault(skill.name, skill._replace(is_default=is_default, plugin=plugin_of[folder]))
        grouped.setdefault(plugin_of[folder], []).append(skill.name)
        # Many repositories hold a copy of a skill for each agent, or for each plugin: only a different skill of that
        # name is a problem.
        if first.folder != folder and first.text != skill.text:
            hidden.add(plugin_of[folder])
            message = f"the name {skill.name!a} is also that of the skill in {first.folder}, which counts"
            issues.append(Issue("duplicate-name", "name", message, skill.path, 0, "warning"))
    grouped.pop("", None)
    found = (
        plugin._replace(skills=tuple(grouped.get(plugin.name, ())), has_hidden=plugin.name in hidden)
        for plugin in plugins
    )
    return FoundSkills(list(skills.values()), issues, tuple(found))


def _choose_folders(folders: Sequence[str], containers: Sequence[str]) -> Iterator[str]:
    """Those of the folders with a SKILL.md that count, in the order of the containers."""
    if "" in folders:
        yield ""
        return
    chosen: dict[str, None] = {}
    for container in containers:
        chosen |= dict.fromkeys(_folders_within(folders, container, _CONTAINER_DEPTH))
    yield from chosen or dict.fromkeys(_folders_within(folders, "", _FALLBACK_DEPTH))


def _folders_within(folders: Sequence[str], container: str, levels: int) -> Iterator[str]:
    """Yield the folders that are at most so many levels deep in a container, and not below another of them."""
    taken: set[str] = set()
    prefix = f"{container}/" if container else ""
    for folder in _folders_at(folders, container):
        inner = folder.removeprefix(prefix).split("/") if folder != container else []
        inside = not taken.isdisjoint(filter(None, folders_above(folder)))  # a skill at the top hides no other
        # In a folder for skills, "tests" is a group of skills about tests.
        is_fixture = not container and not _TEST_FOLDERS.isdisjoint(inner[:-1])
        if len(inner) <= levels and not inside and not is_fixture and _SKIPPED_FOLDERS.isdisjoint(inner):
            taken.add(folder)
            yield folder


def _folders_at(folders: Sequence[str], container: str) -> Sequence[str]:
    """Return the container itself, if it is one of the sorted folders, and those below it."""
    if not container:
        return folders
    # "0" is the character after "/". A marketplace may name thousands of containers.
    begin, end = bisect_left(folders, f"{container}/"), bisect_left(folders, f"{container}0")
    own = bisect_left(folders, container)
    is_skill = folders[own : own + 1] == [container]
    return [container, *folders[begin:end]] if is_skill else folders[begin:end]


def _prefetch_nothing(_paths: list[str]) -> None:
    """Do nothing, for files that are in memory."""


def _skill_file_in(folder: str) -> str:
    """Return the path of the SKILL.md in a folder of the tree."""
    return f"{folder}/{SKILL_FILE}" if folder else SKILL_FILE


def _list_containers(plugins: Iterable[str]) -> list[str]:
    """Return the folders that are searched, the one that wins first."""
    return [*_CONTAINERS, *dict.fromkeys(agent.project for agent in AGENTS.values()), *plugins]


def _read_npm_locked_names(tree_paths: set[str], read: ReadFile) -> frozenset[str]:
    """Return the names of the skills that the tree itself got from elsewhere, by the lock file of the npm tool."""
    if NPM_LOCK_FILE not in tree_paths:
        return frozenset()
    try:
        return frozenset(parse_foreign_lock(read(NPM_LOCK_FILE).decode("utf-8", "replace")))
    except InstallError:
        return frozenset()


def _read_skill(folder: str, read: ReadFile, name: str, limits: Limits, issues: list[Issue]) -> TreeSkill | None:
    """Return the skill in a folder; ``None``, with an issue, for one that cannot be loaded."""
    path = _skill_file_in(folder)
    data = read(path)
    max_bytes = limits.max_frontmatter_bytes
    fallback = posixpath.basename(folder) or name
    try:
        document = read_head(
            data[:max_bytes],
            quick=False,
            whole=len(data) <= max_bytes,
            policy=LoadPolicy(limits=limits, check_dir=False),
            folder=fallback,
            path=path,
        )
    except SkillLoadError as error:
        first = error.issues[0]
        issues.append(replace(first, message=f"{first.field} {first.message}" if first.field else first.message))
        return None
    internal = is_true(document.front.metadata.get("internal", ""))
    shown = not internal or is_true(os.environ.get(_INTERNAL_VARIABLE, ""))
    return TreeSkill(document.front.name, folder, document, data, shown)
