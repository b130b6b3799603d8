"""Hiding absolute paths of the host in text for a model (``Toolset(hide_paths=True)``)."""

from __future__ import annotations

import os
import re
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.conversation.moment import Moment


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
