"""The options of a toolset, checked."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.arguments import check_count, check_flag, check_texts
from prowess.errors import SourceError
from prowess.spec.tokens import estimate_tokens
from prowess.tools.dialects import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prowess.conversation.acting.scripts import Scripts
    from prowess.conversation.fork import ForkRunner
    from prowess.conversation.session import Session
    from prowess.tools.dialect import Dialect


class ToolsetOptions(NamedTuple):
    """How a toolset was set up; ``Toolset`` says what each option means."""

    allowed: tuple[str, ...] | None = None
    budget: int | None = None
    max_bytes: int | None = None
    hint_resources: bool = True
    index_in_description: bool = True
    fork: ForkRunner | Literal["host"] | None = None
    scripts: Scripts | None = None
    load_tool: str = "load_skill"
    """The name of the tool that loads a skill."""
    tokens: Callable[[str], int] = estimate_tokens
    hide_paths: bool = False


def make_options(
    session: Session,
    dialect: Dialect,
    allowed: Iterable[str] | None,
    fork: ForkRunner | Literal["host"] | None,
    scripts: Scripts | bool | None,  # noqa: FBT001 - as the toolset has it
    *,
    budget: int | None,
    max_bytes: int | None,
    missing: str,
    tokens: Callable[[str], int] | None,
    **flags: bool,
) -> ToolsetOptions:
    """Return the options of a toolset over ``session``.

    Raises ``SourceError`` for a value of the wrong kind and ``UnknownSkillError`` for an allowed name that no skill
    has, unless ``missing`` is ``"ignore"``. Warns of ``fork`` and ``scripts`` when the dialect has no tool for them.
    """
    check_count(budget, "budget", optional=True)
    check_count(max_bytes, "max_bytes", optional=True)
    for name, value in flags.items():
        check_flag(value, name)
    runner, script_runner = _check_fork(fork), _check_scripts(scripts)
    if runner is not None and not dialect.has_fork_tool:
        _warn_unused_option("fork", "runs skills as sub-agents", dialect)
    if script_runner is not None and not dialect.has_script_tool:
        _warn_unused_option("scripts", "runs scripts", dialect)
    return ToolsetOptions(
        allowed=_check_allowed_names(session, allowed, missing),
        budget=budget,
        max_bytes=max_bytes,
        fork=runner if dialect.has_fork_tool else None,
        scripts=script_runner if dialect.has_script_tool else None,
        load_tool=dialect.tools[0].name,
        tokens=_check_token_counter(tokens),
        **flags,
    )


def _check_allowed_names(session: Session, allowed: Iterable[str] | None, missing: str) -> tuple[str, ...] | None:
    if missing not in {"ignore", "error"}:
        raise SourceError(f"missing must be 'ignore' or 'error', not {missing!r}")
    if allowed is None:
        return None
    names = check_texts(allowed, "allowed")
    if missing == "error":
        # An active skill stays usable after a refresh has taken it out of the catalogue, so its name is no mistake.
        session.catalog.check_names((name for name in names if not session.is_available(name)), "allowed")
    return tuple(map(session.resolve_name, names))


def _check_fork(fork: ForkRunner | Literal["host"] | None) -> ForkRunner | Literal["host"] | None:
    if fork is None or fork == "host" or callable(fork):
        return fork
    raise SourceError(f"fork is a callable, 'host' or None, not {fork!r}")


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


def _check_scripts(scripts: Scripts | bool | None) -> Scripts | None:  # noqa: FBT001 - the public signature
    if scripts is None or scripts is False:
        return None
    from prowess.conversation.acting.scripts import Scripts

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
