"""What the commands that install share: which install a name means, how plans and notes are shown."""

from __future__ import annotations

import os
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from prowess.cli import output
from prowess.cli.blocks import Line, line
from prowess.cli.options import complete_agent, home_relative, known_agents
from prowess.errors import NotInstalledError, nearest_first
from prowess.files.folders import exists
from prowess.install.installer import Installer
from prowess.library.lock import LOCK_FILE, read_lock
from prowess.spec.addresses import SCHEMES
from prowess.spec.redaction import hide_secrets, show_address
from prowess.spec.refs import SkillRef

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import prowess
    from prowess.cli.blocks import Block
    from prowess.library.lock import Locked, LockedSkill

T = TypeVar("T")

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
dry_option = click.option("--dry-run", is_flag=True, help="Only show what would be done.")
agents_option = click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="ID",
    shell_complete=complete_agent,
    callback=known_agents,
    help="Also link it for this agent.",
)


def reach_options(command: Callable[..., T]) -> Callable[..., T]:
    """``--allow-http`` and ``--allow-private``: the ``installer`` that the command gets may ask so, this once.

    No lock file can say so.
    """

    @wraps(command)
    def reaching(*given: Any, allow_http: bool, allow_private: bool, **named: Any) -> T:  # noqa: ANN401 - its own
        schemes = (*SCHEMES, "http") if allow_http else SCHEMES
        return command(*given, installer=Installer(schemes=schemes, allow_private=allow_private), **named)

    for option in (
        click.option(
            "--allow-private", is_flag=True, help="Archives and sites may be on machines that are not public."
        ),
        click.option(
            "--allow-http", is_flag=True, help="Sources may be asked over plain http, which anyone can change."
        ),
    ):
        reaching = option(reaching)
    return reaching


def complete_installed(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Names of installs for the shell."""
    try:
        return [one.full_name for one in Installer().list() if one.full_name.startswith(incomplete)]
    except Exception:  # noqa: BLE001 - the edge to a shell: completion says nothing rather than something wrong
        return []


installed_argument = click.argument("name", metavar="NAME", shell_complete=complete_installed)


def ref_of(installer: Installer, written: str) -> str:
    """The install that a person means: ``@org/name[@version]``, ``org/name``, its name, or that of a skill in it."""
    if written.startswith("@"):
        return str(SkillRef.parse(written))
    if hide_secrets(written) != written:  # an address, with a secret, in place of a name
        raise NotInstalledError(f"{show_address(written)} is no name of an install")
    bare, _, version = written.partition("@")
    known = list(dict.fromkeys((*(one.full_name for one in installer.list()), *_entries(installer))))
    fitting = [name for name in known if bare in {name, name.partition("/")[2]}] or _holding(installer, bare)
    if len(set(fitting)) > 1:
        message = f"{bare!r} could be {' or '.join(sorted(set(fitting)))}: write the whole name"
        raise NotInstalledError(message)
    if not fitting:
        near = ", ".join(nearest_first(bare, known)[:5])
        raise NotInstalledError(f"{bare!r} is not installed" + (f"; installed: {near}" if near else ""))
    return f"@{fitting[0]}{f'@{version}' if version else ''}"


def _holding(installer: Installer, skill: str) -> list[str]:
    """The installs that hold a skill of that name."""
    return [name for name, entry in _entries(installer).items() if skill in entry.skills]


def entry_of(installer: Installer, name: str) -> LockedSkill | None:
    """What the lock files say of an install, the project's first."""
    return _entries(installer).get(name)


def _entries(installer: Installer) -> Locked:
    return read_lock(installer.user.records) | read_lock(installer.project.records)


def tell_unlocked(installer: Installer) -> None:
    """Say so where the project that a command is about has no lock file."""
    root = installer.project.records
    if not exists(os.path.join(root, LOCK_FILE)):
        output.note(f"no {LOCK_FILE} here: the project is {home_relative(root)}")


def show_plan(rows: Iterable[str]) -> None:
    """What is going to happen, on the error stream."""
    output.show([line(("Plan:", "title")), *(line(f"- {row}", indent=2) for row in rows), Line()], error=True)


def notes(issues: Iterable[prowess.Issue]) -> None:
    """What a command found worth saying, though it went on."""
    for issue in issues:
        inner = f"{issue.path}: " if issue.path and not os.path.isabs(issue.path) else ""  # a file of the source
        say = output.note if issue.severity == "info" else output.warn
        say(f"[{issue.code}] {inner}{issue.message}")


def issue_data(issue: prowess.Issue) -> dict[str, object]:
    """An issue as data."""
    return {"code": issue.code, "field": issue.field, "message": issue.message, "path": issue.path, "hint": issue.hint}


def installed_data(one: prowess.InstalledSkill) -> dict[str, object]:
    """An install as data."""
    return {"name": one.full_name, "location": one.location, "path": str(one.path)}


def installed_line(what: str, one: prowess.InstalledSkill) -> Block:
    """An install for people."""
    return line(f"{what} ", (one.full_name, "name"), f" for the {one.location}: {home_relative(str(one.path))}")
