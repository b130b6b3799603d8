"""Text of skills as a model receives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import SkillError
from prowess.spec.commands import outside
from prowess.spec.hidden import one_line
from prowess.spec.markup import CONTENT, escape_attribute, wrap_text
from prowess.spec.substitute import fill_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.library.skill import Skill
    from prowess.runtime.activation import Activation
    from prowess.spec.commands import Span

MAX_LISTED_FILES = 50
_RULE = "Paths in these instructions are relative to that directory."


def skill_content(
    skill: Skill, instructions: str, note: str = "", *, files: bool = True, outputs: Sequence[Span] = ()
) -> str:
    """Instructions in an element that names the skill, its folder, the rule for paths and its files.

    ``outputs``: where they hold what a command printed, which stays as it is.
    """
    folder = skill.folder
    body = outside(instructions, outputs, lambda text: fill_folder(text, folder)) if folder else instructions
    noted = f"\n\nNote: {note}." if note else ""
    listed = _files(skill) if files else ""
    place = f"\n\nSkill directory: {one_line(folder)}\n{_RULE}{listed}" if folder else listed
    return wrap_text(CONTENT, skill.name, f"{body}{noted}{place}\n")


def preload_plain(activation: Activation) -> str:
    """The instructions of a preloaded skill as they are."""
    return activation.instructions


def preload_wrapped(activation: Activation) -> str:
    """The instructions of a preloaded skill in the element that a loaded skill has."""
    return skill_content(activation.skill, activation.instructions, outputs=activation.outputs)


def file_element(path: str) -> str:
    """One row of the list of files that stands with instructions."""
    return f"  <file>{escape_attribute(one_line(path))}</file>\n"


def _files(skill: Skill) -> str:
    try:
        paths = skill.resource_paths()
    except SkillError:
        return ""
    if not paths:
        return ""
    more = len(paths) - MAX_LISTED_FILES
    rows = "".join([file_element(path) for path in paths[:MAX_LISTED_FILES]])
    rest = f"  <!-- {more} more -->\n" if more > 0 else ""
    return f"\n<skill_files>\n{rows}{rest}</skill_files>"
