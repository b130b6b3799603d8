"""What the commands about installs share: options, the install that a name means, and how installs are shown."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import click

from prowess.addresses.skill_ref import SkillRef
from prowess.addresses.source_grammar import DEFAULT_SCHEMES
from prowess.cli.options import AskedLocation, group_options, is_shell_safe, make_agents_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, line
from prowess.errors import NotInstalledError
from prowess.files.directory import exists
from prowess.files.paths import shorten_path
from prowess.install.installer import Installer
from prowess.installed.scopes import select_scopes
from prowess.limits import DEFAULT_LIMITS, MIB
from prowess.lockfile.read import LOCK_FILE, read_lock
from prowess.settings import load_settings
from prowess.text.quantities import join_first
from prowess.text.redaction import hide_secrets, show_address
from prowess.text.spelling import did_you_mean, sort_by_similarity

if TYPE_CHECKING:
    from collections.abc import Sequence

    import prowess
    from prowess.installed.scopes import InstallScope, Location
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry

_DAY = 86_400
_MAX_LISTED = 5
"""How many installs a message names."""

agents_option = make_agents_option("Link the skills for this agent, not for those that are found.")


def read_cache_limits() -> Limits:
    """Return the limits, with what the user's settings say of the cache."""
    home = os.path.expanduser("~")  # the home folder is not a project, and a project must not decide this
    settings = load_settings(home, env=os.environ)
    days, megabytes = settings.number("cache_days"), settings.number("cache_megabytes")
    if days is None or megabytes is None:  # neither is ever unset
        return DEFAULT_LIMITS
    return replace(DEFAULT_LIMITS, keep_cached_seconds=days * _DAY, max_cached_bytes=megabytes * MIB)


def _make_installer(*, allow_http: bool, allow_private: bool) -> Installer:
    schemes = (*DEFAULT_SCHEMES, "http") if allow_http else DEFAULT_SCHEMES
    return Installer(schemes=schemes, allow_private=allow_private, limits=read_cache_limits())


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


def find_location(installer: Installer, asked: AskedLocation) -> Location:
    """Return which installs a command means: those that the command line names, or else those of this folder."""
    return asked or installer.default_location


def list_scopes(installer: Installer, location: Location) -> tuple[InstallScope, ...]:
    """Return the scopes that a location means, the project's first."""
    return select_scopes((installer.project, installer.user), location)


def describe_owner(installer: Installer, location: Location) -> str:
    """Return whose installs a location means, as the end of a sentence: ``for the project …``, ``for you``."""
    project = f"for the project {shorten_path(installer.project.lock_folder)}"
    outside = "" if installer.default_location == "project" else ", and this folder is in no project"
    return {"project": project, "user": f"for you{outside}", "all": f"{project} or for you"}[location]


def suggest_other_location(installer: Installer, location: Location) -> str:
    """Return the option with which a command looks elsewhere; ``""`` if there is nothing else to look at."""
    if location == "project":
        return "--user means your own installs, --all both"
    is_inside = installer.default_location == "project"
    return "without --user the project's are meant, --all means both" if location == "user" and is_inside else ""


def note_empty(installer: Installer, location: Location, what: str = "nothing is installed") -> None:
    """Print a note that a location has nothing of a kind, and by which option a command looks elsewhere."""
    printer.note(f"{what} {describe_owner(installer, location)}")
    _note_other_location(installer, location)


def _note_other_location(installer: Installer, location: Location) -> None:
    elsewhere = suggest_other_location(installer, location)
    if elsewhere:
        printer.note(f"  hint: {elsewhere}")


def note_nothing_recorded(installer: Installer, location: Location) -> None:
    """Print a note if no lock file of a location records anything: other installs may have been meant."""
    root = installer.project.lock_folder
    if any(read_lock(scope.lock_folder) for scope in list_scopes(installer, location)):
        return
    if location == "user" or exists(os.path.join(root, LOCK_FILE)):
        note_empty(installer, location)
    else:
        printer.note(f"no {LOCK_FILE} here: the project is {shorten_path(root)}")
        _note_other_location(installer, location)


def complete_install(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of installs that begin so: ``org/name``, the name alone, and the names of skills in them."""
    try:
        installer = Installer()
        flags: dict[str, AskedLocation] = {"user": "user", "in_project": "project", "everything": "all"}
        asked = next((location for flag, location in flags.items() if ctx.params.get(flag)), None)
        scopes = list_scopes(installer, find_location(installer, asked))
        known = [_InstallNames(installer, scope) for scope in scopes]
        names = {name for one in known for name in (*one.entries, *one.full_names, *one.short_names)}
        return sorted(name for name in names if name.startswith(incomplete) and is_shell_safe(name))
    except Exception:  # noqa: BLE001 - the edge to a shell: completion says nothing rather than something wrong
        return []


installed_arguments = click.argument(
    "names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_install
)


class InstallRefs(NamedTuple):
    """The installs of one scope that a command line means."""

    scope: InstallScope
    refs: list[str]
    """``@org/name[@version]`` of each, once, in the order of the command line."""
    entries: dict[str, LockEntry]
    """The lock file of the scope."""


def find_installs(installer: Installer, names: Sequence[str], location: Location) -> list[InstallRefs]:
    """Return the installs that a person means, for each scope that has some of them; without names, all installs.

    A name is ``@org/name[@version]``, ``org/name``, the name alone, or the name of a skill in the install. With the
    location ``"all"``, a name means every install that has it. Raise ``NotInstalledError`` with every name that is not
    installed or could mean several installs.
    """
    known = [_InstallNames(installer, scope) for scope in list_scopes(installer, location)]
    if not names:
        found = [InstallRefs(one.scope, [f"@{name}" for name in one.full_names], one.entries) for one in known]
        return [one for one in found if one.refs]
    refs: dict[InstallScope, dict[str, None]] = {}
    errors: list[NotInstalledError] = []
    for name in names:
        try:
            found_refs = {one.scope: ref for one in known if (ref := one.find_ref(name))}
            if not found_refs:
                raise _not_installed_error(installer, name, location, known)
            for scope, ref in found_refs.items():
                refs.setdefault(scope, {})[ref] = None
        except NotInstalledError as error:
            # Collected, so that every wrong name is reported at once.
            errors.append(error)
    if len(errors) > 1:
        raise NotInstalledError("; ".join(error.message for error in errors))
    if errors:
        raise errors[0]
    return [InstallRefs(one.scope, [*refs[one.scope]], one.entries) for one in known if one.scope in refs]


class _InstallNames:
    """The names of every install of a scope that is on the disk or in its lock file, read once for a command line."""

    def __init__(self, installer: Installer, scope: InstallScope) -> None:
        self.scope = scope
        self.entries = read_lock(scope.lock_folder)
        self.full_names = [install.full_name for install in installer.list(location=scope.location)]
        """The installs on the disk."""
        self._known = dict.fromkeys((*self.full_names, *self.entries))
        self._by_name: dict[str, list[str]] = {}
        for name in self._known:
            self._by_name.setdefault(name.partition("/")[2], []).append(name)
        self._by_skill: dict[str, list[str]] = {}
        for name, entry in self.entries.items():
            for skill in entry.skills:
                self._by_skill.setdefault(skill, []).append(name)

    @property
    def short_names(self) -> list[str]:
        """The names of installs without their owners, and the names of the skills in them."""
        return list(self._by_name | self._by_skill)

    def find_ref(self, written: str) -> str:
        """Return the reference of the install that ``written`` means; ``""`` if there is none.

        Raise ``NotInstalledError`` if it could mean several.
        """
        bare, version = split_version(written)
        # The whole name wins over a short name, and that over the name of a skill inside another install.
        matches = [bare] if bare in self._known else self._by_name.get(bare) or self._by_skill.get(bare) or []
        if len(matches) > 1:
            raise NotInstalledError(f"{bare!r} could be {' or '.join(sorted(matches))}: write the whole name")
        return f"@{matches[0]}{f'@{version}' if version else ''}" if matches else ""

    def suggest_names(self, bare: str) -> str:
        """Return the end of a sentence: similar names, or else some that are installed."""
        suggestion = did_you_mean(bare, self._known if "/" in bare else self.short_names)
        near = join_first(sort_by_similarity(bare, list(self._known)), _MAX_LISTED)
        return suggestion or (f"installed: {near}" if near else "")


def split_version(written: str) -> tuple[str, str]:
    """Return a name as a person wrote it, and the version in it."""
    if hide_secrets(written) != written:  # an address with a password: the error must not print it
        raise NotInstalledError(f"{show_address(written)} is not the name of an install")
    if written.startswith("@"):
        ref = SkillRef.parse(written)
        return ref.full_name, ref.version or ""
    bare, _, version = written.partition("@")
    return bare, version


def _not_installed_error(
    installer: Installer, written: str, location: Location, known: Sequence[_InstallNames]
) -> NotInstalledError:
    """Return the error for a name that no install of a location has; it says where there is one, if there is."""
    bare, _ = split_version(written)
    elsewhere = suggest_other_location(installer, location)
    others = [installer.user if location == "project" else installer.project] if elsewhere else []
    if any(_InstallNames(installer, scope).find_ref(written) for scope in others):
        hint = "you have it: say --user" if location == "project" else "the project has it: leave --user out"
    else:
        hint = next(filter(None, (one.suggest_names(bare) for one in known)), elsewhere)
    return NotInstalledError(
        f"{bare!r} is not installed {describe_owner(installer, location)}{f'; {hint}' if hint else ''}"
    )


def install_to_dict(install: prowess.InstalledSkill) -> dict[str, object]:
    """Return an install as data."""
    return {"name": install.full_name, "location": install.location, "path": str(install.path)}


def install_to_line(verb: str, install: prowess.InstalledSkill) -> Block:
    """Return a line about an install for people; ``verb`` says what happened to it."""
    path = shorten_path(str(install.path))
    return line(f"{verb} ", (install.full_name, "name"), f" for the {install.location}: {path}")
