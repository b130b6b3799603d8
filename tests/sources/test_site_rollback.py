"""A site that goes back to older skills: they are not used unless the caller allows it."""

from __future__ import annotations

import json
import os
import stat
from email.utils import formatdate
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.web_sites import NEW, OLD, SCHEMA, Site, skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sources.conftest import Load

ONE, TWO, THREE = (skill_md("pdf", body=f"{number}.\n") for number in ("One", "Two", "Three"))
FILE = f"{OLD}/pdf/SKILL.md"
INDEX = f"{NEW}/index.json"


def codes(catalog: prowess.Catalog) -> list[str]:
    return [issue.code for issue in catalog.issues if issue.code != "differs-from-index"]


def publish(site: Site, content: bytes, **headers: str) -> None:
    site.index(site.entry("pdf", content), **headers)


def dated(seconds: int) -> str:
    return formatdate(1_700_000_000 + seconds, usegmt=True)


# -- an index ----------------------------------------------------------------------------------------------------------


def test_an_index_that_was_replaced_and_comes_back_is_not_used(site: Site, load: Load) -> None:
    publish(site, ONE)
    load().load("pdf")
    publish(site, TWO)
    load().load("pdf")
    publish(site, ONE)
    catalog = load()
    assert codes(catalog) == ["rolled-back"]
    assert catalog.issues[0].severity == "warning"
    assert catalog.load("pdf").instructions == "Two."
    assert codes(load()) == ["rolled-back"]


def test_a_rollback_that_the_caller_allows_becomes_the_newest(site: Site, load: Load) -> None:
    for content in (ONE, TWO, ONE):
        publish(site, content)
        load()
    catalog = load(allow_rollback=True)
    assert (catalog.load("pdf").instructions, codes(catalog)) == ("One.", [])
    assert codes(load()) == []
    publish(site, TWO)
    assert codes(load()) == ["rolled-back"]
    publish(site, THREE)
    catalog = load()
    assert (catalog.load("pdf").instructions, codes(catalog)) == ("Three.", [])


def test_an_old_skill_in_an_index_that_is_written_otherwise_is_noticed(site: Site, load: Load) -> None:
    other = site.entry("csv", skill_md("csv"))
    publish(site, ONE)
    load()
    publish(site, TWO)
    load()
    body = {"generated": "today", "$schema": SCHEMA, "skills": [other, site.entry("pdf", ONE)]}
    site.put(INDEX, json.dumps(body, indent=3).encode())
    catalog = load()
    assert (catalog.names, codes(catalog)) == (("pdf",), ["rolled-back"])


def test_a_skill_that_was_withdrawn_does_not_come_back(site: Site, load: Load) -> None:
    good, bad = site.entry("good", skill_md("good")), site.entry("bad", skill_md("bad"))
    site.index(good, bad)
    load()
    site.index(good)
    assert load().names == ("good",)
    site.index(bad, good)
    catalog = load()
    assert (catalog.names, codes(catalog)) == (("good",), ["rolled-back"])


def test_an_index_with_an_earlier_date_is_not_used_though_nobody_has_seen_it(site: Site, load: Load) -> None:
    publish(site, TWO, Last_Modified=dated(100))
    load().load("pdf")
    publish(site, ONE, Last_Modified=dated(50))
    catalog = load()
    assert (catalog.load("pdf").instructions, codes(catalog)) == ("Two.", ["rolled-back"])
    publish(site, THREE, Last_Modified=dated(150))
    assert load().load("pdf").instructions == "Three."


@pytest.mark.parametrize("date", ["", "yesterday", "Mon, 99 Foo 2026 99:99:99 GMT", "-1"])
def test_a_string_that_is_not_a_date_proves_no_rollback(site: Site, load: Load, date: str) -> None:
    publish(site, ONE, Last_Modified=dated(100))
    load()
    publish(site, TWO, Last_Modified=date)
    assert codes(load()) == []


def test_servers_of_one_site_with_other_dates_for_the_same_bytes_are_not_rollback(site: Site, load: Load) -> None:
    for seconds in (100, 50, 100, 50):
        publish(site, ONE, Last_Modified=dated(seconds))
        assert codes(load()) == []


def test_an_index_that_was_gone_for_a_while_comes_back_as_it_was_but_not_older(site: Site, load: Load) -> None:
    for content in (ONE, TWO):
        publish(site, content)
        load().load("pdf")
    del site.replies[INDEX]
    assert codes(load()) == ["no-index"]
    publish(site, TWO)
    assert codes(load()) == []
    del site.replies[INDEX]
    load()
    publish(site, ONE)
    catalog = load()
    assert (catalog.load("pdf").instructions, codes(catalog)) == ("Two.", ["rolled-back"])


@pytest.mark.parametrize("rubbish", [b"{", b"<!doctype html>", b'{"skills": 1}', b'{"$schema": "https://x/9"}'])
def test_an_answer_that_is_not_an_index_is_never_the_newest_seen(site: Site, load: Load, rubbish: bytes) -> None:
    publish(site, ONE)
    load()
    site.put(INDEX, rubbish)
    assert codes(load())
    publish(site, ONE)
    assert codes(load()) == []


def test_the_oldest_of_many_replaced_states_are_forgotten_first(site: Site, load: Load) -> None:
    limits = prowess.Limits(max_replaced_marks=4)
    bodies = [skill_md("pdf", body=f"{number}.\n") for number in range(6)]
    for body in bodies:
        publish(site, body)
        assert codes(load(limits=limits)) == []
    publish(site, bodies[4])
    assert codes(load(limits=limits)) == ["rolled-back"]
    publish(site, bodies[0])
    assert codes(load(limits=limits)) == []


def test_only_the_owner_may_read_the_record_of_what_was_seen(site: Site, load: Load, cache: Path) -> None:
    before = os.umask(0)
    try:
        for content in (ONE, TWO):
            publish(site, content)
            load()
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (cache / "urls").iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE((cache / "urls").stat().st_mode) == 0o700


# -- a file that an index lists ----------------------------------------------------------------------------------------


def test_a_listed_file_that_goes_back_is_not_used(site: Site, load: Load) -> None:
    for content in (ONE, TWO, ONE):
        site.old_index(site.old_entry("pdf", {"SKILL.md": content}))
        site.put(FILE, content, Cache_Control="max-age=0")
        loaded = load().load("pdf")
    assert loaded.instructions == "Two."
    assert [(issue.code, issue.field) for issue in loaded.skill.issues if issue.path.endswith(FILE)][-1:] == [
        ("rolled-back", "SKILL.md")
    ]
    assert load(allow_rollback=True).load("pdf").instructions == "One."


# -- how old a copy may be ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["new", "old"])
def test_a_copy_that_is_too_old_does_not_stand_in_for_a_site_that_is_away(site: Site, load: Load, kind: str) -> None:
    if kind == "new":
        publish(site, ONE)
    else:
        site.old_index(site.old_entry("pdf", {"SKILL.md": ONE}))
    load().load("pdf")
    site.stop()
    assert codes(load()) == ["stale-index"]
    catalog = load(limits=prowess.Limits(max_stale_seconds=0))
    assert (catalog.names, codes(catalog)) == ((), ["copy-too-old"])
    assert catalog.issues[0].severity == "error"
    with pytest.raises(prowess.FetchError) as caught:
        load(missing="error", limits=prowess.Limits(max_stale_seconds=0))
    assert caught.value.code == "copy-too-old"


def test_a_listed_file_that_is_too_old_does_not_stand_in_either(site: Site, load: Load) -> None:
    site.old_index(site.old_entry("pdf", {"SKILL.md": ONE}), Cache_Control="max-age=600")
    site.put(FILE, ONE, Cache_Control="max-age=0")
    load().load("pdf")
    site.put(FILE, b"", 503)
    assert load().load("pdf").instructions == "One."
    with pytest.raises(prowess.FetchError) as caught:
        load(limits=prowess.Limits(max_stale_seconds=0)).load("pdf")
    assert caught.value.code == "copy-too-old"


def test_the_newest_seen_replaces_an_older_index_only_until_it_is_too_old_itself(site: Site, load: Load) -> None:
    for content in (ONE, TWO, ONE):
        publish(site, content)
        load()
    catalog = load(limits=prowess.Limits(max_stale_seconds=0))
    assert (catalog.names, codes(catalog)) == ((), ["rolled-back"])
    assert catalog.issues[0].severity == "error"


def test_a_copy_counts_for_thirty_days_unless_the_limits_say_otherwise() -> None:
    assert prowess.Limits().max_stale_seconds == 30 * 24 * 3600
