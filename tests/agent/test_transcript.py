"""The transcript: written as it happens, of its owner alone, whole after any end, and a run goes on from it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
from pathlib import Path

import pytest

import prowess
from prowess.agent.models import make_model
from prowess.agent.task_run import TaskOptions, run_task
from prowess.agent.transcript import Transcript, read_transcript
from prowess.files import syscalls
from tests.agent.runs import Answering, Scene, call, script
from tests.fake_models import Raw, Slow, Text, ToolCall, play, provide


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "run.jsonl")


def lines_of(path: str) -> list[dict[str, object]]:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - a path as text
        return [json.loads(line) for line in file if line.strip()]


def test_transcript_is_its_owners_alone_and_each_line_is_json(scene: Scene, path: str) -> None:
    with Transcript.create(path) as transcript:
        scene.run(script(call("load_skill", name="greet"), "Hello."), "say hello", transcript=transcript)
    with open(path, "rb") as file:  # noqa: PTH123 - a path as text
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
    lines = lines_of(path)
    assert {line["version"] for line in lines} == {1}
    assert (lines[0]["event"], lines[-1]["event"]) == ("start", "end")
    assert "text" not in {line["event"] for line in lines}
    assert len(read_transcript(path).messages) == 4


def test_transcript_does_not_have_the_key_of_a_server(scene: Scene, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROWESS_API_KEY", "key-0123456789")
    with provide(play(Text("ok"), Text("ok"))) as provider:
        with Transcript.create(path) as transcript:
            assert scene.run(make_model("tiny", f"{provider.url}/v1"), transcript=transcript).text == "ok"
        transcript, earlier = Transcript.resume(path)
        with transcript:
            scene.run(make_model("tiny", f"{provider.url}/v1"), "again", transcript=transcript, earlier=earlier)
    written = Path(path).read_text(encoding="utf-8")
    assert f'"provider_url": "{provider.url}/v1' in written
    assert "key-0123456789" not in written


def test_transcript_has_no_key_that_the_server_repeats(
    scene: Scene, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = 'sk-"0123456789'
    monkeypatch.setenv("PROWESS_API_KEY", key)
    moves = (ToolCall("load_skill", {"name": key, key: [key]}), Text(f"Your key is {key}."))
    with Transcript.create(path) as transcript:
        scene.run(
            script(call("load_skill", name="greet", **{key: key}), f"It is {key}."), f"say {key}", transcript=transcript
        )
    with provide(play(*moves)) as provider:
        transcript, earlier = Transcript.resume(path)
        with transcript:
            scene.run(make_model("tiny", f"{provider.url}/v1"), "again", transcript=transcript, earlier=earlier)
    written = Path(path).read_text(encoding="utf-8")
    assert "0123456789" not in written
    assert "Your key is [PROWESS_API_KEY]." in written
    assert len(read_transcript(path).messages) == 8


def test_key_in_pieces_is_in_neither_transcript_nor_events(
    scene: Scene, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reasoning between two pieces, a line end in a key, and a key in JSON inside JSON."""
    key = 'sk-0123"456789abcdef'
    monkeypatch.setenv("PROWESS_API_KEY", key)
    pieces = [{"content": key[:9]}, {"reasoning_content": "Well."}, {"content": f"{key[9:]}. Or "}]
    pieces += [{"content": f"{key[:5]}\n"}, {"content": f"  {key[5:]}"}]
    lines = [sse({"choices": [{"index": 0, "delta": {"role": "assistant", **piece}}]}) for piece in pieces]
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    lines.append(sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}))
    lines.append(b"data: [DONE]\n\n")
    nested = {"name": "greet", "arguments": json.dumps({"inner": json.dumps([key])})}
    with provide(play(ToolCall("load_skill", nested), Raw(lambda: lines))) as provider, Transcript.create(path) as file:
        result = scene.run(make_model("tiny", f"{provider.url}/v1"), transcript=file)
    assert result.text == "[PROWESS_API_KEY]. Or [PROWESS_API_KEY]"
    written = Path(path).read_text(encoding="utf-8")
    told = json.dumps([event.to_dict() for event in scene.events])
    assert "Well." in written
    for half in ("sk-0123", "456789", "0123", "abcdef"):
        assert half not in written
        assert half not in told
    shown = "".join(str(detail["text"]) for detail in scene.told("text"))
    assert shown == "[PROWESS_API_KEY]. Or [PROWESS_API_KEY]"


def sse(data: dict[str, object]) -> bytes:
    event = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "tiny", **data}
    return f"data: {json.dumps(event)}\n\n".encode()


def test_lines_are_there_before_the_run_has_ended(scene: Scene, path: str) -> None:
    seen: list[int] = []
    with Transcript.create(path) as transcript:
        original = transcript.write_event

        def count(event: object) -> None:
            seen.append(len(lines_of(path)))
            original(event)  # type: ignore[arg-type]

        transcript.write_event = count  # type: ignore[method-assign]
        scene.run(script(call("load_skill", name="greet"), "Hello."), transcript=transcript)
    assert seen == sorted(seen)
    assert seen[-1] > seen[0]


def test_run_goes_on_with_its_messages_and_its_active_skills(scene: Scene, path: str) -> None:
    with Transcript.create(path) as transcript:
        first = scene.run(script(call("load_skill", name="careful"), "Ready."), transcript=transcript)
    transcript, earlier = Transcript.resume(path)
    assert earlier.is_finished
    with transcript, provide(play(Text("Still here."))) as provider:
        result = scene.run(make_model("tiny", f"{provider.url}/v1"), "and now?", transcript=transcript, earlier=earlier)
    assert result.text == "Still here."
    (request,) = provider.requests
    assert "Ready." in request.text
    assert request.said == "and now?"
    assert "unload_skill" in request.tools  # the skill is still active
    assert len(read_transcript(path).messages) == len(first.messages) + 2
    assert read_transcript(path).key == earlier.key


def test_skill_that_is_active_again_approves_its_tools_again(scene: Scene, path: str) -> None:
    place = scene.skills / "tidy"
    place.mkdir()
    (place / "SKILL.md").write_text("---\nname: tidy\ndescription: Tidies.\nallowed-tools: Write\n---\nWrite.\n")
    with Transcript.create(path) as transcript:
        scene.run(script(call("load_skill", name="tidy"), "Ready."), transcript=transcript)
    transcript, earlier = Transcript.resume(path)
    with transcript:
        model = script(call("Write", path="a.txt", content="x"), "Done.")
        # The first run did not let skills approve anything: each run decides for itself.
        scene.run(model, "go on", transcript=transcript, earlier=earlier, skills_approve=True)
    assert (scene.work / "a.txt").read_text() == "x"
    assert scene.told("decision")[-1]["by"] == "skill"


def test_run_goes_on_wherever_a_crash_has_cut_its_transcript(scene: Scene, path: str) -> None:
    two = {"calls": [{"tool": "Write", "arguments": {"path": name, "content": "x"}} for name in ("a.txt", "b.txt")]}
    with Transcript.create(path) as transcript:
        scene.run(script(two, call("Read", path="a.txt"), "Done."), person=Answering(), transcript=transcript)
    lines = Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
    for count in range(1, len(lines)):
        Path(path).write_text("".join(lines[:count]) + lines[count][:20], encoding="utf-8")
        transcript, earlier = Transcript.resume(path)
        with transcript:
            result = scene.run(script("I go on."), "", transcript=transcript, earlier=earlier)
        assert (result.status, result.text, result.calls) == ("done", "I go on.", ()), lines[count - 1]


def test_results_of_a_run_that_was_killed_are_not_lost_and_no_call_is_made_twice(scene: Scene, path: str) -> None:
    model = script(call("Write", path="a.txt", content="first"), "Done.")
    with Transcript.create(path) as transcript:
        scene.run(model, person=Answering(), transcript=transcript)
    # As if the process had been killed after the call, before the model was asked again, in the middle of a line.
    kept = []
    for line in lines_of(path):
        kept.append(json.dumps(line))
        if line["event"] == "result":
            break
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - a path as text
        file.write("\n".join(kept) + '\n{"version": 1, "event": "mess')
    transcript, earlier = Transcript.resume(path)
    assert not earlier.is_finished
    (scene.work / "a.txt").write_text("changed since")
    with transcript, provide(play(Text("I go on."))) as provider:
        result = scene.run(make_model("tiny", f"{provider.url}/v1"), "", transcript=transcript, earlier=earlier)
    assert result.text == "I go on."
    assert any("Created a.txt" in text for text in provider.requests[0].results)
    assert "interrupted" in provider.requests[0].said
    assert (scene.work / "a.txt").read_text() == "changed since"


@pytest.mark.parametrize("events", [2, 4])
def test_run_goes_on_after_it_was_cancelled_in_the_middle_of_an_answer(scene: Scene, path: str, events: int) -> None:
    move = ToolCall("Write", {"path": "a.txt", "content": "x" * 50}) if events == 4 else Text("one two three four")
    with provide(play(Slow(move, events=events), Text("Done."))) as provider:
        model = make_model("tiny", f"{provider.url}/v1")

        async def cancel_when_asked() -> None:
            with Transcript.create(path) as transcript:
                options = TaskOptions(str(scene.work), person=Answering())
                running = asyncio.create_task(
                    run_task("x", prowess.scan(scene.skills), model, options, transcript=transcript)
                )
                await asyncio.to_thread(provider.asked.wait, 30)
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running

        asyncio.run(cancel_when_asked())
        assert lines_of(path)[-1]["status"] == "interrupted"
        transcript, earlier = Transcript.resume(path)
        with transcript:
            result = scene.run(model, "", transcript=transcript, earlier=earlier, person=Answering())
    assert (result.status, result.text) == ("done", "Done.")
    assert not (scene.work / "a.txt").exists()


def test_existing_file_is_not_overwritten(path: str) -> None:
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - a path as text
        file.write("mine")
    with pytest.raises(prowess.SourceError) as caught:
        Transcript.create(path)
    assert caught.value.code == "bad-transcript"


@pytest.mark.parametrize(
    "content", ["", "mine\n", '{"version": 1}\n', '{"version": 2, "event": "start", "key": "x"}\n']
)
def test_file_that_is_not_a_transcript_is_refused(path: str, content: str) -> None:
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - a path as text
        file.write(content)
    with pytest.raises(prowess.SourceError) as caught:
        Transcript.resume(path)
    assert caught.value.code == "bad-transcript"


def test_messages_that_cannot_be_read_are_an_error(path: str) -> None:
    rows: list[dict[str, object]] = [
        {"event": "start", "key": "k", "folder": "/"},
        {"event": "message", "place": 0, "message": {"kind": "odd"}},
    ]
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - a path as text
        file.writelines(json.dumps({"version": 1, **row}) + "\n" for row in rows)
    with pytest.raises(prowess.SourceError, match="cannot be read"):
        Transcript.resume(path)


def test_transcript_that_others_may_write_is_refused(scene: Scene, path: str) -> None:
    with Transcript.create(path) as transcript:
        scene.run(script("Hello."), transcript=transcript)
    Path(path).chmod(0o666)
    with pytest.raises(prowess.SourceError, match="others may write"):
        Transcript.resume(path)


def test_two_runs_do_not_write_to_one_transcript(scene: Scene, path: str) -> None:
    with Transcript.create(path) as transcript:
        scene.run(script("Hello."), transcript=transcript)
        with pytest.raises(prowess.BusyError):
            Transcript.resume(path)


@pytest.mark.parametrize("kind", ["turn", "skill", "message"])
def test_transcript_that_cannot_be_written_is_named_and_ends_the_run(
    scene: Scene, path: str, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lines: list[bytes] = []

    def fail(_fd: int, data: bytes, _path: str = "") -> None:
        lines.append(data)
        if f'"event": "{kind}"'.encode() in b"".join(lines):  # the disk is full from here on
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Transcript.create(path) as transcript, monkeypatch.context() as full_disk:
        full_disk.setattr(syscalls, "write_all", fail)
        with pytest.raises(prowess.SourceError, match="cannot write the transcript: No space left") as caught:
            scene.run(script(call("load_skill", name="greet"), "Hello."), transcript=transcript)
    assert (caught.value.code, caught.value.path) == ("unwritable", path)
    assert not caplog.records  # the loop logs what a callback raises
