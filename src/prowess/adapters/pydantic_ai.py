"""Skills for Pydantic AI: ``Skills`` is a capability that gives an agent the listing and the skill tools."""

from __future__ import annotations

from contextlib import AsyncExitStack
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from prowess.adapters.core import SkillsAdapter, Turn, aturn, get_media, refuse_second_skills, require_package

require_package("pydantic_ai", "pydantic-ai-slim>=2.66")

from pydantic import ValidationError
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, Instrumentation
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed, UserError
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
from pydantic_ai.models import Model, ModelResolutionContext, infer_model
from pydantic_ai.tools import DeferredToolResults, RunContext, Tool, ToolDefinition, ToolDenied
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pydantic_ai.agent import AbstractAgent
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.tools import DeferredToolRequests

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

        schema = _describe_tool(tool).parameters_json_schema
        made = Tool[Any].from_schema(call, tool.name, tool.description, schema, takes_ctx=True)
        made.sequential, made.metadata = not tool.parallel, _SKILL_TOOL_MARK
        made.function_schema.validator = cast("Any", AnyArguments())
        return made

    async def _open(self, ctx: RunContext[Any]) -> Conversation:
        # A run without a history begins its conversation, although a former one may have had its id.
        is_new = all(message.run_id == ctx.run_id for message in ctx.messages)
        key, run = ctx.conversation_id or ctx.run_id or "", ctx.run_id or ""
        return await self.conversations.aopen(key, find_save(ctx.messages), run, is_new=is_new, context=ctx)

    # -- what Pydantic AI calls --------------------------------------------------------------------------------------

    def for_agent(self, agent: AbstractAgent[Any, Any]) -> Skills:
        """Return this object; raise ``SourceError`` where the agent has two ``Skills``."""
        refuse_second_skills(getattr(agent.root_capability, "capabilities", ()))
        return self

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
            toolset.conversation = self.conversations.restore(toolset.conversation.key, saved, ctx)
        self._in_use.add(toolset.conversation)
        try:
            return await handler()
        finally:
            self._in_use.discard(toolset.conversation)

    def get_toolset(self) -> SkillToolset | None:
        """Return the skill tools of a run, with the listing as their instructions."""
        return self.toolset

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Note the tools of the agent, for skills that need some, and return them with the skill tools of use then."""
        return tool_defs if self.toolset is None else await self.toolset.fit_tools(ctx, tool_defs)

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
        if self.toolset is not None and not is_skill_tool(tool_def) and not _is_call_of_child(ctx.run_id):
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
        return {tool.name: make_tool(self, _describe_tool(tool), ctx) for tool in self._turn.tools}

    async def fit_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Note the tools of the agent; return all tools, with the skill tools as they are for such an agent."""
        former = {tool.name for tool in self._turn.tools}
        names = [tool.name for tool in tool_defs if not is_skill_tool(tool)]
        if not self.conversation.note_tools(names):
            return tool_defs
        self._turn = await aturn(self.conversation, find_query(ctx), names)
        now = {tool.name: _describe_tool(tool) for tool in self._turn.tools}
        # One with another name is wrapped by the host, and stays as it is.
        kept = (tool for tool in tool_defs if tool.name in now or tool.name not in former or not is_skill_tool(tool))
        return [now.get(tool.name, tool) if is_skill_tool(tool) else tool for tool in kept]

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
    strings = (part.content if isinstance(part, TextContent) else part for part in prompt)
    return "\n".join(part for part in strings if isinstance(part, str))


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


_UNPARSED = "\0unparsed"
"""The name of the only argument where a model's arguments are not a JSON object: the string as it came."""
_SKILL_TOOL_MARK = {"prowess": "skill-tool"}
"""The metadata by which a skill tool is known, whatever name it has in a run."""


def _describe_tool(tool: SkillTool) -> ToolDefinition:
    """Return a skill tool as Pydantic AI describes one."""
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters_json_schema=tool.to_json_schema()["parameters"],
        sequential=not tool.parallel,
        metadata=_SKILL_TOOL_MARK,
    )


def is_skill_tool(tool: ToolDefinition) -> bool:
    """Return whether a tool of a run is a skill tool, whatever name it has there."""
    return (tool.metadata or {}).items() >= _SKILL_TOOL_MARK.items()


def make_tool(toolset: AbstractToolset[Any], definition: ToolDefinition, ctx: RunContext[Any]) -> ToolsetTool[Any]:
    """Return a tool of a toolset that takes any arguments: whoever answers the call judges them."""
    return ToolsetTool(toolset=toolset, tool_def=definition, max_retries=ctx.max_retries, args_validator=AnyArguments())


def get_arguments(tool_args: dict[str, Any]) -> Any:
    """Return the arguments of a call as the model sent them, which ``AnyArguments`` let through."""
    return tool_args.get(_UNPARSED, tool_args)


class AnyArguments:
    """Lets every string and value through to the skill tool, which answers bad arguments with a result."""

    def validate_json(self, input: str | bytes | bytearray, **_: Any) -> dict[str, Any]:
        """Return the text as the only argument; the conversation parses it."""
        return {_UNPARSED: input if isinstance(input, str) else bytes(input)}

    def validate_python(self, input: Any, **_: Any) -> dict[str, Any]:
        """Return the arguments as they are."""
        return input if isinstance(input, dict) else {_UNPARSED: input}


_NOBODY_TO_ASK = "This call needs a person's approval, and nobody can be asked here: nothing was done."
_CHILD: ContextVar[tuple[str | None, ChildTask | None]] = ContextVar("prowess_child", default=(None, None))
"""The child that makes a call of a host's tool, which the skill that it carries out bounds, and its parent's run id."""


def find_child() -> ChildTask | None:
    """Return the child agent that makes the present call of a host's tool; ``None`` when the agent itself makes it."""
    return _CHILD.get()[1]


def _is_call_of_child(run_id: str | None) -> bool:
    """Return whether a child agent of that run makes the present call of a host's tool."""
    return _CHILD.get()[0] == run_id


async def run_child(ctx: RunContext[Any], task: ChildTask, skill_tools: AbstractToolset[Any]) -> str:
    """Run a skill as a child agent of the run in ``ctx``, which has ``skill_tools``; return its last text."""
    tools = [_ParentTools(ctx.tool_manager, task)] if ctx.tool_manager else []
    spans = [part for part in ctx.capabilities.values() if isinstance(part, Instrumentation)]
    async with AsyncExitStack() as stack:
        model = await _find_model(ctx, task)
        if isinstance(model, str):  # made for this child alone: its connections are closed at the end
            model = await stack.enter_async_context(infer_model(model))
        child = Agent(
            model,
            instructions=task.system,
            deps_type=type(ctx.deps),
            toolsets=[*tools, skill_tools],
            capabilities=[_ParentApprovals(ctx), *spans],
        )
        result = await child.run(task.message, deps=ctx.deps, usage=ctx.usage, usage_limits=ctx.usage_limits)
    return result.output


async def _find_model(ctx: RunContext[Any], task: ChildTask) -> Model | str:
    """Return the model that a skill names, if the agent or Pydantic AI knows it; the parent's model otherwise."""
    parent, name = cast("Model", ctx.model), task.model
    if not name:
        return parent
    agent, capability = ctx.agent, ctx.root_capability
    try:
        if agent is not None and capability is not None and capability.has_resolve_model_id:
            known = await capability.resolve_model_id(ModelResolutionContext(agent=agent, deps=ctx.deps), model_id=name)
            if known is not None:
                return known
        infer_model(name)
    except (UserError, ValueError, ImportError) as error:  # a name of nobody's, or a provider without key or package
        task.report_missing_model(error)
        return parent
    return name


class _ParentTools(AbstractToolset[Any]):
    """The host's tools of a parent's run, as far as a skill that runs as a child agent may use them.

    A call goes through the parent's run, so that the host's own hooks and questions apply to it.
    """

    def __init__(self, manager: ToolManager[Any], task: ChildTask) -> None:
        self._manager = manager
        self._task = task

    @property
    def id(self) -> str:
        """The name of this toolset."""
        return "prowess-parent-tools"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools that the child gets, whole or in part."""
        tools = self._manager.tools or {}
        return {
            name: make_tool(self, replace(tool.tool_def, kind="function"), ctx)
            for name, tool in tools.items()
            if tool.tool_def.kind != "output" and not is_skill_tool(tool.tool_def) and self._task.may_use(name)
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Return what a tool of the host returns, or raise ``ToolFailed`` where the skill does not allow the call."""
        arguments = get_arguments(tool_args)
        refusal = self._task.explain_refusal(name, arguments)
        if refusal:
            raise ToolFailed(refusal)
        call = ToolCallPart(name, arguments, tool_call_id=ctx.tool_call_id or "")
        token = _CHILD.set((self._manager.ctx.run_id if self._manager.ctx else None, self._task))
        try:
            result = await self._manager.handle_call(call, wrap_validation_errors=False)
        except (ApprovalRequired, CallDeferred):
            raise ToolFailed(_NOBODY_TO_ASK) from None
        except ValidationError as error:
            raise ModelRetry(str(error)) from None
        finally:
            _CHILD.reset(token)
        if isinstance(result, ToolDenied):
            raise ToolFailed(result.message)
        return result


class _ParentApprovals(AbstractCapability[Any]):
    """Asks the host of the parent's run about calls of a child, if it answers within a run; denies them otherwise."""

    def __init__(self, parent: RunContext[Any]) -> None:
        super().__init__()
        self._parent = parent

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults:
        """Return the host's decisions; a call that nobody decides about is denied with what its tool said."""
        host = self._parent.root_capability
        decided = host and await host.handle_deferred_tool_calls(self._parent, requests=requests)
        results = decided or DeferredToolResults()
        for call in requests.approvals:
            said = requests.metadata.get(call.tool_call_id, {}).get("result", _NOBODY_TO_ASK)
            results.approvals.setdefault(call.tool_call_id, ToolDenied(said))
        return results
