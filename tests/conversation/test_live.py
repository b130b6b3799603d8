"""One catalogue that keeps up with the disk, and the sessions that follow it."""

import gc
import inspect
import logging
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import rmtree

import pytest

import prowess
from prowess import Session
from prowess.discovery.watch import WatchOptions

Put = Callable[..., Path]
Opened = Callable[[], prowess.Live]

SECONDS = 30
"""How long a test waits for a change before it fails."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "skills"


@pytest.fixture
def following(root: Path, put: Put) -> Opened:
    """A live catalogue of the folder, which looks often; whoever opens it closes it."""
    put("first", tools="Read", body="First text.")
    return lambda: prowess.live(root, every=0.02, notice="stat")


def after(live: prowess.Live, change: Callable[[], object], until: Callable[[prowess.Catalog], bool]) -> None:
    """Make a change, and wait for a catalogue that shows it."""
    seen = live.catalog
    change()
    while not until(live.catalog):
        seen = live.wait_for_change(seen, SECONDS)


def has(name: str, catalog: prowess.Catalog) -> bool:
    return name in catalog


def test_the_catalogue_is_there_at_once_and_keeps_up(following: Opened, put: Put, root: Path) -> None:
    with following() as live:
        assert isinstance(live, prowess.Live)
        assert live.catalog.names == ("first",)
        before = live.catalog
        after(live, lambda: put("second"), lambda catalog: catalog.names == ("first", "second"))
        assert before.names == ("first",), "a catalogue that somebody holds does not change"
        after(live, lambda: rmtree(root / "first"), lambda catalog: catalog.names == ("second",))


def test_a_live_catalogue_takes_the_keywords_of_a_scan(root: Path, put: Put) -> None:
    put("deep/er/skill")
    with prowess.live(root, max_depth=1) as live:
        assert live.catalog.names == prowess.scan(root, max_depth=1).names


def test_a_closed_catalogue_stays_as_it_was_and_leaves_no_thread(following: Opened, put: Put) -> None:
    before = set(threading.enumerate())
    live = following()
    assert set(threading.enumerate()) - before
    live.close()
    assert not set(threading.enumerate()) - before
    put("second")
    assert live.catalog.names == ("first",)
    assert live.wait_for_change(live.catalog) is live.catalog, "nobody waits for what cannot come"
    live.close()


def test_closing_a_live_catalogue_wakes_a_thread_that_waits_for_a_change(following: Opened) -> None:
    live = following()
    given: list[prowess.Catalog] = []
    waiting = threading.Thread(target=lambda: given.append(live.wait_for_change(live.catalog)))
    waiting.start()
    live.close()
    waiting.join(SECONDS)
    assert given == [live.catalog]


def test_a_session_follows_a_live_catalogue(following: Opened, put: Put) -> None:
    with following() as live:
        session = Session(live)
        toolset = prowess.Toolset(session)
        assert "second" not in toolset.prompt()
        after(live, lambda: put("second"), lambda catalog: "second" in catalog)
        assert "second" in toolset.prompt()
        assert session.moment().find("second")
        assert "second" in session.index()
        assert session.catalog is live.catalog
        assert session.activate("second").instructions == "Do it."
        assert session.expand("/second now")


@pytest.mark.parametrize(
    "use",
    [
        lambda session: session.candidates(),
        lambda session: session.moment().find("second") is not None,
        lambda session: session.activate("second"),
        lambda session: session.expand("/second"),
        lambda session: session.read_text("second"),
        lambda session: session.skill("second"),
        lambda session: session.index(),
        lambda session: session.catalog["second"],
        lambda session: prowess.Toolset(session).call("load_skill", {"name": "second"}).content.index("Do it."),
        lambda session: prowess.Toolset(session).child().session.skill("second"),
        lambda session: session.save().index("first"),
    ],
)
def test_every_method_of_a_session_sees_the_present_catalogue(
    use: Callable[[Session], object], following: Opened, put: Put
) -> None:
    events: list[prowess.Event] = []
    with following() as live:
        session = Session(live, on_event=events.append)
        session.activate("first")
        after(live, lambda: put("second"), lambda catalog: "second" in catalog)
        assert use(session) is not None
        assert use(session) != []
    told = [event.detail for event in events if event.kind == "refreshed"]
    assert [detail["added"] for detail in told] == [("second",)], "once, to who listens"


def test_an_active_skill_that_changed_or_vanished_is_treated_as_by_a_refresh(
    following: Opened, put: Put, root: Path
) -> None:
    with following() as live:
        session = Session(live)
        session.activate("first")
        edit = partial(put, "first", body="Other.", description="Other.")
        after(live, edit, lambda c: [skill.description for skill in c] == ["Other."])
        assert session.active_skills == ("first",)
        again = session.activate("first")
        assert (again.instructions, "changed" in again.note) == ("Other.", True)
        after(live, lambda: rmtree(root / "first"), lambda catalog: not len(catalog))
        gone = session.activate("first")
        assert (gone.instructions, "no longer exists" in gone.note) == ("Other.", True)


def test_a_session_that_is_given_another_catalogue_follows_no_longer(following: Opened, put: Put) -> None:
    with following() as live:
        session = Session(live)
        session.refresh(prowess.Catalog())
        after(live, lambda: put("second"), lambda catalog: "second" in catalog)
        assert len(session.catalog) == 0


def test_a_restored_session_follows_too(following: Opened, put: Put) -> None:
    with following() as live:
        session = Session(live)
        session.activate("first")
        restored, issues = Session.restore(live, session.save())
        assert (restored.active_skills, issues) == (("first",), ())
        after(live, lambda: put("second"), lambda catalog: "second" in catalog)
        assert restored.moment().find("second")


def test_many_sessions_share_one_reload(following: Opened, put: Put) -> None:
    """Every session takes over one catalogue, and one prompt serves them all."""
    with following() as live:
        toolsets = [prowess.Toolset(Session(live)) for _ in range(100)]
        after(live, lambda: put("second"), lambda catalog: "second" in catalog)
        assert {id(toolset.session.catalog) for toolset in toolsets} == {id(live.catalog)}
        assert len({id(toolset.prompt()) for toolset in toolsets}) == 1


def test_catalogues_that_nobody_uses_any_more_are_freed(following: Opened, put: Put) -> None:
    with following() as live:
        toolset = prowess.Toolset(Session(live))
        toolset.prompt()
        for number in range(3):
            after(live, partial(put, f"more-{number}"), partial(has, f"more-{number}"))
            toolset.prompt()
        gc.collect()
        kept = [one for one in gc.get_objects() if isinstance(one, prowess.Catalog) and "first" in one]
        assert len(kept) <= 2, "that of now, and one that a scan may be making"


def test_threads_never_see_half_of_a_change(following: Opened, put: Put) -> None:
    wrong: list[str] = []
    is_over = threading.Event()

    def ask(session: Session) -> None:
        while not is_over.is_set():
            names = [skill.name for skill in session.candidates()]
            if names != sorted(names) or "first" not in names:
                wrong.append(str(names))

    with following() as live:
        session = Session(live)
        askers = [threading.Thread(target=ask, args=(session,)) for _ in range(2)]
        for asker in askers:
            asker.start()
        try:
            for number in range(3):
                after(live, partial(put, f"more-{number}"), partial(has, f"more-{number}"))
        finally:
            is_over.set()
            for asker in askers:
                asker.join()
        assert session.catalog is live.catalog
    assert wrong == []


class Heard(logging.Handler):
    """Notes what is logged, and says when something was."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.spoke = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.spoke.set()


def test_a_scan_that_fails_is_logged_and_the_catalogue_stays_until_it_is_mended(put: Put, root: Path) -> None:
    put("a/first")
    heard = Heard()
    logger = logging.getLogger("prowess")
    logger.addHandler(heard)
    try:
        with prowess.live(root, every=0.02, notice="stat", on_duplicate="error") as live:
            session = Session(live)
            before = live.catalog
            put("b/first")
            assert heard.spoke.wait(SECONDS)
            assert (live.catalog, session.moment().find("first") is not None) == (before, True)
            rmtree(root / "b")
            after(live, partial(put, "second"), partial(has, "second"))
            assert session.moment().find("second")
    finally:
        logger.removeHandler(heard)
    assert heard.records[0].exc_info is not None
    assert isinstance(heard.records[0].exc_info[1], prowess.DuplicateSkillError)


def test_the_first_scan_raises_what_it_meets(put: Put, root: Path) -> None:
    put("a/first")
    put("b/first")
    before = set(threading.enumerate())
    with pytest.raises(prowess.DuplicateSkillError):
        prowess.live(root, on_duplicate="error")
    assert not set(threading.enumerate()) - before


def test_a_live_catalogue_answers_like_the_present_catalogue(following: Opened, put: Put) -> None:
    with following() as live:
        assert ([skill.name for skill in live], len(live), live["first"]) == (["first"], 1, live.catalog["first"])
        assert ("first" in live, "second" in live) == (True, False)
        after(live, partial(put, "second"), partial(has, "second"))
        assert ([skill.name for skill in live], len(live), "second" in live) == (["first", "second"], 2, True)
        with pytest.raises(prowess.UnknownSkillError):
            live["third"]


def test_the_options_of_live_and_watch_are_those_of_scan_and_discover() -> None:
    named = {
        parameter.name
        for function in (prowess.scan, prowess.discover)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is not parameter.VAR_POSITIONAL
    }
    assert set(WatchOptions.__annotations__) == named
