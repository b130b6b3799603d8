"""``python -m bench``: what discovery costs beside merely reading the files, against the bounds that the project set.

The exit status is 0 whatever the figures are: they depend on the machine, and timings are not tests.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench import measure, servers, table
from bench.corpus import CORPUS, make_real_library
from bench.generate import EVEN, PLAIN, VARIED, make_library
from bench.installing import (
    UPDATED,
    make_declared_source,
    make_installed,
    make_repository,
    make_skill_repository,
    make_source,
)
from bench.meanings import explain_rows
from bench.report import HEAD, TIMES, Row

if TYPE_CHECKING:
    from collections.abc import Iterable

SIZES = (100, 1_000, 10_000)
ROUNDS = 15
PARTS = ("engine", "scale", "servers", "adapters", "console")

SCAN_BOUND, SCAN_AIM = 4.0, 3.0
EVEN_SCAN_BOUND, EVEN_SCAN_AIM = 3.5, 2.5
ISSUES_BOUND, ISSUES_AIM = 8.0, 6.0
EVEN_ISSUES_BOUND, EVEN_ISSUES_AIM = 4.0, 3.0
COLD_BOUND = 1.0
COLD_LEAST = 3
"""How many times as long the floor takes from a disk as from memory; where it is less, there is no disk."""
REAL_BOUND, REAL_AIM = 12.0, 6.0
IMPORT_BOUND, IMPORT_AIM = 1.0, 0.2
FIRST_SCAN_BOUND, FIRST_SCAN_AIM = 10.0, 3.5
GROWTH_BOUND = 1.15
GROWTH_FROM = 1_000
MEMORY_BOUND = 2_500
ISSUES_MEMORY_BOUND = 2_500
BODY_BOUND = 3.0
LOAD_BOUND, LOAD_AIM = 5.0, 4.0
RENDER_BOUND = 3.0
VERSION_BOUND, VERSION_AIM = 2.5, 1.75
PIPE_BOUND, PIPE_AIM = 1.6, 1.2
TERMINAL_BOUND, TERMINAL_AIM = 2.5, 2.0
PROMPT_BOUND, PROMPT_AIM = 2.5, 1.5
SHORT_PROMPT_BOUND = 3.0
ESTIMATE_BOUND = 5.0
SHARED_BOUND = 0.1
RESTORE_BOUND = 0.5
FLAT_BOUND = 1.5
DEMO_BOUND = 60
INSTALL_BOUND = 3.0
VERIFY_BOUND = 1.6
INSTALLED = 1_000
LOCK_BOUND = 1_500
LOCK_SIZES = (100, 1_000)

IMPORTS = {
    "an empty process": "pass",
    "import json": "import json",
    "import prowess": "import prowess",
    "import and first scan": "import sys, prowess; prowess.scan(sys.argv[1])",
}
_IMPORT_BOUNDS = {
    "import prowess": (IMPORT_BOUND, IMPORT_AIM),
    "import and first scan": (FIRST_SCAN_BOUND, FIRST_SCAN_AIM),
}
_PRINT_CLOCK = "; import time; print('{\"value\": %f}' % time.process_time())"


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="prowess-bench-") as temporary:
        if "engine" in options.parts:
            _report("bench", _measure(Path(temporary), options.sizes, options.rounds), options)
        if "scale" in options.parts:
            _report("scale", _scale(Path(temporary), options.rounds), options)
        if "servers" in options.parts:
            _report("servers", _servers(Path(temporary), options.rounds), options)
        if "adapters" in options.parts:
            _report("adapters", _adapters(Path(temporary), options.rounds), options)
        if "console" in options.parts:
            _report("console", _console(Path(temporary), max(options.sizes), options.rounds), options)
    return 0


def _report(name: str, rows: list[Row], options: argparse.Namespace) -> None:
    if not rows:  # skipped, and the reason was said: an earlier table stays
        return
    report = table.render(HEAD, [row.cells() for row in rows], numbers=frozenset((1, 2, 3)))
    few = f" (memory: of {_few(options.rounds)})" if name == "bench" else ""
    count = options.rounds if name == "bench" else _few(options.rounds)
    note = f"{table.machine()}; best of {count} fresh processes each{few}.\n"
    text = f"{report}\n{note}\n{explain_rows([row.what for row in rows])}"
    print(text, end="", flush=True)
    if options.write:
        table.write_between(name, text)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="fresh processes for each figure (%(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of skills (%(default)s)")
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS, help="what to measure (%(default)s)")
    parser.add_argument("--write", action="store_true", help=f"put the table into {table.DOCUMENT_NAME}")
    return parser.parse_args(arguments)


def _measure(temporary: Path, sizes: list[int], rounds: int) -> list[Row]:
    varied = {size: temporary / f"varied-{size}" for size in sizes}
    even = temporary / "even"
    largest = max(sizes)
    _say(f"Making libraries of {', '.join(f'{size:,}' for size in sizes)} skills.")
    for size, root in varied.items():
        make_library(root, size, mix=VARIED)
    make_library(even, largest, mix=EVEN)
    measure.warm([even, *varied.values()])
    return [
        *_discovery(varied, rounds),
        *_even(even, rounds),
        *_cold(even, rounds),
        *_real(temporary / "real", largest, rounds),
        *_bodies(varied, rounds),
        *_conversation(varied, rounds),
        *_conversations(temporary, rounds),
        *_memory(varied[largest], rounds),
        *_imports(varied[min(sizes)], rounds),
        *_command_line(varied[min(sizes)], rounds),
        *_demonstration(varied[min(sizes)], rounds),
        *_installing(temporary, rounds),
    ]


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


# -- the parts of the report -------------------------------------------------------------------------------------------


def _discovery(varied: dict[int, Path], rounds: int) -> list[Row]:
    size = max(varied)
    found = _taken(("floor", "scan", "issues"), varied[size], rounds)
    return [
        _ratio_row("scan", size, found["scan"], found["floor"], (SCAN_BOUND, SCAN_AIM)),
        *_growth(varied, found["scan"], rounds),
        _ratio_row("catalog.issues", size, found["issues"], found["floor"], (ISSUES_BOUND, ISSUES_AIM)),
    ]


def _taken(names: Iterable[str], root: Path, rounds: int) -> dict[str, measure.Best]:
    _say(f"Measuring {', '.join(names)} in {root.name}.")
    return measure.take_turns({name: measure.task(name, root) for name in names}, rounds=rounds)


def _ratio_row(what: str, size: int, best: measure.Best, floor: measure.Best, bounds: tuple[float, float]) -> Row:
    return Row(what, f"{size:,}", _each(best), best.each / floor.each, f"{TIMES} floor", *bounds)


def _growth(varied: dict[int, Path], large: measure.Best, rounds: int) -> list[Row]:
    """Return the row that compares a skill of the largest library with one of 1,000; none without both libraries."""
    if GROWTH_FROM not in varied or max(varied) == GROWTH_FROM:
        return []
    small = _taken(("scan",), varied[GROWTH_FROM], rounds)["scan"]
    sizes = f"{GROWTH_FROM:,} → {max(varied):,}"
    return [Row("growth of a skill's scan", sizes, _each(large), large.each / small.each, TIMES, GROWTH_BOUND)]


def _even(root: Path, rounds: int) -> list[Row]:
    found = _taken(("floor", "scan", "issues"), root, rounds)
    size, floor = found["scan"].count, found["floor"]
    what = "even library (every value on one line, no files)"
    return [
        _ratio_row(f"scan, {what}", size, found["scan"], floor, (EVEN_SCAN_BOUND, EVEN_SCAN_AIM)),
        _ratio_row(f"catalog.issues, {what}", size, found["issues"], floor, (EVEN_ISSUES_BOUND, EVEN_ISSUES_AIM)),
    ]


def _cold(root: Path, rounds: int) -> list[Row]:
    """Return the row of a scan whose files come from the disk, by the clock; none where the system keeps them."""
    found = _taken(("cold_floor", "cold_scan"), root, _few(rounds))
    floor, scan = found["cold_floor"], found["cold_scan"]
    if floor.value < COLD_LEAST * min(floor.floors):
        _say("Skipped the scan of cold files: this system keeps files in memory that it was told to forget.")
        return []
    cost = f"{scan.each * 1e6:,.2f} µs each"
    what = "scan, files not in the cache (by the clock)"
    return [Row(what, f"{scan.count:,}", cost, scan.each / floor.each, f"{TIMES} cold floor", COLD_BOUND)]


def _real(root: Path, size: int, rounds: int) -> list[Row]:
    """Return the row of a library of real heads, which are less even than generated ones; none without the corpus."""
    if not CORPUS.is_dir():
        _say("Skipped the scan of real heads: there is no ../shared/corpus beside the checkout.")
        return []
    make_real_library(root, size)
    measure.warm([root])
    found = _taken(("floor", "scan"), root, _few(rounds))
    ratio = found["scan"].value / found["floor"].value  # in all: some of the heads make no skill
    cost = f"{found['scan'].value / size * 1e6:,.2f} µs each"
    return [Row("scan, real heads", f"{size:,}", cost, ratio, f"{TIMES} floor", REAL_BOUND, REAL_AIM)]


def _bodies(varied: dict[int, Path], rounds: int) -> list[Row]:
    size = max((size for size in varied if size <= 1_000), default=min(varied))
    found = _taken(("bodies_floor", "bodies"), varied[size], rounds)
    bare, ours = found["bodies_floor"], found["bodies"]
    return [_compared("skill.read_body()", ours, bare, "open, seek, read, close", BODY_BOUND)]


def _conversation(varied: dict[int, Path], rounds: int) -> list[Row]:
    size = max((size for size in varied if size <= 1_000), default=min(varied))
    names = ("load_skill", "load_skill_again", "render_floor", "render")
    found = _taken(names, varied[size], rounds)
    large = _taken(("load_skill",), varied[max(varied)], rounds)["load_skill"]
    joined = found["render_floor"]
    return [
        _loaded("load_skill, first call", size, found["load_skill"]),
        _loaded("load_skill, active already", size, found["load_skill_again"]),
        Row(
            "growth of a load_skill call",
            f"{size:,} → {max(varied):,}",
            _each(large),
            large.each / found["load_skill"].each,
            TIMES,
            FLAT_BOUND,
        ),
        _compared("render_catalog", found["render"], joined, "joining its strings", RENDER_BOUND),
    ]


CATALOGUE = 500
"""Skills of the catalogue that many conversations share."""


def _conversations(temporary: Path, rounds: int) -> list[Row]:
    """What a host pays for each conversation, and the first ``load_skill`` while every core has other work."""
    root = temporary / f"varied-{CATALOGUE}"
    if not root.exists():
        make_library(root, CATALOGUE, mix=VARIED)
        measure.warm([root])
    names = (
        "sessions",
        "follow",
        "prompt_first",
        "prompt_again",
        "restore",
        "prompt_whole",
        "render",
        "split",
        "estimate",
    )
    found = _taken(names, root, _few(rounds))
    with measure.busy_cores():
        busy = _taken(("load_skill",), root, rounds)["load_skill"]
    first, rendered = found["prompt_first"].each, found["render"].value
    return [
        _shared("a session and its prompt, of 10,000 sessions", found["sessions"], first),
        _shared("each of them after a reload, over a live catalogue", found["follow"], first),
        _listed(
            "prompt(), made for the first time, everything listed",
            found["prompt_whole"],
            rendered,
            PROMPT_BOUND,
            PROMPT_AIM,
        ),
        _listed(
            "prompt(), made for the first time, shortened to fit", found["prompt_first"], rendered, SHORT_PROMPT_BOUND
        ),
        Row(
            "estimate_tokens of the listing",
            f"{CATALOGUE:,}",
            _each(found["estimate"]),
            found["estimate"].each / found["split"].each,
            f"{TIMES} splitting it into words",
            ESTIMATE_BOUND,
        ),
        _shared("prompt() and tools() again", found["prompt_again"], first),
        _shared("Session.restore, three active skills", found["restore"], first, RESTORE_BOUND),
        _loaded("load_skill, first call, all cores busy", CATALOGUE, busy),
    ]


ADAPTERS = {"pydantic_ai": "Pydantic AI", "anthropic": "Anthropic's client", "openai": "OpenAI's client"}
"""The frameworks that `make setup` installs."""
ADAPTER_BOUNDS = {20: 10.0, 500: 2.5}
"""Skills of a library that is listed whole, and of one from which skills are selected for the request; their bounds."""


def _adapters(temporary: Path, rounds: int) -> list[Row]:
    """What an adapter adds to a run of an agent, beside what the engine itself needs for that run."""
    rows = []
    for size, bound in ADAPTER_BOUNDS.items():
        root = temporary / f"adapters-{size}"
        make_library(root, size, mix=VARIED)
        measure.warm([root])
        _say(f"Measuring adapters in {root.name}.")
        commands = {name: (sys.executable, "-m", "bench.adapter_turns", name, str(root)) for name in ADAPTERS}
        found = measure.take_turns(commands, rounds=_few(rounds))
        rows += [
            Row(
                f"what skills add to a run: {what}",
                f"{size:,}",
                f"{best.value * 1e3:,.2f} ms",
                best.ratio,
                f"{TIMES} engine",
                bound,
            )
            for name, what in ADAPTERS.items()
            for best in [found[name]]
        ]
    return rows


def _loaded(what: str, size: int, best: measure.Best) -> Row:
    return Row(what, f"{size:,}", _each(best), best.ratio, f"{TIMES} contained read", LOAD_BOUND, LOAD_AIM)


def _listed(what: str, best: measure.Best, rendered: float, bound: float, aim: float | None = None) -> Row:
    return Row(what, f"{CATALOGUE:,}", _each(best), best.value / rendered, f"{TIMES} render_catalog", bound, aim)


def _shared(what: str, best: measure.Best, first: float, bound: float = SHARED_BOUND) -> Row:
    return Row(what, f"{CATALOGUE:,}", _each(best), best.each / first, f"{TIMES} first prompt", bound)


def _each(best: measure.Best) -> str:
    return f"{best.each * 1e6:,.2f} µs each"


def _compared(what: str, ours: measure.Best, floor: measure.Best, unit: str, bound: float) -> Row:
    return Row(what, f"{ours.count:,}", _each(ours), ours.each / floor.each, f"{TIMES} {unit}", bound)


_MEMORY = {
    "traced_memory": "memory of the catalogue, by tracemalloc",
    "resident_memory": "memory of the catalogue, by growth of the process",
    "resident_memory_with_issues": "the same after catalog.issues",
}


def _few(rounds: int) -> int:
    """Memory hardly varies from run to run."""
    return min(rounds, 3)


def _memory(root: Path, rounds: int) -> list[Row]:
    found = _taken(_MEMORY, root, _few(rounds))
    return [
        Row(
            what,
            f"{found[name].count:,}",
            "",
            found[name].each,
            "bytes each",
            ISSUES_MEMORY_BOUND if name.endswith("issues") else MEMORY_BOUND,
        )
        for name, what in _MEMORY.items()
    ]


def _imports(root: Path, rounds: int) -> list[Row]:
    """Return what imports cost beyond an empty process, those of the package beside that of json."""
    _say("Measuring imports.")
    commands = {what: (sys.executable, "-c", code + _PRINT_CLOCK, str(root)) for what, code in IMPORTS.items()}
    found = measure.take_turns(commands, rounds=rounds)
    empty = found["an empty process"].value
    json = found["import json"].value - empty
    rows = []
    for what, bounds in _IMPORT_BOUNDS.items():
        more = found[what].value - empty
        skills = root.name.rpartition("-")[2] if "scan" in what else ""
        rows.append(Row(what, skills, f"{more * 1e3:,.1f} ms", more / json, f"{TIMES} import json", *bounds))
    return rows


_STARTUP = ("python", "version", "click_and_scan", "list", "list_terminal")


def _command_line(root: Path, rounds: int) -> list[Row]:
    """What a command costs as a process beside what it cannot do without."""
    _say(f"Measuring the command line in {root.name}.")
    commands = {name: (sys.executable, "-m", "bench.startup", name, str(root)) for name in _STARTUP}
    found = measure.take_turns(commands, rounds=rounds)
    size = root.name.rpartition("-")[2]
    bare, needed = found["python"].value, found["click_and_scan"].value

    def row(what: str, name: str, floor: float, unit: str, *bounds: float) -> Row:
        value = found[name].value
        skills = "" if name == "version" else f"{int(size):,}"
        return Row(what, skills, f"{value * 1e3:,.1f} ms", value / floor, f"{TIMES} {unit}", *bounds)

    return [
        row("prowess --version", "version", bare, "python -c pass", VERSION_BOUND, VERSION_AIM),
        row("prowess list, in a pipe", "list", needed, "click and scan", PIPE_BOUND, PIPE_AIM),
        row("prowess list, on a terminal", "list_terminal", needed, "click and scan", TERMINAL_BOUND, TERMINAL_AIM),
    ]


def _demonstration(root: Path, rounds: int) -> list[Row]:
    _say("Measuring the demonstration.")
    command = (sys.executable, "-m", "bench.startup", "demo", str(root))
    seconds = measure.take_turns({"demo": command}, rounds=_few(rounds))["demo"].value
    return [Row("prowess demo (by the clock)", "", f"{seconds * 1e3:,.1f} ms", seconds, "s", DEMO_BOUND)]


def _installing(temporary: Path, rounds: int) -> list[Row]:
    _say("Measuring installing and verifying.")
    repository, installed = temporary / "pdf", temporary / "installed"
    make_repository(repository)
    make_installed(installed, INSTALLED)
    measure.warm([repository, installed])
    roots = {"clone": repository, "install": repository, "verify_floor": installed, "verify": installed}
    commands = {name: (sys.executable, "-m", "bench.installing", name, str(root)) for name, root in roots.items()}
    found = measure.take_turns(commands, rounds=rounds)
    cloned, hashed = found["clone"], found["verify_floor"]
    return [
        _compared("installer.install (by the clock)", found["install"], cloned, "git clone --depth 1", INSTALL_BOUND),
        _compared("installer.verify", found["verify"], hashed, "hashing every file", VERIFY_BOUND),
    ]


SCALE_SIZES = (500, 5_000)
"""Skills of a small and of a large project."""
_SCALED = {
    "verify": "installer.verify",
    "sync_locked": "installer.sync(locked=True), nothing to do",
    "list_all": "prowess list",
    "prompt": "prowess prompt",
    "install_many": "installer.install of that many, each chosen",
}


def _scale(temporary: Path, rounds: int) -> list[Row]:
    """What one skill costs in a small project and in one that is ten times as large, and how that grows."""
    _say(f"Measuring projects of {' and '.join(f'{size:,}' for size in SCALE_SIZES)} skills.")
    commands: dict[str, measure.Command] = {}
    for size in SCALE_SIZES:
        project, source = temporary / f"project-{size}", temporary / f"source-{size}"
        make_installed(project, size)
        make_source(source, size)
        measure.warm([project, source])
        roots = {name: source if name == "install_many" else project for name in _SCALED}
        commands |= {
            f"{name} {size}": (sys.executable, "-m", "bench.installing", name, str(root))
            for name, root in roots.items()
        }
    found = measure.take_turns(commands, rounds=_few(rounds))
    small, large = SCALE_SIZES
    rows = []
    for name, what in _SCALED.items():
        few, many = found[f"{name} {small}"], found[f"{name} {large}"]
        rows.append(Row(what, f"{large:,}", _each(many), many.each / few.each, f"{TIMES} of {small:,}", GROWTH_BOUND))
    return [*rows, *_lock_size(temporary), *_one_source(temporary, large, rounds)]


CHOSEN = 400
OUTDATED_BOUND, UPDATE_BOUND = 3.0, 0.2


def _one_source(temporary: Path, size: int, rounds: int) -> list[Row]:
    """What it costs to look for news of many skills of one repository, and to update a few of them."""
    few, many = temporary / f"repository-{CHOSEN}", temporary / f"repository-{size}"
    make_skill_repository(few, CHOSEN)
    make_skill_repository(many, size)
    measure.warm([few, many])
    roots = {"outdated_chosen": few, "update_chosen": many, "update_whole": many}
    commands = {name: (sys.executable, "-m", "bench.installing", name, str(root)) for name, root in roots.items()}
    found = measure.take_turns(commands, rounds=_few(rounds))
    update = f"installer.update of {UPDATED} among {size:,}"
    what = {
        "outdated_chosen": ("installer.outdated, each chosen (by the clock)", "that of one install", OUTDATED_BOUND),
        "update_chosen": (f"{update}, each chosen (by the clock)", "their install", UPDATE_BOUND),
        "update_whole": (f"{update} of one install (by the clock)", "that install", UPDATE_BOUND),
    }
    return [
        Row(name, f"{found[task].count:,}", _each(found[task]), found[task].ratio, f"{TIMES} {unit}", bound)
        for task, (name, unit, bound) in what.items()
    ]


def _lock_size(temporary: Path) -> list[Row]:
    """How many bytes of the lock file a chosen skill of ten files takes, among few and among many."""
    commands: dict[str, measure.Command] = {}
    for size in LOCK_SIZES:
        root = temporary / f"declared-{size}"
        make_declared_source(root, size)
        commands[str(size)] = (sys.executable, "-m", "bench.installing", "lock_bytes", str(root))
    found = measure.take_turns(commands, rounds=1)  # a size is the same every time
    few, many = (found[str(size)] for size in LOCK_SIZES)
    small, large = LOCK_SIZES
    growth = many.each / few.each
    return [
        Row("lock file, each chosen skill of ten files", f"{large:,}", "", many.each, "bytes each", LOCK_BOUND),
        Row("growth of the lock file", f"{small:,} → {large:,}", "", growth, TIMES, GROWTH_BOUND),
    ]


_SERVED = {
    "start": ("server: start to first answer", 1e3, "ms"),
    "first": ("server: start to first answer, by the clock", 1e3, "ms"),
    "tools": ("server: start to first tools/list", 1e3, "ms"),
    "tools_clock": ("server: start to first tools/list, by the clock", 1e3, "ms"),
    "whole_clock": ("server: start to the first file, by the clock", 1e3, "ms"),
    "listing": ("server: skills/list, all pages, first time", 1e3, "ms"),
    "get": ("server: skills/get", 1e3, "ms"),
    "read": ("server: resources/read of one file", 1e3, "ms"),
    "memory": ("server: memory at the peak", 1 / 1024, "MiB"),
}
SERVED_SIZES = (100, 1_000)
SERVED_BOUND = 1.0
START_BOUND = 0.9
_START = frozenset(("start", "first", "tools", "tools_clock"))
SIEGE_BOUND = 2.0


def _servers(temporary: Path, rounds: int) -> list[Row]:
    roots = {size: temporary / f"served-{size}" for size in SERVED_SIZES}
    for size, root in roots.items():
        make_library(root, size, mix=PLAIN)
    measure.warm(list(roots.values()))
    _say("Measuring servers.")
    found = servers.compare(roots, _few(rounds))
    if isinstance(found, str):
        _say(f"Skipped the servers: {found}")
        return []
    unit = f"{TIMES} FastMCP {found.version}"
    rows = [
        Row(what, f"{size:,}", f"{ours * factor:,.1f} {kind}", ours / theirs, unit, _bound_served(name))
        for name, (what, factor, kind) in _SERVED.items()
        for size in SERVED_SIZES
        if (ours := getattr(found.ours[size], name)) is not None and (theirs := getattr(found.theirs[size], name))
    ]
    rows += _siege(roots[SERVED_SIZES[0]], _few(rounds))
    small, large = found.ours[SERVED_SIZES[0]].read, found.ours[SERVED_SIZES[1]].read
    return [*rows, Row("growth of a read", "100 → 1,000", "", large / max(small, 1e-4), TIMES, FLAT_BOUND)]


def _bound_served(name: str) -> float:
    return START_BOUND if name in _START else SERVED_BOUND


def _siege(root: Path, rounds: int) -> list[Row]:
    """What an honest client's read costs beside a thousand idle ones; the best of several sieges."""
    uri = f"skill://{min(path.name for path in root.iterdir())}/SKILL.md"
    found = min((servers.besieged(root, uri) for _ in range(rounds)), key=lambda siege: siege.beside / siege.alone)
    what = f"a read on HTTP beside {servers.IDLERS:,} idle clients, by the clock"
    ratio = found.beside / found.alone
    return [Row(what, "100", f"{found.beside * 1e3:,.1f} ms", ratio, f"{TIMES} alone", SIEGE_BOUND)]


PAGE_BOUND = 3.0
SEARCH_BOUND = 50
LOADS_BOUND = 1.0


def _console(temporary: Path, size: int, rounds: int) -> list[Row]:
    """What the console costs beside the listing of the same library, while somebody types, and over many pages."""
    _say(f"Measuring the console of {size:,} skills.")
    root = temporary / f"console-{size}"
    make_library(root, size, mix=VARIED)
    measure.warm([root])
    commands = {
        name: (sys.executable, "-m", "bench.console", name, str(root)) for name in ("list", "first_page", "search")
    }
    found = measure.take_turns(commands, rounds=_few(rounds))
    listed, page, typed = (found[name].value for name in commands)
    loads = measure.run_fresh((sys.executable, "-m", "bench.console", "loads", str(root)))
    grown = loads["value"] / 2**20
    return [
        Row(
            "prowess ui, from its start to its first page",
            f"{size:,}",
            f"{page * 1e3:,.0f} ms",
            page / listed,
            f"{TIMES} list --json",
            PAGE_BOUND,
        ),
        Row(
            "a search, the slowest page while somebody types",
            f"{size:,}",
            f"{typed * 1e3:,.1f} ms",
            typed * 1e3,
            "ms",
            SEARCH_BOUND,
        ),
        Row(f"growth of the memory over {loads['count']:,} pages", f"{size:,}", "", grown, "MiB", LOADS_BOUND),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
