"""Refusals that several dialects share: which skills a model may have, and errors rendered as results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prowess.errors import SkillError, SkillNotActiveError, UnknownSkillError
from prowess.escapes import escape_line
from prowess.spec.markup import CONTENT_TAG, USER_CALL_TAG, neutralize_tags
from prowess.tools.definitions import ToolResult

if TYPE_CHECKING:
    from prowess.tools.view import View

_MAX_ERROR_LENGTH = 2_000
_KEPT_END_LENGTH = 128  # the end of a message says what to do, so the middle is cut


def sanitize_error(result: ToolResult) -> ToolResult:
    """Return an error as a model receives it: at most 2,000 characters, without the tags around instructions.

    Errors quote names of folders, files and skills, and what a model sent. That text must decide neither how long a
    result is, nor where instructions seem to begin or end.
    """
    content = neutralize_tags(result.content, CONTENT_TAG, USER_CALL_TAG)
    if len(content) > _MAX_ERROR_LENGTH:
        content = content[: _MAX_ERROR_LENGTH - _KEPT_END_LENGTH] + " … " + content[-_KEPT_END_LENGTH:]
    data = {key: value[:_MAX_ERROR_LENGTH] if isinstance(value, str) else value for key, value in result.data.items()}
    return ToolResult(content, is_error=True, data=data)


def error_result(message: str, **data: Any) -> ToolResult:  # noqa: ANN401 - data for the host
    """Return a result that is an error, with ``data`` for the host."""
    return ToolResult(message, is_error=True, data=data)


def describe_error(error: Exception) -> str:
    """Return the message of an error on one line."""
    return escape_line(error.message if isinstance(error, SkillError) else str(error))


def render_plain_error(_tool: str, error: Exception) -> ToolResult:
    """Return a result with the message alone; many dialects show errors so."""
    return error_result(describe_error(error), reason=getattr(error, "code", "bad-arguments"))


def is_reachable(view: View, name: str) -> bool:
    """Return whether the toolset lets the model have that skill, and the session has it."""
    return view.may_use(name) and view.session.is_available(name)


def require_allowed_skill(view: View, name: str) -> None:
    """Raise ``UnknownSkillError`` for a skill that the toolset does not let the model have."""
    if not view.may_use(name):
        raise UnknownSkillError(name, (skill.name for skill in view.skills), view.session.limits.max_listed_names)


def deactivate_skill(view: View, name: str) -> tuple[str, ...]:
    """Deactivate a skill, and return the tools that it no longer adds; raises ``SkillNotActiveError``."""
    if not view.may_use(name):  # the model must not learn whether the host uses that skill
        raise SkillNotActiveError(f"skill {name!r} is not active")
    return view.session.deactivate(name)
