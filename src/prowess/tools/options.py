"""The options of a toolset, checked."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
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


@dataclass(frozen=True, slots=True)
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


def make_options(
    moment: Moment,
    dialect: str,
    allowed: Iterable[str] | None,
    fork: ForkRunner | Literal["host"] | None,
    scripts: Scripts | bool | None,
    *,
    missing: str,
    tokens: Callable[[str], int] | None,
    budget: int | None,
    max_bytes: int | None,
    **flags: bool,
) -> ToolsetOptions:
    """Return the options of a toolset over the session of ``moment``.

    Raises ``SourceError`` for a value of the wrong kind and ``UnknownSkillError`` for an allowed name that no skill
    has, unless ``missing`` is ``"ignore"``. Warns of ``fork`` and ``scripts`` when the dialect has no tool for them.
    """
    check_text(dialect, "dialect")
    spoken = next((each for each in DIALECTS.values() if each.name == dialect), None)
    if spoken is None:
        raise SourceError(f"unknown dialect {dialect!r}; one of {', '.join(DIALECTS)}")
    check_count(budget, "budget", optional=True)
    check_count(max_bytes, "max_bytes", optional=True)
    for name, value in flags.items():
        check_flag(value, name)
    if not (fork is None or fork == "host" or callable(fork)):
        raise SourceError(f"fork is a callable, 'host' or None, not {fork!r}")
    script_runner = _check_scripts(scripts)
    if fork is not None and not spoken.has_fork_tool:
        _warn_unused_option("fork", "runs skills as sub-agents", spoken)
    if script_runner is not None and not spoken.has_script_tool:
        _warn_unused_option("scripts", "runs scripts", spoken)
    return ToolsetOptions(
        spoken,
        _check_allowed_names(moment, allowed, missing),
        budget,
        max_bytes,
        fork=fork if spoken.has_fork_tool else None,
        scripts=script_runner if spoken.has_script_tool else None,
        tokens=_check_token_counter(tokens),
        **flags,
    )


def _check_allowed_names(moment: Moment, allowed: Iterable[str] | None, missing: str) -> tuple[str, ...] | None:
    if missing not in {"ignore", "error"}:
        raise SourceError(f"missing must be 'ignore' or 'error', not {missing!r}")
    if allowed is None:
        return None
    names = check_texts(allowed, "allowed")
    if missing == "error":
        # An active skill stays usable after a refresh has taken it out of the catalogue, so its name is no mistake.
        moment.catalog.check_names((name for name in names if moment.find(name) is None), "allowed")
    return tuple(map(moment.resolve_name, names))


def _check_token_counter(tokens: Callable[[str], int] | None) -> Callable[[str], int]:
    if tokens is None:
        return estimate_tokens
    if not callable(tokens):
        raise SourceError(f"tokens is a function that counts the tokens of a text, or None, not {tokens!r}")
    try:
        hash(tokens)
    except TypeError:
        # The options are part of a cache key. A counter that compares by its fields has no hash; a partial has one.
        return partial(tokens)
    return tokens


def _check_scripts(scripts: Scripts | bool | None) -> Scripts | None:
    if scripts is None or scripts is False:
        return None
    from prowess.conversation.acting.scripts import Scripts  # most toolsets run no scripts

    if isinstance(scripts, Scripts):
        return scripts
    if scripts is True:
        return Scripts()
    raise SourceError(f"scripts is prowess.Scripts(…), True or None, not {scripts!r}")


def _warn_unused_option(keyword: str, what: str, dialect: Dialect) -> None:
    """Warn of a keyword that changes nothing, because the dialect has no tool for it."""
    able = ", ".join(d.name for d in DIALECTS.values() if (d.has_fork_tool if keyword == "fork" else d.has_script_tool))
    message = f"{keyword}= has no effect: the dialect {dialect.name!r} has no tool that {what} (these have: {able})"
    warnings.warn(message, UserWarning, stacklevel=4)  # the line that calls Toolset(…)
