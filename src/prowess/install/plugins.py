"""Plugins: the groups of skills that a repository names in its manifests, in its own folders or in other repositories.

Three manifests count: a marketplace (``.claude-plugin/marketplace.json``), the manifest of one plugin for Claude Code
(``.claude-plugin/plugin.json``), and that of Agent Plugins 1.0 (``plugin.json``). The last two are read at the top of a
source and in each folder of ``plugins/``.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.addresses.source_spec import as_repository, parse_source, with_parts
from prowess.errors import BadReferenceError, InstallError, Issue, PathTraversalError
from prowess.format.rules import is_usable_name
from prowess.names import SKILL_FILE, folders_above, split_relative_path
from prowess.text.quantities import join_first
from prowess.text.redaction import show_address

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from prowess.addresses.source_spec import SourceSpec
    from prowess.install.find_skills import TreeSkill
    from prowess.limits import Limits

    ReadFile = Callable[[str], bytes]

_MARKETPLACE = ".claude-plugin/marketplace.json"
_CLAUDE_MANIFEST = ".claude-plugin/plugin.json"
_AGENT_MANIFEST = "plugin.json"
_PLUGINS_FOLDER = "plugins"
_AGENT_SCHEMAS = "https://agent-plugins.org/schemas/"
_AGENT_SCHEMA = f"{_AGENT_SCHEMAS}1.0.0/plugin.schema.json"
_AGENT_NAME = re.compile(r"(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?")
_AGENT_STRINGS = ("version", "description", "homepage", "repository", "license")
_AGENT_FIELDS = frozenset(("$schema", "name", "author", "keywords", "extensions", *_AGENT_STRINGS))
_OWNER_AND_NAME = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MAX_NAMED = 10
"""How many plugins or skills a message names."""


class Plugin(NamedTuple):
    """A plugin that a manifest names: the folders of the tree that hold its skills, or its source elsewhere."""

    name: str
    """Its name; ``""`` for one that nobody can choose because it has no usable name."""
    description: str = ""
    folders: tuple[str, ...] = ()
    spec: SourceSpec | None = None
    """Its source, when that is another repository."""
    listed: tuple[str, ...] = ()
    """The folders in that repository to which its entry limits it; none for all of its skills."""
    problem: str = ""
    """Why its source elsewhere cannot be used."""
    base: str = ""
    """Its own folder in the tree."""
    skills: tuple[str, ...] = ()
    """The names of its skills, once they were looked for in the tree."""
    has_hidden: bool = False
    """Whether another skill of the tree wins over one of them by its name."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether its skills are in another repository."""
        return self.spec is not None or bool(self.problem)


def list_manifests(tree_paths: Collection[str]) -> list[str]:
    """Return the paths of the manifests in a tree, those that win first."""
    found = [path for path in (_MARKETPLACE, _CLAUDE_MANIFEST, _AGENT_MANIFEST) if path in tree_paths]
    inner = [
        path
        for path in tree_paths
        if path.startswith(f"{_PLUGINS_FOLDER}/") and path.split("/", 2)[2:] in ([_CLAUDE_MANIFEST], [_AGENT_MANIFEST])
    ]
    return found + sorted(inner)


def read_plugins(
    tree_paths: Collection[str], read: ReadFile, limits: Limits
) -> tuple[tuple[Plugin, ...], tuple[Issue, ...]]:
    """The plugins that the manifests of a tree name, the first of each name, and what is wrong with manifests."""
    plugins: dict[object, Plugin] = {}
    issues: list[Issue] = []
    for path in list_manifests(tree_paths):
        data: Any = None
        with suppress(ValueError, RecursionError):  # the manifest is for other programs: its errors are not ours
            data = json.loads(read(path))
        if isinstance(data, dict):
            for plugin in _read_manifest(path, data, tree_paths, issues):
                if len(plugins) >= limits.max_plugins:
                    message = f"the source names more than {limits.max_plugins:,} plugins; the rest is left out"
                    issues.append(Issue("too-many-plugins", "", message, path, 0, "warning"))
                    return tuple(plugins.values()), tuple(issues)
                first = plugins.setdefault(plugin.name or len(plugins), plugin)
                if first is not plugin and not first.is_elsewhere and not plugin.is_elsewhere:
                    folders = tuple(dict.fromkeys((*first.folders, *plugin.folders)))
                    plugins[plugin.name] = first._replace(folders=folders)
    return tuple(plugins.values()), tuple(issues)


def _read_manifest(
    path: str, data: dict[str, Any], tree_paths: Collection[str], issues: list[Issue]
) -> Iterator[Plugin]:
    base = path.removesuffix(_CLAUDE_MANIFEST).removesuffix(_AGENT_MANIFEST).strip("/")
    if path == _MARKETPLACE:
        metadata = data.get("metadata")
        root = metadata.get("pluginRoot", "") if isinstance(metadata, dict) else ""
        entries = data.get("plugins")
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                yield from _read_entry(entry, str(root), tree_paths)
    elif path.endswith(_CLAUDE_MANIFEST):
        yield _plugin_in(base, data, tree_paths)
    elif str(data.get("$schema", "")).startswith(_AGENT_SCHEMAS):  # any other plugin.json belongs to somebody else
        problem = _find_agent_problem(data)
        if problem:
            issues.append(Issue("bad-plugin", "", f"{problem}: the manifest is ignored", path, 0, "warning"))
            return
        unknown = sorted(data.keys() - _AGENT_FIELDS)
        if unknown:
            message = f"unknown fields are ignored: {join_first([f'{name!a}' for name in unknown], _MAX_NAMED)}"
            issues.append(Issue("unknown-field", "", message, path, 0, "info"))
        yield Plugin(data["name"], _read_text(data, "description"), (f"{base}/skills".strip("/"),), base=base)


def _find_agent_problem(data: dict[str, Any]) -> str:
    """Why a manifest of Agent Plugins has to be refused; ``""`` when it is valid."""
    name, author, keywords = data.get("name"), data.get("author", {}), data.get("keywords", [])
    if data["$schema"] != _AGENT_SCHEMA:
        return f"{str(data['$schema'])[:200]!a} is not the schema of Agent Plugins 1.0"
    if not isinstance(name, str) or _AGENT_NAME.fullmatch(name) is None:
        return "the name must be 1 to 64 of a-z, 0-9, '-' and '.', with a letter or a digit at both ends"
    wrong = [field for field in _AGENT_STRINGS if not isinstance(data.get(field, ""), str)]
    if not isinstance(author, dict) or not all(
        key in ("name", "email", "url") and isinstance(value, str) for key, value in author.items()
    ):
        wrong.append("author")
    if not isinstance(keywords, list) or not all(isinstance(word, str) for word in keywords):
        wrong.append("keywords")
    return f"{', '.join(wrong)}: not what Agent Plugins 1.0 says" if wrong else ""


def _read_entry(entry: dict[str, Any], root: str, tree_paths: Collection[str]) -> Iterator[Plugin]:
    """Yield the plugin of an entry of a marketplace."""
    source = entry.get("source")
    if isinstance(source, str):
        base = _folder_inside(source if source.startswith("./") else f"{root}/{source}")
        if base is not None:
            yield _plugin_in(base, entry, tree_paths)
    elif isinstance(source, dict) and _read_name(entry):
        plugin = Plugin(_read_name(entry), _read_text(entry, "description"))
        try:
            yield plugin._replace(spec=_read_mapping(source), listed=tuple(_read_listed("", entry)))
        except BadReferenceError as error:
            yield plugin._replace(problem=error.message)


def _plugin_in(base: str, data: dict[str, Any], tree_paths: Collection[str]) -> Plugin:
    """Return the plugin in a folder of the tree, with the fields of its manifest or of its entry in a marketplace."""
    listed = list(_read_listed(base, data))
    # A plugin that is the whole repository has the skills that its entry lists, and others without an entry.
    folders = [] if base == "" and listed else [f"{base}/skills".strip("/")]
    if f"{base}/{SKILL_FILE}".strip("/") in tree_paths:  # a plugin that is one skill
        folders.append(base)
    return Plugin(_read_name(data), _read_text(data, "description"), (*folders, *listed), base=base)


def _read_listed(base: str, data: dict[str, Any]) -> Iterator[str]:
    """Yield the folders that the field ``skills`` names; each is a skill or holds skills."""
    listed = data.get("skills", [])
    for folder in [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else ():
        inner = _folder_inside(f"{base}/{folder}")
        if inner is not None:
            yield inner


def _folder_inside(path: str) -> str | None:
    """Return the folder of the tree that a manifest names, ``""`` for the top; ``None`` for a path that leads out."""
    if not path.strip("./"):
        return ""
    try:
        return "/".join(split_relative_path(path.lstrip("/")))
    except PathTraversalError:
        return None


def _read_name(data: dict[str, Any]) -> str:
    name = data.get("name")
    return name if isinstance(name, str) and is_usable_name(name) else ""


def _read_text(data: dict[str, Any], field: str) -> str:
    value = data.get(field)
    return value if isinstance(value, str) else ""


def _read_mapping(source: dict[str, Any]) -> SourceSpec:
    """Return the source that an entry of a marketplace maps its plugin to.

    The address came with a repository, so it is checked like a typed one, and is never a path of this machine. Raises
    ``BadReferenceError`` for an address or a kind of source that is not fetched.
    """
    kind = source.get("source")
    if kind == "github":
        repository = _read_text(source, "repo")
        if _OWNER_AND_NAME.fullmatch(repository) is None:
            raise BadReferenceError(f"this is not owner/repo: {show_address(repository)}")
        address = f"github:{repository}"
    elif kind in {"url", "git-subdir"}:
        address = _read_text(source, "url")
    else:
        raise BadReferenceError(f"plugins are not fetched from sources of the kind {str(kind)[:40]!a}")
    spec = parse_source(address, github=os.environ.get("GH_HOST", ""))
    if spec.local:
        raise BadReferenceError(f"a marketplace must not name a path of this machine: {show_address(address)}")
    spec = as_repository(spec)
    commit = _read_text(source, "sha")
    if commit and _COMMIT.fullmatch(commit) is None:
        raise BadReferenceError(f"the sha {commit[:80]!a} is not a whole commit", code="bad-version")
    path = _folder_inside(_read_text(source, "path"))
    if path is None:
        raise BadReferenceError(f"the path {_read_text(source, 'path')[:80]!a} leads out of the repository")
    # A commit wins over a branch or a tag: it is what the people of the marketplace looked at.
    return with_parts(spec, ref=commit or _read_text(source, "ref"), subpath=path)


# -- the skills of plugins ---------------------------------------------------------------------------------------------


def name_plugins(folders: Iterable[str], plugins: Iterable[Plugin]) -> dict[str, str]:
    """The name of the plugin of each folder of a skill that belongs to one: the nearest folder of a plugin decides."""
    owners: dict[str, str] = {}
    for plugin in plugins:
        for folder in plugin.folders:
            owners.setdefault(folder, plugin.name)
    if not owners:  # most sources have no plugins
        return dict.fromkeys(folders, "")
    named = {}
    for folder in folders:
        above = (folder, *folders_above(folder))  # a skill may itself be what a manifest lists
        named[folder] = next((owners[one] for one in above if one in owners), "")
    return named


def choose_plugins(
    spec: SourceSpec, plugins: Iterable[Plugin], known: Collection[str]
) -> tuple[SourceSpec, Plugin | None]:
    """The source with the skills of a plugin in the place of its name; and the plugin that is in another repository.

    The names in ``known`` are those of skills and of their folders, which win over plugins. Raises ``InstallError`` for
    a plugin without skills, and for one elsewhere that is not chosen alone or cannot be fetched.
    """
    by_name = {plugin.name: plugin for plugin in plugins if plugin.name}
    names: dict[str, None] = {}
    for name in spec.skills:
        plugin = None if name in known else by_name.get(name)
        if plugin is None:
            names[name] = None
        elif not plugin.is_elsewhere:
            if not plugin.skills:
                raise InstallError(f"the plugin {name!a} of {spec.address} has no skills", code="missing-skill-md")
            if plugin.has_hidden and plugin.base and len(spec.skills) == 1:
                # In its own folder no skill of another plugin wins over its skills.
                return replace(spec, subpath=posixpath.join(spec.subpath, plugin.base), skills=plugin.skills), None
            names |= dict.fromkeys(plugin.skills)
        elif len(spec.skills) > 1:
            raise InstallError(f"the plugin {name!a} is in another repository: choose it alone", code="is-plugin")
        elif plugin.spec is None:
            message = f"the plugin {name!a} of {spec.address} cannot be fetched: {plugin.problem}"
            raise InstallError(message, code="bad-plugin")
        else:
            return plugin.spec, plugin
    return (spec if tuple(names) == spec.skills else replace(spec, skills=tuple(names))), None


def limit_to_listed(spec: SourceSpec, plugin: Plugin, skills: Iterable[TreeSkill]) -> SourceSpec:
    """Return the source of a plugin elsewhere, with only the skills in the folders that its entry lists.

    Raises ``InstallError`` when there is none in them.
    """
    if not plugin.listed:
        return spec
    names = tuple(skill.name for skill in skills if {skill.folder, *folders_above(skill.folder)} & {*plugin.listed})
    if not names:
        listed = join_first(plugin.listed, _MAX_NAMED)
        raise InstallError(f"{spec} has no skill in the folders of the plugin: {listed}", code="missing-skill-md")
    return replace(spec, skills=names)


def refuse_plugin(name: str, plugins: Iterable[Plugin]) -> None:
    """Raise ``InstallError`` (``is-plugin``) that says what stands for it, when a name is that of a plugin."""
    plugin = next((plugin for plugin in plugins if plugin.name == name), None)
    if plugin is None:
        return
    if plugin.is_elsewhere:
        where = f"in another repository: {plugin.spec or plugin.problem}"
    else:
        where = f"with the skills {join_first(plugin.skills, _MAX_NAMED)}" if plugin.skills else "without skills"
    raise InstallError(f"{name!a} is not a skill but a plugin {where}", code="is-plugin")


def refuse_only_plugins(spec: SourceSpec, plugins: Iterable[Plugin], *, has_skill: bool) -> None:
    """Raise ``InstallError`` (``only-plugins``) for a source without skills whose plugins are in other repositories."""
    names = [plugin.name for plugin in plugins if plugin.is_elsewhere]
    if names and not has_skill:
        listed = join_first(names, _MAX_NAMED)
        raise InstallError(f"{spec} has no skill of its own, but plugins elsewhere: {listed}", code="only-plugins")
