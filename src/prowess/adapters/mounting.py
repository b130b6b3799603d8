"""What the adapters for MCP servers share: skill tools inside somebody's own server, and approval by elicitation."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import finalize

from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from prowess.adapters.core import SkillsAdapter, drop_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server.session import ServerSession

    from prowess.adapters.core import Conversation
    from prowess.conversation.acting.trust_request import TrustRequest
    from prowess.tools.definitions import ToolDefinition, ToolResult

_ANSWER = "run"
"""The field of the form that a person answers, and the key of the request for it."""
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {_ANSWER: {"type": "boolean", "title": "Run it", "description": "Whether exactly this may run here"}},
    "required": [_ANSWER],
}


class MountedSkills(SkillsAdapter):
    """Skills for the clients of an MCP server. The server cannot run agents, so no skill runs as a child agent."""

    can_run_children = False
    can_enforce = False
    hides_paths = True

    def _init_framework(self) -> None:
        self._keys: dict[int, str] = {}
        self._used: OrderedDict[str, None] = OrderedDict()

    def list_mounted_tools(self) -> tuple[ToolDefinition, ...]:
        """Return the skill tools as clients get them: the listing is in the description of the first, load_skill.

        A client may show its model no instructions of a server, but it shows the tools. It keeps them for long, so they
        do not name the skills as the values of a parameter: a skill that comes later could not be loaded.
        """
        first, *others = (drop_names(definition) for definition in self.list_definitions())
        listing = "" if self.conversations.has_scopes else self.prompt()
        return self._describe_listing(first, listing), *others

    def list_client_tools(self, client_key: str | None, context: object) -> dict[str, ToolDefinition]:
        """Return the skill tools of one client by name, the first with the listing of what its user may have."""
        toolset = self.conversations.begin(client_key or "", context).toolset
        first, *others = map(drop_names, toolset.possible_tools())
        return {tool.name: tool for tool in (self._describe_listing(first, toolset.prompt()), *others)}

    @staticmethod
    def _describe_listing(tool: ToolDefinition, listing: str) -> ToolDefinition:
        return replace(tool, description="\n\n".join(filter(None, (tool.description, listing))))

    def find_scope_key(self, find_key: Callable[[Any], str | None], context: Any) -> str | None:
        """Return the key of the conversation whose scope a listing is for; ``None`` where all users have the same."""
        return find_key(context) if self.conversations.has_scopes else None

    def add_instructions(self, instructions: str | None, client_key: str | None, context: object) -> str | None:
        """Return the instructions of a server with the listing of a client's user behind them."""
        listing = self.prompt(key=client_key or "", context=context)
        return "\n\n".join(filter(None, (instructions, listing))) or None

    def find_session_key(self, session: ServerSession) -> str | None:
        """Return a key for the session of a client; ``None`` in a protocol without sessions."""
        # The parameters of the handshake are one object as long as the session lasts, and no other session has it. A
        # header is not a key: a client may send the id of another.
        params = session.client_params
        if params is None or _is_modern(session):
            return None
        if id(params) not in self._keys:
            self._keys[id(params)] = uuid4().hex
            finalize(params, self._end_session, id(params))
        return self._keys[id(params)]

    def _end_session(self, number: int) -> None:
        self.conversations.forget(self._keys.pop(number))

    async def answer_call(
        self, name: str, arguments: Mapping[str, Any], *, client: MCPClient
    ) -> CallToolResult | InputRequiredResult:
        """Return the result of a call, or the question that a person has to answer first."""
        # Without a key a call is a conversation of its own, which the client brings back with the person's answer.
        # The server sealed it, so that the client can neither read nor change it.
        saved = "" if client.key is not None else client.saved
        conversation = await self.conversations.aopen(client.key, saved, context=client.context)
        # A call that is made again after a question has another id, but says the same.
        call_id = f"{name} {json.dumps(arguments, sort_keys=True, default=str)}"
        call = partial(conversation.acall, name, dict(arguments), call_id=call_id, may_ask=client.can_elicit)
        decision = client.decision
        if decision is not None:
            is_asked = conversation.has_question(call_id, decision=decision)
            if not is_asked or (decision and client.key is None and not self._use_state(client.state or "")):
                return to_call_result(conversation.refuse_decision(name, name))
        result = await call(decision=decision)
        while result.pending is not None and client.can_elicit:
            if client.is_modern:
                return _make_question(result.pending, conversation)
            result = await call(decision=await client.ask(result.pending))
        return to_call_result(result)

    def _use_state(self, state: str) -> bool:
        """Return whether a yes that came with this state is the first one; a client may send both again."""
        is_first = state not in self._used
        self._used[state] = None
        while len(self._used) > self.conversations.limits.max_saved_conversations:
            self._used.popitem(last=False)
        return is_first


class MCPClient:
    """The client that made a call: the key of its conversation, what it can do, and what its person answered.

    ``key``: ``None`` when this client cannot be recognized. ``responses`` and ``state``: what a client brings back
    that was asked a question, in the protocol since 2026-07-28. ``context``: what the server passes to its tools.
    """

    def __init__(
        self,
        session: ServerSession,
        key: str | None,
        responses: Mapping[str, Any] | None,
        state: str | None,
        request_id: str,
        *,
        context: object = None,
    ) -> None:
        self.key = key
        self.context = context
        self.state = state
        self._session = session
        self._responses = responses
        self._request_id = request_id

    @property
    def is_modern(self) -> bool:
        """True for a protocol in which a server asks by its result, and sends no requests."""
        return _is_modern(self._session)

    @property
    def can_elicit(self) -> bool:
        """True when the client said that it can ask its person."""
        capabilities = self._session.client_capabilities
        return capabilities is not None and capabilities.elicitation is not None

    @property
    def saved(self) -> str:
        """The saved conversation in the state; ``""`` when there is none."""
        return (self.state or "").partition(" ")[2]

    @property
    def decision(self) -> bool | None:
        """What the person decided about an earlier round of this call; ``None`` when nobody was asked."""
        response = (self._responses or {}).get(_ANSWER)
        return _is_yes(response) if isinstance(response, ElicitResult) else None

    async def ask(self, request: TrustRequest) -> bool:
        """Ask the person with a request to the client, as protocols before 2026-07-28 have it."""
        answer = await self._session.elicit_form(_describe_request(request), _FORM, related_request_id=self._request_id)
        return _is_yes(answer)


def _is_modern(session: ServerSession) -> bool:
    return session.protocol_version in MODERN_PROTOCOL_VERSIONS


def _is_yes(answer: ElicitResult) -> bool:
    return answer.action == "accept" and (answer.content or {}).get(_ANSWER) is True


def _describe_request(request: TrustRequest) -> str:
    """Return what would run, for a person who may be far away: without the folder of the skill on this machine."""
    first, *others = str(request).splitlines()
    return "\n".join((first.partition(" (")[0], *others))


def _make_question(request: TrustRequest, conversation: Conversation) -> InputRequiredResult:
    question = ElicitRequest(params=ElicitRequestFormParams(message=_describe_request(request), requested_schema=_FORM))
    # The first word is of this question alone: the states of two equal calls are not equal.
    state = f"{uuid4().hex} {conversation.save()}"
    return InputRequiredResult(input_requests={_ANSWER: question}, request_state=state)


def to_call_result(result: ToolResult) -> CallToolResult:
    """Return a result as the protocol has it; an image or a PDF is a block in it."""
    return CallToolResult.model_validate(result.to_mcp())
