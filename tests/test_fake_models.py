"""The providers on loopback speak to the real SDKs: whole answers, streams, and every fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.fake_models import Calls, Cut, Failure, Slow, Text, ToolCall, play, provide
from tests.sandbox_support import NOT_TESTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.fake_models import Provider, Reply

anthropic = pytest.importorskip("anthropic", reason=f"{NOT_TESTED}anthropic is not installed")
openai = pytest.importorskip("openai", reason=f"{NOT_TESTED}openai is not installed")

HELLO = [{"role": "user", "content": "hello"}]
APIS = ("messages", "chat", "responses")
MOVE = Calls((ToolCall("first", {"a": 1}), ToolCall("second", '{"a": ')), "I look.")


def open_client(api: str, provider: Provider, retries: int = 0) -> Any:
    """Return a client that talks to the provider."""
    given: dict[str, Any] = {"api_key": "none", "max_retries": retries}
    # Without certificates: to read them takes longer than a test.
    if api == "messages":
        plain = anthropic.DefaultHttpxClient(verify=False)
        return anthropic.Anthropic(base_url=provider.url, http_client=plain, **given)
    return openai.OpenAI(base_url=f"{provider.url}/v1", http_client=openai.DefaultHttpxClient(verify=False), **given)


def ask(api: str, provider: Provider, *, stream: bool, retries: int = 0, messages: list[Any] = HELLO) -> str:
    """Return the texts and the arguments of an answer, in one line."""
    with open_client(api, provider, retries) as client:
        if api == "messages":
            made = client.messages.create(model="m", max_tokens=9, messages=messages, stream=stream)
            return "".join(read_messages(made if stream else [made]))
        if api == "chat":
            made = client.chat.completions.create(model="m", messages=messages, stream=stream)
            return "".join(read_chat(made if stream else [made]))
        made = client.responses.create(model="m", input=messages, stream=stream)
        return "".join(read_responses(made if stream else [made]))


def read_messages(events: Any) -> Iterator[str]:
    for event in events:
        for block in getattr(event, "content", ()):
            yield block.text if block.type == "text" else str(block.input)
        delta = getattr(event, "delta", None)
        yield getattr(delta, "text", "") or getattr(delta, "partial_json", "")


def read_chat(chunks: Any) -> Iterator[str]:
    for chunk in chunks:
        for choice in chunk.choices:
            said = choice.delta if hasattr(choice, "delta") else choice.message
            yield said.content or ""
            yield from (call.function.arguments for call in said.tool_calls or ())


def read_responses(events: Any) -> Iterator[str]:
    for event in events:
        if hasattr(event, "output"):
            yield event.output_text
            yield from (item.arguments for item in event.output if item.type == "function_call")
        elif event.type in ("response.output_text.delta", "response.function_call_arguments.delta"):
            yield event.delta


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_texts_and_calls_reach_the_sdk_also_when_their_arguments_are_malformed(api: str, *, stream: bool) -> None:
    with provide(play(MOVE)) as provider:
        said = ask(api, provider, stream=stream)
    assert said.replace("'", '"') == 'I look.{"a": 1}{"a": '


@pytest.mark.parametrize("api", APIS)
def test_a_limit_of_requests_and_a_failure_are_over_when_the_sdk_tries_again(api: str) -> None:
    with provide(play(Failure(429, retry_after=0.001), Failure(500, retry_after=0.001), Text("hi"))) as provider:
        assert ask(api, provider, stream=True, retries=2) == "hi"
    assert len(provider.requests) == 3


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        (Failure(429), lambda sdk: sdk.RateLimitError),
        (Failure(500), lambda sdk: sdk.InternalServerError),
        (Cut(Text("hello")), lambda _: Exception),
    ],
)
@pytest.mark.parametrize("api", APIS)
def test_faults_are_errors_of_the_sdk(api: str, reply: Reply, wanted: Callable[[Any], Any], *, stream: bool) -> None:
    sdk = anthropic if api == "messages" else openai
    with provide(play(reply)) as provider, pytest.raises(wanted(sdk)):
        ask(api, provider, stream=stream)
    assert len(provider.requests) == 1


@pytest.mark.parametrize("events", [0, 3])
@pytest.mark.parametrize("api", APIS)
def test_slow_model_answers_when_it_is_let_go(api: str, events: int) -> None:
    waited: list[int] = []
    with provide(play(Slow(Text("late"), lambda: waited.append(1), events))) as provider:
        assert ask(api, provider, stream=True) == "late"
    assert waited == [1]


def test_slow_model_notices_that_its_client_hangs_up() -> None:
    with provide(play(Slow(Text("late"), events=2))) as provider:
        with open_client("messages", provider) as client:
            stream = client.messages.create(model="m", max_tokens=9, messages=HELLO, stream=True)
            next(iter(stream))
            stream.close()
        assert provider.hung_up.wait(10)


@pytest.mark.parametrize("api", APIS)
def test_calls_without_results_are_refused_as_real_providers_do(api: str) -> None:
    function = {"name": "look", "arguments": "{}"}
    opened: dict[str, dict[str, Any]] = {
        "messages": {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "look", "input": {}}]},
        "chat": {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": function}]},
        "responses": {"type": "function_call", "call_id": "1", **function},
    }
    messages = [*HELLO, opened[api], *HELLO]
    refused = (anthropic.BadRequestError, openai.BadRequestError)
    with pytest.raises(ValueError, match="the provider refuses"), provide(play(Text("hi"))) as provider:  # noqa: PT012
        with pytest.raises(refused):
            ask(api, provider, stream=False, messages=messages)
        assert provider.requests == []
