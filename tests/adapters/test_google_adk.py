"""The adapter for Google's Agent Development Kit, with a scripted model in ADK's own runner."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("google.adk", reason="NOT TESTED: google-adk is not installed; make test-adapters installs it")

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.telemetry import tracing
from google.adk.tools.skill_toolset import SkillToolset
from google.genai import types
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel, PrivateAttr

import prowess
from examples.frameworks.google_adk import main
from prowess.adapters import google_adk
from prowess.adapters.core import Conversation
from prowess.adapters.google_adk import Skills
from prowess.otel import trace_events
from tests.adapters.approval_orders import UNBOXED, check_orders
from tests.adapters.skill_library import (
    LISTED,
    PIXEL,
    RIGHTS,
    RUN_COUNT,
    add_fresh_skill,
    add_needy_skills,
    allow_by_user,
    check_listings,
    check_needy_skills,
    wait_until,
)
from tests.page_snippets import run_framework_page

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path

    from google.adk.events import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_tool import BaseTool


class ScriptedModel(BaseLlm):
    """A model that answers as its script says, one step for each request, and keeps the requests."""

    _steps: list[Any] = PrivateAttr(default_factory=list)
    _requests: list[LlmRequest] = PrivateAttr(default_factory=list)

    @classmethod
    def play(cls, *steps: object, name: str = "scripted") -> ScriptedModel:
        model = cls(model=name)
        model._steps.extend(steps)
        return model

    @property
    def requests(self) -> list[LlmRequest]:
        return self._requests

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: ARG002, FBT002 - ADK's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        contents = [content.model_copy(deep=True) for content in llm_request.contents]
        config = llm_request.config.model_copy(deep=True)
        self._requests.append(llm_request.model_copy(update={"contents": contents, "config": config}))
        step = self._steps.pop(0)
        if callable(step):
            step = step(llm_request)
        if asyncio.iscoroutine(step):
            step = await step
        parts = step if isinstance(step, list) else [types.Part(text=step) if isinstance(step, str) else step]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def call(name: str, arguments: dict[str, Any]) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=arguments))


def load(name: str) -> types.Part:
    return call("load_skill", {"name": name})


def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word} is known"


def send_mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


def say(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def make_agent(skills: Skills, model: BaseLlm, **more: Any) -> LlmAgent:
    tools = more.pop("tools", [])
    return LlmAgent(name="host", model=model, instruction="You help.", tools=[skills, *tools], **more)


def make_runner(agent: LlmAgent) -> InMemoryRunner:
    return InMemoryRunner(agent, app_name="app")


async def talk(runner: Runner, message: str | types.Content, user: str = "ann", session: str = "one") -> list[Event]:
    """Send one message in a session, which begins when it is not there; return the events of the run."""
    where = {"user_id": user, "session_id": session}
    if await runner.session_service.get_session(app_name="app", **where) is None:
        await runner.session_service.create_session(app_name="app", **where)
    content = say(message) if isinstance(message, str) else message
    return [event async for event in runner.run_async(**where, new_message=content)]


def answers(events: list[Event]) -> list[dict[str, Any]]:
    """Return what the calls of a run were answered with."""
    return [response.response for event in events for response in event.get_function_responses()]


def text_of(events: list[Event]) -> str:
    return "".join(part.text or "" for part in events[-1].content.parts)


def system_of(request: LlmRequest) -> str:
    return str(request.config.system_instruction)


def offered(request: LlmRequest) -> list[str]:
    return [each.name for tool in request.config.tools or [] for each in tool.function_declarations]


def find_confirmation(events: list[Event]) -> types.FunctionCall:
    """Return ADK's request for a confirmation."""
    calls = [each for event in events for each in event.get_function_calls()]
    (found,) = [each for each in calls if each.name == "adk_request_confirmation"]
    return found


def decide(confirmation: types.FunctionCall, *, confirmed: bool) -> types.Content:
    response = types.FunctionResponse(id=confirmation.id, name=confirmation.name, response={"confirmed": confirmed})
    return types.Content(role="user", parts=[types.Part(function_response=response)])


def key_of(user: str = "ann", session: str = "one") -> str:
    return json.dumps(["app", user, session, "host"])


def test_one_line_gives_an_agent_skills(library: Path) -> None:
    model = ScriptedModel.play(load("greet"), "Good morning.")
    runner = make_runner(LlmAgent(name="host", model=model, tools=[Skills(library)]))
    events = asyncio.run(talk(runner, "hello"))
    assert "Say hello as references/forms.md says." in answers(events)[0]["result"]
    assert text_of(events) == "Good morning."
    assert "Greets people." in system_of(model.requests[0])
    assert offered(model.requests[0]) == ["load_skill", "unload_skill", "read_skill_file", "run_skill"]


def test_listing_is_in_the_system_text_once_and_stays_the_same(library: Path) -> None:
    model = ScriptedModel.play(load("greet"), "Hello.", "Bye.")
    runner = make_runner(make_agent(Skills(library), model))

    async def talk_twice() -> None:
        await talk(runner, "hello")
        await talk(runner, "bye")

    asyncio.run(talk_twice())
    texts = [system_of(request) for request in model.requests]
    assert len(texts) == 3
    assert texts[0].count(LISTED) == 1
    assert texts[0].startswith("You help.")
    assert set(texts) == {texts[0]}


def test_each_conversation_has_its_own_session(library: Path) -> None:
    skills = Skills(library)
    model = ScriptedModel.play(load("greet"), "Hello.", "Bye.", "Bye.")
    runner = make_runner(make_agent(skills, model))

    async def talk_everywhere() -> None:
        await talk(runner, "hello", "ann", "one")
        await talk(runner, "bye", "ann", "two")
        await talk(runner, "bye", "bob", "one")

    asyncio.run(talk_everywhere())
    assert skills.session(key_of("ann", "one")).active_skills == ("greet",)
    assert skills.session(key_of("ann", "two")).active_skills == ()
    assert skills.session(key_of("bob", "one")).active_skills == ()
    assert len(skills.conversations) == 3


def test_ids_that_look_alike_when_joined_are_other_conversations(library: Path) -> None:
    skills = Skills(library)
    runner = make_runner(make_agent(skills, ScriptedModel.play("Hi.", "Hi.")))

    async def talk_twice() -> None:
        await talk(runner, "hello", "a", "b/c")
        await talk(runner, "hello", "a/b", "c")

    asyncio.run(talk_twice())
    assert len(skills.conversations) == 2


def test_two_users_at_once_share_nothing(library: Path) -> None:
    skills = Skills(library)
    barrier: asyncio.Barrier

    async def answer(request: LlmRequest) -> types.Part | str:
        await barrier.wait()  # both runs are at the same step
        is_ann = request.contents[0].parts[0].text == "I am ann"
        is_first = len(request.contents) == 1
        return load("greet" if is_ann else "careful") if is_first else "Done."

    model = ScriptedModel.play(*[answer] * 4)
    runner = make_runner(make_agent(skills, model))

    async def talk_at_once() -> tuple[list[Event], list[Event]]:
        nonlocal barrier
        barrier = asyncio.Barrier(2)
        return await asyncio.gather(talk(runner, "I am ann", "ann"), talk(runner, "I am bob", "bob"))

    ann, bob = asyncio.run(talk_at_once())
    assert 'name="greet"' in answers(ann)[0]["result"]
    assert 'name="careful"' in answers(bob)[0]["result"]
    assert skills.session(key_of("ann")).active_skills == ("greet",)
    assert skills.session(key_of("bob")).active_skills == ("careful",)


def test_session_that_was_deleted_does_not_come_back_with_its_id(library: Path) -> None:
    where = {"app_name": "app", "user_id": "ann", "session_id": "one"}
    skills = Skills(library, scripts=True)
    steps = ([load("greet"), call(*RUN_COUNT)], "As you wish.", [load("careful"), call(*RUN_COUNT)])
    runner = make_runner(make_agent(skills, ScriptedModel.play(*steps)))

    async def delete_and_begin_again() -> list[Event]:
        events = await talk(runner, "how long is: a b")
        await talk(runner, decide(find_confirmation(events), confirmed=False))
        await runner.session_service.delete_session(**where)
        return await talk(runner, "how long is: a b")

    again = asyncio.run(delete_and_begin_again())
    assert find_confirmation(again)  # the no was said in the session that was deleted
    assert skills.session(key_of()).active_skills == ("careful",)


def test_session_comes_back_with_the_checkpoint(library: Path, tmp_path: Path) -> None:
    def make_stored_runner(model: ScriptedModel) -> tuple[Runner, Skills]:
        skills = Skills(library)
        service = SqliteSessionService(str(tmp_path / "sessions.db"))
        return Runner(app_name="app", agent=make_agent(skills, model), session_service=service), skills

    first, second = ScriptedModel.play(load("greet"), "Hello."), ScriptedModel.play("Bye.")
    asyncio.run(talk(make_stored_runner(first)[0], "hello"))
    runner, skills = make_stored_runner(second)
    asyncio.run(talk(runner, "bye"))
    assert skills.session(key_of()).active_skills == ("greet",)
    assert system_of(second.requests[0]) == system_of(first.requests[0])


def test_parallel_calls_of_one_turn_are_all_part_of_the_checkpoint(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (library / "greet/SKILL.md").write_text("---\nname: greet\ndescription: Greets.\n---\nIt is !`echo noon`.\n")
    saves: list[str] = []
    is_second_saved = threading.Event()
    save = Conversation.save

    def save_and_tell(conversation: Conversation) -> str:
        saves.append(save(conversation))
        if len(saves) == 2:  # the first is that of the listing
            is_second_saved.set()
        return saves[-1]

    monkeypatch.setattr(Conversation, "save", save_and_tell)
    # The first call of the turn ends last, so that ADK merges an older state behind a newer one.
    trust = prowess.Trust(tmp_path / "trust.json", ask=lambda _request: is_second_saved.wait(10))
    service = SqliteSessionService(str(tmp_path / "sessions.db"))
    agent = make_agent(Skills(library, trust=trust), ScriptedModel.play([load("greet"), load("careful")], "Done."))
    asyncio.run(talk(Runner(app_name="app", agent=agent, session_service=service), "both"))
    stored = asyncio.run(service.get_session(app_name="app", user_id="ann", session_id="one"))
    assert len(saves) == 3
    assert stored.state["prowess:host"]["conversation"] == saves[-1]
    restored = Skills(library).conversations.open("x", saves[-1])
    assert set(restored.session.active_skills) == {"greet", "careful"}


def test_tools_work_in_plain_code(library: Path) -> None:
    model = ScriptedModel.play(call("read_skill_file", {"name": "greet", "path": "references/forms.md"}), "Hello.")
    runner = make_runner(make_agent(Skills(library), model))
    asyncio.run(runner.session_service.create_session(app_name="app", user_id="ann", session_id="one"))
    events = list(runner.run(user_id="ann", session_id="one", new_message=say("hello")))
    assert "Good morning before noon." in answers(events)[0]["result"]


def test_tools_work_in_asynchronous_code(library: Path) -> None:
    skills = Skills(library)
    model = ScriptedModel.play(call("read_skill_file", {"name": "greet", "path": "references/forms.md"}), "Hello.")
    agent = LlmAgent(name="host", model=model, instruction=skills.prompt(), tools=skills.tools())
    events = asyncio.run(talk(make_runner(agent), "hello"))
    assert "Good morning before noon." in answers(events)[0]["result"]
    assert offered(model.requests[0]) == [definition.name for definition in skills.list_definitions()]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (load("gone"), "unknown skill 'gone'"),
        (call("load_skill", {"name": 3}), "name"),
        (call("read_skill_file", {"name": "greet", "path": "missing.md"}), "missing.md"),
    ],
)
def test_errors_are_results(library: Path, part: types.Part, said: str) -> None:
    model = ScriptedModel.play(part, "I see.")
    events = asyncio.run(talk(make_runner(make_agent(Skills(library), model)), "hello"))
    assert said in answers(events)[0]["error"]
    assert text_of(events) == "I see."


def test_approval_shows_the_request_and_resuming_runs_it(library: Path, tmp_path: Path) -> None:
    model = ScriptedModel.play(call(*RUN_COUNT), "Two words.")
    service = SqliteSessionService(str(tmp_path / "sessions.db"))

    def make_new_runner() -> Runner:  # as another process makes it, when the person has decided
        return Runner(app_name="app", agent=make_agent(Skills(library, scripts=True), model), session_service=service)

    events = asyncio.run(talk(make_new_runner(), "how long is: a b"))
    confirmation = find_confirmation(events)
    shown = confirmation.args["toolConfirmation"]
    assert "runs the script: scripts/count.py a b" in shown["hint"]
    assert shown["payload"]["script"] == "scripts/count.py"
    assert shown["payload"]["digest"] == prowess.scan(library)["count-words"].digest()
    assert len(model.requests) == 1
    events = asyncio.run(talk(make_new_runner(), decide(confirmation, confirmed=True)))
    assert "2 words" in answers(events)[0]["result"]
    assert text_of(events) == "Two words."
    assert system_of(model.requests[0]) == system_of(model.requests[1])


def test_approval_beside_other_calls_of_one_turn(library: Path) -> None:
    skills = Skills(library, scripts=True)
    model = ScriptedModel.play([load("greet"), call(*RUN_COUNT)], "Done.")
    runner = make_runner(make_agent(skills, model))

    async def approve() -> list[Event]:
        events = await talk(runner, "both")
        assert skills.session(key_of()).active_skills == ("greet",)
        return await talk(runner, decide(find_confirmation(events), confirmed=True))

    assert text_of(asyncio.run(approve())) == "Done."
    said = str(model.requests[1].contents)
    assert "Say hello" in said
    assert "2 words" in said


def test_refused_call_does_not_run(library: Path) -> None:
    model = ScriptedModel.play(call(*RUN_COUNT), "As you wish.")
    runner = make_runner(make_agent(Skills(library, scripts=True), model))

    async def refuse() -> list[Event]:
        events = await talk(runner, "how long is: a b")
        return await talk(runner, decide(find_confirmation(events), confirmed=False))

    events = asyncio.run(refuse())
    assert "said no" in answers(events)[0]["error"]
    assert "2 words" not in str(model.requests[-1].contents)
    assert text_of(events) == "As you wish."


def test_changed_files_are_asked_about_again(library: Path) -> None:
    script = library / "count-words/scripts/count.py"
    model = ScriptedModel.play(call(*RUN_COUNT), call(*RUN_COUNT), "Done.")
    runner = make_runner(make_agent(Skills(library, scripts=True), model))

    async def change_and_confirm() -> tuple[list[Event], list[Event]]:
        events = await talk(runner, "how long is: a b")
        script.write_text("print('other')\n")
        again = await talk(runner, decide(find_confirmation(events), confirmed=True))
        return again, await talk(runner, decide(find_confirmation(again), confirmed=True))

    again, after = asyncio.run(change_and_confirm())
    assert "nothing was done" in answers(again)[0]["error"]
    assert "other" not in str(answers(again))
    digest = find_confirmation(again).args["toolConfirmation"]["payload"]["digest"]
    assert digest == prowess.scan(library)["count-words"].digest()
    assert "other" in answers(after)[0]["result"]


def test_repeated_answer_to_an_old_request_does_not_count(library: Path) -> None:
    model = ScriptedModel.play(call(*RUN_COUNT), call(*RUN_COUNT), "I wait.")
    runner = make_runner(make_agent(Skills(library, scripts=True), model))

    async def confirm_twice() -> list[Event]:
        first = find_confirmation(await talk(runner, "how long is: a b"))
        (library / "count-words/scripts/count.py").write_text("print('other')\n")
        await talk(runner, decide(first, confirmed=True))
        return await talk(runner, decide(first, confirmed=True))

    assert answers(asyncio.run(confirm_twice())) == []


class OrdersHost:
    """A host whose sessions are in a database, which all of its workers share."""

    def __init__(self, library: Path, database: Path) -> None:
        self._library, self._database = library, database
        self._confirmation: Any = None
        self.restart()

    def restart(self) -> None:
        def answer(request: LlmRequest) -> object:
            said = [part.text for part in request.contents[-1].parts if part.text]
            return call(*RUN_COUNT) if said == ["count"] else "Done."

        agent = make_agent(Skills(self._library, scripts=UNBOXED), ScriptedModel.play(*[answer] * 100))
        sessions = SqliteSessionService(str(self._database))
        self._runner = Runner(app_name="app", agent=agent, session_service=sessions)

    async def ask(self) -> bool:
        return await self._run("count")

    async def decide(self, *, yes: bool) -> bool:
        return await self._run(decide(self._confirmation, confirmed=yes))

    async def retry(self) -> bool:
        await self._run("go on")
        return True  # a person can still answer

    async def _run(self, message: Any) -> bool:
        events = await talk(self._runner, message)
        calls = [each for event in events for each in event.get_function_calls()]
        asked = [each for each in calls if each.name == "adk_request_confirmation"]
        self._confirmation = asked[0] if asked else self._confirmation
        return bool(asked)


def test_approvals_count_for_one_call_in_any_order(library: Path, tmp_path: Path) -> None:
    numbers = count()

    @asynccontextmanager
    async def open_host() -> AsyncIterator[OrdersHost]:
        yield OrdersHost(library, tmp_path / f"{next(numbers)}.db")

    check_orders(library, open_host)


def test_approval_is_not_a_grant(library: Path, tmp_path: Path) -> None:
    trust = prowess.Trust(tmp_path / "trust.json", policy="defer")
    model = ScriptedModel.play(call(*RUN_COUNT), "Two.", call(*RUN_COUNT))
    runner = make_runner(make_agent(Skills(library, scripts=True, trust=trust), model))

    async def approve() -> list[Event]:
        events = await talk(runner, "how long is: a b")
        await talk(runner, decide(find_confirmation(events), confirmed=True))
        return await talk(runner, "how long is: a b", "bob")

    assert find_confirmation(asyncio.run(approve()))  # another user is asked too
    assert trust.grants() == ()


class SmallModel(ScriptedModel):
    """The model that the skill ``review`` names."""

    @classmethod
    def supported_models(cls) -> list[str]:
        return ["small"]

    def __init__(self, **fields: object) -> None:
        super().__init__(**fields)
        MADE.append(self)
        self._steps.extend(CHILD_STEPS)


MADE: list[SmallModel] = []
CHILD_STEPS: list[Any] = []


@pytest.fixture
def child_steps() -> list[Any]:
    """The script of the child's model, which ADK itself makes by its name."""
    LLMRegistry.register(SmallModel)
    MADE.clear()
    CHILD_STEPS.clear()
    return CHILD_STEPS


def test_fork_runs_as_a_child_agent(library: Path, child_steps: list[Any]) -> None:
    child_steps += [call("look_up", {"word": "tea"}), call("send_mail", {"to": "all"}), "The text is fine."]
    model = ScriptedModel.play(call("run_skill", {"name": "review", "task": "Tea is {hot}."}), "Reviewed.")
    asked: list[str] = []

    def note_call(tool: BaseTool, **_more: object) -> None:
        asked.append(tool.name)

    agent = make_agent(Skills(library), model, tools=[look_up, send_mail], before_tool_callback=note_call)
    events = asyncio.run(talk(make_runner(agent), "review"))
    assert answers(events) == [{"result": "The text is fine."}]
    (child,) = MADE
    assert "Tea is {hot}." in child.requests[0].contents[0].parts[0].text
    assert "carry out the skill" in system_of(child.requests[0])
    assert "You help." not in system_of(child.requests[0])
    assert "look_up" in offered(child.requests[0])
    assert "send_mail" not in offered(child.requests[0])
    assert "run_skill" not in offered(child.requests[0])
    said = [part.function_response.response for part in child.requests[2].contents[-3].parts]
    assert said == [{"result": "tea is known"}]
    assert asked == ["run_skill", "look_up"]  # the host's own callbacks hold in the child as well


def test_child_is_judged_call_by_call(library: Path) -> None:
    (library / "review/SKILL.md").write_text(
        "---\nname: review\ndescription: Reviews.\ncontext: fork\nallowed-tools: bash(git:*)\n---\nReview.\n"
    )
    ran: list[str] = []

    def bash(command: str) -> str:
        """Run a command."""
        ran.append(command)
        return "ok"

    model = ScriptedModel.play(
        call("run_skill", {"name": "review", "task": "x"}),
        call("bash", {"command": "rm -r ."}),
        call("bash", {"command": "git log"}),
        "Fine.",
        "Reviewed.",
    )
    events = asyncio.run(talk(make_runner(make_agent(Skills(library), model, tools=[bash])), "review"))
    assert answers(events) == [{"result": "Fine."}]
    assert ran == ["git log"]
    assert len(model.requests) == 5  # a skill without a model runs with the parent's


def test_script_of_a_child_that_needs_approval_does_not_run(library: Path, child_steps: list[Any]) -> None:
    child_steps += [call(*RUN_COUNT), "I could not count."]
    model = ScriptedModel.play(call("run_skill", {"name": "review", "task": "x"}), "Reviewed.")
    events = asyncio.run(talk(make_runner(make_agent(Skills(library, scripts=True), model)), "review"))
    assert answers(events) == [{"result": "I could not count."}]
    assert "nothing was done" in str(MADE[0].requests[1].contents[-1])


def test_cancelling_reaches_the_child(library: Path, child_steps: list[Any]) -> None:
    async def cancel() -> bool:
        began, ended = asyncio.Event(), asyncio.Event()

        async def hang(_request: LlmRequest) -> str:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return ""

        child_steps.append(hang)
        model = ScriptedModel.play(call("run_skill", {"name": "review", "task": "x"}))
        run = asyncio.create_task(talk(make_runner(make_agent(Skills(library), model)), "review"))
        await wait_until(began, run)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return ended.is_set()

    assert asyncio.run(cancel())


def test_cancelled_run_leaves_the_conversation_usable(library: Path) -> None:
    async def cancel_and_go_on() -> list[Event]:
        began = asyncio.Event()

        async def hang(_request: LlmRequest) -> str:
            began.set()
            await asyncio.Event().wait()
            return ""

        model = ScriptedModel.play(load("greet"), hang, load("careful"), "Done.")
        runner = make_runner(make_agent(skills, model))
        run = asyncio.create_task(talk(runner, "hello"))
        await wait_until(began, run)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return await talk(runner, "go on")

    skills = Skills(library)
    events = asyncio.run(cancel_and_go_on())
    assert 'name="careful"' in answers(events)[0]["result"]
    assert set(skills.session(key_of()).active_skills) == {"greet", "careful"}


def test_enforce_refuses_tools_outside_of_the_list(library: Path) -> None:
    def run(skills: Skills) -> list[dict[str, Any]]:
        steps = [load("careful"), call("send_mail", {"to": "all"}), call("look_up", {"word": "tea"}), "Done."]
        agent = make_agent(
            skills,
            ScriptedModel.play(*steps),
            tools=[look_up, send_mail],
            before_tool_callback=skills.check_tool,
        )
        return answers(asyncio.run(talk(make_runner(agent), "hello")))

    _, mail, word = run(Skills(library, enforce=True))
    assert "not in the allowed-tools of the active skills (careful)" in mail["error"]
    assert word == {"result": "tea is known"}
    _, mail, word = run(Skills(library))
    assert mail == {"result": "sent to all"}


def test_enforce_leaves_the_agent_its_answer(library: Path) -> None:
    class Verdict(BaseModel):
        is_fine: bool

    skills = Skills(library, enforce=True)
    model = ScriptedModel.play(load("careful"), call("set_model_response", {"is_fine": True}))
    callback = skills.check_tool
    agent = make_agent(skills, model, tools=[look_up], output_schema=Verdict, before_tool_callback=callback)
    assert json.loads(text_of(asyncio.run(talk(make_runner(agent), "hello")))) == {"is_fine": True}


def test_enforce_without_its_callback_is_a_mistake_that_is_told(library: Path) -> None:
    runner = make_runner(make_agent(Skills(library, enforce=True), ScriptedModel.play("Hi.")))
    with pytest.raises(prowess.SourceError, match=r"before_tool_callback=skills\.check_tool on the agent 'host'"):
        asyncio.run(talk(runner, "hello"))


def test_pictures_are_content_parts(library: Path) -> None:
    model = ScriptedModel.play(call("read_skill_file", {"name": "picture", "path": "assets/pixel.png"}), "A pixel.")
    asyncio.run(talk(make_runner(make_agent(Skills(library), model)), "show it"))
    (part,) = model.requests[1].contents[-1].parts
    (blob,) = part.function_response.parts
    assert (blob.inline_data.mime_type, blob.inline_data.data) == ("image/png", PIXEL)
    assert list(part.function_response.response) == ["result"]


def test_spans_nest_in_the_framework_own(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    # ADK's tracer is that of the process, which can be set only once; this is the tracer that it hands its spans to.
    monkeypatch.setattr(tracing.tracer, "_real_tracer", provider.get_tracer("adk"))
    skills = Skills(library, on_event=trace_events(provider))
    asyncio.run(talk(make_runner(make_agent(skills, ScriptedModel.play(load("greet"), "Hi."))), "hello"))
    spans = exporter.get_finished_spans()
    (ours,) = [span for span in spans if span.name == "skill activated"]
    (theirs,) = [span for span in spans if span.name == "execute_tool load_skill"]
    assert ours.parent == theirs.context


def test_reload_between_turns(library: Path) -> None:
    with prowess.live(library, every=0.02) as live:
        model = ScriptedModel.play("Hi.", load("fresh"), "Done.")
        runner = make_runner(make_agent(Skills(live), model))

        async def talk_twice() -> list[Event]:
            await talk(runner, "hello")
            add_fresh_skill(library, live)
            return await talk(runner, "something new")

        events = asyncio.run(talk_twice())
    assert "Is new." not in system_of(model.requests[0])
    assert "Is new." in system_of(model.requests[1])
    assert "Be new." in answers(events)[0]["result"]


def test_selection_appends_to_the_listing(tmp_path: Path) -> None:
    for number in range(60):
        topic = "tea kettles" if number % 2 else "sailing boats"
        folder = tmp_path / f"{topic.split(maxsplit=1)[0]}-{number}"
        folder.mkdir()
        (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: All about {topic}.\n---\nDo.\n")
    model = ScriptedModel.play("Yes.", "Yes.", "Yes.")
    service_path = str(tmp_path / "sessions.db")

    async def talk_twice() -> None:
        for message in ("kettles for tea", "boats for sailing"):  # each in a new object, as after a restart
            agent = make_agent(Skills(tmp_path, budget=500), model)
            runner = Runner(app_name="app", agent=agent, session_service=SqliteSessionService(service_path))
            await talk(runner, message)

    asyncio.run(talk_twice())
    first, second = (system_of(request) for request in model.requests)
    kept = first[: first.index("</available_skills>")]
    assert "tea kettles" in kept
    assert "sailing boats" not in kept
    assert second.startswith(kept.rstrip())
    assert "sailing boats" in second


def test_registry_feeds_the_framework_own_skill_tools(library: Path) -> None:
    skills = Skills(library, allowed=["greet", "count-words"])
    model = ScriptedModel.play(
        call("search_skills", {"query": "hello"}),
        call("load_skill", {"skill_name": "greet"}),
        call("load_skill_resource", {"skill_name": "greet", "file_path": "references/forms.md"}),
        call("load_skill", {"skill_name": "careful"}),
        "Done.",
    )
    agent = LlmAgent(name="host", model=model, tools=[SkillToolset(registry=google_adk.registry(skills))])
    events = asyncio.run(talk(make_runner(agent), "hello"))
    found, loaded, file, refused = answers(events)
    assert [head["name"] for head in found["result"]] == ["greet"]
    assert loaded["instructions"].strip() == "Say hello as references/forms.md says."
    assert file["content"] == "Good morning before noon.\n"
    assert "careful" in refused["error"]


def test_skill_that_the_framework_refuses_hides_no_other(library: Path) -> None:
    (library / "greet/SKILL.md").write_text(
        f"---\nname: greet\ndescription: Says hello.{'x' * 1100}\n---\nSay hello.\n"
    )
    (library / "careful/SKILL.md").write_text("---\nname: careful\ndescription: Says hello too.\n---\nDo.\n")
    registry = google_adk.registry(Skills(library))
    assert [head.name for head in asyncio.run(registry.search_skills(query="hello"))] == ["careful"]
    with pytest.raises(prowess.SkillError, match=r"ADK does not take the skill 'greet': .*1024"):
        asyncio.run(registry.get_skill(name="greet"))


def test_example_runs() -> None:
    model = ScriptedModel.play(load("csv-report"), "A table.")
    assert asyncio.run(main(model)) == "A table."
    assert "csv-report" in system_of(model.requests[0])


def test_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: LlmRequest) -> types.Part | str:
        last = request.contents[-1].parts[0]
        if last.text == "What is in orders.csv?":
            return load("csv-report")
        if last.text == "How large is notes.txt?":
            return call("run_skill_script", {"name": "folder-report", "script": "scripts/sizes.py", "args": []})
        return "A table."

    names = run_framework_page("google_adk", tmp_path, monkeypatch, {"model": ScriptedModel.play(*[answer] * 20)})
    assert "exit status 0" in names["events"][0].get_function_responses()[0].response["result"]


def test_skills_whose_tools_are_missing_are_not_offered(library: Path) -> None:
    model = ScriptedModel.play("Done.")
    agent = make_agent(Skills(add_needy_skills(library)), model, tools=[look_up])
    asyncio.run(talk(make_runner(agent), "hello"))
    check_needy_skills(system_of(model.requests[0]))


def test_each_user_has_the_skills_of_their_scope(library: Path) -> None:
    skills = Skills(library, scope=allow_by_user(RIGHTS, lambda context: context.user_id))
    model = ScriptedModel.play(load("picture"), "one", load("picture"), "two")
    runner = make_runner(make_agent(skills, model))

    async def run() -> list[Any]:
        return [answers(await talk(runner, "hello", user))[0] for user in ("ann", "bob")]

    ann, bob = asyncio.run(run())
    check_listings(system_of(model.requests[0]), system_of(model.requests[2]))
    assert "unknown skill 'picture'" in ann["error"]
    assert "Look at assets/pixel.png." in bob["result"]


def test_two_skills_of_one_agent_are_refused(library: Path) -> None:
    agent = make_agent(Skills(library), ScriptedModel.play("never"), tools=[Skills(library)])
    with pytest.raises(prowess.SourceError, match="an agent has one Skills"):
        asyncio.run(talk(make_runner(agent), "hello"))
