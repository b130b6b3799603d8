"""What a person's explicit call of a skill sends to the model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prowess.spec.commands import outside
from prowess.spec.markup import CALLED, wrap_text
from prowess.spec.substitute import PROJECT_NAMES, argument_names, substitute

if TYPE_CHECKING:
    from prowess.runtime.activation import Activation

_CALL = re.compile(r"[/$]([^\s/$]{1,64})(?:\s+(.*))?", re.DOTALL)


def parse_call(message: str) -> tuple[str, str] | None:
    """The name and the arguments of ``/name arguments`` or ``$name arguments``."""
    match = _CALL.fullmatch(message.strip())
    return (match[1], (match[2] or "").strip()) if match else None


def called(activation: Activation, arguments: str, project: str) -> str:
    """The instructions with their placeholders filled, in an element; arguments without a place stand above."""
    skill = activation.skill
    names = argument_names(skill.extra.get("arguments"))
    variables = dict.fromkeys(PROJECT_NAMES, project)
    used: list[bool] = []

    def fill(text: str) -> str:
        filled = substitute(text, arguments, names=names, folder=skill.folder, variables=variables)
        used.append(filled.used_arguments)
        return filled.text

    body = outside(activation.instructions, activation.outputs, fill)
    return enveloped(skill.name, body, "" if any(used) else arguments)


def enveloped(name: str, body: str, request: str = "") -> str:
    """Instructions in an element that nothing in them can end or begin anew, the request above."""
    said = f"User's request: {request}\n\n" if request else ""
    return f"Use the following skill.\n\n{said}" + wrap_text(CALLED, name, f"{body}\n")
