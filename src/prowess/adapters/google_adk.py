"""Skills for Google's Agent Development Kit: ``Skills`` is a toolset, and ``registry`` feeds ADK's own skill tools."""

from __future__ import annotations

import json
from asyncio import to_thread
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from prowess.adapters.core import SkillsAdapter, aturn, get_media, refuse_second_skills, require_package
from prowess.errors import SkillError, SourceError, UnknownSkillError

require_package("google.adk", "google-adk>=2.13")

from google.adk.agents import LlmAgent
from google.adk.events import Event, EventActions
from google.adk.models.registry import LLMRegistry
from google.adk.skills import SkillRegistry
from google.adk.skills import models as native
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types
from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.tool_context import ToolContext

    from prowess.adapters.core import ChildTask, Conversation
    from prowess.skills.skill import Skill
    from prowess.tools.definitions import ToolDefinition, ToolResult


__all__ = ["Skills", "registry"]

_ANSWER_TOOLS = frozenset(("set_model_response", "finish_task"))
"""Tools of ADK itself by which a model gives its answer; no skill has to allow them."""


class Skills(SkillsAdapter, BaseToolset):
    """Skills for the agents of ADK: ``LlmAgent(tools=[Skills("skills")])``. The arguments are those of every adapter.

    A conversation is one session of ADK, for one agent; its state is kept in the session's state. With ``enforce=True``
    the agent also needs ``before_tool_callback=skills.check_tool``.
    """

    def _init_framework(self) -> None:
        BaseToolset.__init__(self)

    def tools(self) -> list[BaseTool]:
        """Return each skill tool as a tool of ADK, for an agent whose system text holds ``prompt()`` already."""
        return [SkillTool(definition, self.open) for definition in self.list_definitions()]

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """Return each skill tool that a conversation can be offered; each request declares those of use then."""
        return [SkillTool(definition, self.open, is_declared=True) for definition in self.list_definitions()]

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Add the listing to the system text, and declare the tools; both are of the same state of the conversation."""
        refuse_second_skills(tool_context._invocation_context.agent.tools)  # noqa: SLF001 - the only way to an agent
        conversation = await self.open(tool_context)
        self._require_callback(conversation, tool_context)
        before = conversation.session.save()
        tools = await self._list_tool_names(tool_context)
        prompt, definitions = await aturn(conversation, find_query(tool_context), tools)
        if prompt:
            llm_request.append_instructions([prompt])
        llm_request.append_tools([SkillTool(definition, self.open) for definition in definitions])
        if conversation.session.save() != before:
            # What was listed is part of the conversation, but no event of ADK's carries state from here.
            context = tool_context.get_invocation_context()
            actions = EventActions(state_delta=make_state(conversation, tool_context))
            where = {"invocation_id": context.invocation_id, "branch": context.branch}
            event = Event(author=tool_context.agent_name, actions=actions, **where)
            await context.session_service.append_event(context.session, event)

    async def _list_tool_names(self, context: ReadonlyContext) -> list[str]:
        """Return the names of the tools of the agent besides skill tools."""
        names: list[str] = []
        for tool in context._invocation_context.agent.tools:  # noqa: SLF001 - the only way to an agent
            if isinstance(tool, BaseToolset):
                others = [] if tool is self else await tool.get_tools_with_prefix(context)
                names += [other.name for other in others]
            else:
                names.append(tool.name if isinstance(tool, BaseTool) else tool.__name__)
        return names

    async def open(self, context: ReadonlyContext) -> Conversation:
        """Return the conversation that a context of ADK belongs to."""
        saved = context.state.get(f"prowess:{context.agent_name}") or {}
        # Whoever begins a session may give it any state; what is not a saved conversation is refused where it is read.
        text = saved.get("conversation", "") if isinstance(saved, dict) else str(saved)
        # A session without our state has just begun, although a deleted one may have had its id.
        return await self.conversations.aopen(
            make_key(context), text, context.invocation_id, is_new=not text, context=context
        )

    async def check_tool(
        self, tool: BaseTool, args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Return why the active skills do not allow a call of a tool, as the answer to that call; ``None``: they do.

        It is a ``before_tool_callback`` for the agent, and refuses nothing without ``enforce=True``.
        """
        if isinstance(tool, SkillTool) or tool.name in _ANSWER_TOOLS:
            return None
        refusal = (await self.open(tool_context)).explain_refusal(tool.name, args)
        return {"error": refusal} if refusal else None

    def _require_callback(self, conversation: Conversation, context: ReadonlyContext) -> None:
        agent = context._invocation_context.agent  # noqa: SLF001 - the only way from a context to its agent
        if conversation.enforce and self.check_tool not in agent.canonical_before_tool_callbacks:
            message = f"enforce=True needs before_tool_callback=skills.check_tool on the agent {agent.name!r}"
            raise SourceError(message, code="bad-argument")


class SkillTool(BaseTool):
    """One skill tool, as a tool of ADK. ``open_conversation`` returns the conversation that a call belongs to."""

    def __init__(
        self,
        definition: ToolDefinition,
        open_conversation: Callable[[ReadonlyContext], Awaitable[Conversation]],
        *,
        is_declared: bool = False,
        is_child: bool = False,
    ) -> None:
        super().__init__(name=definition.name, description=definition.description)
        self._definition = definition
        self._open = open_conversation
        self._is_declared = is_declared
        self._is_child = is_child

    def _get_declaration(self) -> types.FunctionDeclaration:
        schema = self._definition.to_json_schema()["parameters"]
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Declare the tool, unless its toolset has declared what the conversation can use now."""
        if not self._is_declared:
            await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        """Answer a call; what waits for a person is asked for as ADK's tool confirmation."""
        conversation = await self._open(tool_context)
        if self._is_child:
            return make_response(await conversation.acall(self.name, args, may_ask=False))
        confirmation = tool_context.tool_confirmation
        result = await conversation.acall(
            self.name,
            args,
            call_id=tool_context.function_call_id or "",
            decision=None if confirmation is None else confirmation.confirmed,
            run_child=partial(run_child, tool_context),
            # ADK shows no second request for a call that was decided.
            may_ask=confirmation is None,
        )
        tool_context.state.update(make_state(conversation, tool_context))
        if result.pending is None or confirmation is not None:
            return make_response(result)
        tool_context.request_confirmation(hint=str(result.pending), payload=result.pending.to_dict())
        tool_context.actions.skip_summarization = True  # the run ends here, until the person has decided
        return make_response(result)


def make_key(context: ReadonlyContext) -> str:
    """Return the key of a conversation: the application, the user, the session and the agent, as JSON."""
    session = context.session
    # JSON, because ids may hold any character: joined by one they could be those of another user.
    return json.dumps([session.app_name, session.user_id, session.id, context.agent_name])


def make_state(conversation: Conversation, context: ReadonlyContext) -> dict[str, Any]:
    """Return the part of the session's state that holds the conversation."""
    # A dictionary, because of several calls of one turn ADK keeps the last value only of dictionaries and lists.
    return {f"prowess:{context.agent_name}": {"conversation": conversation.save()}}


def find_query(context: ReadonlyContext) -> str:
    """Return the text of the user's message; a decision about a call is a message without text."""
    content = context.user_content
    return "\n".join(part.text for part in (content and content.parts) or () if part.text)


def make_response(result: ToolResult) -> dict[str, Any]:
    """Return a result as ADK's response of a function; an image or a PDF is a part of it."""
    response: dict[str, Any] = {"error" if result.is_error else "result": result.content}
    media = get_media(result)
    if media is not None:
        response["file"] = types.Part.from_bytes(data=media.content, mime_type=media.media_type)
    return response


async def run_child(tool_context: ToolContext, task: ChildTask) -> str:
    """Return the answer of a child agent: with its own session, and the parent's tools that the skill allows."""
    parent = tool_context._invocation_context.agent  # noqa: SLF001 - the only way from a context to its agent
    host_tools = [tool for tool in await parent.canonical_tools(tool_context) if not isinstance(tool, SkillTool)]

    async def open_child(_context: ReadonlyContext) -> Conversation:
        return task.conversation

    def check_tool(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any] | None:  # noqa: ARG001 - ADK's
        refusal = "" if isinstance(tool, SkillTool) else task.explain_refusal(tool.name, args)
        return {"error": refusal} if refusal else None

    callbacks = [each for each in parent.canonical_before_tool_callbacks if not is_check(each)]
    child = LlmAgent(
        name=task.agent_name,
        model=task.make_model(LLMRegistry.new_llm) or parent.canonical_model,
        instruction=lambda _context: task.system,  # a function: in a string ADK would replace what is in braces
        tools=[
            *(tool for tool in host_tools if task.may_use(tool.name)),
            *(SkillTool(each, open_child, is_child=True) for each in task.definitions),
        ],
        before_tool_callback=[check_tool, *callbacks],
        after_tool_callback=parent.canonical_after_tool_callbacks,
        on_tool_error_callback=parent.canonical_on_tool_error_callbacks,
    )
    return str(await AgentTool(child).run_async(args={"request": task.message}, tool_context=tool_context))


def is_check(callback: object) -> bool:
    """Return whether a callback is ``Skills.check_tool``, which is about the conversation of the parent."""
    return getattr(callback, "__func__", None) is Skills.check_tool


_MAX_HITS = 10


def registry(skills: SkillsAdapter) -> SkillRegistry:
    """Return the skills as a registry for ADK's own ``SkillToolset(registry=…)``, which then has its own tools.

    It has the skills that a model may have here: those that passed the checks of their sources, the filter and
    ``allowed``. ADK runs their scripts in its own way, so trust, approval and forks are ADK's as well.
    """
    return _Registry(skills)


class _Registry(SkillRegistry):
    def __init__(self, skills: SkillsAdapter) -> None:
        self._skills = skills

    async def get_skill(self, *, name: str) -> native.Skill:
        """Return a skill with its files; raises ``UnknownSkillError`` for a name that models may not have."""
        return await to_thread(self._load_skill, name)

    def _load_skill(self, name: str) -> native.Skill:
        offered = {skill.name: skill for skill in self._skills.list_skills()}
        if name not in offered:
            raise UnknownSkillError(name, offered)
        return _make_native_skill(offered[name])

    async def search_skills(self, *, query: str) -> list[native.Frontmatter]:
        """Return the heads of the skills that fit a request, best first; a head that ADK refuses is left out."""
        return await to_thread(self._search_skills, query)

    def _search_skills(self, query: str) -> list[native.Frontmatter]:
        offered = [skill.name for skill in self._skills.list_skills()]
        heads = []
        for hit in self._skills.catalog.rank_skills(query, offered, _MAX_HITS):
            with suppress(SkillError):
                heads.append(_make_native_head(hit.skill))
        return heads


def _make_native_skill(skill: Skill) -> native.Skill:
    """Return a skill as ADK's own tools take it, with the files of its three folders; raises ``SkillError``."""
    folders: dict[str, dict[str, Any]] = {"references": {}, "assets": {}, "scripts": {}}
    for path in skill.files():
        folder, _, rest = path.partition("/")
        if rest and folder in folders:
            folders[folder][rest] = content = skill.read_bytes(path)
            with suppress(UnicodeDecodeError):
                folders[folder][rest] = content.decode()
    scripts = {path: native.Script(src=text) for path, text in folders["scripts"].items() if isinstance(text, str)}
    resources = native.Resources(references=folders["references"], assets=folders["assets"], scripts=scripts)
    return native.Skill(frontmatter=_make_native_head(skill), instructions=skill.read_body(), resources=resources)


def _make_native_head(skill: Skill) -> native.Frontmatter:
    """Return the head of a skill as ADK's own tools take it; raises ``SkillError`` where ADK has stricter rules."""
    try:
        return native.Frontmatter.model_validate({**skill.frontmatter.typed(), "name": skill.name})
    except ValidationError as error:
        raise SkillError(f"ADK does not take the skill {skill.name!r}: {error.errors()[0]['msg']}") from None
