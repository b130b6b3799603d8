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
    AlreadyInstalledError,
    BadReferenceError,
    BinaryResourceError,
    BusyError,
    DuplicateSkillError,
    EmptySkillBodyError,
    GitError,
    InstallError,
    InvalidFrontmatterError,
    Issue,
    LocalEditsError,
    LockMismatchError,
    MaxActiveError,
    NameTakenError,
    NoFrontmatterError,
    NotInstalledError,
    PathTraversalError,
    ResourceChangedError,
    ResourceError,
    ResourceNotFoundError,
    ResourceTooLargeError,
    SkillError,
    SkillFilteredError,
    SkillLoadError,
    SkillNotActiveError,
    SkillValidationError,
    SourceError,
    UnknownSkillError,
    UnsafeTreeError,
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
    from prowess.install.installer import Installer
    from prowess.install.plan import Plan
    from prowess.install.updates import Outdated, Update
    from prowess.library.installs import InstalledSkill, default_project_dir, default_user_dir
    from prowess.library.search import SearchHit
    from prowess.runtime.ambient import current_skill_filter, skill_filter
    from prowess.runtime.events import Event, log_events
    from prowess.runtime.session import Activation, Refreshed, Session
    from prowess.select.budget import BudgetReport, render_catalog
    from prowess.select.selectors import LexicalSelector, ModelDrivenSelector, Selector, SelectorChain, TagSelector
    from prowess.sources.base import Source
    from prowess.sources.listing import load_sources
    from prowess.spec.addresses import SourceSpec, parse_source
    from prowess.spec.refs import SkillRef, is_local_path
    from prowess.spec.substitute import substitute
    from prowess.spec.tokens import estimate_tokens
    from prowess.tools.definitions import ToolDefinition, ToolResult
    from prowess.tools.dialects import DIALECTS
    from prowess.tools.toolset import Toolset

__version__ = "0.1.0"

# What a program that only looks at skills does not need: loaded when it is first asked for.
_LATER = {
    "Activation": "runtime.session",
    "BudgetReport": "select.budget",
    "DIALECTS": "tools.dialects",
    "Event": "runtime.events",
    "InstalledSkill": "library.installs",
    "Installer": "install.installer",
    "LexicalSelector": "select.selectors",
    "ModelDrivenSelector": "select.selectors",
    "Outdated": "install.updates",
    "Plan": "install.plan",
    "Refreshed": "runtime.session",
    "SearchHit": "library.search",
    "Selector": "select.selectors",
    "SelectorChain": "select.selectors",
    "Session": "runtime.session",
    "SkillRef": "spec.refs",
    "Source": "sources.base",
    "SourceSpec": "spec.addresses",
    "TagSelector": "select.selectors",
    "ToolDefinition": "tools.definitions",
    "ToolResult": "tools.definitions",
    "Toolset": "tools.toolset",
    "Update": "install.updates",
    "current_skill_filter": "runtime.ambient",
    "default_project_dir": "library.installs",
    "default_user_dir": "library.installs",
    "estimate_tokens": "spec.tokens",
    "is_local_path": "spec.refs",
    "load_sources": "sources.listing",
    "log_events": "runtime.events",
    "parse_source": "spec.addresses",
    "render_catalog": "select.budget",
    "skill_filter": "runtime.ambient",
    "substitute": "spec.substitute",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    room = _LATER.get(name)
    if room is None:
        raise AttributeError(f"module 'prowess' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - once a name

    value = globals()[name] = getattr(import_module(f"prowess.{room}"), name)
    return value


__all__ = [
    "AGENTS",
    "DIALECTS",
    "MAX_COMPATIBILITY_LENGTH",
    "MAX_DESCRIPTION_LENGTH",
    "MAX_NAME_LENGTH",
    "Activation",
    "Agent",
    "AlreadyInstalledError",
    "BadReferenceError",
    "BinaryResourceError",
    "BudgetReport",
    "BusyError",
    "Catalog",
    "DuplicateSkillError",
    "EmptySkillBodyError",
    "Event",
    "Explanation",
    "FileList",
    "Frontmatter",
    "GitError",
    "InstallError",
    "InstalledSkill",
    "Installer",
    "InvalidFrontmatterError",
    "Issue",
    "LexicalSelector",
    "Limits",
    "LoadedSkill",
    "LocalEditsError",
    "LockMismatchError",
    "MaxActiveError",
    "ModelDrivenSelector",
    "NameTakenError",
    "NoFrontmatterError",
    "NotInstalledError",
    "Outdated",
    "ParsedSkill",
    "PathTraversalError",
    "Place",
    "Plan",
    "Refreshed",
    "ResourceChangedError",
    "ResourceError",
    "ResourceNotFoundError",
    "ResourceTooLargeError",
    "Resources",
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
    "SkillRef",
    "SkillScope",
    "SkillSource",
    "SkillValidationError",
    "Source",
    "SourceError",
    "SourceSpec",
    "TagSelector",
    "ToolDefinition",
    "ToolResult",
    "Toolset",
    "UnknownSkillError",
    "UnsafeTreeError",
    "UnterminatedFrontmatterError",
    "Update",
    "current_skill_filter",
    "default_project_dir",
    "default_user_dir",
    "discover",
    "estimate_tokens",
    "is_local_path",
    "load_sources",
    "log_events",
    "parse_allowed_tools",
    "parse_frontmatter",
    "parse_skill",
    "parse_skill_file",
    "parse_source",
    "read_metadata",
    "render_catalog",
    "scan",
    "skill_filter",
    "substitute",
    "validate",
]
