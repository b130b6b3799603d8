"""Skills that run as child agents of Pydantic AI, with the tools and the approvals of the parent's run."""

from __future__ import annotations

from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, Instrumentation
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed, UserError
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models import Model, ModelResolutionContext, infer_model
from pydantic_ai.tools import DeferredToolResults, ToolDenied
from pydantic_ai.toolsets import AbstractToolset

from prowess.adapters.pydantic_ai_tools import get_arguments, is_skill_tool, make_tool

if TYPE_CHECKING:
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.tools import DeferredToolRequests, RunContext
    from pydantic_ai.toolsets import ToolsetTool

    from prowess.adapters.core import ChildTask

_NOBODY_TO_ASK = "This call needs a person's approval, and nobody can be asked here: nothing was done."
_CHILD: ContextVar[tuple[str | None, ChildTask | None]] = ContextVar("prowess_child", default=(None, None))
"""The child that makes a call of a host's tool, which the skill that it carries out bounds, and its parent's run id."""


def find_child() -> ChildTask | None:
    """Return the child agent that makes the present call of a host's tool; ``None`` when the agent itself makes it."""
    return _CHILD.get()[1]


def is_call_of_child(run_id: str | None) -> bool:
    """Return whether a child agent of that run makes the present call of a host's tool."""
    return _CHILD.get()[0] == run_id


async def run_child(ctx: RunContext[Any], task: ChildTask, skill_tools: AbstractToolset[Any]) -> str:
    """Run a skill as a child agent of the run in ``ctx``, which has ``skill_tools``; return its last text."""
    tools = [ParentTools(ctx.tool_manager, task)] if ctx.tool_manager else []
    spans = [part for part in ctx.capabilities.values() if isinstance(part, Instrumentation)]
    async with AsyncExitStack() as stack:
        model = await find_model(ctx, task)
        if isinstance(model, str):  # made for this child alone: its connections are closed at the end
            model = await stack.enter_async_context(infer_model(model))
        child = Agent(
            model,
            instructions=task.system,
            deps_type=type(ctx.deps),
            toolsets=[*tools, skill_tools],
            capabilities=[ParentApprovals(ctx), *spans],
        )
        result = await child.run(task.message, deps=ctx.deps, usage=ctx.usage, usage_limits=ctx.usage_limits)
    return result.output


async def find_model(ctx: RunContext[Any], task: ChildTask) -> Model | str:
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


class ParentTools(AbstractToolset[Any]):
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


class ParentApprovals(AbstractCapability[Any]):
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
