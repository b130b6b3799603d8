"""A run of the agent: what it does, what it tells, how it is bounded, and what a provider's faults do to it."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import socket
from itertools import repeat
from typing import TYPE_CHECKING

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

import prowess
from prowess.agent.api_keys import KeyFilter
from prowess.agent.models import explain_failure, make_model
from prowess.agent.task_run import TaskOptions, run_task
from prowess.agent.transcript import Transcript
from tests.agent.runs import Answering, Scene, call, script
from tests.fake_models import Calls, Cut, Failure, Raw, Slow, Text, ToolCall, play, provide
from tests.sandbox_support import require_sandbox
from tests.web_sites import Names

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_ai.models import Model

    from prowess.conversation.acting.trust import AskAnswer
    from tests.fake_models import Provider
    from tests.model_moves import ModelRequest, Reply


def loopback(provider: Provider) -> Model:
    return make_model("tiny", f"{provider.url}/v1")


def test_task_is_done_with_a_skill_its_file_and_tokens_of_each_turn(scene: Scene) -> None:
    turns = (
        call("load_skill", name="greet"),
        call("read_skill_file", name="greet", path="references/forms.md"),
        "Good morning.",
    )
    result = scene.run(script(*turns), "say hello")
    assert (result.status, result.text, result.error) == ("done", "Good morning.", None)
    assert (result.skills_loaded, result.files_read) == (("greet",), (("greet", "references/forms.md"),))
    assert [record.tool for record in result.calls] == ["load_skill", "read_skill_file"]
    assert len(result.turns) == 3
    assert result.turns[0].sent < result.turns[1].sent < result.turns[2].sent
    assert result.tokens.sent == sum(turn.sent for turn in result.turns)
    kinds = [event.kind for event in scene.events]
    assert (kinds[0], kinds[-1]) == ("start", "end")
    assert "".join(detail["text"] for detail in scene.told("text")) == "Good morning."


def test_skills_are_in_the_system_text_and_chosen_for_the_task(scene: Scene) -> None:
    with provide(play(Text("ok"))) as provider:
        scene.run(loopback(provider), "say hello")
    (request,) = provider.requests
    assert "greet" in request.system
    assert {"Read", "Write", "Bash", "load_skill"} <= set(request.tools)
    assert request.said == "say hello"


@pytest.mark.parametrize("name", ["anthropic:claude-sonnet-5-5", "openai:gpt-5.2"])
def test_clients_of_both_providers_do_the_task(scene: Scene, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with provide(play(ToolCall("load_skill", {"name": "greet"}), Text("Hello."))) as provider:
        for variable, value in (
            *(("ANTHROPIC_API_KEY", "k"), ("OPENAI_API_KEY", "k")),
            *(("ANTHROPIC_BASE_URL", provider.url), ("OPENAI_BASE_URL", f"{provider.url}/v1")),
        ):
            monkeypatch.setenv(variable, value)
        result = scene.run(make_model(name), "say hello")
    assert (result.status, result.text, result.skills_loaded) == ("done", "Hello.", ("greet",))
    assert all("greet" in request.system for request in provider.requests)
    assert "Say hello" in provider.requests[1].results[0]
    # Anthropic caches only what it is asked to cache.
    assert ("cache_control" in str(provider.requests[1].body)) == name.startswith("anthropic")


def test_script_runs_after_a_yes_and_the_person_sees_its_digest(scene: Scene) -> None:
    require_sandbox()
    person = Answering()
    turns = (
        call("load_skill", name="count-words"),
        call("run_skill_script", name="count-words", script="scripts/count.py", args=["a", "b"]),
        "Two.",
    )
    result = scene.run(script(*turns), person=person)
    assert result.scripts_run == (("count-words", "scripts/count.py", 0),)
    assert "2 words" in scene.results["run_skill_script"]
    (request,) = person.requests
    assert (request.script, request.arguments) == ("scripts/count.py", ("a", "b"))
    assert request.digest == prowess.scan(scene.skills)["count-words"].digest()
    assert prowess.Trust().grants() == ()


def test_person_is_asked_about_each_of_two_equal_scripts_and_a_no_counts(scene: Scene) -> None:
    class Changing(Answering):
        async def ask_trust(self, request: prowess.TrustRequest) -> AskAnswer:
            self.trust = not self.requests
            return await super().ask_trust(request)

    run, person = call("run_skill_script", name="count-words", script="scripts/count.py"), Changing()
    result = scene.run(script(run, run, "Well."), person=person, sandbox="none")
    assert (len(person.requests), len(result.scripts_run)) == (2, 1)
    assert "said no" in scene.results["run_skill_script"]


def test_answer_always_is_a_grant_and_no_runs_nothing(scene: Scene) -> None:
    run = call("run_skill_script", name="count-words", script="scripts/count.py")
    refused = scene.run(script(run, "Well."), person=Answering(trust=False), sandbox="none")
    assert (refused.status, refused.scripts_run, refused.calls[0].is_error) == ("done", (), True)
    scene.run(script(run, "Well."), person=Answering(trust="always"), sandbox="none")
    assert [grant.name for grant in prowess.Trust().grants()] == ["count-words"]
    # What is granted runs without anybody to ask.
    granted = scene.run(script(run, "Well."), sandbox="none", trust="granted")
    assert granted.scripts_run == (("count-words", "scripts/count.py", 0),)
    never = scene.run(script(run, "Well."), sandbox="none", trust="never")
    assert never.scripts_run == ()


def test_without_anybody_to_ask_nothing_waits_and_everything_is_refused(scene: Scene) -> None:
    turns = (
        call("Write", path="a.txt", content="x"),
        call("Read", path="a.txt"),
        call("Bash", command="true"),
        call("run_skill_script", name="count-words", script="scripts/count.py"),
        "I could not.",
    )
    result = scene.run(script(*turns))
    assert result.status == "done"
    assert all(record.is_error for record in result.calls)
    assert not (scene.work / "a.txt").exists()
    assert "nobody can be asked here" in scene.results["Write"]
    assert {detail["by"] for detail in scene.told("decision")} == {"nobody"}


def test_fork_is_a_child_agent_whose_answer_alone_comes_back(scene: Scene) -> None:
    with provide(
        play(ToolCall("run_skill", {"name": "review", "task": "my text"}), Text("It is fine."), Text("Reviewed."))
    ) as provider:
        result = scene.run(loopback(provider))
    assert (result.text, result.forks) == ("Reviewed.", ("review",))
    child, after = provider.requests[1:]
    assert "my text" in child.said
    assert not {"Read", "Write", "Bash"} & set(child.tools)  # the skill allows another tool alone
    assert "It is fine." in after.results[-1]
    assert result.tokens.sent > sum(turn.sent for turn in result.turns)  # those of the child count


def add_kid(scene: Scene, model: str) -> ToolCall:
    """Write a skill that asks for a model; return the call that runs it as a child agent."""
    (scene.skills / "kid").mkdir()
    head = f"name: kid\ndescription: Helps.\ncontext: fork\nmodel: {model}"
    (scene.skills / "kid/SKILL.md").write_text(f"---\n{head}\n---\nHelp.\n")
    return ToolCall("run_skill", {"name": "kid"})


def test_skill_cannot_send_the_task_to_another_provider(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    fork = add_kid(scene, "openai:gpt-5.2")
    with provide(play(Text("Sent elsewhere."))) as other, provide(play(fork, Text("Here."), Text("Done."))) as own:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{other.url}/v1")
        assert scene.run(loopback(own)).text == "Done."
        assert (len(own.requests), len(other.requests)) == (3, 0)
    # Another model of the provider that the person has chosen is the skill's to name.
    with provide(play(fork, Text("Here."), Text("Done."))) as own:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{own.url}/v1")
        assert scene.run(make_model("openai:gpt-5")).text == "Done."
        assert [request.body["model"] for request in own.requests] == ["gpt-5", "gpt-5.2", "gpt-5"]


@pytest.mark.parametrize("host", ["openai", "anthropic"])
def test_model_of_a_skill_never_leaves_the_base_url(scene: Scene, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """A gateway may be called as a provider is: its host must not pass for that provider."""
    fork = add_kid(scene, f"{host}:gpt-5.2")
    with provide(play(Text("Sent elsewhere."))) as other, provide(play(fork, Text("Here."), Text("Done."))) as own:
        monkeypatch.setattr(socket, "getaddrinfo", Names({host: ["127.0.0.1"]}).getaddrinfo)
        for name in ("OPENAI", "ANTHROPIC"):
            monkeypatch.setenv(f"{name}_API_KEY", "secret-of-the-user")
            monkeypatch.setenv(f"{name}_BASE_URL", f"{other.url}/v1")
        port = own.url.rpartition(":")[2]
        result = scene.run(make_model("tiny", f"http://{host}:{port}/v1"))
        assert (result.text, len(own.requests), len(other.requests)) == ("Done.", 3, 0)
        assert [request.body["model"] for request in own.requests] == ["tiny"] * 3


def test_other_model_of_a_skill_keeps_the_address_and_the_key_of_the_run(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork = add_kid(scene, "openai:gpt-5.2")
    with provide(play(Text("Sent elsewhere."))) as other, provide(play(fork, Text("Here."), Text("Done."))) as own:
        monkeypatch.setenv("OPENAI_API_KEY", "secret-of-the-user")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{other.url}/v1")
        model = OpenAIResponsesModel("gpt-5", provider=OpenAIProvider(base_url=f"{own.url}/v1", api_key="mine"))
        assert scene.run(model).text == "Done."
        assert [request.body["model"] for request in own.requests] == ["gpt-5", "gpt-5.2", "gpt-5"]
        assert other.requests == []


def test_child_agent_uses_the_tools_that_its_skill_approves_without_a_question(scene: Scene) -> None:
    place = scene.skills / "inspect"
    place.mkdir()
    (place / "SKILL.md").write_text(
        "---\nname: inspect\ndescription: Inspects.\ncontext: fork\nallowed-tools: Read\n---\nRead it.\n"
    )
    (scene.work / "a.txt").write_text("the content\n")
    turns = (call("run_skill", name="inspect"), call("Read", path="a.txt"), "It is there.", "Inspected.")
    result = scene.run(script(*turns), skills_approve=True)
    assert result.text == "Inspected."
    assert [(detail["tool"], detail["skill"]) for detail in scene.told("call")] == [
        ("run_skill", ""),
        ("Read", "inspect"),
    ]
    assert [(detail["by"], detail["skill"]) for detail in scene.told("decision")] == [("skill", "inspect")]


def test_endless_loop_ends_at_the_turns_and_the_tokens(scene: Scene) -> None:
    loop = {**call("search_skills", query="x"), "repeat": True}
    result = scene.run(script(loop), max_turns=3)
    assert (result.status, result.error and result.error.code) == ("limit", "turn-limit")
    assert len(result.turns) == 3
    result = scene.run(script(loop), max_tokens=2_000)
    assert (result.status, result.error and result.error.code) == ("limit", "token-limit")


def test_answer_that_the_server_cut_is_told_and_kept(scene: Scene, tmp_path: Path) -> None:
    file = str(tmp_path / "run.jsonl")
    with provide(play(Text("It begins well", "length"), Text("and ends well."))) as provider:
        with Transcript.create(file) as transcript:
            result = scene.run(loopback(provider), transcript=transcript)
        assert (result.status, result.text) == ("limit", "It begins well")
        assert result.error is not None
        assert (result.error.code, "cut the last answer" in result.error.message) == ("answer-cut", True)
        transcript, earlier = Transcript.resume(file)
        with transcript:
            assert not earlier.is_finished
            result = scene.run(loopback(provider), "", transcript=transcript, earlier=earlier)
    assert (result.status, result.text) == ("done", "and ends well.")


def test_model_that_says_nothing_is_not_asked_to_the_end(scene: Scene) -> None:
    with provide(play(Text(""), Text(""), ToolCall("search_skills", {"query": "x"}), Text(""))) as provider:
        result = scene.run(loopback(provider))
    assert (result.status, result.error and result.error.code) == ("failed", "empty-answers")
    assert len(provider.requests) == 6  # the call in between began the count anew
    with provide(play(Text(""), Text(""), Text("Sorry."))) as provider:
        assert scene.run(loopback(provider)).text == "Sorry."


def test_children_count_towards_the_turns(scene: Scene) -> None:
    loop = {**call("nothing"), "repeat": True}
    result = scene.run(script(call("run_skill", name="review"), loop), max_turns=4)
    assert (result.status, result.error and result.error.code) == ("limit", "turn-limit")


def test_malformed_calls_are_results_from_which_the_model_goes_on(scene: Scene) -> None:
    bad = Calls((ToolCall("load_skill", '{"name": "gr'), ToolCall("Read", "[1]"), ToolCall("nope", {})))
    with provide(play(bad, ToolCall("Write", {"path": 3}), Text("I see."))) as provider:
        result = scene.run(loopback(provider))
    assert (result.status, result.text) == ("done", "I see.")
    assert [record.is_error for record in result.calls] == [True] * 4
    # An endless row of them is a loop like any other.
    with provide(play(ToolCall("Read", '{"path"'))) as provider:
        result = scene.run(loopback(provider), max_turns=5)
    assert (result.status, len(provider.requests)) == ("limit", 5)


@pytest.mark.parametrize("status", [429, 500])
def test_server_that_recovers_is_asked_again(scene: Scene, status: int) -> None:
    with provide(play(Failure(status, 0.001), Text("ok"))) as provider:
        result = scene.run(loopback(provider))
    assert (result.status, result.text, len(provider.requests)) == ("done", "ok", 2)


@pytest.mark.parametrize(("status", "code"), [(429, "model-failed"), (500, "model-failed"), (401, "no-model-key")])
def test_server_that_goes_on_failing_is_an_error_with_its_status(scene: Scene, status: int, code: str) -> None:
    with provide(play(Failure(status, 0.001))) as provider:
        result = scene.run(loopback(provider))
    assert (result.status, result.error and result.error.code) == ("failed", code)
    assert result.error is not None
    assert str(status) in result.error.message
    assert "tiny" in result.error.message


def test_key_that_a_server_repeats_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROWESS_API_KEY", "key-of-this-person")
    error = ModelHTTPError(401, "tiny", {"message": "wrong key: Bearer key-of-this-person"})
    told = explain_failure(error, script("Hello."))
    assert told.message == "the server of script answered with status 401: wrong key: Bearer [PROWESS_API_KEY]"


@pytest.mark.parametrize("seed", range(40))
def test_key_that_comes_in_pieces_is_hidden_as_if_it_came_whole(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {
        "PROWESS_API_KEY": "abababab",
        "OPENAI_API_KEY": "ababababcd",
        "X_TOKEN": 'babab"aab',
        "AWS_ACCESS_KEY": "c" * 9,
    }
    for name, key in keys.items():
        monkeypatch.setenv(name, key)
    rng = random.Random(seed)
    parts = [rng.choice([*keys.values(), "a", "ab", "ba", "c", "cc", '"', "x"]) for _ in range(60)]
    text, hider, shown = "".join(parts), KeyFilter(), ""
    while text:
        cut = rng.randint(1, 6)
        shown, text = shown + hider.add(text[:cut]), text[cut:]
    shown += hider.finish()
    assert not [key for key in keys.values() if key in shown]
    whole = KeyFilter()
    assert shown == whole.add("".join(parts)) + whole.finish()


def test_key_in_pieces_of_a_stream_is_in_no_event(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROWESS_API_KEY", "secret words of mine")
    turns = ("It is secret words of", {"text": "Is it secret words of mine?", **call("Read", path=".")}, "secret words")
    # A script says one word after the other, and a part of a key that ends an answer is none.
    for turn in turns:
        scene.run(script(turn, "Done: secret words of mine"))
    said = "".join(detail["text"] for detail in scene.told("text"))
    assert "It is secret words of" in said
    assert "Is it [PROWESS_API_KEY]?" in said
    assert not [event for event in scene.events if "secret words of mine" in json.dumps(event.to_dict())]
    kinds = [event.kind for event in scene.events]
    assert "text" not in kinds[kinds.index("end") : kinds.index("start", 1)]


@pytest.mark.parametrize("key", ["  key-of-this-person", "key-of-this-person\r", "key-of\tthis  person"])
def test_key_with_spaces_is_not_shown_without_them(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("PROWESS_API_KEY", key)
    error = ModelHTTPError(401, "tiny", {"message": f"wrong key: {key.strip()}"})  # what a server gets of a header
    told = explain_failure(error, script("Hello."))
    assert told.message == "the server of script answered with status 401: wrong key: [PROWESS_API_KEY]"


def test_key_that_begins_with_another_key_is_hidden_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-this")
    monkeypatch.setenv("PROWESS_API_KEY", "key-of-this-person")
    error = ModelHTTPError(401, "tiny", {"message": "wrong key: key-of-this-person"})
    told = explain_failure(error, script("Hello."))
    assert told.message == "the server of script answered with status 401: wrong key: [PROWESS_API_KEY]"


def test_half_a_character_of_a_model_is_an_error_and_no_crash(scene: Scene) -> None:
    with provide(play(ToolCall("half\ud800", {}), Text("ok"))) as provider:
        result = scene.run(loopback(provider))
    assert (result.status, result.error and result.error.code) == ("failed", "model-failed")


def test_tokens_are_named_as_the_limit_although_the_last_turn_is_reached_too(scene: Scene) -> None:
    result = scene.run(script(call("load_skill", name="greet"), "Hello."), max_turns=1, max_tokens=1)
    assert result.error is not None
    assert result.error.code == "token-limit"


@pytest.mark.parametrize("events", [0, 1, 3])
def test_cut_stream_is_an_error_and_no_half_answer(scene: Scene, events: int) -> None:
    with provide(play(Cut(Text("one two three four"), events))) as provider:
        result = scene.run(loopback(provider))
    assert (result.status, result.text) == ("failed", "")
    assert result.error is not None
    assert result.error.code == "model-failed"


@pytest.mark.parametrize(
    "answer",
    [Text("one two " * 1_000), ToolCall("Read", {"path": "x" * 5_000}), Calls((ToolCall("Read", {}),) * 50)],
    ids=["text", "arguments", "calls"],
)
def test_answer_that_does_not_end_ends_the_run(scene: Scene, answer: Reply) -> None:
    with provide(play(answer, Text("Done."))) as provider:
        result = scene.run(loopback(provider), limits=prowess.Limits(max_model_answer_chars=4_000))
    assert (result.status, len(provider.requests)) == ("failed", 1)
    assert result.error is not None
    assert result.error.message == "an answer of the model has more than 4,000 characters"


@pytest.mark.parametrize(
    ("piece", "what"),
    [(b"x" * 65_536, "line"), (b": still here" * 5_000 + b"\n", "answer")],
    ids=["one line", "many lines"],
)
def test_body_that_does_not_end_ends_the_run(scene: Scene, piece: bytes, what: str) -> None:
    """No event comes out of such a body, which would fill the memory."""
    limits = prowess.Limits(max_model_answer_chars=100_000, max_model_answer_bytes=4_000_000)
    with provide(play(Raw(lambda: repeat(piece, 400)))) as provider:
        result = scene.run(loopback(provider), limits=limits)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.code == "model-failed"
    most = "1,200,000" if what == "line" else "4,000,000"
    assert (
        result.error.message
        == f"the server of the model sent {'a' if what == 'line' else 'an'} {what} of more than {most} bytes"
    )


def test_answer_of_a_child_agent_that_does_not_end_is_an_error_of_its_call(scene: Scene) -> None:
    endless, limits = Raw(lambda: repeat(b" " * 65_536, 400)), prowess.Limits(max_model_answer_bytes=1_000_000)
    fork = ToolCall("run_skill", {"name": "review", "task": "my text"})

    def answer(request: ModelRequest) -> Reply:
        return endless if "my text" in request.said else Text("Done.") if request.results else fork

    with provide(answer) as provider:
        result = scene.run(loopback(provider), limits=limits)
    assert (result.status, result.text) == ("done", "Done.")
    assert [record.is_error for record in result.calls] == [True]


@pytest.mark.parametrize("status", [302, 307])
def test_server_of_the_model_cannot_send_the_conversation_elsewhere(scene: Scene, status: int) -> None:
    with provide(play(Text("Hello."))) as other:
        moved = Raw(list, {"Location": f"{other.url}/v1/chat/completions?key=secret"}, status)
        with provide(play(*[moved] * 9)) as provider:
            result = scene.run(loopback(provider))
    assert (result.status, other.requests, other.unknown) == ("failed", [], [])
    assert result.error is not None
    assert f"redirects to another server, {other.url}/v1/chat/completions" in result.error.message
    assert "secret" not in result.error.message


def test_compressed_answer_is_refused_before_it_is_unpacked(scene: Scene) -> None:
    bomb = gzip.compress(b" " * 10_000_000)
    with provide(play(Raw(lambda: [bomb], {"Content-Encoding": "gzip"}))) as provider:
        result = scene.run(loopback(provider))
    assert result.error is not None
    assert result.error.message == "the server of the model compressed its answer, which it was not asked to"


def test_script_without_a_turn_that_fits_says_so(scene: Scene) -> None:
    result = scene.run(script({"text": "x", "when": "never said"}))
    assert (result.status, result.error and result.error.code) == ("failed", "script-ended")


def test_slow_model_can_be_cancelled_and_the_server_sees_it(scene: Scene) -> None:
    with provide(play(Slow(Text("one two three four"), events=2))) as provider:

        async def cancel_when_asked() -> None:
            options = TaskOptions(str(scene.work))
            running = asyncio.create_task(
                run_task("x", prowess.scan(scene.skills), loopback(provider), options, on_event=scene.events.append)
            )
            await asyncio.to_thread(provider.asked.wait, 30)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        asyncio.run(cancel_when_asked())
        assert provider.hung_up.wait(30)
    assert scene.told("end")[0]["status"] == "interrupted"


def test_result_and_events_are_json(scene: Scene) -> None:
    result = scene.run(script(call("load_skill", name="greet"), "Hello."))
    assert json.loads(json.dumps(result.to_dict()))["status"] == "done"
    for event in scene.events:
        json.dumps(event.to_dict())


def test_tool_that_the_agent_does_not_have_is_a_mistake(scene: Scene) -> None:
    with pytest.raises(prowess.SourceError, match="not a tool of the agent"):
        TaskOptions(str(scene.work), tools=("Read", "Delete"))


def test_saved_session_comes_back_with_the_messages(scene: Scene) -> None:
    first = scene.run(script(call("load_skill", name="greet"), "Hello."))
    assert any("greet" in str((message.metadata or {}).get("prowess", "")) for message in first.messages)


def test_a_refusal_of_the_server_is_not_for_another_try(scene: Scene) -> None:
    with provide(play(Failure(400))) as provider:
        result = scene.run(loopback(provider))
    assert result.error is not None
    assert result.error.code == "model-refused"
    assert "again later" not in result.error.hint


def test_a_refused_key_is_named_by_its_variable(scene: Scene) -> None:
    with provide(play(Failure(401))) as provider:
        result = scene.run(loopback(provider))
    assert result.error is not None
    assert result.error.message.endswith("(the key is in PROWESS_API_KEY)")


def test_a_request_that_takes_too_long_ends_the_run(scene: Scene) -> None:
    with provide(play(Slow(Text("Late.")))) as provider:
        result = scene.run(loopback(provider), request_seconds=0.2)
    assert result.error is not None
    assert (result.status, result.error.code) == ("failed", "model-failed")
