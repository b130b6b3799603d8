"""Skills with the client of Anthropic: the real SDK talks to a scripted model on loopback."""

from __future__ import annotations

from base64 import b64encode
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from tests.adapters import message_checks as checks
from tests.adapters.skill_library import PIXEL, require_framework
from tests.fake_models import Cut, Failure, Text, play, provide
from tests.page_snippets import run_framework_page

require_framework("anthropic")

from prowess.adapters.anthropic import Skills

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fake_models import Reply


def load_framework() -> Any:
    """Return the package, which takes a second to import: every worker collects this file, and few run its tests."""
    return import_module("anthropic")


def open_client(url: str, max_retries: int = 0, **more: Any) -> Any:
    framework = load_framework()
    http_client = framework.DefaultHttpxClient(verify=False, **more)  # reading certificates takes longer than a test
    return framework.Anthropic(base_url=url, api_key="none", max_retries=max_retries, http_client=http_client)


def open_async_client(url: str) -> Any:
    framework = load_framework()
    http_client = framework.DefaultAsyncHttpxClient(verify=False)
    return framework.AsyncAnthropic(base_url=url, api_key="none", max_retries=0, http_client=http_client)


API = checks.Api(Skills, open_client, open_async_client)


def test_one_line_gives_an_agent_skills(library: Path) -> None:
    checks.check_one_line(API, library)


def test_listing_is_in_the_system_text_once_and_stays_the_same(library: Path) -> None:
    checks.check_listing(API, library)


def test_each_conversation_has_its_own_session(library: Path) -> None:
    checks.check_own_sessions(API, library)


def test_run_without_a_key_is_a_conversation_of_its_own(library: Path) -> None:
    checks.check_runs_without_key(API, library)


def test_two_users_at_once_share_nothing(library: Path) -> None:
    checks.check_two_users(API, library)


def test_skills_whose_tools_are_missing_are_not_offered(library: Path) -> None:
    checks.check_needs(API, library)


def test_each_user_has_the_skills_of_their_scope(library: Path) -> None:
    checks.check_scopes(API, library)


def test_tools_of_the_host_are_checked_and_those_of_the_provider_passed_on(library: Path) -> None:
    checks.check_tools_of_the_host(API, library)


def test_active_skills_come_back_where_the_messages_were_summarized(library: Path) -> None:
    checks.check_summarized_messages(API, library)


def test_session_comes_back_with_the_checkpoint(library: Path) -> None:
    checks.check_checkpoint(API, library)


def test_tools_work_in_plain_code(library: Path) -> None:
    checks.check_plain_tools(API, library)


def test_tools_work_in_asynchronous_code(library: Path) -> None:
    checks.check_async_tools(API, library)


def test_tools_of_the_host_may_be_of_any_kind(library: Path) -> None:
    checks.check_host_tools(API, library)


def test_calls_that_no_run_left_open_are_not_made(library: Path) -> None:
    checks.check_open_calls(API, library)


def test_streams_show_text_and_calls_as_they_happen(library: Path) -> None:
    checks.check_stream(API, library)


def test_leaving_a_stream_ends_the_request(library: Path) -> None:
    checks.check_leaving_a_stream(API, library)


@pytest.mark.parametrize("is_stream", [False, True])
def test_errors_are_results(library: Path, *, is_stream: bool) -> None:
    checks.check_errors(API, library, is_stream=is_stream)


def test_approval_shows_the_request_and_resuming_runs_it(library: Path) -> None:
    checks.check_approval(API, library)


def test_approval_counts_in_another_process(library: Path) -> None:
    checks.check_approval_elsewhere(API, library)


def test_refused_call_does_not_run(library: Path) -> None:
    checks.check_refusal_of_a_call(API, library)


def test_decision_that_is_about_no_call_raises(library: Path) -> None:
    checks.check_decisions_about_nothing(API, library)


def test_no_wins_over_a_yes_to_an_equal_call(library: Path) -> None:
    checks.check_no_before_yes(API, library)


def test_approvals_count_for_one_call_in_any_order(library: Path) -> None:
    checks.check_approval_orders(API, library)


def test_changed_files_are_asked_about_again(library: Path) -> None:
    checks.check_changed_files(API, library)


def test_approval_is_not_a_grant(library: Path, tmp_path: Path) -> None:
    checks.check_no_grant(API, library, tmp_path)


def test_a_stream_has_the_events_of_child_agents(library: Path) -> None:
    checks.check_events_of_a_child(API, library)


def test_fork_runs_as_a_child_agent(library: Path) -> None:
    checks.check_fork(API, library)
    checks.check_async_fork(API, library)


def test_child_has_the_model_of_its_parent_where_the_provider_has_no_other(library: Path) -> None:
    checks.check_unknown_model(API, library)
    checks.check_model_that_goes_away(API, library)


def test_child_makes_only_the_calls_that_its_skill_allows(library: Path) -> None:
    checks.check_bounded_child(API, library)


def test_failure_of_a_child_is_a_result(library: Path) -> None:
    checks.check_failing_child(API, library)


def test_cancelling_reaches_the_child(library: Path) -> None:
    checks.check_cancelled_child(API, library)


def test_cancelled_run_leaves_the_conversation_usable(library: Path) -> None:
    checks.check_cancelled_run(API, library)


def test_enforce_refuses_tools_outside_of_the_list(library: Path) -> None:
    checks.check_enforce(API, library)


def test_pictures_are_content_parts(library: Path) -> None:
    body = checks.check_pictures(API, library)
    shown, loaded = body["messages"][-1]["content"]
    source = {"type": "base64", "media_type": "image/png", "data": b64encode(PIXEL).decode()}
    assert shown["content"][1] == {"type": "image", "source": source}
    assert [block["type"] for block in loaded["content"]] == ["text"]


def test_spans_nest_in_the_framework_own(library: Path) -> None:
    """The client has no spans: those of skills are children of the caller's current span."""
    checks.check_spans(API, library)


def test_reload_between_turns(library: Path) -> None:
    checks.check_reload(API, library)


def test_selection_appends_to_the_listing(tmp_path: Path) -> None:
    checks.check_selection(API, tmp_path)


def test_slow_model_meets_the_timeout_of_the_client(library: Path) -> None:
    checks.check_slow_model(API, library)


def test_model_without_an_end_is_stopped(library: Path) -> None:
    checks.check_endless_model(API, library)


@pytest.mark.parametrize("is_stream", [False, True])
def test_answers_that_are_cut_end_the_run_and_their_calls_are_not_made(library: Path, *, is_stream: bool) -> None:
    checks.check_cut_answers(API, library, is_stream=is_stream)


@pytest.mark.parametrize("is_stream", [False, True])
def test_refused_answers_end_the_run(library: Path, *, is_stream: bool) -> None:
    checks.check_refused_answers(API, library, is_stream=is_stream)


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(("reply", "error"), [(Failure(429), "RateLimitError"), (Failure(500), "InternalServerError")])
def test_errors_of_the_client_are_raised_as_they_are(
    library: Path, reply: Failure, error: str, *, is_stream: bool
) -> None:
    checks.check_client_errors(API, library, reply, getattr(load_framework(), error), is_stream=is_stream)


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("reply", [Failure(500), Cut(Text("Good morning"), events=1)], ids=["refused", "cut"])
def test_error_keeps_the_run_so_that_no_mail_is_sent_twice(library: Path, reply: Reply, *, is_stream: bool) -> None:
    checks.check_partial_run(API, library, reply, is_stream=is_stream)


def test_call_of_a_cancelled_run_is_not_made_again(library: Path) -> None:
    checks.check_interrupted_calls(API, library)


def test_interrupt_from_the_keyboard_keeps_the_run(library: Path) -> None:
    checks.check_interrupt_from_the_keyboard(API, library)


def test_client_tries_again_as_its_settings_say(library: Path) -> None:
    checks.check_retries(API, library)


def test_stream_that_breaks_is_an_error(library: Path) -> None:
    checks.check_broken_stream(API, library)
    checks.check_silent_end(API, library)


def test_mistakes_of_the_programmer_are_raised(library: Path) -> None:
    checks.check_mistakes(API, library)


def test_tools_are_in_the_shape_of_the_provider(library: Path) -> None:
    tool = Skills(library).tools()[0]
    assert tool["name"] == "load_skill"
    assert tool["input_schema"]["required"] == ["name"]


def test_system_text_is_marked_for_the_cache_unless_the_caller_has_marked_enough(library: Path) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    with API.talk(Text("Done.")) as (provider, client):
        for marked in (0, 2, 3):
            parts = [{"type": "text", "text": "hello", **(mark if place < marked else {})} for place in range(4)]
            API.run(Skills(library), client, [{"role": "user", "content": parts}], system="Be kind.")
    systems = [request.body["system"] for request in provider.requests]
    assert [[sorted(block) for block in system] for system in systems] == [
        [["text", "type"], ["cache_control", "text", "type"]],
        [["text", "type"], ["cache_control", "text", "type"]],
        [["text", "type"], ["text", "type"]],
    ]


def test_options_of_the_client_are_passed_on(library: Path) -> None:
    with API.talk(Text("Done.")) as (provider, client):
        API.run(Skills(library), client, "hello")
        API.run(Skills(library), client, "hello", max_tokens=77, stop_sequences=["end"])
    assert provider.requests[0].body["max_tokens"] == 8_192
    assert (provider.requests[1].body["max_tokens"], provider.requests[1].body["stop_sequences"]) == (77, ["end"])


def test_thinking_goes_back_as_it_came() -> None:
    from prowess.adapters.anthropic import MessagesReader

    reader = MessagesReader()
    deltas: list[dict[str, Any]] = [
        {"type": "thinking_delta", "thinking": "Let me"},
        {"type": "thinking_delta", "thinking": " see."},
        {"type": "signature_delta", "signature": "c2ln"},
    ]
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"role": "assistant", "usage": {"input_tokens": 3, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
    ]
    assert [reader.read_event(event) for event in events] == [""] * 6
    whole = reader.finish_reply()
    assert whole is not None
    assert whole["content"] == [{"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"}]
    assert whole["usage"] == {"input_tokens": 3, "output_tokens": 9}


def test_example_runs(library: Path) -> None:
    with provide(play(checks.load("greet"), Text("Good morning!"))) as provider, open_client(provider.url) as client:
        example = import_module("examples.frameworks.anthropic")
        assert example.main(client, library) == "Good morning!"
    assert "Greets people" in provider.requests[0].system


def test_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with provide(checks.answer_page) as provider:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        run_framework_page("anthropic", tmp_path, monkeypatch)
