"""Prowess: the Agent Skills engine for Python.

Find skills, tell a model about them in a few hundred bytes each, load instructions when they are asked for.

    import prowess

    catalog = prowess.scan("skills/")
    print(prowess.render_catalog(catalog))
    print(catalog.load("pdf").instructions)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prowess.discovery.agents import AGENTS, Agent
from prowess.discovery.scan import discover, scan
from prowess.errors import (
    AlreadyInstalledError,
    BadReferenceError,
    BinaryResourceError,
    BusyError,
    DuplicateSkillError,
    EmptySkillBodyError,
    FetchError,
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
    UnsafeTreeError,
    UnterminatedFrontmatterError,
)
from prowess.limits import MAX_COMPATIBILITY_LENGTH, MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH, Limits
from prowess.model import DialectName, Explanation, FileList, Place, Resources, Shadowed, SkillScope
from prowess.skills.catalog import Catalog, SkillSource
from prowess.skills.instructions import LoadedSkill
from prowess.skills.parse import ParsedSkill, parse_skill, parse_skill_file, read_metadata, validate
from prowess.skills.skill import Skill
from prowess.spec.allowed_tools import parse_allowed_tools
from prowess.spec.frontmatter.fields import Frontmatter
from prowess.spec.frontmatter.parse import parse_frontmatter

if TYPE_CHECKING:
    from prowess import mcp, otel
    from prowess.authoring.check import CheckReport, check
    from prowess.authoring.evals import EvalCase, EvalReport, EvalResult, evaluate, load_evals
    from prowess.authoring.findings import Finding
    from prowess.authoring.fix import Fix, apply_fix, fix
    from prowess.authoring.new import create_skill
    from prowess.authoring.pack import Packed, pack, unpack_into, write_packed
    from prowess.discovery.live import Live, live
    from prowess.discovery.settings import Setting, Settings, load_settings
    from prowess.discovery.watch import Watch, watch
    from prowess.health import Diagnosis, doctor
    from prowess.install.backups import Backup
    from prowess.install.compare_source import SkillDiff
    from prowess.install.index_search import IndexHit, IndexSearch
    from prowess.install.installer import Installer
    from prowess.install.offer import Offer, OfferedSkill
    from prowess.install.outdated import Outdated
    from prowess.install.plan import Plan
    from prowess.install.update import Update
    from prowess.lockfile.merge import LockConflict, LockMerge, merge_locks
    from prowess.lockfile.scopes import InstalledSkill, default_project_dir, default_user_dir
    from prowess.progress_steps import progress
    from prowess.runtime.acting import sandbox
    from prowess.runtime.acting.scripts import ScriptResult, Scripts
    from prowess.runtime.acting.trust import Grant, Grants, Trust
    from prowess.runtime.acting.trust_request import TrustRequest
    from prowess.runtime.activation import Activation
    from prowess.runtime.catalog_diff import Refreshed
    from prowess.runtime.events import Event, log_events
    from prowess.runtime.filter_context import current_skill_filter, skill_filter
    from prowess.runtime.fork import PreparedFork, fork_system_message, fork_user_message, subprocess_fork
    from prowess.runtime.session import Session
    from prowess.select.budget import BudgetReport, listing_costs, render_catalog
    from prowess.select.selectors import LexicalSelector, ModelDrivenSelector, Selector, SelectorChain, TagSelector
    from prowess.skills.inventory import FileInfo, Inventory, inventory
    from prowess.skills.search import SearchHit
    from prowess.sources.config_file import load_sources
    from prowess.sources.mcp.approvals import Approvals
    from prowess.sources.source import Source
    from prowess.spec.placeholders import substitute
    from prowess.spec.skill_ref import SkillRef, is_local_path
    from prowess.spec.source_spec import SourceSpec, parse_source
    from prowess.spec.tokens import estimate_tokens
    from prowess.tools.definitions import ToolDefinition, ToolResult
    from prowess.tools.dialects import DIALECTS
    from prowess.tools.dialects.skill_activate import (
        SKILL_ACTIVATE_TOOL,
        SKILL_DEACTIVATE_TOOL,
        SKILL_EXECUTOR_NAME,
        SKILL_NAMESPACE,
        SKILL_READ_RESOURCE_TOOL,
    )
    from prowess.tools.preview import Preview, preview
    from prowess.tools.shapes import (
        AnthropicTool,
        AnthropicToolResult,
        JsonSchemaTool,
        McpResult,
        McpTool,
        OpenAIMessage,
        OpenAIResponsesOutput,
        OpenAIResponsesTool,
        OpenAITool,
    )
    from prowess.tools.toolset import Toolset

__version__ = "0.1.0"

# What a program that only looks at skills does not need: loaded when it is first asked for.
_LAZY_EXPORTS = {
    "Activation": "runtime.activation",
    "AnthropicTool": "tools.shapes",
    "AnthropicToolResult": "tools.shapes",
    "Approvals": "sources.mcp.approvals",
    "Backup": "install.backups",
    "BudgetReport": "select.budget",
    "CheckReport": "authoring.check",
    "DIALECTS": "tools.dialects",
    "SKILL_ACTIVATE_TOOL": "tools.dialects.skill_activate",
    "SKILL_DEACTIVATE_TOOL": "tools.dialects.skill_activate",
    "SKILL_EXECUTOR_NAME": "tools.dialects.skill_activate",
    "SKILL_NAMESPACE": "tools.dialects.skill_activate",
    "SKILL_READ_RESOURCE_TOOL": "tools.dialects.skill_activate",
    "Diagnosis": "health",
    "EvalCase": "authoring.evals",
    "EvalReport": "authoring.evals",
    "EvalResult": "authoring.evals",
    "Event": "runtime.events",
    "FileInfo": "skills.inventory",
    "Finding": "authoring.findings",
    "Fix": "authoring.fix",
    "Grant": "runtime.acting.trust",
    "Grants": "runtime.acting.trust",
    "InstalledSkill": "lockfile.scopes",
    "IndexHit": "install.index_search",
    "IndexSearch": "install.index_search",
    "Installer": "install.installer",
    "Inventory": "skills.inventory",
    "JsonSchemaTool": "tools.shapes",
    "LexicalSelector": "select.selectors",
    "Live": "discovery.live",
    "LockConflict": "lockfile.merge",
    "LockMerge": "lockfile.merge",
    "McpResult": "tools.shapes",
    "McpTool": "tools.shapes",
    "ModelDrivenSelector": "select.selectors",
    "Offer": "install.offer",
    "OfferedSkill": "install.offer",
    "OpenAIResponsesTool": "tools.shapes",
    "OpenAIMessage": "tools.shapes",
    "OpenAIResponsesOutput": "tools.shapes",
    "OpenAITool": "tools.shapes",
    "Outdated": "install.outdated",
    "Packed": "authoring.pack",
    "Plan": "install.plan",
    "PreparedFork": "runtime.fork",
    "Preview": "tools.preview",
    "Refreshed": "runtime.catalog_diff",
    "ScriptResult": "runtime.acting.scripts",
    "Scripts": "runtime.acting.scripts",
    "SearchHit": "skills.search",
    "Selector": "select.selectors",
    "SelectorChain": "select.selectors",
    "Session": "runtime.session",
    "Setting": "discovery.settings",
    "Settings": "discovery.settings",
    "SkillDiff": "install.compare_source",
    "SkillRef": "spec.skill_ref",
    "Source": "sources.source",
    "SourceSpec": "spec.source_spec",
    "TagSelector": "select.selectors",
    "ToolDefinition": "tools.definitions",
    "ToolResult": "tools.definitions",
    "Toolset": "tools.toolset",
    "Trust": "runtime.acting.trust",
    "TrustRequest": "runtime.acting.trust_request",
    "Update": "install.update",
    "Watch": "discovery.watch",
    "apply_fix": "authoring.fix",
    "check": "authoring.check",
    "create_skill": "authoring.new",
    "current_skill_filter": "runtime.filter_context",
    "default_project_dir": "lockfile.scopes",
    "default_user_dir": "lockfile.scopes",
    "doctor": "health",
    "estimate_tokens": "spec.tokens",
    "evaluate": "authoring.evals",
    "fix": "authoring.fix",
    "fork_system_message": "runtime.fork",
    "fork_user_message": "runtime.fork",
    "inventory": "skills.inventory",
    "is_local_path": "spec.skill_ref",
    "listing_costs": "select.budget",
    "live": "discovery.live",
    "load_evals": "authoring.evals",
    "load_settings": "discovery.settings",
    "load_sources": "sources.config_file",
    "log_events": "runtime.events",
    "mcp": "mcp",
    "merge_locks": "lockfile.merge",
    "otel": "otel",
    "pack": "authoring.pack",
    "parse_source": "spec.source_spec",
    "preview": "tools.preview",
    "progress": "progress_steps",
    "render_catalog": "select.budget",
    "sandbox": "runtime.acting.sandbox",
    "skill_filter": "runtime.filter_context",
    "subprocess_fork": "runtime.fork",
    "substitute": "spec.placeholders",
    "unpack_into": "authoring.pack",
    "watch": "discovery.watch",
    "write_packed": "authoring.pack",
}
_LAZY_MODULES = frozenset(("mcp", "otel", "sandbox"))


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    room = _LAZY_EXPORTS.get(name)
    if room is None:
        raise AttributeError(f"module 'prowess' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - once a name

    found = import_module(f"prowess.{room}")
    value = globals()[name] = found if name in _LAZY_MODULES else getattr(found, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "AGENTS",
    "DIALECTS",
    "MAX_COMPATIBILITY_LENGTH",
    "MAX_DESCRIPTION_LENGTH",
    "MAX_NAME_LENGTH",
    "SKILL_ACTIVATE_TOOL",
    "SKILL_DEACTIVATE_TOOL",
    "SKILL_EXECUTOR_NAME",
    "SKILL_NAMESPACE",
    "SKILL_READ_RESOURCE_TOOL",
    "Activation",
    "Agent",
    "AlreadyInstalledError",
    "AnthropicTool",
    "AnthropicToolResult",
    "Approvals",
    "Backup",
    "BadReferenceError",
    "BinaryResourceError",
    "BudgetReport",
    "BusyError",
    "Catalog",
    "CheckReport",
    "Diagnosis",
    "DialectName",
    "DuplicateSkillError",
    "EmptySkillBodyError",
    "EvalCase",
    "EvalReport",
    "EvalResult",
    "Event",
    "Explanation",
    "FetchError",
    "FileInfo",
    "FileList",
    "Finding",
    "Fix",
    "Frontmatter",
    "GitError",
    "Grant",
    "Grants",
    "IndexHit",
    "IndexSearch",
    "InstallError",
    "InstalledSkill",
    "Installer",
    "InvalidFrontmatterError",
    "Inventory",
    "Issue",
    "JsonSchemaTool",
    "LexicalSelector",
    "Limits",
    "Live",
    "LoadedSkill",
    "LocalEditsError",
    "LockConflict",
    "LockMerge",
    "LockMismatchError",
    "MaxActiveError",
    "McpResult",
    "McpTool",
    "ModelDrivenSelector",
    "NameTakenError",
    "NoFrontmatterError",
    "NotInstalledError",
    "NotTrustedError",
    "Offer",
    "OfferedSkill",
    "OpenAIMessage",
    "OpenAIResponsesOutput",
    "OpenAIResponsesTool",
    "OpenAITool",
    "Outdated",
    "Packed",
    "ParsedSkill",
    "PathTraversalError",
    "Place",
    "Plan",
    "PreparedFork",
    "Preview",
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
    "Setting",
    "Settings",
    "Shadowed",
    "Skill",
    "SkillDiff",
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
    "Trust",
    "TrustRequest",
    "UnknownSkillError",
    "UnsafeTreeError",
    "UnterminatedFrontmatterError",
    "Update",
    "Watch",
    "apply_fix",
    "check",
    "create_skill",
    "current_skill_filter",
    "default_project_dir",
    "default_user_dir",
    "discover",
    "doctor",
    "estimate_tokens",
    "evaluate",
    "fix",
    "fork_system_message",
    "fork_user_message",
    "inventory",
    "is_local_path",
    "listing_costs",
    "live",
    "load_evals",
    "load_settings",
    "load_sources",
    "log_events",
    "mcp",
    "merge_locks",
    "otel",
    "pack",
    "parse_allowed_tools",
    "parse_frontmatter",
    "parse_skill",
    "parse_skill_file",
    "parse_source",
    "preview",
    "progress",
    "read_metadata",
    "render_catalog",
    "sandbox",
    "scan",
    "skill_filter",
    "subprocess_fork",
    "substitute",
    "unpack_into",
    "validate",
    "watch",
    "write_packed",
]
