"""Text of skills as a model receives it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from prowess.errors import SkillError
from prowess.runtime.user_call import LOADED_INLINE, fill_instructions, note_arguments, write_notes
from prowess.spec.hidden_characters import one_line
from prowess.spec.markup import CONTENT, escape_attribute, wrap_text

if TYPE_CHECKING:
    from prowess.runtime.activation import Activation
    from prowess.skills.skill import Skill
    from prowess.spec.placeholders import Filled

MAX_LISTED_FILES = 50
_RULE = "Paths in these instructions are relative to that directory."


def skill_content(skill: Skill, instructions: str, *, notes: str = "", files: bool = True) -> str:
    """Instructions, filled already, in an element that names the skill, its folder, the rule for paths and its files.

    ``notes``: what stands below them, as ``write_notes`` gives it.
    """
    listed = _files(skill) if files else ""
    folder = skill.folder
    place = f"\n\nSkill directory: {one_line(folder)}\n{_RULE}{listed}" if folder else listed
    return wrap_text(CONTENT, skill.name, f"{instructions}{notes}{place}\n")


def load_content(
    activation: Activation, arguments: str | None = None, *, project: str = "", remedy: str = "", files: bool = True
) -> tuple[str, Filled]:
    """What a model receives that loads a skill, and its instructions with their placeholders filled.

    ``remedy``: what to call instead, for a skill that is written to run as a sub-agent.
    """
    skill = activation.skill
    filled = fill_instructions(skill, activation.instructions, activation.outputs, arguments, project)
    left_over = "" if filled.used_arguments or not arguments else f"the user's request: {one_line(arguments)}"
    inline = f"{LOADED_INLINE}{remedy}" if skill.is_fork else ""
    notes = write_notes(activation.note, note_arguments(skill, filled, arguments), left_over, inline)
    return skill_content(skill, filled.text, notes=notes, files=files), filled


def preload_written(activation: Activation) -> str:
    """The instructions of a preloaded skill as the file has them, with no command run."""
    return activation.written


def preload_expanded(activation: Activation) -> str:
    """The instructions of a preloaded skill, with what their commands printed."""
    return activation.instructions


def preload_wrapped(activation: Activation) -> str:
    """The instructions of a preloaded skill in the element that a loaded skill has."""
    return load_content(replace(activation, note=""))[0]


def file_element(path: str) -> str:
    """One row of the list of files that stands with instructions."""
    return f"  <file>{escape_attribute(one_line(path))}</file>\n"


def _files(skill: Skill) -> str:
    try:
        paths = skill.readable_paths()
    except SkillError:
        return ""
    if not paths:
        return ""
    more = len(paths) - MAX_LISTED_FILES
    rows = "".join([file_element(path) for path in paths[:MAX_LISTED_FILES]])
    rest = f"  <!-- {more} more -->\n" if more > 0 else ""
    return f"\n<skill_files>\n{rows}{rest}</skill_files>"
