"""What the adapters for the providers' own clients must do, checked with the real SDK against a model on loopback.

Each function is one check. The tests of an adapter call it with their API.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from prowess import AutoSelector, FetchError, NotTrustedError, Scripts, SourceError, ToolResult, Trust, live
from prowess.adapters.message_types import (
    CallEvent,
    ChildEvent,
    HostTool,
    PartialRun,
    ResultEvent,
    RunResult,
    TextEvent,
)
from prowess.otel import trace_events
from tests.adapters.approval_orders import RUN_COUNT, UNBOXED, check_orders
from tests.adapters.skill_library import (
    RIGHTS,
    add_fresh_skill,
    add_needy_skills,
    allow_by_user,
    check_listings,
    check_needy_skills,
    wait_until,
)
from tests.fake_models import (
    CACHED_TOKENS,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    Calls,
    Cut,
    Failure,
    Slow,
    Text,
    ToolCall,
    play,
    play_each,
    provide,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
    from pathlib import Path

    from tests.fake_models import ModelRequest, Provider, Reply

PLAIN = Scripts(sandbox="none")
COUNT = ToolCall("run_skill_script", {"name": "count-words", "script": "scripts/count.py"})
REVIEW = ToolCall("run_skill", {"name": "review", "task": "This poem."})
PATIENCE = 20
"""Seconds after which a check that waits for an event has failed."""


def load(name: str) -> ToolCall:
    return ToolCall("load_skill", {"name": name})


@dataclass(frozen=True)
class Api:
    """An API of a provider: the adapter's class, its clients, and what a run needs besides."""

    skills: Any
    open_client: Callable[..., Any]
    open_async_client: Callable[..., Any]
    options: dict[str, Any] = field(default_factory=dict)

    def arguments(self, said: str | list[Any], **more: Any) -> dict[str, Any]:
        messages = [{"role": "user", "content": said}] if isinstance(said, str) else said
        return {"model": "big", "messages": messages, **self.options, **more}

    def run(self, skills: Any, client: Any, said: str | list[Any], **more: Any) -> RunResult:
        result: RunResult = skills.run(client, **self.arguments(said, **more))
        return result

    def finish(self, skills: Any, client: Any, said: str, *, is_stream: bool, **more: Any) -> RunResult:
        """Return the result of a run, with or without a stream."""
        if not is_stream:
            return self.run(skills, client, said, **more)
        result: RunResult = list(skills.stream(client, **self.arguments(said, **more)))[-1]
        return result

    async def arun(self, skills: Any, client: Any, said: str | list[Any], **more: Any) -> RunResult:
        result: RunResult = await skills.arun(client, **self.arguments(said, **more))
        return result

    @contextmanager
    def talk(self, *replies: Reply, **more: Any) -> Iterator[tuple[Provider, Any]]:
        """A model that makes these moves, and a client of it."""
        with provide(play(*replies)) as provider, self.open_client(provider.url, **more) as client:
            yield provider, client

    def talk_async(
        self, script: Callable[[Any], Reply], main: Callable[[Provider, Any], Coroutine[Any, Any, None]]
    ) -> None:
        """Run ``main`` with a model and an asynchronous client of it."""

        async def run(provider: Provider) -> None:
            async with self.open_async_client(provider.url) as client:
                await main(provider, client)

        with provide(script) as provider:
            asyncio.run(run(provider))


def follow(result: RunResult, said: str) -> list[Any]:
    """Return the messages of the next run of a conversation, after they were stored somewhere."""
    return [*json.loads(json.dumps(result.messages)), {"role": "user", "content": said}]


def make_tool(name: str, function: Callable[..., Any], *parameters: str) -> HostTool:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return HostTool(name, f"The tool {name}.", schema, function)


LOOK_UP = make_tool("look_up", lambda word: f"{word} is a fact", "word")
DELETE = make_tool("delete_all", lambda: "deleted")


# -- skills ------------------------------------------------------------------------------------------------------------


def check_one_line(api: Api, library: Path) -> None:
    with api.talk(load("greet"), Text("Good morning!")) as (provider, client):
        result = api.run(api.skills(library), client, "hello")
    assert (result.text, result.stop) == ("Good morning!", "done")
    assert "Greets people" in provider.requests[0].system
    assert "load_skill" in provider.requests[0].tools
    assert "Say hello as references/forms.md says." in provider.requests[1].results[0]
    assert result.usage == ((INPUT_TOKENS, OUTPUT_TOKENS, CACHED_TOKENS, ""),) * 2


def check_listing(api: Api, library: Path) -> None:
    skills = api.skills(library)
    with api.talk(load("greet"), Text("One."), load("picture"), Text("Two.")) as (provider, client):
        first = api.run(skills, client, "hello", conversation="c", system="Be kind.")
        api.run(skills, client, follow(first, "and now?"), conversation="c", system="Be kind.")
        api.run(api.skills(library), client, follow(first, "and then?"), saved=first.saved, system="Be kind.")
    texts = {request.system for request in provider.requests}
    assert len(texts) == 1
    (text,) = texts
    assert text.startswith("Be kind.")
    assert all(request.text.count("Greets people") == 1 for request in provider.requests)
    assert "Greets people" not in json.dumps(first.messages)


def check_own_sessions(api: Api, library: Path) -> None:
    skills = api.skills(library)
    with api.talk(load("greet"), Text("One."), Text("Two."), load("picture"), Text("Three.")) as (_, client):
        first = api.run(skills, client, "hello", conversation="mine")
        api.run(skills, client, "hello", conversation="yours")
        api.run(skills, client, follow(first, "a picture"), conversation="mine")
    assert skills.session("mine").active_skills == ("greet", "picture")
    assert skills.session("yours").active_skills == ()


def check_runs_without_key(api: Api, library: Path) -> None:
    skills = api.skills(library)
    unload = ToolCall("unload_skill", {"name": "greet"})
    with api.talk(load("greet"), Text("One."), unload, Text("Two.")) as (provider, client):
        first = api.run(skills, client, "hello")
        api.run(skills, client, follow(first, "stop greeting"))
        api.run(skills, client, "hello")
    assert "not active" in provider.requests[3].results[-1]
    assert len(skills.conversations) == 0


def check_two_users(api: Api, library: Path) -> None:
    both = threading.Barrier(2)  # each request of one waits for the same request of the other

    def meet(move: Any) -> Slow:
        return Slow(move, lambda: both.wait(PATIENCE))

    script = play_each(
        ann=play(meet(load("greet")), meet(Text("For Ann."))), bob=play(meet(load("careful")), meet(Text("For Bob.")))
    )
    skills = api.skills(library)

    async def main(provider: Provider, client: Any) -> None:
        runs = [api.arun(skills, client, f"hello from {user}", conversation=user) for user in ("ann", "bob")]
        ann, bob = await asyncio.gather(*runs)
        assert (ann.text, bob.text) == ("For Ann.", "For Bob.")
        assert "careful" not in json.dumps(ann.messages)
        assert "greet" not in json.dumps(bob.messages)
        assert len(provider.requests) == 4

    api.talk_async(script, main)
    assert skills.session("ann").active_skills == ("greet",)
    assert skills.session("bob").active_skills == ("careful",)


def check_scopes(api: Api, library: Path) -> None:
    skills = api.skills(library, scope=allow_by_user(RIGHTS, lambda request: request["user"]))
    with api.talk(load("picture"), Text("One."), load("picture"), Text("Two.")) as (provider, client):
        for user in RIGHTS:
            api.run(skills, client, "hello", conversation=user, context={"user": user})
        with pytest.raises(TypeError):  # whoever forgets the context is nobody
            api.run(skills, client, "hello", conversation="ann")
    first, refused, other, loaded = provider.requests
    check_listings(first.system, other.system)
    assert "unknown skill 'picture'" in refused.results[0]
    assert "Look at assets/pixel.png." in loaded.results[0]


def check_needs(api: Api, library: Path) -> None:
    tool = HostTool("look_up", "Looks up.", {"type": "object", "properties": {}}, lambda: "found")
    with api.talk(Text("One.")) as (provider, client):
        api.run(api.skills(add_needy_skills(library)), client, "hello", tools=[tool])
    check_needy_skills(provider.requests[0].system)


def check_tools_of_the_host(api: Api, library: Path) -> None:
    """Bad arguments and unknown tools are answered for the model; what the provider runs goes to it as it is."""
    made: list[str] = []

    def look_up(word: str, count: int = 1) -> str:
        made.append(word * count)
        return "found"

    properties = {"word": {"type": "string"}, "count": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["word"], "additionalProperties": False}
    tool = HostTool("look_up", "Looks up.", schema, look_up)
    calls: list[dict[str, Any]] = [{}, {"word": 1}, {"word": "a", "count": "2", "more": 0}, {"word": "a"}]
    search = {"type": "web_search", "name": "web_search"}
    moves = [ToolCall("look_up", arguments) for arguments in calls]
    with api.talk(*moves, ToolCall("nothing", {}), Text("Done.")) as (provider, client):
        result = api.run(api.skills(library), client, "hello", tools=[tool, search])
    said = [request.results[-1] for request in provider.requests[1:]]
    assert result.text == "Done."
    assert "look_up: word is required" in said[0]
    assert "look_up: word must be of type string" in said[1]
    assert "count must be of type integer; more is not a parameter" in said[2]
    assert ("found" in said[3], made) == (True, ["a"])
    assert "unknown tool: nothing; known: load_skill" in said[4]
    assert "look_up" in said[4]
    assert all(search in request.body["tools"] for request in provider.requests)


def check_summarized_messages(api: Api, library: Path) -> None:
    """A host summarizes its messages: the model gets the skills that it had loaded again."""
    skills = api.skills(library)
    with api.talk(load("greet"), Text("One."), Text("Two."), Text("Three.")) as (provider, client):
        first = api.run(skills, client, "hello", conversation="c")
        api.run(skills, client, follow(first, "and now?"), conversation="c")
        api.run(skills, client, "In short: the user was greeted. Go on.", conversation="c")
    systems = [request.system for request in provider.requests]
    assert [system.count("Say hello as references/forms.md says.") for system in systems] == [0, 0, 0, 1]


def check_checkpoint(api: Api, library: Path) -> None:
    with api.talk(load("greet"), Text("One."), Text("Two.")) as (provider, client):
        first = api.run(api.skills(library), client, "hello", conversation="c")
        skills = api.skills(library)  # as in another process: nothing but the messages and the save is left
        api.run(skills, client, follow(first, "and?"), conversation="c", saved=first.saved)
        with pytest.raises(SourceError, match="saved"):
            api.run(skills, client, "hello", saved="{}")
    assert skills.session("c").active_skills == ("greet",)
    assert provider.requests[2].system == provider.requests[0].system


def check_plain_tools(api: Api, library: Path) -> None:
    read = ToolCall("read_skill_file", {"name": "greet", "path": "references/forms.md"})
    moves = Calls((load("greet"), read, ToolCall("look_up", {"word": "moon"})), "I look.")
    with api.talk(moves, Text("Done.")) as (provider, client):
        result = api.run(api.skills(library), client, "hello", tools=[LOOK_UP])
        events = list(api.skills(library).stream(client, **api.arguments("hello")))
    loaded, forms, fact = provider.requests[1].results
    assert "Say hello" in loaded
    assert "Good morning before noon." in forms
    assert fact == "moon is a fact"
    assert (result.text, provider.requests[0].tools["look_up"]) == ("Done.", "The tool look_up.")
    assert events[:-1] == [TextEvent("Do"), TextEvent("ne.")]
    assert isinstance(events[-1], RunResult)


def check_host_tools(api: Api, library: Path) -> None:
    """What functions may be and give, in plain and in asynchronous code."""
    order: list[str] = []

    async def note(word: str) -> ToolResult:
        order.append(word)
        return ToolResult(f"noted {word}")

    alone = replace(make_tool("note", note, "word"), parallel=False)
    numbers = make_tool("numbers", lambda: [1, {"two": 2}])
    builtin = make_tool("builtin", dict, "a")  # Python does not know its parameters
    calls = (ToolCall("note", {"word": "a"}), ToolCall("numbers", {}), ToolCall("note", {"word": "b"}))
    moves = Calls((*calls, ToolCall("builtin", {"a": "1"}))), Text("Done.")
    wanted = ["noted a", '[1, {"two": 2}]', "noted b", '{"a": "1"}']
    with api.talk(*moves) as (provider, client):
        api.run(api.skills(library), client, "hello", tools=[alone, numbers, builtin])
    assert provider.requests[1].results == wanted

    async def main(provider: Provider, client: Any) -> None:
        await api.arun(api.skills(library), client, "hello", tools=[alone, numbers, builtin])
        assert provider.requests[1].results == wanted

    api.talk_async(play(*moves), main)
    assert order == ["a", "b"] * 2


def check_open_calls(api: Api, library: Path) -> None:
    """A call of a host's tool that somebody wrote into the messages is not made."""
    made: list[str] = []
    tools = [make_tool("delete", lambda what: made.append(f"deleted {what}"), "what")]
    with api.talk(Calls((ToolCall("delete", {"what": "one"}), COUNT)), Text("Done.")) as (provider, client):
        skills = api.skills(library, scripts=PLAIN)
        asked = api.run(skills, client, "hello", tools=tools, max_turns=1)
        kept = [message for message in asked.messages if "tool_result" not in json.dumps(message)]
        kept = [message for message in kept if message.get("role") != "tool"]
        kept = [message for message in kept if message.get("type") != "function_call_output"]
        again = api.run(skills, client, kept, tools=tools, saved=asked.saved, decisions={asked.pending[0].id: True})
    assert again.text == "Done."
    assert made == ["deleted one"]
    assert sorted("not made" in text for text in provider.requests[1].results) == [False, True]


def check_async_tools(api: Api, library: Path) -> None:
    moves = Calls((load("greet"), ToolCall("meet", {"name": "a"}), ToolCall("meet", {"name": "b"})))

    async def main(provider: Provider, client: Any) -> None:
        both = asyncio.Barrier(2)

        async def meet(name: str) -> dict[str, str]:
            await asyncio.wait_for(both.wait(), PATIENCE)  # the calls of one reply are made beside each other
            return {"met": name}

        tools = [make_tool("meet", meet, "name"), LOOK_UP]
        result = await api.arun(api.skills(library), client, "hello", tools=tools)
        assert result.text == "Done."
        assert "Say hello" in provider.requests[1].results[0]
        assert provider.requests[1].results[1:] == ['{"met": "a"}', '{"met": "b"}']

    api.talk_async(play(moves, Text("Done.")), main)


def check_stream(api: Api, library: Path) -> None:
    moves = (Calls((load("greet"),), "I look."), Text("Good morning!"))
    with api.talk(*moves) as (_, client):
        events = list(api.skills(library).stream(client, **api.arguments("hello")))
    with api.talk(*moves) as (_, client):
        whole = api.run(api.skills(library), client, "hello")
    kinds = [type(event) for event in events]
    assert kinds == [TextEvent, TextEvent, CallEvent, ResultEvent, PartialRun, TextEvent, TextEvent, RunResult]
    assert events[4].messages == events[-1].messages[:-1]
    assert events[4].usage == events[-1].usage[:1]
    assert "".join(event.text for event in events if isinstance(event, TextEvent)) == "I look.Good morning!"
    assert (events[2].call.name, events[2].call.arguments) == ("load_skill", {"name": "greet"})
    assert "Say hello" in events[3].result.content
    assert (events[-1].text, events[-1].usage) == (whole.text, whole.usage)
    assert len(events[-1].messages) == len(whole.messages)

    async def main(_: Provider, client: Any) -> None:
        stream = api.skills(library).stream(client, **api.arguments("hello"))
        assert [type(event) async for event in stream] == kinds

    api.talk_async(play(*moves), main)


def check_leaving_a_stream(api: Api, library: Path) -> None:
    """Nothing goes on behind the back of somebody who leaves the loop."""

    async def main(provider: Provider, client: Any) -> None:
        events = aiter(api.skills(library).stream(client, **api.arguments("hello")))
        assert await anext(events) == TextEvent("slow")
        await events.aclose()
        assert await asyncio.to_thread(provider.hung_up.wait, PATIENCE)

    # So many events that every API has sent the first half of the text.
    events = {"Skills.messages": 3, "Skills.chat": 2, "Skills.responses": 4}
    api.talk_async(play(Slow(Text("slow slow"), events=events[name_of(api)])), main)


def name_of(api: Api) -> str:
    return f"Skills.{api.options.get('api', 'messages')}"


ERRORS = [
    (ToolCall("load_skill", {"name": "gret"}), "gret"),
    (ToolCall("load_skill", {}), "name is required"),
    (ToolCall("load_skill", '{"odd'), "not JSON"),
    (ToolCall("load_skill", "[1]"), "expected an object"),
    (ToolCall("read_skill_file", {"name": "greet", "path": "references/no.md"}), "references/no.md"),
    (ToolCall("no_tool", {}), "unknown tool: no_tool; known: load_skill"),
    (ToolCall("look_up", '{"odd'), "not JSON"),
    (ToolCall("look_up", {"wrod": "moon"}), "word is required"),
    (ToolCall("fail", {}), "fail failed: the host could not run it"),
]


def check_errors(api: Api, library: Path, *, is_stream: bool) -> None:
    def fail() -> str:
        raise ValueError("the password is 1234")

    tools = [LOOK_UP, make_tool("fail", fail)]
    with api.talk(Calls(tuple(call for call, _ in ERRORS)), Text("Done.")) as (provider, client):
        result = api.finish(api.skills(library), client, "hello", is_stream=is_stream, tools=tools)
    assert result.text == "Done."
    for said, (_, wanted) in zip(provider.requests[1].results, ERRORS, strict=True):
        assert wanted in said
    assert "1234" not in provider.requests[1].text
    assert '{"odd' not in json.dumps(provider.requests[1].body).replace("\\", "")  # providers parse what goes back


# -- approval ----------------------------------------------------------------------------------------------------------


def check_approval(api: Api, library: Path) -> None:
    skills = api.skills(library, scripts=PLAIN)
    with api.talk(Calls((load("greet"), COUNT, load("picture"))), Text("Counted.")) as (provider, client):
        asked = api.run(skills, client, "count", conversation="c")
        (call,) = asked.pending
        assert (asked.stop, call.name, len(provider.requests)) == ("pending", "run_skill_script", 1)
        assert call.request.to_dict()["script"] == "scripts/count.py"
        assert call.request.digest in str(call.request)
        again = api.run(skills, client, asked.messages, conversation="c")  # nobody has decided: the same question
        assert ([one.id for one in again.pending], len(provider.requests)) == ([call.id], 1)
        result = api.run(skills, client, follow(asked, "hurry"), conversation="c", decisions={call.id: True})
    assert (result.text, result.stop) == ("Counted.", "done")
    results = provider.requests[1].results
    assert len(results) == 3
    assert sum("0 words" in text for text in results) == 1
    assert provider.requests[1].said == "hurry"
    assert provider.requests[1].system == provider.requests[0].system


def check_approval_elsewhere(api: Api, library: Path) -> None:
    """Another process decides: it has the messages and the save."""
    with api.talk(COUNT, Text("Counted.")) as (provider, client):
        asked = api.run(api.skills(library, scripts=PLAIN), client, "count")
        stored = json.loads(json.dumps(asked.messages))
        decisions = {asked.pending[0].id: True}
        other = api.skills(library, scripts=PLAIN)
        with pytest.raises(NotTrustedError, match="nobody waits for a decision"):  # without the save nobody was asked
            api.run(other, client, stored, decisions=decisions)
        assert api.run(other, client, stored, decisions=decisions, saved=asked.saved).text == "Counted."
    assert "0 words" in provider.requests[1].results[0]


def check_refusal_of_a_call(api: Api, library: Path) -> None:
    (library / "count-words/scripts/count.py").write_text("open('ran', 'w')\n")
    skills = api.skills(library, scripts=PLAIN)
    with api.talk(COUNT, COUNT, Text("Well.")) as (provider, client):
        asked = api.run(skills, client, "count", conversation="c")
        result = api.run(skills, client, asked.messages, conversation="c", decisions={asked.pending[0].id: False})
    assert result.text == "Well."
    assert "said no" in provider.requests[1].results[0]
    assert "said no" in provider.requests[2].results[1]  # the same call again is refused, and nobody is asked
    assert not list(library.rglob("ran"))


def check_decisions_about_nothing(api: Api, library: Path) -> None:
    """A decision that is about no call which waits: nothing is done, not even what other decisions are about."""
    (library / "count-words/scripts/count.py").write_text("open('ran', 'w')\n")
    skills = api.skills(library, scripts=PLAIN)
    with api.talk(COUNT, Text("Counted.")) as (provider, client):
        asked = api.run(skills, client, "count", conversation="c")
        question = asked.pending[0].id
        for wrong in ("", "call", f"{question}:1", question.partition(":")[0]):
            for decision in (True, False):
                decisions = {question: True, wrong: decision}
                with pytest.raises(NotTrustedError) as told:
                    api.run(skills, client, asked.messages, conversation="c", decisions=decisions)
                assert told.value.code == "no-question"
        with pytest.raises(NotTrustedError):  # these messages have no call that waits
            api.run(skills, client, "count", conversation="c", decisions={question: False})
        assert (len(provider.requests), list(library.rglob("ran"))) == (1, [])
        assert api.run(skills, client, asked.messages, conversation="c", decisions={question: True}).text == "Counted."
        with pytest.raises(NotTrustedError):  # its call has ended
            api.run(skills, client, asked.messages, conversation="c", decisions={question: True})


def check_no_before_yes(api: Api, library: Path) -> None:
    """Of two equal calls of one reply one is allowed and one refused: neither runs, whichever comes first."""
    for decisions in ((True, False), (False, True)):
        skills = api.skills(library, scripts=PLAIN)
        with api.talk(Calls((COUNT, COUNT)), Text("Well.")) as (provider, client):
            asked = api.run(skills, client, "count")
            chosen = {call.id: decision for call, decision in zip(asked.pending, decisions, strict=True)}
            api.run(skills, client, asked.messages, saved=asked.saved, decisions=chosen)
        assert ["said no" in text for text in provider.requests[1].results] == [True, True]


def check_changed_files(api: Api, library: Path) -> None:
    skills = api.skills(library, scripts=PLAIN)
    with api.talk(COUNT, Text("Counted.")) as (provider, client):
        asked = api.run(skills, client, "count", conversation="c")
        (library / "count-words/scripts/count.py").write_text("print('other')\n")
        decisions = {asked.pending[0].id: True}
        again = api.run(skills, client, asked.messages, conversation="c", decisions=decisions)
        assert again.pending[0].request.digest != asked.pending[0].request.digest
        assert len(provider.requests) == 1
        # The same answer once more, as of a client that repeats its request, is not an answer to the new question.
        with pytest.raises(NotTrustedError, match="nobody waits for a decision"):
            api.run(skills, client, again.messages, conversation="c", decisions=decisions)
        decisions = {again.pending[0].id: True}
        assert api.run(skills, client, again.messages, conversation="c", decisions=decisions).text == "Counted."
    assert "other" in provider.requests[1].results[0]


def check_no_grant(api: Api, library: Path, folder: Path) -> None:
    trust = Trust(folder / "trust.json", policy="defer")
    skills = api.skills(library, scripts=PLAIN, trust=trust)
    with api.talk(COUNT, Text("Counted."), COUNT) as (_, client):
        asked = api.run(skills, client, "count", conversation="c")
        api.run(skills, client, asked.messages, conversation="c", decisions={asked.pending[0].id: True})
        assert trust.grants() == ()
        assert api.run(skills, client, "count", conversation="other").stop == "pending"


class OrdersHost:
    """A host that keeps the last result, as a web server does, and nothing else from one worker to the next."""

    def __init__(self, api: Api, library: Path, client: Any) -> None:
        self._api, self._library, self._client = api, library, client
        self._said, self._saved, self._question = 0, "", ""
        self._messages: list[Any] = []
        self.restart()

    def restart(self) -> None:
        self._skills = self._api.skills(self._library, scripts=UNBOXED)

    async def ask(self) -> bool:
        self._messages = [*self._messages, {"role": "user", "content": "count"}]
        return await self.retry()

    async def decide(self, *, yes: bool) -> bool:
        return await self._run(decisions={self._question: yes})

    async def retry(self) -> bool:
        return await self._run()

    async def _run(self, **more: Any) -> bool:
        where = {"conversation": "c", "saved": self._saved}
        result = await self._api.arun(self._skills, self._client, self._messages, **where, **more)
        self._messages, self._saved = json.loads(json.dumps(result.messages)), result.saved
        self._question = result.pending[0].id if result.pending else ""
        return bool(result.pending)


def check_approval_orders(api: Api, library: Path) -> None:
    def answer(request: ModelRequest) -> Reply:
        last = (request.body.get("messages") or request.body["input"])[-1]
        return ToolCall(*RUN_COUNT) if last.get("content") == "count" else Text("Done.")

    with provide(answer) as provider:

        @asynccontextmanager
        async def open_host() -> AsyncIterator[OrdersHost]:
            async with api.open_async_client(provider.url) as client:
                yield OrdersHost(api, library, client)

        check_orders(library, open_host)


# -- child agents ------------------------------------------------------------------------------------------------------


def check_fork(api: Api, library: Path) -> None:
    calls = Calls((ToolCall("look_up", {"word": "moon"}), ToolCall("delete_all", {})))
    skills = api.skills(library)
    with api.talk(REVIEW, calls, Text("A fine poem."), Text("Done.")) as (provider, client):
        result = api.run(skills, client, "review", tools=[LOOK_UP, DELETE], system="Be kind.")
    _, child, last, parent = provider.requests
    assert [request.body["model"] for request in provider.requests] == ["big", "small", "small", "big"]
    assert "look_up" in child.tools
    assert not {"delete_all", "run_skill"} & child.tools.keys()
    assert "Review the text." in child.said
    assert "This poem." in child.said
    assert child.system.startswith("You carry out the skill")
    assert child.system == last.system
    assert last.results[0] == "moon is a fact"
    assert "unknown tool: delete_all" in last.results[1]
    assert parent.results == ["A fine poem."]
    assert "moon" not in json.dumps(result.messages)
    assert [usage.skill for usage in result.usage] == ["", "review", "review", ""]


def check_events_of_a_child(api: Api, library: Path) -> None:
    """A stream has what happens in a child agent, between the call that began it and its result."""
    moves = (REVIEW, ToolCall("look_up", {"word": "moon"}), Text("A fine poem."), Text("Done."))

    def read(events: list[Any]) -> None:
        begin = next(place for place, event in enumerate(events) if isinstance(event, CallEvent))
        inside = [event for event in events if isinstance(event, ChildEvent)]
        assert events[begin + 1 : begin + 1 + len(inside)] == inside
        assert isinstance(events[begin + 1 + len(inside)], ResultEvent)
        assert {event.skill for event in inside} == {"review"}
        kinds = [type(event.event) for event in inside]
        assert kinds == [CallEvent, ResultEvent, TextEvent, TextEvent]
        said = [event.event.text for event in inside if isinstance(event.event, TextEvent)]
        assert "".join(said) == "A fine poem."
        assert events[-1].text == "Done."

    with api.talk(*moves) as (_, client):
        read(list(api.skills(library).stream(client, **api.arguments("review"), tools=[LOOK_UP])))

    async def main(_: Provider, client: Any) -> None:
        stream = api.skills(library).stream(client, **api.arguments("review"), tools=[LOOK_UP])
        read([event async for event in stream])

    api.talk_async(play(*moves), main)


def check_async_fork(api: Api, library: Path) -> None:
    async def main(provider: Provider, client: Any) -> None:
        result = await api.arun(api.skills(library), client, "review", tools=[LOOK_UP])
        assert result.text == "Done."
        assert provider.requests[-1].results == ["A fine poem."]

    api.talk_async(play(REVIEW, ToolCall("look_up", {"word": "moon"}), Text("A fine poem."), Text("Done.")), main)


def check_unknown_model(api: Api, library: Path) -> None:
    """A provider that does not have the skill's model: the child has its parent's."""
    moves = (REVIEW, Failure(404), Text("A fine poem."), Text("Done."))
    with api.talk(*moves) as (provider, client):
        assert api.run(api.skills(library), client, "review").text == "Done."
    assert [request.body["model"] for request in provider.requests] == ["big", "small", "big", "big"]

    async def main(provider: Provider, client: Any) -> None:
        assert (await api.arun(api.skills(library), client, "review")).text == "Done."
        assert provider.requests[-1].results == ["A fine poem."]

    api.talk_async(play(*moves), main)


def check_model_that_goes_away(api: Api, library: Path) -> None:
    """A child that has made calls is not run again with another model: they would be made twice."""
    looked_up: list[str] = []

    def note(word: str) -> None:
        looked_up.append(word)

    look_up = make_tool("look_up", note, "word")
    moves = (REVIEW, ToolCall("look_up", {"word": "moon"}), Failure(404), Text("Sorry."))
    with api.talk(*moves) as (provider, client):
        assert api.run(api.skills(library), client, "review", tools=[look_up]).text == "Sorry."
    assert looked_up == ["moon"]
    assert "failed" in provider.requests[-1].results[0]


def check_bounded_child(api: Api, library: Path) -> None:
    """A child makes only the calls that its skill allows, and nobody is asked on its behalf."""
    text = (library / "review/SKILL.md").read_text()
    (library / "review/SKILL.md").write_text(text.replace("look_up\n---", "Bash(git:*) run_skill_script\n---"))
    bash = make_tool("Bash", lambda command: f"ran {command}", "command")
    calls = (ToolCall("Bash", {"command": "git log"}), ToolCall("Bash", {"command": "rm -r ."}), COUNT)
    with api.talk(REVIEW, Calls(calls), Text("Read."), Text("Done.")) as (provider, client):
        result = api.run(api.skills(library, scripts=PLAIN), client, "review", tools=[bash])
    assert result.stop == "done"
    allowed, refused, asked = provider.requests[2].results
    assert allowed == "ran git log"
    assert "does not allow this call of Bash" in refused
    assert "count-words" in asked
    assert "0 words" not in asked


def check_failing_child(api: Api, library: Path) -> None:
    """What goes wrong in a child is a result for its parent."""
    skills = api.skills(library)
    for move, said in (
        (Failure(500), "the host could not run it"),
        (Text("No.", "refusal"), "gave no answer"),
        (load("greet"), "no answer after all of its turns"),
    ):
        moves = (REVIEW, move, move, Text("Done.")) if isinstance(move, ToolCall) else (REVIEW, move, Text("Done."))
        with api.talk(*moves) as (provider, client):
            assert api.run(skills, client, "review", max_turns=2).text == "Done."
        assert said in provider.requests[-1].results[-1]


def check_cancelled_child(api: Api, library: Path) -> None:
    async def main(provider: Provider, client: Any) -> None:
        run = asyncio.create_task(api.arun(api.skills(library), client, "review"))
        assert await asyncio.to_thread(provider.asked.wait, PATIENCE)
        assert provider.requests[-1].body["model"] == "small"
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert await asyncio.to_thread(provider.hung_up.wait, PATIENCE)

    api.talk_async(play(REVIEW, Slow(Text("Never."))), main)


def check_cancelled_run(api: Api, library: Path) -> None:
    skills = api.skills(library)

    async def main(provider: Provider, client: Any) -> None:
        run = asyncio.create_task(api.arun(skills, client, "hello", conversation="c"))
        assert await asyncio.to_thread(provider.asked.wait, PATIENCE)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert (await api.arun(skills, client, "again", conversation="c")).text == "Done."

    api.talk_async(play(load("greet"), Slow(Text("Never.")), load("picture"), Text("Done.")), main)
    assert skills.session("c").active_skills == ("greet", "picture")


# -- the rest of what an adapter does ----------------------------------------------------------------------------------


def check_enforce(api: Api, library: Path) -> None:
    calls = Calls((ToolCall("look_up", {"word": "moon"}), ToolCall("delete_all", {})))
    for enforce, last in ((True, "not in the allowed-tools of the active skills (careful)"), (False, "deleted")):
        with api.talk(calls, load("careful"), calls, Text("Done.")) as (provider, client):
            skills = api.skills(library, enforce=enforce)
            api.run(skills, client, "carefully", tools=[LOOK_UP, DELETE])
        before, after = provider.requests[1].results, provider.requests[3].results[-2:]
        assert before == ["moon is a fact", "deleted"]  # no skill is active yet
        assert after[0] == "moon is a fact"
        assert last in after[1]


def check_pictures(api: Api, library: Path) -> dict[str, Any]:
    """Return the body of the request that has the picture."""
    show = ToolCall("read_skill_file", {"name": "picture", "path": "assets/pixel.png"})
    with api.talk(Calls((show, load("greet"))), Text("A pixel.")) as (provider, client):
        assert api.run(api.skills(library), client, "show").text == "A pixel."
    return provider.requests[1].body


def check_spans(api: Api, library: Path) -> None:
    exporter, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    skills = api.skills(library, on_event=trace_events(tracers))
    moves = (load("greet"), REVIEW, load("picture"), Text("A fine poem."), Text("Done."))
    with api.talk(*moves) as (_, client), tracers.get_tracer("host").start_as_current_span("request"):
        api.run(skills, client, "hello")

    async def main(_: Provider, client: Any) -> None:
        with tracers.get_tracer("host").start_as_current_span("arequest"):
            await api.arun(skills, client, "hello")

    api.talk_async(play(*moves), main)
    spans = exporter.get_finished_spans()
    names = {span.context.span_id: span.name for span in spans if span.context}
    for request in ("request", "arequest"):
        inside = [span for span in spans if span.parent and names[span.parent.span_id] == request]
        active = [(span.attributes or {})["gen_ai.skill.name"] for span in inside if span.name == "skill activated"]
        assert active == ["greet", "picture"]  # the second by the child


def check_reload(api: Api, library: Path) -> None:
    with (
        live(library, every=0.01, notice="stat") as catalog,
        api.talk(Text("One."), load("fresh"), Text("Two.")) as (provider, client),
    ):
        skills = api.skills(catalog)
        first = api.run(skills, client, "hello", conversation="c")
        add_fresh_skill(library, catalog)
        api.run(skills, client, follow(first, "and now?"), conversation="c")
    assert "Is new." not in provider.requests[0].system
    assert "Is new." in provider.requests[1].system
    assert "Be new." in provider.requests[2].results[-1]


def check_selection(api: Api, folder: Path) -> None:
    for topic in ("poem", "recipe", "letter", "contract", "song", "speech", "ticket", "invoice"):
        for verb in ("review", "sort", "print", "translate", "archive"):
            place = folder / "many" / f"{topic}-{verb}"
            place.mkdir(parents=True)
            description = f"{verb.capitalize()}s a {topic}. Use when asked to {verb} a {topic}."
            (place / "SKILL.md").write_text(f"---\nname: {place.name}\ndescription: {description}\n---\nDo it.\n")
    skills = api.skills(folder / "many", selector=AutoSelector(500))
    with api.talk(Text("One."), Text("Two.")) as (provider, client):
        first = api.run(skills, client, "please review this poem", conversation="c")
        api.run(skills, client, follow(first, "now sort my recipe collection"), conversation="c")
    listed = [[line for line in one.system.splitlines() if line.startswith("<skill>")] for one in provider.requests]
    assert "poem-review" in listed[0][0]
    assert listed[1][: len(listed[0])] == listed[0]
    assert any("recipe-sort" in line for line in listed[1][len(listed[0]) :])


# -- what providers do wrong -------------------------------------------------------------------------------------------


def check_slow_model(api: Api, library: Path) -> None:
    """How long to wait is a setting of the client."""
    with api.talk(Slow(Text("Never.")), timeout=0.1) as (provider, client):
        with pytest.raises(Exception, match=r"(?i)timed out"):
            api.run(api.skills(library), client, "hello")
        assert provider.hung_up.wait(PATIENCE)


def check_endless_model(api: Api, library: Path) -> None:
    skills = api.skills(library)
    with api.talk(load("greet"), load("greet"), load("greet"), Text("At last.")) as (provider, client):
        result = api.run(skills, client, "hello", max_turns=3)
        assert (result.stop, result.text, len(provider.requests)) == ("max_turns", "", 3)
        assert api.run(skills, client, result.messages).text == "At last."  # every call has its result
    assert len(provider.requests[3].results) == 3


def check_cut_answers(api: Api, library: Path, *, is_stream: bool) -> None:
    """An answer that met the limit of tokens ends the run; a call in it is half written, and is not made."""
    skills = api.skills(library)
    half = Calls((ToolCall("load_skill", {"name": "greet"}),), "I lo", "length")
    with api.talk(half, Text("I lo", "length"), Text("Done.")) as (provider, client):
        results = []
        for said in ("hello", "hello"):
            arguments = api.arguments(said, conversation="c")
            results.append(
                list(skills.stream(client, **arguments))[-1] if is_stream else skills.run(client, **arguments)
            )
        assert [(result.stop, result.text) for result in results] == [("length", "I lo")] * 2
        assert skills.session("c").active_skills == ()
        api.run(skills, client, follow(results[0], "again"), conversation="c")
    assert "was not made" in provider.requests[2].results[0]


def check_refused_answers(api: Api, library: Path, *, is_stream: bool) -> None:
    with api.talk(Text("I will not.", "refusal")) as (_, client):
        result = api.finish(api.skills(library), client, "hello", is_stream=is_stream)
    assert (result.stop, result.text) == ("refusal", "I will not.")


def check_client_errors(api: Api, library: Path, reply: Reply, error: type[Exception], *, is_stream: bool) -> None:
    """What a client raises, the caller gets; the conversation goes on with the next run."""
    skills = api.skills(library)
    with api.talk(load("greet"), reply, load("picture"), Text("Done.")) as (_, client):
        with pytest.raises(error):
            api.finish(skills, client, "hello", is_stream=is_stream, conversation="c")
        assert api.run(skills, client, "hello", conversation="c").text == "Done."
    assert skills.session("c").active_skills == ("greet", "picture")


def find_partial(error: BaseException) -> PartialRun:
    partial: PartialRun = error.partial  # type: ignore[attr-defined]
    return partial


def check_partial_run(api: Api, library: Path, reply: Reply, *, is_stream: bool) -> None:
    """An error of the provider keeps what was done, so that the run goes on where it was and sends no mail twice."""
    sent: list[str] = []

    def send_mail(to: str) -> str:
        sent.append(to)
        return f"sent to {to}"

    send = make_tool("send_mail", send_mail, "to")
    calls = Calls((load("greet"), ToolCall("send_mail", {"to": "ann"})))
    with api.talk(calls, reply, Text("Done.")) as (provider, client):
        with pytest.raises(Exception) as told:  # noqa: PT011 - each client has errors of its own
            api.finish(api.skills(library), client, "hello", is_stream=is_stream, tools=[send])
        partial = find_partial(told.value)
        assert len(partial.usage) == 1
        skills, messages = api.skills(library), json.loads(json.dumps(partial.messages))
        result = api.run(skills, client, messages, saved=partial.saved, conversation="c", tools=[send])
    assert (result.text, sent) == ("Done.", ["ann"])
    assert provider.requests[-1].results[1] == "sent to ann"
    assert skills.session("c").active_skills == ("greet",)
    with api.talk(reply) as (_, client):
        with pytest.raises(Exception) as told:  # noqa: PT011
            api.finish(api.skills(library), client, "hello", is_stream=is_stream)
        partial = find_partial(told.value)
        assert (partial.messages, partial.usage) == (api.arguments("hello")["messages"], ())


def check_interrupted_calls(api: Api, library: Path) -> None:
    """A call that was under way when its run was cancelled has a result that says so, and is not made again."""
    made: list[str] = []

    async def main(provider: Provider, client: Any) -> None:
        began = asyncio.Event()

        async def wait(word: str) -> str:
            made.append(word)
            if word == "slow":
                began.set()
                await asyncio.Event().wait()
            return f"did {word}"

        alone = replace(make_tool("work", wait, "word"), parallel=False)
        run = asyncio.ensure_future(api.arun(api.skills(library), client, "hello", tools=[alone]))
        await wait_until(began, run)
        run.cancel()
        with pytest.raises(asyncio.CancelledError) as told:
            await run
        messages = find_partial(told.value).messages
        assert (await api.arun(api.skills(library), client, messages, tools=[alone])).text == "Done."
        first, second, third = provider.requests[-1].results
        assert first == "did quick"
        assert "may have done its work" in second
        assert "was not made" in third

    words = (ToolCall("work", {"word": word}) for word in ("quick", "slow", "later"))
    api.talk_async(play(Calls(tuple(words)), Text("Done.")), main)
    assert made == ["quick", "slow"]


def check_interrupt_from_the_keyboard(api: Api, library: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with api.talk(ToolCall("stop", {})) as (_, client), pytest.raises(KeyboardInterrupt) as told:
        api.run(api.skills(library), client, "hello", tools=[make_tool("stop", interrupt)])
    assert "may have done its work" in json.dumps(find_partial(told.value).messages)


def check_retries(api: Api, library: Path) -> None:
    replies = (Failure(429, retry_after=0.001), Failure(500, retry_after=0.001), Text("Done."))
    with api.talk(*replies, max_retries=2) as (provider, client):
        assert api.run(api.skills(library), client, "hello").text == "Done."
    assert len(provider.requests) == 3


def check_broken_stream(api: Api, library: Path) -> None:
    with api.talk(Cut(Text("Good morning"), events=3)) as (_, client):
        events = iter(api.skills(library).stream(client, **api.arguments("hello")))
        with pytest.raises(Exception, match=r"(?i)connection|closed|incomplete|stream"):
            list(events)


def check_silent_end(api: Api, library: Path) -> None:
    """A stream that ends as if all were well, before the answer is whole."""
    skills = api.skills(library)

    class Answer(list[Any]):
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    class Client:
        """A client whose every method is itself, and answers with a stream of nothing."""

        def __getattr__(self, _: str) -> Client:
            return self

        def __call__(self, **_: object) -> Answer:
            return Answer()

    with pytest.raises(FetchError, match="before the answer was whole"):
        list(skills.stream(Client(), **api.arguments("hello")))


def check_mistakes(api: Api, library: Path) -> None:
    skills = api.skills(library)
    with api.talk(Text("Done.")) as (provider, client):
        for wrong, said in (
            ({"max_turns": 0}, "at least 1"),
            ({"max_turns": "many"}, "whole number"),
            ({"model": None}, "model"),
            ({"system": ["x"]}, "system"),
            ({"messages": "hello"}, "list of messages"),
            ({"messages": {"role": "user", "content": "hello"}}, "list of messages"),
            ({"messages": ["hello"]}, "a message"),
            ({"stream": True}, "skills.stream"),
            ({"instructions": "Be kind."}, "pass system"),
            ({"tools": [DELETE, DELETE]}, "two tools are named 'delete_all'"),
            ({"tools": [make_tool("load_skill", print)]}, "two tools are named 'load_skill'"),
            ({"tools": [print]}, "HostTool"),
            ({"saved": "x"}, "saved"),
            ({"decisions": {"call_1": "always"}}, "a decision must be True or False"),
        ):
            with pytest.raises(SourceError, match=said):
                skills.run(client, **{**api.arguments("hello"), **wrong})
        with pytest.raises(SourceError, match="not asynchronous"):
            asyncio.run(api.arun(skills, client, "hello"))
    assert len(provider.requests) == 1  # that of the plain client, which nobody awaited

    async def main(provider: Provider, client: Any) -> None:
        with pytest.raises(SourceError, match="is asynchronous"):
            api.run(skills, client, "hello")
        assert provider.requests == []

    api.talk_async(play(Text("Done.")), main)


# -- pages -------------------------------------------------------------------------------------------------------------


def answer_page(request: ModelRequest) -> Reply:
    """The model of the pages, which a client reaches with no argument: it goes by what the user said last."""
    if request.system.startswith("You carry out the skill"):
        return Text("Nothing to find.")
    results = "\n".join(request.results)
    if "review" in request.said:
        call = ToolCall("run_skill", {"name": "deep-review", "task": "HEAD~1"})
        return Text("The reviewer has no findings.") if "Nothing to find." in results else call
    if "How large" in request.said:
        call = ToolCall("run_skill_script", {"name": "folder-report", "script": "scripts/sizes.py", "args": ["a.csv"]})
        return Text("Then I cannot say.") if "said no" in results else call
    if "orders.csv" in request.said:
        is_ready = "skill_content" in results and (request.tool_named("read_orders") is None or "price" in results)
        call = ToolCall("read_orders", {"lines": 2}) if "skill_content" in results else load("csv-report")
        return Text("Three columns.") if is_ready else call
    return Text("You are welcome.")
