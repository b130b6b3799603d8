"""A preview of what a model receives when it loads a skill, with everything marked that was filled in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prowess.conversation.user_call import fill_instructions
from prowess.tools.content import render_load_result

if TYPE_CHECKING:
    from prowess.conversation.activation import Activation
    from prowess.conversation.session import Session
    from prowess.errors import Issue
    from prowess.spec.placeholders import FilledText
    from prowess.spec.spans import Span


@dataclass(frozen=True, slots=True)
class Preview:
    """The text, and the ranges in it that hold the output of a command, an argument or a folder."""

    content: str
    marks: tuple[Span, ...] = ()
    issues: tuple[Issue, ...] = ()
    """One issue for each command that did not run, or failed."""


def preview(session: Session, name: str, arguments: str | None = None) -> Preview:
    """Return what a model receives when it loads a skill; with ``arguments``, what a person's call sends it.

    Commands run as they would then: for trusted skills, in a session that has a ``Trust``.
    """
    if arguments is None:
        activation = session.activate(name)
        content, filled = render_load_result(replace(activation, note=""), project=session.base_dir)
        return _make_preview(content, activation, filled)
    content = session.expand(f"/{name} {arguments}", inline_forks=True)  # refuses what people may not call
    activation = session.activate(name)
    filled = fill_instructions(
        activation.skill, activation.instructions, activation.outputs, arguments.strip(), session.base_dir
    )
    return _make_preview(content, activation, filled)


def _make_preview(content: str, activation: Activation, filled: FilledText) -> Preview:
    start = content.find(filled.text)
    if start < 0:  # a closing tag in the text was made harmless, which moved everything behind it
        return Preview(content, (), activation.issues)
    marks = tuple((start + begin, start + end) for begin, end in filled.spans if end > begin)
    return Preview(content, marks, activation.issues)
