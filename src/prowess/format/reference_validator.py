"""The verdict that the specification's reference validator, ``skills-ref``, gives on one SKILL.md.

``check(spec=True)`` promises that verdict and no other, so this module has rules of its own where those of ``rules.py``
differ: the frontmatter ends at the first three dashes wherever they are, flow collections are refused, letters of
every script may occur in a name, and a key that the specification does not know is an error.
``docs/how-to/authoring.md`` lists where the two verdicts still differ; ``tests/authoring/test_agreement.py`` compares
them on real files.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING

from prowess.errors import Issue
from prowess.format.frontmatter.fields import SPEC_FIELDS
from prowess.format.frontmatter.yaml_events import YamlError, parse_block_yaml
from prowess.limits import DEFAULT_LIMITS, MAX_COMPATIBILITY_LENGTH, MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prowess.limits import Limits
    from prowess.model import Value

REFERENCE_FILENAMES = frozenset(("SKILL.md", "skill.md"))
"""The file names under which the reference validator looks for a skill."""

_DASHES = "---"
_BOM = "\ufeff"
_LINE_END = re.compile(r"\r\n?")


def reference_issues(
    data: bytes, *, folder: str | None = None, path: str = "", limits: Limits = DEFAULT_LIMITS
) -> tuple[Issue, ...]:
    """Return every finding of the reference validator about a SKILL.md of these bytes; one error means that it refuses.

    ``folder`` is the name of the skill's folder, which its name must equal; ``None`` leaves that rule out. Text that
    the validator accepts, and reads differently from what its author meant, is an ``info``. Bad text raises nothing.
    """
    return tuple(replace(issue, path=path) for issue in _text_issues(data, folder, limits))


def _text_issues(data: bytes, folder: str | None, limits: Limits) -> Iterator[Issue]:
    try:
        text = _LINE_END.sub("\n", data.decode("utf-8"))
    except UnicodeDecodeError as error:
        message = f"the text is not UTF-8: byte 0x{data[error.start]:02X} at byte {error.start}"
        yield Issue("not-utf8", "", message, line=data.count(b"\n", 0, error.start) + 1)
        return
    if not text.startswith(_DASHES):
        mark = "a byte order mark precedes them" if text.startswith(_BOM) else "the file does not"
        yield Issue("no-frontmatter", "", f"the first three characters must be '---'; {mark}", line=1)
        return
    # The validator looks for dashes and not for a line of dashes, so that those within a value end the frontmatter too.
    end = text.find(_DASHES, len(_DASHES))
    if end < 0:
        yield Issue("unterminated-frontmatter", "", "the closing '---' is missing", line=1)
        return
    # No author means dashes within a line to close the frontmatter.
    line = text[text.rfind("\n", 0, end) + 1 :].partition("\n")[0]
    if line.rstrip() != _DASHES:
        message = "skills-ref reads the frontmatter only up to the first '---', which is within this line"
        yield Issue("dashes-within-line", "", message, line=text.count("\n", 0, end) + 1, severity="info")
    yield from _frontmatter_issues(text[len(_DASHES) : end], folder, limits)


def _frontmatter_issues(text: str, folder: str | None, limits: Limits) -> Iterator[Issue]:
    # A bound of our own: the parser in Python is slow, and the text may come from anybody.
    if len(text) > limits.max_frontmatter_bytes:
        message = f"the frontmatter is longer than {limits.max_frontmatter_bytes} characters"
        yield Issue("frontmatter-too-large", "", message, line=1)
        return
    try:
        values, lines = parse_block_yaml(text, limits)
    except YamlError as error:
        yield Issue(error.code, "", error.message, line=error.line + 1)
        return
    for issue in _field_issues(values, folder):
        yield replace(issue, line=lines.get(issue.field, 0) + 1)


def _field_issues(values: Mapping[str, Value], folder: str | None) -> Iterator[Issue]:
    for key in values:
        if key not in SPEC_FIELDS:
            yield Issue("unknown-field", key, "is not a field of the specification")
    yield from _name_issues(values.get("name", ""), folder)
    yield from _description_issues(values.get("description", ""))
    compatibility = values.get("compatibility", "")
    if not isinstance(compatibility, str):
        yield Issue("wrong-type", "compatibility", "must be text")
    elif len(compatibility) > MAX_COMPATIBILITY_LENGTH:
        message = f"has {len(compatibility)} characters; at most {MAX_COMPATIBILITY_LENGTH} are allowed"
        yield Issue("compatibility-too-long", "compatibility", message)


def _name_issues(value: Value, folder: str | None) -> Iterator[Issue]:
    if not isinstance(value, str):
        yield Issue("wrong-type", "name", "must be text")
        return
    # The validator compares names and folders in this form, so that one letter counts however it is encoded.
    name = unicodedata.normalize("NFKC", value.strip())
    if not name:
        yield Issue("missing-name", "name", "is required")
        return
    if len(name) > MAX_NAME_LENGTH:
        yield Issue("bad-name", "name", f"has {len(name)} characters; at most {MAX_NAME_LENGTH} are allowed")
    if name != name.lower():
        yield Issue("bad-name", "name", "must be in lower case")
    if name.startswith("-") or name.endswith("-") or "--" in name:
        yield Issue("bad-name", "name", "may hold hyphens only singly, between other characters")
    if not all(character.isalnum() or character == "-" for character in name):
        yield Issue("bad-name", "name", "may hold only letters, digits and hyphens")
    if folder is not None and unicodedata.normalize("NFKC", folder) != name:
        yield Issue("name-mismatch", "name", f"is not the name of its folder, {folder!r}")


def _description_issues(value: Value) -> Iterator[Issue]:
    if not isinstance(value, str):
        yield Issue("wrong-type", "description", "must be text")
    elif not value.strip():
        yield Issue("missing-description", "description", "is required")
    elif len(value) > MAX_DESCRIPTION_LENGTH:
        message = f"has {len(value)} characters; at most {MAX_DESCRIPTION_LENGTH} are allowed"
        yield Issue("description-too-long", "description", message)
