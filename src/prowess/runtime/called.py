"""What a person's explicit call of a skill sends to the model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prowess.spec.hidden import one_line
from prowess.spec.render import escape_xml
from prowess.spec.substitute import PROJECT_NAMES, argument_names, substitute

if TYPE_CHECKING:
    from prowess.library.skill import Skill

_CLOSING = re.compile(r"<(?=/\s*skill\s*>)", re.IGNORECASE)
_CALL = re.compile(r"[/$]([^\s/$]{1,64})(?:\s+(.*))?", re.DOTALL)


def parse_call(message: str) -> tuple[str, str] | None:
    """The name and the arguments of ``/name arguments`` or ``$name arguments``."""
    match = _CALL.fullmatch(message.strip())
    return (match[1], (match[2] or "").strip()) if match else None


def called(skill: Skill, instructions: str, arguments: str, project: str) -> str:
    """The instructions with their placeholders filled, in an element; arguments without a place stand above."""
    names = argument_names(skill.extra.get("arguments"))
    variables = dict.fromkeys(PROJECT_NAMES, project)
    filled = substitute(instructions, arguments, names=names, folder=skill.folder, variables=variables)
    request = f"User's request: {arguments}\n\n" if arguments and not filled.used_arguments else ""
    body = _CLOSING.sub("&lt;", filled.text)
    name = escape_xml(one_line(skill.name)).replace('"', "&quot;")
    return f'Use the following skill.\n\n{request}<skill name="{name}">\n{body}\n</skill>'
