"""Prowess: the Agent Skills engine for Python.

Find skills, tell a model about them in a few hundred bytes each, load instructions when they are asked for.

    import prowess

    catalog = prowess.scan("skills/")
    print(prowess.render_catalog(catalog))
    print(catalog.load("pdf").instructions)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prowess.errors import (
    BinaryResourceError,
    DuplicateSkillError,
    EmptySkillBodyError,
    FetchError,
    InvalidFrontmatterError,
    Issue,
    MaxActiveError,
    NoFrontmatterError,
    NotTrustedError,
    PathTraversalError,
    ResourceChangedError,
    ResourceError,
    ResourceNotFoundError,
    ResourceTooLargeError,
    SandboxError,
    SkillError,
    SkillFilteredError,
    SkillLoadError,
    SkillNotActiveError,
    SkillValidationError,
    SourceError,
    UnknownSkillError,
    UnterminatedFrontmatterError,
)
from prowess.library.agents import AGENTS, Agent
from prowess.library.catalog import Catalog, SkillSource
from prowess.library.load import ParsedSkill, parse_skill, parse_skill_file, read_metadata, validate
from prowess.library.scan import discover, scan
from prowess.library.skill import LoadedSkill, Skill
from prowess.limits import MAX_COMPATIBILITY_LENGTH, MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH, Limits
from prowess.model import Explanation, FileList, Place, Resources, Shadowed, SkillScope
from prowess.spec.allowed_tools import parse_allowed_tools
from prowess.spec.fields import Frontmatter
from prowess.spec.frontmatter import parse_frontmatter

if TYPE_CHECKING:
    from prowess import mcp
    from prowess.library.search import SearchHit
    from prowess.library.watch import Watch, watch
    from prowess.runtime import sandbox
    from prowess.runtime.ambient import current_skill_filter, skill_filter
    from prowess.runtime.events import Event, log_events
    from prowess.runtime.fork import PreparedFork, fork_system_message, fork_user_message, subprocess_fork
    from prowess.runtime.scripts import ScriptResult, Scripts
    from prowess.runtime.session import Activation, Refreshed, Session
    from prowess.runtime.trust import Grant, Grants, Trust, TrustRequest
    from prowess.select.budget import BudgetReport, render_catalog
    from prowess.select.selectors import LexicalSelector, ModelDrivenSelector, Selector, SelectorChain, TagSelector
    from prowess.sources.approvals import Approvals
    from prowess.sources.base import Source
    from prowess.sources.listing import load_sources
    from prowess.spec.substitute import substitute
    from prowess.spec.tokens import estimate_tokens
    from prowess.tools.definitions import ToolDefinition, ToolResult
    from prowess.tools.dialects import DIALECTS
    from prowess.tools.toolset import Toolset

__version__ = "0.1.0"

# What a program that only looks at skills does not need: loaded when it is first asked for.
_LATER = {
    "Activation": "runtime.session",
    "Approvals": "sources.approvals",
    "BudgetReport": "select.budget",
    "DIALECTS": "tools.dialects",
    "Event": "runtime.events",
    "Grant": "runtime.trust",
    "Grants": "runtime.trust",
    "LexicalSelector": "select.selectors",
    "ModelDrivenSelector": "select.selectors",
    "PreparedFork": "runtime.fork",
    "Refreshed": "runtime.session",
    "ScriptResult": "runtime.scripts",
    "Scripts": "runtime.scripts",
    "SearchHit": "library.search",
    "Selector": "select.selectors",
    "SelectorChain": "select.selectors",
    "Session": "runtime.session",
    "Source": "sources.base",
    "TagSelector": "select.selectors",
    "ToolDefinition": "tools.definitions",
    "ToolResult": "tools.definitions",
    "Toolset": "tools.toolset",
    "Trust": "runtime.trust",
    "TrustRequest": "runtime.trust",
    "Watch": "library.watch",
    "current_skill_filter": "runtime.ambient",
    "estimate_tokens": "spec.tokens",
    "fork_system_message": "runtime.fork",
    "fork_user_message": "runtime.fork",
    "load_sources": "sources.listing",
    "log_events": "runtime.events",
    "mcp": "mcp",
    "render_catalog": "select.budget",
    "sandbox": "runtime.sandbox",
    "skill_filter": "runtime.ambient",
    "subprocess_fork": "runtime.fork",
    "substitute": "spec.substitute",
    "watch": "library.watch",
}
_MODULES = frozenset(("mcp", "sandbox"))


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    room = _LATER.get(name)
    if room is None:
        raise AttributeError(f"module 'prowess' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - once a name

    found = import_module(f"prowess.{room}")
    value = globals()[name] = found if name in _MODULES else getattr(found, name)
    return value


__all__ = [
    "AGENTS",
    "DIALECTS",
    "MAX_COMPATIBILITY_LENGTH",
    "MAX_DESCRIPTION_LENGTH",
    "MAX_NAME_LENGTH",
    "Activation",
    "Agent",
    "Approvals",
    "BinaryResourceError",
    "BudgetReport",
    "Catalog",
    "DuplicateSkillError",
    "EmptySkillBodyError",
    "Event",
    "Explanation",
    "FetchError",
    "FileList",
    "Frontmatter",
    "Grant",
    "Grants",
    "InvalidFrontmatterError",
    "Issue",
    "LexicalSelector",
    "Limits",
    "LoadedSkill",
    "MaxActiveError",
    "ModelDrivenSelector",
    "NoFrontmatterError",
    "NotTrustedError",
    "ParsedSkill",
    "PathTraversalError",
    "Place",
    "PreparedFork",
    "Refreshed",
    "ResourceChangedError",
    "ResourceError",
    "ResourceNotFoundError",
    "ResourceTooLargeError",
    "Resources",
    "SandboxError",
    "ScriptResult",
    "Scripts",
    "SearchHit",
    "Selector",
    "SelectorChain",
    "Session",
    "Shadowed",
    "Skill",
    "SkillError",
    "SkillFilteredError",
    "SkillLoadError",
    "SkillNotActiveError",
    "SkillScope",
    "SkillSource",
    "SkillValidationError",
    "Source",
    "SourceError",
    "TagSelector",
    "ToolDefinition",
    "ToolResult",
    "Toolset",
    "Trust",
    "TrustRequest",
    "UnknownSkillError",
    "UnterminatedFrontmatterError",
    "Watch",
    "current_skill_filter",
    "discover",
    "estimate_tokens",
    "fork_system_message",
    "fork_user_message",
    "load_sources",
    "log_events",
    "mcp",
    "parse_allowed_tools",
    "parse_frontmatter",
    "parse_skill",
    "parse_skill_file",
    "read_metadata",
    "render_catalog",
    "sandbox",
    "scan",
    "skill_filter",
    "subprocess_fork",
    "substitute",
    "validate",
    "watch",
]
