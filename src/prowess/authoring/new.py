"""Creates a new skill: a folder that loads without errors, with placeholder sentences for its author to replace."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import normalize

from prowess.authoring.descriptions import DESCRIPTION_TEMPLATE
from prowess.authoring.eval_files import TEMPLATE_MARK
from prowess.authoring.fix import quote_yaml
from prowess.errors import SourceError
from prowess.files.delete import temporary_folder
from prowess.files.directory import exists
from prowess.files.paths import is_real_folder, read_inode
from prowess.files.syscalls import rename, set_mode, swap_entries
from prowess.files.write import NewFile, make_folders, write_tree
from prowess.format.rules import is_spec_name
from prowess.limits import MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH
from prowess.names import SKILL_FILE
from prowess.progress_steps import report_steps

if TYPE_CHECKING:
    from collections.abc import Iterable

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
_MAX_NAME_SOURCE = 1000  # characters of a string that becomes a name: the rest would be cut, and normalizing is slow
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
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
_EVALS = f"""\
[
  {{"query": "{TEMPLATE_MARK} what users say who need the skill, in their own words", "should_trigger": true}},
  {{"query": "{TEMPLATE_MARK} a similar request that is not for the skill", "should_trigger": false}}
]
"""

PARTS: dict[str, tuple[str, str, str]] = {
    "references": ("references/details.md", _REFERENCE, " Read `references/details.md` when a case is unusual."),
    "scripts": ("scripts/count.py", _SCRIPT, " Run `python3 scripts/count.py FILE` to count lines."),
    "assets": ("assets/template.md", "# Title\n\nSummary.\n", " Begin with `assets/template.md`."),
    "evals": ("evals/triggers.json", _EVALS, ""),
}
"""The parts that a new skill can have besides its SKILL.md: the file, its text, and a sentence of the instructions."""


def create_skill(
    name: str, folder: str | os.PathLike[str] = ".", *, description: str = "", parts: Iterable[str] = ()
) -> Path:
    """Create the skill ``name`` in ``folder``, and return its folder.

    ``parts``: any of ``references``, ``scripts``, ``assets`` and ``evals``. ``check`` warns of the sentences that are
    still to be written. Raises ``SourceError`` for a name that the specification does not allow, and when there is
    something in the way.
    """
    chosen = _check_new_skill(name, description, tuple(dict.fromkeys(parts)))
    target = os.path.join(os.path.abspath(os.fspath(folder)), name)
    about = description.strip() or DESCRIPTION_TEMPLATE.format(name=name.replace("-", " "))
    files = [NewFile(SKILL_FILE, _render_skill_md(name, about, chosen).encode())]
    files += [NewFile(PARTS[part][0], PARTS[part][1].encode(), part == "scripts") for part in chosen]
    place_tree(target, files)
    return Path(target)


def suggest_name(text: str) -> str:
    """Return a valid name that is close to ``text``; ``""`` when nothing of it can be kept."""
    plain = normalize("NFKD", text[:_MAX_NAME_SOURCE]).encode("ascii", "ignore").decode().lower()
    name = _NOT_IN_NAMES.sub("-", plain).strip("-")[:MAX_NAME_LENGTH].rstrip("-")
    return name if is_spec_name(name) else ""


def place_tree(target: str, files: list[NewFile], *, replaces: bool = False) -> None:
    """Write a new folder, which appears whole or not at all.

    ``replaces``: an existing skill's folder is replaced, and never anything else. Raises ``SourceError`` when something
    is in the way, or when the folder cannot be written.
    """
    has_old = replaces and is_real_folder(target) and exists(os.path.join(target, SKILL_FILE))
    if not has_old:
        refuse_existing(target)
    try:
        make_folders(os.path.dirname(target))
        # Staged beside the target, since a rename is atomic only within one file system.
        with temporary_folder(".prowess-new-", os.path.dirname(target)) as staged:
            write_tree(staged, report_steps(files, lambda file: file.path))
            set_mode(staged, 0o755)  # a temporary folder is its owner's alone
            if has_old:
                _swap_folders(staged, target)
            else:
                refuse_existing(target)  # again: it may have appeared while the files were written
                _move_into_place(staged, target)
    except OSError as error:
        raise SourceError(f"cannot write the folder: {error.strerror}", target, "unwritable") from None


def _move_into_place(staged: str, target: str) -> None:
    """Rename the staged folder to ``target``, where nothing is; an interrupt undoes it, so that a new try works."""
    inode = read_inode(staged)
    try:
        rename(staged, target)
    except BaseException:
        # A race: the interrupt may come after the rename. The inode says whether the folder at the target is ours.
        if read_inode(target) == inode:
            rename(target, staged)
        raise


def _swap_folders(staged: str, target: str) -> None:
    """Put the staged folder in the place of the old one, which is at ``staged`` afterwards."""
    if swap_entries(staged, target):
        return
    # Not every file system can swap two entries at once: for a moment there is nothing at the target.
    aside = f"{staged}.old"
    rename(target, aside)
    try:
        rename(staged, target)
    except OSError:
        rename(aside, target)
        raise
    rename(aside, staged)


def refuse_existing(path: str, code: str = "already-there") -> None:
    """Raise ``SourceError`` when there is something at ``path``."""
    if exists(path):
        raise SourceError(f"{path} already exists", path, code)


def _check_new_skill(name: str, description: str, parts: tuple[str, ...]) -> tuple[str, ...]:
    if not is_spec_name(name):
        suggestion = suggest_name(name)
        instead = f"; {suggestion!r} would do" if suggestion else ""
        raise SourceError(f"{name[:80]!r} cannot be the name of a skill{instead}", code="bad-name")
    if len(description) > MAX_DESCRIPTION_LENGTH or "\n" in description.strip():
        raise SourceError(
            f"a description must be one line of at most {MAX_DESCRIPTION_LENGTH} characters",
            code="description-too-long",
        )
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise SourceError(f"no part {unknown[0]!r}; one of {', '.join(PARTS)}")
    return parts


def is_placeholder_line(line: str) -> bool:
    """Return whether a line of the body has a sentence of the template, which the author should have replaced."""
    return any(sentence in line for sentence in _PLACEHOLDER_SENTENCES)


def _render_skill_md(name: str, description: str, parts: tuple[str, ...]) -> str:
    steps = "".join(PARTS[part][2] for part in parts)
    title = name.replace("-", " ").capitalize()
    return f"---\nname: {name}\ndescription: {quote_yaml(description)}\n---\n{_BODY.format(title=title, steps=steps)}"
