"""Instructions as a model receives them: loaded by a tool, called by a person, or preloaded; and previews."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prowess.errors import SkillError
from prowess.format.placeholders import (
    PROJECT_NAMES,
    FilledText,
    explain_placeholders,
    fill_placeholders,
    parse_argument_hint,
    parse_argument_names,
)
from prowess.text.hidden_characters import to_one_line
from prowess.text.markup import CONTENT_TAG, USER_CALL_TAG, escape_attribute, wrap_in_element

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prowess.conversation.activation import Activation
    from prowess.conversation.moment import Moment
    from prowess.conversation.session import Session
    from prowess.errors import Issue
    from prowess.skills.skill import Skill
    from prowess.text.spans import Span


_CALL_PATTERN = re.compile(r"[/$]([^\s/$]{1,64})(?:\s+(.*))?", re.DOTALL)
FORK_LOADED_INLINE = "this skill is written to run as a sub-agent of its own; here it is loaded into this conversation"
MAX_LISTED_FILES = 50  # a longer list would cost more than most instructions
_PATH_RULE = "Paths in these instructions are relative to that directory."


def fill_instructions(
    skill: Skill, instructions: str, outputs: Sequence[Span], arguments: str | None, project: str = ""
) -> FilledText:
    """Return instructions with their placeholders filled; ``arguments=None``: only those for folders.

    ``outputs``: where the instructions hold what a command printed; no placeholder is looked for there. ``project``:
    the working folder.
    """
    # Fast path of the bench row "load_skill, first call": most skills have none.
    if "$" not in instructions and "{baseDir}" not in instructions:
        return FilledText(instructions, used_arguments=False, spans=tuple(outputs))
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
    """Return notes as the paragraphs below instructions; empty notes are left out."""
    return "".join([f"\n\nNote: {note}." for note in notes if note])


# -- loaded by a model -------------------------------------------------------------------------------------------------


def render_load_result(
    activation: Activation, arguments: str | None = None, *, project: str = "", remedy: str = "", files: bool = True
) -> tuple[str, FilledText]:
    """Return what a model receives when it loads a skill, and the instructions with their placeholders filled.

    That is an element with the instructions, notes about them, the folder, the rule for paths and the files. ``remedy``
    says what to call instead, for a skill that is written to run as a sub-agent.
    """
    skill = activation.skill
    inline = f"{FORK_LOADED_INLINE}{remedy}" if skill.is_fork else ""
    folder = f"\n\nSkill directory: {to_one_line(skill.folder)}\n{_PATH_RULE}" if skill.folder else ""
    filled = fill_instructions(skill, activation.instructions, activation.outputs, arguments, project)
    left_over = "" if filled.used_arguments or not arguments else f"the user's request: {to_one_line(arguments)}"
    notes = render_notes(activation.note, explain_arguments(skill, filled, arguments), left_over, inline)
    listed = _render_files(skill) if files else ""
    return wrap_in_element(CONTENT_TAG, skill.name, f"{filled.text}{notes}{folder}{listed}\n"), filled


def render_preload_element(activation: Activation) -> str:
    """Return the instructions of a preloaded skill in the element that a loaded skill has."""
    return render_load_result(replace(activation, note=""))[0]


def render_file_elements(paths: Sequence[str]) -> str:
    """Return the lines of the list of files that follows the instructions."""
    names = [to_one_line(path) for path in paths]
    return "".join([f"  <file>{name}</file>\n" for name in map(escape_attribute, names)])


def _render_files(skill: Skill) -> str:
    try:
        paths = skill.readable_paths()
    except SkillError:
        return ""
    if not paths:
        return ""
    more = len(paths) - MAX_LISTED_FILES
    rows = render_file_elements(paths[:MAX_LISTED_FILES])
    rest = f"  <!-- {more} more -->\n" if more > 0 else ""
    return f"\n<skill_files>\n{rows}{rest}</skill_files>"


# -- called by a person ------------------------------------------------------------------------------------------------


def parse_call(message: str) -> tuple[str, str] | None:
    """Return the name and the arguments of ``/name arguments`` or ``$name arguments``; ``None`` for other text."""
    match = _CALL_PATTERN.fullmatch(message.strip())
    return (match[1], (match[2] or "").strip()) if match else None


def render_call(activation: Activation, arguments: str, project: str) -> str:
    """Return the instructions with their placeholders filled, in an element; unused arguments are above it."""
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


# -- previews ----------------------------------------------------------------------------------------------------------


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
    folder = session.base_dir
    if arguments is None:
        activation = session.activate(name)
        content, filled = render_load_result(replace(activation, note=""), project=folder)
    else:
        content = session.expand(f"/{name} {arguments}", inline_forks=True)  # refuses what people may not call
        activation = session.activate(name)
        text, outputs = activation.instructions, activation.outputs
        filled = fill_instructions(activation.skill, text, outputs, arguments.strip(), folder)
    start = content.find(filled.text)
    # Below 0, a closing tag in the text was made harmless, which moved everything behind it.
    spans = filled.spans if start >= 0 else ()
    marks = tuple((start + begin, start + end) for begin, end in spans if end > begin)
    return Preview(content, marks, activation.issues)


# One run of backslashes counts as one, however long: JSON in JSON doubles them. It is looked at from its first place
# only (the lookbehind), and never partly (++): a script can print 64 KiB of them.
_ESCAPE_SEQUENCE = re.compile(
    r"""
    (?<!\\)(?:
        (?P<wide>(?:\\++u[0-9A-Fa-f]{4})+)      # JSON: \u00e4
        | (?P<hex>(?:\\++x[0-9A-Fa-f]{2})+)     # many languages: \xc3\xa4
        | (?P<octal>(?:\\++[0-7]{3})+)          # shells: \303\244
        | \\++(?P<char>[^\w\\])                 # JSON: \/ and \", shells: a space
        | (?P<backslashes>\\{2,}+)              # JSON, of a path of Windows
    )
    | (?P<percent>(?:%[0-9A-Fa-f]{2})+)         # addresses: %C3%A4
    | (?P<quote>'"'"'|'\\'')                    # shells: a quote inside of quotes
    """,
    re.VERBOSE,
)
_DIGITS = re.compile(r"(?<![\\%])[\\%]++[ux]?([0-9A-Fa-f]+)")


def mask_paths(text: str, folders: Iterable[str]) -> str:
    """Return ``text`` with paths below one of ``folders`` made relative to it; the folder itself becomes ``.``.

    Paths are found in every form that programs commonly write: plain, in JSON, quoted or escaped for a shell, in a URL.
    """
    # The longest first: a pattern takes the first alternative that matches, and one folder may be in another.
    roots = sorted({folder.rstrip("/\\") for folder in folders if os.path.isabs(folder)}, key=len, reverse=True)
    alternatives = "|".join(re.escape(root) for root in roots if root)
    if not alternatives:
        return text
    # A longer name is another folder: ``/srv/skills2`` is not in ``/srv/skills``.
    path = re.compile(rf"(?:{alternatives})(?:([/\\])|(?![\w-]|\.\w))")
    # Fast path: text without escapes needs no table of where each character came from.
    if _ESCAPE_SEQUENCE.search(text) is None:
        return path.sub(lambda match: "" if match[1] else ".", text)
    plain, spans = _unescape_text(text)
    parts, offset = [], 0
    for match in path.finditer(plain):
        begin, end = spans[match.start()][0], spans[match.end() - 1][1]
        parts += [text[offset:begin], "" if match[1] else "."]
        offset = end
    return "".join([*parts, text[offset:]])


def _unescape_text(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text without escapes, and for each of its characters the begin and end of its source in ``text``."""
    plain: list[str] = []
    spans: list[tuple[int, int]] = []
    offset = 0
    for match in _ESCAPE_SEQUENCE.finditer(text):
        begin, end = match.span()
        decoded = _decode_escape(match)
        plain += [text[offset:begin], decoded]
        spans += [(place, place + 1) for place in range(offset, begin)]
        spans += [(begin, end)] * len(decoded)
        offset = end
    plain.append(text[offset:])
    spans += [(place, place + 1) for place in range(offset, len(text))]
    return "".join(plain), spans


def _decode_escape(escaped: re.Match[str]) -> str:
    """Return the characters that an escape sequence stands for."""
    kind, source = escaped.lastgroup, escaped[0]
    if kind in {"quote", "backslashes"}:
        return source[0]
    if kind == "char":
        return escaped["char"]
    digits = _DIGITS.findall(source)
    if kind == "wide":
        return bytes.fromhex("".join(digits)).decode("utf-16-be", "replace")
    base = 8 if kind == "octal" else 16
    return bytes(int(number, base) & 0xFF for number in digits).decode("utf-8", "replace")


def find_host_folders(moment: Moment) -> set[str]:
    """Return the folders whose paths reveal something of the host: of skills, the project, the home, temporary files.

    They are collected for each call, since catalogues and environments change; for 500 skills that takes well below a
    millisecond.
    """
    parents = {os.path.dirname(skill.folder) for skill in moment.catalog if skill.is_local}
    scanned = {place.path for place in moment.catalog.places}  # also folders without a skill, which errors name
    folders = {*parents, *scanned, moment.base_dir, os.path.expanduser("~"), tempfile.gettempdir()}
    # Programs print either path of a folder behind a symbolic link.
    return folders | {os.path.realpath(folder) for folder in folders}
