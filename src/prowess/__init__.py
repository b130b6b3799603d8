"""Prowess: the Agent Skills engine for Python.

Find skills, tell a model about them in a few hundred bytes each, load instructions when they are asked for.

    import prowess

    catalog = prowess.scan("skills/")
    print(prowess.render_catalog(catalog))
    print(catalog.load("pdf").instructions)
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take a variable of this name for true; typing's own would load typing

if TYPE_CHECKING:
    from typing import Any

    from prowess import mcp, otel
    from prowess.addresses.skill_ref import SkillRef, is_local_path
    from prowess.addresses.source_spec import SourceSpec, parse_source
    from prowess.authoring.check import CheckReport, check
    from prowess.authoring.eval_files import EvalCase, EvalCheck, EvalFile, EvalTask
    from prowess.authoring.evals import EvalReport, EvalResult, EvalRival, evaluate, load_evals
    from prowess.authoring.findings import Finding
    from prowess.authoring.fix import Fix, apply_fix, fix
    from prowess.authoring.new import create_skill
    from prowess.authoring.pack import Packed, pack, unpack_into, write_packed
    from prowess.cli.health import Diagnosis, doctor
    from prowess.conversation.acting import sandbox
    from prowess.conversation.acting.runner import RunnerResult, ScriptJob, ScriptRunner
    from prowess.conversation.acting.scripts import ScriptResult, Scripts
    from prowess.conversation.acting.trust import Grant, Grants, Trust
    from prowess.conversation.acting.trust_request import TrustRequest
    from prowess.conversation.activation import Activation
    from prowess.conversation.events import Event, log_events
    from prowess.conversation.fork import PreparedFork, fork_system_message, fork_user_message, subprocess_fork
    from prowess.conversation.moment import Refreshed, Scope, ScopeContext, current_skill_filter, skill_filter
    from prowess.conversation.rendering import Preview, preview
    from prowess.conversation.session import Session
    from prowess.discovery.agents import AGENTS, Agent
    from prowess.discovery.live import Live, live
    from prowess.discovery.scan import discover, scan
    from prowess.discovery.watch import Watch, watch
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
        MissingPackageError,
        ModelError,
        NameTakenError,
        NoFrontmatterError,
        NotInstalledError,
        NotTrustedError,
        PathTraversalError,
        PolicyError,
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
    from prowess.format.frontmatter.fields import Frontmatter, parse_allowed_tools
    from prowess.format.frontmatter.parse import parse_frontmatter
    from prowess.format.placeholders import substitute
    from prowess.install.abilities import UpdateAddition
    from prowess.install.backups import Backup
    from prowess.install.compare_source import SkillDiff
    from prowess.install.index_search import IndexHit, IndexSearch
    from prowess.install.installer import Installer
    from prowess.install.offer import Offer, OfferedPlugin, OfferedSkill
    from prowess.install.outdated import Outdated
    from prowess.install.plan import Plan
    from prowess.install.update import Update
    from prowess.installed.scopes import InstalledSkill, default_project_dir, default_user_dir
    from prowess.limits import MAX_COMPATIBILITY_LENGTH, MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH, Limits
    from prowess.literals import DialectName
    from prowess.lockfile.merge import LockConflict, LockMerge, merge_locks
    from prowess.policy.files import current_policy, load_policy, use_policy
    from prowess.policy.rules import Policy
    from prowess.progress_steps import progress
    from prowess.publishing.site import PublishedSkill, PublishReport, publish, unpublish
    from prowess.search.encoder import Encoder
    from prowess.select.auto import AutoSelector
    from prowess.select.budget import BudgetReport, listing_costs, render_catalog
    from prowess.select.selectors import (
        Candidates,
        LexicalSelector,
        ModelDrivenSelector,
        RerankSelector,
        Selector,
        SelectorChain,
        SkillQuery,
        TagSelector,
    )
    from prowess.settings import Setting, Settings, load_settings
    from prowess.skills.catalog import Catalog
    from prowess.skills.explanation import Explanation, Place, Shadowed, SkillScope
    from prowess.skills.inventory import FileInfo, Inventory, inventory
    from prowess.skills.parse import ParsedSkill, parse_skill, parse_skill_file, read_metadata, validate
    from prowess.skills.resources import FileList, Resources
    from prowess.skills.search_library import SearchHit, SearchHits
    from prowess.skills.skill import LoadedSkill, Skill
    from prowess.skills.source_list import SkillSource
    from prowess.sources.config_file import load_sources
    from prowess.sources.mcp.approvals import Approvals
    from prowess.sources.source import Source
    from prowess.text.tokens import estimate_tokens
    from prowess.tools.definitions import ToolDefinition, ToolResult
    from prowess.tools.dialects import DIALECTS
    from prowess.tools.dialects.skill_activate import (
        SKILL_ACTIVATE_TOOL,
        SKILL_DEACTIVATE_TOOL,
        SKILL_EXECUTOR_NAME,
        SKILL_NAMESPACE,
        SKILL_READ_RESOURCE_TOOL,
    )
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

# Where each name of the flat namespace lives. Nothing is loaded before it is asked for: `import prowess` is part of the
# start of every program that has a use for skills only later (the bench row "import prowess").
_ROOMS = {
    "authoring.check": "CheckReport check",
    "authoring.eval_files": "EvalCase EvalCheck EvalFile EvalTask",
    "authoring.evals": "EvalReport EvalResult EvalRival evaluate load_evals",
    "authoring.findings": "Finding",
    "authoring.fix": "Fix apply_fix fix",
    "authoring.new": "create_skill",
    "authoring.pack": "Packed pack unpack_into write_packed",
    "discovery.agents": "AGENTS Agent",
    "discovery.live": "Live live",
    "discovery.scan": "discover scan",
    "settings": "Setting Settings load_settings",
    "discovery.watch": "Watch watch",
    "cli.health": "Diagnosis doctor",
    "errors": """
        AlreadyInstalledError BadReferenceError BinaryResourceError BusyError DuplicateSkillError
        EmptySkillBodyError FetchError GitError InstallError InvalidFrontmatterError Issue LocalEditsError
        LockMismatchError MaxActiveError MissingPackageError ModelError NameTakenError NoFrontmatterError
        NotInstalledError NotTrustedError PathTraversalError PolicyError ResourceChangedError ResourceError
        ResourceNotFoundError ResourceTooLargeError SandboxError SkillError SkillFilteredError SkillLoadError
        SkillNotActiveError SkillValidationError SourceError UnknownSkillError UnsafeTreeError
        UnterminatedFrontmatterError
    """,
    "install.abilities": "UpdateAddition",
    "install.backups": "Backup",
    "install.compare_source": "SkillDiff",
    "install.index_search": "IndexHit IndexSearch",
    "install.installer": "Installer",
    "install.offer": "Offer OfferedPlugin OfferedSkill",
    "install.outdated": "Outdated",
    "install.plan": "Plan",
    "install.update": "Update",
    "limits": "Limits MAX_COMPATIBILITY_LENGTH MAX_DESCRIPTION_LENGTH MAX_NAME_LENGTH",
    "lockfile.merge": "LockConflict LockMerge merge_locks",
    "installed.scopes": "InstalledSkill default_project_dir default_user_dir",
    "mcp": "mcp",
    "literals": "DialectName",
    "otel": "otel",
    "policy.files": "current_policy load_policy use_policy",
    "policy.rules": "Policy",
    "publishing.site": "PublishReport PublishedSkill publish unpublish",
    "progress_steps": "progress",
    "conversation.acting.sandbox": "sandbox",
    "conversation.acting.runner": "RunnerResult ScriptJob ScriptRunner",
    "conversation.acting.scripts": "ScriptResult Scripts",
    "conversation.acting.trust": "Grant Grants Trust",
    "conversation.acting.trust_request": "TrustRequest",
    "conversation.activation": "Activation",
    "conversation.events": "Event log_events",
    "conversation.fork": "PreparedFork fork_system_message fork_user_message subprocess_fork",
    "conversation.moment": "Refreshed Scope ScopeContext current_skill_filter skill_filter",
    "conversation.rendering": "Preview preview",
    "conversation.session": "Session",
    "search.encoder": "Encoder",
    "select.auto": "AutoSelector",
    "select.budget": "BudgetReport listing_costs render_catalog",
    "select.selectors": (
        "Candidates LexicalSelector ModelDrivenSelector RerankSelector Selector SelectorChain SkillQuery TagSelector"
    ),
    "skills.catalog": "Catalog",
    "skills.explanation": "Explanation Place Shadowed SkillScope",
    "skills.resources": "FileList Resources",
    "skills.source_list": "SkillSource",
    "skills.inventory": "FileInfo Inventory inventory",
    "skills.parse": "ParsedSkill parse_skill parse_skill_file read_metadata validate",
    "skills.search_library": "SearchHit SearchHits",
    "skills.skill": "LoadedSkill Skill",
    "sources.config_file": "load_sources",
    "sources.mcp.approvals": "Approvals",
    "sources.source": "Source",
    "format.frontmatter.fields": "Frontmatter parse_allowed_tools",
    "format.frontmatter.parse": "parse_frontmatter",
    "format.placeholders": "substitute",
    "addresses.skill_ref": "SkillRef is_local_path",
    "addresses.source_spec": "SourceSpec parse_source",
    "text.tokens": "estimate_tokens",
    "tools.definitions": "ToolDefinition ToolResult",
    "tools.dialects": "DIALECTS",
    "tools.dialects.skill_activate": """
        SKILL_ACTIVATE_TOOL SKILL_DEACTIVATE_TOOL SKILL_EXECUTOR_NAME SKILL_NAMESPACE SKILL_READ_RESOURCE_TOOL
    """,
    "tools.shapes": """
        AnthropicTool AnthropicToolResult JsonSchemaTool McpResult McpTool OpenAIMessage OpenAIResponsesOutput
        OpenAIResponsesTool OpenAITool
    """,
    "tools.toolset": "Toolset",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}
_MODULES = frozenset(("mcp", "otel", "sandbox"))
# After `import prowess` alone, programs may write `prowess.errors.SkillError`.
_REACHABLE = frozenset(
    (
        "addresses",
        "arguments",
        "discovery",
        "errors",
        "files",
        "format",
        "hints",
        "limits",
        "names",
        "search",
        "skills",
        "text",
    )
)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    room = name if name in _REACHABLE else _ROOM_OF.get(name, "")
    if not room:
        raise AttributeError(f"module 'prowess' has no attribute {name!r}")
    module = import_module(f"prowess.{room}")
    value = globals()[name] = module if name in _MODULES or name in _REACHABLE else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_REACHABLE})


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
    "AutoSelector",
    "Backup",
    "BadReferenceError",
    "BinaryResourceError",
    "BudgetReport",
    "BusyError",
    "Candidates",
    "Catalog",
    "CheckReport",
    "Diagnosis",
    "DialectName",
    "DuplicateSkillError",
    "EmptySkillBodyError",
    "Encoder",
    "EvalCase",
    "EvalCheck",
    "EvalFile",
    "EvalReport",
    "EvalResult",
    "EvalRival",
    "EvalTask",
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
    "MissingPackageError",
    "ModelDrivenSelector",
    "ModelError",
    "NameTakenError",
    "NoFrontmatterError",
    "NotInstalledError",
    "NotTrustedError",
    "Offer",
    "OfferedPlugin",
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
    "Policy",
    "PolicyError",
    "PreparedFork",
    "Preview",
    "PublishReport",
    "PublishedSkill",
    "Refreshed",
    "RerankSelector",
    "ResourceChangedError",
    "ResourceError",
    "ResourceNotFoundError",
    "ResourceTooLargeError",
    "Resources",
    "RunnerResult",
    "SandboxError",
    "Scope",
    "ScopeContext",
    "ScriptJob",
    "ScriptResult",
    "ScriptRunner",
    "Scripts",
    "SearchHit",
    "SearchHits",
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
    "SkillQuery",
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
    "UpdateAddition",
    "Watch",
    "apply_fix",
    "check",
    "create_skill",
    "current_policy",
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
    "load_policy",
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
    "publish",
    "read_metadata",
    "render_catalog",
    "sandbox",
    "scan",
    "skill_filter",
    "subprocess_fork",
    "substitute",
    "unpack_into",
    "unpublish",
    "use_policy",
    "validate",
    "watch",
    "write_packed",
]
