"""``python -m bench``: what discovery costs beside merely reading the files, against the bounds that the project set.

The exit status is 0 whatever the figures are: they depend on the machine, and timings are not tests.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from bench import measure, servers, table
from bench.corpus import CORPUS, make_real_library
from bench.generate import EVEN, PLAIN, VARIED, make_library
from bench.installing import make_installed, make_repository, make_source
from bench.report import HEAD, TIMES, Row

SIZES = (100, 1_000, 10_000)
ROUNDS = 15
PARTS = ("engine", "scale", "servers", "adapters")

SCAN_BOUND, SCAN_AIM = 3.4, 3.0
EVEN_SCAN_BOUND, EVEN_SCAN_AIM = 2.75, 2.5
ISSUES_BOUND, ISSUES_AIM = 8.0, 6.0
EVEN_ISSUES_BOUND, EVEN_ISSUES_AIM = 4.0, 3.0
COLD_BOUND = 1.0
COLD_LEAST = 3
"""How many times as long the floor takes from a disk as from memory; where it is less, there is no disk."""
REAL_BOUND, REAL_AIM = 10.0, 6.0
IMPORT_BOUND, IMPORT_AIM = 1.5, 0.5
FIRST_SCAN_BOUND, FIRST_SCAN_AIM = 5.5, 3.5
GROWTH_BOUND = 1.15
MEMORY_BOUND = 3_000
ISSUES_MEMORY_BOUND = 2_500
BODY_BOUND = 3.0
LOAD_BOUND, LOAD_AIM = 4.5, 4.0
RENDER_BOUND = 3.0
PROMPT_BOUND, PROMPT_AIM = 2.0, 1.5
SHORT_PROMPT_BOUND = 3.0
ESTIMATE_BOUND = 5.0
PIPE_BOUND = 1.6
TERMINAL_BOUND = 2.5
DEMO_BOUND = 60
INSTALL_BOUND = 3.0
VERIFY_BOUND = 1.5
INSTALLED = 1_000

_FIRST_SCAN = "import sys, prowess; prowess.scan(sys.argv[1])"
IMPORTS = {
    "an empty process": "pass",
    "import json": "import json",
    "import prowess": "import prowess",
    "import and first scan": _FIRST_SCAN,
    "import and first scan, with yaml (once a head needs it)": f"{_FIRST_SCAN}; import yaml",
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
    return 0


def _report(name: str, rows: list[Row], options: argparse.Namespace) -> None:
    report = table.render(HEAD, [row.cells() for row in rows], numbers=frozenset((1, 2, 3)))
    few = f" (memory: of {_few(options.rounds)})" if name == "bench" else ""
    count = options.rounds if name == "bench" else _few(options.rounds)
    note = f"{table.machine()}; best of {count} fresh processes each{few}.\n"
    print(f"{report}\n{note}", end="", flush=True)
    if options.write:
        table.write_between(name, f"{report}\n{note}")


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

_DISCOVERY = {
    "floor": "floor: scandir; open, read 4 KiB, close",
    "scan": "scan",
    "scan_and_read": "scan, every name and description read",
    "issues": "catalog.issues after the scan",
}


def _discovery(varied: dict[int, Path], rounds: int) -> list[Row]:
    found = {size: _taken(_DISCOVERY, root, rounds) for size, root in varied.items()}
    largest = max(varied)
    bounds = {"scan": (SCAN_BOUND, SCAN_AIM), "issues": (ISSUES_BOUND, ISSUES_AIM)}
    rows = [
        _ratio_row(what, size, best[name], best["floor"], bounds.get(name) if size == largest else None)
        for name, what in _DISCOVERY.items()
        for size, best in found.items()
    ]
    return rows + _growth(found)


def _taken(names: dict[str, str], root: Path, rounds: int) -> dict[str, measure.Best]:
    _say(f"Measuring {', '.join(names)} in {root.name}.")
    return measure.take_turns({name: measure.task(name, root) for name in names}, rounds=rounds)


def _ratio_row(
    what: str, size: int, best: measure.Best, floor: measure.Best, bounds: tuple[float, float] | None = None
) -> Row:
    cost = f"{best.each * 1e6:,.2f} µs each"
    ratio = None if best is floor else best.each / floor.each
    return Row(what, f"{size:,}", cost, ratio, f"{TIMES} floor", *(bounds or (None, None)))


def _growth(found: dict[int, dict[str, measure.Best]]) -> list[Row]:
    if not {1_000, 10_000} <= set(found):
        return []
    small, large = found[1_000], found[10_000]
    return [
        Row(
            f"growth of a skill's cost: {name}",
            "1,000 → 10,000",
            "",
            large[name].each / small[name].each,
            TIMES,
            GROWTH_BOUND if name == "scan" else None,
        )
        for name in ("floor", "scan")
    ]


def _even(root: Path, rounds: int) -> list[Row]:
    found = _taken({name: name for name in ("floor", "scan", "issues")}, root, rounds)
    size, floor = found["scan"].count, found["floor"]
    what = "even library (every value on one line, no files)"
    return [
        _ratio_row(f"scan, {what}", size, found["scan"], floor, (EVEN_SCAN_BOUND, EVEN_SCAN_AIM)),
        _ratio_row(f"catalog.issues, {what}", size, found["issues"], floor, (EVEN_ISSUES_BOUND, EVEN_ISSUES_AIM)),
    ]


def _cold(root: Path, rounds: int) -> list[Row]:
    """Return the row of a scan whose files come from the disk, by the clock; none where the system keeps them."""
    found = _taken({name: name for name in ("cold_floor", "cold_scan")}, root, _few(rounds))
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
    found = _taken({name: name for name in ("floor", "scan")}, root, _few(rounds))
    ratio = found["scan"].value / found["floor"].value  # in all: some of the heads make no skill
    cost = f"{found['scan'].value / size * 1e6:,.2f} µs each"
    return [Row("scan, real heads", f"{size:,}", cost, ratio, f"{TIMES} floor", REAL_BOUND, REAL_AIM)]


def _bodies(varied: dict[int, Path], rounds: int) -> list[Row]:
    size = max((size for size in varied if size <= 1_000), default=min(varied))
    found = _taken({name: name for name in ("bodies_floor", "bodies")}, varied[size], rounds)
    bare, ours = found["bodies_floor"], found["bodies"]
    return [
        Row("body floor: open, lseek, read, close", f"{bare.count:,}", f"{bare.each * 1e6:,.2f} µs each"),
        Row(
            "skill.read_body()",
            f"{ours.count:,}",
            f"{ours.each * 1e6:,.2f} µs each",
            ours.each / bare.each,
            f"{TIMES} body floor",
            BODY_BOUND,
        ),
    ]


def _conversation(varied: dict[int, Path], rounds: int) -> list[Row]:
    size = max((size for size in varied if size <= 1_000), default=min(varied))
    names = ("load_skill", "load_skill_again", "render_floor", "render")
    found = _taken({name: name for name in names}, varied[size], rounds)
    large = _taken({"load_skill": "load_skill"}, varied[max(varied)], rounds)["load_skill"]
    joined = found["render_floor"]
    reads = min(found["load_skill"].floors)
    return [
        Row("contained read of the SKILL.md", f"{size:,}", f"{reads * 1e6:,.2f} µs each"),
        _loaded("load_skill, first call", size, found["load_skill"]),
        _loaded("load_skill, active already", size, found["load_skill_again"]),
        Row(
            "growth of a load_skill call",
            f"{size:,} → {max(varied):,}",
            _each(large),
            large.each / found["load_skill"].each,
            TIMES,
        ),
        Row("joining the strings of a listing", f"{joined.count:,}", _each(joined)),
        _compared("render_catalog", found["render"], joined, "joining", RENDER_BOUND),
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
    found = _taken({name: name for name in names}, root, _few(rounds))
    with measure.busy_cores():
        busy = _taken({"load_skill": "load_skill"}, root, rounds)["load_skill"]
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
        Row("Session.restore, three active skills", f"{CATALOGUE:,}", _each(found["restore"])),
        _loaded("load_skill, first call, all cores busy", CATALOGUE, busy),
    ]


ADAPTERS = {"pydantic_ai": "Pydantic AI", "anthropic": "Anthropic's client", "openai": "OpenAI's client"}
"""The frameworks that `make setup` installs."""
LISTED, SELECTED = 20, 500
"""Skills of a library that is listed whole, and of one from which skills are selected for the request."""


def _adapters(temporary: Path, rounds: int) -> list[Row]:
    """What an adapter adds to a run of an agent, beside what the engine itself needs for that run."""
    rows = []
    for size in (LISTED, SELECTED):
        root = temporary / f"adapters-{size}"
        make_library(root, size, mix=VARIED)
        measure.warm([root])
        _say(f"Measuring adapters in {root.name}.")
        commands = {name: (sys.executable, "-m", "bench.adapter_turns", name, str(root)) for name in ADAPTERS}
        found = measure.take_turns(commands, rounds=_few(rounds))
        engine = min(min(best.floors) for best in found.values())
        rows.append(Row("the engine alone: prompt and tools twice, load_skill", f"{size:,}", f"{engine * 1e3:,.2f} ms"))
        rows += [
            Row(
                f"what skills add to a run: {what}",
                f"{size:,}",
                f"{best.value * 1e3:,.2f} ms",
                best.ratio,
                f"{TIMES} engine",
            )
            for name, what in ADAPTERS.items()
            for best in [found[name]]
        ]
    return rows


def _loaded(what: str, size: int, best: measure.Best) -> Row:
    return Row(what, f"{size:,}", _each(best), best.ratio, f"{TIMES} contained read", LOAD_BOUND, LOAD_AIM)


def _listed(what: str, best: measure.Best, rendered: float, bound: float, aim: float | None = None) -> Row:
    return Row(what, f"{CATALOGUE:,}", _each(best), best.value / rendered, f"{TIMES} render_catalog", bound, aim)


def _shared(what: str, best: measure.Best, first: float) -> Row:
    return Row(what, f"{CATALOGUE:,}", _each(best), best.each / first, f"{TIMES} first prompt")


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
    size = root.name.rpartition("-")[2]
    rows = []
    for what, best in found.items():
        more = best.value - empty
        cost = f"{more * 1e3:,.1f} ms more" if more else f"{empty * 1e3:,.1f} ms"
        bounds = _IMPORT_BOUNDS.get(what, (None, None))
        ratio = more / json if "prowess" in IMPORTS[what] else None
        rows.append(Row(what, size if "scan" in what else "", cost, ratio, f"{TIMES} import json", *bounds))
    return rows


_STARTUP = ("python", "version", "click_and_scan", "list", "list_terminal")


def _command_line(root: Path, rounds: int) -> list[Row]:
    """What a command costs as a process beside what it cannot do without."""
    _say(f"Measuring the command line in {root.name}.")
    commands = {name: (sys.executable, "-m", "bench.startup", name, str(root)) for name in _STARTUP}
    found = measure.take_turns(commands, rounds=rounds)
    size = root.name.rpartition("-")[2]
    bare, needed = found["python"].value, found["click_and_scan"].value

    def row(what: str, name: str, floor: float | None, unit: str, bound: float | None = None) -> Row:
        value = found[name].value
        skills = "" if name in {"python", "version"} else f"{int(size):,}"
        return Row(
            what, skills, f"{value * 1e3:,.1f} ms", None if floor is None else value / floor, f"{TIMES} {unit}", bound
        )

    return [
        row("python -c pass", "python", None, ""),
        row("prowess --version", "version", bare, "python"),
        row("import click, prowess; scan", "click_and_scan", None, ""),
        row("prowess list, in a pipe", "list", needed, "click and scan", PIPE_BOUND),
        row("prowess list, on a terminal", "list_terminal", needed, "click and scan", TERMINAL_BOUND),
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
        Row("git clone --depth 1 (by the clock)", "1", f"{cloned.value * 1e3:,.1f} ms"),
        _compared("installer.install of the same (by the clock)", found["install"], cloned, "git clone", INSTALL_BOUND),
        Row("find, read and hash every file", f"{hashed.count:,}", _each(hashed)),
        _compared("installer.verify", found["verify"], hashed, "hashing", VERIFY_BOUND),
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
        rows.append(Row(what, f"{small:,}", _each(few)))
        rows.append(Row(what, f"{large:,}", _each(many), many.each / few.each, f"{TIMES} of {small:,}", GROWTH_BOUND))
    return rows


_SERVED = {
    "start": ("server: start to first answer", 1e3, "ms"),
    "first": ("the same by the clock", 1e3, "ms"),
    "listing": ("server: skills/list, all pages, first time", 1e3, "ms"),
    "get": ("server: skills/get", 1e3, "ms"),
    "read": ("server: resources/read of one file", 1e3, "ms"),
    "memory": ("server: memory at the peak", 1 / 1024, "MiB"),
}
SERVED_SIZES = (100, 1_000)
SERVED_BOUND = 1.0
FLAT_BOUND = 1.5
SIEGE_BOUND = 2.0


def _servers(temporary: Path, rounds: int) -> list[Row]:
    roots = {size: temporary / f"served-{size}" for size in SERVED_SIZES}
    for size, root in roots.items():
        make_library(root, size, mix=PLAIN)
    measure.warm(list(roots.values()))
    _say("Measuring servers.")
    found = servers.compare(roots, _few(rounds))
    if isinstance(found, str):
        return [Row("server beside FastMCP's", "", f"not compared: {found}")]
    unit = f"{TIMES} FastMCP {found.version}"
    rows = [
        Row(what, f"{size:,}", f"{ours * factor:,.1f} {kind}", ours / theirs, unit, SERVED_BOUND)
        for name, (what, factor, kind) in _SERVED.items()
        for size in SERVED_SIZES
        if (ours := getattr(found.ours[size], name)) is not None and (theirs := getattr(found.theirs[size], name))
    ]
    rows += _siege(roots[SERVED_SIZES[0]], _few(rounds))
    small, large = found.ours[SERVED_SIZES[0]].read, found.ours[SERVED_SIZES[1]].read
    return [*rows, Row("growth of a read", "100 → 1,000", "", large / max(small, 1e-4), TIMES, FLAT_BOUND)]


def _siege(root: Path, rounds: int) -> list[Row]:
    """What an honest client's read costs beside a thousand idle ones; the best of several sieges."""
    uri = f"skill://{min(path.name for path in root.iterdir())}/SKILL.md"
    found = min((servers.besieged(root, uri) for _ in range(rounds)), key=lambda siege: siege.beside / siege.alone)
    what = f"a read on HTTP beside {servers.IDLERS:,} idle clients, by the clock"
    ratio = found.beside / found.alone
    return [Row(what, "100", f"{found.beside * 1e3:,.1f} ms", ratio, f"{TIMES} alone", SIEGE_BOUND)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
