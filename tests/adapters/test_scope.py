"""Scopes: what each user has and may run, decided by one function of the host."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from prowess import Scope, ScopeContext, Scripts, Session, SourceError, Toolset, Trust, UnknownSkillError, scan
from prowess.adapters.core import SkillsAdapter, aturn, turn
from tests.adapters.approval_orders import RUN_COUNT, UNBOXED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from prowess import Event

RIGHTS: dict[str, Scope] = {
    "ann": Scope(allowed=["greet", "count-words"], trust="defer", scripts=UNBOXED),
    "bob": Scope(trust="never"),
    "eve": Scope(allowed=[]),
    "boss": Scope(),
}


def names_of(prompt: str) -> set[str]:
    return {name for name in ("greet", "count-words", "review", "picture", "careful") if f"<name>{name}<" in prompt}


def by_user(context: ScopeContext) -> Scope:
    return RIGHTS[context.framework["user"]]


@pytest.fixture
def skills(library: Path) -> SkillsAdapter:
    return SkillsAdapter(library, scope=by_user)


def open_for(skills: SkillsAdapter, user: str, key: str = "") -> Any:
    return skills.conversations.open(key or user, context={"user": user})


def test_each_user_sees_the_skills_of_their_scope(library: Path) -> None:
    rights = {**RIGHTS, "bob": Scope(filter=str(library / "greet"))}
    skills = SkillsAdapter(library, scope=lambda context: rights[context.framework["user"]])
    shown = {user: names_of(turn(open_for(skills, user)).prompt) for user in rights}
    assert shown == {
        "ann": {"greet", "count-words"},
        "bob": {"greet"},
        "eve": set(),
        "boss": {"greet", "count-words", "review", "picture", "careful"},
    }


def test_a_skill_out_of_scope_does_not_exist_for_the_model(skills: SkillsAdapter) -> None:
    result = open_for(skills, "ann").call("load_skill", {"name": "careful"})
    missing = open_for(skills, "ann").call("load_skill", {"name": "no-such"})
    assert result.is_error
    assert result.content == missing.content.replace("no-such", "careful")


def test_a_scope_gets_the_key_of_the_conversation(library: Path) -> None:
    seen: list[ScopeContext] = []

    def scope(context: ScopeContext) -> Scope:
        seen.append(context)
        return Scope()

    skills = SkillsAdapter(library, scope=scope)
    skills.conversations.open("ann:1", context="framework's own")
    skills.prompt()
    assert seen == [ScopeContext("ann:1", "framework's own"), ScopeContext("", None)]


def test_a_scope_that_changes_counts_from_the_next_request_on(library: Path) -> None:
    rights = {"now": Scope(allowed=["greet", "careful"])}
    skills = SkillsAdapter(library, scope=lambda _: rights["now"])
    conversation = skills.conversations.open("ann")
    for name in ("greet", "careful"):
        assert not conversation.call("load_skill", {"name": name}).is_error
    rights["now"] = Scope(allowed=["greet"])
    again = skills.conversations.open("ann")
    assert again is conversation
    assert again.session.active_skills == ("greet",)
    assert names_of(turn(again).prompt) == {"greet"}
    assert again.call("read_skill_file", {"name": "careful", "path": "SKILL.md"}).is_error
    rights["now"] = Scope()
    assert skills.conversations.open("ann").session.active_skills == ("careful", "greet")  # it comes back


def test_a_scope_that_was_widened_counts_after_a_restart(library: Path) -> None:
    narrow = SkillsAdapter(library, scope=lambda _: Scope(filter=str(library / "greet")))
    saved = narrow.conversations.open("ann").save()
    wide = SkillsAdapter(library, scope=lambda _: Scope(allowed=["careful"]))
    assert names_of(turn(wide.conversations.open("ann", saved)).prompt) == {"careful"}


def test_a_scope_decides_who_runs_scripts_and_under_which_trust(library: Path) -> None:
    skills = SkillsAdapter(library, scripts=UNBOXED, scope=by_user)
    assert open_for(skills, "ann").call(*RUN_COUNT, call_id="1").pending is not None
    never = open_for(SkillsAdapter(library, scripts=UNBOXED, scope=lambda _: Scope(trust="never")), "bob")
    refused = never.call(*RUN_COUNT)
    assert refused.is_error
    assert refused.pending is None
    without = SkillsAdapter(library, scripts=UNBOXED, scope=lambda _: Scope(scripts=False)).conversations.open("x")
    assert "run_skill_script" not in {tool.name for tool in turn(without).tools}
    assert "does not run scripts" in without.call(*RUN_COUNT).content


def test_a_policy_by_name_has_the_grants_of_the_usual_trust(library: Path, tmp_path: Path) -> None:
    trust = Trust(tmp_path / "grants.json", policy="never")
    trust.grant(scan(library)["count-words"])
    skills = SkillsAdapter(library, trust=trust, scripts=UNBOXED, scope=lambda _: Scope(trust="granted"))
    assert "2 words" in skills.conversations.open("ann").call(*RUN_COUNT).content


def test_no_scope_has_what_the_arguments_leave_out(library: Path) -> None:
    skills = SkillsAdapter(library, allowed=["greet", "picture"], scope=lambda _: Scope(allowed=["greet", "careful"]))
    assert names_of(skills.prompt()) == {"greet"}
    filtered = SkillsAdapter(library, filter=str(library / "greet"), scope=lambda _: Scope(allowed=["careful"]))
    assert names_of(filtered.prompt()) == set()


def test_a_scope_may_be_found_by_a_coroutine(library: Path) -> None:
    async def scope(context: ScopeContext) -> Scope:
        await asyncio.sleep(0)
        return Scope(allowed=[context.key])

    skills = SkillsAdapter(library, scope=scope)

    async def show() -> str:
        return (await aturn(await skills.conversations.aopen("greet"))).prompt

    assert names_of(asyncio.run(show())) == {"greet"}
    assert names_of(turn(skills.conversations.open("careful")).prompt) == {"careful"}

    async def open_plainly() -> str:
        return turn(skills.conversations.open("picture")).prompt

    assert names_of(asyncio.run(open_plainly())) == {"picture"}


def test_users_without_a_scope_get_nothing(skills: SkillsAdapter) -> None:
    with pytest.raises(KeyError):
        open_for(skills, "stranger")
    with pytest.raises(TypeError):  # whoever forgets the context is not taken for somebody
        skills.session("ann")
    nothing: Callable[[ScopeContext], Any] = lambda _: None  # noqa: E731
    with pytest.raises(SourceError, match="what scope returns"):
        SkillsAdapter(skills.catalog, scope=nothing).session("ann")


def test_an_allowed_name_of_no_skill_is_an_event(library: Path) -> None:
    events: list[Event] = []
    skills = SkillsAdapter(library, on_event=events.append, scope=lambda _: Scope(allowed=["greet", "gret"]))
    skills.conversations.open("ann")
    assert [(event.kind, event.skill) for event in events] == [("missing", "gret")]


def test_fixed_lists_of_tools_name_no_skills_where_users_have_their_own(library: Path) -> None:
    tools = SkillsAdapter(library, scope=by_user).list_definitions()
    assert "run_skill_script" in {tool.name for tool in tools}
    assert not any("enum" in schema for tool in tools for schema in tool.parameters["properties"].values())
    assert any(
        "enum" in schema
        for tool in SkillsAdapter(library).list_definitions()
        for schema in tool.parameters["properties"].values()
    )


@pytest.mark.parametrize("allowed", ["greet", [1]])
def test_a_mistake_in_a_scope_is_reported(allowed: Any) -> None:
    with pytest.raises(SourceError):
        Scope(allowed=allowed)


def test_a_session_without_an_adapter_has_a_scope_too(library: Path) -> None:
    session = Session(scan(library))
    assert session.set_scope(Scope(allowed=["greet", "nobody"])) == ("nobody",)
    assert [skill.name for skill in session.candidates()] == ["greet"]
    with pytest.raises(UnknownSkillError) as caught:
        session.activate("careful")
    assert "did you mean" not in str(caught.value)
    assert "not among the allowed skills" in session.explain("careful").reasons[-1]
    assert "careful" not in Toolset(session, allowed=["greet", "careful"]).prompt()
    with pytest.raises(SourceError, match=r"Trust\(policy='never'\)"):
        session.set_scope(Scope(trust="never"))
    with pytest.raises(SourceError, match="scope"):
        session.set_scope("greet")  # type: ignore[arg-type]


def test_scopes_of_users_at_once_do_not_mix(library: Path) -> None:
    skills = SkillsAdapter(library, scripts=Scripts(sandbox="none"), scope=lambda context: Scope(allowed=[context.key]))

    async def use(key: str) -> set[str]:
        conversation = await skills.conversations.aopen(key)
        return names_of((await aturn(conversation, f"please {key}")).prompt)

    async def use_all() -> list[set[str]]:
        return list(await asyncio.gather(*(use(key) for key in ["greet", "careful", "picture"] * 20)))

    assert asyncio.run(use_all()) == [{"greet"}, {"careful"}, {"picture"}] * 20


@pytest.mark.parametrize("hide_paths", [None, False, True])
def test_paths_of_this_machine_are_hidden_where_the_host_says_so(library: Path, hide_paths: bool | None) -> None:
    (library / "greet/SKILL.md").write_text("---\nname: greet\ndescription: Greets.\n---\nSee ${CLAUDE_SKILL_DIR}/x.\n")
    conversation = SkillsAdapter(library, hide_paths=hide_paths).conversations.open("ann")
    said = conversation.call("load_skill", {"name": "greet"}).content + turn(conversation).prompt
    assert (str(library) in said) is not bool(hide_paths)
