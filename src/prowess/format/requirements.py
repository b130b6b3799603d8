"""What a skill says it needs: tools, MCP servers and variables, in the spellings that real files use.

``allowed-tools`` is not among them: it is an approval, and a skill works without what it names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prowess.format.frontmatter.fields import Frontmatter

HEAD_MARKS = (b"requi", b"mcp", b"primaryEnv", b"env_vars", b"secrets")
"""One of these is in every head that needs something."""
_SERVER_KEYS = ("mcp-servers", "mcp_servers", "mcpServers")
_REQUIRED_SERVER_KEYS = ("mcp", "mcps", *_SERVER_KEYS)
_VARIABLE_KEYS = ("env", "environment", "secrets")
_OTHER_LETTERS = re.compile(r"[^a-z0-9]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")


class Requirements(NamedTuple):
    """What a skill needs, each name once, in the order of its head."""

    tools: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    """The names of MCP servers."""
    variables: tuple[str, ...] = ()
    """Variables of the environment that it cannot do without, such as keys."""
    optional: tuple[str, ...] = ()
    """Variables that it can do without."""

    @property
    def all_variables(self) -> tuple[str, ...]:
        """Every variable that it declares, those that it cannot do without first."""
        return (*self.variables, *self.optional)

    def find_absent(self, available: Iterable[str]) -> tuple[str, ...]:
        """Return which of its tools and MCP servers an agent with these tools does not have, in words."""
        names = [name.casefold() for name in available]
        tools = (f"the tool {tool}" for tool in self.tools if not _has_tool(tool, names))
        servers = (f"the MCP server {server}" for server in self.servers if not _has_server(server, names))
        return (*tools, *servers)

    def find_unset(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """Return the variables that it cannot do without and that are not set, or empty."""
        return tuple(name for name in self.variables if not env.get(name))


def read_requirements(front: Frontmatter) -> Requirements:
    """Return what a head says about tools, MCP servers and variables."""
    sections = [front.extra, *_list_sections(front.metadata)]
    tools: list[str] = []
    servers: list[str] = []
    variables: list[str] = []
    optional: list[str] = []
    for section in sections:
        requires = _as_mapping(section.get("requires"))
        tools += _list_names(requires.get("tools"))
        servers += [name for key in _REQUIRED_SERVER_KEYS for name in _list_names(requires.get(key))]
        servers += [name for key in _SERVER_KEYS for name in _list_names(section.get(key))]
        values = [*map(requires.get, _VARIABLE_KEYS), section.get("required_environment_variables")]
        values += [section.get("primaryEnv"), section.get("secrets")]
        values += [_as_mapping(section.get("config")).get("requiredEnv")]
        values += [_as_mapping(section.get("prerequisites")).get("env_vars")]
        for name, is_required in (found for value in values for found in _list_variables(value)):
            (variables if is_required else optional).append(name)
    needed = dict.fromkeys(variables)
    rest = tuple(name for name in dict.fromkeys(optional) if name not in needed)
    return Requirements(tuple(dict.fromkeys(tools)), tuple(dict.fromkeys(servers)), tuple(needed), rest)


def _list_sections(metadata: Mapping[str, str]) -> Iterator[Mapping[str, object]]:
    """Yield the metadata, and those of its values that are mappings of one client, written as JSON."""
    values = {key: _parse(value) for key, value in metadata.items()}
    yield values
    yield from (value for value in values.values() if isinstance(value, Mapping))


def _parse(value: object) -> object:
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    import json

    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _as_mapping(value: object) -> Mapping[str, object]:
    value = _parse(value)
    return value if isinstance(value, Mapping) else {}


def _list_names(value: object) -> list[str]:
    """Return the names in a string with commas, a list, or the keys of a mapping."""
    value = _parse(value)
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, (list, tuple, Mapping)) else ()
    return [part.strip() for part in parts if isinstance(part, str) and part.strip()]


def _list_variables(value: object) -> Iterator[tuple[str, bool]]:
    """Yield the variables in a value, each with whether it is required; anything that is not a name is left out."""
    value = _parse(value)
    if isinstance(value, (list, tuple)):
        entries = [part if isinstance(part, Mapping) else {"name": part} for part in value]
    elif isinstance(value, Mapping):
        entries = [{"name": name, **_as_mapping(about)} for name, about in value.items()]
    else:
        entries = [{"name": name} for name in _list_names(value)]
    for entry in entries:
        name = entry.get("name")
        if isinstance(name, str) and _VARIABLE.match(name):
            yield name, str(entry.get("required", "true")).lower() != "false"


def _has_tool(tool: str, names: list[str]) -> bool:
    """Return whether one of the names is that of a tool, which may be a pattern such as ``mcp__github__*``."""
    wanted = tool.partition("(")[0].strip().casefold()
    return any(fnmatchcase(name, wanted) for name in names)


def _has_server(server: str, names: list[str]) -> bool:
    """Return whether a tool has the name of a server before its own, as clients and frameworks write it."""
    wanted = _join_words(server)
    return any(f"{_join_words(name).removeprefix('mcp_')}_".startswith(f"{wanted}_") for name in names)


def _join_words(name: str) -> str:
    return _OTHER_LETTERS.sub("_", name.casefold()).strip("_")
