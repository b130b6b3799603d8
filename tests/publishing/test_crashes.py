"""Publishers that run at the same time, and publishers that are killed: a site is whole at every moment."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import prowess
from prowess.fetch.stores import FolderStore
from tests.publishing.conftest import to_source

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from tests.publishing.conftest import MakeSkill

PUBLISH = """
import sys, prowess
folder, target, name, first, last = sys.argv[1:]
for number in range(int(first), int(last)):
    prowess.publish([folder], target, version=f"{number}.0.0", aliases=[name])
"""


def start(folder: Path, target: str, name: str, first: int, last: int) -> subprocess.Popen[bytes]:
    """Start a process that publishes versions one after the other."""
    words = [sys.executable, "-c", PUBLISH, os.fspath(folder), target, name, str(first), str(last)]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL)


def read_site(target: str) -> set[str]:
    """Return the versions that are published; everything that a reader would get is read."""
    from prowess.publishing.site import open_target, parse_target
    from prowess.sources.published.reader import PublishedSite, StoreSite

    site = PublishedSite(StoreSite(open_target(parse_target(target)), prowess.Limits(), cached=False), prowess.Limits())
    if not site.is_published():
        return set()
    for alias in ("", *site.aliases):
        for skill in site.select(alias).skills:
            site.read_files(skill)
    return {version for rows in site.versions.values() for version in rows}


def test_two_publishers_lose_nothing(target: str, make_skill: MakeSkill, full: bool) -> None:
    """Each also moves an alias of its own, and every state that a reader sees in between is whole."""
    each = 100 if full else 5
    folder = make_skill(version="")
    first, second = start(folder, target, "blue", 0, each), start(folder, target, "green", 1000, 1000 + each)
    reads = 0
    while first.poll() is None or second.poll() is None:
        read_site(target)
        reads += 1
    assert (first.returncode, second.returncode) == (0, 0)
    wanted = {f"{number}.0.0" for number in (*range(each), *range(1000, 1000 + each))}
    assert read_site(target) == wanted
    blue = prowess.Source.site(to_source(target, "#blue")).load()
    assert f"/{each - 1}.0.0/" in blue["pdf"].location
    assert reads


def test_a_root_that_another_publisher_made_longer_is_not_replaced(tmp_path: Path) -> None:
    store = FolderStore(str(tmp_path))
    store.create("site.json", b"old")
    old = store.read("site.json", 100)
    assert store.replace("site.json", b"longer than before", old)
    assert not store.replace("site.json", b"mine", old)


def test_a_killed_publisher_leaves_the_old_site_or_the_new_one(
    target: str, make_skill: MakeSkill, full: bool, rng: random.Random
) -> None:
    folder = make_skill(version="")
    prowess.publish([folder], target, version="0.0.1")
    before = {"0.0.1"}
    for number in range(50 if full else 4):
        publisher = start(folder, target, "blue", number * 10, number * 10 + 10)
        with suppress(subprocess.TimeoutExpired):
            publisher.wait(rng.uniform(0.3, 1.5))
        publisher.kill()
        publisher.wait()
        after = read_site(target)
        assert before <= after
        before = after
    time.sleep(0.01)
    report = prowess.publish([folder], target, version="99.99.99", aliases=["blue"])
    assert report.skills[0].status == "published"
    assert read_site(target) == before | {"99.99.99"}
