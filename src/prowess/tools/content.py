"""Text of skills as a model receives it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prowess.errors import SkillError
from prowess.spec.hidden import one_line
from prowess.spec.substitute import fill_folder

if TYPE_CHECKING:
    from prowess.library.skill import Skill

MAX_LISTED_FILES = 50
_CLOSING = re.compile(r"<(?=\s*/\s*skill_content\b)", re.IGNORECASE)
_XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def escaped(value: str) -> str:
    """One line, safe inside an element or an attribute."""
    return one_line(value).translate(_XML)


def neutral(body: str) -> str:
    """Instructions that cannot end the element around them."""
    return _CLOSING.sub("&lt;", body)


def skill_content(skill: Skill, instructions: str, note: str = "", *, files: bool = True) -> str:
    """Instructions in an element that names the skill, its folder, the rule for paths and its files."""
    folder = skill.folder
    body = fill_folder(instructions, folder) if folder else instructions
    rows = [f'<skill_content name="{escaped(skill.name)}">', neutral(body)]
    if note:
        rows += ["", f"Note: {note}."]
    if folder:
        rows += ["", f"Skill directory: {one_line(folder)}"]
        rows.append("Paths in these instructions are relative to that directory.")
        rows += _files(skill) if files else []
    return "\n".join([*rows, "</skill_content>"])


def _files(skill: Skill) -> list[str]:
    try:
        paths = skill.resources().paths
    except SkillError:
        return []
    if not paths:
        return []
    more = len(paths) - MAX_LISTED_FILES
    rows = [f"  <file>{escaped(path)}</file>" for path in paths[:MAX_LISTED_FILES]]
    rows += [f"  <!-- {more} more -->"] if more > 0 else []
    return ["<skill_files>", *rows, "</skill_files>"]
