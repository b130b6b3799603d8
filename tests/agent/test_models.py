"""The models of the agent: names, missing keys, addresses, and scripts that are played."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from pydantic_ai import Agent

import prowess
from prowess.agent.models import make_model
from prowess.agent.scripted_model import load_scripted_model
from tests.agent.runs import Scene, call, script
from tests.fake_models import Text, play, provide

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY", "PROWESS_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("", "no-model", "no model is set"),
        ("openai:gpt-5.2", "no-model-key", "there is no key for openai: set OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-5-5", "no-model-key", "there is no key for anthropic: set ANTHROPIC_API_KEY"),
        ("deepseek:deepseek-chat", "no-model-key", "there is no key for deepseek: set DEEPSEEK_API_KEY"),
        ("nobody:nothing", "bad-model", "nobody:nothing"),
        ("just-a-name", "bad-model", "just-a-name"),
        ("scripted:missing.yaml", "bad-script", "no file"),
        ("scripted:", "bad-script", "no file is named"),
    ],
)
def test_name_that_cannot_be_used_says_exactly_what_to_set(name: str, code: str, words: str) -> None:
    with pytest.raises(prowess.ModelError) as caught:
        make_model(name)
    assert caught.value.code == code
    assert words in caught.value.message
    assert caught.value.hint


def test_default_name_of_an_error_has_a_variable_and_an_option() -> None:
    with pytest.raises(prowess.ModelError) as caught:
        make_model("")
    assert "--model" in caught.value.hint
    assert "PROWESS_MODEL" in caught.value.hint


def test_providers_are_made_with_their_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert make_model("openai:gpt-5.2").model_name == "gpt-5.2"
    assert make_model("anthropic:claude-sonnet-5-5").model_name == "claude-sonnet-5-5"


@pytest.mark.parametrize(
    "url", ["localhost:8000", "file:///etc/passwd", "http://", "ftp://x/v1", "http://[::1/v1", "me:hunter2@x"]
)
def test_base_url_that_is_not_an_address_is_refused(url: str) -> None:
    with pytest.raises(prowess.ModelError) as caught:
        make_model("tiny", url)
    assert caught.value.code == "bad-model"
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://me:hunter2@127.0.0.1/v1", "http://127.0.0.1/v1?token=hunter2", "http://x/#hunter2="]
)
def test_base_url_that_may_hold_a_secret_is_refused_without_it(url: str) -> None:
    with pytest.raises(prowess.ModelError) as caught:
        make_model("tiny", url)
    assert caught.value.code == "bad-model"
    assert "PROWESS_API_KEY" in caught.value.message
    assert "hunter2" not in str(caught.value)


def test_key_of_another_provider_is_never_sent_to_a_base_url(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(variable, "secret-of-openai")
    client = make_model("openai:llama3:8b", "http://127.0.0.1:9/v1").client  # type: ignore[attr-defined]
    assert "secret-of-openai" not in (client.api_key, client.organization, client.project)
    assert "secret-of-openai" not in str(client.default_headers)
    monkeypatch.setenv("PROWESS_API_KEY", "mine")
    assert make_model("x", "http://127.0.0.1:9/v1").client.api_key == "mine"  # type: ignore[attr-defined]
    with provide(play(Text("ok"))) as provider:
        assert scene.run(make_model("openai:llama3:8b", f"{provider.url}/v1")).text == "ok"
    assert provider.requests[0].body["model"] == "llama3:8b"


# -- scripts -----------------------------------------------------------------------------------------------------------

YAML = """\
turns:
  - when: hello
    text: I look it up.
    calls:
      - tool: load_skill
        arguments: {name: greet, lines: 3, exact: true, quoted: "3"}
  - when: not seen
    text: never
  - text: Done.
"""


def test_yaml_and_json_scripts_keep_the_types_of_arguments(tmp_path: Path, scene: Scene) -> None:
    (tmp_path / "s.yaml").write_text(YAML)
    data = {
        "turns": [{"calls": [{"tool": "load_skill", "arguments": {"name": "greet", "lines": 3}}]}, {"text": "Done."}]
    }
    (tmp_path / "s.json").write_text(json.dumps(data))
    result = scene.run(load_scripted_model(str(tmp_path / "s.yaml")), "say hello")
    assert result.calls[0].arguments == {"name": "greet", "lines": 3, "exact": True, "quoted": "3"}
    assert result.text == "Done."
    assert scene.run(load_scripted_model(str(tmp_path / "s.json"))).calls[0].arguments == {"name": "greet", "lines": 3}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "turns"),
        ("turns: []", "at least one turn"),
        ("turns: nothing", "list 'turns'"),
        ("- text: x", "list 'turns'"),
        ("turns:\n  - said: x", "turn 1 must be a mapping with the keys"),
        ("turns:\n  - text: x\n  - calls: [{arguments: {}}]", "turn 2: a call needs"),
        ("turns:\n  - when: x", "neither 'text' nor 'calls'"),
        ("turns:\n  - text: [x]", "'text' must be a string"),
        ("turns:\n  - {text: x, repeat: often}", "'repeat' must be true or false"),
        ("turns:\n  - calls: [{tool: x, arguments: [1]}]", "'arguments' must be a mapping"),
        ('{"turns": [', ""),
        ("turns: *x", ""),
    ],
)
def test_script_that_makes_no_sense_says_where(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(prowess.ModelError) as caught:
        load_scripted_model(str(tmp_path / "s.yaml"))
    assert caught.value.code == "bad-script"
    assert words in caught.value.message


def test_turn_waits_for_what_was_seen_in_the_message_and_the_system_text(scene: Scene) -> None:
    model = script(
        {"text": "never", "system": "no such skill is listed"},
        {"text": "refused", "when": "said no"},
        {**call("load_skill", name="greet"), "system": "greet"},
        {"text": "loaded", "when": "Say hello"},
    )
    assert scene.run(model).text == "loaded"


def test_script_streams_in_pieces_and_answers_without_a_stream_too() -> None:
    agent = Agent(script("one two three"))
    pieces: list[str] = []

    async def read() -> None:
        async with agent.run_stream("x") as stream:
            pieces.extend([piece async for piece in stream.stream_text(delta=True, debounce_by=None)])

    asyncio.run(read())
    assert pieces == ["one ", "two ", "three"]
    assert asyncio.run(Agent(script("at once")).run("x")).output == "at once"
