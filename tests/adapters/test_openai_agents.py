"""Skills in the OpenAI Agents SDK: whole runs of the SDK with its own scripted model."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import prowess
from prowess import otel
from tests.adapters.approval_orders import RUN_COUNT, UNBOXED, check_orders
from tests.adapters.skill_library import (
    PIXEL,
    RIGHTS,
    add_needy_skills,
    allow_by_user,
    check_listings,
    check_needy_skills,
)
from tests.page_snippets import run_framework_page
from tests.sandbox_support import require_sandbox

framework = pytest.importorskip(
    "agents.testing",
    reason="NOT TESTED: openai-agents is not installed; make test-adapters installs it",
)

from agents import (
    Agent,
    Model,
    ModelProvider,
    ModelResponse,
    OpenAIConversationsSession,
    RunConfig,
    RunContextWrapper,
    Runner,
    RunState,
    SQLiteSession,
    ToolApprovalItem,
    TracingProcessor,
    Usage,
    WebSearchTool,
    function_tool,
    set_trace_processors,
)
from agents.mcp import MCPServer
from agents.models.chatcmpl_converter import Converter
from agents.models.openai_responses import OpenAIResponsesModel
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext
from mcp.types import CallToolResult, TextContent
from mcp.types import Tool as McpTool
from openai import AsyncOpenAI, NotFoundError

from examples.frameworks import openai_agents as example
from prowess.adapters.openai_agents import Skills, trace_events

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from agents import RunResult, Span, Trace
    from agents.testing import ModelCall

    OpenStore = Callable[..., SQLiteSession]

COUNT = {"name": "count-words", "script": "scripts/count.py", "args": ["one", "two"]}


class Recorder(TracingProcessor):
    """Keeps the spans of the SDK's own tracing."""

    def __init__(self) -> None:
        self.spans: list[Any] = []

    def on_trace_start(self, trace: Trace) -> None: ...
    def on_trace_end(self, trace: Trace) -> None: ...
    def on_span_start(self, span: Span[Any]) -> None: ...

    def on_span_end(self, span: Span[Any]) -> None:
        self.spans.append(span)

    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


@pytest.fixture(autouse=True)
def recorder() -> Recorder:
    """The SDK's traces go here, and not to a server."""
    recorder = Recorder()
    set_trace_processors([recorder])
    return recorder


@pytest.fixture
def open_store() -> Iterator[OpenStore]:
    """Opens sessions of the SDK in SQLite, and closes them after the test."""
    opened: list[SQLiteSession] = []

    def open_session(*arguments: object) -> SQLiteSession:
        opened.append(SQLiteSession(*arguments))
        return opened[-1]

    yield open_session
    for session in opened:
        session.close()


@function_tool
def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word}: found"


@function_tool
def delete(word: str) -> str:
    """Delete a word."""
    return f"{word}: deleted"


def call(name: str, call_id: str = "call-1", /, **arguments: object) -> list[Any]:
    return [function_call(name, arguments, call_id=call_id)]


def say(text: str = "Done.") -> list[Any]:
    return [assistant_message(text)]


def script(*steps: object) -> ScriptedModel:
    return ScriptedModel(steps)


def make_agent(model: ScriptedModel, **more: object) -> Agent[Any]:
    return Agent(name="Assistant", **{"instructions": "Be kind.", "model": model, **more})


def run(agent: Agent[Any], message: object = "Hello", **options: object) -> RunResult:
    return asyncio.run(Runner.run(agent, message, **options))


def outputs(result: RunResult) -> list[Any]:
    """The outputs of all tool calls of a run."""
    return [item["output"] for item in result.to_input_list() if item.get("type") == "function_call_output"]


def active(skills: Skills, result: RunResult) -> tuple[str, ...]:
    """The active skills of the conversation that a run belongs to."""
    return skills.open_run(result.context_wrapper).conversation.session.active_skills


# -- one line ----------------------------------------------------------------------------------------------------------


def test_one_line_gives_an_agent_skills(library: Path) -> None:
    model = script(call("load_skill", name="greet"), say("Good morning."))
    plain = make_agent(model, tools=[look_up])
    result = run(Skills(library).attach(plain))
    assert result.final_output == "Good morning."
    assert "Say hello as references/forms.md says." in outputs(result)[0]
    offered = [tool.name for tool in model.calls[0].tools]
    assert offered[0] == "look_up"
    assert {"load_skill", "read_skill_file", "run_skill"} <= set(offered)
    assert (plain.tools, plain.instructions) == ([look_up], "Be kind.")
    assert asyncio.run(plain.get_system_prompt(result.context_wrapper)) == "Be kind."


def test_schemas_are_those_of_the_engine(library: Path) -> None:
    skills = Skills(library)
    for tool, definition in zip(skills.tools(), skills.list_definitions(), strict=True):
        assert (tool.name, tool.description) == (definition.name, definition.description)
        assert tool.params_json_schema == definition.parameters


def give_text(_ctx: object, agent: Agent[Any]) -> str:
    return f"I am {agent.name}."


async def await_text(_ctx: object, agent: Agent[Any]) -> str:
    return f"I am {agent.name}."


@pytest.mark.parametrize(
    ("instructions", "begins"),
    [
        ("Be kind.", "Be kind.\n\nSkills are"),
        (give_text, "I am Assistant.\n\nSkills are"),
        (await_text, "I am Assistant.\n\nSkills are"),
        (None, "Skills are"),
    ],
)
def test_listing_is_in_the_system_text_once_and_stays_the_same(
    open_store: OpenStore, library: Path, instructions: object, begins: str
) -> None:
    steps = [
        call("load_skill", name="greet"),
        call("read_skill_file", "call-2", name="greet", path="references/forms.md"),
    ]
    model = script(*steps, say(), say())
    skills = Skills(library)
    agent, session = skills.attach(make_agent(model, instructions=instructions)), skills.bind_session(open_store("a"))
    run(agent, session=session)
    run(agent, "And again", session=session)
    texts = [each.system_instructions or "" for each in model.calls]
    assert len(texts) == 4
    assert len(set(texts)) == 1
    assert texts[0].count("<available_skills>") == 1
    assert texts[0].endswith(skills.prompt())
    assert texts[0].startswith(begins)


def test_handoffs_and_clones_keep_working(library: Path) -> None:
    model = script(call("transfer_to_assistant"), call("load_skill", "call-2", name="greet"), say())
    specialist = Skills(library).attach(make_agent(model))
    result = run(Agent(name="Triage", model=model, handoffs=[specialist.clone(instructions="Be brief.")]))
    assert "Say hello" in outputs(result)[-1]
    assert "<available_skills>" not in (model.calls[0].system_instructions or "")
    assert (model.calls[1].system_instructions or "").startswith("Be brief.\n\nSkills are")


def test_agent_with_skills_hands_off(library: Path) -> None:
    model = script(call("transfer_to_other"), say("From the other."))
    agent = Skills(library).attach(make_agent(model, handoffs=[Agent(name="Other", model=model)]))
    result = run(agent)
    assert (result.final_output, result.last_agent.name) == ("From the other.", "Other")
    assert model.calls[1].system_instructions is None


# -- conversations -----------------------------------------------------------------------------------------------------


def test_each_conversation_has_its_own_session(library: Path) -> None:
    model = script(call("load_skill", name="greet"), say(), say(), call("load_skill", name="picture"), say(), say())
    skills = Skills(library)
    agent = skills.attach(make_agent(model), conversation=lambda context: context["user"])
    for user in ("ann", "bob", "bob", "ann"):
        run(agent, context={"user": user})
    assert skills.session("ann").active_skills == ("greet",)
    assert skills.session("bob").active_skills == ("picture",)


def test_run_without_a_key_is_a_conversation_of_its_own(library: Path) -> None:
    model = script(call("load_skill", name="greet"), say(), say())
    skills = Skills(library)
    agent = skills.attach(make_agent(model))
    first, second = run(agent), run(agent)
    assert (active(skills, first), active(skills, second)) == (("greet",), ())
    assert len(skills.conversations) == 0


def test_run_for_which_the_program_names_no_conversation_is_one_of_its_own(library: Path) -> None:
    model = script(call("load_skill", name="greet"), say(), call("load_skill", name="picture"), say(), say())
    skills = Skills(library)
    agent = skills.attach(make_agent(model), conversation=lambda context: context["user"])
    context: dict[str, Any] = {"user": "ann"}
    run(agent, context=context)
    context["user"] = None  # a visitor whom nobody knows: neither Ann's skills are active, nor those of another visitor
    first, second = run(agent, context=context), run(agent, context=context)
    assert (active(skills, first), active(skills, second)) == (("picture",), ())
    assert skills.session("ann").active_skills == ("greet",)


def test_equal_session_ids_in_two_stores_are_two_conversations(open_store: OpenStore, library: Path) -> None:
    model = script(say(), say(), call("load_skill", name="greet"), say(), say())
    skills = Skills(library)
    agent = skills.attach(make_agent(model))
    ann, bob = (skills.bind_session(open_store("1")) for _ in range(2))
    run(agent, session=ann)
    run(agent, session=bob)
    first, second = run(agent, session=ann), run(agent, session=bob)
    assert (active(skills, first), active(skills, second)) == (("greet",), ())


@pytest.mark.parametrize("with_sessions", [False, True])
def test_two_users_at_once_share_nothing(open_store: OpenStore, library: Path, with_sessions: bool) -> None:
    async def main() -> None:
        together = asyncio.Barrier(2)

        async def answer(request: ModelCall) -> list[Any]:
            await asyncio.wait_for(together.wait(), 20)  # both runs are at the same point
            name = request.input[0]["content"]
            return say(name) if request.input[-1].get("output") else call("load_skill", name=name)

        skills = Skills(library)
        agent = skills.attach(make_agent(script(*[ModelStep.respond(answer)] * 4)))
        shared = {"database": "one for all users"}

        async def serve(name: str) -> RunResult:
            session = skills.bind_session(open_store("same-id")) if with_sessions else None
            return await Runner.run(agent, name, context=shared, session=session)

        ann, bob = await asyncio.gather(serve("greet"), serve("picture"))
        assert (active(skills, ann), active(skills, bob)) == (("greet",), ("picture",))
        assert "pixel" not in str(ann.to_input_list())
        assert "Say hello" not in str(bob.to_input_list())
        assert shared == {"database": "one for all users"}

    asyncio.run(main())


def test_session_comes_back_with_the_checkpoint(open_store: OpenStore, library: Path, tmp_path: Path) -> None:
    def make() -> tuple[Skills, Agent[Any], Any]:
        skills = Skills(library)
        model = script(call("load_skill", name="greet"), say()) if not made else script(say("Again."), say())
        made.append(skills)
        return skills, skills.attach(make_agent(model)), skills.bind_session(open_store("ann", tmp_path / "chat.db"))

    made: list[Skills] = []
    _, agent, session = make()
    run(agent, session=session)
    skills, agent, session = make()
    result = run(agent, "And now?", session=session)
    assert (result.final_output, active(skills, result)) == ("Again.", ("greet",))
    sent = agent.model.calls[0].input
    assert [item.get("role", item.get("type")) for item in sent] == [
        "user",
        "function_call",
        "function_call_output",
        "assistant",
        "user",
    ]
    assert "provider_data" not in str(sent)

    async def go_back() -> list[Any]:
        for _ in range(5):  # all but the first message of the user
            await session.pop_item()
        return await session.get_items()

    assert [item["role"] for item in asyncio.run(go_back())] == ["user"]
    skills, agent, session = make()
    assert active(skills, run(agent, session=session)) == ()


class Remote(OpenAIConversationsSession):
    """A conversation at OpenAI, whose items are kept here; it takes no item with fields of others."""

    def __init__(self) -> None:
        super().__init__(conversation_id="conv_1", openai_client=object())
        self.items: list[Any] = []

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return self.items[-(limit or 0) :]

    async def add_items(self, items: list[Any]) -> None:
        assert not any("provider_data" in item for item in items)
        self.items += items


def test_conversation_at_openai_is_a_key(library: Path) -> None:
    model = script(call("load_skill", name="greet"), say(), say())
    skills = Skills(library)
    agent, session = skills.attach(make_agent(model)), skills.bind_session(Remote())
    run(agent, session=session)
    assert active(skills, run(agent, session=session)) == ("greet",)
    assert skills.session("conv_1").active_skills == ("greet",)


def test_cleared_session_is_a_new_conversation(open_store: OpenStore, library: Path) -> None:
    model = script(call("load_skill", name="greet"), say(), say())
    skills = Skills(library)
    agent, session = skills.attach(make_agent(model)), skills.bind_session(open_store("ann"))
    run(agent, session=session)
    asyncio.run(session.clear_session())
    assert active(skills, run(agent, session=session)) == ()


def test_stored_items_can_be_used_without_skills(open_store: OpenStore, library: Path) -> None:
    """The state is in ``provider_data``, which no API of OpenAI gets."""
    model, store = script(call("load_skill", name="greet"), say()), open_store("ann")
    skills = Skills(library)
    run(skills.attach(make_agent(model)), session=skills.bind_session(store))
    items = asyncio.run(store.get_items())
    assert "prowess:Assistant" in str(items)
    assert "prowess:Assistant" not in str(Converter.items_to_messages(items))
    client = AsyncOpenAI(api_key="none", base_url="http://localhost")
    sent = OpenAIResponsesModel("gpt-5", client)._remove_openai_responses_api_incompatible_fields(items)  # noqa: SLF001 - there is no other way to see what would be sent
    assert len(sent) == len(items)
    assert "prowess:Assistant" not in str(sent)


# -- tools -------------------------------------------------------------------------------------------------------------


def test_tools_work_in_plain_code(library: Path) -> None:
    model = script(call("read_skill_file", name="greet", path="references/forms.md"), say())
    skills = Skills(library)
    agent = Agent(name="Own", instructions=f"Be kind.\n\n{skills.prompt()}", tools=skills.tools(), model=model)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)  # run_sync uses the loop of the thread
    try:
        result = Runner.run_sync(agent, "Hello")
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    assert "Good morning before noon." in outputs(result)[0]


def test_tools_without_attach_keep_runs_apart(library: Path) -> None:
    model = script(call("load_skill", name="greet"), say(), say())
    skills = Skills(library)
    agent = Agent(name="Own", tools=skills.tools(), model=model)
    assert [active(skills, run(agent)) for _ in range(2)] == [("greet",), ()]


def test_tools_work_in_asynchronous_code(library: Path) -> None:
    async def main() -> None:
        model = script(call("load_skill", name="greet"), say("Hello."))
        streamed = Runner.run_streamed(Skills(library).attach(make_agent(model)), "Hello")
        names = [event.name async for event in streamed.stream_events() if event.type == "run_item_stream_event"]
        assert names == ["tool_called", "tool_output", "message_output_created"]
        assert "Say hello" in outputs(streamed)[0]
        assert streamed.final_output == "Hello."

    asyncio.run(main())


def test_errors_are_results(library: Path) -> None:
    steps = [
        call("load_skill", "call-1", name="gone"),
        call("load_skill", "call-2", name=7),
        [function_call("load_skill", "{not JSON", call_id="call-3")],
        call("read_skill_file", "call-4", name="greet", path="gone.md"),
        call("read_skill_file", "call-5", name="greet", path="../careful/SKILL.md"),
    ]
    result = run(Skills(library).attach(make_agent(script(*steps, say("I am sorry.")))))
    unknown, bad_type, no_json, missing, outside = outputs(result)
    assert "gone" in unknown
    assert "name" in bad_type
    assert "JSON" in no_json
    assert "gone.md" in missing
    assert "Use look_up and nothing else" not in outside
    assert result.final_output == "I am sorry."


def test_mistakes_of_the_program_are_errors(library: Path) -> None:
    skills = Skills(library)
    agent = skills.attach(make_agent(script()))
    with pytest.raises(prowess.SourceError, match=r"pass an agents\.Agent"):
        skills.attach("agent")
    with pytest.raises(prowess.SourceError, match="list of sources"):
        Skills(library).attach(agent)
    with pytest.raises(prowess.SourceError, match="conversation"):
        skills.attach(make_agent(script()), conversation="ann")  # type: ignore[arg-type]


def test_missing_package_is_answered_with_the_command() -> None:
    """In a process of its own, in which the package cannot be found."""
    program = "import sys; sys.modules['agents'] = None; import prowess.adapters.openai_agents"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'openai-agents>=0.24'" in done.stderr


# -- approval ----------------------------------------------------------------------------------------------------------


def make_counting(library: Path, tmp_path: Path, model: ScriptedModel) -> tuple[Skills, Agent[Any], prowess.Trust]:
    require_sandbox()
    trust = prowess.Trust(tmp_path / "trust.json", policy="defer")
    skills = Skills(library, trust=trust, scripts=True)
    return skills, skills.attach(make_agent(model)), trust


@pytest.mark.parametrize("through_json", [False, True])
def test_approval_shows_the_request_and_resuming_runs_it(library: Path, tmp_path: Path, through_json: bool) -> None:
    model = script(call("load_skill", "call-0", name="greet"), call("run_skill_script", **COUNT), say("Two."))
    skills, agent, _ = make_counting(library, tmp_path, model)
    result = run(agent)
    (item,) = result.interruptions
    request = skills.find_request(item)
    assert request is not None
    assert "runs the script: scripts/count.py one two" in str(request)
    assert request.to_dict()["digest"] == skills.catalog["count-words"].digest()
    state = result.to_state()
    if through_json:  # as another process would do it, with other objects
        text = json.dumps(state.to_json())
        skills, agent, _ = make_counting(library, tmp_path, model)
        state = asyncio.run(RunState.from_json(agent, json.loads(text)))
        again = skills.find_request(state.get_interruptions()[0])
        assert again is not None
        assert again.to_dict() == request.to_dict()
    state.approve(state.get_interruptions()[0])
    result = run(agent, state)
    assert "2 words" in outputs(result)[-1]
    assert result.final_output == "Two."
    assert active(skills, result) == ("greet",)


def test_run_that_lost_its_session_leaves_the_stored_state_as_it_is(
    open_store: OpenStore, library: Path, tmp_path: Path
) -> None:
    model = script(call("load_skill", "call-0", name="greet"), call("run_skill_script", **COUNT), say(), say())
    skills, agent, _ = make_counting(library, tmp_path, model)
    session = skills.bind_session(open_store("ann"))
    text = run(agent, session=session, context={"own": 1}).to_state().to_string()
    state = asyncio.run(RunState.from_string(agent, text))
    state.approve(state.get_interruptions()[0])
    result = run(agent, state, session=session)
    assert "nothing was done" in outputs(result)[-1]
    assert active(skills, run(agent, session=session)) == ("greet",)


@pytest.mark.parametrize("is_named", [True, False])
def test_saved_run_with_a_context_goes_on_where_the_program_names_its_conversation(
    library: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, is_named: bool
) -> None:
    def make() -> Agent[Any]:
        skills, _, _ = make_counting(library, tmp_path, model)
        return skills.attach(make_agent(model), conversation=(lambda context: context["user"]) if is_named else None)

    model = script(call("run_skill_script", **COUNT), say())
    text = run(make(), context={"user": "ann"}).to_state().to_string()
    agent = make()
    state = asyncio.run(RunState.from_string(agent, text))
    state.approve(state.get_interruptions()[0])
    with caplog.at_level(logging.WARNING, "prowess"):
        result = run(agent, state)
    assert ("2 words" if is_named else "nothing was done") in outputs(result)[0]
    assert ("attach(agent, conversation=…)" in caplog.text) is not is_named


def test_arguments_that_are_not_json_run_nothing_where_people_are_asked(library: Path, tmp_path: Path) -> None:
    """The SDK interrupts such a call of a tool that may need approval, whatever the tool would say."""
    model = script([function_call("run_skill_script", "{not JSON", call_id="call-1")], say())
    skills, agent, _ = make_counting(library, tmp_path, model)
    state = run(agent).to_state()
    (item,) = state.get_interruptions()
    assert skills.find_request(item) is None
    state.approve(item)
    assert "JSON" in outputs(run(agent, state))[0]


def test_approval_goes_on_with_a_bound_session(open_store: OpenStore, library: Path, tmp_path: Path) -> None:
    model = script(call("run_skill_script", **COUNT), say("Two."), call("run_skill_script", "call-9", **COUNT), say())
    skills, agent, _ = make_counting(library, tmp_path, model)
    store = tmp_path / "chat.db"
    state = run(agent, session=skills.bind_session(open_store("ann", store))).to_state()
    state.approve(state.get_interruptions()[0])
    result = run(agent, state, session=skills.bind_session(open_store("ann", store)))
    assert "2 words" in outputs(result)[-1]
    # A yes is for one call: an equal one of the same conversation is asked about again.
    later = run(agent, "Again", session=skills.bind_session(open_store("ann", store)))
    assert len(later.interruptions) == 1


def test_refused_call_does_not_run(library: Path, tmp_path: Path) -> None:
    (library / "count-words/scripts/count.py").write_text("raise SystemExit('this ran')\n", encoding="utf-8")
    model = script(call("run_skill_script", **COUNT), say("As you wish."))
    _, agent, _ = make_counting(library, tmp_path, model)
    state = run(agent).to_state()
    state.reject(state.get_interruptions()[0], rejection_message="Ann said no.")
    result = run(agent, state)
    assert outputs(result) == ["Ann said no."]
    assert result.final_output == "As you wish."


def test_refused_call_is_not_asked_about_again(open_store: OpenStore, library: Path, tmp_path: Path) -> None:
    again = call("run_skill_script", "call-9", **COUNT)
    model = script(call("run_skill_script", **COUNT), again, say(), call("run_skill_script", "call-10", **COUNT), say())
    skills, agent, _ = make_counting(library, tmp_path, model)
    session = skills.bind_session(open_store("ann"))
    state = run(agent, session=session).to_state()
    state.reject(state.get_interruptions()[0])
    result = run(agent, state, session=session)
    assert "said no" in outputs(result)[-1]
    assert "said no" in outputs(run(agent, "Again", session=session))[-1]


class Counter(Model):
    """A model that makes the call whenever the user says so."""

    async def get_response(self, *arguments: Any, **more: Any) -> Any:
        given = more.get("input", arguments[1] if len(arguments) > 1 else "")
        last = given if isinstance(given, str) else given[-1].get("content", "")
        made = call(*RUN_COUNT[:1], f"call-{next(NUMBERS)}", **RUN_COUNT[1]) if last == "count" else say()
        return ModelResponse(output=made, usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


NUMBERS = count()


class OrdersHost:
    """A host that stores the state of a run that was interrupted, and a session.

    The SDK does not go on with the state object of a run that was cancelled in a call.
    """

    def __init__(self, library: Path, session: SQLiteSession) -> None:
        self._library, self._session, self._stored = library, session, ""
        self.restart()

    def restart(self) -> None:
        self._skills = Skills(self._library, scripts=UNBOXED)
        self._agent = self._skills.attach(make_agent(Counter()))

    async def ask(self) -> bool:
        return await self._run("count")

    async def decide(self, *, yes: bool) -> bool:
        state = await self._load()
        (state.approve if yes else state.reject)(state.get_interruptions()[0])
        return await self._run(state)

    async def retry(self) -> bool:
        return await self._run(await self._load())

    async def _load(self) -> Any:
        return await RunState.from_string(self._agent, self._stored)

    async def _run(self, given: Any) -> bool:
        result = await Runner.run(self._agent, given, session=self._skills.bind_session(self._session))
        if result.interruptions:
            self._stored = result.to_state().to_string()
        return bool(result.interruptions)


def test_approvals_count_for_one_call_in_any_order(open_store: OpenStore, library: Path) -> None:
    @asynccontextmanager
    async def open_host() -> AsyncIterator[OrdersHost]:
        yield OrdersHost(library, open_store(f"orders-{next(NUMBERS)}"))

    check_orders(library, open_host)


def test_changed_files_are_asked_about_again(library: Path, tmp_path: Path) -> None:
    model = script(call("run_skill_script", **COUNT), call("run_skill_script", "call-2", **COUNT), say())
    skills, agent, _ = make_counting(library, tmp_path, model)
    state = run(agent).to_state()
    shown = skills.find_request(state.get_interruptions()[0])
    (library / "count-words/scripts/count.py").write_text("print('something else')\n", encoding="utf-8")
    state.approve(state.get_interruptions()[0])
    result = run(agent, state)
    assert "nothing was done" in outputs(result)[0]
    (item,) = result.interruptions
    request = skills.find_request(item)
    assert shown is not None
    assert request is not None
    assert request.digest != shown.digest
    state = result.to_state()
    state.approve(item)
    assert "something else" in outputs(run(agent, state))[-1]


def test_approval_is_not_a_grant(library: Path, tmp_path: Path) -> None:
    model = script(call("run_skill_script", **COUNT), say(), call("run_skill_script", **COUNT))
    _, agent, trust = make_counting(library, tmp_path, model)
    state = run(agent).to_state()
    state.approve(state.get_interruptions()[0])
    run(agent, state)
    assert trust.grants() == ()
    assert len(run(agent).interruptions) == 1  # another conversation is asked


def test_always_approve_does_not_reach_what_nobody_was_shown(
    library: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = {**COUNT, "args": ["other"]}
    model = script(call("run_skill_script", **COUNT), call("run_skill_script", "call-2", **other), say())
    _, agent, _ = make_counting(library, tmp_path, model)
    state = run(agent).to_state()
    state.approve(state.get_interruptions()[0], always_approve=True)
    with caplog.at_level(logging.WARNING, "prowess"):
        result = run(agent, state)
    assert "2 words" in outputs(result)[0]
    assert "nothing was done" in outputs(result)[1]
    assert "has not asked about it" in caplog.text


def test_repeated_call_with_one_id_is_not_taken_for_one_that_was_shown(library: Path, tmp_path: Path) -> None:
    skills, agent, _ = make_counting(library, tmp_path, script())
    tool = next(tool for tool in skills.tools() if tool.name == "run_skill_script")
    arguments = json.dumps(COUNT)
    context = ToolContext(None, Usage(), tool.name, "call-2", arguments)
    approved = function_call(tool.name, COUNT, call_id="call-1")
    context.approve_tool(ToolApprovalItem(agent, approved), always_approve=True)
    for _ in range(2):
        assert "nothing was done" in asyncio.run(tool.on_invoke_tool(context, arguments))


def test_granted_skill_runs_once_and_interrupts_nothing(library: Path, tmp_path: Path) -> None:
    events: list[str] = []
    trust = prowess.Trust(tmp_path / "trust.json", policy="defer")
    trust.grant(prowess.scan(library)["count-words"])
    require_sandbox()
    skills = Skills(library, trust=trust, scripts=True, on_event=lambda event: events.append(event.kind))
    result = run(skills.attach(make_agent(script(call("run_skill_script", **COUNT), say()))))
    assert "2 words" in outputs(result)[0]
    assert events.count("ran") == 1


def test_looking_at_a_request_runs_nothing(library: Path, tmp_path: Path) -> None:
    """Also where the skill is granted, and the call itself would run at once."""
    marker = tmp_path / "this-ran"
    code = f"open({str(marker)!r}, 'w').close()\n"
    (library / "count-words/scripts/count.py").write_text(code, encoding="utf-8")
    trust = prowess.Trust(tmp_path / "trust.json", policy="defer")
    trust.grant(prowess.scan(library)["count-words"])
    skills = Skills(library, trust=trust, scripts=prowess.Scripts(sandbox="none"))
    request = skills.conversations.find_request("run_skill_script", COUNT)
    assert request is not None
    assert request.script == "scripts/count.py"
    assert not marker.exists()
    assert skills.conversations.find_request("load_skill", {"name": "greet"}) is None
    assert Skills(library).conversations.find_request("run_skill_script", COUNT) is None
    skills.conversations.begin().call("run_skill_script", COUNT)
    assert marker.exists()  # the call itself does run


# -- child agents ------------------------------------------------------------------------------------------------------


class Models(ModelProvider):
    """A provider that knows one model, ``small``."""

    def __init__(self, small: ScriptedModel) -> None:
        self.small = small

    def get_model(self, model_name: str | None) -> ScriptedModel:
        return {"small": self.small}[model_name or ""]


def test_fork_runs_as_a_child_agent(library: Path) -> None:
    usage = Usage(requests=1, input_tokens=10, output_tokens=1, total_tokens=11)
    child = ScriptedModel([call("look_up", word="tea"), say("The text is fine.")], default_usage=usage)
    model = script(call("run_skill", name="review", task="Tea is hot."), say("It is fine."))
    agent = Skills(library).attach(make_agent(model, tools=[look_up, delete, WebSearchTool()]))
    result = run(agent, run_config=RunConfig(model_provider=Models(child)))
    assert outputs(result) == ["The text is fine."]
    first = child.calls[0]
    names = [tool.name for tool in first.tools]
    assert "look_up" in names
    assert {"delete", "web_search", "run_skill"}.isdisjoint(names)
    assert "Tea is hot." in first.input[0]["content"]
    assert 'You carry out the skill "review"' in (first.system_instructions or "")
    assert "tea: found" in str(child.calls[1].input)
    assert "tea: found" not in str(model.calls)
    assert result.context_wrapper.usage.total_tokens == 22


def test_model_that_the_server_does_not_have_is_that_of_the_parent(library: Path) -> None:
    def fail(_request: ModelCall) -> Exception:
        url = httpx2.Request("POST", "http://localhost/responses")
        return NotFoundError("no such model", response=httpx2.Response(404, request=url), body=None)

    model = script(call("run_skill", name="review", task="Tea."), say("Fine."), say("It is fine."))
    config = RunConfig(model_provider=Models(script(ModelStep.respond(fail))))
    result = run(Skills(library).attach(make_agent(model)), run_config=config)
    assert (outputs(result), result.final_output) == (["Fine."], "It is fine.")
    late = script(call("look_up", word="tea"), ModelStep.respond(fail))
    model = script(call("run_skill", name="review", task="Tea."), say("Sorry."))
    agent = Skills(library).attach(make_agent(model, tools=[look_up]))
    result = run(agent, run_config=RunConfig(model_provider=Models(late)))
    assert "failed" in outputs(result)[0]  # what the child has done is not done twice


def test_unknown_model_of_a_fork_is_that_of_the_parent(library: Path) -> None:
    path = library / "review/SKILL.md"
    path.write_text(path.read_text(encoding="utf-8").replace("model: small", "model: gone"), encoding="utf-8")
    model = script(call("run_skill", name="review", task="Tea."), say("Fine."), say("It is fine."))
    result = run(Skills(library).attach(make_agent(model)), run_config=RunConfig(model_provider=Models(script())))
    assert (outputs(result), result.final_output) == (["Fine."], "It is fine.")


def test_child_may_call_only_the_part_of_a_tool_that_its_skill_allows(library: Path) -> None:
    @function_tool
    def bash(command: str) -> str:
        """Run a command."""
        return f"ran {command}"

    path = library / "review/SKILL.md"
    path.write_text(path.read_text(encoding="utf-8").replace("look_up\n---", "bash(git:*)\n---"), encoding="utf-8")
    child = script(call("bash", command="git log"), call("bash", "call-2", command="rm -r ."), say("Fine."))
    model = script(call("run_skill", name="review", task="Tea."), say())
    run(Skills(library).attach(make_agent(model, tools=[bash])), run_config=RunConfig(model_provider=Models(child)))
    answers = [item["output"] for item in child.calls[-1].input if item.get("type") == "function_call_output"]
    assert answers[0] == "ran git log"
    assert "does not allow this call of bash" in answers[1]


def test_script_in_a_child_waits_for_nobody_and_does_not_run(
    library: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    child = script(call("run_skill_script", **COUNT), say("I could not count."))
    model = script(call("run_skill", name="review", task="Tea."), say())
    _, agent, _ = make_counting(library, tmp_path, model)
    result = run(agent, run_config=RunConfig(model_provider=Models(child)))
    assert result.interruptions == []
    assert "nothing was done" in child.calls[1].input[-1]["output"]
    # A second call with the id of the first, as of models that number their calls anew, is not an approval either.
    tool = next(tool for tool in child.calls[0].tools if tool.name == "run_skill_script")
    again = ToolContext(None, Usage(), tool.name, "call-1", json.dumps(COUNT))
    assert "nothing was done" in asyncio.run(tool.on_invoke_tool(again, json.dumps(COUNT)))
    assert caplog.text == ""


def test_child_whose_tool_needs_approval_says_so(library: Path) -> None:
    @function_tool(name_override="look_up", needs_approval=True)
    def ask_first(word: str) -> str:
        """Look a word up."""
        raise AssertionError(word)

    child = script(call("look_up", word="tea"))
    model = script(call("run_skill", name="review", task="Tea."), say("Sorry."))
    agent = Skills(library).attach(make_agent(model, tools=[ask_first]))
    result = run(agent, run_config=RunConfig(model_provider=Models(child)))
    assert "it needs a person's approval of look_up" in outputs(result)[0]
    assert result.final_output == "Sorry."


def test_failure_of_a_child_is_a_result(library: Path) -> None:
    child = script(RuntimeError("secret"))
    model = script(call("run_skill", name="review", task="Tea."), say("Sorry."))
    result = run(Skills(library).attach(make_agent(model)), run_config=RunConfig(model_provider=Models(child)))
    assert "failed" in outputs(result)[0]
    assert "secret" not in outputs(result)[0]


def test_cancelling_reaches_the_child(library: Path) -> None:
    async def main() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def wait(_request: ModelCall) -> list[Any]:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return say()

        model = script(call("run_skill", name="review", task="Tea."), say())
        config = RunConfig(model_provider=Models(script(ModelStep.respond(wait))))
        task = asyncio.create_task(Runner.run(Skills(library).attach(make_agent(model)), "Hello", run_config=config))
        await asyncio.wait_for(begun.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(ended.wait(), 20)

    asyncio.run(main())


def test_cancelled_run_leaves_the_conversation_usable(library: Path) -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def wait(_request: ModelCall) -> list[Any]:
            begun.set()
            await asyncio.Event().wait()
            return say()

        steps = [call("load_skill", name="greet"), ModelStep.respond(wait)]
        model = script(*steps, call("read_skill_file", "call-2", name="greet", path="references/forms.md"), say("Hi."))
        skills = Skills(library)
        agent = skills.attach(make_agent(model), conversation=lambda context: context["user"])
        task = asyncio.create_task(Runner.run(agent, "Hello", context={"user": "ann"}))
        await asyncio.wait_for(begun.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert skills.session("ann").active_skills == ("greet",)
        result = await Runner.run(agent, "Hello?", context={"user": "ann"})
        assert "Good morning" in outputs(result)[0]
        assert active(skills, result) == ("greet",)

    asyncio.run(main())


# -- allowed-tools, pictures, events -----------------------------------------------------------------------------------


@pytest.mark.parametrize("enforce", [False, True])
def test_enforce_refuses_tools_outside_of_the_list(library: Path, enforce: bool) -> None:
    steps = [call("delete", "call-0", word="a"), call("load_skill", name="careful")]
    both = [*call("delete", "call-2", word="b"), *call("look_up", "call-3", word="b")]
    model = script(*steps, both, say())
    agent = make_agent(model, tools=[look_up, delete, WebSearchTool()])
    answers = outputs(run(Skills(library, enforce=enforce).attach(agent)))
    assert answers[0] == "a: deleted"  # no skill is active yet
    assert answers[3] == "b: found"
    refused = "This call of delete is not in the allowed-tools of the active skills (careful)."
    assert answers[2] == (refused if enforce else "b: deleted")
    assert "web_search" in [tool.name for tool in model.calls[0].tools]
    assert ("web_search" in [tool.name for tool in model.calls[-1].tools]) is not enforce
    assert delete.tool_input_guardrails is None


class Clerk(MCPServer):
    """A server in this process with one tool."""

    name = "clerk"

    async def connect(self) -> None: ...
    async def cleanup(self) -> None: ...

    async def list_tools(self, *_: object) -> list[McpTool]:
        return [McpTool(name="file_away", input_schema={"type": "object", "properties": {}})]

    async def call_tool(self, *_: object, **__: object) -> CallToolResult:
        return CallToolResult(content=[TextContent(text="filed")])

    async def list_prompts(self, *_: object) -> None: ...
    async def get_prompt(self, *_: object) -> None: ...


def test_enforce_holds_for_the_tools_of_mcp_servers(library: Path) -> None:
    steps = [call("file_away", "call-0"), call("load_skill", name="careful"), call("file_away", "call-2"), say()]
    agent = make_agent(script(*steps), mcp_servers=[Clerk()])
    before, _, after = outputs(run(Skills(library, enforce=True).attach(agent)))
    assert "filed" in str(before)
    assert "not in the allowed-tools" in after


def test_pictures_are_content_parts(library: Path) -> None:
    pdf = b"%PDF-1.4\n\xff\n%%EOF\n"
    (library / "picture/assets/page.pdf").write_bytes(pdf)
    steps = [call("read_skill_file", name="picture", path="assets/pixel.png")]
    steps += [call("read_skill_file", "call-2", name="picture", path="assets/page.pdf")]
    image, document = outputs(run(Skills(library).attach(make_agent(script(*steps, say())))))
    assert [part["type"] for part in image] == ["input_text", "input_image"]
    media = prowess.Toolset(prowess.Session(prowess.scan(library))).call(
        "read_skill_file", {"name": "picture", "path": "assets/pixel.png"}
    )
    assert image[1]["image_url"] == f"data:image/png;base64,{media.data['base64']}"
    assert PIXEL.startswith(b"\x89PNG")
    assert [part["type"] for part in document] == ["input_text", "input_file"]
    assert document[1]["filename"] == "page.pdf"


def test_spans_nest_in_the_framework_own(library: Path, recorder: Recorder) -> None:
    model = script(call("load_skill", name="greet"), call("run_skill", "call-2", name="review", task="Tea."), say())
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    listeners: list[Callable[[Any], None]] = [trace_events(), otel.trace_events(provider)]

    def record(event: prowess.Event) -> None:
        for listen in listeners:
            listen(event)

    skills = Skills(library, on_event=record)
    config = RunConfig(model_provider=Models(script(say("Fine."))))
    with provider.get_tracer("host").start_as_current_span("request") as request:
        run(skills.attach(make_agent(model)), run_config=config)
    by_id = {span.span_id: span for span in recorder.spans}
    named = {span.span_data.name: span for span in recorder.spans if hasattr(span.span_data, "name")}
    activated = named["skill activated"]
    assert by_id[activated.parent_id].span_data.export()["name"] == "load_skill"
    assert activated.span_data.data["gen_ai.skill.name"] == "greet"
    child = named["Skill: review"]
    parents = []
    while child is not None:
        parents.append(child.span_data.export().get("name"))
        child = by_id.get(child.parent_id)
    assert parents[0] == "Skill: review"
    assert "run_skill" in parents
    spans = {span.name: span for span in exporter.get_finished_spans()}
    parent = spans["skill activated"].parent
    assert parent is not None
    assert parent.span_id == request.get_span_context().span_id


def test_events_outside_of_a_trace_are_not_spans(library: Path, recorder: Recorder) -> None:
    Skills(library, on_event=trace_events()).session("ann").activate("greet")
    assert recorder.spans == []


# -- the library changes, and is large ---------------------------------------------------------------------------------


def test_reload_between_turns(library: Path) -> None:
    def write_skill(request: ModelCall) -> list[Any]:
        assert "new-one" not in request.system_instructions
        seen = live.catalog
        (library / "new-one").mkdir()
        text = "---\nname: new-one\ndescription: Is new.\n---\nThis is new.\n"
        (library / "new-one/SKILL.md").write_text(text, encoding="utf-8")
        live.wait_for_change(seen, 20)
        return call("load_skill", name="greet")

    with prowess.Live(prowess.watch(library)) as live:
        model = script(ModelStep.respond(write_skill), call("load_skill", "call-2", name="new-one"), say())
        result = run(Skills(live).attach(make_agent(model)))
    assert "<name>new-one</name>" in (model.calls[1].system_instructions or "")
    load = next(tool for tool in model.calls[1].tools if tool.name == "load_skill")
    assert "new-one" in load.params_json_schema["properties"]["name"]["enum"]
    assert "This is new." in outputs(result)[1]


def test_selection_appends_to_the_listing(open_store: OpenStore, tmp_path: Path) -> None:
    for number in range(40):
        for topic in ("poems", "invoices"):
            folder = tmp_path / "many" / f"{topic}-{number}"
            folder.mkdir(parents=True)
            text = f"---\nname: {topic}-{number}\ndescription: Reviews {topic} of kind {number}.\n---\nDo it.\n"
            (folder / "SKILL.md").write_text(text, encoding="utf-8")
    model = script(say(), say())
    skills = Skills(tmp_path / "many", selector=prowess.AutoSelector(budget=500))
    agent, session = skills.attach(make_agent(model)), skills.bind_session(open_store("ann"))
    run(agent, "Review my poems", session=session)
    run(agent, [{"role": "user", "content": [{"type": "input_text", "text": "Now the invoices"}]}], session=session)
    first, second = (names_in(each.system_instructions or "") for each in model.calls)
    assert any(name.startswith("poems") for name in first)
    assert second[: len(first)] == first
    assert any(name.startswith("invoices") for name in second[len(first) :])


def names_in(text: str) -> list[str]:
    return [part.partition("</name>")[0] for part in text.split("<name>")[1:]]


# -- the example and the page ------------------------------------------------------------------------------------------


def test_example_runs(library: Path) -> None:
    require_sandbox()
    asked: list[str] = []

    def answer_yes(question: str) -> str:
        asked.append(question)
        return "yes"

    model = script(call("load_skill", name="count-words"), call("run_skill_script", "call-2", **COUNT), say("Two."))
    answer = asyncio.run(example.main(model, library, answer_yes))
    assert answer == "Two."
    assert "scripts/count.py one two" in asked[0]
    assert "2 words" in str(model.calls[-1].input)


def test_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_sandbox()
    profile = {"name": "csv-report", "script": "scripts/profile.py", "args": ["${SKILL_DIR}/assets/sample.csv"]}
    load, profile_call = call("load_skill", name="csv-report"), call("run_skill_script", **profile)
    steps = [load, say("Three columns."), load, say("Three columns."), say("You are welcome."), load, say()]
    model = script(*steps, profile_call, say("Then I cannot say."), profile_call, say("Twelve rows."))
    names = run_framework_page("openai_agents", tmp_path, monkeypatch, {"model": model})
    model.assert_complete()
    offered = asyncio.run(names["bounded"].get_all_tools(RunContextWrapper(None)))
    assert "load_skill" in [tool.name for tool in offered]


def test_skills_whose_tools_are_missing_are_not_offered(library: Path) -> None:
    model = script(say())
    run(Skills(add_needy_skills(library)).attach(make_agent(model, tools=[look_up])))
    check_needy_skills(str(model.calls[0].system_instructions))


def test_each_user_has_the_skills_of_their_scope(library: Path) -> None:
    skills = Skills(library, scope=allow_by_user(RIGHTS, lambda ctx: ctx.context["user"]))
    systems = []
    for user, said in (("ann", "unknown skill 'picture'"), ("bob", "Look at assets/pixel.png.")):
        model = script(call("load_skill", name="picture"), say())
        agent = skills.attach(make_agent(model), conversation=lambda context: context["user"])
        assert said in outputs(run(agent, context={"user": user}))[0]
        systems.append(str(model.calls[0].system_instructions))
    check_listings(*systems)
