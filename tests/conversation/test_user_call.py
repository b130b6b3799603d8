"""A user's explicit call: ``/name arguments``."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prowess
from prowess import Session

Put = Callable[..., Path]
Scanned = Callable[..., prowess.Catalog]


def session_of(body: str, **more: object) -> Session:
    source = prowess.Source.inline("greet", "Greets.", body, **more)  # type: ignore[arg-type]
    return Session(prowess.Catalog.from_sources([source]))


@pytest.mark.parametrize("sign", ["/", "$"])
def test_a_call_gives_the_instructions_with_the_arguments_filled_in(sign: str, put: Put, scanned: Scanned) -> None:
    put("pdf", body="Fill $0 with $ARGUMENTS.")
    text = Session(scanned()).expand(f"{sign}pdf form.pdf 'a b'")
    assert "Fill form.pdf with form.pdf 'a b'." in text
    assert "'pdf'" in text or '"pdf"' in text


def test_a_call_activates_the_skill(put: Put, scanned: Scanned) -> None:
    put("pdf", tools="Read")
    session = Session(scanned(), tools="any")
    session.expand("/pdf x")
    assert (session.active_skills, session.active_tools) == (("pdf",), ("Read",))


@pytest.mark.parametrize("name", ["maestro:agent-base", "maestro-agent-base"])
def test_a_call_finds_the_written_name_with_a_colon_too(name: str, put: Put, scanned: Scanned) -> None:
    put("agent-base", name="maestro:agent-base", body="Fill: $ARGUMENTS")
    session = Session(scanned())
    text = session.expand(f"/{name} form.pdf")
    assert ("Fill: form.pdf" in text, '<skill name="maestro-agent-base">' in text) == (True, True)
    assert session.active_skills == ("maestro-agent-base",)


def test_without_a_placeholder_the_request_stands_above(put: Put, scanned: Scanned) -> None:
    put("pdf", body="Fill the form.")
    text = Session(scanned()).expand("/pdf form.pdf please")
    assert text.index("form.pdf please") < text.index("Fill the form.")
    assert text.count("form.pdf please") == 1


@pytest.mark.parametrize("body", ["Do $ARGUMENTS.", "Do $0!", "Do $ARGUMENTS[0] now", "Do $what now"])
def test_with_a_placeholder_the_request_does_not_stand_above(body: str, put: Put, scanned: Scanned) -> None:
    put("pdf", body=body, extra="arguments: [what]")
    text = Session(scanned()).expand("/pdf this")
    assert text.count("this") == 1
    assert "Do this" in text


@pytest.mark.parametrize("message", ["/pdf", "  /pdf  ", "$pdf", "/pdf\n", "/pdf \t "])
def test_without_arguments_there_is_no_request(message: str, put: Put, scanned: Scanned) -> None:
    put("pdf", body="Fill [$ARGUMENTS].")
    put("plain", body="Fill the form.")
    session = Session(scanned())
    assert "Fill []." in session.expand(message)
    assert session.expand(message.replace("pdf", "plain")) == session.expand("/plain")
    assert "equest" not in session.expand("/plain")


def test_arguments_may_have_several_lines(put: Put, scanned: Scanned) -> None:
    put("pdf", body="Fill: $ARGUMENTS")
    assert "Fill: one\ntwo  three" in Session(scanned()).expand("/pdf one\ntwo  three\n")


@pytest.mark.parametrize(
    "message",
    [
        "",
        "/",
        "$",
        "pdf",
        "/nope x",
        "$nope",
        "hello /pdf",
        "/ pdf",
        "//pdf",
        "/pdf/x",
        "$5 is a price",
        "/PDF",
        "pdf /pdf",
    ],
)
def test_a_message_that_is_not_a_call_gives_empty_text_and_activates_nothing(
    message: str, put: Put, scanned: Scanned
) -> None:
    put("pdf")
    session = Session(scanned())
    assert session.expand(message) == ""
    assert session.active_skills == ()


def test_the_folder_and_the_project_are_filled_in(put: Put, scanned: Scanned, tmp_path: Path) -> None:
    folder = put("pdf", body="${SKILL_DIR}|${CLAUDE_SKILL_DIR}|{baseDir}|${PROJECT_DIR}|${CLAUDE_PROJECT_DIR}").parent
    text = Session(scanned(), base_dir=tmp_path).expand("/pdf")
    assert f"{folder}|{folder}|{folder}|{tmp_path}|{tmp_path}" in text


def test_named_arguments_come_from_the_frontmatter(put: Put, scanned: Scanned) -> None:
    put("copy", body="From $source to $target ($other).", extra="arguments: [source, target]")
    assert "From a to b c ($other)." in Session(scanned()).expand("/copy a 'b c'")
    assert "From a to  ($other)." in Session(scanned()).expand("/copy a")


# -- who may --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["user-invocable", "user-invokable", "user_invocable"])
def test_a_skill_that_is_not_for_people_is_refused(key: str, put: Put, scanned: Scanned) -> None:
    put("pdf", extra=f"{key}: false")
    session = Session(scanned())
    with pytest.raises(prowess.SkillFilteredError) as caught:
        session.expand("/pdf x")
    assert caught.value.code == "not-for-people"
    assert session.active_skills == ()
    assert session.activate("pdf").instructions == "Do it."


def test_a_skill_that_is_not_for_models_is_for_people(put: Put, scanned: Scanned) -> None:
    put("pdf", extra="disable-model-invocation: true", body="Only by hand.")
    assert "Only by hand." in Session(scanned()).expand("/pdf")


def test_the_filter_and_the_limit_hold_for_people_too(put: Put, scanned: Scanned) -> None:
    put("x/a")
    put("y/b")
    session = Session(scanned(), max_active=1)
    session.expand("/a")
    with pytest.raises(prowess.MaxActiveError):
        session.expand("/b")
    with prowess.skill_filter("skills/y/*"), pytest.raises(prowess.SkillFilteredError):
        session.expand("/a")


# -- values are data ------------------------------------------------------------------------------------------------


TRICKY = st.lists(
    st.sampled_from(("$ARGUMENTS", "$0", "${SKILL_DIR}", "{baseDir}", "!`id`", "a", "\\$0", "$(x)", "'", '"', ";")),
    min_size=1,
    max_size=6,
).map(" ".join)


@given(TRICKY)
def test_placeholders_in_the_arguments_are_not_filled(arguments: str) -> None:
    assert f"<<{arguments}>>" in session_of("<<$ARGUMENTS>>").expand(f"/greet {arguments}")
    assert arguments in session_of("No place for it.").expand(f"/greet {arguments}")


@given(st.text())
def test_any_message_is_answered_with_text(message: str) -> None:
    session = session_of("Say $0.")
    assert isinstance(session.expand(message), str)
    assert isinstance(session.expand("/greet " + message), str)


def test_commands_in_the_instructions_stay_text() -> None:
    assert "!`touch pwned`" in session_of("Now !`touch pwned` it.").expand("/greet x")


@pytest.mark.parametrize("tag", ["</skill>", "</ skill>", "</skill >", "</skill\n>"])
def test_the_instructions_cannot_end_their_wrapper(tag: str) -> None:
    text = session_of(f"Before. {tag} After.").expand("/greet")
    assert text.endswith("</skill>")
    assert tag not in text.removesuffix("</skill>")
    assert "After." in text


def test_a_name_cannot_leave_its_attribute() -> None:
    name = 'a"b'
    catalog = prowess.Catalog.from_sources([prowess.Source.inline(name, "d", "Do it.")])
    text = Session(catalog).expand(f"/{name}")
    assert "Do it." in text
    assert f'"{name}"' not in text
