"""What one fresh process measures: ``python -m bench.tasks TASK ROOT`` prints one JSON object.

Imports are done before the clock starts.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import yaml  # noqa: F401 - some heads need it; its import is a line of its own in the report

import prowess
from bench.floor import clocked, read_bodies, read_heads
from bench.memory import resident_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Measured = dict[str, float]

# Modules are loaded when they are first used: those that the tasks below use are loaded now, before any clock starts.
prowess.scan(os.devnull)
prowess.parse_skill("---\nname: a\ndescription: b\ntags: [c]\n---\nd\n").skill.to_xml()
_LOADED = (prowess.LoadedSkill, prowess.Toolset, prowess.Session, prowess.render_catalog, prowess.skills.resources)

MOST_BODIES = 1_000
CONVERSATIONS = 10_000
TURNS = 200


def scan(root: str) -> Measured:
    seconds, catalog = clocked(lambda: prowess.scan(root))
    return {"value": seconds, "count": len(catalog)}


def scan_and_read(root: str) -> Measured:
    """Every name and description read too."""
    seconds, pairs = clocked(lambda: [(skill.name, skill.description) for skill in prowess.scan(root)])
    return {"value": seconds, "count": len(pairs)}


def issues(root: str) -> Measured:
    catalog = prowess.scan(root)
    seconds, _ = clocked(lambda: catalog.issues)
    return {"value": seconds, "count": len(catalog)}


def cold_scan(root: str) -> Measured:
    """A scan of files that are not in the system's cache, by the clock."""
    _forget_files(root)
    begin = time.perf_counter()
    catalog = prowess.scan(root)
    return {"value": time.perf_counter() - begin, "count": len(catalog)}


def cold_floor(root: str) -> Measured:
    """Reading the heads of such files one after the other, by the clock; its floor is that of files in memory."""
    _forget_files(root)
    begin = time.perf_counter()
    count = read_heads(root)
    between = time.perf_counter()
    read_heads(root)
    return {"value": between - begin, "floor": time.perf_counter() - between, "count": count}


def _forget_files(root: str) -> None:
    """Have the system forget the content of every SKILL.md; of files that are written out it needs no permission."""
    if hasattr(os, "posix_fadvise"):
        os.sync()
        for path in Path(root).glob("*/SKILL.md"):
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def bodies(root: str) -> Measured:
    skills = prowess.scan(root).skills[:MOST_BODIES]
    seconds, texts = clocked(lambda: [skill.read_body() for skill in skills])
    return {"value": seconds, "count": len(texts)}


def bodies_floor(root: str) -> Measured:
    skills = prowess.scan(root).skills[:MOST_BODIES]
    places = [(skill.location, skill.body_offset) for skill in skills]
    seconds, count = clocked(lambda: read_bodies(places))
    return {"value": seconds, "count": count}


def load_skill(root: str) -> Measured:
    """The first ``load_skill`` call for each skill, after the prompt was made, as in every conversation."""
    catalog = prowess.scan(root)
    toolset = prowess.Toolset(prowess.Session(catalog))
    toolset.prompt()
    prowess.parse_skill("---\nname: a\ndescription: b\ntags: [c]\n---\nd\n")  # patterns are compiled once a process
    toolset.call("load_skill", {"name": catalog.names[-1]})
    return _load_beside_reads(toolset, catalog.skills[: min(MOST_BODIES, len(catalog) - 1)])


def load_skill_again(root: str) -> Measured:
    """The same for skills that are active already."""
    catalog = prowess.scan(root)
    toolset = prowess.Toolset(prowess.Session(catalog))
    skills = catalog.skills[:MOST_BODIES]
    for skill in skills:
        toolset.call("load_skill", {"name": skill.name})
    return _load_beside_reads(toolset, skills)


def _load_beside_reads(toolset: prowess.Toolset, skills: Sequence[prowess.Skill]) -> Measured:
    """The medians of a ``load_skill`` call and, as its floor, of reading a SKILL.md below its folder.

    Calls and reads take turns one by one, so that another program that takes the core, or empties its caches, meets
    both alike; the file that is read is never the one that is loaded next. Answers are kept, as a conversation does.
    """
    skills[0].read_bytes("SKILL.md")
    clock, kept = time.thread_time_ns, []
    loads: list[int] = []
    reads: list[int] = []
    for place, skill in enumerate(skills):
        other, arguments = skills[place - len(skills) // 2], {"name": skill.name}
        begin = clock()
        data = other.read_bytes("SKILL.md")
        between = clock()
        result = toolset.call("load_skill", arguments)
        loads.append(clock() - between)
        reads.append(between - begin)
        assert not result.is_error
        kept.append((data, result))
    return {"value": median(loads) / 1e9, "floor": median(reads) / 1e9, "count": 1}


def sessions(root: str) -> Measured:
    """A session and its first prompt, for each of 10,000 conversations over one catalogue."""
    catalog = prowess.scan(root)

    def converse() -> list[prowess.Toolset]:
        begun = [prowess.Toolset(prowess.Session(catalog)) for _ in range(CONVERSATIONS)]
        for toolset in begun:
            toolset.prompt()
        return begun

    prowess.Toolset(prowess.Session(prowess.scan(root))).prompt()  # what is loaded once a process
    seconds, begun = clocked(converse)
    return {"value": seconds, "count": len(begun)}


def follow(root: str) -> Measured:
    """The same sessions over a live catalogue that has just been read again: each takes it over, with its prompt."""
    with prowess.live(root, every=0.05, notice="stat") as live:
        begun = [prowess.Toolset(prowess.Session(live)) for _ in range(CONVERSATIONS)]
        for toolset in begun:
            toolset.prompt()
        seen = live.catalog
        os.utime(next(Path(root).glob("*/SKILL.md")))
        live.wait_for_change(seen)
    seconds, texts = clocked(lambda: [toolset.prompt() for toolset in begun])
    return {"value": seconds, "count": len(texts)}


def prompt_first(root: str) -> Measured:
    """A prompt that was not made before; what a process loads once is loaded."""
    prowess.Toolset(prowess.Session(prowess.scan(root))).prompt()
    toolset = prowess.Toolset(prowess.Session(prowess.scan(root)))
    seconds, _ = clocked(toolset.prompt)
    return {"value": seconds, "count": 1}


def prompt_whole(root: str) -> Measured:
    """A prompt that lists every skill with its description, not made before."""
    prowess.Toolset(prowess.Session(prowess.scan(root), selector=None)).prompt()
    toolset = prowess.Toolset(prowess.Session(prowess.scan(root), selector=None))
    seconds, _ = clocked(toolset.prompt)
    return {"value": seconds, "count": 1}


def estimate(root: str) -> Measured:
    """The tokens of a listing of all skills."""
    text = prowess.render_catalog(prowess.scan(root).skills)
    prowess.estimate_tokens(text)
    seconds, _ = clocked(lambda: [prowess.estimate_tokens(text) for _ in range(20)])
    return {"value": seconds, "count": 20}


def split(root: str) -> Measured:
    """The words of that listing, as blanks divide them."""
    text = prowess.render_catalog(prowess.scan(root).skills)
    seconds, _ = clocked(lambda: [text.split() for _ in range(20)])
    return {"value": seconds, "count": 20}


def prompt_again(root: str) -> Measured:
    """The prompt and the tools of a session, asked for before each turn."""
    toolset = prowess.Toolset(prowess.Session(prowess.scan(root)))
    toolset.prompt()
    toolset.tools()
    seconds, shown = clocked(lambda: [(toolset.prompt(), toolset.tools()) for _ in range(TURNS)])
    return {"value": seconds, "count": len(shown)}


def restore(root: str) -> Measured:
    """A session with three active skills, restored."""
    catalog = prowess.scan(root)
    session = prowess.Session(catalog, tools=["Read", "Bash(git:*)"])
    for name in catalog.names[:3]:
        session.activate(name)
    saved = session.save()
    prowess.Session.restore(catalog, saved)
    seconds, restored = clocked(lambda: [prowess.Session.restore(catalog, saved) for _ in range(TURNS)])
    assert not any(issues for _, issues in restored)
    return {"value": seconds, "count": len(restored)}


def render(root: str) -> Measured:
    skills = prowess.scan(root).skills[:MOST_BODIES]
    prowess.render_catalog(skills[:1])
    seconds, text = clocked(lambda: prowess.render_catalog(skills))
    return {"value": seconds, "count": text.count("<skill>")}


def render_floor(root: str) -> Measured:
    """The strings of the same entries joined, without looking at them."""
    skills = prowess.scan(root).skills[:MOST_BODIES]

    def joined() -> str:
        return "".join(
            f"  <skill>\n    <name>{skill.name}</name>\n    <description>{skill.description}</description>\n"
            f"    <location>{skill.location}</location>\n  </skill>\n"
            for skill in skills
        )

    seconds, text = clocked(joined)
    return {"value": seconds, "count": text.count("<skill>")}


def traced_memory(root: str) -> Measured:
    """Bytes that Python's allocator gave out for the catalogue and that are still in use."""
    import tracemalloc

    gc.collect()
    tracemalloc.start()
    catalog = prowess.scan(root)
    gc.collect()
    return {"value": tracemalloc.get_traced_memory()[0], "count": len(catalog)}


def resident_memory(root: str) -> Measured:
    """Bytes by which the process grew."""
    gc.collect()
    before = resident_bytes()
    catalog = prowess.scan(root)
    gc.collect()
    return {"value": resident_bytes() - before, "count": len(catalog)}


def resident_memory_with_issues(root: str) -> Measured:
    """The same once ``catalog.issues`` was asked for."""
    gc.collect()
    before = resident_bytes()
    catalog = prowess.scan(root)
    assert not catalog.issues
    gc.collect()
    return {"value": resident_bytes() - before, "count": len(catalog)}


TASKS: dict[str, Callable[[str], Measured]] = {
    task.__name__: task
    for task in (
        scan,
        scan_and_read,
        issues,
        cold_scan,
        cold_floor,
        bodies,
        bodies_floor,
        load_skill,
        load_skill_again,
        sessions,
        follow,
        prompt_first,
        prompt_whole,
        prompt_again,
        estimate,
        split,
        restore,
        render,
        render_floor,
        traced_memory,
        resident_memory,
        resident_memory_with_issues,
    )
}


if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](sys.argv[2])))
