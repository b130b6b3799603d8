"""Text of skills as a model receives it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prowess.errors import SkillError
from prowess.spec.commands import outside
from prowess.spec.hidden import one_line
from prowess.spec.substitute import fill_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.library.skill import Skill
    from prowess.spec.commands import Span

MAX_LISTED_FILES = 50
_RULE = "Paths in these instructions are relative to that directory."
_CLOSING = re.compile(r"<(?=\s*/\s*skill_content\b)", re.IGNORECASE)
_SPECIAL = re.compile(r'[&<>"]')
_XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def escaped(value: str) -> str:
    """One line, safe inside an element or an attribute."""
    shown = one_line(value)
    return shown.translate(_XML) if _SPECIAL.search(shown) else shown


def neutral(body: str) -> str:
    """Instructions that cannot end the element around them."""
    return _CLOSING.sub("&lt;", body)


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
    return f'<skill_content name="{escaped(skill.name)}">\n{neutral(body)}{noted}{place}\n</skill_content>'


def _files(skill: Skill) -> str:
    try:
        paths = skill.resource_paths()
    except SkillError:
        return ""
    if not paths:
        return ""
    more = len(paths) - MAX_LISTED_FILES
    rows = "".join([f"  <file>{escaped(path)}</file>\n" for path in paths[:MAX_LISTED_FILES]])
    rest = f"  <!-- {more} more -->\n" if more > 0 else ""
    return f"\n<skill_files>\n{rows}{rest}</skill_files>"
