"""Prowess: the Agent Skills engine for Python.

Find skills, tell a model about them in a few hundred bytes each, load instructions when they are asked for.

    import prowess

    catalog = prowess.scan("skills/")
    print(prowess.render_catalog(catalog))
    print(catalog.load("pdf").instructions)
"""

from __future__ import annotations

from prowess.errors import (
    BinaryResourceError,
    DuplicateSkillError,
    EmptySkillBodyError,
    InvalidFrontmatterError,
    Issue,
    NoFrontmatterError,
    PathTraversalError,
    ResourceChangedError,
    ResourceError,
    ResourceNotFoundError,
    ResourceTooLargeError,
    SkillError,
    SkillLoadError,
    SkillValidationError,
    SourceError,
    UnknownSkillError,
    UnterminatedFrontmatterError,
)
from prowess.library.agents import AGENTS, Agent
from prowess.library.catalog import Catalog
from prowess.library.load import ParsedSkill, parse_skill, parse_skill_file, read_metadata, validate
from prowess.library.scan import discover, scan
from prowess.library.skill import LoadedSkill, Skill
from prowess.limits import MAX_COMPATIBILITY_LENGTH, MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH, Limits
from prowess.model import Explanation, FileList, Place, Resources, Shadowed, SkillScope
from prowess.spec.allowed_tools import parse_allowed_tools
from prowess.spec.fields import Frontmatter
from prowess.spec.frontmatter import parse_frontmatter
from prowess.spec.render import render_catalog

__version__ = "0.1.0"

__all__ = [
    "AGENTS",
    "MAX_COMPATIBILITY_LENGTH",
    "MAX_DESCRIPTION_LENGTH",
    "MAX_NAME_LENGTH",
    "Agent",
    "BinaryResourceError",
    "Catalog",
    "DuplicateSkillError",
    "EmptySkillBodyError",
    "Explanation",
    "FileList",
    "Frontmatter",
    "InvalidFrontmatterError",
    "Issue",
    "Limits",
    "LoadedSkill",
    "NoFrontmatterError",
    "ParsedSkill",
    "PathTraversalError",
    "Place",
    "ResourceChangedError",
    "ResourceError",
    "ResourceNotFoundError",
    "ResourceTooLargeError",
    "Resources",
    "Shadowed",
    "Skill",
    "SkillError",
    "SkillLoadError",
    "SkillScope",
    "SkillValidationError",
    "SourceError",
    "UnknownSkillError",
    "UnterminatedFrontmatterError",
    "discover",
    "parse_allowed_tools",
    "parse_frontmatter",
    "parse_skill",
    "parse_skill_file",
    "read_metadata",
    "render_catalog",
    "scan",
    "validate",
]
