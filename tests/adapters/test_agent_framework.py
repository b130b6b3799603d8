"""The adapter for Microsoft's Agent Framework, with a scripted chat client in the framework's own layers."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip(
    "agent_framework", reason="NOT TESTED: agent-framework-core is not installed; make test-adapters installs it"
)

from agent_framework import (
    Agent,
    AgentResponse,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationContext,
    FunctionInvocationLayer,
    Message,
    SkillsProvider,
    function_middleware,
    tool,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import prowess
from examples.frameworks.agent_framework import main
from prowess.adapters import agent_framework
from prowess.adapters.agent_framework import Skills
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
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path


class Request:
    """What the model was sent: the system text, the messages, and the tools."""

    def __init__(self, messages: Sequence[Message], options: dict[str, Any]) -> None:
        self.messages = [Message.from_dict(message.to_dict()) for message in messages]
        self.system = str(options.get("instructions", ""))
        self.tools = {each.name: each for each in options.get("tools") or []}

    @property
    def results(self) -> list[Content]:
        return [each for message in self.messages for each in message.contents if each.type == "function_result"]


class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A chat client whose model answers as its script says, one step for each request, and which keeps the requests."""

    def __init__(self, *steps: object) -> None:
        super().__init__()
        self.steps = list(steps)
        self.requests: list[Request] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: dict[str, Any], **_more: object
    ) -> Any:
        request = Request(messages, options)
        self.requests.append(request)

        async def answer() -> list[Content]:
            step = self.steps.pop(0)
            if callable(step):
                step = step(request)
            if asyncio.iscoroutine(step):
                step = await step
            contents = step if isinstance(step, list) else [step]
            return [Content.from_text(each) if isinstance(each, str) else each for each in contents]

        async def respond() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", await answer())])

        async def respond_in_parts() -> Any:
            yield ChatResponseUpdate(role="assistant", contents=await answer())

        return self._build_response_stream(respond_in_parts()) if stream else respond()


def call(name: str, arguments: dict[str, Any], call_id: str = "call_1") -> Content:
    """Return a call of a tool; the ids repeat, as those of some providers do."""
    return Content.from_function_call(call_id=call_id, name=name, arguments=json.dumps(arguments))


def load(name: str, call_id: str = "call_1") -> Content:
    return call("load_skill", {"name": name}, call_id)


@tool(approval_mode="never_require")
def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word} is known"


@tool(approval_mode="never_require")
def send_mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


def make_agent(skills: Skills, client: ScriptedClient, **more: Any) -> Agent:
    return Agent(client, "You help.", context_providers=[skills], **more)


def results(response: AgentResponse) -> list[str]:
    """Return what the calls of a run were answered with."""
    contents = [content for message in response.messages for content in message.contents]
    return [str(content.result) for content in contents if content.type == "function_result"]


def find_request(response: AgentResponse) -> Content:
    """Return the framework's request for approval."""
    (found,) = response.user_input_requests
    return found


def decide(request: Content, *, approved: bool) -> Message:
    return Message("user", [request.to_function_approval_response(approved)])


def test_one_line_gives_an_agent_skills(library: Path) -> None:
    client = ScriptedClient(load("greet"), "Good morning.")
    response = asyncio.run(Agent(client, context_providers=[Skills(library)]).run("hello"))
    assert "Say hello as references/forms.md says." in results(response)[0]
    assert response.text == "Good morning."
    assert "Greets people." in client.requests[0].system
    assert list(client.requests[0].tools) == ["load_skill", "unload_skill", "read_skill_file", "run_skill"]
    schema = client.requests[0].tools["load_skill"].to_json_schema_spec()["function"]["parameters"]
    assert schema["required"] == ["name"]
    assert "greet" in schema["properties"]["name"]["enum"]


def test_streamed_run_has_skills(library: Path) -> None:
    client = ScriptedClient(load("greet"), "Good morning.")
    agent = Agent(client, context_providers=[Skills(library)])

    async def stream() -> str:
        return "".join([update.text async for update in agent.run("hello", stream=True)])

    assert asyncio.run(stream()) == "Good morning."
    assert "Say hello" in str(client.requests[1].results[0].result)


def test_listing_is_in_the_system_text_once_and_stays_the_same(library: Path) -> None:
    client = ScriptedClient(load("greet"), "Hello.", "Bye.")
    agent = make_agent(Skills(library), client)
    session = agent.create_session()

    async def talk_twice() -> None:
        await agent.run("hello", session=session)
        await agent.run("bye", session=session)

    asyncio.run(talk_twice())
    texts = [request.system for request in client.requests]
    assert len(texts) == 3
    assert texts[0].count(LISTED) == 1
    assert texts[0].startswith("You help.")
    assert set(texts) == {texts[0]}
    assert LISTED not in str([message.to_dict() for message in client.requests[2].messages])


def test_each_conversation_has_its_own_session(library: Path) -> None:
    skills = Skills(library)
    agent = make_agent(skills, ScriptedClient(load("greet"), "Hello.", "Bye.", load("careful"), "Hi."))
    one, two = agent.create_session(), agent.create_session()

    async def talk_everywhere() -> None:
        await agent.run("hello", session=one)
        await agent.run("bye", session=two)
        await agent.run("hello")  # without a session, a run is a conversation of its own

    asyncio.run(talk_everywhere())
    assert skills.session(one.session_id).active_skills == ("greet",)
    assert skills.session(two.session_id).active_skills == ()
    assert len(skills.conversations) == 3


def test_two_users_at_once_share_nothing(library: Path) -> None:
    skills = Skills(library)
    barrier: asyncio.Barrier

    async def answer(request: Request) -> Content | str:
        await barrier.wait()  # both runs are at the same step
        is_ann = request.messages[0].text == "I am ann"
        return "Done." if request.results else load("greet" if is_ann else "careful")

    agent = make_agent(skills, ScriptedClient(*[answer] * 4))
    sessions = [AgentSession(session_id="ann"), AgentSession(session_id="bob")]

    async def talk_at_once() -> list[AgentResponse]:
        nonlocal barrier
        barrier = asyncio.Barrier(2)
        return list(await asyncio.gather(*(agent.run(f"I am {each.session_id}", session=each) for each in sessions)))

    ann, bob = asyncio.run(talk_at_once())
    assert 'name="greet"' in results(ann)[0]
    assert 'name="careful"' in results(bob)[0]
    assert skills.session("ann").active_skills == ("greet",)
    assert skills.session("bob").active_skills == ("careful",)


def test_session_comes_back_with_the_checkpoint(library: Path) -> None:
    first, second = ScriptedClient(load("greet"), "Hello."), ScriptedClient("Bye.")
    session = AgentSession(session_id="one")
    asyncio.run(make_agent(Skills(library), first).run("hello", session=session))
    stored = json.dumps(session.to_dict())
    skills = Skills(library)  # as in another process
    restored = AgentSession.from_dict(json.loads(stored))
    asyncio.run(make_agent(skills, second).run("bye", session=restored))
    assert skills.session("one").active_skills == ("greet",)
    assert second.requests[0].system == first.requests[0].system


def test_tools_work_in_plain_code(library: Path) -> None:
    client = ScriptedClient(call("read_skill_file", {"name": "greet", "path": "references/forms.md"}), "Hello.")
    response = asyncio.run(make_agent(Skills(library), client).run("hello"))
    assert "Good morning before noon." in results(response)[0]


def test_tools_work_in_asynchronous_code(library: Path) -> None:
    skills = Skills(library)
    client = ScriptedClient(
        load("greet"), call("read_skill_file", {"name": "greet", "path": "references/forms.md"}), "Hello."
    )
    agent = Agent(client, skills.prompt(), tools=skills.tools())
    session = agent.create_session()

    async def talk() -> AgentResponse:
        return await agent.run("hello", session=session)

    assert "Good morning before noon." in results(asyncio.run(talk()))[1]
    assert skills.session(session.session_id).active_skills == ("greet",)
    assert "run_skill" not in client.requests[0].tools


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (load("gone"), "unknown skill 'gone'"),
        (call("load_skill", {"name": 3}), "name"),
        (call("load_skill", {}), "name"),
        (call("read_skill_file", {"name": "greet", "path": "missing.md"}), "missing.md"),
    ],
)
def test_errors_are_results(library: Path, step: Content, said: str) -> None:
    response = asyncio.run(make_agent(Skills(library), ScriptedClient(step, "I see.")).run("hello"))
    assert said in results(response)[0]
    assert response.text == "I see."


def test_approval_shows_the_request_and_resuming_runs_it(library: Path) -> None:
    client = ScriptedClient(call(*RUN_COUNT), "Two words.")
    session = AgentSession(session_id="one")
    response = asyncio.run(make_agent(Skills(library, scripts=True), client).run("how long is: a b", session=session))
    request = find_request(response)
    shown = request.additional_properties
    assert "runs the script: scripts/count.py a b" in shown["reason"]
    assert shown["trust_request"]["script"] == "scripts/count.py"
    assert shown["trust_request"]["digest"] == prowess.scan(library)["count-words"].digest()
    assert len(client.requests) == 1
    # The person decides later, in another process.
    session = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    agent = make_agent(Skills(library, scripts=True), client)
    response = asyncio.run(agent.run(decide(request, approved=True), session=session))
    assert "2 words" in results(response)[0]
    assert response.text == "Two words."
    assert client.requests[0].system == client.requests[1].system


def test_approval_beside_other_calls_of_one_turn(library: Path) -> None:
    client = ScriptedClient([load("greet", "call_1"), call(*RUN_COUNT, "call_2")], "Done.")
    skills = Skills(library, scripts=True)
    agent, session = make_agent(skills, client), AgentSession(session_id="one")

    async def approve() -> AgentResponse:
        response = await agent.run("both", session=session)
        assert skills.session("one").active_skills == ("greet",)
        return await agent.run(decide(find_request(response), approved=True), session=session)

    response = asyncio.run(approve())
    assert response.text == "Done."
    answered = [str(result.result) for result in client.requests[1].results]
    assert len(answered) == 2
    assert "Say hello" in "".join(answered)
    assert "2 words" in "".join(answered)


def test_new_session_with_the_id_of_a_former_one_begins_anew(library: Path) -> None:
    skills = Skills(library, scripts=True)
    client = ScriptedClient([load("greet"), call(*RUN_COUNT, "call_2")], "Fine.", call(*RUN_COUNT))
    agent, former = make_agent(skills, client), AgentSession(session_id="one")

    async def begin_again() -> AgentResponse:
        response = await agent.run("how long is: a b", session=former)
        await agent.run(decide(find_request(response), approved=False), session=former)
        return await agent.run("how long is: a b", session=AgentSession(session_id="one"))

    assert find_request(asyncio.run(begin_again()))  # the no was said in another conversation
    assert skills.session("one").active_skills == ()


def test_refused_call_does_not_run(library: Path) -> None:
    client = ScriptedClient(call(*RUN_COUNT), call(*RUN_COUNT), "As you wish.")
    agent, session = make_agent(Skills(library, scripts=True), client), AgentSession(session_id="one")

    async def refuse() -> AgentResponse:
        response = await agent.run("how long is: a b", session=session)
        return await agent.run(decide(find_request(response), approved=False), session=session)

    response = asyncio.run(refuse())
    first, second = results(response)
    assert "rejected" in first
    assert "said no" in second  # the model tries once more, and nobody is asked a second time
    assert "2 words" not in first + second
    assert response.text == "As you wish."


def test_changed_files_are_asked_about_again(library: Path) -> None:
    script = library / "count-words/scripts/count.py"
    client = ScriptedClient(call(*RUN_COUNT), "Done.")
    session = AgentSession(session_id="one")

    def run(message: str | Message) -> AgentResponse:  # each time as in another process
        nonlocal session
        session = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
        return asyncio.run(make_agent(Skills(library, scripts=True), client).run(message, session=session))

    first = find_request(run("how long is: a b"))
    script.write_text("print('other')\n")
    again = run(decide(first, approved=True))
    assert results(again) == []
    second = find_request(again)
    assert second.additional_properties["trust_request"]["digest"] == prowess.scan(library)["count-words"].digest()
    after = run(decide(second, approved=True))
    assert "other" in results(after)[0]
    assert after.text == "Done."


def test_repeated_answer_to_an_old_request_does_not_count(library: Path) -> None:
    client = ScriptedClient(call(*RUN_COUNT), "I wait.")
    agent, session = make_agent(Skills(library, scripts=True), client), AgentSession(session_id="one")

    async def approve_twice() -> AgentResponse:
        first = find_request(await agent.run("how long is: a b", session=session))
        (library / "count-words/scripts/count.py").write_text("print('other')\n")
        await agent.run(decide(first, approved=True), session=session)
        return await agent.run(decide(first, approved=True), session=session)

    response = asyncio.run(approve_twice())
    assert results(response) == []
    assert all("other" not in str(request.results) for request in client.requests)


class OrdersHost:
    """A host that stores the session after each run; ``is_lost``: a run that is cancelled stores nothing."""

    def __init__(self, library: Path, *, is_lost: bool) -> None:
        self._library, self._is_lost = library, is_lost
        self._stored, self._request = AgentSession(session_id="one").to_dict(), None
        self.restart()

    def restart(self) -> None:
        def answer(request: Request) -> object:
            last = request.messages[-1].contents[-1]
            return call(*RUN_COUNT) if last.type == "text" else "Done."

        self._agent = make_agent(Skills(self._library, scripts=UNBOXED), ScriptedClient(*[answer] * 100))

    async def ask(self) -> bool:
        return await self._run("count")

    async def decide(self, *, yes: bool) -> bool:
        return await self._run(decide(self._request, approved=yes))

    async def retry(self) -> bool:
        return await self._run([])

    async def _run(self, message: Any) -> bool:
        session = AgentSession.from_dict(json.loads(json.dumps(self._stored)))
        try:
            response = await self._agent.run(message, session=session)
        finally:
            if not (self._is_lost and asyncio.current_task().cancelling()):  # type: ignore[union-attr]
                self._stored = session.to_dict()
        requests = response.user_input_requests
        self._request = requests[0] if requests else self._request
        return bool(requests)


@pytest.mark.parametrize("is_lost", [False, True])
def test_approvals_count_for_one_call_in_any_order(library: Path, *, is_lost: bool) -> None:
    @asynccontextmanager
    async def open_host() -> AsyncIterator[OrdersHost]:
        yield OrdersHost(library, is_lost=is_lost)

    check_orders(library, open_host)


def test_a_refused_call_of_a_host_tool_is_left_to_the_host(library: Path) -> None:
    sent: list[str] = []

    @tool(approval_mode="always_require")
    def pay(to: str) -> str:
        """Pay somebody."""
        sent.append(to)
        return "paid"

    client = ScriptedClient(call("pay", {"to": "ann"}), "As you wish.")
    agent, session = make_agent(Skills(library), client, tools=[pay]), AgentSession(session_id="one")

    async def refuse() -> AgentResponse:
        response = await agent.run("pay ann", session=session)
        return await agent.run(decide(find_request(response), approved=False), session=session)

    assert (asyncio.run(refuse()).text, sent) == ("As you wish.", [])


def test_approval_is_not_a_grant(library: Path, tmp_path: Path) -> None:
    trust = prowess.Trust(tmp_path / "trust.json", policy="defer")
    client = ScriptedClient(call(*RUN_COUNT), "Two.", call(*RUN_COUNT))
    agent = make_agent(Skills(library, scripts=True, trust=trust), client)
    ann, bob = AgentSession(session_id="ann"), AgentSession(session_id="bob")

    async def approve() -> AgentResponse:
        response = await agent.run("how long is: a b", session=ann)
        await agent.run(decide(find_request(response), approved=True), session=ann)
        return await agent.run("how long is: a b", session=bob)

    assert find_request(asyncio.run(approve()))  # another user is asked too
    assert trust.grants() == ()


def test_call_that_repeats_the_id_of_one_that_waits_is_not_approved(library: Path) -> None:
    client = ScriptedClient(call(*RUN_COUNT), call(*RUN_COUNT))
    agent, session = make_agent(Skills(library, scripts=True), client), AgentSession(session_id="one")

    async def ask_twice() -> AgentResponse:
        await agent.run("how long is: a b", session=session)
        return await agent.run("go on", session=session)

    response = asyncio.run(ask_twice())
    assert find_request(response)
    assert results(response) == []


def test_fork_runs_as_a_child_agent(library: Path) -> None:
    child = ScriptedClient(call("look_up", {"word": "tea"}), call("send_mail", {"to": "all"}), "The text is fine.")
    client = ScriptedClient(call("run_skill", {"name": "review", "task": "Tea is {hot}."}), "Reviewed.")
    asked: list[str] = []

    @function_middleware
    async def note_call(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        asked.append(context.function.name)
        await call_next()

    skills = Skills(library)
    skills.clients["small"] = child
    agent = make_agent(skills, client, tools=[look_up, send_mail], middleware=[note_call])
    response = asyncio.run(agent.run("review"))
    assert results(response) == ["The text is fine."]
    assert "Tea is {hot}." in child.requests[0].messages[-1].text
    assert "carry out the skill" in child.requests[0].system
    assert "You help." not in child.requests[0].system
    assert "look_up" in child.requests[0].tools
    assert "send_mail" not in child.requests[0].tools
    assert "run_skill" not in child.requests[0].tools
    assert [str(result.result) for result in child.requests[1].results] == ["tea is known"]
    assert asked == ["run_skill", "look_up"]  # the host's own middleware holds in the child as well


def test_child_is_judged_call_by_call(library: Path) -> None:
    (library / "review/SKILL.md").write_text(
        "---\nname: review\ndescription: Reviews.\ncontext: fork\nallowed-tools: bash(git:*)\n---\nReview.\n"
    )
    ran: list[str] = []

    @tool(approval_mode="never_require")
    def bash(command: str) -> str:
        """Run a command."""
        ran.append(command)
        return "ok"

    client = ScriptedClient(
        call("run_skill", {"name": "review", "task": "x"}),
        call("bash", {"command": "rm -r ."}),
        call("bash", {"command": "git log"}),
        "Fine.",
        "Reviewed.",
    )
    response = asyncio.run(make_agent(Skills(library), client, tools=[bash]).run("review"))
    assert results(response) == ["Fine."]
    assert ran == ["git log"]
    assert len(client.requests) == 5  # a skill without a model runs with the parent's


def test_script_of_a_child_that_needs_approval_does_not_run(library: Path) -> None:
    client = ScriptedClient(
        call("run_skill", {"name": "review", "task": "x"}), call(*RUN_COUNT), "I could not count.", "Reviewed."
    )
    response = asyncio.run(make_agent(Skills(library, scripts=True), client).run("review"))
    assert results(response) == ["I could not count."]
    assert "nothing was done" in str(client.requests[2].results[0].result)


def test_cancelling_reaches_the_child(library: Path) -> None:
    async def cancel() -> bool:
        began, ended = asyncio.Event(), asyncio.Event()

        async def hang(_request: Request) -> str:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return ""

        client = ScriptedClient(call("run_skill", {"name": "review", "task": "x"}), hang)
        run = asyncio.ensure_future(make_agent(Skills(library), client).run("review"))
        await wait_until(began, run)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return ended.is_set()

    assert asyncio.run(cancel())


def test_cancelled_run_leaves_the_conversation_usable(library: Path) -> None:
    skills, session = Skills(library), AgentSession(session_id="one")

    async def cancel_and_go_on() -> AgentResponse:
        began = asyncio.Event()

        async def hang(_request: Request) -> str:
            began.set()
            await asyncio.Event().wait()
            return ""

        agent = make_agent(skills, ScriptedClient(load("greet"), hang, load("careful"), "Done."))
        run = asyncio.ensure_future(agent.run("hello", session=session))
        await wait_until(began, run)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return await agent.run("go on", session=session)

    response = asyncio.run(cancel_and_go_on())
    assert 'name="careful"' in results(response)[0]
    assert set(skills.session("one").active_skills) == {"greet", "careful"}


def test_enforce_refuses_tools_outside_of_the_list(library: Path) -> None:
    def run(skills: Skills) -> list[str]:
        steps = [load("careful"), call("send_mail", {"to": "all"}), call("look_up", {"word": "tea"}), "Done."]
        agent = make_agent(skills, ScriptedClient(*steps), tools=[look_up, send_mail])
        return results(asyncio.run(agent.run("hello")))

    _, mail, word = run(Skills(library, enforce=True))
    assert "not in the allowed-tools of the active skills (careful)" in mail
    assert word == "tea is known"
    _, mail, word = run(Skills(library))
    assert mail == "sent to all"


def test_pictures_are_content_parts(library: Path) -> None:
    client = ScriptedClient(call("read_skill_file", {"name": "picture", "path": "assets/pixel.png"}), "A pixel.")
    asyncio.run(make_agent(Skills(library), client).run("show it"))
    text, picture = client.requests[1].results[0].items
    assert "assets/pixel.png" in text.text
    assert picture.media_type == "image/png"
    assert picture.uri == Content.from_data(PIXEL, "image/png").uri


def test_spans_nest_in_the_framework_own(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    # The provider of the process can be set only once, so that the framework is given this one where it asks.
    monkeypatch.setattr("agent_framework.observability.get_tracer", lambda *_args, **_more: provider.get_tracer("af"))
    skills = Skills(library, on_event=trace_events(provider))
    asyncio.run(make_agent(skills, ScriptedClient(load("greet"), "Hi.")).run("hello"))
    spans = exporter.get_finished_spans()
    (ours,) = [span for span in spans if span.name == "skill activated"]
    (theirs,) = [span for span in spans if span.name == "execute_tool load_skill"]
    assert ours.parent == theirs.context
    assert (theirs.attributes or {})["gen_ai.skill.name"] == "greet"


def test_reload_between_turns(library: Path) -> None:
    with prowess.live(library, every=0.02) as live:
        client = ScriptedClient("Hi.", load("fresh"), "Done.")
        agent, session = make_agent(Skills(live), client), AgentSession(session_id="one")

        async def talk_twice() -> AgentResponse:
            await agent.run("hello", session=session)
            add_fresh_skill(library, live)
            return await agent.run("something new", session=session)

        response = asyncio.run(talk_twice())
    assert "Is new." not in client.requests[0].system
    assert "Is new." in client.requests[1].system
    assert "Be new." in results(response)[0]


def test_selection_appends_to_the_listing(tmp_path: Path) -> None:
    for number in range(60):
        topic = "tea kettles" if number % 2 else "sailing boats"
        folder = tmp_path / f"{topic.split(maxsplit=1)[0]}-{number}"
        folder.mkdir()
        (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: All about {topic}.\n---\nDo.\n")
    client = ScriptedClient("Yes.", "Yes.")
    session = AgentSession(session_id="one")

    async def talk_twice() -> None:
        for message in ("kettles for tea", "boats for sailing"):  # each in a new object, as after a restart
            await make_agent(Skills(tmp_path, budget=500), client).run(message, session=session)

    asyncio.run(talk_twice())
    first, second = (request.system for request in client.requests)
    kept = first[: first.index("</available_skills>")]
    assert "tea kettles" in kept
    assert "sailing boats" not in kept
    assert second.startswith(kept.rstrip())
    assert "sailing boats" in second


def make_native_provider(skills: Skills) -> SkillsProvider:
    return SkillsProvider(
        agent_framework.source(skills),
        disable_load_skill_approval=True,
        disable_read_skill_resource_approval=True,
        disable_run_skill_script_approval=True,
    )


def test_source_feeds_the_framework_own_skill_tools(library: Path, tmp_path: Path) -> None:
    trust = prowess.Trust(tmp_path / "trust.json")
    skills = Skills(library, allowed=["greet", "count-words"], scripts=True, trust=trust)
    run_script = call(
        "run_skill_script", {"skill_name": "count-words", "script_name": "scripts/count.py", "args": ["a", "b"]}
    )

    def grant_and_run(_request: Request) -> Content:
        trust.grant(skills.catalog["count-words"])
        return run_script

    client = ScriptedClient(
        call("load_skill", {"skill_name": "greet"}),
        call("read_skill_resource", {"skill_name": "greet", "resource_name": "references/forms.md"}),
        call("load_skill", {"skill_name": "careful"}),
        run_script,
        grant_and_run,
        "Done.",
    )
    response = asyncio.run(Agent(client, context_providers=[make_native_provider(skills)]).run("hello"))
    loaded, file, refused, untrusted, ran = results(response)
    assert "Say hello as references/forms.md says." in loaded
    assert file == "Good morning before noon.\n"
    assert "careful" in refused
    assert "not trusted" in untrusted
    assert "2 words" in ran
    assert "greet" in client.requests[0].system
    assert "careful" not in client.requests[0].system


def test_skill_that_the_framework_refuses_hides_no_other(library: Path, caplog: pytest.LogCaptureFixture) -> None:
    (library / "greet/SKILL.md").write_text(f"---\nname: greet\ndescription: {'x' * 1100}\n---\nSay hello.\n")
    client = ScriptedClient("Hi.")
    asyncio.run(Agent(client, context_providers=[make_native_provider(Skills(library))]).run("hello"))
    assert "careful" in client.requests[0].system
    assert "greet" not in client.requests[0].system
    assert "Agent Framework does not take a skill" in caplog.text
    assert "greet" in caplog.text


def test_example_runs() -> None:
    client = ScriptedClient(load("csv-report"), "A table.")
    assert asyncio.run(main(client)) == "A table."
    assert "csv-report" in client.requests[0].system


def test_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: Request) -> Content | str:
        last = request.messages[-1].text
        if last == "What is in orders.csv?":
            return load("csv-report")
        if last == "How large is notes.txt?":
            return call("run_skill_script", {"name": "folder-report", "script": "scripts/sizes.py", "args": []})
        return "A table."

    names = run_framework_page("agent_framework", tmp_path, monkeypatch, {"client": ScriptedClient(*[answer] * 20)})
    assert "exit status 0" in results(names["response"])[0]


def test_skills_whose_tools_are_missing_are_not_offered(library: Path) -> None:
    client = ScriptedClient("Done.", "Done.")
    asyncio.run(make_agent(Skills(add_needy_skills(library)), client, tools=[look_up]).run("hello"))
    # The framework shows a provider no tool that is given to one run, so the host names it.
    skills = Skills(library, available_tools=["look_up"])
    asyncio.run(make_agent(skills, client).run("hello", tools=[look_up]))
    for request in client.requests:
        check_needy_skills(request.system)


def test_each_user_has_the_skills_of_their_scope(library: Path) -> None:
    skills = Skills(library, scope=allow_by_user(RIGHTS, lambda session: session.state["user"]))
    client = ScriptedClient(load("picture"), "one", load("picture"), "two")
    agent = make_agent(skills, client)

    async def run(user: str) -> str:
        session = agent.create_session()
        session.state["user"] = user
        return results(await agent.run("hello", session=session))[0]

    ann, bob = asyncio.run(run("ann")), asyncio.run(run("bob"))
    check_listings(client.requests[0].system, client.requests[2].system)
    assert "unknown skill 'picture'" in ann
    assert "Look at assets/pixel.png." in bob


def test_two_skills_of_one_agent_are_refused(library: Path) -> None:
    agent = Agent(ScriptedClient("never"), "You help.", context_providers=[Skills(library), Skills(library)])
    with pytest.raises(prowess.SourceError, match="an agent has one Skills"):
        asyncio.run(agent.run("hello"))
