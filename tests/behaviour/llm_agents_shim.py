"""The documented names of ``llm_agents_from_scratch.skills`` in terms of Prowess, as a host may write them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import prowess

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SkillFrontmatter = prowess.Frontmatter
SkillScope = prowess.SkillScope
SkillsError = prowess.SkillError
SkillValidationError = prowess.SkillValidationError
InvalidFrontmatterError = prowess.InvalidFrontmatterError
EmptySkillBodyError = prowess.EmptySkillBodyError

OPTIONAL_SUBDIRS = ("assets", "scripts", "references")
_PLACES = {SkillScope.PROJECT: Path.cwd, SkillScope.USER: Path.home}
_ANY_NAME = prowess.Limits(max_lenient_name_chars=10_000)


class MissingSkillMdError(SkillValidationError):
    """The folder has no SKILL.md."""


class SkillsWarning(UserWarning):
    """Any warning about skills."""


class SkillSkippedWarning(SkillsWarning):
    """A folder that has no skill that loads."""


class SkillValidationWarning(SkillsWarning):
    """A skill that loads nevertheless."""


class NameMismatchWarning(SkillValidationWarning):
    """The name is not that of the folder."""


class NameTooLongWarning(SkillValidationWarning):
    """The name has more than 64 characters."""


class SkillShadowedWarning(SkillValidationWarning):
    """Another skill of the name wins."""


_WARNINGS: Mapping[str, type[SkillsWarning]] = {
    "name-mismatch": NameMismatchWarning,
    "shadowed-by-project": SkillShadowedWarning,
    "duplicate-name": SkillShadowedWarning,
}


class Skill:
    """A skill with the attributes of that system."""

    def __init__(self, frontmatter: SkillFrontmatter, location: Path, scope: prowess.SkillScope) -> None:
        self.frontmatter = frontmatter
        self.location = location
        self.scope = scope
        self.native = prowess.Skill(frontmatter, location, scope)

    def read_body(self) -> str:
        """Return the stripped body as it is now."""
        return self.native.read_body(strip=True)

    @property
    def resources(self) -> list[Path]:
        """The files in the optional folders as they are now."""
        return [Path(path) for path in self.native.resources().paths if "/" in path]

    def catalog(self) -> str:
        """Return the element of the skill for a prompt."""
        return self.native.to_xml()


def discover_skills(scopes: Iterable[prowess.SkillScope] = (SkillScope.USER, SkillScope.PROJECT)) -> dict[str, Skill]:
    """Return the skills of the scopes by name, later scopes winning; warn of what is skipped or odd."""
    found = prowess.Catalog.from_sources(
        [
            prowess.Source.directory(
                _PLACES[scope]() / ".agents" / "skills",
                scope=scope,
                max_depth=1,
                skip_prefixes=(),
                follow_links=True,
                repair=False,
                limits=_ANY_NAME,
            )
            for scope in scopes
        ],
        on_duplicate="last",
    )
    for issue in found.issues:
        if issue.severity != "info":
            warnings.warn(_make_warning(issue), stacklevel=2)
    return {name: Skill(one.frontmatter, Path(one.location).resolve(), _scope_of(one)) for name, one in found.items()}


def _scope_of(skill: prowess.Skill) -> prowess.SkillScope:
    assert skill.scope is not None
    return skill.scope


def _make_warning(issue: prowess.Issue) -> SkillsWarning:
    if issue.severity == "error":
        return SkillSkippedWarning(str(issue))
    is_too_long = issue.code == "bad-name" and "characters; at most" in issue.message
    kind = NameTooLongWarning if is_too_long else _WARNINGS.get(issue.code, SkillValidationWarning)
    return kind(str(issue))


def validate_skill_dir(folder: Path) -> tuple[SkillFrontmatter, list[SkillsWarning]]:
    """Return the frontmatter and the warnings of a folder, or raise what is wrong with it."""
    try:
        parsed = prowess.parse_skill_file(folder, mode="lenient", repair=False, limits=_ANY_NAME)
    except SkillValidationError as error:
        if error.code == "missing-skill-md":
            raise MissingSkillMdError(error.message, error.path) from None
        raise
    parsed.skill.read_body(strip=True)
    return parsed.skill.frontmatter, [_make_warning(issue) for issue in parsed.warnings]


class UseSkillTool:
    """The tool by which a model loads a skill."""

    def __init__(self, skills: Mapping[str, Skill], explicit_only: Iterable[str] = ()) -> None:
        catalog = prowess.Catalog(one.native for one in skills.values())
        self._toolset = prowess.Toolset(prowess.Session(catalog, explicit_only=explicit_only), "use_skill")
        (self._tool,) = self._toolset.possible_tools()

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self._tool.name

    @property
    def description(self) -> str:
        """What a model is told about the tool."""
        return self._tool.description

    @property
    def parameters_json_schema(self) -> Mapping[str, Any]:
        """The schema of its parameters."""
        return self._tool.parameters

    def __call__(self, arguments: Mapping[str, Any]) -> prowess.ToolResult:
        """Return the instructions, or a result that is an error."""
        return self._toolset.call(self.name, arguments)

    def catalog(self) -> str:
        """Return the text about skills that follows the system message."""
        return self._toolset.prompt()

    def explicit(self, name: str, prompt: str = "") -> str:
        """Return the task of ``run_with_skill``."""
        return self._toolset.explicit(name, prompt)
