"""What the commands about installs share: options, the install that a name means, and how installs are shown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from prowess.cli.completions import is_shell_safe
from prowess.cli.options import group_options, make_agents_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, line
from prowess.errors import NotInstalledError, did_you_mean, sort_by_similarity
from prowess.files.directory import exists
from prowess.files.paths import shorten_path
from prowess.install.installer import Installer
from prowess.lockfile.read import LOCK_FILE, LockEntries, read_lock
from prowess.spec.address_check import DEFAULT_SCHEMES
from prowess.spec.quantities import join_first
from prowess.spec.redaction import hide_secrets, show_address
from prowess.spec.skill_ref import SkillRef

if TYPE_CHECKING:
    from collections.abc import Iterable

    import prowess

_MAX_LISTED = 5
"""How many installs a message names."""

agents_option = make_agents_option("Link the skills for this agent, not for those that are found.")


def _make_installer(*, allow_http: bool, allow_private: bool) -> Installer:
    return Installer(schemes=(*DEFAULT_SCHEMES, "http") if allow_http else DEFAULT_SCHEMES, allow_private=allow_private)


# Flags of one command line only: a lock file that came with a repository must not be able to allow either.
network_options = group_options(
    "installer",
    _make_installer,
    allow_http=click.option("--allow-http", is_flag=True, help="Allow plain http, which anyone on the way can change."),
    allow_private=click.option(
        "--allow-private", is_flag=True, help="Allow archives and sites on machines that are not public."
    ),
)
"""``--allow-http`` and ``--allow-private``; the command gets an ``installer`` that may do so."""


def complete_install(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of installs that begin so: ``org/name``, the name alone, and the names of skills in them."""
    try:
        known = _InstallNames(Installer())
        names = (name for name in {*known.full_names, *known.short_names} if is_shell_safe(name))
        return sorted(name for name in names if name.startswith(incomplete))
    except Exception:  # noqa: BLE001 - the edge to a shell: completion says nothing rather than something wrong
        return []


installed_arguments = click.argument(
    "names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_install
)


def find_install_refs(installer: Installer, names: Iterable[str]) -> list[str]:
    """Return the references of the installs that a person means, each once, in the order of ``names``.

    A name is ``@org/name[@version]``, ``org/name``, the name alone, or the name of a skill in the install. Raise
    ``NotInstalledError`` with every name that is not installed or could mean several installs.
    """
    known = _InstallNames(installer)
    refs: dict[str, None] = {}
    errors: list[NotInstalledError] = []
    for name in names:
        try:
            refs[known.find_ref(name)] = None
        except NotInstalledError as error:
            # Collected, so that every wrong name is reported at once.
            errors.append(error)
    if len(errors) > 1:
        raise NotInstalledError("; ".join(error.message for error in errors))
    if errors:
        raise errors[0]
    return list(refs)


class _InstallNames:
    """The names of every install that is on the disk or in a lock file, read once for a command line."""

    def __init__(self, installer: Installer) -> None:
        entries = read_lock_entries(installer)
        self.full_names = dict.fromkeys((*(install.full_name for install in installer.list()), *entries))
        self._by_name: dict[str, list[str]] = {}
        for name in self.full_names:
            self._by_name.setdefault(name.partition("/")[2], []).append(name)
        self._by_skill: dict[str, list[str]] = {}
        for name, entry in entries.items():
            for skill in entry.skills:
                self._by_skill.setdefault(skill, []).append(name)

    @property
    def short_names(self) -> list[str]:
        """The names of installs without their owners, and the names of the skills in them."""
        return list(self._by_name | self._by_skill)

    def find_ref(self, written: str) -> str:
        """Return the reference of the install that ``written`` means, or raise ``NotInstalledError``."""
        if hide_secrets(written) != written:  # an address with a password: the error must not print it
            raise NotInstalledError(f"{show_address(written)} is no name of an install")
        if written.startswith("@"):
            ref = SkillRef.parse(written)
            bare, version = ref.full_name, ref.version or ""
        else:
            bare, _, version = written.partition("@")
        # The whole name wins over a short name, and that over the name of a skill inside another install.
        matches = [bare] if bare in self.full_names else self._by_name.get(bare) or self._by_skill.get(bare) or []
        if len(matches) > 1:
            raise NotInstalledError(f"{bare!r} could be {' or '.join(sorted(matches))}: write the whole name")
        if not matches:
            raise NotInstalledError(f"{bare!r} is not installed{self._suggest_names(bare)}")
        return f"@{matches[0]}{f'@{version}' if version else ''}"

    def _suggest_names(self, bare: str) -> str:
        """Return the end of a sentence: similar names, or else some that are installed."""
        suggestion = did_you_mean(bare, self.full_names if "/" in bare else self.short_names)
        near = join_first(sort_by_similarity(bare, list(self.full_names)), _MAX_LISTED)
        return f"; {suggestion}" if suggestion else f"; installed: {near}" if near else ""


def read_lock_entries(installer: Installer) -> LockEntries:
    """Return the lock entries of all installs. For a name in both files it is the project's."""
    return read_lock(installer.user.lock_folder) | read_lock(installer.project.lock_folder)


def note_missing_lock(installer: Installer) -> None:
    """Print a note if the project has no lock file: the command may have run in the wrong folder."""
    root = installer.project.lock_folder
    if not exists(os.path.join(root, LOCK_FILE)):
        printer.note(f"no {LOCK_FILE} here: the project is {shorten_path(root)}")


def install_to_dict(install: prowess.InstalledSkill) -> dict[str, object]:
    """Return an install as data."""
    return {"name": install.full_name, "location": install.location, "path": str(install.path)}


def install_to_line(verb: str, install: prowess.InstalledSkill) -> Block:
    """Return a line about an install for people; ``verb`` says what happened to it."""
    path = shorten_path(str(install.path))
    return line(f"{verb} ", (install.full_name, "name"), f" for the {install.location}: {path}")
