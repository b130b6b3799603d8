"""What dialects are made of: tools, a prompt block, when a tool is offered, parameters that several share."""

from __future__ import annotations

from copy import deepcopy
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from prowess.errors import SkillError, SkillNotActiveError, SkillValidationError
from prowess.tools.definitions import ToolDefinition, object_schema, string_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from prowess.conversation.activation import Activation
    from prowess.literals import DialectName
    from prowess.skills.skill import Skill
    from prowess.tools.definitions import ToolResult
    from prowess.tools.prompt import View

    ToolHandler = Callable[["View", Mapping[str, Any]], ToolResult]
    DescribeTool = Callable[["View"], ToolDefinition]
    IsOffered = Callable[["View"], bool]

MAX_ENUM_VALUES = 50
"""Above this many names a parameter takes any string: an enum of all names would cost as much as the listing."""
SEARCH_THRESHOLD = 30
"""The number of skills above which the tool that searches is offered."""


class Tool(NamedTuple):
    """A tool of a dialect: its name, its definition, its handler, and when it is offered.

    A handler returns a result or raises; the toolset turns an exception into a result with the dialect's
    ``render_error``.
    """

    name: str
    definition: ToolDefinition | DescribeTool
    """The definition, or what makes it for the current skills."""
    handler: ToolHandler
    is_offered: IsOffered
    acts: Literal["", "fork", "script"] = ""
    """Whether it runs a skill as a sub-agent, or a script of a skill."""

    def define(self, view: View) -> ToolDefinition:
        """Return the definition for what ``view`` shows; it is the caller's to change."""
        definition = self.definition
        return deepcopy(definition) if isinstance(definition, ToolDefinition) else definition(view)


class Dialect(NamedTuple):
    """The names, shapes and strings of one system's tools; the first tool is the one that loads a skill."""

    name: DialectName
    tools: tuple[Tool, ...]
    render_prompt: Callable[[View], str]
    render_error: Callable[[str, Exception], ToolResult]
    render_preload: Callable[[Activation], str] = attrgetter("written")
    """Renders the instructions of a preloaded skill for the prompt; by default as the file has them."""
    loads_hidden: bool = True
    """Whether its tool loads a skill that is hidden from models, when a model names it nevertheless."""
    selects_by_default: bool = False
    """Whether the default selector of a session counts: the systems of other dialects show every skill."""
    has_index_tool: bool = False
    """Whether the listing can be in the description of a tool."""

    @property
    def has_fork_tool(self) -> bool:
        """Whether the dialect has a tool that runs skills as sub-agents."""
        return any(tool.acts == "fork" for tool in self.tools)

    @property
    def has_script_tool(self) -> bool:
        """Whether the dialect has a tool that runs scripts."""
        return any(tool.acts == "script" for tool in self.tools)


# -- when a tool is offered --------------------------------------------------------------------------------------------


def has_skills(view: View) -> bool:
    """Return whether there is a skill to load."""
    return bool(view.skills)


def can_load_skills(view: View) -> bool:
    """Return whether there is a skill to load, listed or kept for explicit calls, for a tool that loads either."""
    return has_skills(view) or any(
        not view.moment.is_for_models(skill) and view.moment.find(skill.name) for skill in view.moment.catalog
    )


def has_files(view: View) -> bool:
    """Return whether any of the skills has a file besides its SKILL.md, or may have one."""
    return any(map(may_have_files, view.skills))


def may_have_files(skill: Skill) -> bool:
    """Return whether a skill has a supporting file, or may have one; nothing is fetched to find out."""
    try:
        return skill.own_files.may_have_files()
    except SkillError:
        return False


def has_forks(view: View) -> bool:
    """Return whether any of the skills runs as a sub-agent, and the host can run sub-agents."""
    return bool(view.forks)


def may_run_scripts(view: View) -> bool:
    """Return whether a script of any of the skills could run: it is granted, or somebody can be asked."""
    trust = view.session.trust
    if view.options.scripts is None or trust is None or trust.policy == "never":
        return False
    if trust.policy != "granted":
        return any(has_scripts(skill) for skill in view.skills)
    try:
        grants = trust.grants()
    except SkillError:  # the file of grants is damaged, and then nothing counts as granted
        return False
    # Whether a skill is trusted takes hashing its files. A grant names its skill, so only those need to be hashed.
    names = {grant.name for grant in grants}
    return any(skill.name in names and has_scripts(skill) and trust.is_trusted(skill) for skill in view.skills)


def is_searchable(view: View) -> bool:
    """Return whether there are more skills than a listing shows well; otherwise a search would find nothing new."""
    return bool(view.findable) and (len(view.findable) > SEARCH_THRESHOLD or view.is_listing_cut)


def has_scripts(skill: Skill) -> bool:
    """Return whether a skill on this machine has scripts."""
    if not skill.is_local:
        return False
    try:
        return bool(skill.resources().scripts)
    except SkillValidationError:
        return False


# -- parameters --------------------------------------------------------------------------------------------------------


def name_parameter(view: View, description: str = "", *, search: bool = False) -> dict[str, Any]:
    """Return the parameter that names a skill, with the names as an enum while they are few.

    ``search``: no enum when a search could find further names.
    """
    return string_schema(description, **make_enum(view, [skill.name for skill in view.skills], search=search))


def make_enum(view: View, names: Sequence[str], *, search: bool = False) -> dict[str, Any]:
    """Return the names as an ``enum`` keyword while they are few; ``search``: not when a search could find more.

    There is none when an ``AutoSelector`` leaves out names: later requests bring others into the listing.
    """
    is_cut_by_selector = view.choice.budget is not None and view.is_listing_cut
    if not 0 < len(names) <= MAX_ENUM_VALUES or (search and is_searchable(view)) or is_cut_by_selector:
        return {}
    return {"enum": list(names)}


def fork_parameters(names: Mapping[str, Any] = {}) -> dict[str, Any]:
    """Return the parameters of a tool that runs a skill as a sub-agent; ``names``: an ``enum`` of the skills."""
    name = string_schema("The name of the skill to run in a forked context", **names)
    task = string_schema("A clear description of the task the skill should achieve")
    return object_schema({"name": name, "task": task}, ("name", "task"), closed=True)


# -- refusals ----------------------------------------------------------------------------------------------------------


def require_allowed_skill(view: View, name: str) -> None:
    """Raise ``UnknownSkillError`` for a skill that the toolset does not let the model have."""
    if not view.moment.is_allowed(name):
        raise view.make_unknown_error(name)


def deactivate_skill(view: View, name: str) -> tuple[str, ...]:
    """Deactivate a skill, and return the tools that it no longer adds; raises ``SkillNotActiveError``."""
    if not view.moment.is_allowed(name):  # the model must not learn whether the host uses that skill
        raise SkillNotActiveError(f"skill {name!r} is not active")
    return view.session.deactivate(name)
