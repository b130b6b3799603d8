"""A skill that needs a tool which the agent does not have is not offered to its model."""

from __future__ import annotations

import pytest

import prowess
from prowess.adapters.core import SkillsAdapter


def make_catalog() -> prowess.Catalog:
    heads = {"plain": "", "searching": "requires:\n  tools: [web_search]\n", "filing": "mcp-servers: [github]\n"}
    skills = []
    for name, fields in heads.items():
        text = f"---\nname: {name}\ndescription: Does it.\n{fields}---\nDo it.\n"
        skills.append(prowess.parse_skill(text, check_dir=False).skill)
    return prowess.Catalog(skills)


def names(session: prowess.Session) -> list[str]:
    return [skill.name for skill in session.candidates()]


def test_models_see_only_skills_whose_tools_there_are() -> None:
    session = prowess.Session(make_catalog(), available_tools=["web_search"])
    toolset = prowess.Toolset(session)
    assert names(session) == ["plain", "searching"]
    assert "filing" not in toolset.prompt()
    assert "unknown skill 'filing'" in toolset.call("load_skill", {"name": "filing"}).content
    explanation = toolset.explain("filing")
    assert not explanation.visible
    reason = "it needs the MCP server github, which the agent does not have"
    assert explanation.reasons[-1] == f"not in the listing: {reason}"
    session.set_available_tools(["mcp__github__create_issue"])
    assert names(session) == ["filing", "plain"]
    assert "filing" in toolset.prompt()
    session.set_available_tools(None)
    assert names(session) == ["filing", "plain", "searching"]


def test_people_can_still_call_a_skill_whose_tool_is_missing() -> None:
    session = prowess.Session(make_catalog(), available_tools=[])
    assert "Do it." in session.expand("/filing")


def test_nothing_is_left_out_while_the_tools_are_unknown() -> None:
    assert names(prowess.Session(make_catalog())) == ["filing", "plain", "searching"]


def test_a_restored_session_has_the_tools_of_its_host() -> None:
    catalog = make_catalog()
    saved = prowess.Session(catalog, available_tools=["web_search"]).save()
    session, _ = prowess.Session.restore(catalog, saved, available_tools=[])
    assert names(session) == ["plain"]


def test_one_name_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(prowess.SourceError, match="available_tools"):
        prowess.Session(make_catalog(), available_tools="web_search")


def test_an_adapter_adds_tools_that_it_cannot_see() -> None:
    def list_shown(skills: SkillsAdapter, *seen: str) -> list[str]:
        conversation = skills.conversations.begin()
        conversation.note_tools(seen)
        return names(conversation.session)

    catalog = make_catalog()
    assert list_shown(SkillsAdapter(catalog)) == ["plain"]
    assert list_shown(SkillsAdapter(catalog), "web_search") == ["plain", "searching"]
    assert list_shown(SkillsAdapter(catalog, available_tools=["github"]), "web_search") == [
        "filing",
        "plain",
        "searching",
    ]
    assert list_shown(SkillsAdapter(catalog, available_tools="any")) == ["filing", "plain", "searching"]
    assert names(SkillsAdapter(catalog, available_tools=["github"]).session("one")) == ["filing", "plain"]


def test_a_skill_that_is_switched_off_does_not_exist_for_the_conversation() -> None:
    session = prowess.Session(make_catalog())
    session.set_scope(prowess.Scope(off=["plain", "gone"]))
    toolset = prowess.Toolset(session)
    assert names(session) == ["filing", "searching"]
    assert "unknown skill 'plain'" in toolset.call("load_skill", {"name": "plain"}).content
    assert toolset.explain("plain").reasons[-1] == "not in the listing: switched off"
    with pytest.raises(prowess.UnknownSkillError):
        session.activate("plain")
    session.set_scope(prowess.Scope())
    assert names(session) == ["filing", "plain", "searching"]
