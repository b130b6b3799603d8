"""The table of the MCP methods that a server answers: who offers each, its parameters, and what makes the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import mcp_types as types

from prowess.mcp.answers import Answer
from prowess.mcp.pagination import make_page

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prowess.mcp.answers import LargeFile
    from prowess.mcp.live_catalog import ServerSnapshot

EXTENSION = "io.modelcontextprotocol/skills"
EXTENSION_METHODS = frozenset(("skills/list", "skills/get", "resources/directory/read"))
"""The methods that MCP itself does not have."""
TOOL_CALL = "tools/call"


class GetSkillParams(types.RequestParams):
    """The parameters of ``skills/get``: the address of the skill's SKILL.md."""

    uri: str


class ReadDirectoryParams(types.PaginatedRequestParams):
    """The parameters of ``resources/directory/read``: the address of a folder in a skill."""

    uri: str


class Method(NamedTuple):
    """A method: the parts of a server that offer it, the class of its parameters, and the function that answers it."""

    parts: tuple[str, ...]
    params: type[Any]
    answer: Callable[[ServerSnapshot, Any], Answer | LargeFile]


def _complete_argument(snapshot: ServerSnapshot, params: Any) -> Answer:  # noqa: ANN401 - the SDK's own
    given: Mapping[str, str] = (params.context.arguments if params.context else None) or {}
    ref = params.ref.model_dump(by_alias=True, mode="json")
    return snapshot.prompts.complete_argument(ref, params.argument.name, params.argument.value, given)


_EXTENSION_PART, _TOOLS_PART, _PROMPTS_PART = ("extension",), ("tools",), ("prompts",)
_PAGE = types.PaginatedRequestParams

METHODS: dict[str, Method] = {
    "skills/list": Method(_EXTENSION_PART, _PAGE, lambda snapshot, p: snapshot.handlers.list_skills(p.cursor)),
    "skills/get": Method(_EXTENSION_PART, GetSkillParams, lambda snapshot, p: snapshot.handlers.get_skill(p.uri)),
    "resources/directory/read": Method(
        _EXTENSION_PART,
        ReadDirectoryParams,
        lambda snapshot, p: snapshot.handlers.read_directory(p.uri, p.cursor),
    ),
    "resources/list": Method(_EXTENSION_PART, _PAGE, lambda snapshot, p: snapshot.handlers.list_resources(p.cursor)),
    "resources/templates/list": Method(_EXTENSION_PART, _PAGE, lambda snapshot, _: snapshot.handlers.list_templates()),
    "resources/read": Method(
        _EXTENSION_PART,
        types.ReadResourceRequestParams,
        lambda snapshot, p: snapshot.handlers.read_resource(p.uri),
    ),
    "tools/list": Method(
        _TOOLS_PART,
        _PAGE,
        lambda snapshot, _: Answer(make_page("tools", [*snapshot.tools.definitions], None)),
    ),
    TOOL_CALL: Method(
        _TOOLS_PART,
        types.CallToolRequestParams,
        lambda snapshot, p: snapshot.tools.call_tool(p.name, p.arguments or {}),
    ),
    "prompts/list": Method(_PROMPTS_PART, _PAGE, lambda snapshot, p: snapshot.prompts.list_prompts(p.cursor)),
    "prompts/get": Method(
        _PROMPTS_PART,
        types.GetPromptRequestParams,
        lambda snapshot, p: snapshot.prompts.get_prompt(p.name, p.arguments or {}),
    ),
    "completion/complete": Method((*_EXTENSION_PART, *_PROMPTS_PART), types.CompleteRequestParams, _complete_argument),
}
"""Every method that is answered from a snapshot, by its name."""
