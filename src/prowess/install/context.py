"""What the verbs of an ``Installer`` share: its two scopes, how it reaches sources, what the last command noticed.

Each verb is a function in a module of its own that takes an ``InstallContext`` first. A verb begins with
``begin_change`` or ``begin_read``, and adds to ``issues`` what it notices, so that this is known even when it raises.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from prowess.addresses.skill_ref import SkillRef
from prowess.arguments import raise_bad_argument
from prowess.errors import InstallError, Issue, NotInstalledError, SkillError
from prowess.fetch.git.process import DUMB_SERVER
from prowess.files.projects import is_project
from prowess.files.syscalls import wrap_os_errors
from prowess.install.fetch_source import LastOpenSource
from prowess.install.manifest import load_manifest
from prowess.install.store import check_scope_folders, recover_scope
from prowess.installed.journal_format import find_interrupted_change
from prowess.installed.scopes import find_install, locate_install, select_scopes
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from prowess.addresses.source_spec import SourceSpec
    from prowess.install.fetch_source import SourceAccess
    from prowess.install.offer import Offer
    from prowess.install.source_tree import SourceTree
    from prowess.installed.scopes import InstallScope, Location, ScopeName
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry

    Refs = str | SkillRef | Sequence[str | SkillRef]


class InstallContext:
    """The state of one ``Installer``."""

    def __init__(self, user: InstallScope, project: InstallScope, access: SourceAccess) -> None:
        self.user, self.project = user, project
        self.access = access._replace(when_dumb=self._note_dumb_server)
        self.limits: Limits = access.limits
        self.issues: tuple[Issue, ...] = ()
        """What the last command noticed and did not stop for."""
        self._kept_source: LastOpenSource | None = None

    def _note_dumb_server(self, address: str) -> None:
        message = f"{address} is served as plain files: git fetched its whole history"
        issue = Issue(DUMB_SERVER, "", message, "", 0, "info")
        if issue not in self.issues:
            self.issues += (issue,)

    @property
    def scopes(self) -> tuple[InstallScope, InstallScope]:
        """The project's scope, then the user's: a skill of the project wins over one of the user."""
        return self.project, self.user

    def scope_for(self, *, project: bool) -> InstallScope:
        """Return the project's scope, or the user's."""
        return self.project if project else self.user

    def scopes_at(self, location: Location) -> tuple[InstallScope, ...]:
        """Return the scopes that a location means, the project's first; raises ``SourceError`` for another word."""
        if location not in {"project", "user", "all"}:
            raise_bad_argument("location", "must be 'project', 'user' or 'all'", location)
        return select_scopes(self.scopes, location)

    @property
    def default_location(self) -> ScopeName:
        """``"project"`` inside a project, else ``"user"``. The one place that decides this."""
        if self.project.lock_folder == self.user.lock_folder:  # the working folder is that of the user's installs
            return "user"
        if is_project(self.project.root, self.user.root):
            return "project"
        try:
            has_manifest = load_manifest(self.project.lock_folder, self.limits) is not None
        except InstallError:  # whoever reads it next reports what is wrong with it
            has_manifest = True
        return "project" if has_manifest else "user"

    # -- how a command begins ----------------------------------------------------------------------------------------

    def begin_change(self, *scopes: InstallScope, keep_lock: bool = False) -> None:
        """Begin a command that changes scopes; an interrupted change there is finished or taken back first.

        Raises ``InstallError`` when a folder of a scope is not ours, and, with ``keep_lock``, when recovery would
        change the lock file.
        """
        self.issues = ()
        for scope in scopes:
            with wrap_os_errors():
                # Before recovery, which writes into these folders: in a clone they may be links to anywhere.
                check_scope_folders(scope)
                self.issues += recover_scope(scope, self.limits, keep_lock=keep_lock)

    def begin_read(self, *scopes: InstallScope) -> None:
        """Begin a command that changes nothing; an interrupted change stays, and is one of the issues."""
        self.issues = tuple(issue for scope in scopes for issue in find_interrupted_change(scope, self.limits))

    # -- the lock files ----------------------------------------------------------------------------------------------

    def read_lock(self, scope: InstallScope) -> LockEntries:
        """Return the entries of a scope's lock file, by name.

        Raises ``InstallError`` for a lock file that is malformed.
        """
        return read_lock(scope.lock_folder, limits=self.limits)

    def list_entries(self, scopes: Sequence[InstallScope]) -> list[tuple[InstallScope, LockEntry]]:
        """Return every entry of the lock files of some scopes, each with its scope."""
        return [(scope, entry) for scope in scopes for entry in self.read_lock(scope).values()]

    def find_known_install(self, ref: SkillRef, scopes: Sequence[InstallScope]) -> tuple[InstallScope, str]:
        """The first scope that has an install, or at least records it in its lock file, and the folder of the install.

        Raises ``NotInstalledError`` when no scope does.
        """
        try:
            return find_install(ref, scopes)
        except NotInstalledError:
            # In a fresh clone the folder is missing, and the lock file records the install nevertheless.
            for scope in scopes:
                entry = self.read_lock(scope).get(ref.full_name)
                if entry is not None:
                    return scope, locate_install(entry, scope, entry.name)
            raise

    # -- sources -----------------------------------------------------------------------------------------------------

    def open_source(self, spec: SourceSpec, offer: Offer | None = None) -> AbstractContextManager[SourceTree]:
        """Return a source as an offer showed it, or as it is now without an offer.

        Raises ``SkillError`` (``bad-argument``) for an offer of another source.
        """
        kept = self._kept_source
        if offer is None:
            return self.access.open_source(spec) if kept is None else nullcontext(kept.open_source(spec))
        refuse_other_offer(offer, spec)
        # A source without commits cannot be asked for an earlier state, so the offer holds its files.
        if offer.in_memory is not None:
            return nullcontext(offer.in_memory)
        if kept is not None and kept.is_open_at(offer.spec, offer.commit):
            return nullcontext(kept.open_source(offer.spec))
        # The person decided about this commit; the branch may have moved on since.
        return self.access.open_source(replace(spec, ref=offer.commit))

    @contextmanager
    def keep_source(self) -> Iterator[None]:
        """Keep the source that was opened last open until the block ends, so that it is not fetched again."""
        with LastOpenSource(self.access) as source:
            self._kept_source = source
            try:
                yield
            finally:
                self._kept_source = None

    @contextmanager
    def share_fetches(self) -> Iterator[None]:
        """Ask each repository once until the block ends, so that all commands in it see one state of it."""
        # The entries say which folders of each repository are needed, so that one fetch can get them all.
        before = self.access
        self.access = before.for_entries(self.list_entries(self.scopes))
        try:
            yield
        finally:
            self.access = before


def parse_refs(refs: Refs) -> list[SkillRef]:
    """One reference or several, as a list; raises ``BadReferenceError`` for a string that is not a reference."""
    several = (refs,) if isinstance(refs, str | SkillRef) else refs
    return [ref if isinstance(ref, SkillRef) else SkillRef.parse(ref) for ref in several]


def require_entry(locked: LockEntries, scope: InstallScope, name: str, unknown: str = "source is") -> LockEntry:
    """Return the entry of an install; raises ``InstallError`` (``not-in-lock``) when the lock file has none.

    ``unknown`` completes the message: it says what nobody knows without the entry.
    """
    entry = locked.get(name)
    if entry is None:
        raise InstallError(
            f"{name} is in no lock file, so its {unknown} not known", scope.install_folder(name), "not-in-lock"
        )
    return entry


def refuse_other_offer(offer: Offer, spec: SourceSpec) -> None:
    """Raise ``SkillError`` (``bad-argument``) when an offer is not of the source that is to be installed."""
    if offer.spec.address != spec.address:
        raise SkillError(f"the offer is of {offer.spec}, not of {spec}", code="bad-argument")
