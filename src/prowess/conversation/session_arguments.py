"""The checks of the arguments of a session, which are made before the session changes anything."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Literal

from prowess.arguments import (
    check_callable,
    check_instance,
    check_method,
    check_number,
    check_text,
    check_texts,
    raise_bad_argument,
)
from prowess.conversation.tool_rules import ANY_TOOL, ToolCeiling, is_tool_pattern
from prowess.discovery.live import Live
from prowess.errors import SourceError
from prowess.files.path_arguments import show_path_argument
from prowess.limits import Limits
from prowess.skills.catalog import Catalog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.conversation.acting.trust import Trust
    from prowess.conversation.events import OnEvent
    from prowess.select.selectors import Selector


def parse_ceiling(tools: Iterable[str] | Literal["any"] | None) -> ToolCeiling:
    """Return the ceiling for the argument ``tools``; raise ``SourceError`` for one that is not as documented."""
    return ToolCeiling.of(tools if tools is None or tools == ANY_TOOL else _check_tools(tools))


def _check_tools(tools: Iterable[str]) -> tuple[str, ...]:
    """Return the tools of a ceiling; raise ``SourceError`` for one that could never allow what its author meant."""
    written = check_texts(tools, "tools")
    if ANY_TOOL in written:
        raise_bad_argument("tools", f"is {ANY_TOOL!r} or a list of tools", list(written), f"pass tools={ANY_TOOL!r}")
    for index, tool in enumerate(written):
        if not is_tool_pattern(tool):
            expected = "is a tool or a tool with a pattern in parentheses"
            raise_bad_argument(f"tools[{index}]", expected, tool, "pass 'Bash(git:*)' or 'Bash'")
    return written


def check_catalog(catalog: Catalog | Live) -> None:
    """Raise ``SourceError`` unless the value is a catalogue or a live one."""
    given: object = catalog
    if isinstance(given, Catalog | Live):
        return
    instead = f"prowess.scan({show_path_argument(given)})"
    if isinstance(getattr(given, "catalog", None), Catalog):  # somebody passed a session or a toolset
        instead = f"{type(given).__name__.lower()}.catalog"
    raise_bad_argument("catalog", "is a prowess.Catalog", given, f"pass {instead}")


def check_selector(selector: Selector | Literal["auto"] | None) -> None:
    """Raise ``SourceError`` unless the value is a selector, ``"auto"`` or ``None``."""
    if selector is not None and not (isinstance(selector, str) and selector == "auto"):
        check_method(selector, "selector", "select", 'pass a prowess.Selector, "auto", or None to show everything')


def check_session_arguments(
    catalog: Catalog | Live,
    max_active: int,
    selector: Selector | Literal["auto"] | None,
    pattern: str,
    trust: Trust | None,
    *,
    id: str | None,
    limits: Limits | None,
    on_event: OnEvent | None,
) -> None:
    """Raise ``SourceError`` for an argument of a session that is not what it should be."""
    check_catalog(catalog)
    check_number(max_active, "max_active")
    check_text(pattern, "filter")
    if id is not None:
        check_text(id, "id")
    check_instance(limits, "limits", Limits, optional=True, remedy="pass prowess.Limits(…)")
    check_callable(on_event, "on_event")
    if iscoroutinefunction(on_event):
        raise SourceError("on_event is a plain function, not a coroutine function: nobody would await it")
    check_selector(selector)
    if trust is not None:
        from prowess.conversation.acting.trust import Trust

        # Somebody who passes the name of a policy means a Trust with that policy.
        policy = f"policy={trust!r}" if str(trust) in {"defer", "granted", "never"} else ""
        check_instance(trust, "trust", Trust, optional=True, remedy=f"pass prowess.Trust({policy})")
