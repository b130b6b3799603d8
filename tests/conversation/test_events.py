"""Events reach the listener in order, and never while a lock is held."""

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import prowess
from prowess import Event, Session

Put = Callable[..., Path]
Scanned = Callable[..., prowess.Catalog]


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def session(put: Put, scanned: Scanned, events: list[Event]) -> Session:
    """Two skills in two folders, the first with a file, and a list that gets every event."""
    folder = put("x/a", tools="Read").parent
    (folder / "a.md").write_text("four", encoding="utf-8")
    put("y/b", tools="Read Edit")
    return Session(scanned(), tools="any", max_active=1, on_event=events.append)


def told(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.kind, event.skill) for event in events]


def test_events_come_in_the_order_in_which_things_happen(session: Session, events: list[Event]) -> None:
    session.index("a query")
    session.activate("a")
    session.read_resource("a", "a.md")
    with pytest.raises(prowess.MaxActiveError):
        session.activate("b")
    session.deactivate("a")
    session.activate("b")
    session.set_filter("none")
    session.refresh(prowess.Catalog())
    assert told(events) == [
        ("listed", ""),
        ("activated", "a"),
        ("read", "a"),
        ("refused", "b"),
        ("deactivated", "a"),
        ("activated", "b"),
        ("deactivated", "b"),
        ("refreshed", ""),
    ]


def test_events_have_details(session: Session, events: list[Event]) -> None:
    location = session.catalog["a"].location
    session.index("a query")
    session.activate("a")
    session.read_resource("a", "a.md")
    session.deactivate("a")
    session.activate("b")
    session.set_filter("none")
    session.refresh(prowess.Catalog())
    detail = [dict(event.detail) for event in events]
    assert detail[0] == {"names": ("a", "b"), "query": "a query"}
    assert detail[1] == {"location": location, "tools": ("Read",)}
    assert detail[2] == {"path": "a.md", "characters": 4}
    assert detail[3] == {"reason": "asked", "tools": ("Read",)}
    assert detail[5] == {"reason": "filter", "filter": "none"}
    assert detail[6]["removed"] == ("a", "b")


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda session: session.activate("nope"), "unknown-skill"),
        (lambda session: session.activate("a", filter="none"), "filtered"),
        (lambda session: session.read_resource("nope", "a.md"), "unknown-skill"),
        (lambda session: session.read_resource("a", "gone.md"), "not-found"),
        (lambda session: session.read_resource("a", "../x"), "path-escape"),
        (lambda session: session.read_resource("a", "a.md", 2), "too-large"),
    ],
)
def test_a_refusal_is_told_with_its_code(
    call: Callable[[Session], object], code: str, session: Session, events: list[Event]
) -> None:
    with pytest.raises(prowess.SkillError):
        call(session)
    assert [event.kind for event in events] == ["refused"]
    assert events[0].detail["code"] == code


def test_a_refused_call_of_a_user_is_told_too(put: Put, scanned: Scanned, events: list[Event]) -> None:
    put("x/a", extra="user-invocable: false")
    put("y/b")
    session = Session(scanned(), filter="skills/x/*", on_event=events.append)
    for message in ("/a", "/b"):
        with pytest.raises(prowess.SkillFilteredError):
            session.expand(message)
    assert told(events) == [("refused", "a"), ("refused", "b")]
    assert [event.detail["code"] for event in events] == ["not-for-people", "filtered"]


def test_activating_again_is_not_an_event(session: Session, events: list[Event]) -> None:
    session.activate("a")
    session.activate("a")
    assert told(events) == [("activated", "a")]


def test_a_session_needs_no_callback(put: Put, scanned: Scanned) -> None:
    put("a")
    session = Session(scanned())
    session.activate("a")
    session.index()
    session.events.emit("listed", "")
    assert session.deactivate("a") == ()


def test_an_event_says_when_it_happened_in_which_session_and_how_long_it_took(put: Put, scanned: Scanned) -> None:
    (put("a").parent / "a.md").write_text("four", encoding="utf-8")
    events: list[Event] = []
    before = time.time()
    session = Session(scanned(), on_event=events.append, id="conversation-7")
    session.activate("a")
    session.read_resource("a", "a.md")
    session.index()
    session.deactivate("a")
    session.refresh(prowess.Catalog())
    with pytest.raises(prowess.UnknownSkillError):
        session.activate("gone")
    after = time.time()
    assert session.id == "conversation-7"
    assert {event.session for event in events} == {"conversation-7"}
    assert [event.kind for event in events] == ["activated", "read", "listed", "deactivated", "refreshed", "refused"]
    assert all(before <= event.time <= after for event in events)
    assert all(event.seconds is not None and 0 <= event.seconds <= after - before for event in events)


def test_an_event_says_what_was_decided(session: Session, events: list[Event]) -> None:
    session.index()
    session.activate("a")
    session.read_resource("a", "a.md")
    with pytest.raises(prowess.UnknownSkillError):
        session.activate("gone")
    session.deactivate("a")
    assert [(event.kind, event.decision) for event in events] == [
        ("listed", ""),
        ("activated", "allowed"),
        ("read", "allowed"),
        ("refused", "refused"),
        ("deactivated", ""),
    ]


def test_every_session_has_an_id_of_its_own(put: Put, scanned: Scanned) -> None:
    put("a")
    catalog = scanned()
    ids = {Session(catalog).id for _ in range(100)}
    assert len(ids) == 100
    assert all(ids)


def test_an_id_that_is_not_text_is_refused(put: Put, scanned: Scanned) -> None:
    put("a")
    with pytest.raises(prowess.SourceError, match="id must be a string, not the int 7"):
        Session(scanned(), id=7)  # type: ignore[arg-type]  # the mistake


def test_an_event_that_a_host_tells_is_of_its_session_too(session: Session, events: list[Event]) -> None:
    session.events.emit("ran", "", seconds=2.5)
    assert (events[0].session, events[0].seconds) == (session.id, 2.5)
    assert events[0].time > 0


# -- calling back ---------------------------------------------------------------------------------------------------


def test_a_callback_may_call_back_into_the_session(put: Put, scanned: Scanned) -> None:
    put("a")
    put("b")
    seen: list[tuple[str, tuple[str, ...]]] = []

    def listen(event: Event) -> None:
        seen.append((event.kind, talk.active_skills))
        if event.kind == "activated" and event.skill == "a":
            talk.activate("b")
            talk.index()

    talk = Session(scanned(), on_event=listen)
    talk.activate("a")
    assert seen == [("activated", ("a",)), ("activated", ("a", "b")), ("listed", ("a", "b"))]


def test_a_callback_may_wait_for_another_thread_that_uses_the_session(put: Put, scanned: Scanned) -> None:
    """No lock is held while an event is told, or the two threads would wait for each other."""
    put("a")
    put("b")
    kinds: list[str] = []
    waited: list[bool] = []
    here = threading.current_thread()

    def listen(event: Event) -> None:
        kinds.append(event.kind)
        if threading.current_thread() is not here:
            return
        thread = threading.Thread(target=other, daemon=True)
        thread.start()
        thread.join(30)
        waited.append(not thread.is_alive())

    def other() -> None:
        talk.active_skills  # noqa: B018 - takes the lock
        talk.index()
        talk.set_selector(None)

    catalog = scanned()
    talk = Session(catalog, on_event=listen)
    talk.activate("a")
    talk.index()
    talk.deactivate("a")
    talk.activate("b")
    talk.set_filter("none")
    talk.refresh(catalog)
    with pytest.raises(prowess.SkillFilteredError):
        talk.activate("b")
    assert waited == [True] * 7
    assert kinds.count("listed") == 8


# -- elsewhere ------------------------------------------------------------------------------------------------------


def test_an_event_has_the_attributes_of_telemetry() -> None:
    event = Event("read", "pdf", {"path": "a.md", "location": "/s/pdf/SKILL.md", "characters": 4})
    assert event.attributes() == {
        "gen_ai.skill.name": "pdf",
        "gen_ai.skill.resource.name": "a.md",
        "gen_ai.skill.source.uri": "/s/pdf/SKILL.md",
    }
    assert Event("listed").attributes() == {}


def test_events_go_to_logging_only_when_that_is_asked_for(
    put: Put, scanned: Scanned, caplog: pytest.LogCaptureFixture
) -> None:
    put("a")
    caplog.set_level(logging.DEBUG)
    Session(scanned()).activate("a")
    assert caplog.records == []
    session = Session(scanned(), on_event=prowess.log_events())
    session.activate("a")
    with pytest.raises(prowess.UnknownSkillError):
        session.activate("b")
    assert [(record.name, record.levelname) for record in caplog.records] == [
        ("prowess", "INFO"),
        ("prowess", "WARNING"),
    ]
    assert caplog.records[0].getMessage().startswith("activated 'a' ")


def test_logged_events_hold_no_control_characters(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "elsewhere")
    write = prowess.log_events("elsewhere")
    write(Event("refused", "a\x1b[2J\nb\x9b", {"path": "\x1b]8;;x\x07"}))
    message = caplog.records[0].getMessage()
    assert caplog.records[0].name == "elsewhere"
    assert message.isprintable()


def test_a_session_does_not_load_logging() -> None:
    code = (
        "import sys, prowess; s = prowess.Session(prowess.Catalog()); s.index();"
        "sys.exit('logging' in sys.modules or 'asyncio' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
