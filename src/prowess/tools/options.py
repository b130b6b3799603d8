"""The options of a toolset, checked."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

from prowess.arguments import check_count, check_flag, check_text, check_texts
from prowess.errors import SourceError
from prowess.text.tokens import estimate_tokens
from prowess.tools.dialects import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prowess.conversation.acting.scripts import Scripts
    from prowess.conversation.fork import ForkRunner
    from prowess.conversation.moment import Moment
    from prowess.tools.dialect import Dialect


@dataclass(frozen=True)  # without slots, because the names are kept
class ToolsetOptions:
    """How a toolset was set up; ``Toolset`` says what each option means."""

    dialect: Dialect = DIALECTS["prowess"]
    allowed: tuple[str, ...] | None = None
    budget: int | None = None
    max_bytes: int | None = None
    hint_resources: bool = True
    index_in_description: bool = True
    fork: ForkRunner | Literal["host"] | None = None
    scripts: Scripts | None = None
    tokens: Callable[[str], int] = estimate_tokens
    hide_paths: bool = False

    def __post_init__(self) -> None:
        """Check what needs no catalogue; drop ``fork`` and ``scripts``, with a warning, where no tool uses them."""
        check_count(self.budget, "budget", optional=True)
        check_count(self.max_bytes, "max_bytes", optional=True)
        if not (self.fork is None or self.fork == "host" or callable(self.fork)):
            raise SourceError(f"fork must be a callable, 'host' or None, not {self.fork!r}")
        for name in ("hint_resources", "index_in_description", "hide_paths"):
            check_flag(getattr(self, name), name)
        for name, acts, what in (("fork", "fork", "runs skills as sub-agents"), ("scripts", "script", "runs scripts")):
            able = [each.name for each in DIALECTS.values() if any(tool.acts == acts for tool in each.tools)]
            if getattr(self, name) is not None and self.dialect.name not in able:
                spoken = f"the dialect {self.dialect.name!r} has no tool that {what} (these have: {', '.join(able)})"
                # The line that calls Toolset(…): above are the two __init__ and this one.
                warnings.warn(f"{name}= has no effect: {spoken}", UserWarning, stacklevel=4)
                object.__setattr__(self, name, None)

    @cached_property
    def allowed_names(self) -> frozenset[str] | None:
        """The names in ``allowed``, which moments are narrowed to."""
        return None if self.allowed is None else frozenset(self.allowed)


def find_dialect(name: str) -> Dialect:
    """Return the dialect with that name; raise ``SourceError`` where there is none."""
    check_text(name, "dialect")
    found = next((each for each in DIALECTS.values() if each.name == name), None)
    if found is None:
        raise SourceError(f"unknown dialect {name!r}; one of {', '.join(DIALECTS)}")
    return found


def check_allowed(moment: Moment, allowed: Iterable[str] | None, missing: str) -> tuple[str, ...] | None:
    """Return the names as the catalogue has them; raise ``UnknownSkillError`` for one that no skill has."""
    if missing not in {"ignore", "error"}:
        raise SourceError(f"missing must be 'ignore' or 'error', not {missing!r}")
    if allowed is None:
        return None
    names = check_texts(allowed, "allowed")
    if missing == "error":
        # An active skill stays usable after a refresh has taken it out of the catalogue, so its name is not a mistake.
        moment.catalog.check_names((name for name in names if moment.find(name) is None), "allowed")
    return tuple(map(moment.resolve_name, names))


def check_counter(tokens: Callable[[str], int] | None) -> Callable[[str], int]:
    """Return the function that counts tokens, in a form that has a hash."""
    if tokens is None:
        return estimate_tokens
    if not callable(tokens):
        raise SourceError(f"tokens must be a function that counts the tokens of a string, or None, not {tokens!r}")
    try:
        hash(tokens)
    except TypeError:
        # The options are part of a cache key. A counter that compares by its fields has no hash; a partial has one.
        return partial(tokens)
    return tokens


def check_scripts(scripts: Scripts | bool | None) -> Scripts | None:
    """Return how scripts run; ``None``: they do not."""
    if scripts is None or scripts is False:
        return None
    from prowess.conversation.acting.scripts import Scripts  # most toolsets run no scripts

    if isinstance(scripts, Scripts):
        return scripts
    if scripts is True:
        return Scripts()
    raise SourceError(f"scripts must be prowess.Scripts(…), True or None, not {scripts!r}")
