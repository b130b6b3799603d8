"""Which skills one conversation has, and what of them may run: what a host decides for each of its users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.arguments import check_text, check_texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.conversation.acting.scripts import Scripts
    from prowess.conversation.acting.trust import Trust, TrustPolicy
    from prowess.settings import Settings


class ScopeContext(NamedTuple):
    """Whose conversation a scope is for."""

    key: str
    """The key of the conversation; ``""`` for one that has no key."""
    framework: Any = None
    """What the framework passes to its tools, such as Pydantic AI's ``RunContext``; ``None`` where nobody calls."""


@dataclass(frozen=True)
class Scope:
    """Which skills a conversation has, and what of them may run; ``None`` and ``""`` leave that to the host's default.

    ``allowed``: the names of the only skills that it has. ``off``: the names of skills that it does not have; a name
    that no skill has means nothing. ``filter``: a pattern over their paths. ``trust``: a
    ``Trust``, or the name of a policy. ``scripts``: how scripts run; ``False``: they do not.
    """

    allowed: Iterable[str] | None = None
    filter: str = ""
    trust: Trust | TrustPolicy | None = None
    scripts: Scripts | bool | None = None
    off: Iterable[str] = ()

    @classmethod
    def from_settings(cls, settings: Settings) -> Scope:
        """Return the scope that settings describe: the named set in use, without the skills that are switched off."""
        in_use = settings.text("set")
        return cls(settings.sets[in_use] if in_use else None, off=settings.names("off"))

    def __post_init__(self) -> None:
        """Check what the host has passed; raise ``SourceError`` for a name in place of a list of names."""
        if self.allowed is not None:
            object.__setattr__(self, "allowed", check_texts(self.allowed, "allowed"))
        check_text(self.filter, "filter")
        object.__setattr__(self, "off", check_texts(self.off, "off"))
