"""Skills for Pydantic AI: ``Skills`` is a capability that gives an agent the listing and the skill tools."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from prowess.adapters.core import SkillsAdapter, Turn, aturn, get_media, require_package

require_package("pydantic_ai", "pydantic-ai-slim>=2.66")

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.messages import (
    BinaryContent,
    InstructionPart,
    ModelMessage,
    ModelResponse,
    TextContent,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import RunContext, Tool, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from prowess.adapters.pydantic_ai_child import find_child, is_call_of_child, run_child
from prowess.adapters.pydantic_ai_tools import (
    SKILL_TOOL_MARK,
    AnyArguments,
    describe_tool,
    get_arguments,
    is_skill_tool,
    make_tool,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult

    from prowess.adapters.core import ChildTask, Conversation
    from prowess.tools.definitions import ToolDefinition as SkillTool
    from prowess.tools.definitions import ToolResult

__all__ = ["Skills", "find_child", "get_arguments", "make_tool"]

_SAVE_KEY = "prowess"
"""The key under which the metadata of a model's response holds the saved conversation."""


class Skills(SkillsAdapter, AbstractCapability[Any]):
    """The skills of an agent of Pydantic AI, as a capability: ``Agent(model, capabilities=[Skills()])``.

    A conversation is what Pydantic AI calls one: its key is the run's ``conversation_id``, and what is saved of it is
    in the metadata of the messages. A call that a person has to approve is a deferred tool call.
    """

    toolset: SkillToolset | None = None
    """The skill tools of one run; only the copy that ``for_run`` makes has them."""

    def _init_framework(self) -> None:
        AbstractCapability.__init__(self)
        self._in_use: set[Conversation] = set()

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Return ``None``: a file that describes an agent cannot hold the arguments."""
        return None

    def tools(self) -> list[Tool[Any]]:
        """Return the skill tools for ``Agent(tools=…)``; the listing is then up to the caller, who has ``prompt()``."""
        return [self._make_tool(tool) for tool in self.list_definitions()]

    def _make_tool(self, tool: SkillTool) -> Tool[Any]:
        async def call(ctx: RunContext[Any], **arguments: Any) -> Any:
            return await SkillToolset(await self._open(ctx)).answer_call(tool.name, arguments, ctx)

        schema = describe_tool(tool).parameters_json_schema
        made = Tool[Any].from_schema(call, tool.name, tool.description, schema, takes_ctx=True)
        made.sequential, made.metadata = not tool.parallel, SKILL_TOOL_MARK
        made.function_schema.validator = cast("Any", AnyArguments())
        return made

    async def _open(self, ctx: RunContext[Any]) -> Conversation:
        # A run without a history begins its conversation, although a former one may have had its id.
        is_new = all(message.run_id == ctx.run_id for message in ctx.messages)
        key, run = ctx.conversation_id or ctx.run_id or "", ctx.run_id or ""
        return await self.conversations.aopen(key, find_save(ctx.messages), run, is_new=is_new)

    # -- what Pydantic AI calls --------------------------------------------------------------------------------------

    async def for_run(self, ctx: RunContext[Any]) -> Skills:
        """Return a copy for one run, which has the conversation of that run."""
        run = copy(self)
        run.toolset = SkillToolset(await self._open(ctx))
        return run

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: Callable[[], Awaitable[AgentRunResult[Any]]]
    ) -> AgentRunResult[Any]:
        """Run the agent. While another run of this conversation goes on, the session comes from the messages alone."""
        toolset, saved = self.toolset, find_save(ctx.messages)
        if toolset is None:
            return await handler()
        if toolset.conversation in self._in_use and saved:
            toolset.conversation = self.conversations.restore(toolset.conversation.key, saved)
        self._in_use.add(toolset.conversation)
        try:
            return await handler()
        finally:
            self._in_use.discard(toolset.conversation)

    def get_toolset(self) -> SkillToolset | None:
        """Return the skill tools of a run, with the listing as their instructions."""
        return self.toolset

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Return the response with what is saved of the conversation, if that has changed."""
        return response if self.toolset is None else self.toolset.add_save(ctx, response)

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Run a tool of the host, unless ``enforce`` is on and the active skills do not allow it."""
        if self.toolset is not None and not is_skill_tool(tool_def) and not is_call_of_child(ctx.run_id):
            refusal = self.toolset.conversation.explain_refusal(call.tool_name, args)
            if refusal:
                raise ToolFailed(refusal)
        return await handler(args)


class SkillToolset(AbstractToolset[Any]):
    """The skill tools of one run: the prompt and the tools of a step come from one turn of its conversation."""

    def __init__(self, conversation: Conversation, *, has_listing: bool = True) -> None:
        """``has_listing``: whether the listing is part of the instructions; a child agent has it already."""
        self.conversation = conversation
        self._has_listing = has_listing
        self._turn = Turn("", ())

    @property
    def id(self) -> str:
        """The name of this toolset."""
        return "prowess-skills"

    async def for_run_step(self, ctx: RunContext[Any]) -> SkillToolset:
        """Prepare the prompt and the tools of the next request."""
        self._note_denials(ctx.messages)
        self._turn = await aturn(self.conversation, find_query(ctx))
        return self

    async def get_instructions(self, ctx: RunContext[Any]) -> InstructionPart | None:
        """Return the listing of this step as static instructions, which prompt caches keep."""
        return InstructionPart(self._turn.prompt) if self._turn.prompt and self._has_listing else None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the skill tools of this step."""
        return {tool.name: make_tool(self, describe_tool(tool), ctx) for tool in self._turn.tools}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Answer a model's call."""
        return await self.answer_call(name, tool_args, ctx)

    async def answer_call(self, name: str, arguments: dict[str, Any], ctx: RunContext[Any]) -> Any:
        """Return what a skill tool gives; raise ``ToolFailed`` for an error, ``ApprovalRequired`` for a question."""

        async def run(task: ChildTask) -> str:
            return await run_child(ctx, task, SkillToolset(task.conversation, has_listing=False))

        call_id = ctx.tool_call_id or ""
        # A yes to what this conversation has not asked may be the answer to a question of the host's own. One that a
        # cancelled run has used is about nothing, which raises.
        is_approved = ctx.tool_call_approved and self.conversation.has_question(call_id, decision=False)
        decision = True if is_approved else None
        try:
            result = await self.conversation.acall(
                name, get_arguments(arguments), call_id=call_id, decision=decision, run_child=run
            )
        finally:
            self._save(ctx.messages)
        return to_content(result)

    # -- what is kept in the messages --------------------------------------------------------------------------------

    def add_save(self, ctx: RunContext[Any], response: ModelResponse) -> ModelResponse:
        """Return a response with the saved conversation in its metadata, or as it is when nothing has changed."""
        saved = self.conversation.save()
        # The first response of a run always has it: hosts shorten the history, and what they keep must be enough.
        if saved == find_save(ctx.messages) and ctx.run_step > 1:
            return response
        return with_save(response, saved)

    def _save(self, messages: list[ModelMessage]) -> None:
        """Put the saved conversation into the response that made a call, so that the history holds what it did."""
        place = next((i for i in reversed(range(len(messages))) if isinstance(messages[i], ModelResponse)), None)
        saved = self.conversation.save()
        if place is not None and saved != find_save(messages):
            # A new message in its place: the caller may still have the history from which this run began.
            messages[place] = with_save(cast("ModelResponse", messages[place]), saved)

    def _note_denials(self, messages: Sequence[ModelMessage]) -> None:
        """Note which skill calls a person has denied: Pydantic AI answers those without calling the tool."""
        for part in messages[-1].parts if messages else ():
            if isinstance(part, ToolReturnPart) and part.outcome == "denied":
                self.conversation.refuse(part.tool_call_id)


def with_save(response: ModelResponse, saved: str) -> ModelResponse:
    """Return a copy of a response with a saved conversation in its metadata."""
    return replace(response, metadata={**(response.metadata or {}), _SAVE_KEY: saved})


def find_save(messages: Sequence[ModelMessage]) -> str:
    """Return what the messages hold of a saved conversation; ``""`` when it is nothing."""
    saves = ((message.metadata or {}).get(_SAVE_KEY) for message in reversed(messages))
    return next((saved for saved in saves if isinstance(saved, str)), "")


def find_query(ctx: RunContext[Any]) -> str:
    """Return the text of the user's last message."""
    parts = (part for message in reversed(ctx.messages) for part in reversed(message.parts))
    prompt = next((part.content for part in parts if isinstance(part, UserPromptPart)), ctx.prompt) or ""
    if isinstance(prompt, str):
        return prompt
    texts = (part.content if isinstance(part, TextContent) else part for part in prompt)
    return "\n".join(text for text in texts if isinstance(text, str))


def to_content(result: ToolResult) -> str | list[str | BinaryContent]:
    """Return what a model gets; raise ``ApprovalRequired`` for a pending result, ``ToolFailed`` for an error."""
    if result.pending is not None:
        request = result.pending
        raise ApprovalRequired({"request": request.to_dict(), "text": str(request), "result": result.content})
    if result.is_error:
        raise ToolFailed(result.content)
    media = get_media(result)
    if media is None:
        return result.content
    return [result.content, BinaryContent(media.content, media_type=media.media_type)]
