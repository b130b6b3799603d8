"""Skills with the client of OpenAI: the real SDK talks to a scripted model on loopback."""

from __future__ import annotations

from base64 import b64encode
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from prowess import SourceError
from prowess.adapters.openai import ChatReader, ResponsesFormat
from tests.adapters import message_checks as checks
from tests.adapters.skill_library import PIXEL, require_framework
from tests.fake_models import Cut, Failure, Text, play, provide
from tests.page_snippets import run_framework_page

require_framework("openai")

from prowess.adapters.openai import Skills

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fake_models import Reply


def load_framework() -> Any:
    """Return the package, which takes a second to import: every worker collects this file, and few run its tests."""
    return import_module("openai")


def open_client(url: str, max_retries: int = 0, **more: Any) -> Any:
    framework = load_framework()
    http_client = framework.DefaultHttpxClient(verify=False, **more)  # reading certificates takes longer than a test
    return framework.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=max_retries, http_client=http_client)


def open_async_client(url: str) -> Any:
    framework = load_framework()
    http_client = framework.DefaultAsyncHttpxClient(verify=False)
    return framework.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, http_client=http_client)


CHAT = checks.Api(Skills, open_client, open_async_client, {"api": "chat"})
RESPONSES = checks.Api(Skills, open_client, open_async_client, {"api": "responses"})


@pytest.fixture(params=[CHAT, RESPONSES], ids=["chat", "responses"])
def api(request: pytest.FixtureRequest) -> checks.Api:
    chosen: checks.Api = request.param
    return chosen


def test_one_line_gives_an_agent_skills(api: checks.Api, library: Path) -> None:
    checks.check_one_line(api, library)


def test_listing_is_in_the_system_text_once_and_stays_the_same(api: checks.Api, library: Path) -> None:
    checks.check_listing(api, library)


def test_each_conversation_has_its_own_session(api: checks.Api, library: Path) -> None:
    checks.check_own_sessions(api, library)


def test_run_without_a_key_is_a_conversation_of_its_own(api: checks.Api, library: Path) -> None:
    checks.check_runs_without_key(api, library)


def test_two_users_at_once_share_nothing(api: checks.Api, library: Path) -> None:
    checks.check_two_users(api, library)


def test_skills_whose_tools_are_missing_are_not_offered(api: checks.Api, library: Path) -> None:
    checks.check_needs(api, library)


def test_each_user_has_the_skills_of_their_scope(api: checks.Api, library: Path) -> None:
    checks.check_scopes(api, library)


def test_tools_of_the_host_are_checked_and_those_of_the_provider_passed_on(api: checks.Api, library: Path) -> None:
    checks.check_tools_of_the_host(api, library)


def test_active_skills_come_back_where_the_messages_were_summarized(api: checks.Api, library: Path) -> None:
    checks.check_summarized_messages(api, library)


def test_session_comes_back_with_the_checkpoint(api: checks.Api, library: Path) -> None:
    checks.check_checkpoint(api, library)


def test_tools_work_in_plain_code(api: checks.Api, library: Path) -> None:
    checks.check_plain_tools(api, library)


def test_tools_work_in_asynchronous_code(api: checks.Api, library: Path) -> None:
    checks.check_async_tools(api, library)


def test_tools_of_the_host_may_be_of_any_kind(api: checks.Api, library: Path) -> None:
    checks.check_host_tools(api, library)


def test_calls_that_no_run_left_open_are_not_made(api: checks.Api, library: Path) -> None:
    checks.check_open_calls(api, library)


def test_streams_show_text_and_calls_as_they_happen(api: checks.Api, library: Path) -> None:
    checks.check_stream(api, library)


def test_leaving_a_stream_ends_the_request(api: checks.Api, library: Path) -> None:
    checks.check_leaving_a_stream(api, library)


@pytest.mark.parametrize("is_stream", [False, True])
def test_errors_are_results(api: checks.Api, library: Path, *, is_stream: bool) -> None:
    checks.check_errors(api, library, is_stream=is_stream)


def test_approval_shows_the_request_and_resuming_runs_it(api: checks.Api, library: Path) -> None:
    checks.check_approval(api, library)


def test_approval_counts_in_another_process(api: checks.Api, library: Path) -> None:
    checks.check_approval_elsewhere(api, library)


def test_refused_call_does_not_run(api: checks.Api, library: Path) -> None:
    checks.check_refusal_of_a_call(api, library)


def test_decision_that_is_about_no_call_raises(api: checks.Api, library: Path) -> None:
    checks.check_decisions_about_nothing(api, library)


def test_no_wins_over_a_yes_to_an_equal_call(api: checks.Api, library: Path) -> None:
    checks.check_no_before_yes(api, library)


def test_approvals_count_for_one_call_in_any_order(api: checks.Api, library: Path) -> None:
    checks.check_approval_orders(api, library)


def test_changed_files_are_asked_about_again(api: checks.Api, library: Path) -> None:
    checks.check_changed_files(api, library)


def test_approval_is_not_a_grant(api: checks.Api, library: Path, tmp_path: Path) -> None:
    checks.check_no_grant(api, library, tmp_path)


def test_a_stream_has_the_events_of_child_agents(api: checks.Api, library: Path) -> None:
    checks.check_events_of_a_child(api, library)


def test_fork_runs_as_a_child_agent(api: checks.Api, library: Path) -> None:
    checks.check_fork(api, library)
    checks.check_async_fork(api, library)


def test_child_has_the_model_of_its_parent_where_the_provider_has_no_other(api: checks.Api, library: Path) -> None:
    checks.check_unknown_model(api, library)
    checks.check_model_that_goes_away(api, library)


def test_child_makes_only_the_calls_that_its_skill_allows(api: checks.Api, library: Path) -> None:
    checks.check_bounded_child(api, library)


def test_failure_of_a_child_is_a_result(api: checks.Api, library: Path) -> None:
    checks.check_failing_child(api, library)


def test_cancelling_reaches_the_child(api: checks.Api, library: Path) -> None:
    checks.check_cancelled_child(api, library)


def test_cancelled_run_leaves_the_conversation_usable(api: checks.Api, library: Path) -> None:
    checks.check_cancelled_run(api, library)


def test_enforce_refuses_tools_outside_of_the_list(api: checks.Api, library: Path) -> None:
    checks.check_enforce(api, library)


def test_pictures_are_content_parts(api: checks.Api, library: Path) -> None:
    body = checks.check_pictures(api, library)
    url = f"data:image/png;base64,{b64encode(PIXEL).decode()}"
    if api is RESPONSES:
        shown, loaded = body["input"][-2:]
        assert shown["output"][1] == {"type": "input_image", "image_url": url, "detail": "auto"}
        assert "Say hello" in loaded["output"]
    else:  # in this API a tool answers with text only, and all answers come before anything else
        assert [message["role"] for message in body["messages"][-4:]] == ["assistant", "tool", "tool", "user"]
        assert body["messages"][-1]["content"] == [{"type": "image_url", "image_url": {"url": url}}]


def test_spans_nest_in_the_framework_own(api: checks.Api, library: Path) -> None:
    """The client has no spans: those of skills are children of the caller's current span."""
    checks.check_spans(api, library)


def test_reload_between_turns(api: checks.Api, library: Path) -> None:
    checks.check_reload(api, library)


def test_selection_appends_to_the_listing(api: checks.Api, tmp_path: Path) -> None:
    checks.check_selection(api, tmp_path)


def test_slow_model_meets_the_timeout_of_the_client(api: checks.Api, library: Path) -> None:
    checks.check_slow_model(api, library)


def test_model_without_an_end_is_stopped(api: checks.Api, library: Path) -> None:
    checks.check_endless_model(api, library)


@pytest.mark.parametrize("is_stream", [False, True])
def test_answers_that_are_cut_end_the_run_and_their_calls_are_not_made(
    api: checks.Api, library: Path, *, is_stream: bool
) -> None:
    checks.check_cut_answers(api, library, is_stream=is_stream)


@pytest.mark.parametrize("is_stream", [False, True])
def test_refused_answers_end_the_run(api: checks.Api, library: Path, *, is_stream: bool) -> None:
    checks.check_refused_answers(api, library, is_stream=is_stream)


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(("reply", "error"), [(Failure(429), "RateLimitError"), (Failure(500), "InternalServerError")])
def test_errors_of_the_client_are_raised_as_they_are(
    api: checks.Api, library: Path, reply: Failure, error: str, *, is_stream: bool
) -> None:
    checks.check_client_errors(api, library, reply, getattr(load_framework(), error), is_stream=is_stream)


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("reply", [Failure(500), Cut(Text("Good morning"), events=1)], ids=["refused", "cut"])
def test_error_keeps_the_run_so_that_no_mail_is_sent_twice(
    api: checks.Api, library: Path, reply: Reply, *, is_stream: bool
) -> None:
    checks.check_partial_run(api, library, reply, is_stream=is_stream)


def test_call_of_a_cancelled_run_is_not_made_again(api: checks.Api, library: Path) -> None:
    checks.check_interrupted_calls(api, library)


def test_interrupt_from_the_keyboard_keeps_the_run(api: checks.Api, library: Path) -> None:
    checks.check_interrupt_from_the_keyboard(api, library)


def test_client_tries_again_as_its_settings_say(api: checks.Api, library: Path) -> None:
    checks.check_retries(api, library)


def test_stream_that_breaks_is_an_error(api: checks.Api, library: Path) -> None:
    checks.check_broken_stream(api, library)
    checks.check_silent_end(api, library)


def test_mistakes_of_the_programmer_are_raised(api: checks.Api, library: Path) -> None:
    checks.check_mistakes(api, library)


def test_tools_are_in_the_shape_of_the_provider(library: Path) -> None:
    chat, responses = Skills(library).tools()[0], Skills(library).tools("responses")[0]
    assert chat["function"]["name"] == responses["name"] == "load_skill"
    assert chat["function"]["parameters"]["required"] == ["name"]


def test_chat_is_the_default_and_another_api_is_a_mistake(library: Path) -> None:
    with CHAT.talk(Text("Done.")) as (provider, client):
        hello: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
        assert Skills(library).run(client, **hello, temperature=0.5).text == "Done."
        with pytest.raises(SourceError, match="'chat' or 'responses'"):
            Skills(library).run(client, **hello, api="completions")
    assert "messages" in provider.requests[0].body
    assert provider.requests[0].body["temperature"] == 0.5


@pytest.mark.parametrize("role", ["system", "developer"])
def test_system_message_of_the_caller_stays_the_only_one(library: Path, role: str) -> None:
    texts: list[Any] = ["Be kind.", [{"type": "text", "text": "Be kind."}]]
    with CHAT.talk(Text("Done.")) as (provider, client):
        for text in texts:
            messages = [{"role": role, "content": text}, {"role": "user", "content": "hello"}]
            result = CHAT.run(Skills(library), client, messages)
            assert result.messages[:2] == messages
    for request in provider.requests:
        assert [message["role"] for message in request.body["messages"]] == [role, "user"]
        assert request.system.startswith("Be kind.")
        assert "Greets people" in request.system


def test_call_whose_id_was_used_in_an_earlier_response_waits_for_its_own_result() -> None:
    call = {"type": "function_call", "call_id": "call_0", "name": "load_skill", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "call_0", "output": "done"}
    waiting = ResponsesFormat().find_open_calls
    assert [len(waiting(items)) for items in ([call], [call, result], [call, result, call])] == [1, 0, 1]


def test_usage_of_streams_can_be_left_out_for_servers_that_do_not_know_it(library: Path) -> None:
    with CHAT.talk(Text("Done.")) as (provider, client):
        list(Skills(library).stream(client, **CHAT.arguments("hello")))
        list(Skills(library).stream(client, **CHAT.arguments("hello", stream_options=None)))
    assert [request.body.get("stream_options") for request in provider.requests] == [{"include_usage": True}, None]


def test_calls_of_streams_are_told_apart_however_a_server_numbers_them() -> None:
    def read(*pieces: dict[str, Any]) -> list[tuple[str, str]]:
        reader = ChatReader()
        for piece in pieces:
            reader.read_event({"choices": [{"delta": {"tool_calls": [piece]}}]})
        reader.read_event({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
        whole = reader.finish_reply()
        assert whole is not None
        calls = [call["function"] for call in whole["choices"][0]["message"]["tool_calls"]]
        return [(call["name"], call["arguments"]) for call in calls]

    def piece(name: str | None, arguments: str, **more: Any) -> dict[str, Any]:
        return {"function": {"name": name, "arguments": arguments}, **more}

    wanted = [("a", "{}"), ("b", "{}")]
    begun = piece("a", "{", id="1", index=0), piece("b", "{", id="2", index=1)
    assert read(*begun, piece(None, "}", index=0), piece(None, "}", index=1)) == wanted
    assert read(piece("a", "{}", id="1", index=0), piece("b", "{}", id="2", index=0)) == wanted
    assert read(piece("a", "{", id="1"), piece(None, "}"), piece("b", "{", id="2"), piece(None, "}")) == wanted


def test_response_that_failed_is_an_error() -> None:
    failed = {"status": "failed", "error": {"message": "overloaded", "code": "server_error"}}
    reader = ResponsesFormat().open_reader()
    ways: list[Callable[[], object]] = [
        lambda: ResponsesFormat().read_reply(failed),
        lambda: reader.read_event({"type": "error", "message": "overloaded", "code": "server_error"}),
    ]
    for fail in ways:
        with pytest.raises(load_framework().APIError, match="overloaded") as caught:
            fail()
        assert caught.value.code == "server_error"  # whoever catches the client's errors catches these


def test_example_runs(library: Path) -> None:
    with provide(play(checks.load("greet"), Text("Good morning!"))) as provider, open_client(provider.url) as client:
        example = import_module("examples.frameworks.openai")
        assert example.main(client, library) == "Good morning!"
    assert "Greets people" in provider.requests[0].system


def test_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with provide(checks.answer_page) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        run_framework_page("openai", tmp_path, monkeypatch)
