"""The skills in a repository or a folder, found in the places where people put them.

A SKILL.md at the top means that the whole tree is one skill. Otherwise these folders are searched three levels deep,
and never below a skill: the top, ``skills/`` with its ``.curated``, ``.experimental`` and ``.system``, the folders
where agents look, and the folders that a plugin manifest names. When that finds nothing, everything is searched five
levels deep. The first skill of a name wins.

Two kinds of skills count only when somebody asks for them by name: skills that the repository itself got from elsewhere
(they are in its own ``skills-lock.json``), and skills that call themselves internal. Internal ones also count when the
variable ``INSTALL_INTERNAL_SKILLS`` is 1, as for other installers.
"""

from __future__ import annotations

import json
import os
import posixpath
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.discovery.agents import AGENTS
from prowess.errors import InstallError, Issue, PathTraversalError, SkillLoadError
from prowess.lockfile.npm import NPM_LOCK_FILE, parse_npm_lock
from prowess.names import SKILL_FILE, folders_above, split_relative_path
from prowess.spec.document import LoadPolicy, read_document
from prowess.spec.invocation import is_true

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from prowess.limits import Limits
    from prowess.spec.document import Document

    ReadFile = Callable[[str], bytes]
    Prefetch = Callable[[list[str]], None]

_SKIPPED_FOLDERS = frozenset(("node_modules", ".git", "dist", "build", "__pycache__"))
_CONTAINERS = ("", "skills", "skills/.curated", "skills/.experimental", "skills/.system")
_PLUGIN_MANIFESTS = (".claude-plugin/marketplace.json", ".claude-plugin/plugin.json")
_INTERNAL_VARIABLE = "INSTALL_INTERNAL_SKILLS"
_CONTAINER_DEPTH = 3
_FALLBACK_DEPTH = 5


class TreeSkill(NamedTuple):
    """A skill in a tree: its name, its folder and its SKILL.md."""

    name: str
    folder: str
    document: Document
    text: bytes
    """The whole SKILL.md."""
    is_default: bool = True
    """True when the skill counts without being asked for by name."""

    @property
    def path(self) -> str:
        """The path of its SKILL.md in the tree."""
        return _skill_file_in(self.folder)


def find_skills(
    paths: Iterable[str], read: ReadFile, *, name: str, limits: Limits, prefetch: Prefetch | None = None
) -> tuple[list[TreeSkill], list[Issue]]:
    """The skills among ``paths``, in the order in which they win, and what is wrong with others.

    ``name`` is the name of a skill at the top that has none. ``prefetch`` is called with the files that are read next,
    so that one request can fetch all of them.
    """
    tree_paths = set(paths)
    prefetch = prefetch or _prefetch_nothing
    folders = sorted(posixpath.dirname(path) for path in tree_paths if posixpath.basename(path) == SKILL_FILE)
    # A plugin manifest may name further folders, and most name none. So one request fetches the manifests together with
    # the skills that are found without them.
    likely = list(_choose_folders(folders, _list_containers(())))
    prefetch(
        [path for path in (*_PLUGIN_MANIFESTS, NPM_LOCK_FILE) if path in tree_paths]
        + [_skill_file_in(folder) for folder in likely]
    )
    plugins = list(_find_plugin_folders(tree_paths, read))
    chosen = list(_choose_folders(folders, _list_containers(plugins))) if plugins else likely
    prefetch([_skill_file_in(folder) for folder in chosen])
    issues: list[Issue] = []
    foreign = _read_npm_locked_names(tree_paths, read)
    skills: dict[str, TreeSkill] = {}
    for folder in chosen:
        skill = _read_skill(folder, read, name, limits, issues)
        if skill is None:
            continue
        is_default = skill.is_default and skill.name not in foreign
        first = skills.setdefault(skill.name, skill._replace(is_default=is_default))
        # Many repositories hold a copy of a skill for each agent: only a different skill of that name is a problem.
        if first.folder != folder and first.text != skill.text:
            message = f"the name {skill.name!a} is also that of the skill in {first.folder}, which counts"
            issues.append(Issue("duplicate-name", "name", message, skill.path, 0, "warning"))
    return list(skills.values()), issues


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
    """The folders that are at most so many levels deep in a container, and not below another of them."""
    taken: set[str] = set()
    prefix = f"{container}/" if container else ""
    for folder in folders:
        if folder != container and not folder.startswith(prefix):
            continue
        inner = folder.removeprefix(prefix).split("/") if folder != container else []
        inside = not taken.isdisjoint(filter(None, folders_above(folder)))  # a skill at the top hides no other
        if len(inner) <= levels and not inside and _SKIPPED_FOLDERS.isdisjoint(inner):
            taken.add(folder)
            yield folder


def _prefetch_nothing(_paths: list[str]) -> None:
    """Do nothing, for files that are in memory."""


def _skill_file_in(folder: str) -> str:
    """The path of the SKILL.md in a folder of the tree."""
    return f"{folder}/{SKILL_FILE}" if folder else SKILL_FILE


def _list_containers(plugins: Iterable[str]) -> list[str]:
    """The folders that are searched, the one that wins first."""
    return [*_CONTAINERS, *dict.fromkeys(agent.project for agent in AGENTS.values()), *plugins]


def _find_plugin_folders(tree_paths: set[str], read: ReadFile) -> Iterator[str]:
    """The folders of the tree that plugin manifests name; sources elsewhere are left out."""
    for path in _PLUGIN_MANIFESTS:
        if path not in tree_paths:
            continue
        data: Any = None
        with suppress(ValueError, RecursionError):  # the manifest is for another program: its errors are not ours
            data = json.loads(read(path))
        if isinstance(data, dict):
            metadata = data.get("metadata")
            root = metadata.get("pluginRoot", "") if isinstance(metadata, dict) else ""
            plugins = data.get("plugins", [{**data, "source": "./"}])
            for plugin in plugins if isinstance(plugins, list) else ():
                yield from _plugin_folders(plugin, str(root), tree_paths)


def _plugin_folders(plugin: object, root: str, tree_paths: set[str]) -> Iterator[str]:
    if not isinstance(plugin, dict) or not isinstance(plugin.get("source"), str):
        return
    source = str(plugin["source"])
    base = _folder_inside(source if source.startswith("./") else f"{root}/{source}")
    if base is None:
        return
    yield f"{base}/skills".strip("/")
    if f"{base}/SKILL.md".strip("/") in tree_paths:  # a plugin that is one skill
        yield base
    listed = plugin.get("skills", [])
    for folder in [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else ():
        inner = _folder_inside(f"{base}/{folder}")
        if inner is not None:
            yield inner


def _folder_inside(path: str) -> str | None:
    """The folder of the tree that a manifest names, ``""`` for the top; ``None`` for a path that leads out."""
    if not path.strip("./"):
        return ""
    try:
        return "/".join(split_relative_path(path.lstrip("/")))
    except PathTraversalError:
        return None


def _read_npm_locked_names(tree_paths: set[str], read: ReadFile) -> frozenset[str]:
    """The names of the skills that the tree itself got from elsewhere, by the lock file of the npm tool."""
    if NPM_LOCK_FILE not in tree_paths:
        return frozenset()
    try:
        return frozenset(parse_npm_lock(read(NPM_LOCK_FILE).decode("utf-8", "replace")))
    except InstallError:
        return frozenset()


def _read_skill(folder: str, read: ReadFile, name: str, limits: Limits, issues: list[Issue]) -> TreeSkill | None:
    """The skill in a folder; ``None``, with an issue, for one that cannot be loaded."""
    path = _skill_file_in(folder)
    data = read(path)
    max_bytes = limits.max_frontmatter_bytes
    fallback = posixpath.basename(folder) or name
    try:
        document = read_document(
            data[:max_bytes],
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
