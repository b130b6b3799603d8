"""Approval: a person is asked by a coroutine, or decides later, in another request or another process."""

from __future__ import annotations

import asyncio
import contextvars
import json
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal, cast

import pytest

import prowess
from tests.skill_fixtures import preloaded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    Put = Callable[..., Path]
    Talk = Callable[..., prowess.Session]
    Load = Callable[[prowess.Toolset, str], prowess.ToolResult]

COMMANDS = "Now: !`touch ran.txt; echo ran`\n"
SCRIPT = "import pathlib, sys\npathlib.Path('ran.txt').touch()\nprint('ran', *sys.argv[1:])\n"
CALL = {"name": "act", "script": "scripts/run.py", "args": ["a"]}


class Waiting:
    """A selector that picks nothing until the test says so."""

    strict = True

    def __init__(self) -> None:
        self.begun, self.over = threading.Event(), threading.Event()

    def select(self, _query: str, _candidates: object) -> list[str]:
        self.begun.set()
        self.over.wait(30)
        return []


@asynccontextmanager
async def holding_the_only_place(session: prowess.Session) -> AsyncIterator[None]:
    """Keep the one place for reads that the limits of a session have, by a prompt that another session waits for."""
    selector = Waiting()
    other = prowess.Session(session.catalog, selector=selector, limits=session.limits)
    prompt = asyncio.ensure_future(prowess.Toolset(other).aprompt("x"))
    await asyncio.to_thread(selector.begun.wait, 30)
    try:
        yield
    finally:
        selector.over.set()
        await prompt


@pytest.fixture
def act(put: Put) -> Path:
    """A skill with a command in its instructions, two scripts, and another beside it that does nothing."""
    put("plain")
    return put(
        "act", body=COMMANDS, files={"scripts/run.py": SCRIPT, "scripts/evil.py": SCRIPT.replace("ran'", "evil'")}
    )


@pytest.fixture
def defer(tmp_path: Path) -> prowess.Trust:
    return prowess.Trust(tmp_path / "trust.json", policy="defer")


@pytest.fixture
def scripts(tmp_path: Path) -> prowess.Scripts:
    """Scripts that leave a trace where the test looks for it."""
    return prowess.Scripts(sandbox="none", folder=tmp_path)


def pending(result: prowess.ToolResult) -> prowess.TrustRequest:
    assert result.pending is not None, result
    return result.pending


def has_run(tmp_path: Path) -> bool:
    return (tmp_path / "ran.txt").exists()


def through_json(request: prowess.TrustRequest, catalog: prowess.Catalog, **forged: object) -> prowess.TrustRequest:
    return prowess.TrustRequest.from_dict({**json.loads(json.dumps(request.to_dict())), **forged}, catalog)


# -- asked by a coroutine -------------------------------------------------------------------------------------------


class Person:
    """Somebody who is asked by a coroutine, and remembers in which loop."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.loops: list[asyncio.AbstractEventLoop] = []

    async def __call__(self, _request: prowess.TrustRequest) -> bool:
        await asyncio.sleep(0)
        self.loops.append(asyncio.get_running_loop())
        return self.answer


@pytest.mark.usefixtures("act")
@pytest.mark.parametrize("answer", [True, False])
def test_a_coroutine_is_awaited_on_the_hosts_loop(
    answer: bool, talk: Talk, tmp_path: Path, scripts: prowess.Scripts
) -> None:
    person = Person(answer)
    toolset = prowess.Toolset(talk(trust=prowess.Trust(tmp_path / "t.json", ask=person)), scripts=scripts)

    async def main() -> tuple[prowess.ToolResult, prowess.ToolResult]:
        both = await toolset.acall("load_skill", {"name": "act"}), await toolset.acall("run_skill_script", CALL)
        assert person.loops == [asyncio.get_running_loop()] * 2
        return both

    loaded, ran = asyncio.run(main())
    assert ("Now: ran" in loaded.content, ran.is_error, has_run(tmp_path)) == (answer, not answer, answer)
    assert answer or ran.data["reason"] == "refused-by-person"
    assert answer or "said no" in ran.content


@pytest.mark.usefixtures("act")
def test_a_coroutine_is_awaited_in_a_plain_call_too(talk: Talk, tmp_path: Path, scripts: prowess.Scripts) -> None:
    toolset = prowess.Toolset(talk(trust=prowess.Trust(tmp_path / "t.json", ask=Person(answer=True))), scripts=scripts)
    assert "Now: ran" in toolset.call("load_skill", {"name": "act"}).content
    assert toolset.call("run_skill_script", CALL).data["stdout"] == "ran a\n"


@pytest.mark.usefixtures("act")
def test_a_script_does_not_start_without_arguments_of_another_name(
    talk: Talk, tmp_path: Path, scripts: prowess.Scripts
) -> None:
    """A person would consent to a run that is not the one that the model means."""
    person = Person(answer=True)
    toolset = prowess.Toolset(talk(trust=prowess.Trust(tmp_path / "t.json", ask=person)), scripts=scripts)
    result = toolset.call("run_skill_script", {**CALL, "arguments": ["12.50"]})
    assert (result.is_error, person.loops) == (True, [])
    assert "'arguments' is not a parameter: it takes name, script, args, stdin" in result.content


@pytest.mark.usefixtures("act")
def test_a_plain_call_inside_a_loop_says_how_to_await_it(talk: Talk, tmp_path: Path, scripts: prowess.Scripts) -> None:
    trust = prowess.Trust(tmp_path / "t.json", ask=Person(answer=True))
    session = talk(trust=trust)
    toolset = prowess.Toolset(session, scripts=scripts)

    async def main() -> None:
        for result in (toolset.call("load_skill", {"name": "act"}), toolset.call("run_skill_script", CALL)):
            assert (result.is_error, result.data["reason"]) == (True, "ask-needs-acall")
            assert "await toolset.acall" in result.content
        with pytest.raises(prowess.NotTrustedError) as caught:
            scripts.run(session.skill("act"), "scripts/run.py", trust=trust)
        assert caught.value.code == "ask-needs-acall"

    asyncio.run(main())
    assert (session.active_skills, has_run(tmp_path)) == ((), False)


# -- decided on later -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("act")
def test_a_load_that_needs_consent_is_pending_and_activates_nothing(  # noqa: PLR0917 - fixtures
    running: prowess.DialectName,
    talk: Talk,
    load: Load,
    defer: prowess.Trust,
    tmp_path: Path,
    events: list[prowess.Event],
) -> None:
    session = talk(trust=defer)
    toolset = prowess.Toolset(session, running)
    result = load(toolset, "act")
    request = pending(result)
    assert (request.commands, request.script) == (("touch ran.txt; echo ran",), "")
    assert (request.skill.name, request.digest) == ("act", session.skill("act").digest())
    assert set(request.files) == {"SKILL.md", "scripts/run.py", "scripts/evil.py"}
    assert (session.active_skills, has_run(tmp_path), result.is_error) == ((), False, False)
    assert "touch" not in result.content
    assert [(event.kind, event.skill) for event in events] == [("pending", "act")]
    assert load(toolset, "plain").pending is None


@pytest.mark.usefixtures("act")
def test_what_was_approved_runs_when_the_call_is_made_again(
    running: prowess.DialectName, talk: Talk, load: Load, defer: prowess.Trust, events: list[prowess.Event]
) -> None:
    session = talk(trust=defer)
    toolset = prowess.Toolset(session, running)
    request = pending(load(toolset, "act"))
    session.approve(request)
    result = load(toolset, "act")
    assert (result.pending, "Now: ran" in result.content, session.active_skills) == (None, True, ("act",))
    approved = [event for event in events if event.kind == "approved"]
    assert [(event.skill, event.detail["id"], event.detail["digest"]) for event in approved] == [
        ("act", request.id, request.digest)
    ]


@pytest.mark.usefixtures("act")
def test_an_approval_counts_for_one_conversation_alone(talk: Talk, load: Load, defer: prowess.Trust) -> None:
    session = talk(trust=defer)
    session.approve(pending(load(prowess.Toolset(session), "act")))
    assert load(prowess.Toolset(talk(trust=defer)), "act").pending is not None
    assert defer.grants() == ()


@pytest.mark.usefixtures("act")
@pytest.mark.parametrize(
    "other",
    [
        {**CALL, "script": "scripts/evil.py"},
        {**CALL, "args": ["b"]},
        {**CALL, "args": ["a", ""]},
        {**CALL, "stdin": "other"},
    ],
)
def test_an_approval_counts_for_exactly_one_call(
    other: dict[str, object], talk: Talk, defer: prowess.Trust, scripts: prowess.Scripts, tmp_path: Path
) -> None:
    session = talk(trust=defer)
    toolset = prowess.Toolset(session, scripts=scripts)
    session.approve(pending(toolset.call("run_skill_script", CALL)))
    assert (
        pending(toolset.call("run_skill_script", other)).id
        != pending(toolset.call("run_skill_script", other | {"args": ["c"]})).id
    )
    assert toolset.call("load_skill", {"name": "act"}).pending is not None
    assert not has_run(tmp_path)
    assert toolset.call("run_skill_script", CALL).data["stdout"] == "ran a\n"


def test_an_approval_ends_with_the_first_changed_byte(
    act: Path, talk: Talk, defer: prowess.Trust, scripts: prowess.Scripts, tmp_path: Path
) -> None:
    session = talk(trust=defer)
    toolset = prowess.Toolset(session, scripts=scripts)
    session.approve(pending(toolset.call("run_skill_script", CALL)))
    (act / "scripts" / "run.py").write_text(SCRIPT + "print('more')\n", encoding="utf-8")
    assert toolset.call("run_skill_script", CALL).pending is not None
    assert not has_run(tmp_path)


@pytest.mark.usefixtures("act")
def test_what_was_refused_is_not_asked_again_and_of_a_script_the_model_hears_that(  # noqa: PLR0917 - fixtures
    talk: Talk, load: Load, defer: prowess.Trust, scripts: prowess.Scripts, tmp_path: Path, events: list[prowess.Event]
) -> None:
    session = talk(trust=defer)
    toolset = prowess.Toolset(session, scripts=scripts)
    calls: tuple[tuple[Callable[[], prowess.ToolResult], str], ...] = (
        (lambda: load(toolset, "act"), COMMANDS),
        (lambda: toolset.call("run_skill_script", CALL), "said no"),
    )
    for call, answer in calls:
        request = pending(call())
        events.clear()
        session.refuse(request)
        assert [(e.kind, e.detail["code"], e.detail["id"]) for e in events] == [
            ("refused", "refused-by-person", request.id)
        ]
        for _ in range(2):
            result = call()
            assert (result.pending, answer in result.content) == (None, True)
    assert not has_run(tmp_path)


@pytest.mark.usefixtures("act")
@pytest.mark.parametrize("approved_first", [True, False])
def test_a_refusal_wins_over_approvals_and_grants(
    talk: Talk, defer: prowess.Trust, scripts: prowess.Scripts, tmp_path: Path, approved_first: bool
) -> None:
    session = talk(trust=defer)
    toolset = prowess.Toolset(session, scripts=scripts)
    request = pending(toolset.call("run_skill_script", CALL))
    if approved_first:
        session.approve(request)
    session.refuse(request)
    with pytest.raises(prowess.NotTrustedError) as caught:
        session.approve(request)
    assert caught.value.code == "refused-by-person"
    assert "said no" in toolset.call("run_skill_script", CALL).content
    defer.grant(request)
    assert "said no" in toolset.call("run_skill_script", CALL).content
    assert not has_run(tmp_path)
    other = prowess.Toolset(talk(trust=defer), scripts=scripts)
    assert other.call("run_skill_script", CALL).data["stdout"] == "ran a\n"


@pytest.mark.usefixtures("act")
def test_an_approval_is_used_up_by_one_call(
    talk: Talk, load: Load, defer: prowess.Trust, scripts: prowess.Scripts, tmp_path: Path
) -> None:
    session = talk(trust=defer)
    toolset = prowess.Toolset(session, scripts=scripts)
    for _ in range(2):
        session.approve(pending(toolset.call("run_skill_script", CALL)))
        assert toolset.call("run_skill_script", CALL).data["stdout"] == "ran a\n"
    session.approve(pending(load(toolset, "act")))
    assert "Now: ran" in load(toolset, "act").content
    (tmp_path / "ran.txt").unlink()
    assert "Now: ran" in load(toolset, "act").content, "it is active, and runs nothing again"
    toolset.call("unload_skill", {"name": "act"})
    assert load(toolset, "act").pending is not None
    assert not has_run(tmp_path)


@pytest.mark.usefixtures("act")
@pytest.mark.parametrize(
    ("tool", "arguments"), [("run_skill_script", CALL), ("load_skill", {"name": "act"})], ids=["script", "commands"]
)
def test_an_approval_is_gone_with_the_call_that_was_cancelled(
    talk: Talk, defer: prowess.Trust, scripts: prowess.Scripts, tool: str, arguments: dict[str, object]
) -> None:
    session = talk(trust=defer, limits=prowess.Limits(max_parallel_reads=1))
    toolset = prowess.Toolset(session, scripts=scripts)
    session.approve(pending(toolset.call(tool, arguments)))

    async def main() -> None:
        async with holding_the_only_place(session):  # the call waits for it
            task = asyncio.ensure_future(toolset.acall(tool, arguments))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (await toolset.acall(tool, arguments)).pending is not None

    asyncio.run(main())


@pytest.mark.usefixtures("act")
@pytest.mark.parametrize(
    ("tool", "arguments"), [("run_skill_script", CALL), ("load_skill", {"name": "act"})], ids=["script", "commands"]
)
def test_an_approval_is_gone_with_the_call_that_found_the_host_busy(
    talk: Talk, defer: prowess.Trust, scripts: prowess.Scripts, tool: str, arguments: dict[str, object]
) -> None:
    session = talk(trust=defer, limits=prowess.Limits(max_parallel_reads=1, max_waiting_reads=0))
    toolset = prowess.Toolset(session, scripts=scripts)
    session.approve(pending(toolset.call(tool, arguments)))

    async def main() -> None:
        async with holding_the_only_place(session):
            assert (await toolset.acall(tool, arguments)).data["reason"] == "busy"
        assert (await toolset.acall(tool, arguments)).pending is not None

    asyncio.run(main())


@pytest.mark.usefixtures("act")
def test_an_approval_of_a_call_is_of_no_use_to_another_at_the_same_time(
    talk: Talk, defer: prowess.Trust, scripts: prowess.Scripts
) -> None:
    session = talk(trust=defer)
    toolset = prowess.Toolset(session, scripts=scripts)
    request = pending(toolset.call("run_skill_script", CALL))

    async def main() -> None:
        other = asyncio.get_running_loop().create_future()
        context = contextvars.copy_context()  # that of a task which does not make the approved call

        async def call_beside() -> None:
            other.set_result(await toolset.acall("run_skill_script", CALL))

        with session.consent.approve_call(request):
            await asyncio.get_running_loop().create_task(call_beside(), context=context)
            assert other.result().pending is not None
            assert (await toolset.acall("run_skill_script", CALL)).data["stdout"] == "ran a\n"
            assert (await toolset.acall("run_skill_script", CALL)).pending is not None

    asyncio.run(main())
    with session.consent.approve_call(request):
        pass
    assert toolset.call("run_skill_script", CALL).pending is not None


@pytest.mark.usefixtures("act")
def test_a_request_can_be_granted_for_good(
    talk: Talk, load: Load, defer: prowess.Trust, scripts: prowess.Scripts
) -> None:
    toolset = prowess.Toolset(talk(trust=defer), scripts=scripts)
    grant = defer.grant(pending(load(toolset, "act")))
    assert [found.digest for found in defer.grants()] == [grant.digest]
    other = prowess.Toolset(talk(trust=defer), scripts=scripts)
    assert other.call("run_skill_script", CALL).data["stdout"] == "ran a\n"
    assert "Now: ran" in load(other, "act").content


@pytest.mark.usefixtures("act")
def test_a_plain_run_raises_an_error_that_holds_the_request(
    talk: Talk, defer: prowess.Trust, scripts: prowess.Scripts, tmp_path: Path
) -> None:
    skill = talk().skill("act")
    with pytest.raises(prowess.NotTrustedError) as caught:
        scripts.run(skill, "scripts/run.py", ["a"], stdin=b"\xff", trust=defer)
    request = caught.value.request
    assert (caught.value.code, request.script, request.arguments) == ("needs-approval", "scripts/run.py", ("a",))
    assert through_json(request, talk().catalog).to_dict() == request.to_dict()
    assert not has_run(tmp_path)
    calls: tuple[Callable[[prowess.Session], object], ...] = (
        lambda session: session.activate("act"),
        lambda session: session.expand("/act now"),
    )
    for call in calls:
        session = talk(trust=defer)
        with pytest.raises(prowess.NotTrustedError) as caught:
            call(session)
        assert (caught.value.request.skill.name, session.active_skills) == ("act", ())


def test_a_fork_whose_commands_need_consent_is_pending(
    put: Put, talk: Talk, defer: prowess.Trust, tmp_path: Path
) -> None:
    put("forked", fields="context: fork\n", body=COMMANDS)
    session = talk(trust=defer)
    ran: list[str] = []

    def run(prepared: prowess.PreparedFork) -> str:
        ran.append(prepared.content)
        return "done"

    toolset = prowess.Toolset(session, fork=run)
    request = pending(toolset.call("run_skill", {"name": "forked", "task": "x"}))
    prepared = toolset.prepare_fork("forked", "x")
    assert isinstance(prepared, prowess.ToolResult)
    assert (pending(prepared).id, ran, has_run(tmp_path)) == (request.id, [], False)
    session.approve(request)
    assert toolset.call("run_skill", {"name": "forked", "task": "x"}).content == "done"
    assert "Now: ran" in ran[0]


def test_a_preloaded_skill_that_needs_consent_is_shown_without_what_it_would_run(
    act: Path, defer: prowess.Trust, tmp_path: Path
) -> None:
    catalog = prowess.Catalog.from_sources([prowess.Source.directory(act, preload=True)])
    session = prowess.Session(catalog, trust=defer, base_dir=tmp_path)
    assert "touch ran.txt" in next(iter(preloaded(session).values()))
    request = pending(prowess.Toolset(session).call("load_skill", {"name": "act"}))
    assert not has_run(tmp_path)
    session.approve(request)
    assert "Now: ran" in prowess.Toolset(session).call("load_skill", {"name": "act"}).content


# -- in another process ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("act")
def test_a_request_survives_json_and_another_process(
    talk: Talk, defer: prowess.Trust, scripts: prowess.Scripts, tmp_path: Path
) -> None:
    saved = pending(prowess.Toolset(talk(trust=defer), scripts=scripts).call("run_skill_script", CALL)).to_dict()
    program = (
        "import json, sys, prowess\n"
        "catalog = prowess.scan('skills')\n"
        "session = prowess.Session(catalog, trust=prowess.Trust('trust.json', policy='defer'))\n"
        "session.approve(prowess.TrustRequest.from_dict(json.load(sys.stdin), catalog))\n"
        "toolset = prowess.Toolset(session, scripts=prowess.Scripts(sandbox='none', folder='.'))\n"
        f"print(toolset.call('run_skill_script', {CALL!r}).data['stdout'])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        input=json.dumps(saved),
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ran.stdout.split(), has_run(tmp_path)) == (["ran", "a"], True)


@pytest.mark.usefixtures("act")
@pytest.mark.parametrize(
    "forged",
    [
        {"script": "scripts/evil.py"},
        {"arguments": ["b"]},
        {"digest": "sha256:" + "0" * 64},
        {"commands": ["id"]},
        {"skill": "plain"},
        {"id": "0" * 32},
        {"stdin": "x"},
        {"version": 2},
        {"files": "SKILL.md"},
        {"files": ["SKILL.md"]},  # what a person is shown
        {"arguments": [1]},
    ],
)
def test_a_request_that_was_changed_is_not_taken(
    forged: dict[str, object], talk: Talk, defer: prowess.Trust, scripts: prowess.Scripts
) -> None:
    session = talk(trust=defer)
    request = pending(prowess.Toolset(session, scripts=scripts).call("run_skill_script", CALL))
    with pytest.raises(prowess.NotTrustedError) as caught:
        through_json(request, session.catalog, **forged)
    assert caught.value.code == "bad-request"


@pytest.mark.parametrize("data", [None, [], "x", {}, {"version": 1}])
def test_what_is_not_a_request_is_not_taken(data: object) -> None:
    with pytest.raises(prowess.NotTrustedError) as caught:
        prowess.TrustRequest.from_dict(data, prowess.Catalog())  # type: ignore[arg-type]
    assert caught.value.code == "bad-request"


def test_a_forged_request_with_a_right_id_gains_nothing(
    act: Path, talk: Talk, defer: prowess.Trust, scripts: prowess.Scripts, tmp_path: Path
) -> None:
    """The digest is that of the files when they run, whatever a request says."""
    session = talk(trust=defer)
    toolset = prowess.Toolset(session, scripts=scripts)
    good = pending(toolset.call("run_skill_script", CALL))
    (act / "scripts" / "run.py").write_text(SCRIPT + "print('changed')\n", encoding="utf-8")
    skill = prowess.scan(tmp_path / "skills")["act"]
    forged = prowess.TrustRequest(skill, "sha256:" + "0" * 64, (), good.script, good.arguments, good.files)
    for request in (good, forged):
        session.approve(through_json(request, session.catalog))
        with pytest.raises(prowess.NotTrustedError) as caught:
            defer.grant(request)
        assert caught.value.code == "changed-since-asked"
    assert toolset.call("run_skill_script", CALL).pending is not None
    assert (has_run(tmp_path), defer.grants()) == (False, ())


@pytest.mark.usefixtures("act")
def test_nothing_can_be_approved_where_nothing_may_run(
    talk: Talk, defer: prowess.Trust, load: Load, tmp_path: Path
) -> None:
    request = pending(load(prowess.Toolset(talk(trust=defer)), "act"))
    with pytest.raises(prowess.NotTrustedError) as caught:
        talk().approve(request)
    assert caught.value.code == "no-trust"
    never = talk(trust=prowess.Trust(defer.path, policy="never"))
    never.approve(request)
    assert "!`touch ran.txt; echo ran`" in load(prowess.Toolset(never), "act").content
    for wrong in (request.id, request.to_dict(), None):
        with pytest.raises(prowess.NotTrustedError) as caught:
            talk(trust=defer).approve(wrong)  # type: ignore[arg-type]
        assert caught.value.code == "bad-argument"
    assert not has_run(tmp_path)


@pytest.mark.usefixtures("act")
def test_what_a_callback_decides_is_an_event_as_well(
    talk: Talk, load: Load, tmp_path: Path, events: list[prowess.Event]
) -> None:
    for answer, kind in ((True, "approved"), (False, "refused")):
        events.clear()
        load(prowess.Toolset(talk(trust=prowess.Trust(tmp_path / "t.json", ask=lambda _: answer))), "act")  # noqa: B023
        assert [(event.skill, event.detail["by"]) for event in events if event.kind == kind] == [("act", "ask")]


@pytest.mark.usefixtures("act")
def test_an_event_says_how_long_a_decision_counts(
    talk: Talk, load: Load, defer: prowess.Trust, tmp_path: Path, events: list[prowess.Event]
) -> None:
    def heard() -> list[tuple[str, object]]:
        return [(event.kind, event.detail["scope"]) for event in events if event.detail.get("by")]

    decided: tuple[tuple[bool | Literal["always"], str, str], ...] = (
        (False, "refused", "once"),
        (True, "approved", "once"),
        ("always", "approved", "always"),
    )
    for answer, kind, scope in decided:
        events.clear()
        load(prowess.Toolset(talk(trust=prowess.Trust(tmp_path / "t.json", ask=lambda _: answer))), "act")  # noqa: B023
        assert heard() == [(kind, scope)]
    session = talk(trust=defer)
    request = pending(load(prowess.Toolset(session), "act"))
    events.clear()
    session.approve(request)
    session.refuse(request)
    assert heard() == [("approved", "once"), ("refused", "conversation")]


@pytest.mark.usefixtures("act")
def test_a_grant_is_told_in_the_conversation_that_waited_for_it(
    talk: Talk, defer: prowess.Trust, scripts: prowess.Scripts, events: list[prowess.Event]
) -> None:
    toolset = prowess.Toolset(talk(trust=defer), scripts=scripts)
    request = pending(toolset.call("run_skill_script", CALL))
    defer.grant(request)
    events.clear()
    for _ in range(2):
        assert toolset.call("run_skill_script", CALL).pending is None
    told = [
        (event.detail["id"], event.detail["by"], event.detail["scope"]) for event in events if event.kind == "approved"
    ]
    assert told == [(request.id, "grant", "always")], "once, not at every use"


# -- saved and restored ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("act")
@pytest.mark.parametrize("widen", [False, True])
def test_what_a_person_refused_stays_refused_in_the_session_that_is_restored(
    talk: Talk, load: Load, defer: prowess.Trust, scripts: prowess.Scripts, widen: bool
) -> None:
    session = talk(trust=defer)
    toolset = prowess.Toolset(session, scripts=scripts)
    session.refuse(pending(load(toolset, "act")))
    session.refuse(pending(toolset.call("run_skill_script", CALL)))
    saved = session.save()
    for _ in range(2):
        restored, issues = prowess.Session.restore(session.catalog, saved, trust=defer, widen=widen)
        again = prowess.Toolset(restored, scripts=scripts)
        for result, words in ((load(again, "act"), "!`touch"), (again.call("run_skill_script", CALL), "said no")):
            assert (result.pending, words in result.content, issues) == (None, True, ())
        assert again.call("run_skill_script", {**CALL, "args": ["b"]}).pending is not None
        saved = restored.save()
    restored.approve(pending(toolset.call("run_skill_script", {**CALL, "args": ["b"]})))
    assert sorted(json.loads(restored.save())["refused"]) == sorted(json.loads(saved)["refused"])


def test_nobody_is_asked_again_about_a_preloaded_skill_that_was_refused(put: Put, talk: Talk, tmp_path: Path) -> None:
    put("act", body=COMMANDS)
    source = prowess.Source.directory(tmp_path / "skills", preload=True)
    asked: list[str] = []

    def ask(request: prowess.TrustRequest) -> bool:
        asked.append(request.id)
        return False

    session = talk(prowess.Catalog.from_sources([source]), trust=prowess.Trust(tmp_path / "t.json", policy="defer"))
    session.refuse(requested(session))
    prowess.Session.restore(session.catalog, session.save(), trust=prowess.Trust(tmp_path / "t.json", ask=ask))
    assert (asked, has_run(tmp_path)) == ([], False)


def requested(session: prowess.Session) -> prowess.TrustRequest:
    with pytest.raises(prowess.NotTrustedError) as caught:
        session.activate("act")
    assert caught.value.request is not None
    return cast("prowess.TrustRequest", caught.value.request)


@pytest.mark.usefixtures("act")
def test_approvals_are_not_saved_and_a_save_without_refusals_is_read_as_before(
    talk: Talk, load: Load, defer: prowess.Trust, tmp_path: Path
) -> None:
    session = talk(trust=defer)
    request = pending(load(prowess.Toolset(session), "act"))
    session.approve(request)
    saved = session.save()
    assert request.id not in saved
    data = json.loads(saved)
    assert data.pop("refused") == []
    restored, issues = prowess.Session.restore(session.catalog, json.dumps(data), trust=defer)
    assert (load(prowess.Toolset(restored), "act").pending is not None, issues) == (True, ())
    for wrong in ("abc", [1], {"a": 1}, None):
        with pytest.raises(prowess.SourceError, match="not a saved session"):
            prowess.Session.restore(session.catalog, json.dumps({**data, "refused": wrong}), trust=defer)
    assert not has_run(tmp_path)


@pytest.mark.usefixtures("act")
@pytest.mark.parametrize("later", [True, False])
def test_a_skill_that_was_approved_stays_active_when_it_is_restored_and_nobody_is_asked_by_that(
    talk: Talk, tmp_path: Path, defer: prowess.Trust, later: bool
) -> None:
    person = Person(answer=True)
    trust = defer if later else prowess.Trust(tmp_path / "t.json", ask=person)
    session = talk(trust=trust)
    if later:
        session.approve(requested(session))
    session.activate("act")
    (tmp_path / "ran.txt").unlink()

    async def restore() -> tuple[prowess.Session, tuple[prowess.Issue, ...]]:
        return prowess.Session.restore(session.catalog, session.save(), trust=trust, base_dir=tmp_path)

    restored, issues = asyncio.run(restore())
    assert (restored.active_skills, issues, has_run(tmp_path)) == (("act",), (), False)
    assert len(person.loops) == (0 if later else 1)
    if later:
        assert requested(restored).commands == ("touch ran.txt; echo ran",)
    else:
        assert restored.activate("act").instructions == "Now: ran"


# -- a sub-agent's -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("act")
def test_a_refusal_counts_for_sub_agents_and_they_cannot_lift_it(
    talk: Talk, defer: prowess.Trust, scripts: prowess.Scripts, tmp_path: Path
) -> None:
    parent = prowess.Toolset(talk(trust=defer), scripts=scripts)
    child = parent.child()
    grandchild = child.child()
    request = pending(grandchild.call("run_skill_script", CALL))
    grandchild.session.approve(request)
    parent.session.refuse(request)
    with pytest.raises(prowess.NotTrustedError):
        grandchild.session.approve(request)
    for toolset in (parent, child, grandchild):
        assert "said no" in toolset.call("run_skill_script", CALL).content
    assert request.id in grandchild.session.save()
    assert not has_run(tmp_path)


@pytest.mark.usefixtures("act")
def test_what_is_decided_for_a_sub_agent_counts_neither_for_its_parent_nor_for_another(
    talk: Talk, load: Load, defer: prowess.Trust, scripts: prowess.Scripts, tmp_path: Path
) -> None:
    parent = prowess.Toolset(talk(trust=defer), scripts=scripts)
    child, other = parent.child(), parent.child()
    loaded = pending(load(child, "act"))
    child.session.approve(pending(child.call("run_skill_script", CALL)))
    child.session.refuse(loaded)
    for toolset in (parent, other):
        assert toolset.call("run_skill_script", CALL).pending is not None
        assert pending(load(toolset, "act")).id == loaded.id
    assert not has_run(tmp_path)
    assert child.call("run_skill_script", CALL).data["stdout"] == "ran a\n"
    assert "!`touch" in load(child, "act").content, "its commands stay text, and nobody is asked"


@pytest.mark.usefixtures("act")
def test_an_approval_counts_for_sub_agents_too(talk: Talk, load: Load, defer: prowess.Trust) -> None:
    parent = prowess.Toolset(talk(trust=defer))
    child = parent.child()
    parent.session.approve(pending(load(child, "act")))
    assert "Now: ran" in load(child, "act").content


def test_a_policy_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(prowess.NotTrustedError) as caught:
        prowess.Trust(tmp_path / "t.json", policy="later")  # type: ignore[arg-type]
    assert caught.value.code == "bad-argument"
