"""What a model receives when a skill is activated, with everything marked that its author did not write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.spec.substitute import FOLDER, PROJECT_NAMES, Filled, argument_names, filled
from prowess.tools.content import skill_content

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prowess.errors import Issue
    from prowess.runtime.activation import Activation
    from prowess.runtime.session import Session
    from prowess.spec.commands import Span

    Fill = Callable[[str], Filled]


@dataclass(frozen=True, slots=True)
class Preview:
    """The text, and where it holds what a command printed, an argument, or a folder."""

    content: str
    marks: tuple[Span, ...] = ()
    issues: tuple[Issue, ...] = ()
    """Commands that did not run, or failed."""


def preview(session: Session, name: str, arguments: str | None = None) -> Preview:
    """What a model receives when it loads a skill; with ``arguments``, what a person's call with them sends it.

    Commands run as they would then: for trusted skills, in a session that has a ``Trust``.
    """
    if arguments is None:
        activation = session.activate(name)
        content = skill_content(activation.skill, activation.instructions, outputs=activation.outputs)
        return _marked(content, activation, _folder_only(activation))
    content = session.expand(f"/{name} {arguments}")  # refuses what people may not call
    activation = session.activate(name)
    return _marked(content, activation, _called_with(activation, arguments, session.base_dir))


def _folder_only(activation: Activation) -> Fill:
    folder = activation.skill.folder

    def fill(text: str) -> Filled:
        spans: list[Span] = []
        grown = 0
        for match in FOLDER.finditer(text):
            begin = match.start() + grown
            spans.append((begin, begin + len(folder)))
            grown += len(folder) - len(match[0])
        return Filled(FOLDER.sub(lambda _: folder, text), used_arguments=False, spans=tuple(spans))

    return fill


def _called_with(activation: Activation, arguments: str, project: str) -> Fill:
    skill = activation.skill
    names = argument_names(skill.extra.get("arguments"))
    variables = dict.fromkeys(PROJECT_NAMES, project)
    return lambda text: filled(text, arguments, names=names, folder=skill.folder, variables=variables)


def _marked(content: str, activation: Activation, fill: Fill) -> Preview:
    body, spans = _body(activation.instructions, activation.outputs, fill)
    found = content.find(body)
    if found < 0:  # a closing tag in the text was made harmless, which moved what follows
        return Preview(content, (), activation.issues)
    marks = tuple((found + begin, found + end) for begin, end in spans if end > begin)
    return Preview(content, marks, activation.issues)


def _body(text: str, outputs: Sequence[Span], fill: Fill) -> tuple[str, tuple[Span, ...]]:
    """The instructions with their placeholders filled, and where in them something was put in."""
    made = ""
    spans: list[Span] = []
    at = 0
    for begin, end in (*outputs, (len(text), len(text))):
        piece = fill(text[at:begin])
        spans += [(len(made) + one, len(made) + other) for one, other in piece.spans]
        made += piece.text
        spans.append((len(made), len(made) + end - begin))
        made += text[begin:end]
        at = end
    return made, tuple(spans)
