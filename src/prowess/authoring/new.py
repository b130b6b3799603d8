"""A new skill: a folder without errors, whose sentences are still to be written."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING
from unicodedata import normalize

from prowess.authoring.fix import quote_yaml
from prowess.errors import SourceError
from prowess.files.directory import exists
from prowess.files.paths import is_real_folder, read_inode
from prowess.files.syscalls import rename, set_mode, swap_entries
from prowess.files.temp import temporary_folder
from prowess.files.write import NewFile, make_folders, write_tree
from prowess.limits import MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH
from prowess.names import SKILL_FILE
from prowess.progress_steps import report_steps
from prowess.spec.rules import is_spec_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_DESCRIPTION = (
    "Says what {name} does, in one sentence. Use when somebody asks for it, in the words that they would use."
)
_PLACEHOLDER_SENTENCES = (
    "What this is for, in a sentence or two: what is there at the start, what is there at the end.",
    "Say how one sees that it worked.",
)
_BODY = f"""\
# {{title}}

{_PLACEHOLDER_SENTENCES[0]}

## Steps

1. Look at what was given, and ask for what is missing.
2. Do the work.{{steps}}
3. Check the result before you answer.

## Done when

- {_PLACEHOLDER_SENTENCES[1]}
"""
_MAX_NAME_SOURCE = 1000  # of a text that is to become a name; the rest would be cut all the same
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_REFERENCE = (
    "# Details\n\nWhat only some tasks need: it is read when the instructions say so, and costs nothing before.\n"
)
_SCRIPT = '''\
"""Print the number of lines of each file named on the command line."""

import sys

for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as file:
        print(f"{sum(1 for _ in file):>8} {name}")
'''
_EVALS = """\
[
  {"query": QUERY, "should_trigger": true},
  {"query": "What will the weather be like tomorrow?", "should_trigger": false}
]
"""

PARTS: dict[str, tuple[str, str, str]] = {
    "references": ("references/details.md", _REFERENCE, " Read `references/details.md` when a case is unusual."),
    "scripts": ("scripts/count.py", _SCRIPT, " Run `python3 scripts/count.py FILE` to count lines."),
    "assets": ("assets/template.md", "# Title\n\nSummary.\n", " Begin with `assets/template.md`."),
    "evals": ("evals/triggers.json", _EVALS, ""),
}
"""What a new skill can have besides its SKILL.md: the file, its text, and what the instructions say of it."""


def create_skill(
    name: str, folder: str | os.PathLike[str] = ".", *, description: str = "", parts: Iterable[str] = ()
) -> Path:
    """A new skill ``name`` in ``folder``, with ``parts`` of ``references``, ``scripts``, ``assets`` and ``evals``.

    ``check`` warns of what is to be written still. Raises ``SourceError`` for a name that the specification does not
    allow, and when there is something already.
    """
    from pathlib import Path  # noqa: PLC0415 - nothing else here needs it

    chosen = _check_new_skill(name, description, tuple(dict.fromkeys(parts)))
    above = os.path.abspath(os.fspath(folder))
    where = os.path.join(above, name)
    said = description.strip() or _DESCRIPTION.format(name=name.replace("-", " "))
    files = [NewFile(SKILL_FILE, _render_skill_md(name, said, chosen).encode())]
    files += [NewFile(PARTS[part][0], _render_part(part, said).encode(), part == "scripts") for part in chosen]
    place_tree(where, files)
    return Path(where)


def suggest_name(text: str) -> str:
    """A name by the rules of the specification that is near ``text``; ``""`` where nothing of it can be kept."""
    plain = normalize("NFKD", text[:_MAX_NAME_SOURCE]).encode("ascii", "ignore").decode().lower()
    name = _NOT_IN_NAMES.sub("-", plain).strip("-")[:MAX_NAME_LENGTH].rstrip("-")
    return name if is_spec_name(name) else ""


def place_tree(where: str, files: list[NewFile], *, replaces: bool = False) -> None:
    """Write a new folder at once: it is there whole, or not at all. Raises ``SourceError``.

    ``replaces``: a skill's folder that is there gives way; anything else never does.
    """
    old = replaces and is_real_folder(where) and exists(os.path.join(where, SKILL_FILE))
    if not old:
        refuse_existing(where)
    try:
        make_folders(os.path.dirname(where))
        with temporary_folder(".prowess-new-", os.path.dirname(where)) as staged:
            write_tree(staged, report_steps(files, lambda file: file.path))
            set_mode(staged, 0o755)
            if old:
                _swap_folders(staged, where)
            else:
                refuse_existing(where)
                _move_into_place(staged, where)
    except OSError as error:
        raise SourceError(f"cannot write the folder: {error.strerror}", where, "unwritable") from None


def _move_into_place(staged: str, where: str) -> None:
    """Put a folder where nothing is. An interrupt in the moment after takes it back, so that a further try works."""
    number = read_inode(staged)
    try:
        rename(staged, where)
    except BaseException:
        if read_inode(where) == number:
            rename(where, staged)
        raise


def _swap_folders(staged: str, where: str) -> None:
    """Put a folder in the place of another, which is at ``staged`` then."""
    if swap_entries(staged, where):
        return
    aside = f"{staged}.old"
    rename(where, aside)
    try:
        rename(staged, where)
    except OSError:
        rename(aside, where)
        raise
    rename(aside, staged)


def refuse_existing(where: str, code: str = "already-there") -> None:
    """Raise ``SourceError`` when there is something."""
    if exists(where):
        raise SourceError(f"there is something already: {where}", where, code)


def _check_new_skill(name: str, description: str, parts: tuple[str, ...]) -> tuple[str, ...]:
    if not is_spec_name(name):
        suggestion = suggest_name(name)
        instead = f"; {suggestion!r} would do" if suggestion else ""
        raise SourceError(f"{name[:80]!r} cannot be the name of a skill{instead}", code="bad-name")
    if len(description) > MAX_DESCRIPTION_LENGTH or "\n" in description.strip():
        raise SourceError(
            f"a description is one line of at most {MAX_DESCRIPTION_LENGTH} characters", code="description-too-long"
        )
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise SourceError(f"no part {unknown[0]!r}; one of {', '.join(PARTS)}")
    return parts


def _render_part(part: str, description: str) -> str:
    """The text of a part; a query that finds the skill is what its description says first."""
    return PARTS[part][1].replace("QUERY", json.dumps(_SENTENCE_END.split(description)[0], ensure_ascii=False))


def is_placeholder_line(row: str) -> bool:
    """Whether a line says what a new skill says, to be replaced by the author's own words."""
    begin, _, end = _DESCRIPTION.partition("{name}")
    return (begin in row and end in row) or any(sentence in row for sentence in _PLACEHOLDER_SENTENCES)


def _render_skill_md(name: str, description: str, parts: tuple[str, ...]) -> str:
    said = quote_yaml(description)
    steps = "".join(PARTS[part][2] for part in parts)
    title = name.replace("-", " ").capitalize()
    return f"---\nname: {name}\ndescription: {said}\n---\n{_BODY.format(title=title, steps=steps)}"
