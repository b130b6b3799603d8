"""The program of a child process: it sets limits, runs the code of a case, and prints the outcome as JSON.

A fork server runs it. The code sees ``library``, ``prowess``, ``naive``, ``invariants`` and ``args``, and stores its
answer in ``result``. The outcome includes what the code cost.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
NOBODY = 65534
_PLAIN_WARM_UP = "---\nname: warm\ndescription: |\n  A text\n\n   that only YAML reads\n---\nBody.\n"


def use_way(way: str | None) -> None:
    """Take from the system what the stronger ways of opening need, before the engine looks for it."""
    if way == "components":
        del os.O_PATH
    elif way == "portable":
        os.supports_dir_fd = set()


class Meter:
    """Counts the bytes that ``os.read`` and ``os.pread`` return, by file, and the folders that are listed."""

    def __init__(self) -> None:
        self.read: dict[str, int] = {}
        self.listed = 0

    def watch(self) -> None:
        os.read = self._counting(os.read)
        if hasattr(os, "pread"):
            os.pread = self._counting(os.pread)
        sys.addaudithook(self._hook)

    def _counting(self, function: Callable[..., bytes]) -> Callable[..., bytes]:
        def counted(fd: int, *rest: int) -> bytes:
            data = function(fd, *rest)
            name = _name_of(fd)
            self.read[name] = self.read.get(name, 0) + len(data)
            return data

        return counted

    def _hook(self, event: str, _args: tuple[object, ...]) -> None:
        if event == "os.scandir":
            self.listed += 1


def _name_of(fd: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115
    except OSError:
        return str(fd)


def memory(field: str) -> int:
    """Return a figure of this process in bytes: ``VmRSS`` now, ``VmHWM`` at its peak, ``VmSize`` of addresses."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def limit_memory(mib: int) -> None:
    """Let this process grow by at most ``mib`` MiB. The hard limit stays, so that ``lift_limits`` can undo this."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (memory("VmSize") + mib * MIB, hard))


def lift_limits() -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def drop_privileges() -> None:
    """Become a user whom file permissions bind, unlike root."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def run(code: str, names: dict[str, Any]) -> dict[str, object]:
    """Run the code, and return its result or what it raised."""
    try:
        exec(compile(code, "<case>", "exec"), names)  # noqa: S102 - the tests write it
    except BaseException as error:  # noqa: BLE001 - a twin may fail in any way
        typed = isinstance(error, names["prowess"].SkillError)
        return {"raised": type(error).__name__, "typed": typed, "words": f"{error!s:.2000}"}
    return {"result": names.get("result")}


_LATE_MODULES = """
    discovery.scan files.projects installed.verifier installed.scopes
    conversation.session select.budget
    skills.catalog_issues skills.explanation skills.source_list
 skills.resources skills.skill_files skills.render
    format.rules format.frontmatter.fences format.frontmatter.fields format.frontmatter.quick.nested_heads
    format.frontmatter.parse format.frontmatter.yaml_events tools.toolset
"""
"""What the package loads when it is first used: later, nobody may be unable to read it, and it would be measured."""


def prepare(way: str) -> Callable[..., None]:
    """Import what the cases need, with the system as that way of opening files has it (``""``: as it is)."""
    use_way(way or None)
    meter = Meter()
    meter.watch()
    names: dict[str, Any] = {name: importlib.import_module(name) for name in ("json", "os", "sys", "prowess")}
    names |= {"naive": importlib.import_module("naive"), "invariants": importlib.import_module("invariants")}
    names["meter"] = meter
    names["prowess"].parse_skill(_PLAIN_WARM_UP)  # what is imported only when it is needed
    best = importlib.import_module("prowess.files.contained_open").best_open_method()
    memory("VmRSS")  # nobody may not be able to import what this needs
    importlib.import_module("prowess.install.installer")
    for name in _LATE_MODULES.split():
        importlib.import_module(f"prowess.{name}")

    def answer(options: dict[str, Any], code: str, *args: str) -> None:
        if way and best != way:
            json.dump({"unavailable": best}, sys.stdout)
        else:
            answer_case(options, code, names | {"args": list(args)})

    return answer


def answer_case(options: dict[str, Any], code: str, names: dict[str, Any]) -> None:
    """Limit this process, run the code, and print the outcome and what it cost."""
    meter: Meter = names["meter"]
    names["library"] = names["invariants"].Library(Path(options["base"]))
    if options["nobody"]:
        drop_privileges()
    if options["memory"]:
        limit_memory(options["memory"])
    meter.read.clear()
    meter.listed = 0
    before, began, busy = memory("VmRSS"), time.monotonic(), time.process_time()
    answer = run(code, names)
    answer |= {"seconds": time.monotonic() - began, "busy": time.process_time() - busy}
    if options["memory"]:
        lift_limits()
    answer |= {"grown": memory("VmHWM") - before, "peak": memory("VmHWM"), "read": meter.read, "listed": meter.listed}
    answer["children"] = has_children()
    json.dump(answer, sys.stdout)
