"""What the commands that install share: which install a name means, how installs and issues are shown."""

from __future__ import annotations

import os
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from prowess.cli.options import check_agents, complete_agent, is_shell_safe, shorten_path
from prowess.cli.render import printer
from prowess.cli.render.blocks import line
from prowess.errors import NotInstalledError, did_you_mean, sort_by_similarity
from prowess.files.directory import exists
from prowess.install.installer import Installer
from prowess.lockfile.read import LOCK_FILE, read_lock
from prowess.spec.address_check import DEFAULT_SCHEMES
from prowess.spec.quantities import join_first
from prowess.spec.redaction import hide_secrets, show_address
from prowess.spec.skill_ref import SkillRef

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import prowess
    from prowess.cli.render.blocks import Block
    from prowess.lockfile.read import LockEntries

T = TypeVar("T")

_MAX_LISTED = 5
"""How many installs a message names."""

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only show what would be done.")
agents_option = click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="ID",
    shell_complete=complete_agent,
    callback=check_agents,
    help="Link it for this agent, not for those that are found.",
)


def network_options(command: Callable[..., T]) -> Callable[..., T]:
    """``--allow-http`` and ``--allow-private``: the ``installer`` that the command gets may ask so, this once.

    No lock file can say so.
    """

    @wraps(command)
    def run_with_installer(*given: Any, allow_http: bool, allow_private: bool, **named: Any) -> T:  # noqa: ANN401 - its own
        schemes = (*DEFAULT_SCHEMES, "http") if allow_http else DEFAULT_SCHEMES
        return command(*given, installer=Installer(schemes=schemes, allow_private=allow_private), **named)

    for option in (
        click.option(
            "--allow-private", is_flag=True, help="Archives and sites may be on machines that are not public."
        ),
        click.option(
            "--allow-http", is_flag=True, help="Sources may be asked over plain http, which anyone can change."
        ),
    ):
        run_with_installer = option(run_with_installer)
    return run_with_installer


def complete_install(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Names of installs for the shell: ``org/name``, the name alone, and the skills in them, as ``list`` shows them."""
    try:
        known = _InstallNames(Installer())
        names = (name for name in {*known.full_names, *known.short_names} if is_shell_safe(name))
        return sorted(name for name in names if name.startswith(incomplete))
    except Exception:  # noqa: BLE001 - the edge to a shell: completion says nothing rather than something wrong
        return []


installed_argument = click.argument("name", metavar="NAME", shell_complete=complete_install)
installed_arguments = click.argument(
    "names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_install
)


def find_install_refs(installer: Installer, names: Iterable[str]) -> list[str]:
    """The installs that a person means, each once, in the order named.

    A name is ``@org/name[@version]``, ``org/name``, the name alone, or that of a skill in it. Raises
    ``NotInstalledError`` that names every one of them that is not installed, or could be several.
    """
    known = _InstallNames(installer)
    refs: dict[str, None] = {}
    errors: list[NotInstalledError] = []
    for name in names:
        try:
            refs[known.find_ref(name)] = None
        except NotInstalledError as error:
            errors.append(error)
    if len(errors) > 1:
        raise NotInstalledError("; ".join(error.message for error in errors))
    if errors:
        raise errors[0]
    return list(refs)


def find_install_ref(installer: Installer, written: str) -> str:
    """The install that a person means by one name, as ``find_install_refs`` has it."""
    return find_install_refs(installer, (written,))[0]


class _InstallNames:
    """Every install that is here or in a lock file, looked up once for all names of a command line."""

    def __init__(self, installer: Installer) -> None:
        entries = read_lock_entries(installer)
        self.full_names = dict.fromkeys((*(one.full_name for one in installer.list()), *entries))
        self._by_name: dict[str, list[str]] = {}
        for name in self.full_names:
            self._by_name.setdefault(name.partition("/")[2], []).append(name)
        self._by_skill: dict[str, list[str]] = {}
        for name, entry in entries.items():
            for skill in entry.skills:
                self._by_skill.setdefault(skill, []).append(name)

    @property
    def short_names(self) -> list[str]:
        """The names of installs without their owners, and of the skills in them."""
        return list(self._by_name | self._by_skill)

    def find_ref(self, written: str) -> str:
        """The reference of the one install that ``written`` means; raises ``NotInstalledError``."""
        if hide_secrets(written) != written:  # an address, with a secret, in place of a name
            raise NotInstalledError(f"{show_address(written)} is no name of an install")
        if written.startswith("@"):
            ref = SkillRef.parse(written)
            bare, version = ref.full_name, ref.version or ""
        else:
            bare, _, version = written.partition("@")
        fitting = [bare] if bare in self.full_names else self._by_name.get(bare) or self._by_skill.get(bare) or []
        if len(fitting) > 1:
            message = f"{bare!r} could be {' or '.join(sorted(fitting))}: write the whole name"
            raise NotInstalledError(message)
        if not fitting:
            raise NotInstalledError(f"{bare!r} is not installed{self._suggest_names(bare)}")
        return f"@{fitting[0]}{f'@{version}' if version else ''}"

    def _suggest_names(self, bare: str) -> str:
        """The names that may be meant, else some that there are, as the end of a sentence."""
        suggestion = did_you_mean(bare, self.full_names if "/" in bare else self.short_names)
        near = join_first(sort_by_similarity(bare, list(self.full_names)), _MAX_LISTED)
        return f"; {suggestion}" if suggestion else f"; installed: {near}" if near else ""


def read_lock_entries(installer: Installer) -> LockEntries:
    """What the lock files say of each install, the project's first."""
    return read_lock(installer.user.lock_folder) | read_lock(installer.project.lock_folder)


def note_missing_lock(installer: Installer) -> None:
    """Say so where the project that a command is about has no lock file."""
    root = installer.project.lock_folder
    if not exists(os.path.join(root, LOCK_FILE)):
        printer.note(f"no {LOCK_FILE} here: the project is {shorten_path(root)}")


def issue_to_dict(issue: prowess.Issue) -> dict[str, object]:
    """An issue as data."""
    return {"code": issue.code, "field": issue.field, "message": issue.message, "path": issue.path, "hint": issue.hint}


def install_to_dict(one: prowess.InstalledSkill) -> dict[str, object]:
    """An install as data."""
    return {"name": one.full_name, "location": one.location, "path": str(one.path)}


def install_to_line(what: str, one: prowess.InstalledSkill) -> Block:
    """An install for people."""
    return line(f"{what} ", (one.full_name, "name"), f" for the {one.location}: {shorten_path(str(one.path))}")
