"""Saving sessions and restoring them: what is saved, what has changed since, and which bounds hold."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prowess
from prowess import Session

Put = Callable[..., Path]
Scanned = Callable[..., prowess.Catalog]
Tools = list[str] | Literal["any"] | None


def codes(issues: tuple[prowess.Issue, ...]) -> list[tuple[str, str]]:
    return [(issue.field, issue.code) for issue in issues]


def test_a_session_is_restored_as_it_was(put: Put, scanned: Scanned) -> None:
    put("x/a", tools="Read", body="Text of a.")
    put("x/b")
    put("y/c")
    session = Session(scanned(), tools="any")
    session.set_filter("skills/x/*")
    session.activate("a")
    restored, issues = Session.restore(scanned(), session.save(), tools="any")
    assert issues == ()
    assert restored.filter == "skills/x/*"
    assert (restored.active_skills, restored.active_tools) == (("a",), ("Read",))
    assert restored.activate("a").instructions == "Text of a."
    assert restored.save() == session.save()


def test_what_is_saved_is_names_digests_and_the_filter(put: Put, scanned: Scanned) -> None:
    put("a", body="A secret text.")
    catalog = scanned()
    session = Session(catalog, filter="skills/*")
    session.activate("a")
    saved = session.save()
    assert json.loads(saved)["filter"] == "skills/*"
    assert json.loads(saved)["active"] == {"a": catalog["a"].digest()}
    assert "secret" not in saved


def test_a_session_of_nothing_is_restored_too() -> None:
    restored, issues = Session.restore(prowess.Catalog(), Session(prowess.Catalog()).save())
    assert (restored.active_skills, restored.filter, issues) == ((), "", ())


def test_the_options_of_a_session_are_given_when_it_is_restored(put: Put, scanned: Scanned) -> None:
    put("a", tools="Read Edit")
    put("b")
    session = Session(scanned(), tools="any")
    session.activate("a")
    events: list[prowess.Event] = []
    restored, _ = Session.restore(
        scanned(), session.save(), tools=["Read"], max_active=1, on_event=events.append, id="conversation-7"
    )
    assert restored.active_tools == ("Read",)
    with pytest.raises(prowess.MaxActiveError):
        restored.activate("b")
    assert [(event.kind, event.session) for event in events] == [("refused", "conversation-7")]


def test_a_restored_session_goes_by_the_id_that_the_host_gives(put: Put, scanned: Scanned) -> None:
    put("a")
    catalog = scanned()
    session = Session(catalog, id="conversation-7")
    session.activate("a")
    events: list[prowess.Event] = []
    restored, _ = Session.restore(catalog, session.save(), on_event=events.append, id="conversation-7")
    assert restored.id == "conversation-7"
    assert events == []  # the skill was active all the time
    restored.deactivate("a")
    assert {event.session for event in events} == {"conversation-7"}
    assert Session.restore(catalog, session.save())[0].id != "conversation-7"
    wrong: Any = 7
    with pytest.raises(prowess.SourceError, match="id must be a string, not the int 7"):
        Session.restore(catalog, session.save(), id=wrong)


def test_a_skill_that_changed_meanwhile_is_named(put: Put, scanned: Scanned) -> None:
    put("a", body="first")
    put("b")
    session = Session(scanned())
    session.activate("a")
    session.activate("b")
    saved = session.save()
    path = put("a", body="second")
    restored, issues = Session.restore(scanned(), saved)
    assert codes(issues) == [("a", "changed-since-saved")]
    assert issues[0].path == str(path)
    assert restored.activate("a").instructions == "second"
    assert restored.active_skills == ("a", "b")


def test_a_changed_file_beside_the_skill_counts_too(put: Put, scanned: Scanned) -> None:
    folder = put("a").parent
    session = Session(scanned())
    session.activate("a")
    saved = session.save()
    (folder / "run.sh").write_text("echo", encoding="utf-8")
    assert codes(Session.restore(scanned(), saved)[1]) == [("a", "changed-since-saved")]


def test_a_touched_file_has_not_changed(put: Put, scanned: Scanned) -> None:
    path = put("a")
    session = Session(scanned())
    session.activate("a")
    saved = session.save()
    os.utime(path, (1, 1))
    assert Session.restore(scanned(), saved)[1] == ()


def test_a_skill_that_is_missing_is_named_and_the_others_are_restored(put: Put, scanned: Scanned) -> None:
    gone = put("a").parent
    put("b")
    session = Session(scanned())
    session.activate("a")
    session.activate("b")
    saved = session.save()
    rmtree(gone)
    restored, issues = Session.restore(scanned(), saved)
    assert codes(issues) == [("a", "missing-since-saved")]
    assert restored.active_skills == ("b",)


def test_a_vanished_active_skill_can_be_saved_and_is_then_missing(put: Put, scanned: Scanned) -> None:
    folder = put("a").parent
    session = Session(scanned())
    session.activate("a")
    rmtree(folder)
    session.refresh(scanned())
    assert codes(Session.restore(scanned(), session.save())[1]) == [("a", "missing-since-saved")]


def test_a_skill_without_a_digest_is_named_when_it_changed(put: Put, scanned: Scanned) -> None:
    """A link in its folder makes a digest impossible, not a change invisible."""
    path = put("a", body="first")
    (path.parent / "link").symlink_to("SKILL.md")
    session = Session(scanned())
    session.activate("a")
    saved = session.save()
    put("a", body="second")
    assert codes(Session.restore(scanned(), saved)[1]) == [("a", "changed-since-saved")]


def test_inline_skills_are_saved_and_compared_by_their_text() -> None:
    def catalog(text: str) -> prowess.Catalog:
        return prowess.Catalog.from_sources([prowess.Source.inline("greet", "Greets.", text)])

    session = Session(catalog("Say hello."))
    session.activate("greet")
    assert Session.restore(catalog("Say hello."), session.save())[1] == ()
    assert codes(Session.restore(catalog("Say goodbye."), session.save())[1]) == [("greet", "changed-since-saved")]


def test_preloaded_skills_are_active_again_by_themselves(put: Put, scanned: Scanned) -> None:
    put("a")
    put("b")
    session = Session(scanned("a"), max_active=1)
    session.activate("b")
    restored, issues = Session.restore(scanned("a"), session.save(), max_active=1)
    assert (restored.active_skills, issues) == (("a", "b"), ())


def test_a_preloaded_skill_that_changed_meanwhile_is_named_too(put: Put, scanned: Scanned) -> None:
    put("a", body="first")
    saved = Session(scanned("a")).save()
    put("a", body="second")
    assert codes(Session.restore(scanned("a"), saved)[1]) == [("a", "changed-since-saved")]


def test_a_preloaded_skill_that_was_ended_stays_ended(put: Put, scanned: Scanned) -> None:
    put("a")
    put("b")
    session = Session(scanned("a", "b"))
    session.deactivate("a")
    restored, _ = Session.restore(scanned("a", "b"), session.save())
    assert restored.active_skills == session.active_skills == ("b",)


# -- what a session may do stays bounded ----------------------------------------------------------------------------


@pytest.fixture
def wide(put: Put, scanned: Scanned) -> prowess.Catalog:
    """A skill that wants more than a careful host allows, and one in another folder."""
    put("x/a", tools="Read Edit Bash")
    put("y/b")
    return scanned()


def saved_with(catalog: prowess.Catalog, **options: Any) -> str:
    session = Session(catalog, **options)
    session.activate("a")
    return session.save()


def test_a_saved_ceiling_holds_in_the_session_that_is_restored(wide: prowess.Catalog) -> None:
    restored, issues = Session.restore(wide, saved_with(wide, tools=["Read"]), tools="any")
    assert (restored.active_tools, issues) == (("Read",), ())
    assert (restored.allows("Read"), restored.allows("Bash", "rm x"), restored.allows("Edit")) == (
        "allowed",
        "refused",
        "refused",
    )


def test_a_host_that_names_no_tools_restores_a_session_that_approves_none(wide: prowess.Catalog) -> None:
    """What was saved still bounds it; a text that is kept elsewhere approves nothing by itself."""
    restored, issues = Session.restore(wide, saved_with(wide, tools=["Read"]))
    assert (restored.active_skills, restored.active_tools, issues) == (("a",), (), ())
    assert (restored.allows("Read"), restored.allows("Bash", "rm x")) == ("not-mentioned", "refused")
    again, _ = Session.restore(wide, restored.save(), tools=["Read"])
    assert (again.active_tools, again.allows("Read")) == ((), "not-mentioned"), "what was given up stays so"
    forged = {**json.loads(restored.save()), "tools": None, "grants_tools": True}
    opened, _ = Session.restore(wide, json.dumps(forged))
    assert (opened.active_tools, opened.allows("Bash", "rm x")) == ((), "not-mentioned")


def test_an_older_save_without_grants_tools_approves_only_what_it_lists(
    wide: prowess.Catalog,
) -> None:
    def restored(tools: list[str] | None) -> tuple[str, ...]:
        saved = json.loads(saved_with(wide, tools=tools))
        del saved["grants_tools"]
        return Session.restore(wide, json.dumps(saved), tools="any")[0].active_tools

    assert (restored(None), restored(["Read"])) == ((), ("Read",))


@pytest.mark.parametrize(
    ("saved", "given", "both"),
    [
        (None, None, ()),
        (None, "any", ()),
        ("any", None, ()),
        ("any", "any", ("Bash", "Edit", "Read")),
        (["Read"], "any", ("Read",)),
        ("any", ["Read"], ("Read",)),
        (["Read"], None, ()),
        (None, ["Read"], ()),
        ([], None, ()),
        ([], ["Read"], ()),
        (["Read"], [], ()),
        (["Read", "Edit"], ["Edit", "Bash"], ("Edit",)),
        (["Bash(git:*)"], ["Bash"], ("Bash(git:*)",)),
        (["Bash"], ["Bash(git:*)", "Read"], ("Bash(git:*)",)),
        (["Bash(git:*)"], ["Bash(npm:*)"], ()),
        (["Bash(git:*)"], ["Bash(git status:*)"], ("Bash(git status:*)",)),
        (["Bash(git status)"], ["Bash(git:*)"], ("Bash(git status)",)),
        (["Bash(git:*)"], ["Bash(gitk:*)"], ()),
        (["*"], "any", ()),
        (["*"], ["Read"], ()),
        (["Read"], ["*"], ()),
    ],
)
def test_the_ceiling_of_a_restored_session_is_what_was_saved_and_given(
    saved: Tools, given: Tools, both: tuple[str, ...], wide: prowess.Catalog
) -> None:
    restored, _ = Session.restore(wide, saved_with(wide, tools=saved), tools=given)
    assert restored.active_tools == both
    again, _ = Session.restore(wide, restored.save(), tools="any")
    assert again.active_tools == both, "it holds however often it is saved"


@pytest.mark.parametrize("tools", [None, ["*"], ["Read", "Bash", "Edit"]])
def test_a_saved_text_that_somebody_widened_gives_no_more_than_the_host_does(
    tools: list[str] | None, wide: prowess.Catalog
) -> None:
    wider = {"tools": tools, "grants_tools": True, "max_active": 0, "filter": ""}
    forged = {**json.loads(saved_with(wide, tools=["Read"])), **wider}
    restored, _ = Session.restore(wide, json.dumps(forged), tools=["Read"], max_active=1, filter="skills/x/**")
    assert (restored.active_tools, restored.allows("Bash", "ls")) == (("Read",), "refused")
    assert restored.moment().find("b") is None


@pytest.mark.parametrize(("saved", "given"), [(1, None), (1, 0), (1, 5), (0, 1), (5, 1)])
def test_no_more_skills_are_active_than_was_saved_and_given(
    saved: int, given: int | None, wide: prowess.Catalog
) -> None:
    restored, _ = Session.restore(wide, saved_with(wide, max_active=saved), max_active=given)
    assert restored.active_skills == ("a",)
    with pytest.raises(prowess.MaxActiveError):
        restored.activate("b")


def test_the_saved_filter_and_the_given_one_both_hold(wide: prowess.Catalog) -> None:
    saved = saved_with(wide, filter="skills/x/**")
    assert Session.restore(wide, saved, filter="")[0].filter == "skills/x/**"
    restored, issues = Session.restore(wide, saved, filter="skills/y/**")
    assert [restored.moment().find(name) is not None for name in ("a", "b")] == [False, False]
    assert codes(issues) == [("a", "missing-since-saved")]
    restored.set_filter("")
    assert [restored.moment().find(name) is not None for name in ("a", "b")] == [True, False]
    with pytest.raises(prowess.SkillFilteredError):
        restored.activate("b", filter="")
    again, _ = Session.restore(wide, restored.save())
    assert [again.moment().find(name) is not None for name in ("a", "b")] == [True, False]


def test_a_host_that_asks_to_widen_replaces_what_was_saved(wide: prowess.Catalog) -> None:
    saved = saved_with(wide, tools=["Read"], max_active=1, filter="skills/x/**")
    kept, _ = Session.restore(wide, saved, tools=["Read", "Edit"], widen=True)
    assert (kept.active_tools, kept.filter) == (("Edit", "Read"), "skills/x/**")
    assert kept.moment().find("b") is None, "what is not given stays as it was saved"
    restored, _ = Session.restore(wide, saved, tools="any", max_active=0, filter="", widen=True)
    restored.activate("b")
    assert restored.active_skills == ("a", "b")
    assert restored.active_tools == ("Bash", "Edit", "Read")


def test_a_save_of_the_older_version_has_no_tools_and_says_so(wide: prowess.Catalog) -> None:
    """It did not record the ceiling, so nobody knows what the conversation was allowed."""
    old = json.dumps({"version": 1, "filter": "skills/x/**", "active": {"a": wide["a"].digest()}})
    restored, issues = Session.restore(wide, old, tools=["Read"])
    assert (restored.active_skills, restored.active_tools, restored.filter) == (("a",), (), "skills/x/**")
    assert restored.allows("Read") == "refused"
    assert codes(issues) == [("tools", "saved-without-ceiling")]
    assert "widen=True" in issues[0].hint
    widened, issues = Session.restore(wide, old, tools=["Read"], widen=True)
    assert (widened.active_tools, issues) == (("Read",), ())


@pytest.mark.parametrize(
    "wrong",
    [
        {"tools": "Read"},
        {"tools": ["Read", 5]},
        {"tools": {"Read": 1}},
        {"tools": "any"},
        {"max_active": -1},
        {"max_active": True},
        {"max_active": "1"},
        {"max_active": 1.5},
        {"bounds": "x"},
        {"bounds": [None]},
        {"filter": None},
    ],
)
@pytest.mark.parametrize("is_missing", [False, True])
def test_a_saved_bound_that_is_missing_or_no_bound_is_refused(wrong: dict[str, Any], is_missing: bool) -> None:
    saved = {**json.loads(Session(prowess.Catalog()).save()), **wrong}
    if is_missing:
        del saved[next(iter(wrong))]
    with pytest.raises(prowess.SourceError):
        Session.restore(prowess.Catalog(), json.dumps(saved))


@pytest.mark.parametrize(
    "wrong", [{"explicit_only": "a"}, {"explicit_only": [1]}, {"grants_tools": 1}, {"grants_tools": None}]
)
def test_a_field_that_older_saves_lack_is_refused_where_it_is_malformed(wrong: dict[str, Any]) -> None:
    saved = {**json.loads(Session(prowess.Catalog()).save()), **wrong}
    with pytest.raises(prowess.SourceError):
        Session.restore(prowess.Catalog(), json.dumps(saved))


@pytest.mark.parametrize(
    "saved",
    [
        "",
        "text",
        "null",
        "[]",
        "5",
        "{}",
        '{"version": 1}',
        '{"version": 1, "filter": "", "active": []}',
        '{"version": 1, "filter": null, "active": {}}',
        '{"version": 1, "filter": ["x"], "active": {}}',
        '{"version": 2, "filter": "", "active": {}}',
        '{"version": "1", "filter": "", "active": {}}',
        '{"filter": "", "active": {}}',
        '{"version": 1, "filter": "", "active": {}',
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_text_that_is_not_a_saved_session_is_refused(saved: str) -> None:
    with pytest.raises(prowess.SourceError):
        Session.restore(prowess.Catalog(), saved)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NEARLY = st.fixed_dictionaries(
    {"version": st.just(1) | JSON, "filter": st.text() | JSON, "active": st.dictionaries(st.text(), JSON) | JSON}
)


@given(st.text() | JSON.map(json.dumps) | NEARLY.map(json.dumps))
def test_any_text_is_a_session_or_a_source_error(saved: str) -> None:
    catalog = prowess.Catalog.from_sources([prowess.Source.inline("greet", "Greets.", "Say hello.")])
    try:
        restored, issues = Session.restore(catalog, saved)
    except prowess.SourceError:
        return
    assert set(restored.active_skills) <= {"greet"}
    known = {"missing-since-saved", "changed-since-saved", "saved-without-ceiling"}
    assert {issue.code for issue in issues} <= known


@pytest.mark.parametrize("saved", [{}, None, 7, b"{}"])
def test_a_saved_session_must_be_text(saved: object) -> None:
    with pytest.raises(prowess.SourceError, match="saved"):
        prowess.Session.restore(prowess.Catalog(), saved)  # type: ignore[arg-type]


def test_a_text_in_place_of_the_tools_of_a_restored_session_is_refused() -> None:
    saved = prowess.Session(prowess.Catalog(), ["Read"]).save()
    with pytest.raises(prowess.SourceError, match="tools"):
        prowess.Session.restore(prowess.Catalog(), saved, tools="Read")
