"""Skills that run as child agents of LangChain, made with ``create_agent``."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.errors import GraphBubbleUp

from prowess.errors import SkillError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from langchain.agents.middleware.types import ToolCallRequest
    from langchain_core.tools import BaseTool
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.prebuilt import ToolRuntime
    from langgraph.types import Command

    from prowess.adapters.core import ChildTask, Conversation
    from prowess.adapters.langchain import Skills
    from prowess.tools.definitions import ToolResult


class ChildRunner:
    """Runs the skills of one call as child agents; an interrupt inside of a child becomes the call's own."""

    def __init__(self, skills: Skills, conversation: Conversation, runtime: ToolRuntime | None) -> None:
        self._skills = skills
        self._conversation = conversation
        self._host_tools = runtime.tools if runtime else []
        self._interrupt: GraphBubbleUp | None = None

    def run(self, task: ChildTask) -> str:
        """Return the last text of the child."""
        try:
            return _get_text(self._make_agent(task).invoke({"messages": [HumanMessage(task.message)]}))
        except GraphBubbleUp as error:  # the engine would take it for a failure of the child
            self._interrupt = error
            return ""

    async def arun(self, task: ChildTask) -> str:
        """Do what ``run`` does, in asynchronous code."""
        try:
            return _get_text(await self._make_agent(task).ainvoke({"messages": [HumanMessage(task.message)]}))
        except GraphBubbleUp as error:
            self._interrupt = error
            return ""

    @property
    def is_waiting(self) -> bool:
        """Whether a child has asked a person, so that the call goes on when the person has decided."""
        return self._interrupt is not None

    def check(self, result: ToolResult) -> ToolResult:
        """Return the result of the call, or raise the interrupt of its child."""
        if self._interrupt is not None:
            raise self._interrupt
        return result

    def _make_agent(self, task: ChildTask) -> CompiledStateGraph[Any, Any, Any, Any]:
        skills = self._skills
        model = task.make_model(skills.make_model) or skills.models.get(self._conversation, skills.model)
        if not model:
            raise SkillError("no chat model is known for it: the host has to set the attribute 'model' of its Skills")
        skills.models[task.conversation] = model
        middleware = skills.child_middleware
        host_tools = [tool for tool in self._host_tools if not skills.has_tool(tool.name) and task.may_use(tool.name)]
        if middleware is None and not task.prepared.grants_tools and host_tools:
            logging.getLogger("prowess").warning(_WITHOUT_TOOLS, task.prepared.skill_name)
            host_tools = []
        own_tools = [skills.make_tool(each, task.conversation) for each in task.definitions]
        bounds = ChildBounds(task, own_tools, has_rules=middleware is not None)
        chain = [bounds, *(middleware or ())]
        return create_agent(model, [*host_tools, *own_tools], system_prompt=task.system, middleware=chain)


_WITHOUT_TOOLS = (
    "The skill %r runs as a child agent without the tools of its parent: the parent's middleware, which may ask a "
    "person about them, does not hold there. Set child_middleware of Skills, or name tools that skills may approve"
)
_NO_RULES = "This call of {} may need a person's approval, and nobody can be asked in a child agent: nothing was done."


class ChildBounds(AgentMiddleware):
    """Refuses each call of a host's tool that the skill of a child agent does not allow.

    ``has_rules``: whether the host has named middleware that judges the calls of children. Without it, only those calls
    are made that the host lets the skill approve: the parent's own middleware may ask a person about any other.
    """

    def __init__(self, task: ChildTask, own_tools: list[BaseTool], *, has_rules: bool) -> None:
        super().__init__()
        self._task = task
        self._has_rules = has_rules
        self._own_names = {tool.name for tool in own_tools}

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Answer a call that is not allowed with the reason; run any other."""
        return self._refuse(request) or handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Do what ``wrap_tool_call`` does, in asynchronous code."""
        return self._refuse(request) or await handler(request)

    def _refuse(self, request: ToolCallRequest) -> ToolMessage | None:
        if request.tool_call["name"] in self._own_names:
            return None
        return refuse_call(request, self._explain_refusal)

    def _explain_refusal(self, tool: str, arguments: Mapping[str, Any]) -> str:
        refusal = self._task.explain_refusal(tool, arguments)
        is_open = not refusal and not self._has_rules and not self._task.is_approved(tool, arguments)
        return _NO_RULES.format(tool) if is_open else refusal


def refuse_call(request: ToolCallRequest, explain: Callable[[str, Mapping[str, Any]], str]) -> ToolMessage | None:
    """Return the answer to a call that ``explain`` gives a reason against; ``None`` when there is none."""
    call = request.tool_call
    reason = explain(call["name"], call["args"])
    if not reason:
        return None
    return ToolMessage(reason, name=call["name"], tool_call_id=call["id"], status="error")


def _get_text(state: dict[str, Any]) -> str:
    return str(state["messages"][-1].text)
