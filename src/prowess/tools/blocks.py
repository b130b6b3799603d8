"""The prompt block of each dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import SkillError
from prowess.spec.hidden import one_line
from prowess.spec.markup import escape_attribute, escape_xml, neutralize_tags
from prowess.spec.render import render_entries, render_lines
from prowess.tools.content import skill_content

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from prowess.library.skill import Skill
    from prowess.runtime.activation import Activation
    from prowess.spec.render import Entry
    from prowess.tools.view import View

_S3_CUT = 200


def s0(view: View) -> str:
    """A Markdown list, and the sentence that names the tool."""
    if not view.skills:
        return ""
    listing = view.fitted(render_lines)
    closing = "Call the load_skill tool with a skill name to load its full instructions."
    return f"# Available Skills\n\n{listing}\n\n{closing}"


def s1(view: View) -> str:
    """The index, unless it stands in the description of the tool."""
    listing = view.index() if view.skills else ""
    return "" if view.index_in_description else listing


def s2(view: View) -> str:
    """XML without locations; the files of each skill, and which tool reads them."""
    if not view.skills:
        return ""
    files = {skill.name: _paths(skill) for skill in view.skills}
    forks = {skill.name for skill in view.skills if skill.is_fork}
    intro = ["The skills below hold instructions for particular tasks. When one fits, read it with read_skill first."]
    if view.forks:
        intro.append("A skill whose mode is forked runs as a sub-agent of its own: use run_skill, not read_skill.")
    if any(files.values()):
        intro.append("Files that belong to a skill are read with read_skill_file.")

    def render(entries: Sequence[Entry]) -> str:
        rows = "".join(_s2_entry(entry, files.get(entry[0], ()), entry[0] in forks) for entry in entries)
        return f"<available_skills>\n{rows}</available_skills>"

    return "\n\n".join([*intro, view.fitted(render)])


def _s2_entry(entry: Entry, files: tuple[str, ...], fork: bool) -> str:  # noqa: FBT001 - one caller
    name, description, _ = map(escape_xml, entry)
    rows = [f"    <name>{name}</name>", f"    <description>{description}</description>"]
    rows += ["    <mode>forked</mode>"] if fork else []
    rows += [f"    <files>{escape_attribute(one_line(', '.join(files)))}</files>"] if files else []
    return "  <skill>\n" + "\n".join(rows) + "\n  </skill>\n"


def _paths(skill: Skill) -> tuple[str, ...]:
    try:
        return skill.resource_paths()
    except SkillError:
        return ()


def s3(view: View) -> str:
    """A Markdown section in the order of the allowed list, descriptions cut at 200 characters."""
    known = {skill.name: skill for skill in view.skills}
    order = view.options.allowed if view.options.allowed is not None else tuple(known)
    skills = tuple(known[name] for name in order if name in known)
    if not skills:
        return ""
    needs = {skill.name: skill.compatibility for skill in skills}

    def render(entries: Sequence[Entry]) -> str:
        return neutralize_tags("\n".join(_s3_entry(entry, needs.get(entry[0])) for entry in entries))

    call = 'Call `skill_load(name="<name>")` to load full instructions for one of these:'
    return f"\n## Available skills\n\n{call}\n\n{view.fitted(render, skills)}"


def _s3_entry(entry: Entry, needs: str | None) -> str:
    name, description, _ = entry
    row = f"- {name}: {description[:_S3_CUT].rstrip()}" if description else f"- {name}"
    return f"{row}\n  (compatibility: {one_line(needs)})" if needs else row


def s4(view: View) -> str:
    """XML with locations."""
    if not view.skills:
        return ""
    intro = (
        "The following skills are available. To activate one, call the `from_scratch__use_skill` tool with the skill "
        "name."
    )
    return f"{intro}\n\n{view.fitted(lambda entries: render_entries(entries, 'xml'))}"


def own(view: View) -> str:
    """Ours: the rule, and the listing without locations."""
    blocks: list[str] = []
    if view.skills:
        blocks.append(
            "Skills are instructions for particular tasks. When a task fits a description below, call load_skill with "
            "that name before you begin, and follow what it says.",
        )
        if view.forks:
            blocks.append("A skill whose mode is forked runs as a sub-agent of its own: call run_skill instead.")
        blocks.append(view.fitted(lambda entries: _own_listing(entries, view.forks)))
    if view.report.omitted:
        blocks.append(f"{len(view.report.omitted)} more are not listed: find them with search_skills.")
    return "\n\n".join(blocks)


def preloaded_plain(loaded: Activation) -> str:
    """Instructions as they are."""
    return loaded.instructions


def preloaded_wrapped(loaded: Activation) -> str:
    """Instructions in the element that a loaded skill has."""
    return skill_content(loaded.skill, loaded.instructions, outputs=loaded.outputs)


def _own_listing(entries: Sequence[Entry], forks: AbstractSet[str]) -> str:
    rows = "".join(_own_entry(entry, entry[0] in forks) for entry in entries)
    return f"<available_skills>\n{rows}</available_skills>"


def _own_entry(entry: Entry, fork: bool) -> str:  # noqa: FBT001 - one caller
    name, description, _ = map(escape_xml, entry)
    described = f"<description>{description}</description>" if description else ""
    mode = "<mode>forked</mode>" if fork else ""
    return f"<skill><name>{name}</name>{described}{mode}</skill>\n"
