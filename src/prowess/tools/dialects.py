"""The dialects: which tools a model is offered, under which names, and what block stands in the prompt.

One table, ``DIALECTS``. A dialect is its tools (each a definition for the skills at hand, and the handler that answers
a call) and its prompt. Adding one touches this table and its handlers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prowess.tools import acting, answers, blocks
from prowess.tools.definitions import ToolDefinition, schema, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from prowess.model import DialectName
    from prowess.runtime.activation import Activation
    from prowess.tools.definitions import ToolResult
    from prowess.tools.view import View

    Handler = Callable[["View", Mapping[str, Any]], ToolResult]
    Describe = Callable[["View"], ToolDefinition]
    Offered = Callable[["View"], bool]

ENUM_MOST = 50
SEARCH_FROM = 30


class Tool(NamedTuple):
    """One tool of a dialect."""

    name: str
    describe: Describe
    handler: Handler
    offered: Offered


class Dialect(NamedTuple):
    """Tools, prompt, and how an error that no handler foresaw is put."""

    name: DialectName
    tools: tuple[Tool, ...]
    prompt: Callable[[View], str]
    error: Callable[[str, Exception], ToolResult]
    preloaded: Callable[[Activation], str] = blocks.preloaded_plain
    """How instructions that are there from the start stand in the prompt."""
    loads_hidden: bool = True
    """Whether its tool loads a skill that is not shown to models, when it is called all the same."""

    @property
    def forks(self) -> bool:
        """Whether it has a tool that runs skills as sub-agents."""
        return any(tool.handler is acting.run_skill for tool in self.tools)

    @property
    def runs_scripts(self) -> bool:
        """Whether it has a tool that runs scripts."""
        return any(tool.handler is acting.run_script for tool in self.tools)


def _always(view: View) -> bool:
    return bool(view.skills)


def _has_files(view: View) -> bool:
    return view.any_files()


def _forks(view: View) -> bool:
    return bool(view.forks)


def _scripted(view: View) -> bool:
    """Where nothing is trusted, no script could run."""
    options = view.options
    if options.scripts is None or view.session.trust is None or view.session.trust.policy == "never":
        return False
    return any(acting.has_scripts(skill) for skill in view.skills)


def _searchable(view: View) -> bool:
    """Where a listing shows everything, and little, there is nothing to search for."""
    return bool(view.findable) and (len(view.findable) > SEARCH_FROM or view.is_cut)


def _name(view: View, description: str = "", *, search: bool = False) -> dict[str, Any]:
    """The parameter that names a skill; its values are listed while they are few and no search could find more."""
    names = [skill.name for skill in view.skills]
    short = 0 < len(names) <= ENUM_MOST and not (search and _searchable(view))
    return text(description, **({"enum": names} if short else {}))


def _s0_load(_view: View) -> ToolDefinition:
    description = "Load the full instructions for a named skill. Returns the complete SKILL.md body as markdown."
    return ToolDefinition("load_skill", description, schema({"skill_name": text()}, ("skill_name",)))


def _s1_activate(view: View) -> ToolDefinition:
    description = "Activate a skill to load its instructions and tools."
    if view.index_in_description:
        description += f"\n\n{view.index()}"
    lists = {"instructions": text(), "added_tools": {"type": "array", "items": text()}}
    return ToolDefinition(
        "skill__activate",
        description,
        schema({"name": text()}, ("name",)),
        parallel=False,
        read_only=False,
        output=schema(lists, ("instructions", "added_tools")),
    )


def _s1_deactivate(_view: View) -> ToolDefinition:
    return ToolDefinition(
        "skill__deactivate",
        "Deactivate a skill to unload its instructions and tools.",
        schema({"name": text()}, ("name",)),
        parallel=False,
        read_only=False,
        output=schema({"removed_tools": {"type": "array", "items": text()}}, ("removed_tools",)),
    )


def _s1_read(_view: View) -> ToolDefinition:
    return ToolDefinition(
        "skill__read_resource",
        "Read a resource file from within a skill's directory.",
        schema({"skill_name": text(), "path": text()}, ("skill_name", "path")),
        output=schema({"content": text()}, ("content",)),
    )


def _s2_read(_view: View) -> ToolDefinition:
    parameters = schema({"name": text("The name of the skill to read")}, ("name",), closed=True)
    return ToolDefinition(
        "read_skill", "Reads what a skill says, by its name: its whole SKILL.md.", parameters, title="Read Skill"
    )


def _s2_file(_view: View) -> ToolDefinition:
    parameters = schema(
        {
            "skill_name": text("The name of the skill that the file belongs to"),
            "path": text("The path of the file, relative to the skill, such as references/FORMS.md"),
        },
        ("skill_name", "path"),
        closed=True,
    )
    return ToolDefinition(
        "read_skill_file", "Reads a file that belongs to a skill.", parameters, title="Read Skill File"
    )


def _s2_run(_view: View) -> ToolDefinition:
    return ToolDefinition(
        "run_skill",
        "Runs a skill as a sub-agent of its own, and returns its answer.",
        _fork_parameters(text("The name of the skill to run in a forked context")),
        parallel=False,
        read_only=False,
        title="Run Skill",
    )


def _fork_parameters(name: dict[str, Any]) -> dict[str, Any]:
    task = text("A clear description of the task the skill should achieve")
    return schema({"name": name, "task": task}, ("name", "task"), closed=True)


def _s3_load(_view: View) -> ToolDefinition:
    return ToolDefinition(
        "skill_load",
        "Loads the instructions of one of the skills that are available to you.",
        schema({"name": text("Name of the skill")}, ("name",)),
    )


def _s3_resource(_view: View) -> ToolDefinition:
    return ToolDefinition(
        "skill_resource",
        "Lists the supporting files of a skill, or reads one of them.",
        schema(
            {"name": text("Name of the skill"), "resource": text("Path of the file; leave it out to list them")},
            ("name",),
        ),
    )


def _s4_use(view: View) -> ToolDefinition:
    return ToolDefinition(
        "from_scratch__use_skill",
        "Activates a skill by its name and returns its instructions.",
        schema({"name": _name(view, "The name of the skill to activate")}, ("name",)),
    )


def _load(view: View) -> ToolDefinition:
    return ToolDefinition(
        "load_skill",
        "Load a skill's instructions before doing a task that its description fits.",
        schema({"name": _name(view, "The skill's name, as listed", search=True)}, ("name",), closed=True),
    )


def _unload(_view: View) -> ToolDefinition:
    return ToolDefinition(
        "unload_skill",
        "Put a skill aside whose instructions no longer apply.",
        schema({"name": text("The skill's name")}, ("name",), closed=True),
        parallel=False,
        read_only=False,
    )


def _file(view: View) -> ToolDefinition:
    parameters = {
        "name": _name(view, "The skill's name", search=True),
        "path": text("The file, relative to the skill's directory, such as references/guide.md"),
        "offset": {"type": "integer", "minimum": 0, "description": "First line to read, counted from 0"},
        "limit": {"type": "integer", "minimum": 1, "description": "How many lines to read"},
    }
    return ToolDefinition(
        "read_skill_file",
        "Read a file of a skill when its instructions name it; large files in parts.",
        schema(parameters, ("name", "path"), closed=True),
    )


def _run(view: View) -> ToolDefinition:
    names = sorted(view.forks)
    listed = {"enum": names} if 0 < len(names) <= ENUM_MOST and not _searchable(view) else {}
    return ToolDefinition(
        "run_skill",
        "Run a skill whose mode is forked as a sub-agent of its own, and get its answer.",
        _fork_parameters(text("The name of the skill to run in a forked context", **listed)),
        parallel=False,
        read_only=False,
    )


def _run_script(view: View) -> ToolDefinition:
    parameters = {
        "name": _name(view, "The skill's name", search=True),
        "script": text("The script, relative to the skill's directory, such as scripts/convert.py"),
        "args": {"type": "array", "items": text(), "description": "Its arguments, one item each"},
        "stdin": text("What it reads from standard input"),
    }
    return ToolDefinition(
        "run_skill_script",
        "Run a script of a skill when its instructions say so, and get what it prints.",
        schema(parameters, ("name", "script"), closed=True),
        parallel=False,
        read_only=False,
    )


def _search(_view: View) -> ToolDefinition:
    parameters = {
        "query": text("What the task is about, in a few words"),
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "description": "At most so many (10)"},
    }
    return ToolDefinition(
        "search_skills",
        "Find skills for a task among all of them, also those that are not listed.",
        schema(parameters, ("query",), closed=True),
    )


DIALECTS: dict[DialectName, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "load_skill",
            (Tool("load_skill", _s0_load, answers.s0_load, _always),),
            blocks.s0,
            answers.s0_error,
        ),
        Dialect(
            "skill__activate",
            (
                Tool("skill__activate", _s1_activate, answers.s1_activate, _always),
                Tool("skill__deactivate", _s1_deactivate, answers.s1_deactivate, _always),
                Tool("skill__read_resource", _s1_read, answers.s1_read, _always),
            ),
            blocks.s1,
            answers.s1_error,
        ),
        Dialect(
            "read_skill",
            (
                Tool("read_skill", _s2_read, answers.s2_read, _always),
                Tool("read_skill_file", _s2_file, answers.s2_file, _has_files),
                Tool("run_skill", _s2_run, acting.run_skill, _forks),
            ),
            blocks.s2,
            answers.s2_error,
        ),
        Dialect(
            "skill_load",
            (
                Tool("skill_load", _s3_load, answers.s3_load, _always),
                Tool("skill_resource", _s3_resource, answers.s3_resource, _always),
            ),
            blocks.s3,
            answers.plain_error,
        ),
        Dialect(
            "use_skill",
            (Tool("from_scratch__use_skill", _s4_use, answers.s4_use, _always),),
            blocks.s4,
            answers.s4_error,
            blocks.preloaded_wrapped,
        ),
        Dialect(
            "prowess",
            (
                Tool("load_skill", _load, answers.load, _always),
                Tool("unload_skill", _unload, answers.unload, _always),
                Tool("read_skill_file", _file, answers.read_file, _has_files),
                Tool("run_skill", _run, acting.run_skill, _forks),
                Tool("run_skill_script", _run_script, acting.run_script, _scripted),
                Tool("search_skills", _search, answers.search, _searchable),
            ),
            blocks.own,
            answers.helpful_error,
            blocks.preloaded_wrapped,
            loads_hidden=False,
        ),
    )
}
"""Every dialect by its name."""
