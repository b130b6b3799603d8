"""The ambient filter: it holds for one thread or task, and narrows every other filter."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path

import pytest

import prowess
from prowess import Session, current_skill_filter, skill_filter

Put = Callable[..., Path]
Scanned = Callable[..., prowess.Catalog]


@pytest.fixture
def session(put: Put, scanned: Scanned) -> Session:
    for folder in ("a/one", "a/two", "b/three"):
        put(folder)
    return Session(scanned())


def available(session: Session) -> list[str]:
    return [skill.name for skill in session.candidates()]


def test_a_block_narrows_and_ends(session: Session) -> None:
    assert current_skill_filter() == ""
    with skill_filter("skills/a/*"):
        assert current_skill_filter() == "skills/a/*"
        assert available(session) == ["one", "two"]
    assert current_skill_filter() == ""
    assert available(session) == ["one", "three", "two"]


def test_a_block_that_fails_ends_too() -> None:
    with pytest.raises(ZeroDivisionError), skill_filter("none"):
        raise ZeroDivisionError
    assert current_skill_filter() == ""


def test_nested_blocks_narrow_further(session: Session) -> None:
    with skill_filter("skills/a/*"):
        with skill_filter("**/t*"):
            assert current_skill_filter() == "**/t*"
            assert available(session) == ["two"]
        assert current_skill_filter() == "skills/a/*"
        assert available(session) == ["one", "two"]
        with skill_filter("skills/b/*"):
            assert available(session) == []
        with skill_filter(""):
            assert available(session) == ["one", "two"]
            assert current_skill_filter() == "skills/a/*"


@pytest.mark.parametrize("word", ["none", "NONE", "None"])
def test_none_hides_everything(word: str, session: Session) -> None:
    session.activate("one")
    with skill_filter(word):
        assert available(session) == []
        assert list(session.active_skills) == []
        with pytest.raises(prowess.SkillFilteredError):
            session.activate("one")
    assert list(session.active_skills) == ["one"]


def test_the_ambient_filter_narrows_the_sessions(session: Session) -> None:
    session.set_filter("skills/a/*")
    with skill_filter("**/t*"):
        assert available(session) == ["two"]
    with skill_filter("skills/**"):
        assert available(session) == ["one", "two"]


def test_the_ambient_filter_narrows_an_explicit_one_too(session: Session) -> None:
    session.set_filter("skills/b/*")
    with skill_filter("**/t*"):
        assert session.activate("two", filter="skills/a/*").skill.name == "two"
        with pytest.raises(prowess.SkillFilteredError):
            session.activate("one", filter="skills/a/*")
        with pytest.raises(prowess.SkillFilteredError):
            session.activate("one", filter="")


def test_setting_a_filter_inside_a_block_ends_by_that_filter_only(session: Session) -> None:
    session.activate("one")
    session.activate("three")
    with skill_filter("skills/b/*"):
        assert session.set_filter("skills/**") == ()
    assert session.active_skills == ("one", "three")


def test_a_refusal_names_both_filters(session: Session) -> None:
    session.set_filter("skills/**")
    with skill_filter("skills/b/*"), pytest.raises(prowess.SkillFilteredError) as caught:
        session.activate("one")
    assert "skills/**" in caught.value.message
    assert "skills/b/*" in caught.value.message


def test_threads_do_not_see_each_others_filters(session: Session) -> None:
    patterns = {"skills/a/*": ["one", "two"], "skills/b/*": ["three"], "none": [], "**/t*": ["three", "two"]}
    inside = threading.Barrier(len(patterns), timeout=60)
    seen: dict[str, tuple[str, list[str]]] = {}

    def look(pattern: str) -> None:
        with skill_filter(pattern):
            inside.wait()  # every thread is in its block now
            seen[pattern] = (current_skill_filter(), available(session))
            inside.wait()

    with ThreadPoolExecutor(len(patterns)) as pool:
        list(pool.map(look, patterns))
    assert seen == {pattern: (pattern, names) for pattern, names in patterns.items()}
    assert available(session) == ["one", "three", "two"]


def test_a_thread_started_inside_a_block_is_outside_of_it_unless_it_is_given_the_context(session: Session) -> None:
    with skill_filter("skills/b/*"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(available, session).result() == ["one", "three", "two"]
        assert pool.submit(copy_context().run, available, session).result() == ["three"]


def test_tasks_do_not_see_each_others_filters(session: Session) -> None:
    patterns = {"skills/a/*": ["one", "two"], "skills/b/*": ["three"], "none": []}
    seen: dict[str, list[list[str]]] = {}

    async def look(pattern: str) -> None:
        found = seen.setdefault(pattern, [])
        with skill_filter(pattern):
            for _ in range(5):
                await asyncio.sleep(0)
                found.append(available(session))
                found.append([skill.name for skill in await asyncio.to_thread(session.candidates)])

    async def every() -> None:
        with skill_filter("skills/**"):
            await asyncio.gather(*(look(pattern) for pattern in patterns))
            assert current_skill_filter() == "skills/**"

    asyncio.run(every())
    assert seen == {pattern: [names] * 10 for pattern, names in patterns.items()}


def test_a_task_has_the_filter_of_the_place_where_it_was_made(session: Session) -> None:
    async def every() -> tuple[list[str], list[str]]:
        async def look() -> list[str]:
            return available(session)

        with skill_filter("skills/b/*"):
            inside = asyncio.create_task(look())
            threaded = asyncio.create_task(asyncio.to_thread(available, session))
        return await inside, await threaded

    assert asyncio.run(every()) == (["three"], ["three"])


def test_a_model_in_a_task_is_answered_under_the_filter_of_the_task(session: Session) -> None:
    toolset = prowess.Toolset(session)

    async def load(pattern: str) -> bool:
        with skill_filter(pattern):
            return (await toolset.acall("load_skill", {"name": "one"})).is_error

    async def every() -> list[bool]:
        return list(await asyncio.gather(load("skills/b/*"), load("skills/a/*"), load("none"), load("")))

    assert asyncio.run(every()) == [True, False, True, False]
