"""Skills for Microsoft's Agent Framework: ``Skills`` is a context provider, and ``source`` feeds its own provider."""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from prowess.adapters.core import SkillsAdapter, aturn, get_media, refuse_second_skills, require_package
from prowess.conversation.fork import PARENT_ONLY_TOOLS
from prowess.errors import SkillError

require_package("agent_framework", "agent-framework-core>=1.23")

from agent_framework import (
    Agent,
    Content,
    ContextProvider,
    FileSkill,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    SkillFrontmatter,
    SkillResource,
    SkillScript,
    SkillsSource,
)
from agent_framework import Skill as NativeSkill
from agent_framework._middleware import categorize_middleware
from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from agent_framework import AgentSession, Message, SessionContext, SkillsSourceContext

    from prowess.adapters.core import ChildTask, Conversation
    from prowess.conversation.acting.trust_request import TrustRequest
    from prowess.skills.skill import Skill
    from prowess.tools.definitions import ToolDefinition, ToolResult


__all__ = ["Skills", "source"]

_PENDING = "prowess.pending"
"""Where a tool leaves the request for a person, in the metadata of its call, so that the middleware asks."""


class Skills(SkillsAdapter, ContextProvider):
    """Skills for agents: ``Agent(client, context_providers=[Skills("skills")])``, with the arguments of every adapter.

    A conversation is one ``AgentSession``; its state is kept in the session's state, under ``source_id``. ``clients``
    has a chat client for each model that skills may name.
    """

    clients: dict[str, Any]

    def _init_framework(self) -> None:
        ContextProvider.__init__(self, "prowess")
        self.clients = {}

    def tools(self) -> list[FunctionTool]:
        """Return each skill tool as a tool of the framework, for an agent whose instructions hold ``prompt()`` already.

        Such an agent runs no child agents and asks nobody: what needs an approval says that nothing was done.
        """
        definitions = (each for each in self.list_definitions() if each.name not in PARENT_ONLY_TOOLS)
        return [self._make_tool(definition) for definition in definitions]

    def _make_tool(self, definition: ToolDefinition) -> SkillTool:
        async def answer(ctx: FunctionInvocationContext, **arguments: object) -> list[Content]:
            conversation = await self.open(ctx.session)
            result = await conversation.acall(definition.name, arguments, may_ask=False)
            if ctx.session is not None:
                ctx.session.state.setdefault(self.source_id, {})["conversation"] = conversation.save()
            return make_contents(result)

        return SkillTool(definition, answer)

    async def open(self, session: AgentSession | None, *, is_run: bool = False) -> Conversation:
        """Return the conversation of a session; without one, a conversation of its own.

        ``is_run``: a run begins, and saves the state. A session without it is new, although a former one may have had
        its id.
        """
        if session is None:
            return await self.conversations.aopen(None)
        saved = (session.state.get(self.source_id) or {}).get("conversation", "")
        return await self.conversations.aopen(session.session_id, saved, is_new=is_run and not saved, context=session)

    async def before_run(
        self, *, agent: Agent, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the listing, the tools, and the middleware that asks people and judges calls of the host's tools."""
        refuse_second_skills(getattr(agent, "context_providers", ()))
        conversation = await self.open(session, is_run=True)
        refuse_calls(conversation, context.input_messages)
        tools = list_tool_names(agent, context)
        prompt, definitions = await aturn(conversation, find_query(context.input_messages), tools)
        state["conversation"] = conversation.save()
        if prompt:
            context.extend_instructions(self.source_id, prompt)
        context.extend_tools(
            self.source_id, [self._make_run_tool(each, conversation, agent, state) for each in definitions]
        )
        context.extend_middleware(self.source_id, [CallMiddleware(conversation.explain_refusal)])

    def _make_run_tool(
        self, definition: ToolDefinition, conversation: Conversation, agent: Agent, state: dict[str, Any]
    ) -> SkillTool:
        async def answer(ctx: FunctionInvocationContext, **arguments: object) -> list[Content]:
            async def run(task: ChildTask) -> str:
                return await run_child(task, agent, task.make_model(self.clients.get), ctx.tools or ())

            approval, call_id = ctx.metadata.get("approval_response"), get_call_id(ctx)
            # The framework makes a call again only after a yes; a no is in the messages of the next run. A yes that was
            # used up, or that is about nothing that this conversation has asked, brings a new question.
            is_approved = approval is not None and approval.approved is True
            decision = True if is_approved and conversation.has_question(call_id, decision=True) else None
            try:
                result = await conversation.acall(
                    definition.name, arguments, call_id=call_id, decision=decision, run_child=run
                )
            finally:
                state["conversation"] = conversation.save()
            ctx.metadata[_PENDING] = result.pending
            return make_contents(result)

        return SkillTool(definition, answer)


class _AnyArguments(BaseModel):
    """Any arguments: the skill tools check them, and explain to the model what is wrong with them."""

    model_config = ConfigDict(extra="allow")


class SkillTool(FunctionTool):
    """One skill tool, as a tool of the framework."""

    def __init__(self, definition: ToolDefinition, answer: Callable[..., Awaitable[list[Content]]]) -> None:
        super().__init__(
            name=definition.name, description=definition.description, func=answer, input_model=_AnyArguments
        )
        self._declared = definition.to_json_schema()["parameters"]

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as JSON Schema, as the model gets them."""
        return self._declared


class CallMiddleware(FunctionMiddleware):
    """Turns what waits for a person into a request for approval, and answers calls that are not allowed."""

    def __init__(self, explain_refusal: Callable[[str, Mapping[str, Any]], str]) -> None:
        self._explain_refusal = explain_refusal

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Answer one call of a tool."""
        if not isinstance(context.function, SkillTool):
            refusal = self._explain_refusal(context.function.name, get_arguments(context))
            if refusal:
                context.result = refusal
                return
        await call_next()
        request = context.metadata.pop(_PENDING, None)
        if request is not None:
            context.result = make_approval_request(context, request)


def get_arguments(context: FunctionInvocationContext) -> Mapping[str, Any]:
    """Return the arguments of a call as a mapping."""
    arguments = context.arguments
    return arguments if isinstance(arguments, Mapping) else arguments.model_dump(exclude_unset=True)


def get_call_id(context: FunctionInvocationContext) -> str:
    """Return what names a call in its session: the framework's own id, because providers may repeat theirs."""
    return str(context.metadata.get("function_call_occurrence_id") or context.metadata.get("call_id", ""))


def make_approval_request(context: FunctionInvocationContext, request: TrustRequest) -> Content:
    """Return the framework's request for approval: ``reason`` is for the person, ``trust_request`` is the data."""
    call_id = get_call_id(context)
    call = Content.from_function_call(
        call_id=context.metadata["call_id"],
        name=context.function.name,
        arguments=dict(get_arguments(context)),
        id=call_id,
    )
    shown: dict[str, Any] = {"reason": str(request), "trust_request": request.to_dict()}
    request_id = call_id
    if context.metadata.get("approval_response") is not None:
        # A second request for one call: with an id of its own, so that a repeated answer to the first does not count.
        request_id = f"{call_id}:replacement:{uuid4().hex}"
        shown["_replacement_approval_request"] = True  # the framework's own mark of such a request
    return Content.from_function_approval_request(id=request_id, function_call=call, additional_properties=shown)


def refuse_calls(conversation: Conversation, messages: Iterable[Message]) -> None:
    """Note which skill calls a person refused: the framework does not make them again."""
    for content in (content for message in messages for content in message.contents):
        if content.type == "function_approval_response" and not content.approved and content.function_call is not None:
            conversation.refuse(content.function_call.id or content.function_call.call_id or "")


def find_query(messages: Iterable[Message]) -> str:
    """Return the text of the last message of a user; the answer to a request for approval has none."""
    strings = [message.text for message in messages if message.role == "user" and message.text]
    return strings[-1] if strings else ""


def make_contents(result: ToolResult) -> list[Content]:
    """Return a result as contents of the framework: its text, and the image or PDF that was read."""
    contents = [Content.from_text(result.content)]
    media = get_media(result)
    if media is not None:
        contents.append(Content.from_data(media.content, media.media_type, name=media.name))
    return contents


async def run_child(task: ChildTask, parent: Agent, client: Any, tools: Iterable[Any]) -> str:
    """Return the answer of a child agent: with those of the parent's tools that the skill allows, and no history."""
    client = client or getattr(parent, "client", None)
    if client is None:
        raise SkillError("the agent has no chat client that a child could use")
    host_tools = [
        tool
        for tool in tools
        # Nobody can be asked in a child, so that a tool which always asks would only end it.
        if not isinstance(tool, SkillTool)
        and getattr(tool, "approval_mode", "") != "always_require"
        and task.may_use(get_tool_name(tool))
    ]

    def make_tool(definition: ToolDefinition) -> SkillTool:
        async def answer(**arguments: object) -> list[Content]:
            return make_contents(await task.conversation.acall(definition.name, arguments, may_ask=False))

        return SkillTool(definition, answer)

    child = Agent(
        client,
        task.system,
        name=task.agent_name,
        tools=[*host_tools, *map(make_tool, task.definitions)],
        middleware=[
            CallMiddleware(task.explain_refusal),
            *categorize_middleware(getattr(parent, "middleware", None) or [])["function"],
        ],
    )
    response = await child.run(task.message)
    return response.messages[-1].text if response.messages else ""


def list_tool_names(agent: Agent, context: SessionContext) -> list[str]:
    """Return the names of the tools that the agent has in this run, besides skill tools."""
    names: list[str] = []
    for options in (getattr(agent, "default_options", None) or {}, context.options):
        given = options.get("tools") or ()
        names += map(get_tool_name, given if isinstance(given, (list, tuple)) else [given])
    names += [get_tool_name(tool) for server in getattr(agent, "mcp_tools", ()) for tool in server.functions]
    return [*names, *map(get_tool_name, context.tools)]


def get_tool_name(tool: Any) -> str:
    """Return the name by which a skill allows a tool; a tool that the provider runs goes by its type."""
    if isinstance(tool, Mapping):
        return str(tool.get("name") or tool.get("type", ""))
    return str(getattr(tool, "name", "") or getattr(tool, "__name__", ""))


def source(skills: SkillsAdapter) -> SkillsSource:
    """Return the skills as a source for the framework's own ``SkillsProvider(source)``, which then has its own tools.

    It has the skills that a model may have here: those that passed the checks of their sources, the filter and
    ``allowed``. The framework asks people in its own way. Scripts are offered only with ``Skills(scripts=…)``, and run
    under its trust.
    """
    return _Source(skills)


class _Source(SkillsSource):
    def __init__(self, skills: SkillsAdapter) -> None:
        self._skills = skills

    async def get_skills(self, context: SkillsSourceContext) -> list[NativeSkill]:
        """Return every skill; one that breaks the framework's own rules is logged and left out."""
        return await to_thread(self._list_skills)

    def _list_skills(self) -> list[NativeSkill]:
        offered: list[NativeSkill] = []
        for skill in self._skills.list_skills():
            try:
                offered.append(_LazySkill(self._skills, skill))
            except ValueError as error:
                logging.getLogger("prowess").warning("Agent Framework does not take a skill: %s", error)
        return offered


class _LazySkill(NativeSkill):
    """A skill whose files are read when the model asks for them."""

    def __init__(self, skills: SkillsAdapter, skill: Skill) -> None:
        self._skills = skills
        self._skill = skill
        front = skill.frontmatter
        self._head = SkillFrontmatter(
            name=skill.name,
            description=skill.description,
            license=front.license or None,
            compatibility=front.compatibility or None,
            allowed_tools=" ".join(front.allowed_tools) or None,
            metadata={key: str(value) for key, value in front.metadata.items()},
        )

    @property
    def frontmatter(self) -> SkillFrontmatter:
        """The head of the skill."""
        return self._head

    async def get_content(self) -> str:
        """Return the SKILL.md, and the names of its files; raises ``SkillError``."""
        return str(await (await to_thread(self._load)).get_content())

    async def get_resource(self, name: str) -> SkillResource | None:
        """Return a file of the skill; ``None`` when it has no such file."""
        return await (await to_thread(self._load)).get_resource(name)

    async def get_script(self, name: str) -> SkillScript | None:
        """Return a script of the skill; ``None`` when it has none, or when scripts are not run here."""
        return await (await to_thread(self._load)).get_script(name)

    def _load(self) -> FileSkill:
        paths = [path for path in self._skill.files() if path != "SKILL.md"]
        can_run = "run_skill_script" in {definition.name for definition in self._skills.list_definitions()}
        scripts = [path for path in paths if path.startswith("scripts/")] if can_run else []
        return FileSkill(
            frontmatter=self._head,
            content=self._skill.read_text(),
            path=self._skill.location,
            resources=[_File(self._skill, path) for path in paths],
            scripts=[_Script(self._skills, self._skill, path) for path in scripts],
        )


class _File(SkillResource):
    def __init__(self, skill: Skill, path: str) -> None:
        super().__init__(name=path)
        self._skill = skill

    async def read(self, **_kwargs: object) -> object:
        """Return the text of the file, or its bytes if it is not UTF-8."""
        data = await to_thread(self._skill.read_bytes, self.name)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data


class _Script(SkillScript):
    def __init__(self, skills: SkillsAdapter, skill: Skill, path: str) -> None:
        super().__init__(name=path)
        self._skills = skills
        self._skill = skill

    async def run(self, skill: NativeSkill, args: object = None, **_kwargs: object) -> str:
        """Run the script in the sandbox, if it is trusted; return what it printed, or why it did not run."""
        arguments = {"name": self._skill.name, "script": self.name, "args": args or []}
        return (await self._skills.conversations.begin().acall("run_skill_script", arguments)).content
