"""What a skill says of itself: the fields of its head."""

from __future__ import annotations

from prowess.errors import SkillValidationError
from prowess.on_demand import OnDemand
from prowess.spec.frontmatter.plain_yaml import parse_plain_yaml

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.errors import Issue
    from prowess.model import Value
    from prowess.spec import allowed_tools, invocation
    from prowess.spec.frontmatter import fields
    from prowess.spec.frontmatter.fields import Frontmatter
else:
    allowed_tools, invocation = OnDemand("prowess.spec.allowed_tools"), OnDemand("prowess.spec.invocation")
    fields = OnDemand("prowess.spec.frontmatter.fields")


class SkillHead:
    """The head of a SKILL.md: name and description at once, every other field when it is first asked for.

    What every ``Skill`` begins with; not an object in it, because discovery makes one for each of thousands of folders.
    """

    __slots__ = ("_description", "_front", "_issues", "_name", "_raw")

    _description: str
    _front: Frontmatter | None
    _issues: tuple[Issue, ...] | None
    _name: str
    _raw: bytes

    @property
    def name(self) -> str:
        return self._name

    @property
    def written_name(self) -> str:
        """The name as its file has it: ``maestro:agent-base`` where the skill goes by ``maestro-agent-base``."""
        return (self._front.written_name if self._front is not None else "") or self._name

    @property
    def description(self) -> str:
        return self._description

    @property
    def frontmatter(self) -> Frontmatter:
        """Every field of the head."""
        front = self._front
        if front is None:
            front = self._front = _parse_front(self._raw)
        return front

    def peek(self) -> Frontmatter:
        """Every field of the head, parsed again at each call: for one look at each of many skills."""
        return self._front if self._front is not None else _parse_front(self._raw)

    @property
    def plain_head(self) -> bytes | None:
        """Its head where that has the commonest shape and was not parsed yet: no rule of YAML refuses it."""
        return self._raw if self._front is None else None

    @property
    def mended(self) -> tuple[Issue, ...]:
        """What had to be mended before its head could be read."""
        return tuple(i for i in self._issues or () if i.code.startswith("repaired-") or i.code == "line-break")

    @property
    def license(self) -> str | None:
        return self.frontmatter.license

    @property
    def compatibility(self) -> str | None:
        return self.frontmatter.compatibility

    @property
    def metadata(self) -> Mapping[str, str]:
        return self.frontmatter.metadata

    @property
    def allowed_tools(self) -> tuple[str, ...]:
        if self._front is None:  # asked for at each activation, long before anything else
            found = allowed_tools.parse_plain_tools(self._raw)
            if found is not None:
                return found
        return self.frontmatter.allowed_tools

    @property
    def allowed_tools_raw(self) -> str | None:
        return self.frontmatter.allowed_tools_raw

    @property
    def tags(self) -> tuple[str, ...]:
        return self.frontmatter.tags

    @property
    def version(self) -> str | None:
        return self.frontmatter.version

    @property
    def model(self) -> str | None:
        return self.frontmatter.model

    @property
    def context(self) -> str | None:
        return self.frontmatter.context

    @property
    def extra(self) -> Mapping[str, Value]:
        return self.frontmatter.extra

    @property
    def is_fork(self) -> bool:
        """Whether it asks to run as a sub-agent of its own (``context: fork``)."""
        # Fast path of the bench row "load_skill, first call", which parsing the head made half as long again: in a head
        # that was only glanced at, a colon follows each key at once. tests/skills/test_fast_paths.py compares the two.
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
        if self._front is None and b"nvoca" not in self._raw:
            return True
        return invocation.is_model_invocable(self.frontmatter)

    @property
    def repairs(self) -> tuple[Issue, ...]:
        """What had to be mended for it to load; empty for a head that nothing was wrong with."""
        return tuple(issue for issue in self._issues or () if issue.code.startswith("repaired-"))


def _parse_front(raw: bytes) -> Frontmatter:
    """The fields of a head that ``glance`` has understood, hence plain."""
    parsed = parse_plain_yaml(raw.decode())
    if parsed is None:  # pragma: no cover - glance accepts only what parse_plain reads; a test compares them
        raise SkillValidationError("the head was understood at first and is not now")
    values, lines = parsed
    return fields.build_frontmatter(values, {key: line + 2 for key, line in lines.items()}, raw)
