"""Absolute paths of the host taken out of text for a model (``Toolset(hide_paths=True)``)."""

from __future__ import annotations

import os
import re
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.runtime.session import Session


# One run of backslashes counts as one, however long: JSON in JSON doubles them. It is looked at from its first place
# only (the lookbehind), and never partly (++): a script can print 64 KiB of them.
_ESCAPE_SEQUENCE = re.compile(
    r"""
    (?<!\\)(?:
        (?P<wide>(?:\\++u[0-9A-Fa-f]{4})+)      # JSON: \u00e4
        | (?P<hex>(?:\\++x[0-9A-Fa-f]{2})+)     # many languages: \xc3\xa4
        | (?P<octal>(?:\\++[0-7]{3})+)          # shells: \303\244
        | \\++(?P<char>[^\w\\])                 # JSON: \/ and \", shells: a blank
        | (?P<backslashes>\\{2,}+)              # JSON, of a path of Windows
    )
    | (?P<percent>(?:%[0-9A-Fa-f]{2})+)         # addresses: %C3%A4
    | (?P<quote>'"'"'|'\\'')                    # shells: a quote inside of quotes
    """,
    re.VERBOSE,
)
_DIGITS = re.compile(r"[\\%]+[ux]?([0-9A-Fa-f]+)")


def mask_paths(text: str, folders: Iterable[str]) -> str:
    """``text`` in which paths below one of ``folders`` are relative to it, and the folder itself is ``.``.

    A path is known however programs write it: plain, in JSON, quoted or escaped for a shell, in an address.
    """
    roots = sorted({folder.rstrip("/\\") for folder in folders if os.path.isabs(folder)}, key=len, reverse=True)
    known = "|".join(re.escape(root) for root in roots if root)
    if not known:
        return text
    # A name that only begins alike is another folder: ``/srv/skills2`` is none of ``/srv/skills``.
    path = re.compile(rf"(?:{known})(?:([/\\])|(?![\w-]|\.\w))")
    if _ESCAPE_SEQUENCE.search(text) is None:
        return path.sub(lambda match: "" if match[1] else ".", text)
    plain, spans = _unescape_text(text)
    kept, at = [], 0
    for match in path.finditer(plain):
        begin, end = spans[match.start()][0], spans[match.end() - 1][1]
        kept += [text[at:begin], "" if match[1] else "."]
        at = end
    return "".join([*kept, text[at:]])


def _unescape_text(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text with nothing escaped, and where each of its characters stands in ``text``, from where to where."""
    plain: list[str] = []
    spans: list[tuple[int, int]] = []
    at = 0
    for match in _ESCAPE_SEQUENCE.finditer(text):
        begin, end = match.span()
        meant = _decode_escape(match)
        plain += [text[at:begin], meant]
        spans += [(place, place + 1) for place in range(at, begin)]
        spans += [(begin, end)] * len(meant)
        at = end
    plain.append(text[at:])
    spans += [(place, place + 1) for place in range(at, len(text))]
    return "".join(plain), spans


def _decode_escape(escaped: re.Match[str]) -> str:
    """The characters that stand for themselves in place of an escape, or of several in a row."""
    kind, written = escaped.lastgroup, escaped[0]
    if kind in {"quote", "backslashes"}:
        return written[0]
    if kind == "char":
        return escaped["char"]
    digits = _DIGITS.findall(written)
    if kind == "wide":
        return bytes.fromhex("".join(digits)).decode("utf-16-be", "replace")
    base = 8 if kind == "octal" else 16
    return bytes(int(one, base) & 0xFF for one in digits).decode("utf-8", "replace")


def find_host_folders(session: Session) -> set[str]:
    """The folders whose paths say something about the host: those of skills, of the project, the home, temporary ones.

    Found anew each time, since catalogues and environments change; for 500 skills that takes well below a millisecond.
    """
    parents = {os.path.dirname(skill.folder) for skill in session.catalog if skill.is_local}
    scanned = {place.path for place in session.catalog.places}  # also those without a skill: errors name them
    folders = {*parents, *scanned, session.base_dir, os.path.expanduser("~"), tempfile.gettempdir()}
    return folders | {os.path.realpath(folder) for folder in folders}
