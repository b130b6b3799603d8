"""Skills as middleware of LangChain's agents (``create_agent``), and as tools of graphs made with LangGraph."""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import replace
from functools import partial
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, NotRequired
from uuid import uuid4
from weakref import WeakKeyDictionary

from prowess.adapters.core import NativeTools, SkillsAdapter, aturn, get_media, require_package, turn
from prowess.adapters.message_types import name_provider_tool
from prowess.errors import SkillError

require_package("langchain", "langchain>=1.4")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState, ExtendedModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.content import create_file_block, create_image_block, create_text_block
from langchain_core.tools import StructuredTool, ToolException
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from typing_extensions import TypedDict

from prowess.adapters.langchain_question import ApprovalLog, LastAnswer, Question, get_field, is_alone

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from langchain.agents.middleware.types import ModelRequest, ModelResponse, ToolCallRequest
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AnyMessage
    from langchain_core.tools import BaseTool
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.runtime import ExecutionInfo

    from prowess.adapters.core import ChildTask, Conversation, Turn
    from prowess.tools.definitions import ToolDefinition, ToolResult


__all__ = ["STATE_FIELD", "Skills", "SkillsState"]

STATE_FIELD = "prowess_skills"
"""The field of an agent's state that holds the conversation, so that checkpoints bring it back."""

_MAX_ASKING = 1_000
"""Tasks of LangGraph in which a call asked a person; the oldest are forgotten."""

_CUT_OFF = (
    "A person had approved this call, and its run was cut off: it may have done its work, or a part of it. Look before "
    "you make the same call again, about which the person is asked anew."
)

_numbers = count(1)


class _Saved(TypedDict):
    """One saved conversation: its key, its text, and a number that is higher for a later save."""

    key: str
    number: int
    text: str


def _keep_latest(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the later save: LangGraph applies what parallel calls wrote in the order in which they were started."""
    return new if not old or new["number"] > old["number"] else old


class SkillsState(AgentState[Any]):
    """The state of an agent with skills; a hand-made graph that uses it keeps its conversations in its checkpoints."""

    # Private: what callers send as input must not replace the saved conversation.
    prowess_skills: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, _keep_latest]]  # type: ignore[valid-type]


class Skills(SkillsAdapter, AgentMiddleware[SkillsState, Any, Any]):
    """Skills as middleware: ``create_agent(model, middleware=[Skills()])``.

    The listing joins the system message of each request, and the skill tools join the agent's tools. A conversation is
    a thread (``thread_id``); without one, each run is a conversation of its own. ``model``: the chat model of child
    agents where the adapter has not seen the agent's own, as in a graph that is made by hand. ``child_middleware``: the
    middleware of child agents, such as the ``HumanInTheLoopMiddleware`` of their parent. While it is ``None``, a child
    makes no calls of the host's tools but those that ``tools`` lets its skill approve.
    """

    state_schema = SkillsState
    tools: NativeTools[BaseTool]
    model: BaseChatModel | str | None = None
    child_middleware: Sequence[AgentMiddleware[Any, Any, Any]] | None = None

    def _init_framework(self) -> None:
        self.tools = NativeTools(self.make_tool(each) for each in self.list_definitions())
        self.models: WeakKeyDictionary[Conversation, BaseChatModel | str] = WeakKeyDictionary()
        self._asking: OrderedDict[str, str] = OrderedDict()
        self._lock = Lock()

    def make_model(self, name: str) -> BaseChatModel | None:
        """Return the chat model that a skill names; override it for names of your own.

        Where it raises or returns ``None``, the child agent gets the model of its parent, and a warning is logged.
        """
        return init_chat_model(name)

    def has_tool(self, name: str) -> bool:
        """Return whether a tool with that name is one of the skill tools."""
        return any(tool.name == name for tool in self.tools)

    # -- requests to the model ---------------------------------------------------------------------------------------

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any]:
        """Add the listing and the skill tools to one request, and keep the conversation in the agent's state."""
        conversation = self._begin_turn(request, self._open(request))
        shown = turn(conversation, _find_query(request.messages), self._list_tool_names(request))
        shown = _add_recap(conversation, request, shown)
        response = handler(self._extend_request(request, shown))
        return ExtendedModelResponse(response, Command(update=self._save(conversation, request.state)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ExtendedModelResponse[Any]:
        """Do what ``wrap_model_call`` does, in asynchronous code."""
        conversation = self._begin_turn(request, await self._aopen(request))
        shown = await aturn(conversation, _find_query(request.messages), self._list_tool_names(request))
        shown = _add_recap(conversation, request, shown)
        response = await handler(self._extend_request(request, shown))
        return ExtendedModelResponse(response, Command(update=self._save(conversation, request.state)))

    def _begin_turn(self, request: ModelRequest[Any], conversation: Conversation) -> Conversation:
        is_first = not _get_saved_state(request.state) and not any(
            isinstance(each, AIMessage) for each in request.messages
        )
        if is_first and conversation.last_save:
            # The thread went back to its beginning, where its state has no save yet.
            self.conversations.forget(conversation.key)
            conversation = self._open(request)
        self.models[conversation] = request.model
        return conversation

    def _list_tool_names(self, request: ModelRequest[Any]) -> list[str]:
        """Return the names of the tools of the agent besides skill tools; one that the provider runs has its type."""
        names = [name_provider_tool(tool) if isinstance(tool, dict) else tool.name for tool in request.tools]
        return [name for name in names if not self.has_tool(name)]

    def _extend_request(self, request: ModelRequest[Any], shown: Turn) -> ModelRequest[Any]:
        tools = [tool for tool in request.tools if isinstance(tool, dict) or not self.has_tool(tool.name)]
        tools += [self.make_tool(definition) for definition in shown.tools]
        return request.override(system_message=_append_text(request.system_message, shown.prompt), tools=tools)

    # -- the host's own tools ----------------------------------------------------------------------------------------

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Refuse a call of a host's tool that the active skills do not allow, where ``enforce`` is on."""
        if self.has_tool(request.tool_call["name"]):
            return handler(request)
        return _refuse_call(request, self._open(request.runtime).explain_refusal) or handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Do what ``wrap_tool_call`` does, in asynchronous code."""
        if self.has_tool(request.tool_call["name"]):
            return await handler(request)
        conversation = await self._aopen(request.runtime)
        return _refuse_call(request, conversation.explain_refusal) or await handler(request)

    # -- conversations -----------------------------------------------------------------------------------------------

    def _open(self, place: ModelRequest[Any] | ToolRuntime | None) -> Conversation:
        """Return the conversation that a request or a call belongs to, which is a new one where nothing names it."""
        return self.conversations.open(*_find_conversation(place), context=_find_context(place))

    async def _aopen(self, place: ModelRequest[Any] | ToolRuntime | None) -> Conversation:
        return await self.conversations.aopen(*_find_conversation(place), context=_find_context(place))

    def _save(self, conversation: Conversation, state: Any) -> dict[str, _Saved]:
        """Return the update of the agent's state that holds the conversation."""
        saved = _get_saved_state(state)
        with self._lock:  # the last save of a conversation has the highest number
            number = next(_numbers) + (saved["number"] if saved else 0)
            return {STATE_FIELD: {"key": conversation.key, "number": number, "text": conversation.save()}}

    # -- skill tools -------------------------------------------------------------------------------------------------

    def make_tool(self, definition: ToolDefinition, of_child: Conversation | None = None) -> BaseTool:
        """Return LangChain's tool for a skill tool; ``of_child``: the conversation of the child agent that has it."""
        name = definition.name

        def call(runtime: ToolRuntime = None, **arguments: Any) -> Any:
            return self._call(name, arguments, of_child or self._open(runtime), runtime)

        async def acall(runtime: ToolRuntime = None, **arguments: Any) -> Any:
            return await self._acall(name, arguments, of_child or await self._aopen(runtime), runtime)

        return StructuredTool(
            name=name,
            description=definition.description,
            args_schema=dict(definition.parameters),
            func=call,
            coroutine=acall,
            handle_tool_error=True,
        )

    def _call(
        self, name: str, arguments: dict[str, Any], conversation: Conversation, runtime: ToolRuntime | None
    ) -> Any:
        """Answer a call of a skill tool; what waits for a person is asked for as LangGraph's interrupt."""
        child = _ChildRunner(self, conversation, runtime)
        make_call = partial(conversation.call, name, arguments, run_child=child.run, **_describe_call(runtime))
        result = make_call()
        question = self._make_question(name, arguments, runtime) if runtime and result.pending else None
        if question and runtime and result.pending:
            shown, log = question.remember(question.describe(result.pending)).result(), ApprovalLog()
            try:
                decision = question.ask(shown, conversation)
            except GraphInterrupt:
                log.add("asked")
                raise
            LastAnswer(runtime.config).forget()
            if decision and log.add("used") == "used":
                result = replace(result, content=_CUT_OFF)
            elif decision is not None:
                result = make_call(decision=decision)
            if child.is_waiting:
                log.add("paused")
        return self._answer(name, child.check(result), conversation, runtime)

    async def _acall(
        self, name: str, arguments: dict[str, Any], conversation: Conversation, runtime: ToolRuntime | None
    ) -> Any:
        """Do what ``_call`` does, in asynchronous code."""
        child = _ChildRunner(self, conversation, runtime)
        make_call = partial(conversation.acall, name, arguments, run_child=child.arun, **_describe_call(runtime))
        result = await make_call()
        question = self._make_question(name, arguments, runtime) if runtime and result.pending else None
        if question and runtime and result.pending:
            shown, log = await question.remember(question.describe(result.pending)), ApprovalLog()
            try:
                decision = question.ask(shown, conversation)
            except GraphInterrupt:
                await log.aadd("asked")
                raise
            await LastAnswer(runtime.config).aforget()
            if decision and await log.aadd("used") == "used":
                result = replace(result, content=_CUT_OFF)
            elif decision is not None:
                result = await make_call(decision=decision)
            if child.is_waiting:
                await log.aadd("paused")
        return self._answer(name, child.check(result), conversation, runtime)

    def _make_question(self, name: str, arguments: dict[str, Any], runtime: ToolRuntime) -> Question | None:
        """Return the question about a call; ``None`` where the call shares a task of LangGraph with other calls.

        LangGraph counts the answers of one task, and does not say which call they are for.
        """
        if not is_alone(runtime):
            return None
        with self._lock:
            asking = self._asking.setdefault(runtime.execution_info.task_id, runtime.tool_call_id or "")
            while len(self._asking) > _MAX_ASKING:
                self._asking.popitem(last=False)
        return Question(name, arguments, asking) if asking == runtime.tool_call_id else None

    def _answer(self, name: str, result: ToolResult, conversation: Conversation, runtime: ToolRuntime | None) -> Any:
        """Return what a tool gives to LangChain: a message and the new state, or the content outside of a graph."""
        content = _make_content(result)
        if runtime is None:
            if result.is_error:
                raise ToolException(result.content)  # LangChain makes a result with the status "error" of it
            return content
        message = ToolMessage(
            content, name=name, tool_call_id=runtime.tool_call_id, status="error" if result.is_error else "success"
        )
        if not _has_field(runtime.state):
            return message
        return Command(update={"messages": [message], **self._save(conversation, runtime.state)})


def _find_conversation(place: ModelRequest[Any] | ToolRuntime | None) -> tuple[str | None, str, str]:
    """Return the key of the conversation of a request or a call, its save, and the step of the graph.

    ``None`` as the place is a call that no ``ToolNode`` makes: the configuration of the call may name its thread.
    """
    if place is None:
        return _find_thread(), "", ""
    info = (place if isinstance(place, ToolRuntime) else place.runtime).execution_info
    saved = _get_saved_state(place.state)
    if saved is None:
        return _make_key(info), "", info.checkpoint_id
    # A state can be copied from one thread to another, whose user must not go on with the conversation of the first.
    is_own = info.thread_id is None or f"{saved['key']}|".startswith(f"{info.thread_id}|")
    return saved["key"] if is_own else _make_key(info), saved["text"], info.checkpoint_id


def _add_recap(conversation: Conversation, request: ModelRequest[Any], shown: Turn) -> Turn:
    """Return the turn with the active skills of which a summary of the messages has left nothing."""
    lost = conversation.find_lost(lambda: "\n".join(str(message.content) for message in request.messages))
    return shown._replace(prompt="\n\n".join(filter(None, (shown.prompt, lost))))


def _find_context(place: ModelRequest[Any] | ToolRuntime | None) -> Any:
    """Return what a scope is found by: LangGraph's runtime, with the ``context`` that the graph was invoked with."""
    return place if place is None or isinstance(place, ToolRuntime) else place.runtime


def _find_thread() -> str | None:
    try:
        thread_id = get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:  # a tool's function was called as a plain function
        return None
    return None if thread_id is None else str(thread_id)


def _make_key(info: ExecutionInfo) -> str:
    """Return the key of a conversation: the thread, and the place of the agent in it where a graph has several.

    The last part of LangGraph's namespace is the node that runs now, and those before it are the agent's place.
    """
    if info.thread_id is None:
        return f"run {uuid4()}"
    place = info.checkpoint_ns.split("|")[:-1]
    return "|".join((str(info.thread_id), *place))


def _describe_call(runtime: ToolRuntime | None) -> dict[str, Any]:
    """Return what a conversation has to know of a call: what a person was shown of it is in the checkpoint alone."""
    return {"call_id": runtime.tool_call_id or "" if runtime else "", "may_ask": False}


def _get_saved_state(state: Any) -> _Saved | None:
    return get_field(state, STATE_FIELD) or None


def _has_field(state: Any) -> bool:
    return STATE_FIELD in state if isinstance(state, dict) else hasattr(state, STATE_FIELD)


def _find_query(messages: list[AnyMessage]) -> str:
    """Return the text of the user's last message."""
    return next((message.text for message in reversed(messages) if isinstance(message, HumanMessage)), "")


def _append_text(message: SystemMessage | None, text: str) -> SystemMessage | None:
    """Return the system message with ``text`` at its end; the rest keeps its form."""
    if not text:
        return message
    if message is None or not message.content:
        return SystemMessage(text)
    content = message.content
    both = f"{content}\n\n{text}" if isinstance(content, str) else [*content, {"type": "text", "text": text}]
    return message.model_copy(update={"content": both})


def _make_content(result: ToolResult) -> str | list[Any]:
    """Return the content of a tool message: text, and the image or the document that was read."""
    media = get_media(result)
    if media is None:
        return result.content
    if media.media_type.startswith("image/"):
        block: Any = create_image_block(base64=media.base64, mime_type=media.media_type)
    else:
        block = create_file_block(base64=media.base64, mime_type=media.media_type, filename=media.name)
    return [create_text_block(result.content), block]


class _ChildRunner:
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
        bounds = _ChildBounds(task, own_tools, has_rules=middleware is not None)
        chain = [bounds, *(middleware or ())]
        return create_agent(model, [*host_tools, *own_tools], system_prompt=task.system, middleware=chain)


_WITHOUT_TOOLS = (
    "The skill %r runs as a child agent without the tools of its parent: the parent's middleware, which may ask a "
    "person about them, does not hold there. Set child_middleware of Skills, or name tools that skills may approve"
)
_NO_RULES = "This call of {} may need a person's approval, and nobody can be asked in a child agent: nothing was done."


class _ChildBounds(AgentMiddleware):
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
        return _refuse_call(request, self._explain_refusal)

    def _explain_refusal(self, tool: str, arguments: Mapping[str, Any]) -> str:
        refusal = self._task.explain_refusal(tool, arguments)
        is_open = not refusal and not self._has_rules and not self._task.is_approved(tool, arguments)
        return _NO_RULES.format(tool) if is_open else refusal


def _refuse_call(request: ToolCallRequest, explain: Callable[[str, Mapping[str, Any]], str]) -> ToolMessage | None:
    """Return the answer to a call that ``explain`` gives a reason against; ``None`` when there is none."""
    call = request.tool_call
    reason = explain(call["name"], call["args"])
    if not reason:
        return None
    return ToolMessage(reason, name=call["name"], tool_call_id=call["id"], status="error")


def _get_text(state: dict[str, Any]) -> str:
    return str(state["messages"][-1].text)
