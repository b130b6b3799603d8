"""Activating and deactivating: instructions, tools, the limit, and skills that are active from the start."""

from collections.abc import Callable
from pathlib import Path

import pytest

import prowess
from prowess import Session
from tests.skill_fixtures import preloaded

Put = Callable[..., Path]
Scanned = Callable[..., prowess.Catalog]


# -- activating -----------------------------------------------------------------------------------------------------


def test_activating_gives_the_instructions_and_the_tools(put: Put, scanned: Scanned) -> None:
    put("pdf", tools="Read Bash(git:*) Edit", body="\n  Fill the form.\n\n")
    session = Session(scanned(), tools="any")
    assert (session.active_skills, session.active_tools) == ((), ())
    activation = session.activate("pdf")
    assert activation.skill.name == "pdf"
    assert activation.instructions == "Fill the form."
    assert activation.added_tools == ("Bash(git:*)", "Edit", "Read")
    assert activation.note == ""
    assert session.active_skills == ("pdf",)
    assert session.active_tools == ("Bash(git:*)", "Edit", "Read")


def test_active_skills_and_tools_are_sorted_and_each_is_there_once(put: Put, scanned: Scanned) -> None:
    put("b", tools="Read Write")
    put("a", tools="Read Edit")
    session = Session(scanned(), tools="any")
    session.activate("b")
    session.activate("a")
    assert session.active_skills == ("a", "b")
    assert session.active_tools == ("Edit", "Read", "Write")


def test_a_tool_that_a_skill_names_twice_counts_once(put: Put, scanned: Scanned) -> None:
    put("a", tools="Read, Read Edit Read")
    assert Session(scanned(), tools="any").activate("a").added_tools == ("Edit", "Read")


def test_activating_again_gives_what_was_loaded_the_first_time(put: Put, scanned: Scanned) -> None:
    put("pdf", tools="Read", body="first")
    session = Session(scanned(), tools="any")
    first = session.activate("pdf")
    put("pdf", tools="Edit", body="second")
    again = session.activate("pdf")
    assert (again.instructions, again.added_tools) == ("first", ("Read",))
    assert again.skill is first.skill
    assert "already" in again.note
    assert session.active_skills == ("pdf",)


def test_a_skill_that_was_ended_is_read_anew(put: Put, scanned: Scanned) -> None:
    put("pdf", tools="Read", body="first")
    session = Session(scanned(), tools="any")
    session.activate("pdf")
    session.deactivate("pdf")
    put("pdf", tools="Edit", body="second, and longer")
    again = session.activate("pdf")
    assert (again.instructions, again.added_tools) == ("second, and longer", ("Edit",))


def test_activation_parses_the_file_that_it_loads(put: Put, scanned: Scanned) -> None:
    put("pdf", tools="Read", body="first")
    catalog = scanned()
    put("pdf", tools="Edit Write", extra="license: MIT", body="second")
    activation = Session(catalog, tools="any").activate("pdf")
    assert (activation.instructions, activation.added_tools) == ("second", ("Edit", "Write"))
    assert activation.skill.license == "MIT"


def test_a_skill_is_found_by_its_written_name_with_a_colon_too(put: Put, scanned: Scanned) -> None:
    put("agent-base", name="maestro:agent-base", tools="Read")
    session = Session(scanned(), tools=["Read"])
    assert session.catalog.names == ("maestro-agent-base",)
    activation = session.activate("maestro:agent-base")
    assert (activation.skill.name, activation.skill.written_name) == ("maestro-agent-base", "maestro:agent-base")
    assert session.active_skills == ("maestro-agent-base",)
    assert session.activate("maestro-agent-base").note == session.activate("maestro:agent-base").note != ""
    assert session.moment().find("maestro:agent-base")
    assert session.deactivate("maestro:agent-base") == ("Read",)
    assert session.activate_text("maestro:agent-base") == "Do it.\n"
    assert session.active_skills == ("maestro-agent-base",)
    for allowed in (None, ["maestro:agent-base"], ["maestro-agent-base"]):
        for name in ("maestro:agent-base", "maestro-agent-base"):
            assert not prowess.Toolset(session, allowed=allowed).call("load_skill", {"name": name}).is_error
    put("other")
    refused = prowess.Toolset(Session(scanned()), allowed=["other"]).call("load_skill", {"name": "maestro:agent-base"})
    assert refused.is_error


def test_a_name_with_a_colon_that_no_file_has_is_unknown(put: Put, scanned: Scanned) -> None:
    put("team-pdf")
    session = Session(scanned())
    with pytest.raises(prowess.UnknownSkillError, match="team-pdf"):
        session.activate("team:pdf")
    assert session.expand("/team:pdf") == ""


def test_of_a_name_with_a_colon_and_the_same_with_a_hyphen_one_wins(put: Put, scanned: Scanned) -> None:
    put("a", name="team-pdf", body="Hyphen.")
    put("b", name="team:pdf", body="Colon.")
    catalog = scanned()
    assert (catalog.load_body("team-pdf"), "team:pdf" in catalog) == ("Hyphen.\n", False)
    assert [lost.name for lost in catalog.shadowed] == ["team-pdf"]


def test_an_unknown_name_is_an_error_that_lists_the_nearest(put: Put, scanned: Scanned) -> None:
    put("pdf-forms")
    put("charts")
    session = Session(scanned())
    with pytest.raises(prowess.UnknownSkillError) as caught:
        session.activate("pdf-form")
    assert caught.value.available == ["pdf-forms", "charts"]
    assert session.active_skills == ()


def test_an_unknown_name_does_not_list_what_the_filter_hides(put: Put, scanned: Scanned) -> None:
    put("a/one")
    put("b/two")
    with pytest.raises(prowess.UnknownSkillError) as caught:
        Session(scanned(), filter="skills/a/*").activate("three")
    assert caught.value.available == ["one"]


def test_a_skill_that_cannot_be_loaded_is_an_error_and_stays_inactive(put: Put, scanned: Scanned) -> None:
    path = put("pdf")
    put("good")
    session = Session(scanned(), max_active=1)
    path.unlink()
    with pytest.raises(prowess.SkillValidationError):
        session.activate("pdf")
    assert session.active_skills == ()
    assert session.activate("good").instructions == "Do it."


def test_an_empty_body_activates_with_no_instructions(put: Put, scanned: Scanned) -> None:
    put("pdf", body="")
    assert Session(scanned()).activate("pdf").instructions == ""


def test_an_inline_skill_activates_like_any_other() -> None:
    source = prowess.Source.inline("greet", "Greets.", "Say hello.\n", allowed_tools=["Read"])
    activation = Session(prowess.Catalog.from_sources([source]), tools="any").activate("greet")
    assert (activation.instructions, activation.added_tools) == ("Say hello.", ("Read",))


def test_a_session_says_what_is_active(put: Put, scanned: Scanned) -> None:
    put("a")
    put("b")
    session = Session(scanned())
    assert repr(session) == "<Session of 2 skills, active: none>"
    session.activate("b")
    assert repr(session) == "<Session of 2 skills, active: b>"


# -- deactivating ---------------------------------------------------------------------------------------------------


def test_deactivating_gives_only_the_tools_that_nobody_else_needs(put: Put, scanned: Scanned) -> None:
    put("a", tools="Read Edit Write")
    put("b", tools="Read Grep")
    put("c", tools="Edit")
    session = Session(scanned(), tools="any")
    for name in "abc":
        session.activate(name)
    assert session.deactivate("a") == ("Write",)
    assert list(session.active_tools) == ["Edit", "Grep", "Read"]
    assert session.deactivate("b") == ("Grep", "Read")
    assert session.deactivate("c") == ("Edit",)
    assert (session.active_skills, session.active_tools) == ((), ())


def test_two_patterns_of_one_tool_are_two_tools(put: Put, scanned: Scanned) -> None:
    put("a", tools="Bash(git:*)")
    put("b", tools="Bash(npm:*)")
    session = Session(scanned(), tools="any")
    session.activate("a")
    session.activate("b")
    assert session.deactivate("a") == ("Bash(git:*)",)


@pytest.mark.parametrize("name", ["pdf", "unknown", ""])
def test_only_an_active_skill_can_be_deactivated(name: str, put: Put, scanned: Scanned) -> None:
    put("pdf")
    session = Session(scanned())
    with pytest.raises(prowess.SkillNotActiveError) as caught:
        session.deactivate(name)
    assert caught.value.code == "not-active"
    session.activate("pdf")
    session.deactivate("pdf")
    with pytest.raises(prowess.SkillNotActiveError):
        session.deactivate("pdf")


# -- the limit ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [0, -1, -100])
def test_zero_or_less_is_not_a_limit(most: int, put: Put, scanned: Scanned) -> None:
    for n in range(8):
        put(f"s{n}")
    session = Session(scanned(), max_active=most)
    for n in range(8):
        session.activate(f"s{n}")
    assert len(session.active_skills) == 8


@pytest.mark.parametrize(("limit", "told"), [(1, "1 active skill at once"), (2, "2 active skills at once")])
def test_the_limit_is_told_in_words_that_hold_beside_preloaded_skills(
    limit: int, told: str, put: Put, scanned: Scanned
) -> None:
    for name in "abc":
        put(name)
    catalog = scanned() | prowess.Source.inline("greet", "Greets.", "Hi.", preload=True).load()
    session = Session(catalog, max_active=limit)
    for name in "ab"[:limit]:
        session.activate(name)
    with pytest.raises(prowess.MaxActiveError, match=f"the session allows {told}"):
        session.activate("c")


def test_at_the_limit_another_is_refused_and_an_active_one_is_not(put: Put, scanned: Scanned) -> None:
    for name in "abc":
        put(name)
    session = Session(scanned(), max_active=2)
    session.activate("a")
    session.activate("b")
    with pytest.raises(prowess.MaxActiveError) as caught:
        session.activate("c")
    assert caught.value.code == "max-active"
    assert session.activate("a").instructions == "Do it."
    session.deactivate("a")
    assert session.activate("c").instructions == "Do it."
    assert session.active_skills == ("b", "c")


def test_what_the_filter_ended_makes_room(put: Put, scanned: Scanned) -> None:
    put("a/one")
    put("b/two")
    session = Session(scanned(), max_active=1)
    session.activate("one")
    session.set_filter("skills/b/*")
    assert session.activate("two").skill.name == "two"


def test_a_refusal_by_the_filter_comes_before_one_by_the_limit(put: Put, scanned: Scanned) -> None:
    put("a/one")
    put("b/two")
    session = Session(scanned(), max_active=1, filter="skills/a/*")
    session.activate("one")
    with pytest.raises(prowess.SkillFilteredError):
        session.activate("two")
    with pytest.raises(prowess.UnknownSkillError):
        session.activate("three")


def test_a_refusal_by_the_limit_comes_before_the_file_is_read(put: Put, scanned: Scanned) -> None:
    put("a")
    path = put("b")
    session = Session(scanned(), max_active=1)
    session.activate("a")
    path.unlink()
    with pytest.raises(prowess.MaxActiveError):
        session.activate("b")


# -- preloaded skills -----------------------------------------------------------------------------------------------


def test_preloaded_skills_are_active_from_the_start(put: Put, scanned: Scanned) -> None:
    put("a", tools="Read", body="Text of a.")
    put("b", tools="Edit")
    session = Session(scanned("a"), tools="any")
    assert (session.active_skills, session.active_tools) == (("a",), ("Read",))
    assert session.activate("a").instructions == "Text of a."
    assert list(preloaded(session).values()) == ["Text of a."]


def test_preloaded_skills_do_not_count_against_the_limit(put: Put, scanned: Scanned) -> None:
    for name in "abcd":
        put(name)
    session = Session(scanned("a", "b"), max_active=1)
    assert list(session.active_skills) == ["a", "b"]
    session.activate("c")
    assert list(session.active_skills) == ["a", "b", "c"]
    with pytest.raises(prowess.MaxActiveError):
        session.activate("d")
    assert session.activate("a").skill.name == "a"
    session.deactivate("a")
    with pytest.raises(prowess.MaxActiveError):
        session.activate("d")


def test_preloaded_skills_are_under_the_ceiling_too(put: Put, scanned: Scanned) -> None:
    put("a", tools="Read Edit")
    assert Session(scanned("a"), tools=["Read"]).active_tools == ("Read",)


def test_a_preloaded_skill_can_be_ended(put: Put, scanned: Scanned) -> None:
    put("a", tools="Read")
    session = Session(scanned("a"), tools="any")
    assert session.deactivate("a") == ("Read",)
    assert (session.active_skills, preloaded(session)) == ((), {})


def test_a_preloaded_skill_that_cannot_be_loaded_hides_no_other(put: Put, scanned: Scanned) -> None:
    path = put("a")
    put("b")
    catalog = scanned("a", "b")
    path.unlink()
    session = Session(catalog)
    assert session.active_skills == ("b",)


def test_a_preloaded_skill_whose_file_took_another_name_is_known_by_the_old_one(put: Put, scanned: Scanned) -> None:
    put("a", tools="Read")
    catalog = scanned("a")
    put("a", name="other", tools="Read")
    session = Session(catalog, tools="any")
    assert session.active_skills == ("a",)
    assert "already" in session.activate("a").note
    assert session.deactivate("a") == ("Read",)


def test_a_skill_whose_file_took_another_name_is_active_under_the_old_one(put: Put, scanned: Scanned) -> None:
    put("a")
    session = Session(scanned())
    put("a", name="other")
    assert session.activate("a").skill.name == "other"
    assert list(session.active_skills) == ["a"]
    session.deactivate("a")
    assert list(session.active_skills) == []
