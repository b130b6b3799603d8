"""A person's explicit call of a skill (``/name arguments``): how it is parsed, and the text that the model gets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prowess.format.placeholders import (
    PROJECT_NAMES,
    explain_placeholders,
    fill_placeholders,
    parse_argument_hint,
    parse_argument_names,
)
from prowess.text.markup import USER_CALL_TAG, wrap_in_element

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.conversation.activation import Activation
    from prowess.format.placeholders import FilledText
    from prowess.skills.skill import Skill
    from prowess.text.spans import Span

_CALL_PATTERN = re.compile(r"[/$]([^\s/$]{1,64})(?:\s+(.*))?", re.DOTALL)
FORK_LOADED_INLINE = "this skill is written to run as a sub-agent of its own; here it is loaded into this conversation"


def parse_call(message: str) -> tuple[str, str] | None:
    """Return the name and the arguments of ``/name arguments`` or ``$name arguments``; ``None`` for other text."""
    match = _CALL_PATTERN.fullmatch(message.strip())
    return (match[1], (match[2] or "").strip()) if match else None


def fill_instructions(
    skill: Skill, instructions: str, outputs: Sequence[Span], arguments: str | None, project: str = ""
) -> FilledText:
    """Return instructions with their placeholders filled; ``arguments=None``: only those for folders.

    ``outputs``: where the instructions hold what a command printed; no placeholder is looked for there. ``project``:
    the working folder.
    """
    if "$" not in instructions:  # Fast path of the bench row "load_skill, first call": most skills have none.
        return fill_placeholders(instructions, arguments, folder=skill.folder, outputs=outputs)
    declared = skill.takes_arguments
    return fill_placeholders(
        instructions,
        arguments,
        names=parse_argument_names(skill.extra.get("arguments")) if declared else (),
        folder=skill.folder,
        variables=dict.fromkeys(PROJECT_NAMES, project) if project else None,
        declared=declared,
        outputs=outputs,
    )


def explain_arguments(skill: Skill, filled: FilledText, arguments: str | None) -> str:
    """Return what the placeholders for arguments mean, if there are some and no arguments; ``""`` otherwise."""
    if arguments or not filled.placeholders:
        return ""
    return explain_placeholders(filled.placeholders, parse_argument_hint(skill.extra.get("argument-hint")))


def render_notes(*notes: str) -> str:
    """Return notes as the paragraphs that stand below instructions; empty notes are left out."""
    return "".join([f"\n\nNote: {note}." for note in notes if note])


def render_call(activation: Activation, arguments: str, project: str) -> str:
    """Return the instructions with their placeholders filled, in an element; unused arguments stand above it."""
    skill = activation.skill
    filled = fill_instructions(skill, activation.instructions, activation.outputs, arguments, project)
    notes = render_notes(explain_arguments(skill, filled, arguments), FORK_LOADED_INLINE if skill.is_fork else "")
    return wrap_instructions(skill.name, filled.text + notes, "" if filled.used_arguments else arguments)


def wrap_instructions(name: str, body: str, request: str = "") -> str:
    """Return instructions in an element, with the user's request above it.

    Tags in the instructions that could end the element, or begin another, are neutralized.
    """
    request_line = f"User's request: {request}\n\n" if request else ""
    return f"Use the following skill.\n\n{request_line}" + wrap_in_element(USER_CALL_TAG, name, f"{body}\n")
