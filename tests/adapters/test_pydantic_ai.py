"""Skills in agents of Pydantic AI, with its own scripted model: what a model sees and what its calls do."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from prowess import AutoSelector, NotTrustedError, Scripts, SourceError, Trust, live
from prowess.otel import trace_events
from tests.adapters.approval_orders import RUN_COUNT, UNBOXED, Door, check_orders
from tests.adapters.skill_library import (
    PIXEL,
    RIGHTS,
    add_fresh_skill,
    add_needy_skills,
    allow_by_user,
    check_listings,
    check_needy_skills,
)
from tests.page_snippets import run_framework_page

framework = pytest.importorskip(
    "pydantic_ai",
    reason="NOT TESTED: Pydantic AI is not installed; make test-adapters installs it",
)

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.capabilities import HandleDeferredToolCalls, Hooks, Instrumentation, ResolveModelId
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

from examples.frameworks import pydantic_ai as example
from prowess.adapters.pydantic_ai import Skills

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

Step = str | list[tuple[str, Any]]
"""What a scripted model answers: text, or calls of tools with their arguments."""
COUNT = ("run_skill_script", {"name": "count-words", "script": "scripts/count.py"})
PLAIN = Scripts(sandbox="none")


class ScriptedModel:
    """A model that answers from a list, and keeps what it was sent."""

    def __init__(self, *steps: Step, before: Callable[[int], Any] | None = None) -> None:
        """``before``: is awaited with the number of the request before it is answered."""
        self.steps = list(steps)
        self.before = before
        self.requests: list[tuple[list[ModelMessage], AgentInfo]] = []
        self.model = FunctionModel(self._answer)

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        number = len(self.requests)
        self.requests.append((list(messages), info))
        if self.before is not None:
            await self.before(number)
        step = self.steps[number]
        if isinstance(step, str):
            return ModelResponse(parts=[TextPart(step)])
        calls = [ToolCallPart(name, given, tool_call_id=f"call-{number}-{i}") for i, (name, given) in enumerate(step)]
        return ModelResponse(parts=calls)

    def system(self, number: int = -1) -> str:
        return self.requests[number][1].instructions or ""

    def offered(self, number: int = -1) -> list[str]:
        return [tool.name for tool in self.requests[number][1].function_tools]

    def results(self, number: int = -1) -> list[ToolReturnPart]:
        """Return the results of tools in the newest message of a request."""
        return [part for part in self.requests[number][0][-1].parts if isinstance(part, ToolReturnPart)]

    def result(self, number: int = -1) -> str:
        return self.results(number)[0].model_response_str(wrap_if_error=False)


@pytest.fixture(autouse=True)
def event_loop() -> Iterator[None]:
    """``run_sync`` takes the loop of the thread, and leaves it open."""
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())
        yield
    asyncio.set_event_loop(None)


def load(name: str) -> list[tuple[str, Any]]:
    return [("load_skill", {"name": name})]


def test_one_line_gives_an_agent_skills(library: Path) -> None:
    model = ScriptedModel(load("greet"), "Good morning!")
    agent = Agent(model.model, capabilities=[Skills(library)])
    assert agent.run_sync("hello").output == "Good morning!"
    assert "Greets people" in model.system(0)
    assert model.offered(0)[0] == "load_skill"
    assert "Say hello as references/forms.md says." in model.result()


def test_listing_is_in_the_system_text_once_and_stays_the_same(library: Path) -> None:
    model = ScriptedModel(load("greet"), "One.", load("picture"), "Two.")
    days = iter(("Monday", "Monday", "Tuesday", "Tuesday"))
    agent = Agent(model.model, instructions=["Be kind.", lambda: next(days)], capabilities=[Skills(library)])
    first = agent.run_sync("hello")
    agent.run_sync("and now?", message_history=first.all_messages())
    texts = {model.system(number).partition("</available_skills>")[0] for number in range(4)}
    assert len(texts) == 1  # it stands before what changes, so that prompt caches keep it
    assert texts.pop().count("Greets people") == 1
    assert all(model.system(number).count("Greets people") == 1 for number in range(4))
    assert all("Greets people" not in str(message.parts) for message in model.requests[-1][0])


def test_each_conversation_has_its_own_session(library: Path) -> None:
    model = ScriptedModel(load("greet"), "Done.", "Nothing.", load("picture"), "Done.")
    skills = Skills(library)
    agent = Agent(model.model, capabilities=[skills])
    mine = agent.run_sync("hello", conversation_id="mine")
    agent.run_sync("hello", conversation_id="yours")
    agent.run_sync("a picture", message_history=mine.all_messages())  # the history names its conversation
    assert skills.session("mine").active_skills == ("greet", "picture")
    assert skills.session("yours").active_skills == ()


def test_run_without_a_key_is_a_conversation_of_its_own(library: Path) -> None:
    model = ScriptedModel(load("greet"), "Done.", load("picture"), "Done.")
    skills = Skills(library)
    agent = Agent(model.model, capabilities=[skills])
    first, second = agent.run_sync("hello"), agent.run_sync("a picture")
    assert skills.session(first.conversation_id).active_skills == ("greet",)
    assert skills.session(second.conversation_id).active_skills == ("picture",)


def test_two_users_at_once_share_nothing(library: Path) -> None:
    async def main() -> None:
        both = asyncio.Barrier(2)  # each request of one waits for the same request of the other

        async def meet(_number: int) -> None:
            await both.wait()

        skills = Skills(library)
        agent: Agent[None, str] = Agent(capabilities=[skills])
        models = {"ann": ScriptedModel(load("greet"), "Done.", before=meet)}
        models["bob"] = ScriptedModel(load("careful"), "Done.", before=meet)
        runs = [agent.run("hello", model=model.model, conversation_id=user) for user, model in models.items()]
        await asyncio.gather(*runs)
        assert skills.session("ann").active_skills == ("greet",)
        assert skills.session("bob").active_skills == ("careful",)
        assert "Say hello" in models["ann"].result()
        assert "Use look_up" in models["bob"].result()

    asyncio.run(main())


def test_two_runs_from_one_history_share_nothing(library: Path) -> None:
    """Both continue one conversation, each from the state that its history has."""

    async def main() -> None:
        both = asyncio.Barrier(2)

        async def meet(_number: int) -> None:
            await both.wait()

        skills = Skills(library)
        start = ScriptedModel(load("greet"), "Done.")
        agent: Agent[None, str] = Agent(capabilities=[skills])
        history = (await agent.run("hello", model=start.model)).all_messages()
        left = ScriptedModel(load("picture"), [("unload_skill", {"name": "careful"})], "Done.", before=meet)
        right = ScriptedModel(load("careful"), [("unload_skill", {"name": "picture"})], "Done.", before=meet)
        await asyncio.gather(*(agent.run("go", model=m.model, message_history=history) for m in (left, right)))
        assert "not active" in left.result()
        assert "not active" in right.result()

    asyncio.run(main())


def test_session_comes_back_with_the_checkpoint(library: Path) -> None:
    model = ScriptedModel(load("greet"), "Done.", "Again.")
    stored = Agent(model.model, capabilities=[Skills(library)]).run_sync("hello").all_messages_json()
    skills = Skills(library)  # as in another process: nothing but the stored messages is left
    history = ModelMessagesTypeAdapter.validate_json(stored)
    result = Agent(model.model, capabilities=[skills]).run_sync("and?", message_history=history)
    assert skills.session(result.conversation_id).active_skills == ("greet",)
    assert model.system(2) == model.system(0)


@pytest.mark.parametrize("is_given", [False, True])
def test_run_without_a_history_begins_anew_although_its_id_was_used(library: Path, *, is_given: bool) -> None:
    """The id of a conversation that its user deleted: neither skills nor decisions of it come back."""
    (library / "count-words/scripts/count.py").write_text("open('ran', 'w')\n")
    skills = Skills(library, scripts=PLAIN)
    model = ScriptedModel([*load("greet"), COUNT], "Well.", [*load("picture"), COUNT])
    output: Any = [str, DeferredToolRequests]
    agent: Agent[None, Any] = Agent(
        model.model,
        output_type=output,
        tools=skills.tools() if is_given else (),
        capabilities=() if is_given else [skills],
    )
    resume(agent, agent.run_sync("count", conversation_id="c"), allow=False)
    later = agent.run_sync("count", conversation_id="c", message_history=[])
    assert isinstance(later.output, DeferredToolRequests)  # the no was said in the conversation that was deleted
    assert skills.session("c").active_skills == ("picture",)


def test_shortened_history_keeps_the_session(library: Path) -> None:
    model = ScriptedModel(load("greet"), "One.", "Two.", "Three.")
    agent = Agent(model.model, capabilities=[Skills(library)])
    first = agent.run_sync("hello")
    second = agent.run_sync("and?", message_history=first.all_messages())
    skills = Skills(library)
    agent = Agent(model.model, capabilities=[skills])
    last = agent.run_sync("and?", message_history=second.new_messages())
    assert skills.session(last.conversation_id).active_skills == ("greet",)


def test_damaged_save_is_told_to_the_host(library: Path) -> None:
    agent = Agent(ScriptedModel("One.").model, capabilities=[Skills(library)])
    history = [ModelResponse(parts=[TextPart("Hi.")], metadata={"prowess": "{}"})]
    with pytest.raises(SourceError, match="not a conversation that an adapter saved"):
        agent.run_sync("hello", message_history=history)


def test_earlier_messages_bring_the_earlier_session(library: Path) -> None:
    model = ScriptedModel(load("greet"), "One.", load("picture"), "Two.", "Three.")
    skills = Skills(library)
    agent = Agent(model.model, capabilities=[skills])
    first = agent.run_sync("hello")
    before = first.all_messages()
    kept = ModelMessagesTypeAdapter.dump_json(before)
    agent.run_sync("a picture", message_history=before)
    assert ModelMessagesTypeAdapter.dump_json(before) == kept  # a run does not write into its caller's messages
    agent.run_sync("once more", message_history=before)
    assert skills.session(first.conversation_id).active_skills == ("greet",)


def test_tools_work_in_plain_code(library: Path) -> None:
    calls = [("read_skill_file", {"name": "greet", "path": "references/forms.md"})]
    model = ScriptedModel(load("greet"), calls, "Done.")
    skills = Skills(library)
    agent: Agent[None, str] = Agent(model.model, instructions=skills.prompt(), tools=skills.tools())
    result = agent.run_sync("hello")
    assert "Good morning before noon." in model.result()
    assert skills.session(result.conversation_id).active_skills == ("greet",)
    schemas = {tool.name: tool.parameters_json_schema for tool in model.requests[0][1].function_tools}
    assert schemas["load_skill"]["required"] == ["name"]


def test_tools_work_in_asynchronous_code(library: Path) -> None:
    async def main() -> None:
        model = ScriptedModel([*load("greet"), *load("picture")], "Done.")
        agent = Agent(model.model, capabilities=[Skills(library)])
        assert (await agent.run("hello")).output == "Done."
        assert [part.outcome for part in model.results()] == ["success", "success"]

    asyncio.run(main())


def test_streamed_run_keeps_its_session(library: Path) -> None:
    async def answer(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Any]:
        if len(messages) == 1:
            yield {0: framework.models.function.DeltaToolCall("load_skill", '{"name": "greet"}', tool_call_id="1")}
        else:
            yield "Good "
            yield "morning!"

    async def main() -> None:
        skills = Skills(library)
        agent = Agent(FunctionModel(stream_function=answer), capabilities=[skills])
        async with agent.run_stream("hello", conversation_id="c") as run:
            assert await run.get_output() == "Good morning!"
        assert skills.session("c").active_skills == ("greet",)
        again = Skills(library)
        await Agent(ScriptedModel("x").model, capabilities=[again]).run(message_history=run.all_messages())
        assert again.session("c").active_skills == ("greet",)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("load_skill", {"name": "gret"}), "gret"),
        (("load_skill", {}), "name is required"),
        (("load_skill", "{not json"), "JSON"),
        (("load_skill", "[1]"), "object"),
        (("read_skill_file", {"name": "greet", "path": "references/no.md"}), "references/no.md"),
    ],
)
@pytest.mark.parametrize("way", ["capability", "tools"])
def test_errors_are_results(library: Path, way: str, call: tuple[str, Any], said: str) -> None:
    model = ScriptedModel([call], [call], [call], "Done.")  # however often: the run goes on
    skills = Skills(library)
    given: dict[str, Any] = {"capabilities": [skills]} if way == "capability" else {"tools": skills.tools()}
    assert Agent(model.model, **given).run_sync("hello").output == "Done."
    assert said in model.result()
    assert model.results()[0].outcome == "failed"


# -- approval ----------------------------------------------------------------------------------------------------------


def ask(library: Path, *steps: Step, **more: Any) -> tuple[ScriptedModel, Agent[None, Any], Any]:
    """Return a model, its agent and the result of a run that ended with a question about a script."""
    model = ScriptedModel([COUNT], *steps)
    skills = Skills(library, **{"scripts": PLAIN, **more})
    agent: Agent[None, Any] = Agent(model.model, output_type=[str, DeferredToolRequests], capabilities=[skills])
    asked = agent.run_sync("count", conversation_id="c")
    assert isinstance(asked.output, DeferredToolRequests)
    return model, agent, asked


def resume(agent: Agent[None, Any], asked: Any, *, allow: bool, stored: bool = False) -> Any:
    messages = asked.all_messages()
    if stored:
        messages = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(messages))
    decisions = {call.tool_call_id: allow for call in asked.output.approvals}
    return agent.run_sync(
        message_history=messages, deferred_tool_results=asked.output.build_results(approvals=decisions)
    )


def test_approval_shows_the_request_and_resuming_runs_it(library: Path) -> None:
    model, agent, asked = ask(library, "Counted.")
    shown = asked.output.metadata["call-0-0"]
    assert shown["request"]["script"] == "scripts/count.py"
    assert shown["request"]["digest"] in shown["text"]
    assert len(model.requests) == 1
    assert resume(agent, asked, allow=True).output == "Counted."
    assert "0 words" in model.result()
    assert model.system(1) == model.system(0)


def test_approval_counts_in_another_process(library: Path) -> None:
    _, _, asked = ask(library)
    model = ScriptedModel("Counted.")
    agent: Agent[None, Any] = Agent(
        model.model, output_type=[str, DeferredToolRequests], capabilities=[Skills(library, scripts=PLAIN)]
    )
    assert resume(agent, asked, allow=True, stored=True).output == "Counted."
    assert "0 words" in model.result()


def test_refused_call_does_not_run(library: Path) -> None:
    (library / "count-words/scripts/count.py").write_text("open('ran', 'w')\n")
    model, agent, asked = ask(library, [COUNT], "Well.")
    assert resume(agent, asked, allow=False).output == "Well."
    assert model.results(1)[0].outcome == "denied"
    assert "said no" in model.result(2)  # the same call again is refused, and nobody is asked
    assert not list(library.rglob("ran"))


def test_changed_files_are_asked_about_again(library: Path) -> None:
    model, agent, asked = ask(library, "Counted.")
    (library / "count-words/scripts/count.py").write_text("print('other')\n")
    again = resume(agent, asked, allow=True)
    assert isinstance(again.output, DeferredToolRequests)
    former, newer = (one.output.metadata["call-0-0"]["request"]["digest"] for one in (asked, again))
    assert former != newer
    assert resume(agent, again, allow=True).output == "Counted."
    assert "other" in model.result()


class OrdersHost:
    """A host that stores the messages of each run that came to its end."""

    def __init__(self, library: Path) -> None:
        self._library, self._stored, self._call_id = library, b"[]", ""
        self.restart()

    def restart(self) -> None:
        def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
            is_asked = isinstance(messages[-1].parts[-1], UserPromptPart)
            return ModelResponse([ToolCallPart(*RUN_COUNT) if is_asked else TextPart("Done.")])

        skills = Skills(self._library, scripts=UNBOXED)
        output = [str, DeferredToolRequests]
        self._agent = Agent(FunctionModel(answer), output_type=output, capabilities=[skills])

    async def ask(self) -> bool:
        return await self._run("count")

    async def decide(self, *, yes: bool) -> bool:
        return await self._run(deferred_tool_results=DeferredToolResults(approvals={self._call_id: yes}))

    async def retry(self) -> bool:
        return await self._run()

    async def _run(self, prompt: str | None = None, **more: Any) -> bool:
        history = ModelMessagesTypeAdapter.validate_json(self._stored)
        result = await self._agent.run(prompt, message_history=history, conversation_id="c", **more)
        self._stored = result.all_messages_json()
        if isinstance(result.output, str):
            return False
        (asked,) = result.output.approvals
        self._call_id = asked.tool_call_id
        return True


def test_approvals_count_for_one_call_in_any_order(library: Path) -> None:
    @asynccontextmanager
    async def open_host() -> AsyncIterator[OrdersHost]:
        yield OrdersHost(library)

    check_orders(library, open_host)


def test_yes_that_a_cancelled_run_has_used_raises(library: Path) -> None:
    async def main() -> None:
        door = Door()
        async with door.put_into(library):
            host = OrdersHost(library)
            assert await host.ask()
            await door.cancel_behind(asyncio.ensure_future(host.decide(yes=True)))
            with pytest.raises(NotTrustedError) as told:
                await host.decide(yes=True)
            assert (told.value.code, door.knocks) == ("no-question", 1)
            assert await host.retry()
            assert not await host.decide(yes=True)
            assert door.knocks == 2

    asyncio.run(main())


def test_approval_is_not_a_grant(library: Path, tmp_path: Path) -> None:
    trust = Trust(tmp_path / "trust.json", policy="defer")
    _, agent, asked = ask(library, "Counted.", trust=trust)
    resume(agent, asked, allow=True)
    assert trust.grants() == ()
    model = ScriptedModel([COUNT])
    other = agent.run_sync("count", model=model.model, conversation_id="other")
    assert isinstance(other.output, DeferredToolRequests)


def test_handler_within_a_run_decides(library: Path) -> None:
    texts: list[str] = []

    def decide(_ctx: RunContext[Any], requests: DeferredToolRequests) -> Any:
        texts.extend(shown["text"] for shown in requests.metadata.values())
        return requests.build_results(approve_all=True)

    model = ScriptedModel([COUNT], "Counted.")
    capabilities = [Skills(library, scripts=PLAIN), HandleDeferredToolCalls(decide)]
    assert Agent(model.model, capabilities=capabilities).run_sync("count").output == "Counted."
    assert "runs the script: scripts/count.py" in texts[0]
    assert "0 words" in model.result()


# -- child agents ------------------------------------------------------------------------------------------------------

REVIEW = [("run_skill", {"name": "review", "task": "This poem."})]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def look_up(word: str) -> str:
    """Look up a word."""
    return f"{word} is a fact"


def delete_all() -> str:
    """Delete everything."""
    return "deleted"


def name_models(**models: ScriptedModel) -> ResolveModelId:
    """Return the capability by which an agent knows models by names of its own."""
    return ResolveModelId(lambda _ctx, name: models[name].model if name in models else None)


def test_fork_runs_as_a_child_agent(library: Path) -> None:
    child = ScriptedModel([("look_up", {"word": "moon"}), ("delete_all", {})], "Fine.", "A fine poem.")
    parent = ScriptedModel(REVIEW, "Done.")
    capabilities = [Skills(library), name_models(small=child)]
    agent = Agent(parent.model, tools=[look_up, delete_all], capabilities=capabilities)
    result = agent.run_sync("review")
    assert parent.result() == "Fine."
    assert "This poem." in str(child.requests[0][0])
    assert "Review the text." in str(child.requests[0][0])
    assert child.offered(0)[0] == "look_up"
    assert "delete_all" not in child.offered(0)
    assert "run_skill" not in child.offered(0)
    assert child.system(0).count("Greets people") == 1
    assert child.result() == "moon is a fact"
    assert "moon is a fact" not in str(result.all_messages())
    assert result.usage.requests == 4


@pytest.mark.parametrize("name", ["small", "openai:gpt-5", "nobody:has-this"])
def test_child_has_the_model_of_its_parent_where_the_one_that_its_skill_names_cannot_be_made(
    library: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    edit(library / "review/SKILL.md", "model: small", f"model: {name}")
    model = ScriptedModel(REVIEW, "A fine poem.", "Done.")
    agent = Agent(model.model, capabilities=[Skills(library)])
    assert agent.run_sync("review").output == "Done."
    assert model.result() == "A fine poem."


def test_child_has_a_model_that_pydantic_ai_knows_by_name(library: Path) -> None:
    edit(library / "review/SKILL.md", "model: small", "model: test")
    model = ScriptedModel(REVIEW, "Done.")
    Agent(model.model, tools=[look_up], capabilities=[Skills(library)]).run_sync("review")
    assert "a is a fact" in model.result()  # Pydantic AI's own model for tests says what the tools returned


def test_child_is_bound_by_the_skills_that_it_loads_itself(library: Path) -> None:
    edit(library / "review/SKILL.md", "allowed-tools: look_up\n", "")
    calls: Step = [("look_up", {"word": "moon"}), ("delete_all", {})]
    model = ScriptedModel(REVIEW, calls, load("careful"), calls, "Fine.", calls, "Done.")
    agent = Agent(model.model, tools=[look_up, delete_all], capabilities=[Skills(library, enforce=True)])
    agent.run_sync("review")
    assert [part.outcome for part in model.results(2)] == ["success", "success"]
    assert [part.outcome for part in model.results(4)] == ["success", "failed"]
    assert [part.outcome for part in model.results(6)] == ["success", "success"]  # the parent has not loaded it


def test_enforce_counts_in_a_run_that_a_tool_begins_within_a_child(library: Path) -> None:
    """The tool runs another conversation of the same agent, in which another skill is active."""
    inner = ScriptedModel(load("careful"), [("delete_all", {})], "Done.")
    model = ScriptedModel(REVIEW, [("look_up", {"word": "moon"})], "Fine.", "Done.")
    skills = Skills(library, enforce=True)
    agent: Agent[None, str] = Agent(model.model, tools=[delete_all], capabilities=[skills])

    @agent.tool_plain(name="look_up")
    async def ask_again(word: str) -> str:
        return (await agent.run(word, model=inner.model)).output

    agent.run_sync("review")
    assert inner.results()[0].outcome == "failed"


def test_child_makes_only_the_calls_that_its_skill_allows(library: Path) -> None:
    edit(library / "review/SKILL.md", "look_up\n---", "Bash(git:*)\n---")

    def bash(command: str) -> str:
        return f"ran {command}"

    calls = [("Bash", {"command": "git log"}), ("Bash", {"command": "rm -r ."}), ("Bash", '{"command": "rm"}')]
    model = ScriptedModel(REVIEW, calls, "Done.", "Done.")
    agent = Agent(model.model, capabilities=[Skills(library)])
    agent.tool_plain(name="Bash")(bash)
    agent.run_sync("review")
    assert [part.outcome for part in model.results(2)] == ["success", "failed", "failed"]
    assert "does not allow this call of Bash" in str(model.results(2)[1].content)


def test_hooks_of_the_host_see_the_calls_of_a_child(library: Path) -> None:
    hooks: Hooks[None] = Hooks()
    seen: list[str] = []

    @hooks.on.before_tool_execute
    async def note(_ctx: RunContext[None], *, call: ToolCallPart, tool_def: Any, args: Any) -> Any:  # noqa: ARG001
        seen.append(call.tool_name)
        return args

    model = ScriptedModel(REVIEW, [("look_up", {"word": "moon"})], [("look_up", {})], "Done.", "Done.")
    agent = Agent(model.model, tools=[look_up], capabilities=[Skills(library), hooks])
    assert agent.run_sync("review").output == "Done."
    assert seen == ["run_skill", "look_up"]
    assert model.results(3)[0].outcome == "retried"  # Pydantic AI's own answer to arguments that do not fit


@pytest.mark.parametrize("is_allowed", [True, False, None])
def test_question_in_a_child_goes_to_a_handler_of_its_parent(library: Path, is_allowed: bool | None) -> None:
    """Without a handler within the run, the child is told that nothing was done."""

    def decide(_ctx: RunContext[Any], requests: DeferredToolRequests) -> Any:
        assert is_allowed is not None
        return requests.build_results(approvals=dict.fromkeys((c.tool_call_id for c in requests.approvals), is_allowed))

    edit(library / "review/SKILL.md", "look_up\n---", "look_up run_skill_script\n---")
    model = ScriptedModel(REVIEW, [COUNT, ("look_up", {"word": "moon"})], "Answer.", "Done.")
    handlers = [] if is_allowed is None else [HandleDeferredToolCalls(decide)]
    agent: Agent[None, str] = Agent(model.model, capabilities=[Skills(library, scripts=PLAIN), *handlers])
    agent.tool_plain(requires_approval=True)(look_up)
    assert agent.run_sync("review").output == "Done."
    script, fact = model.results(2)
    expected = {
        True: ("0 words", "a fact"),
        False: ("denied", "denied"),
        None: ("nothing was done", "nothing was done"),
    }
    assert expected[is_allowed][0] in str(script.content)
    assert expected[is_allowed][1] in str(fact.content)
    assert model.result(3) == "Answer."


def test_fork_false_gives_no_child_agents(library: Path) -> None:
    model = ScriptedModel("Done.")
    Agent(model.model, capabilities=[Skills(library, fork=False)]).run_sync("review")
    assert "run_skill" not in model.offered()


def test_cancelling_reaches_the_child(library: Path) -> None:
    async def main() -> None:
        began, ended = asyncio.Event(), asyncio.Event()

        async def wait(_number: int) -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        child = ScriptedModel("Never.", before=wait)
        agent = Agent(ScriptedModel(REVIEW).model, capabilities=[Skills(library), name_models(small=child)])
        run = asyncio.create_task(agent.run("review"))
        await began.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert ended.is_set()

    asyncio.run(main())


def test_cancelled_run_leaves_the_conversation_usable(library: Path) -> None:
    async def main() -> None:
        began = asyncio.Event()

        async def wait(number: int) -> None:
            if number == 1:
                began.set()
                await asyncio.Event().wait()

        skills = Skills(library)
        model = ScriptedModel(load("greet"), "Never.", load("picture"), "Done.", before=wait)
        agent = Agent(model.model, capabilities=[skills])
        run = asyncio.create_task(agent.run("hello", conversation_id="c"))
        await began.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert (await agent.run("again", conversation_id="c")).output == "Done."
        assert skills.session("c").active_skills == ("picture",)  # no message of the cancelled run was kept

    asyncio.run(main())


# -- the rest of what an adapter does ----------------------------------------------------------------------------------


def test_enforce_refuses_tools_outside_of_the_list(library: Path) -> None:
    calls = [("look_up", {"word": "moon"}), ("delete_all", {})]
    for enforce, outcomes in ((True, ["success", "failed"]), (False, ["success", "success"])):
        model = ScriptedModel(calls, load("careful"), calls, "Done.")
        skills = Skills(library, enforce=enforce)
        Agent(model.model, tools=[look_up, delete_all], capabilities=[skills]).run_sync("carefully")
        assert [part.outcome for part in model.results(1)] == ["success", "success"]  # no skill is active yet
        assert [part.outcome for part in model.results(3)] == outcomes
    assert "allowed-tools" not in str(model.results(3)[1].content)


def test_enforce_knows_the_skill_tools_by_any_name(library: Path) -> None:
    calls = [("my_read_skill_file", {"name": "greet", "path": "references/forms.md"}), ("delete_all", {})]
    model = ScriptedModel([("my_load_skill", {"name": "careful"})], calls, "Done.")
    capability = Skills(library, enforce=True).prefix_tools("my")
    Agent(model.model, tools=[delete_all], capabilities=[capability]).run_sync("carefully")
    assert [part.outcome for part in model.results()] == ["success", "failed"]
    assert "allowed-tools of the active skills (careful)" in str(model.results()[1].content)


def test_pictures_are_content_parts(library: Path) -> None:
    model = ScriptedModel([("read_skill_file", {"name": "picture", "path": "assets/pixel.png"})], "A pixel.")
    Agent(model.model, capabilities=[Skills(library)]).run_sync("show")
    (picture,) = [part for part in model.results()[0].files if isinstance(part, BinaryContent)]
    assert (picture.media_type, picture.data) == ("image/png", PIXEL)


def test_spans_nest_in_the_framework_own(library: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    model = ScriptedModel([*load("greet"), *REVIEW], "A fine poem.", "Done.")
    spans = Instrumentation(settings=InstrumentationSettings(tracer_provider=provider))
    agent = Agent(model.model, capabilities=[Skills(library, on_event=trace_events(provider)), spans])
    agent.run_sync("hello", conversation_id="c")
    by_id = {span.context.span_id: span for span in exporter.get_finished_spans() if span.context}

    def path(name: str) -> list[str]:
        (span,) = [span for span in by_id.values() if span.name == name]
        names = [span.name]
        while span.parent is not None:
            span = by_id[span.parent.span_id]
            names.append(span.name)
        return names

    assert path("skill activated")[1:] == ["execute_tool load_skill", "invoke_agent agent"]
    (tool,) = [span for span in by_id.values() if span.name == "execute_tool load_skill"]
    assert (tool.attributes or {})["gen_ai.skill.name"] == "greet"
    (child,) = [s for s in by_id.values() if s.name.startswith("invoke_agent") and s.parent is not None]
    assert child.parent is not None
    assert by_id[child.parent.span_id].name == "execute_tool run_skill"


def test_reload_between_turns(library: Path) -> None:
    model = ScriptedModel("One.", load("fresh"), "Two.")
    with live(library, every=0.01, notice="stat") as catalog:
        agent = Agent(model.model, capabilities=[Skills(catalog)])
        first = agent.run_sync("hello")
        add_fresh_skill(library, catalog)
        agent.run_sync("and now?", message_history=first.all_messages())
    assert "Is new." not in model.system(0)
    assert "Is new." in model.system(1)
    assert "Be new." in model.result()


def test_selection_appends_to_the_listing(tmp_path: Path) -> None:
    for topic in ("poem", "recipe", "letter", "contract", "song", "speech", "ticket", "invoice"):
        for verb in ("review", "sort", "print", "translate", "archive"):
            folder = tmp_path / "many" / f"{topic}-{verb}"
            folder.mkdir(parents=True)
            description = f"{verb.capitalize()}s a {topic}. Use when asked to {verb} a {topic}."
            (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: {description}\n---\nDo it.\n")
    model = ScriptedModel("One.", "Two.", "Three.")
    agent = Agent(model.model, capabilities=[Skills(tmp_path / "many", selector=AutoSelector(500))])
    first = agent.run_sync("please review this poem")
    second = agent.run_sync("now sort my recipe collection", message_history=first.all_messages())
    agent.run_sync(["and archive ", "every invoice"], message_history=second.all_messages())
    listed = [re.findall("<skill><name>.*", model.system(number)) for number in range(3)]
    assert "poem-review" in listed[0][0]
    assert len(listed[0]) < 40
    assert listed[1][: len(listed[0])] == listed[0]
    assert any("recipe-sort" in line for line in listed[1][len(listed[0]) :])
    assert listed[2][: len(listed[1])] == listed[1]


def test_example_runs(library: Path) -> None:
    model = ScriptedModel([COUNT], "None.")
    texts: list[str] = []

    def decide(text: str) -> bool:
        texts.append(text)
        return False

    assert example.main(model.model, library, decide) == "None."
    assert "scripts/count.py" in texts[0]
    assert model.results(1)[0].outcome == "denied"


def test_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = load("csv-report")
    overview = [("run_skill", {"name": "folder-report"})]
    steps: list[Step] = [
        report,
        "Two.",
        report,
        "Two.",
        "Bye.",
        overview,
        "Then I cannot say.",
        report,
        "Three columns.",
        "Hello, Bob!",
    ]
    model = ScriptedModel(*steps)
    names = run_framework_page("pydantic_ai", tmp_path, monkeypatch, {"model": model.model})
    assert len(model.requests) == len(steps)
    calls = [("Bash", {"command": "git log"}), ("Bash", {"command": "rm -r ."})]
    model = ScriptedModel(load("release-notes"), calls)
    run = names["asking"].run("notes", model=model.model, output_type=[str, DeferredToolRequests])
    asked = asyncio.run(run).output  # the page has ended the loop that run_sync would take
    assert [call.args_as_dict() for call in asked.approvals] == [{"command": "rm -r ."}]


def test_skills_whose_tools_are_missing_are_not_offered(library: Path) -> None:
    model = ScriptedModel("Done.")
    Agent(model.model, tools=[look_up], capabilities=[Skills(add_needy_skills(library))]).run_sync("hello")
    check_needy_skills(model.system(0))


def test_each_user_has_the_skills_of_their_scope(library: Path) -> None:
    skills = Skills(library, scope=allow_by_user(RIGHTS, lambda ctx: ctx.deps))
    model = ScriptedModel("one", load("picture"), "two", load("picture"), "three")
    agent = Agent(model.model, deps_type=str, capabilities=[skills])
    agent.run_sync("hello", deps="ann")
    agent.run_sync("hello", deps="ann", conversation_id="ann")
    agent.run_sync("hello", deps="bob", conversation_id="bob")
    check_listings(model.system(0), model.system(3))
    assert "unknown skill 'picture'" in model.result(2)
    assert "Look at assets/pixel.png." in model.result(4)


def test_two_skills_of_one_agent_are_refused(library: Path) -> None:
    with pytest.raises(SourceError, match="an agent has one Skills"):
        Agent(ScriptedModel("never").model, capabilities=[Skills(library), Skills(library)])
