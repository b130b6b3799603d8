"""The head of a skill: the fields that the frontmatter of its SKILL.md has."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from prowess.errors import SkillValidationError
from prowess.format import allowed_tools, invocation, rules
from prowess.format.frontmatter import fields, parse
from prowess.format.frontmatter.plain_yaml import parse_plain_yaml
from prowess.limits import MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH
from prowess.text import hidden_characters
from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from prowess.errors import Issue
    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.model import Value

# One line that begins with a letter or a digit, perhaps in quotes: neither blank nor a structure.
_TEXT = rb"[\"']?[A-Za-z0-9][ -~\x80-\xff]{0,%d}+\n"
# An entry of a list. A colon with a blank after it, or at the end, would make a mapping of it.
_ITEM = rb"[A-Za-z0-9][\w()*./-]*+(?:[ :][\w()*./-]++)*+"


@cache
def _faultless_head() -> re.Pattern[bytes]:
    """The pattern of heads in which no rule finds anything, provided that the description is as it should be.

    It is compiled on first use: a scan alone does without it (bench row "import and first scan").
    """
    # A text of 400 bytes is shorter than every limit. Of keys outside the specification only those are here that no
    # rule reports, and that may have a text.
    keys = "|".join(sorted({"license", "compatibility", "allowed-tools", *rules.EXTENSION_FIELDS} - rules.INERT_FIELDS))
    rows = (
        rb"name: (?=[a-z0-9-]{1,%d}\n)[a-z0-9]++(?:-[a-z0-9]++)*+\n" % MAX_NAME_LENGTH,
        rb"description: (?:%s|[>|]-?\n(?:  [!-~\x80-\xff][ -~\x80-\xff]*+\n)++)" % (_TEXT % 1024),
        rb"(?:%s): %s" % (keys.encode(), _TEXT % 400),
        rb"(?:allowed-tools|tags):(?: \[%b(?:, %b)*+\]\n|\n(?:  - %b\n)++)" % (_ITEM, _ITEM, _ITEM),
        rb"metadata:\n(?:  [a-z_-]++: %s)++" % (_TEXT % 400),
    )
    return compile_pattern(rb"(?:%s)++" % rb"|".join(rows))


class SkillHead:
    """The head of a SKILL.md: name and description at once, every other field when it is first asked for.

    It is the base of ``Skill`` and not an object in it: discovery makes one for each of thousands of folders.
    """

    __slots__ = ("_description", "_front", "_issues", "_name", "_raw")

    _description: str
    _front: Frontmatter | None
    _issues: tuple[Issue, ...] | None
    _name: str
    _raw: bytes

    @property
    def name(self) -> str:
        """The name that the skill goes by."""
        return self._name

    @property
    def written_name(self) -> str:
        """The name as its file has it: ``maestro:agent-base`` where the skill goes by ``maestro-agent-base``."""
        return (self._front.written_name if self._front is not None else "") or self._name

    @property
    def description(self) -> str:
        """What the skill does and when to use it, without blanks at both ends."""
        return self._description

    @property
    def frontmatter(self) -> Frontmatter:
        """Every field of the head."""
        front = self._front
        if front is None:
            front = self._front = _parse_front(self._raw)
        return front

    def peek(self) -> Frontmatter:
        """Every field of the head, parsed again at each call: nothing is kept, for one look at many skills."""
        return self._front if self._front is not None else _parse_front(self._raw)

    @property
    def unparsed_head(self) -> bytes | None:
        """The bytes of its head where nothing is wrong with it and nothing has parsed it yet; else ``None``."""
        return self._raw if self._front is None and not self._has_fences else None

    @property
    def _has_fences(self) -> bool:
        """Whether the kept bytes have the dashes around them: those of a head do that cannot be read as plain YAML."""
        return self._raw.startswith(b"---\n")

    def is_surely_faultless(self, folder: str) -> bool:
        """True when no rule finds anything in its head, where ``folder`` is the name of its folder.

        False says nothing: only parsing the head tells.
        """
        # Fast path of ``catalog.issues``, of which parsing was more than half. The slow twin is ``field_issues``, and
        # tests/skills/test_fast_paths.py compares the two. A head that was only matched has no odd key or repeated one.
        # The whole head is compared with the limit of the description: a description in quotes or in a block may have
        # blanks at its end that count, and that the kept copy lacks.
        return (
            self._front is None
            and self._name == folder
            and len(self._raw) <= MAX_DESCRIPTION_LENGTH
            and _faultless_head().fullmatch(self._raw) is not None
            and (self._raw.isascii() or not hidden_characters.find_hidden_points(self._description))
        )

    @property
    def license(self) -> str | None:
        """The field ``license``; ``None`` without one."""
        return self.frontmatter.license

    @property
    def compatibility(self) -> str | None:
        """The field ``compatibility``; ``None`` without one."""
        return self.frontmatter.compatibility

    @property
    def metadata(self) -> Mapping[str, str]:
        """The field ``metadata``, each value as text."""
        return self.frontmatter.metadata

    @property
    def allowed_tools(self) -> tuple[str, ...]:
        """The tools that it asks for, one text each (``allowed-tools``)."""
        # Fast path: each activation asks for the tools, and mostly for no other field, so the head is not parsed.
        if self._front is None:
            tools = allowed_tools.parse_plain_tools(self._raw)
            if tools is not None:
                return tools
        return self.frontmatter.allowed_tools

    @property
    def allowed_tools_raw(self) -> str | None:
        """The field ``allowed-tools`` as it is written; ``None`` without one."""
        return self.frontmatter.allowed_tools_raw

    @property
    def tags(self) -> tuple[str, ...]:
        """The field ``tags``."""
        return self.frontmatter.tags

    @property
    def version(self) -> str | None:
        """The field ``version``; ``None`` without one."""
        return self.frontmatter.version

    @property
    def model(self) -> str | None:
        """The model that it asks for; ``None`` without one."""
        return self.frontmatter.model

    @property
    def context(self) -> str | None:
        """The field ``context``: ``"fork"`` asks for a sub-agent."""
        return self.frontmatter.context

    @property
    def extra(self) -> Mapping[str, Value]:
        """Every field that no other attribute has, by its key."""
        return self.frontmatter.extra

    @property
    def is_fork(self) -> bool:
        """Whether it asks to run as a sub-agent of its own (``context: fork``)."""
        # Fast path of the bench row "load_skill, first call": parsing the head made it half as long again. In a head
        # that the fast matcher read, a colon follows each key at once. tests/skills/test_fast_paths.py compares both.
        if self._front is None and b"context:" not in self._raw:
            return False
        return self.context == "fork"

    @property
    def takes_arguments(self) -> bool:
        """Whether it says what arguments it takes (``arguments`` or ``argument-hint``)."""
        # Fast path, as in ``is_fork``: shell code has a ``$`` in many skills, and few of them take arguments.
        if self._front is None and b"argument" not in self._raw:
            return False
        return "arguments" in self.extra or "argument-hint" in self.extra

    @property
    def user_invocable(self) -> bool:
        """Whether people may call it by name."""
        # Fast path of `prowess list`: every spelling of the key holds one of these two, and "invoice" does not.
        if self._front is None and b"nvoc" not in self._raw and b"nvok" not in self._raw:
            return True
        return invocation.is_user_invocable(self.frontmatter)

    @property
    def model_invocable(self) -> bool:
        """Whether models see it in listings."""
        # Fast path, as in ``user_invocable``: the key is disable-model-invocation.
        if self._front is None and b"nvoca" not in self._raw:
            return True
        return invocation.is_model_invocable(self.frontmatter)


def _parse_front(raw: bytes) -> Frontmatter:
    """The fields of a head that a fast matcher has read.

    Without its dashes the reader of plain YAML can parse it. With them it has to be repaired.
    """
    if raw.startswith(b"---\n"):
        return parse.parse_head(raw, lenient=True, repair=True).front
    parsed = parse_plain_yaml(raw.decode())
    if parsed is None:  # pragma: no cover - a test compares what the matcher and the reader accept
        raise SkillValidationError("the head was understood at first and is not now")
    values, lines = parsed
    return fields.build_frontmatter(values, {key: line + 2 for key, line in lines.items()}, raw)
