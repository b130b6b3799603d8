"""CrewAI with skills: tools and prompt in real agents and crews, whose models play scripts."""

from __future__ import annotations

import asyncio
import os
import runpy
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from tests.adapters.skill_library import RIGHTS, RUN_COUNT, check_listings, write_library
from tests.page_snippets import ROOT, run_framework_page

if TYPE_CHECKING:
    from pathlib import Path

# CrewAI reports its use to its makers unless it is told not to, and reads this when it is imported.
os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["CREWAI_DISABLE_TRACKING"] = "true"
crewai = pytest.importorskip("crewai", reason="NOT TESTED: crewai is not installed; make test-adapters installs it")

from prowess.adapters.crewai import Skills
from tests.adapters.crewai_model import ScriptedModel, find_results


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "storage"))
    monkeypatch.chdir(tmp_path)
    return write_library(tmp_path / "skills")


def make_agent(skills: Skills, *moves: Any, key: str = "") -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(moves)
    agent = crewai.Agent(role="clerk", goal="help", backstory=skills.prompt(), tools=skills.tools(key), llm=model)
    return agent, model


def load(name: str) -> list[tuple[str, Any]]:
    return [("load_skill", {"name": name})]


def test_one_line_gives_an_agent_skills(library: Path) -> None:
    read = [("read_skill_file", {"name": "greet", "path": "references/forms.md"})]
    agent, model = make_agent(Skills(library), load("greet"), read, "done")
    assert agent.kickoff("hello").raw == "done"
    loaded, content = find_results(model.requests[-1])
    assert "Say hello as references/forms.md says." in loaded
    assert "Good morning before noon." in content


def test_listing_is_in_the_system_text_once_and_stays_the_same(library: Path) -> None:
    agent, model = make_agent(Skills(library), load("greet"), "one", "two")
    agent.kickoff("hello")
    agent.kickoff("again")
    systems = {messages[0]["content"] for messages in model.requests}
    assert len(systems) == 1
    assert systems.pop().count("<available_skills>") == 1


def test_braces_in_a_description_are_not_input_of_a_crew(library: Path) -> None:
    (library / "braces").mkdir()
    (library / "braces/SKILL.md").write_text("---\nname: braces\ndescription: Fills {topic} in {other}.\n---\nHi.\n")
    skills = Skills(library)
    agent, model = make_agent(skills, "done")
    task = crewai.Task(description="Write about {topic}.", expected_output="a text", agent=agent)
    assert crewai.Crew(agents=[agent], tasks=[task]).kickoff(inputs={"topic": "cats"}).raw == "done"
    assert "Fills { topic } in { other }." in model.requests[0][0]["content"]


def test_each_conversation_has_its_own_session(library: Path) -> None:
    skills = Skills(library)
    first, _ = make_agent(skills, load("greet"), "one", key="ann")
    second, _ = make_agent(skills, load("picture"), "two", key="bob")
    first.kickoff("hello")
    second.kickoff("hello")
    assert skills.session("ann").active_skills == ("greet",)
    assert skills.session("bob").active_skills == ("picture",)


def test_tools_without_a_key_begin_a_conversation(library: Path) -> None:
    skills = Skills(library)
    for _ in range(2):
        (tool,) = [tool for tool in skills.tools() if tool.name == "load_skill"]
        assert "it was active already" not in tool.run(name="greet")
        assert "it was active already" in tool.run(name="greet")


def test_tools_work_in_asynchronous_code(library: Path) -> None:
    agent, model = make_agent(Skills(library), load("greet"), "done")
    assert asyncio.run(agent.kickoff_async("hello")).raw == "done"
    assert "Say hello" in find_results(model.requests[-1])[0]
    (tool,) = [tool for tool in Skills(library).tools() if tool.name == "load_skill"]
    assert "Say hello" in asyncio.run(tool.arun(name="greet"))


def test_errors_are_results(library: Path) -> None:
    calls = [
        [("load_skill", {"name": "nobody"})],
        [("load_skill", {"wrong": 1})],
        [("read_skill_file", {"name": "greet", "path": "references/none.md"})],
    ]
    agent, model = make_agent(Skills(library), *calls, "done")
    assert agent.kickoff("hello").raw == "done"
    unknown, wrong, missing = find_results(model.requests[-1])
    assert "unknown skill 'nobody'" in unknown
    assert "name" in wrong
    assert "references/none.md" in missing


def test_result_is_never_taken_from_the_cache(library: Path) -> None:
    agent, model = make_agent(Skills(library), load("greet"), load("greet"), "done")
    agent.kickoff("hello")
    first, second = find_results(model.requests[-1])
    assert "it was active already" not in first
    assert "it was active already" in second


@pytest.mark.parametrize("decision", [True, False])
def test_person_is_asked_by_the_trust_that_the_host_gives(library: Path, decision: bool) -> None:
    asked: list[str] = []

    def ask(request: prowess.TrustRequest) -> bool:
        asked.append(str(request))
        return decision

    skills = Skills(library, scripts=True, trust=prowess.Trust(ask=ask))
    agent, model = make_agent(skills, [RUN_COUNT], "done")
    agent.kickoff("how long?")
    assert "scripts/count.py a b" in asked[0]
    assert ("2 words" in find_results(model.requests[-1])[0]) is decision


@pytest.mark.parametrize("is_stopped", [False, True])
def test_yes_counts_for_one_call_however_that_ends(library: Path, is_stopped: bool) -> None:
    answers = [True, False, True]

    def stop(event: prowess.Event) -> None:
        if event.kind == "ran" and is_stopped:
            raise KeyboardInterrupt

    trust = prowess.Trust(ask=lambda _: answers.pop(0))
    (tool,) = [
        tool
        for tool in Skills(library, scripts=True, trust=trust, on_event=stop).tools("ann")
        if tool.name == "run_skill_script"
    ]
    with pytest.raises(KeyboardInterrupt) if is_stopped else nullcontext():
        assert "2 words" in tool.run(**RUN_COUNT[1])
    assert "said no" in str(tool.run(**RUN_COUNT[1]))
    assert answers == [True]


def test_script_that_nobody_approved_does_not_run(library: Path) -> None:
    agent, model = make_agent(Skills(library, scripts=True), [RUN_COUNT], "done")
    agent.kickoff("how long?")
    (result,) = find_results(model.requests[-1])
    assert "2 words" not in result
    assert "count-words" in result


def test_enforcing_is_refused_because_the_adapter_sees_no_other_tools(library: Path) -> None:
    with pytest.raises(prowess.SourceError, match="enforce is not possible here"):
        Skills(library, enforce=True)


def test_skills_that_fork_are_loaded_instead(library: Path) -> None:
    skills = Skills(library)
    assert "run_skill" not in {tool.name for tool in skills.tools()}
    (tool,) = [tool for tool in skills.tools() if tool.name == "load_skill"]
    assert "Review the text." in tool.run(name="review")


@pytest.mark.usefixtures("library")
def test_example_runs() -> None:
    main = runpy.run_path(str(ROOT / "examples/frameworks/crewai.py"))["main"]
    assert main(ScriptedModel([load("count-words"), [RUN_COUNT], "two words"]), lambda _: True) == "two words"


@pytest.mark.usefixtures("library")
def test_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ScriptedModel([load("csv-report"), "The report."])
    (tmp_path / "reader").mkdir()
    names = run_framework_page("crewai", tmp_path / "reader", monkeypatch, {"model": model})
    assert names["skills"].session("ann").active_skills == ("csv-report",)


def test_each_user_has_the_skills_of_their_scope(library: Path) -> None:
    skills = Skills(library, scope=lambda context: prowess.Scope(allowed=RIGHTS[context.key]))
    check_listings(skills.prompt(key="ann"), skills.prompt(key="bob"))
    said = {}
    for user in RIGHTS:
        (tool,) = [tool for tool in skills.tools(user) if tool.name == "load_skill"]
        said[user] = str(tool.run(name="picture"))
    assert "unknown skill 'picture'" in said["ann"]
    assert "Look at assets/pixel.png." in said["bob"]
