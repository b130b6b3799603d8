"""The table of the MCP methods that a server answers: who offers each, its parameters, and what makes the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import mcp_types as types

from prowess.mcp.lists import LIST_METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prowess.mcp.answers import Answer, LargeFile
    from prowess.mcp.lists import ListMethod
    from prowess.mcp.snapshot import ServerSnapshot

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


def _complete_argument(snapshot: ServerSnapshot, params: Any) -> Answer:
    given: Mapping[str, str] = (params.context.arguments if params.context else None) or {}
    ref = params.ref.model_dump(by_alias=True, mode="json")
    return snapshot.prompts.complete_argument(ref, params.argument.name, params.argument.value, given)


def _from_list_method(method: ListMethod) -> Method:
    return Method(
        (method.part,), types.PaginatedRequestParams, lambda snapshot, p: method.list_page(snapshot, p.cursor)
    )


_EXTENSION_PART, _TOOLS_PART, _PROMPTS_PART = ("extension",), ("tools",), ("prompts",)

METHODS: dict[str, Method] = {
    **{name: _from_list_method(method) for name, method in LIST_METHODS.items()},
    "skills/get": Method(_EXTENSION_PART, GetSkillParams, lambda snapshot, p: snapshot.handlers.get_skill(p.uri)),
    "resources/directory/read": Method(
        _EXTENSION_PART,
        ReadDirectoryParams,
        lambda snapshot, p: snapshot.handlers.read_directory(p.uri, p.cursor),
    ),
    "resources/read": Method(
        _EXTENSION_PART,
        types.ReadResourceRequestParams,
        lambda snapshot, p: snapshot.handlers.read_resource(p.uri),
    ),
    TOOL_CALL: Method(
        _TOOLS_PART,
        types.CallToolRequestParams,
        lambda snapshot, p: snapshot.tools.call_tool(p.name, p.arguments or {}),
    ),
    "prompts/get": Method(
        _PROMPTS_PART,
        types.GetPromptRequestParams,
        lambda snapshot, p: snapshot.prompts.get_prompt(p.name, p.arguments or {}),
    ),
    "completion/complete": Method((*_EXTENSION_PART, *_PROMPTS_PART), types.CompleteRequestParams, _complete_argument),
}
"""Every method that is answered from a snapshot, by its name."""
