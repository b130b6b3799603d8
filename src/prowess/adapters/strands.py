"""Skills for Strands Agents: ``Agent(plugins=[Skills()])``.

Each agent object is one conversation, as it is in Strands. The conversation is saved in ``agent.state``, so that a
session manager brings it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from prowess.adapters.core import NativeTools, SkillsAdapter, aturn, get_media, require_package
from prowess.adapters.message_types import find_query
from prowess.errors import SkillError

require_package("strands", "strands-agents>=1.62")

from strands import Agent
from strands.hooks import BeforeInvocationEvent, BeforeToolCallEvent
from strands.plugins import Plugin, hook
from strands.types.tools import AgentTool, ToolContext, ToolUse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from prowess.adapters.core import ChildTask, Conversation
    from prowess.tools.definitions import ToolDefinition, ToolResult

STATE = "prowess"
"""The key of the saved conversation in the state of an agent."""


class Skills(SkillsAdapter, Plugin):
    """Skills as a plugin of Strands: the listing in the system prompt, the skill tools, approval by interrupts."""

    name = "prowess"

    def _init_framework(self) -> None:
        self._keys: WeakKeyDictionary[Agent, str] = WeakKeyDictionary()
        self._listings: WeakKeyDictionary[Agent, str] = WeakKeyDictionary()
        self._native = NativeTools(SkillTool(self, definition) for definition in self.list_definitions())
        Plugin.__init__(self)

    @property
    def tools(self) -> NativeTools[SkillTool]:
        """The skill tools. Strands reads the attribute, and ``tools()`` returns them as a list."""
        return self._native

    def open_conversation(self, agent: Agent) -> Conversation:
        """Return the conversation of an agent, as the agent's state has it when a session manager restored that."""
        key = self._keys.setdefault(agent, uuid4().hex)
        return self.conversations.open(key, agent.state.get(STATE) or "", context=agent)

    @hook
    async def _begin_request(self, event: BeforeInvocationEvent) -> None:
        """Put the listing into the system prompt, in the place of that of the request before, and renew the tools."""
        agent = event.agent
        conversation = self.open_conversation(agent)
        ours = {tool.tool_name for tool in self._native}
        tools = [name for name in agent.tool_names if name not in ours]
        listing, definitions = await aturn(conversation, find_query(event.messages or agent.messages), tools)
        former = self._listings.get(agent)
        blocks = [block for block in agent.system_prompt_content or [] if block.get("text") != former]
        agent.system_prompt = [*blocks, {"text": listing}] if listing else blocks
        self._listings[agent] = listing
        # Their schemas name the skills that exist now, and what a scope takes away is not offered.
        for name in (tool.tool_name for tool in self._native):
            agent.tool_registry.registry.pop(name, None)
        for definition in definitions:
            agent.tool_registry.register_tool(SkillTool(self, definition))
        agent.state.set(STATE, conversation.save())

    @hook
    def _check_tool(self, event: BeforeToolCallEvent) -> None:
        """Refuse a call of the host's tools that the active skills do not allow, with ``enforce``."""
        if isinstance(event.selected_tool, SkillTool):
            return
        conversation = self.open_conversation(event.agent)
        if refusal := conversation.explain_refusal(event.tool_use["name"], event.tool_use["input"]):
            event.cancel_tool = refusal


class SkillTool(AgentTool):
    """One skill tool. It finds the conversation by the agent that calls it; a child agent's tool has its own."""

    # Strands has these as abstract properties, which it only reads.
    tool_type = "prowess"
    tool_name = ""
    tool_spec: Any = None

    def __init__(self, skills: Skills, definition: ToolDefinition, conversation: Conversation | None = None) -> None:
        super().__init__()
        self.tool_name = definition.name
        schema = definition.to_json_schema()
        self.tool_spec = {
            "name": schema["name"],
            "description": schema["description"],
            "inputSchema": {"json": schema["parameters"]},
        }
        self._skills = skills
        self._conversation = conversation

    async def stream(
        self,
        tool_use: Any,
        invocation_state: dict[str, Any],
        **_: Any,
    ) -> AsyncIterator[Any]:
        """Yield the result of a call; raise the interrupt of Strands when a person has to decide first."""
        agent, call_id = invocation_state["agent"], tool_use["toolUseId"]
        conversation = self._conversation or self._skills.open_conversation(agent)
        # A child agent has nobody to ask: its model gets the text, which says that nothing was done.
        may_ask = self._conversation is None

        async def run_child(task: ChildTask) -> str:
            return await _run_child(self._skills, agent, task)

        async def call(*, decision: bool | None = None) -> ToolResult:
            try:
                return await conversation.acall(
                    self.tool_name,
                    tool_use["input"],
                    call_id=call_id,
                    decision=decision,
                    run_child=run_child,
                    may_ask=may_ask,
                )
            finally:  # also where the run is cancelled, so that a yes which was used is known to be
                if may_ask:
                    agent.state.set(STATE, conversation.save())

        context = ToolContext(tool_use=tool_use, agent=agent, invocation_state=invocation_state)
        # Strands gives an answer again when the call runs again: a yes to this question was used by a run that was cut
        # off, while a no may have come since.
        used = "" if conversation.has_question(call_id, decision=True) else conversation.name_question(call_id)
        is_refused = bool(used) and context.interrupt(f"prowess:{used}", response=True) is not True
        result = await call(decision=False if is_refused else None)
        while result.pending is not None and may_ask:
            request = result.pending
            reason = {"text": str(request), "request": request.to_dict()}
            # When the files have changed since, or a yes was used, the question has another name: it is asked anew.
            answer = context.interrupt(f"prowess:{conversation.name_question(call_id)}", reason=reason)
            result = await call(decision=answer is True)
        yield _to_strands(result, call_id)


def _to_strands(result: ToolResult, call_id: str) -> dict[str, Any]:
    """Return a result as Strands has it; an image or a PDF is a block in it."""
    content: list[dict[str, Any]] = [{"text": result.content}]
    if media := get_media(result):
        source = {"bytes": media.content}
        form = media.media_type.partition("/")[2]
        if form == "pdf":
            content.append({"document": {"format": form, "name": media.name.rpartition(".")[0], "source": source}})
        else:
            content.append({"image": {"format": form, "source": source}})
    return {"toolUseId": call_id, "status": "error" if result.is_error else "success", "content": content}


async def _run_child(skills: Skills, parent: Agent, task: ChildTask) -> str:
    """Run a skill as an agent of its own, with the parent's model and those of its tools that the skill allows."""

    def check_tool(event: BeforeToolCallEvent) -> None:
        if isinstance(event.selected_tool, SkillTool):
            return
        if refusal := task.explain_refusal(event.tool_use["name"], event.tool_use["input"]):
            event.cancel_tool = refusal

    host_tools = [tool for tool in parent.tool_registry.registry.values() if not isinstance(tool, SkillTool)]
    allowed = [tool for tool in host_tools if task.may_use(tool.tool_name)]
    if task.model:
        task.report_missing_model("Strands takes a name for a model of Amazon Bedrock")
    child = Agent(
        model=parent.model,
        tools=[*allowed, *(SkillTool(skills, definition, task.conversation) for definition in task.definitions)],
        system_prompt=task.system,
        callback_handler=None,
    )
    child.add_hook(check_tool, BeforeToolCallEvent)
    nothing = ToolUse(toolUseId="", name="", input={})
    before = BeforeToolCallEvent(agent=parent, selected_tool=None, tool_use=nothing, invocation_state={})
    for callback in parent.hooks.get_callbacks_for(before):
        # What the host has put before its tools holds in the child too. Our own check is about the parent's skills.
        if getattr(callback, "__self__", None) is not skills:
            child.add_hook(callback, BeforeToolCallEvent)
    result = await child.invoke_async(task.message, cancel_signal=parent.cancel_signal)
    if result.stop_reason == "interrupt":
        raise SkillError("a call of it needs a person's approval, and nobody can be asked in a child agent")
    return str(result)
