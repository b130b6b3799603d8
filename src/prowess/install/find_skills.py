"""Which skills a repository or a folder holds, looked for where people put them.

A SKILL.md at the top is the one skill. Else each of these is searched three levels deep, a found skill ending the
descent: the top, ``skills/`` with its ``.curated``, ``.experimental`` and ``.system``, the folders where agents look,
and what a plugin manifest names. Where that finds nothing, everything is searched five levels deep. The first skill of
a name wins. Skills that the repository itself got from elsewhere (its own ``skills-lock.json``), and skills that call
themselves internal, count only when they are asked for by name; internal ones also where ``INSTALL_INTERNAL_SKILLS`` is
set to 1, as other installers have it.
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
    """A skill in a tree: its name, its folder, its SKILL.md, and whether it counts without being asked for."""

    name: str
    folder: str
    document: Document
    text: bytes
    """The whole SKILL.md."""
    is_default: bool = True

    @property
    def path(self) -> str:
        """Where its SKILL.md lies in the tree."""
        return _skill_file_in(self.folder)


def find_skills(
    paths: Iterable[str], read: ReadFile, *, name: str, limits: Limits, bring: Prefetch | None = None
) -> tuple[list[TreeSkill], list[Issue]]:
    """The skills among ``paths``, in the order in which they win; and what is wrong with others.

    ``name``: what a skill at the top falls back on when it has none. ``bring``: told which files are read next, so that
    they come by one request.
    """
    known = set(paths)
    bring = bring or _prefetch_nothing
    folders = sorted(posixpath.dirname(path) for path in known if posixpath.basename(path) == SKILL_FILE)
    # Manifests may name further folders. Most name none: what is looked at without them is brought along with them.
    likely = list(_choose_folders(folders, _list_containers(())))
    bring(
        [path for path in (*_PLUGIN_MANIFESTS, NPM_LOCK_FILE) if path in known]
        + [_skill_file_in(folder) for folder in likely]
    )
    plugins = list(_find_plugin_folders(known, read))
    chosen = list(_choose_folders(folders, _list_containers(plugins))) if plugins else likely
    bring([_skill_file_in(folder) for folder in chosen])
    issues: list[Issue] = []
    hidden = _read_npm_locked_names(known, read)
    found: dict[str, TreeSkill] = {}
    for folder in chosen:
        one = _read_skill(folder, read, name, limits, issues)
        if one is None:
            continue
        first = found.setdefault(one.name, one._replace(is_default=one.is_default and one.name not in hidden))
        # Many repositories hold a copy of a skill for each agent: only another skill of that name is worth a word.
        if first.folder != folder and read(first.path) != read(one.path):
            message = f"the name {one.name!a} is also that of the skill in {first.folder}, which counts"
            issues.append(Issue("duplicate-name", "name", message, one.path, 0, "warning"))
    return list(found.values()), issues


def _choose_folders(folders: Sequence[str], containers: Sequence[str]) -> Iterator[str]:
    if "" in folders:
        yield ""
        return
    seen: dict[str, None] = {}
    for container in containers:
        seen |= dict.fromkeys(_folders_within(folders, container, _CONTAINER_DEPTH))
    yield from seen or dict.fromkeys(_folders_within(folders, "", _FALLBACK_DEPTH))


def _folders_within(folders: Sequence[str], container: str, levels: int) -> Iterator[str]:
    """The skill folders at most so deep in a container, none below another."""
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
    """For files that are in memory."""


def _skill_file_in(folder: str) -> str:
    """The path of the SKILL.md in a folder of the tree."""
    return f"{folder}/{SKILL_FILE}" if folder else SKILL_FILE


def _list_containers(plugins: Iterable[str]) -> list[str]:
    agents = dict.fromkeys(agent.project for agent in AGENTS.values())
    return [*_CONTAINERS, *agents, *plugins]


def _find_plugin_folders(known: set[str], read: ReadFile) -> Iterator[str]:
    """The folders that plugin manifests name; sources that are not folders here are somebody else's."""
    for path in _PLUGIN_MANIFESTS:
        if path not in known:
            continue
        data: Any = None
        with suppress(ValueError, RecursionError):
            data = json.loads(read(path))
        if isinstance(data, dict):
            metadata = data.get("metadata")
            root = metadata.get("pluginRoot", "") if isinstance(metadata, dict) else ""
            plugins = data.get("plugins", [{**data, "source": "./"}])
            for plugin in plugins if isinstance(plugins, list) else ():
                yield from _plugin_folders(plugin, str(root), known)


def _plugin_folders(plugin: object, root: str, known: set[str]) -> Iterator[str]:
    if not isinstance(plugin, dict) or not isinstance(plugin.get("source"), str):
        return
    source = str(plugin["source"])
    base = _folder_inside(source if source.startswith("./") else f"{root}/{source}")
    if base is None:
        return
    yield f"{base}/skills".strip("/")
    if f"{base}/SKILL.md".strip("/") in known:  # a plugin that is one skill
        yield base
    listed = plugin.get("skills", [])
    for folder in [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else ():
        inner = _folder_inside(f"{base}/{folder}")
        if inner is not None:
            yield inner


def _folder_inside(path: str) -> str | None:
    """A folder of the tree that a manifest names, ``""`` for the top; ``None`` when it leads out."""
    if not path.strip("./"):
        return ""
    try:
        return "/".join(split_relative_path(path.lstrip("/")))
    except PathTraversalError:
        return None


def _read_npm_locked_names(known: set[str], read: ReadFile) -> frozenset[str]:
    if NPM_LOCK_FILE not in known:
        return frozenset()
    try:
        return frozenset(parse_npm_lock(read(NPM_LOCK_FILE).decode("utf-8", "replace")))
    except InstallError:
        return frozenset()


def _read_skill(folder: str, read: ReadFile, name: str, limits: Limits, issues: list[Issue]) -> TreeSkill | None:
    path = _skill_file_in(folder)
    data = read(path)
    most = limits.max_frontmatter_bytes
    fallback = posixpath.basename(folder) or name
    try:
        document = read_document(
            data[:most],
            whole=len(data) <= most,
            policy=LoadPolicy(limits=limits),
            folder=fallback,
            path=path,
            check_dir=False,
        )
    except SkillLoadError as error:
        first = error.issues[0]
        issues.append(replace(first, message=f"{first.field} {first.message}" if first.field else first.message))
        return None
    internal = is_true(document.front.metadata.get("internal", ""))
    shown = not internal or is_true(os.environ.get(_INTERNAL_VARIABLE, ""))
    return TreeSkill(document.front.name, folder, document, data, shown)
