"""What every adapter shares: conversations, decisions, child agents, saves and the arguments of ``Skills``."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from prowess import Catalog, Limits, MissingPackageError, Scripts, Source, SourceError, Trust, live, scan
from prowess.adapters import core
from prowess.adapters.core import NativeTools, SkillsAdapter, aturn, get_media, load_skills, require_package, turn
from tests.adapters.approval_orders import RUN_COUNT, UNBOXED, check_orders
from tests.adapters.skill_library import PIXEL, write_library

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from prowess.adapters.core import ChildTask, Conversation

COUNT = {"name": "count-words", "script": "scripts/count.py"}
PLAIN = Scripts(sandbox="none")


@pytest.fixture
def skills(library: Path) -> SkillsAdapter:
    return SkillsAdapter(library)


@pytest.fixture
def acting(library: Path) -> Conversation:
    """A conversation in which scripts run when a person approves."""
    return SkillsAdapter(library, scripts=PLAIN).conversations.open("c")


# -- conversations -----------------------------------------------------------------------------------------------------


def test_each_key_has_one_conversation(skills: SkillsAdapter) -> None:
    skills.conversations.open("a").call("load_skill", {"name": "greet"})
    assert skills.session("a").active_skills == ("greet",)
    assert skills.session("b").active_skills == ()
    assert skills.session("a") is skills.session("a")
    assert skills.session("a").id == "a"


def test_conversation_without_a_key_is_not_kept(skills: SkillsAdapter) -> None:
    conversation = skills.conversations.open(None)
    conversation.call("load_skill", {"name": "greet"})
    assert skills.conversations.open(None).session.active_skills == ()
    assert skills.conversations.open(None, conversation.save()).session.active_skills == ("greet",)
    assert asyncio.run(skills.conversations.aopen(None)).session.active_skills == ()
    assert len(skills.conversations) == 0


def test_forgotten_conversation_begins_again(skills: SkillsAdapter) -> None:
    skills.conversations.open("a").call("load_skill", {"name": "greet"})
    skills.conversations.forget("a")
    skills.conversations.forget("never seen")
    assert skills.session("a").active_skills == ()


def test_oldest_conversation_is_kept_as_saved_text(library: Path) -> None:
    skills = SkillsAdapter(library, limits=Limits(max_conversations=2))
    for key in ("a", "b", "c"):
        skills.conversations.open(key).call("load_skill", {"name": "greet"})
        skills.conversations.open("a")  # in use all the time, so that it is never the oldest
    assert len(skills.conversations) == 2
    assert skills.session("b").active_skills == ("greet",)
    assert len(skills.conversations) == 2


def test_conversation_in_use_is_not_made_twice(library: Path) -> None:
    skills = SkillsAdapter(library, limits=Limits(max_conversations=1))
    running = skills.conversations.open("a")
    skills.session("b")  # the other is saved out while a run uses it
    running.call("load_skill", {"name": "greet"})
    assert skills.conversations.open("a") is running


def test_threads_that_open_one_key_in_two_states_get_each_its_own(skills: SkillsAdapter) -> None:
    conversation = skills.conversations.begin("a")
    saves = [conversation.save()]
    conversation.call("load_skill", {"name": "greet"})
    saves.append(conversation.save())
    start, opened = threading.Barrier(8, timeout=60), []

    def open_it(saved: str) -> None:
        start.wait()
        opened.append((saved, skills.conversations.open("a", saved).session.active_skills))

    threads = [threading.Thread(target=open_it, args=(saves[number % 2],)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(opened) == {(saves[0], ()), (saves[1], ("greet",))}


def test_saved_text_is_bounded_too(library: Path) -> None:
    skills = SkillsAdapter(library, limits=Limits(max_conversations=1, max_saved_conversations=1))
    for key in ("a", "b", "c"):
        skills.conversations.open(key).call("load_skill", {"name": "greet"})
    assert skills.session("a").active_skills == ()  # forgotten: "b" was saved after it
    assert skills.session("c").active_skills == ("greet",)


def test_save_brings_a_conversation_back_elsewhere(library: Path, skills: SkillsAdapter) -> None:
    conversation = skills.conversations.open("a")
    conversation.call("load_skill", {"name": "greet"})
    saved = conversation.save()
    other = SkillsAdapter(library).conversations.open("a", saved)
    assert other.session.active_skills == ("greet",)
    assert turn(other) == turn(conversation)


def test_checkpoint_of_another_state_wins_and_the_last_one_changes_nothing(skills: SkillsAdapter) -> None:
    conversation = skills.conversations.open("a")
    early = conversation.save()
    conversation.call("load_skill", {"name": "greet"})
    late = conversation.save()
    assert skills.conversations.open("a", late) is conversation
    assert skills.conversations.open("a") is conversation
    back = skills.conversations.open("a", early)
    assert back is not conversation
    assert back.session.active_skills == ()


def test_conversation_without_a_record_begins_anew_once_in_each_step(skills: SkillsAdapter) -> None:
    first = skills.conversations.open("a", step="1", is_new=True)
    first.call("load_skill", {"name": "greet"})
    assert skills.session("a") is first.session  # the host looks at it
    assert skills.conversations.open("a", step="1", is_new=True) is first
    second = skills.conversations.open("a", step="2", is_new=True)
    assert second.session.active_skills == ()
    assert skills.conversations.open("a") is second
    assert skills.conversations.open("a", is_new=True) is not second


def test_threads_that_open_one_key_at_once_get_one_conversation(skills: SkillsAdapter) -> None:
    start, opened = threading.Barrier(8, timeout=60), []

    def open_it() -> None:
        start.wait()
        opened.append(skills.conversations.open("a"))

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 8
    assert len(set(map(id, opened))) == 1


def test_threads_in_different_conversations_share_nothing(library: Path) -> None:
    skills = SkillsAdapter(library, limits=Limits(max_conversations=3))
    names = ["greet", "picture", "careful", "count-words"]
    start = threading.Barrier(4, timeout=60)
    wrong: list[str] = []

    def work(key: str, name: str) -> None:
        start.wait()
        for _ in range(20):  # beyond max_conversations: each is saved out and restored again and again
            skills.conversations.open(key).call("load_skill", {"name": name})
            active = skills.session(key).active_skills
            wrong.extend(() if set(active) <= {name} else (f"{key}: {active}",))

    threads = [threading.Thread(target=work, args=(f"key-{i}", name)) for i, name in enumerate(names)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_conversation_opens_from_asynchronous_code(skills: SkillsAdapter) -> None:
    async def main() -> None:
        conversation = await skills.conversations.aopen("a")
        result = await conversation.acall("load_skill", {"name": "greet"})
        assert not result.is_error
        assert conversation is skills.conversations.open("a")
        assert await aturn(conversation, "hello") == turn(conversation, "hello")

    asyncio.run(main())


# -- saves of others ---------------------------------------------------------------------------------------------------


def forge(saved: str, **changes: Any) -> str:
    data = json.loads(saved)
    session = json.loads(data["session"]) | changes.pop("session", {})
    return json.dumps(data | {"session": json.dumps(session)} | changes)


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: "no JSON",
        lambda _: "[]",
        lambda _: "7",
        lambda _: '{"version": 1}',
        lambda saved: forge(saved, version=2),
        lambda saved: forge(saved, asked=[]),
        lambda saved: forge(saved, asked={"call": "an id"}),
        lambda saved: forge(saved, asked={"call": {}}),
        lambda saved: forge(saved, asked={"call": {"id": "x", "round": "1"}}),
        lambda saved: json.dumps(json.loads(saved) | {"session": 7}),
        lambda saved: json.dumps(json.loads(saved) | {"session": "no JSON"}),
        lambda saved: forge(saved, session={"version": 99}),
        lambda _: "[" * 100_000,
    ],
)
def test_text_that_is_not_a_save_is_refused(skills: SkillsAdapter, damage: Callable[[str], str]) -> None:
    saved = skills.conversations.begin().save()
    with pytest.raises(SourceError):
        skills.conversations.open("a", damage(saved))
    assert len(skills.conversations) == 0


def test_forged_save_gives_nothing_beyond_the_arguments(library: Path) -> None:
    skills = SkillsAdapter(library, allowed=["greet"], tools=["look_up"], filter="-tag:secret")
    saved = skills.conversations.open("a").save()
    active = dict.fromkeys(("careful", "count-words"), "0" * 64)
    wider = forge(saved, session={"tools": ["delete_all"], "grants_tools": True, "active": active, "filter": ""})
    conversation = skills.conversations.open("b", wider)
    assert conversation.session.allows("delete_all") != "allowed"
    prompt, _tools = turn(conversation)
    assert "careful" not in prompt
    for name in active:
        assert conversation.call("load_skill", {"name": name}).is_error
        assert conversation.call("read_skill_file", {"name": name, "path": "SKILL.md"}).is_error


def test_forged_save_approves_nothing(acting: Conversation, library: Path) -> None:
    asked = acting.call("run_skill_script", COUNT, call_id="1").pending
    assert asked is not None
    # The person was shown another script than the one that the forged save names for the call.
    forged = forge(acting.save(), asked={"2": {**asked.to_dict(), "id": "0" * 32}})
    other = SkillsAdapter(library, scripts=PLAIN).conversations.open("c", forged)
    assert other.call("run_skill_script", COUNT, call_id="2", decision=True).pending is not None


# -- decisions ---------------------------------------------------------------------------------------------------------


def test_yes_runs_exactly_what_was_shown(acting: Conversation) -> None:
    shown = acting.call("run_skill_script", COUNT, call_id="1")
    assert shown.pending is not None
    assert "nothing was done" in shown.content
    done = acting.call("run_skill_script", COUNT, call_id="1", decision=True)
    assert "0 words" in done.content
    assert acting.asked == {}


def test_yes_counts_after_a_restart(acting: Conversation, library: Path) -> None:
    acting.call("run_skill_script", COUNT, call_id="1")
    again = SkillsAdapter(library, scripts=PLAIN).conversations.open("c", acting.save())
    assert "0 words" in again.call("run_skill_script", COUNT, call_id="1", decision=True).content


def test_approval_is_not_part_of_a_save(acting: Conversation, library: Path) -> None:
    acting.call("run_skill_script", COUNT, call_id="1")
    acting.call("run_skill_script", COUNT, call_id="1", decision=True)
    again = SkillsAdapter(library, scripts=PLAIN).conversations.open("c", acting.save())
    assert again.call("run_skill_script", COUNT, call_id="2").pending is not None


@pytest.mark.parametrize("ended", [True, False])
def test_yes_counts_once_although_the_framework_goes_back(library: Path, ended: bool) -> None:
    conversations = SkillsAdapter(library, scripts=PLAIN).conversations
    first = conversations.open("c")
    first.call("run_skill_script", COUNT, call_id="1")
    saved = first.save()
    before = None if ended else conversations.restore("c", saved)  # as a run does beside another one
    assert "0 words" in first.call("run_skill_script", COUNT, call_id="1", decision=True).content
    first.save()
    again = before or conversations.open("c", saved)
    assert again is not first
    with pytest.raises(prowess.NotTrustedError) as told:
        again.call("run_skill_script", COUNT, call_id="1", decision=True)
    assert told.value.code == "no-question"
    question = first.name_question("1") or again.name_question("1")
    assert again.call("run_skill_script", COUNT, call_id="1").pending is not None
    assert again.name_question("1") != question
    assert "0 words" in again.call("run_skill_script", COUNT, call_id="1", decision=True).content


@pytest.mark.parametrize("change", ["files", "arguments"])
def test_decision_that_no_longer_fits_is_asked_again(acting: Conversation, library: Path, change: str) -> None:
    acting.call("run_skill_script", COUNT, call_id="1")
    if change == "files":
        (library / "count-words/scripts/count.py").write_text("print('other')\n")
    arguments = {**COUNT, "args": ["more"]} if change == "arguments" else COUNT
    again = acting.call("run_skill_script", arguments, call_id="1", decision=True)
    assert again.pending is not None
    done = acting.call("run_skill_script", arguments, call_id="1", decision=True)
    assert done.pending is None
    assert not done.is_error


@pytest.mark.parametrize("decision", [True, False])
@pytest.mark.parametrize("asked", ["", "1", "done"])
def test_decision_about_no_question_raises(acting: Conversation, asked: str, decision: bool) -> None:
    if asked:
        acting.call("run_skill_script", COUNT, call_id=asked)
    if asked == "done":
        acting.call("run_skill_script", COUNT, call_id=asked, decision=True)
    call_id = asked if asked == "done" else "2"
    for call in (acting.call, lambda *args, **more: asyncio.run(acting.acall(*args, **more))):
        with pytest.raises(prowess.NotTrustedError) as told:
            call("run_skill_script", COUNT, call_id=call_id, decision=decision)
        assert told.value.code == "no-question"
    assert acting.session.consent.refused_ids == ()


class Stop(BaseException):
    """What ends a call that has begun, as Ctrl-C does."""


@pytest.mark.parametrize("ending", [Stop, GeneratorExit, KeyboardInterrupt])
def test_yes_ends_with_its_call_however_that_ends(library: Path, ending: type[BaseException]) -> None:
    def stop(event: prowess.Event) -> None:
        if event.kind == "ran":
            raise ending

    acting = SkillsAdapter(library, scripts=PLAIN, on_event=stop).conversations.open("c")
    acting.call("run_skill_script", COUNT, call_id="1")
    with pytest.raises(ending):
        acting.call("run_skill_script", COUNT, call_id="1", decision=True)
    with pytest.raises(prowess.NotTrustedError, match="nobody waits"):
        acting.call("run_skill_script", COUNT, call_id="1", decision=True)
    assert acting.call("run_skill_script", COUNT, call_id="2").pending is not None
    former = acting.name_question("1")
    assert acting.call("run_skill_script", COUNT, call_id="1").pending is not None
    assert acting.name_question("1") not in ("", former)
    assert "said no" in acting.call("run_skill_script", COUNT, call_id="1", decision=False).content


class BareHost:
    """A host that has no framework: it keeps the saved conversation, and makes the calls itself."""

    def __init__(self, library: Path) -> None:
        self._library, self._calls, self._saved = library, 0, ""
        self.restart()

    def restart(self) -> None:
        self._skills = SkillsAdapter(self._library, scripts=UNBOXED)

    async def ask(self) -> bool:
        self._calls += 1
        return await self._call()

    async def decide(self, *, yes: bool) -> bool:
        return await self._call(decision=yes)

    async def retry(self) -> bool:
        return await self._call()

    async def _call(self, **more: Any) -> bool:
        conversation = self._skills.conversations.open("c", self._saved)
        result = await conversation.acall(*RUN_COUNT, call_id=f"call-{self._calls}", **more)
        self._saved = conversation.save()
        return result.pending is not None


def test_approvals_count_for_one_call_in_any_order(library: Path) -> None:
    @asynccontextmanager
    async def open_host() -> AsyncIterator[BareHost]:
        yield BareHost(library)

    check_orders(library, open_host)


def test_no_runs_nothing_and_is_not_asked_again(acting: Conversation) -> None:
    acting.call("run_skill_script", COUNT, call_id="1")
    refused = acting.call("run_skill_script", COUNT, call_id="1", decision=False)
    assert refused.is_error
    assert "said no" in refused.content
    again = acting.call("run_skill_script", COUNT, call_id="2")
    assert (again.pending, again.is_error) == (None, True)


def test_no_counts_although_somebody_granted_it_meanwhile(library: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    (library / "count-words/scripts/count.py").write_text(f"open({str(mark)!r}, 'w')\n")
    trust = Trust(tmp_path / "trust.json", policy="defer")
    conversation = SkillsAdapter(library, scripts=PLAIN, trust=trust).conversations.open("c")
    conversation.call("run_skill_script", COUNT, call_id="1")
    trust.grant(scan(library)["count-words"])
    assert conversation.call("run_skill_script", COUNT, call_id="1", decision=False).is_error
    assert "said no" in conversation.call("run_skill_script", COUNT, call_id="2").content
    assert not mark.exists()


def test_no_about_a_skill_that_is_gone_is_a_refusal(library: Path, acting: Conversation) -> None:
    acting.call("run_skill_script", COUNT, call_id="1")
    saved = acting.save()
    (library / "count-words/SKILL.md").unlink()
    again = SkillsAdapter(library, scripts=PLAIN).conversations.open("c", saved)
    assert again.call("run_skill_script", COUNT, call_id="1", decision=False).is_error
    write_library(library.parent / "other")
    shutil.copy(library.parent / "other/count-words/SKILL.md", library / "count-words/SKILL.md")  # it is back
    later = SkillsAdapter(library, scripts=PLAIN).conversations.open("c", again.save())
    assert "said no" in later.call("run_skill_script", COUNT, call_id="2").content


def test_decisions_count_in_asynchronous_code(acting: Conversation) -> None:
    async def main() -> None:
        for call_id, decision, said in (("1", True, "0 words"), ("2", False, "said no")):
            await acting.acall("run_skill_script", COUNT, call_id=call_id)
            result = await acting.acall("run_skill_script", COUNT, call_id=call_id, decision=decision)
            assert said in result.content

    asyncio.run(main())


def test_request_that_nobody_was_shown_is_an_error_and_never_approved(acting: Conversation) -> None:
    acting.call("run_skill_script", COUNT, call_id="1")
    other = {**COUNT, "args": ["other"]}
    unseen = acting.call("run_skill_script", other, call_id="1", decision=True, may_ask=False)
    assert unseen.pending is not None
    assert unseen.is_error
    # The model makes its call again, and gives it the id of the call that the person said yes to.
    with pytest.raises(prowess.NotTrustedError, match="nobody waits"):
        acting.call("run_skill_script", other, call_id="1", decision=True, may_ask=False)
    assert acting.asked == {}


def test_calls_that_nobody_decides_are_bounded(acting: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prowess.adapters.conversation._MAX_ASKED", 2)
    for call_id in ("1", "2", "3"):
        acting.call("run_skill_script", COUNT, call_id=call_id)
    assert list(acting.asked) == ["2", "3"]


# -- child agents ------------------------------------------------------------------------------------------------------

REVIEW = {"name": "review", "task": "This poem."}


def test_child_gets_its_task_its_model_and_a_session_of_its_own(skills: SkillsAdapter) -> None:
    tasks: list[ChildTask] = []

    def run(task: ChildTask) -> str:
        tasks.append(task)
        task.conversation.call("load_skill", {"name": "greet"})
        return "A fine poem."

    conversation = skills.conversations.open("a")
    assert conversation.call("run_skill", REVIEW, run_child=run).content == "A fine poem."
    (task,) = tasks
    assert task.model == "small"
    assert "This poem." in task.message
    assert "Review the text." in task.message
    assert "Greets people" in task.system
    assert (task.may_use("look_up"), task.explain_refusal("look_up", {"word": "moon"})) == (True, "")
    assert not task.may_use("delete_all")
    assert "'review' does not allow this call of delete_all" in task.explain_refusal("delete_all")
    assert conversation.session.active_skills == ()
    assert task.conversation.session.active_skills == ("greet",)


def test_child_may_use_a_part_of_a_tool(library: Path) -> None:
    text = (library / "review/SKILL.md").read_text()
    (library / "review/SKILL.md").write_text(text.replace("look_up\n---", "Bash(git:*)\n---"))
    task = open_task(SkillsAdapter(library))
    assert task.may_use("Bash")
    assert task.explain_refusal("Bash", {"command": "git log"}) == ""
    assert task.explain_refusal("Bash", '{"command": "rm -r ."}') != ""
    assert task.explain_refusal("Bash", "no JSON") != ""


def open_task(skills: SkillsAdapter, name: str = "review") -> ChildTask:
    """Return the task of the child agent that carries out a skill."""
    tasks: list[ChildTask] = []

    def run(task: ChildTask) -> str:
        tasks.append(task)
        return ""

    skills.conversations.begin().call("run_skill", {**REVIEW, "name": name}, run_child=run)
    return tasks[0]


def test_skills_that_a_child_loads_bound_it_too_where_that_is_enforced(library: Path) -> None:
    (library / "review/SKILL.md").write_text("---\nname: review\ndescription: x\ncontext: fork\n---\nReview it.\n")
    for enforce in (True, False):
        task = open_task(SkillsAdapter(library, enforce=enforce))
        assert task.explain_refusal("delete_all") == ""
        task.conversation.call("load_skill", {"name": "careful"})
        assert ("allowed-tools" in task.explain_refusal("delete_all")) is enforce
        assert task.explain_refusal("look_up", {"word": "moon"}) == ""


def test_model_that_a_framework_cannot_make_is_logged(skills: SkillsAdapter, caplog: pytest.LogCaptureFixture) -> None:
    task = open_task(skills)
    assert task.make_model({"small": "the small one"}.get) == "the small one"
    assert caplog.text == ""
    cases: list[tuple[Callable[[str], int | None], str]] = [
        (lambda _: None, "nothing here has this name"),
        (int, "invalid literal"),
    ]
    for make, reason in cases:
        caplog.clear()
        assert task.make_model(make) is None
        assert "The skill 'review' names the model 'small'" in caplog.text
        assert reason in caplog.text


def test_skill_without_a_model_makes_none_and_logs_nothing(library: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = library / "review/SKILL.md"
    path.write_text(path.read_text().replace("model: small\n", ""))
    assert open_task(SkillsAdapter(library)).make_model(int) is None
    assert caplog.text == ""


def test_child_agent_has_a_name_that_every_framework_takes(library: Path) -> None:
    path = library / "review/SKILL.md"
    path.write_text(path.read_text().replace("name: review", "name: poem-review"))
    (library / "review").rename(library / "poem-review")
    assert open_task(SkillsAdapter(library), "poem-review").agent_name == "skill_poem_review"


def test_what_a_child_raises_is_a_result_without_its_details(skills: SkillsAdapter) -> None:
    def run(_task: ChildTask) -> str:
        raise RuntimeError("the key is 1234")

    async def arun(_task: ChildTask) -> str:
        raise RuntimeError("the key is 1234")

    conversation = skills.conversations.begin()
    plain = conversation.call("run_skill", REVIEW, run_child=run)
    awaited = asyncio.run(conversation.acall("run_skill", REVIEW, run_child=arun))
    for result in (plain, awaited):
        assert result.is_error
        assert "1234" not in result.content


def test_child_runs_on_the_loop_of_its_caller(skills: SkillsAdapter) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def run(_task: ChildTask) -> str:
            assert asyncio.get_running_loop() is loop
            return "awaited"

        conversation = skills.conversations.begin()
        assert (await conversation.acall("run_skill", REVIEW, run_child=run)).content == "awaited"
        assert (await conversation.acall("run_skill", REVIEW, run_child=lambda _: "plain")).content == "plain"

    asyncio.run(main())


def test_fork_false_offers_no_child_agents(library: Path) -> None:
    names = [tool.name for tool in SkillsAdapter(library, fork=False).list_definitions()]
    assert "run_skill" not in names
    assert "run_skill" in [tool.name for tool in SkillsAdapter(library).list_definitions()]


# -- the only skills that the model may have ---------------------------------------------------------------------------


def remove_skill(library: Path, watched: prowess.Live, name: str) -> None:
    """Remove a skill from the disk, and wait until the live catalogue knows it."""
    seen = watched.catalog
    shutil.rmtree(library / name)
    while name in watched.catalog:
        seen = watched.wait_for_change(seen, 20)


def test_allowed_skill_that_disappears_is_an_event_and_no_error(library: Path) -> None:
    events: list[prowess.Event] = []
    with live(library, notice="stat") as watched:
        skills = SkillsAdapter(watched, allowed=["greet", "careful"], scripts=PLAIN, fork=False, on_event=events.append)
        earlier = skills.conversations.open("earlier")
        saved = earlier.save()
        remove_skill(library, watched, "greet")
        events.clear()
        conversation = skills.conversations.open("later")
        assert [(event.kind, event.skill, event.session) for event in events] == [("missing", "greet", "later")]
        assert "careful" in turn(conversation).prompt
        assert not conversation.call("load_skill", {"name": "careful"}).is_error
        assert conversation.call("load_skill", {"name": "greet"}).is_error
        assert skills.conversations.restore("again", saved).call("load_skill", {"name": "greet"}).is_error
        assert skills.conversations.find_request("load_skill", {"name": "careful"}) is None
        assert [skill.name for skill in skills.list_skills()] == ["careful"]
        # Nothing else becomes reachable, and a skill that comes back is allowed again, also in that conversation.
        assert conversation.call("load_skill", {"name": "picture"}).is_error
        seen = watched.catalog
        write_library(library / "more")
        while "greet" not in watched.catalog:
            seen = watched.wait_for_change(seen, 20)
        assert not conversation.call("load_skill", {"name": "greet"}).is_error


def test_allowed_name_that_never_existed_is_an_error_at_once(library: Path) -> None:
    with live(library, notice="stat") as watched:
        with pytest.raises(prowess.UnknownSkillError, match="'allowed' names it"):
            SkillsAdapter(watched, allowed=["greet", "no-such"])
        remove_skill(library, watched, "greet")
        with pytest.raises(prowess.UnknownSkillError):
            SkillsAdapter(watched, allowed=["greet"])


# -- the host's own tools ----------------------------------------------------------------------------------------------


def test_enforce_allows_what_the_active_skills_name(library: Path) -> None:
    conversation = SkillsAdapter(library, enforce=True).conversations.begin()
    assert conversation.explain_refusal("delete_all") == ""  # no skill is active
    conversation.call("load_skill", {"name": "careful"})
    assert conversation.explain_refusal("look_up", {"word": "moon"}) == ""
    assert conversation.explain_refusal("delete_all") == (
        "This call of delete_all is not in the allowed-tools of the active skills (careful)."
    )
    conversation.call("load_skill", {"name": "greet"})
    assert conversation.explain_refusal("delete_all") == ""  # greet names no tools, so nothing bounds it


def test_enforce_alone_approves_nothing(library: Path) -> None:
    conversation = SkillsAdapter(library, enforce=True).conversations.begin()
    conversation.call("load_skill", {"name": "careful"})
    assert conversation.explain_refusal("look_up") == ""
    assert (conversation.session.allows("look_up"), conversation.session.grants_tools) == (
        "not-mentioned",
        False,
    )
    task = open_task(SkillsAdapter(library, enforce=True))
    assert (task.may_use("look_up"), task.prepared.allows("look_up")) == (True, "not-mentioned")


def test_defaults_let_no_skill_approve_a_tool(library: Path) -> None:
    for skills in (SkillsAdapter(library), SkillsAdapter(library, scripts=True, trust="granted")):
        conversation = skills.conversations.begin()
        conversation.call("load_skill", {"name": "careful"})
        assert (conversation.session.allows("look_up"), conversation.session.active_tools) == ("not-mentioned", ())


def test_enforce_is_off_by_default(skills: SkillsAdapter) -> None:
    conversation = skills.conversations.begin()
    conversation.call("load_skill", {"name": "careful"})
    assert conversation.explain_refusal("delete_all") == ""


def test_enforce_keeps_the_ceiling_of_the_host(library: Path) -> None:
    conversation = SkillsAdapter(library, enforce=True, tools=["other"]).conversations.begin()
    conversation.call("load_skill", {"name": "careful"})
    assert conversation.explain_refusal("look_up") != ""


# -- turns, results and tools ------------------------------------------------------------------------------------------


def test_turn_has_the_prompt_and_the_tools_of_a_request(skills: SkillsAdapter) -> None:
    made = turn(skills.conversations.begin(), "hello")
    assert made.prompt == skills.prompt("hello")
    assert [tool.name for tool in made.tools][:1] == ["load_skill"]


def test_definitions_name_every_tool_that_can_come(library: Path) -> None:
    skills = SkillsAdapter(library, scripts=True)
    offered = {tool.name for tool in turn(skills.conversations.begin()).tools}
    possible = {tool.name for tool in skills.list_definitions()}
    assert offered <= possible
    assert "search_skills" in possible


def test_media_is_found_in_a_result(skills: SkillsAdapter) -> None:
    conversation = skills.conversations.begin()
    media = get_media(conversation.call("read_skill_file", {"name": "picture", "path": "assets/pixel.png"}))
    assert media is not None
    assert (media.media_type, media.content) == ("image/png", PIXEL)
    text = conversation.call("read_skill_file", {"name": "greet", "path": "references/forms.md"})
    assert get_media(text) is None


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("load_skill", {"name": "no such"}),
        ("load_skill", "{not json"),
        ("load_skill", b"\xff"),
        ("load_skill", None),
        ("no_such_tool", {}),
        ("read_skill_file", {"name": "greet", "path": "../../etc/passwd"}),
    ],
)
def test_what_goes_wrong_is_a_result(
    skills: SkillsAdapter, name: str, arguments: dict[str, str] | str | bytes | None
) -> None:
    conversation = skills.conversations.begin()
    assert conversation.call(name, arguments).is_error
    assert asyncio.run(conversation.acall(name, arguments)).is_error


def test_native_tools_can_be_read_and_called() -> None:
    tools = NativeTools(["a", "b"])
    assert tools == ["a", "b"]
    assert tools() == ["a", "b"]
    assert type(tools()) is list


# -- arguments ---------------------------------------------------------------------------------------------------------


def test_source_is_a_path_a_catalogue_sources_or_nothing(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project/.agents").mkdir(parents=True)
    write_library(tmp_path / "project/.agents/skills")
    monkeypatch.chdir(tmp_path / "project")
    catalog = scan(library)
    assert load_skills(catalog) is catalog
    inline = Source.inline(name="typed", description="Was typed.", instructions="Do it.")
    sources: tuple[Any, ...] = (
        str(library),
        library,
        Source.directory(library),
        [library],
        [str(library), inline],
        None,
    )
    for source in sources:
        assert "greet" in SkillsAdapter(source).catalog
    assert "typed" in SkillsAdapter((library, inline)).catalog
    with live(library, notice="stat") as watched:
        skills = SkillsAdapter(watched)
        assert "greet" in skills.catalog
        assert isinstance(skills.catalog, Catalog)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"source": 7}, "source"),
        ({"source": [7]}, "7"),
        ({"source": "no/such/folder"}, "no/such/folder"),
        ({"enforce": "yes"}, "enforce"),
        ({"fork": 1}, "fork"),
        ({"trust": "maybe"}, "maybe"),
        ({"allowed": ["no-such-skill"]}, "no-such-skill"),
        ({"filter": 7}, "filter"),
        ({"budget": -1}, "budget"),
        ({"selector": "best"}, "selector"),
        ({"limits": 7}, "limits"),
        ({"on_event": 7}, "on_event"),
        ({"scripts": 7}, "scripts"),
        ({"tools": [7]}, "tools"),
    ],
)
def test_mistake_in_an_argument_is_told_at_once(library: Path, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(prowess.SkillError) as told:
        SkillsAdapter(**{"source": library, **arguments})
    assert said in str(told.value)


def test_key_is_text(skills: SkillsAdapter) -> None:
    with pytest.raises(SourceError, match="key"):
        skills.session(7)  # type: ignore[arg-type]


def test_iterators_can_be_given_once_and_count_for_every_conversation(library: Path) -> None:
    skills = SkillsAdapter(library, allowed=iter(["greet"]), tools=iter(["look_up"]))
    for key in ("a", "b"):
        assert "careful" not in turn(skills.conversations.open(key)).prompt


def test_catalogue_within_a_list_and_a_name_without_a_list_are_mistakes(library: Path) -> None:
    with pytest.raises(SourceError, match="not a Catalog; pass a catalogue alone"):
        load_skills([scan(library), library])  # type: ignore[list-item]
    with pytest.raises(
        SourceError, match=r"allowed must be a list of strings, not the string 'greet'; pass \['greet'\]"
    ):
        SkillsAdapter(library, allowed="greet")


def test_scripts_alone_ask_a_person(library: Path) -> None:
    conversation = SkillsAdapter(library, scripts=PLAIN).conversations.begin()
    assert conversation.call("run_skill_script", COUNT).pending is not None
    refused = SkillsAdapter(library, scripts=PLAIN, trust="never").conversations.begin()
    result = refused.call("run_skill_script", COUNT)
    assert (result.pending, result.is_error) == (None, True)


def test_missing_package_is_told_with_the_command_that_installs_it() -> None:
    require_package("json", "json>=1")
    with pytest.raises(MissingPackageError) as told:
        require_package("no_such_framework", "no-such-framework>=1.2")
    assert str(told.value) == "no-such-framework is not installed: pip install 'no-such-framework>=1.2'"
    assert isinstance(told.value, ImportError)
    assert told.value.code == "missing-package"


def test_every_name_of_the_core_is_there() -> None:
    assert all(hasattr(core, name) for name in core.__all__)


def test_an_empty_key_is_refused_since_strangers_would_share_a_session(skills: SkillsAdapter) -> None:
    with pytest.raises(prowess.SourceError, match="the key of a conversation is empty"):
        skills.session("")


def test_a_conversation_notices_that_its_messages_were_summarized(skills: SkillsAdapter) -> None:
    conversation = skills.conversations.open("ann")
    loaded = conversation.call("load_skill", {"name": "greet"}).content
    assert conversation.find_lost(lambda: f"hello\n{loaded}") == ""
    assert "Say hello as references/forms.md says." in conversation.find_lost(lambda: "Summary: the user said hello.")


def test_an_agent_without_a_skill_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken = tmp_path / "skills" / "pdf"
    broken.mkdir(parents=True)
    (broken / "SKILL.md").write_text("# no frontmatter above\n\n---\nname: pdf\n", encoding="utf-8")
    SkillsAdapter(tmp_path / "skills")
    assert "the agent has no skills" in caplog.text
    assert "SKILL.md" in caplog.text
