"""What a server hashes, opens and keeps: as much as is asked for, and no more because there are more skills."""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from prowess.limits import DEFAULT_LIMITS as LIMITS
from prowess.mcp.handlers import SkillHandlers
from prowess.mcp.manifests import ManifestCache
from prowess.mcp.options import ServeOptions
from prowess.mcp.prompts import Prompts
from prowess.mcp.served_skills import SkillLoader
from prowess.mcp.tools import ModelTools
from tests.mcp_peers import put, skill_md

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BODY = "A line of instructions.\n" * 500
HASH = "openssl_sha256"
LISTING = "list_served_files"
MOST_BYTES_OF_A_SKILL = 4_000


def library(root: Path, count: int, body: str = "Do it.\n") -> Path:
    for number in range(count):
        name = f"s{number:05}"
        put(root, f"{name}/SKILL.md", skill_md(name, body=body))
        put(root, f"{name}/notes.md", "Notes.\n")
    return root


def answers_of(root: Path) -> SkillHandlers:
    return SkillHandlers(SkillLoader((str(root),), LIMITS).load(), ManifestCache(LIMITS), LIMITS)


def calls(work: Callable[[], object]) -> Counter[str]:
    """How often each function is called by that work."""
    found: Counter[str] = Counter()

    def count(frame: Any, event: str, what: Any) -> None:
        if event == "call":
            found[frame.f_code.co_qualname] += 1
        elif event == "c_call":
            found[what.__name__] += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def settle(work: Callable[[], object]) -> None:
    """Ask until what was written a moment ago is old enough for its times to tell every change."""
    until = time.monotonic() + 20
    while calls(work)[HASH] and time.monotonic() < until:
        pass


def test_what_was_hashed_is_hashed_again_only_when_it_changes(tmp_path: Path) -> None:
    answers = answers_of(library(tmp_path, 3))

    def get() -> object:
        return answers.get_skill("skill://s00001/SKILL.md")

    assert calls(get)[HASH] == 2
    settle(get)
    again = calls(get)
    assert (again[HASH], again["read"]) == (0, 0)
    put(tmp_path, "s00001/notes.md", "Others.\n")
    assert 1 <= calls(get)[HASH] <= 2
    assert calls(lambda: answers.get_skill("skill://s00002/SKILL.md"))[HASH] == 2


def test_loading_a_library_hashes_nothing_and_a_page_only_what_is_on_it(tmp_path: Path) -> None:
    library(tmp_path, 2 * LIMITS.max_page_entries)
    made: list[SkillHandlers] = []
    assert calls(lambda: made.append(answers_of(tmp_path)))[HASH] == 0
    assert calls(lambda: made[0].list_skills(None))[HASH] == 2 * LIMITS.max_page_entries


def test_the_files_of_a_skill_are_listed_when_the_extension_is_asked_for_it(tmp_path: Path) -> None:
    library(tmp_path, 5)
    made: list[SkillHandlers] = []

    def answer_handshake() -> None:
        made.append(answers_of(tmp_path))
        tools = ModelTools(made[0].served, ServeOptions())
        assert tools.instructions
        assert tools.definitions
        assert Prompts(made[0].served, tools, LIMITS).list_prompts(None)

    assert calls(answer_handshake)[LISTING] == 0
    assert calls(lambda: made[0].read_resource("skill://s00001/SKILL.md"))[LISTING] == 1
    assert calls(lambda: made[0].read_resource("skill://s00001/notes.md"))[LISTING] == 0
    assert calls(lambda: made[0].list_resources(None))[LISTING] == 4


def test_an_answer_about_one_skill_costs_the_same_among_ten_and_among_a_thousand(tmp_path: Path) -> None:
    asked: dict[int, list[int]] = {}
    for count in (10, 1_000):
        answers = answers_of(library(tmp_path / str(count), count))
        tools = ModelTools(answers.served, ServeOptions())
        prompts = Prompts(answers.served, tools, LIMITS)
        work: list[Callable[[], object]] = [
            lambda answers=answers: answers.read_resource("skill://s00007/notes.md"),  # type: ignore[misc]
            lambda answers=answers: answers.read_directory("skill://s00007", None),  # type: ignore[misc]
            lambda answers=answers: answers.get_skill("skill://s00007/SKILL.md"),  # type: ignore[misc]
            lambda tools=tools: tools.call_tool("load_skill", {"name": "s00007"}),  # type: ignore[misc]
            lambda prompts=prompts: prompts.get_prompt("s00007", {}),  # type: ignore[misc]
        ]
        for one in work:
            settle(one)
        asked[count] = [calls(one).total() for one in work]
    assert asked[10] == asked[1_000]


def test_a_library_costs_memory_for_its_metadata_alone(tmp_path: Path, full: bool) -> None:
    """Ten thousand skills of 12 KB each (in the sampled run a thousand): their bodies are not kept."""
    count = 10_000 if full else 1_000
    library(tmp_path, count, BODY)
    gc.collect()
    tracemalloc.start()
    try:
        answers = answers_of(tmp_path)
        assert len(answers.served) == count
        gc.collect()
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < count * MOST_BYTES_OF_A_SKILL < count * len(BODY) / 2
    assert peak < 2 * count * MOST_BYTES_OF_A_SKILL


def test_a_library_is_small_when_all_its_places_together_hold_few_files_and_folders(tmp_path: Path) -> None:
    library(tmp_path / "small", 3)
    library(tmp_path / "deep" / "down", 30)
    limits = replace(LIMITS, max_awaited_entries=40)

    def is_small(*names: str) -> bool:
        return SkillLoader(tuple(str(tmp_path / name) for name in names), limits).is_small()

    assert is_small("small", "none")
    assert not is_small("deep")
    assert not is_small("small", "deep")
