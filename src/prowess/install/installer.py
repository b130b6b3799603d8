"""``Installer``: installs, pins, updates, removes and verifies skills.

The class is the public surface. The work of each verb is a function in the verb's own module, which takes the
``InstallContext`` of the installer.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, overload

from prowess.addresses.skill_ref import SkillRef
from prowess.addresses.source_grammar import DEFAULT_SCHEMES
from prowess.arguments import check_text, check_texts
from prowess.discovery.agents import get_agent
from prowess.errors import InstallError, Issue, SkillError
from prowess.files.paths import as_optional_absolute, is_inside
from prowess.files.syscalls import wrap_os_errors
from prowess.install.adopt import adopt_skills
from prowess.install.agent_coverage import find_coverage
from prowess.install.agent_links import choose_preset_agents, find_present_agents
from prowess.install.apply_plan import apply_plan, to_installed_skill
from prowess.install.backups import Backup, list_backups
from prowess.install.compare_source import SkillDiff, compare_sides
from prowess.install.context import InstallContext, parse_refs, require_entry
from prowess.install.copy_into import copy_trees_into, refuse_taken_places
from prowess.install.entry_source import refuse_own_source, spec_of_entry
from prowess.install.fetch_source import SourceAccess
from prowess.install.index_search import IndexSearch, search_indexes
from prowess.install.install_tree import refuse_by_policy, refuse_unloadable, trees_for
from prowess.install.lock_diff import compare_locks, read_lock_at
from prowess.install.manifest import load_manifest
from prowess.install.outdated import Outdated, find_newer_versions
from prowess.install.plan import InstallOptions, Plan, make_plan
from prowess.install.quarantine import RevokedSkill, find_revoked_skills, quarantine_skills
from prowess.install.relink import add_links, change_links, remove_links
from prowess.install.remove import remove_skills
from prowess.install.review import SkillReview, review_source, write_approvals
from prowess.install.sync import list_changes, lock_scope, sync_scope
from prowess.install.typed_source import to_local_spec, to_spec
from prowess.install.update import Update, update_skills
from prowess.install.verify import verify_installs
from prowess.installed.scopes import (
    InstalledSkill,
    InstallScope,
    find_install,
    list_copied_installs,
    list_installs,
    project_scope,
    user_scope,
)
from prowess.limits import DEFAULT_LIMITS
from prowess.policy.files import current_policy, read_approvals

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from prowess.addresses.source_spec import SourceSpec
    from prowess.fetch.git.process import GitRunner
    from prowess.install.agent_coverage import Coverage
    from prowess.install.lock_diff import LockChange
    from prowess.install.offer import Offer
    from prowess.installed.scopes import Location, ScopeName
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries
    from prowess.policy.rules import Approval


class Installer:
    """Installs, updates, removes and verifies skills, for the project or for the user.

    Every change happens completely or not at all, even when the process is killed: the next command finishes an
    interrupted change, or takes it back. Commands that change something wait for each other; readers never wait.
    """

    def __init__(
        self,
        user_dir: str | os.PathLike[str] | None = None,
        project_dir: str | os.PathLike[str] | None = None,
        git: GitRunner | None = None,
        *,
        schemes: Sequence[str] = DEFAULT_SCHEMES,
        allow_private: bool = False,
        limits: Limits | None = None,
    ) -> None:
        """``user_dir`` and ``project_dir`` are the folders into which skills of the user and of the project go.

        Without ``project_dir`` the project is the nearest folder upwards from the working folder that has
        ``prowess.lock``, ``prowess.toml``, ``.prowess/skills`` or ``.git``, or else the working folder itself.
        ``git`` is called as ``git(args, cwd, env)`` instead of the program. ``schemes`` are the ways that sources
        may be reached; neither ``http`` nor ``git`` is encrypted. With ``allow_private``, archives and indexes may
        also come from machines that are not public.
        """
        self.user = user_scope(as_optional_absolute(user_dir, "user_dir"))
        self.project = project_scope(as_optional_absolute(project_dir, "project_dir"))
        access = SourceAccess(
            check_texts(schemes, "schemes"), getattr(git, "run", git), limits or DEFAULT_LIMITS, allow_private
        )
        access = access._replace(policy_folder=self.project.root)
        self._context = InstallContext(self.user, self.project, access)

    def __repr__(self) -> str:
        """The two folders into which skills go."""
        return f"Installer({self.user.base!r}, {self.project.base!r})"

    @property
    def issues(self) -> tuple[Issue, ...]:
        """What the last command noticed and did not stop for."""
        return self._context.issues

    def recover(self, *, location: Location = "all") -> None:
        """Finish what an interrupted command began, for the user and for the project, or take it back.

        Every command that changes something does this first. A command that only reads leaves an interrupted change
        alone, and says in ``issues`` that there is one.
        """
        self._context.begin_change(*self._context.scopes_at(location))

    @property
    def default_location(self) -> ScopeName:
        """Which installs the commands of the command line mean when nobody says ``--user`` or ``--all``.

        Inside a project they are the project's, and outside of every project the user's. A folder is a project when it
        has a manifest, ``prowess.lock``, ``.prowess/skills`` or ``.git``; the home folder is none.
        """
        return self._context.default_location

    # -- installing --------------------------------------------------------------------------------------------------

    def plan(
        self,
        ref: str | SkillRef | SourceSpec,
        project: bool = False,
        *,
        select: str | Sequence[str] | None = None,
        agents: Sequence[str] = (),
        replace: bool = False,
        copy: bool = False,
        save: bool = True,
        preset: bool = False,
        offer: Offer | None = None,
    ) -> Plan:
        """What ``install`` would do, without fetching or changing anything; raises when a place is taken.

        With ``preset`` the skills are also linked for ``preset_agents``. A manifest never names agents only because
        they are on this machine, since that is not what the project needs. ``offer`` is what ``offers`` returned for
        the source. With it a skill whose name is taken is refused too, and ``apply`` installs exactly what the offer
        showed, even when the source has changed since.
        """
        options = InstallOptions(check_texts(agents, "agents"), replace, copy, save, preset)
        scope = self._context.scope_for(project=project)
        return make_plan(self._context, ref, scope, options, select=select, offer=offer)

    def offers(self, ref: str | SkillRef | SourceSpec, select: str | Sequence[str] | None = None) -> Offer:
        """Fetch what ``ref`` names and return what it has, for a person who decides; nothing is changed.

        ``select`` chooses some of its skills, or a plugin. The offer of a plugin has the names of its skills in
        ``spec``, or the source of the plugin where that is another repository. Raises what ``install`` raises for a
        source that cannot be reached, has no skill, or does not have a chosen skill.
        """
        spec = to_spec(ref, select)
        self._context.begin_read()
        from prowess.install.offer import find_offer

        with wrap_os_errors():
            return find_offer(self._context.open_source, spec, self._context.limits)

    def install(
        self,
        ref: str | SkillRef | SourceSpec,
        project: bool = False,
        *,
        select: str | Sequence[str] | None = None,
        agents: Sequence[str] = (),
        replace: bool = False,
        copy: bool = False,
        save: bool = True,
    ) -> Path:
        """Fetch what ``ref`` names and install it; returns where it is, of several chosen skills the first.

        ``select`` chooses some skills of a source, each with a place of its own, or a plugin of it.
        ``agents`` are the agents in whose folders the skills are linked, besides ``.agents/skills``. ``replace`` lets
        them replace existing ones. With ``copy``, real files go into those folders instead of links, to be
        committed with a project; the lock file records that, and updates renew the files. With ``save``, the manifest
        declares the source from then on, when there is a manifest. Of a source with several skills only their folders
        are installed; ``issues`` says what is left out.
        """
        self._context.begin_change(self._context.scope_for(project=project))
        recovered = self.issues
        make_plan = partial(self.plan, project=project, agents=agents, replace=replace, copy=copy, save=save)
        try:
            path = self.apply(make_plan(ref, select=select))[0].path
        except InstallError as error:
            if error.code != "is-plugin":
                raise
            offer = self.offers(ref, select)
            path = self.apply(make_plan(offer.spec, offer=offer))[0].path
        # Planning and applying each begin anew, and would hide what the recovery noticed.
        self._context.issues = (*recovered, *self.issues)
        return path

    def apply(self, plan: Plan) -> tuple[InstalledSkill, ...]:
        """Do what a plan says; returns what is installed. What the plan's offer showed is not fetched again."""
        return apply_plan(self._context, plan)

    def keeping_source(self) -> AbstractContextManager[None]:
        """Return a block during which the last source stays open, so that what an offer showed is not fetched again."""
        return self._context.keep_source()

    def install_local(
        self,
        path: str | os.PathLike[str],
        project: bool = False,
        *,
        select: str | Sequence[str] | None = None,
        agents: Sequence[str] = (),
        replace: bool = False,
        copy: bool = False,
        save: bool = True,
    ) -> Path:
        """Copy a folder (or an archive) of this machine and install it as ``@local/<its name>``."""
        spec = to_local_spec(path)
        return self.install(spec, project, select=select, agents=agents, replace=replace, copy=copy, save=save)

    def install_into(
        self,
        ref: str | SkillRef | SourceSpec,
        folder: str | os.PathLike[str],
        *,
        select: str | Sequence[str] | None = None,
        offer: Offer | None = None,
    ) -> Path:
        """Fetch what ``ref`` names into ``<folder>/<name>``: no links, no lock file, yours from then on.

        With ``offer``, exactly what the offer showed is copied. Returns where it is, of several chosen skills the
        first. Raises what ``install`` raises for a source without a skill that can be loaded.
        """
        spec = to_spec(ref, select)
        target = os.path.abspath(os.fspath(folder))
        # Both before anything is fetched.
        refuse_own_source(spec, target)
        refuse_taken_places(spec, target)
        with wrap_os_errors(), self._context.open_source(spec, offer) as source_files:
            trees = trees_for(source_files, spec, self._context.limits)
            refuse_unloadable(trees)
            refuse_by_policy(trees, self.project.root)
            self._context.issues = tuple(issue for tree in trees for issue in tree.issues)
            return Path(copy_trees_into(target, trees, self._context.limits)[0])

    def install_local_into(
        self,
        path: str | os.PathLike[str],
        folder: str | os.PathLike[str],
        *,
        select: str | Sequence[str] | None = None,
    ) -> Path:
        """Copy a folder (or an archive) of this machine into ``<folder>/<its name>``."""
        return self.install_into(to_local_spec(path), folder, select=select)

    def adopt(self, *names: str, project: bool = True) -> tuple[InstalledSkill, ...]:
        """Take over skills in ``.agents/skills`` or ``.claude/skills`` as they are, without fetching them.

        Their source is what ``skills-lock.json`` says, or else unknown. The folders become links, and what was there
        is kept as a backup. A project's skill without a source is taken over only when it is named, because nothing
        could bring it back to a clone.
        """
        scope = self._context.scope_for(project=project)
        self._context.begin_change(scope)
        with wrap_os_errors():
            adopted, issues = adopt_skills(scope, names, self._context.limits)
        self._context.issues += tuple(issues)
        return tuple(to_installed_skill(scope, name, {}) for name in adopted)

    # -- looking -----------------------------------------------------------------------------------------------------

    def preset_agents(self, *, project: bool = False) -> tuple[str, ...]:
        """Return the agents that skills are worth linking for when nobody names any, by id.

        They are the agents that the project's manifest names for all skills. Without such a manifest they are the
        agents that have a folder of their own in the home folder or, for a project, in either. Of agents that look in
        one folder the first is named. Agents that look in the shared folder need no link, and are left out.
        """
        scope = self._context.scope_for(project=project)
        manifest = load_manifest(scope.lock_folder, self._context.limits)
        return choose_preset_agents(scope, manifest, self.present_agents(project=project))

    def present_agents(self, *, project: bool = True) -> tuple[str, ...]:
        """The ids of the agents with a folder of their own in the home folder, or, with ``project``, in the project."""
        return find_present_agents(self._context, project=project)

    def coverage(self, agents: Sequence[str] = (), *, project: bool = True) -> Coverage:
        """Return which agent has which skill: linked, copied, missing, shadowed or edited; nothing is changed.

        The agents are those on this machine, those that skills are installed for, and ``agents``. With ``project``,
        the project's skills are included, and not only the user's.
        """
        named = [get_agent(name).id for name in check_texts(agents, "agents")]
        present = self.present_agents(project=project)
        scopes = self._context.scopes if project else (self.user,)
        with wrap_os_errors():
            return find_coverage(scopes, (*present, *named), self._context.limits)

    # In the methods below, ``location`` says which installs are meant: the "project"'s, the "user"'s, or "all".

    def list(self, *, location: Location = "all") -> tuple[InstalledSkill, ...]:
        """Everything that is installed: the project's, then the user's, by ``org/name``."""
        return tuple(skill for scope in self._context.scopes_at(location) for skill in self._list_scope(scope))

    def _list_scope(self, scope: InstallScope) -> Sequence[InstalledSkill]:
        locked: LockEntries = {}
        with suppress(InstallError):  # the commands that need a lock file report one that is malformed
            locked = self._context.read_lock(scope)
        installs = {skill.full_name: skill for skill in (*list_copied_installs(scope, locked), *list_installs(scope))}
        return [installs[name] for name in sorted(installs)]

    def resolve(self, ref: str | SkillRef, *, location: Location = "all") -> Path:
        """Return where a skill is installed, the project's first; the version does not matter."""
        return Path(find_install(ref, self._context.scopes_at(location))[1])

    def backups(self, *, location: Location = "all") -> tuple[Backup, ...]:
        """Everything that commands kept because no source could give it back, the newest first.

        The project's come before the user's.
        """
        return tuple(backup for scope in self._context.scopes_at(location) for backup in list_backups(scope))

    def verify(self, *, location: Location = "all") -> tuple[Issue, ...]:
        """Return every file and link that is not what the lock files say; nothing when all is well.

        What the manifest declares otherwise than the lock file records it is among the issues (``lock-outdated``).
        Nothing is changed: a change that was interrupted is an issue too.
        """
        return verify_installs(self._context.scopes_at(location), self._context.limits)

    def find_revoked(self) -> tuple[RevokedSkill, ...]:
        """Return every revoked skill in the folders of the project, of the user and of all agents.

        Every skill is hashed.
        """
        policy = current_policy(self.project.root)
        home, here = os.path.expanduser("~"), os.getcwd()
        cwd = here if is_inside(os.path.realpath(here), os.path.realpath(self.project.root)) else self.project.root
        return tuple(find_revoked_skills(cwd, home, os.environ, self._context, policy))

    def quarantine(self, found: Sequence[RevokedSkill]) -> None:
        """Move revoked skills to the backups, and remove the links to them; lock files stay as they are."""
        quarantine_skills(self._context, found)

    def outdated(self, *, updates: bool = False, location: Location = "all") -> tuple[Outdated, ...]:
        """Return the installs whose source has something newer than the lock file records, by name; nothing is changed.

        An install whose source could not be asked is included with the status ``"failed"``, and is in ``issues``.
        With ``updates``, what is newer is fetched, and ``update`` says what it adds, with the diff.
        """
        return find_newer_versions(self._context, self._context.scopes_at(location), updates=updates)

    def find(self, query: str, indexes: Sequence[str], limit: int = 10) -> IndexSearch:
        """Return the skills that fit the words of ``query``, best first, among all that some indexes have.

        ``indexes`` are addresses of sites that publish skills, and of repositories. The words stay on this machine.
        An index that does not answer is in ``unanswered``, and hides no other. Raises ``SourceError`` for more than
        ``Limits.max_indexes``.
        """
        check_text(query, "query")
        return search_indexes(query, check_texts(indexes, "indexes"), self._context.access, limit)

    def diff(self, ref: str | SkillRef, *, location: Location = "all") -> SkillDiff:
        """Return how one install differs from what the lock file says: on this disk, and at its source now.

        Nothing is changed. When the source cannot be asked, ``why_unasked`` says why, and the disk is compared
        anyway. Raises ``NotInstalledError``.
        """
        scopes = self._context.scopes_at(location)
        self._context.begin_read(*scopes)
        wanted = parse_refs(ref)[0]
        scope, _ = self._context.find_known_install(wanted, scopes)
        entry = require_entry(self._context.read_lock(scope), scope, wanted.full_name)
        return compare_sides(scope, entry, self._context.access)

    def compare_locks(self, base: str, head: str = "") -> tuple[LockChange, ...]:
        """What the project's lock file changes from ``base`` to ``head``, with the files of the skills.

        Each is a version of git, the path of a lock file, or ``""`` for the lock file that is here. The files are
        fetched at what is locked, and nothing is changed on this disk.
        """
        sides = [read_lock_at(self.project, place, self._context.limits) for place in (base, head)]
        entries = [(self.project, entry) for side in sides for entry in side.values()]
        return compare_locks(sides[0], sides[1], self.project, self._context.access.for_entries(entries))

    def review(self, source: str, path: str) -> tuple[SkillReview, ...]:
        """Return each skill of a source, or of an install, beside what was approved of it last.

        ``path`` is the ``approved.toml`` that is going to be written: its entries count as approvals too.
        """
        self._context.begin_read()
        limits = self._context.limits
        approvals = (*current_policy(self.project.root).approvals, *read_approvals(path, limits))
        spec = self._find_installed_source(source) or to_spec(source)
        return review_source(self._context.open_source, spec, approvals, self.project.root, limits)

    def _find_installed_source(self, written: str) -> SourceSpec | None:
        """Return the source of an install, at what is locked; ``None`` for a word that names none."""
        for scope, entry in self._context.list_entries(self._context.scopes):
            if written in {entry.name, f"@{entry.name}", entry.name.partition("/")[2], *entry.skills}:
                return spec_of_entry(entry, scope, ref=entry.commit or entry.ref)
        return None

    def write_approvals(self, path: str, approvals: Sequence[Approval]) -> None:
        """Add approvals to an ``approved.toml``; an entry of the same digest is replaced."""
        write_approvals(path, approvals, self._context.limits)

    # -- changing ----------------------------------------------------------------------------------------------------

    @overload
    def remove(  # type: ignore[overload-overlap]  # a string is a sequence of strings
        self, ref: str | SkillRef, *, save: bool = True, location: Location = "all"
    ) -> Path: ...
    @overload
    def remove(
        self, ref: Sequence[str | SkillRef], *, save: bool = True, location: Location = "all"
    ) -> tuple[Path, ...]: ...
    def remove(
        self, ref: str | SkillRef | Sequence[str | SkillRef], *, save: bool = True, location: Location = "all"
    ) -> Path | tuple[Path, ...]:
        """Remove a skill, its links and its lock entry, the project's first; returns where it was.

        Of several skills, those of the project go together or not at all, and so do the user's. An entry whose folder
        is missing is removed as well. With ``save``, a manifest does not declare the skill any more.
        """
        places = remove_skills(self._context, ref, save=save, location=location)
        return places[0] if isinstance(ref, str | SkillRef) else places

    def update(
        self,
        ref: str | SkillRef | Sequence[str | SkillRef] | None = None,
        *,
        force: bool = False,
        dry_run: bool = False,
        allow_rollback: bool = False,
        accept_signer: str = "",
        save: bool = True,
        location: Location = "all",
    ) -> tuple[Update, ...]:
        """Bring one skill, several, or all, to what their sources have now; each with a diff.

        When several or all are updated, what keeps one from being updated is its status, and the others are put in
        place together. A reference with a version moves the skill to that version, and with ``save`` also the
        manifest that declares it. What somebody changed by hand is kept: naming such a skill raises
        ``LocalEditsError``, and among several it is passed over. ``force`` overwrites it and keeps a backup.
        ``dry_run`` only says what would change. A source that went back behind what is installed is not followed,
        which is an issue (``rolled-back``), unless ``allow_rollback``. A version that another key signed than the lock
        file pins is refused (``changed-signer``), unless ``accept_signer`` is the fingerprint of the new key.
        """
        return update_skills(
            self._context,
            ref,
            force=force,
            dry_run=dry_run,
            allow_rollback=allow_rollback,
            accept_signer=accept_signer,
            save=save,
            location=location,
        )

    def lock(
        self,
        *,
        update: bool | str | SkillRef | Sequence[str | SkillRef] = False,
        project: bool = True,
        dry_run: bool = False,
    ) -> tuple[Update, ...]:
        """Bring the lock file up to date with the manifest, and install nothing; what became of each changed entry.

        What is on this disk does not count and is not changed: the next ``sync`` installs what is locked now. An entry
        that the manifest does not declare any more is removed. With ``update``, some installs or all of them are also
        locked at what their sources have now. A source that cannot be asked has the status ``"failed"``. A declaration
        that cannot be resolved does not stop the rest; it is raised at the end.
        """
        scope = self._context.scope_for(project=project)
        return lock_scope(self._context, scope, update=update, dry_run=dry_run)

    def asking_once(self) -> AbstractContextManager[None]:
        """Return a block during which updates ask each repository once, so that all of them see one state of it."""
        return self._context.share_fetches()

    def link(
        self, ref: str | SkillRef | Sequence[str | SkillRef], agents: Sequence[str], *, location: Location = "all"
    ) -> tuple[str, ...]:
        """Link one installed skill, or several, for further agents; returns the new links as the lock file has them.

        Of several in one scope, all are linked or none. Every one has to be installed before anything happens.
        """
        return change_links(self._context, ref, agents, location, add_links)

    def unlink(
        self, ref: str | SkillRef | Sequence[str | SkillRef], agents: Sequence[str], *, location: Location = "all"
    ) -> tuple[str, ...]:
        """Remove the links of one installed skill, or several, for some agents; returns the links that are gone.

        The links in the shared folder stay.
        """
        return change_links(self._context, ref, agents, location, remove_links)

    def difference(self, *, project: bool = True, locked: bool = False, remove: bool = False) -> tuple[str, ...]:
        """What ``sync`` would change, a line each; nothing is fetched or changed.

        With ``remove``, what ``sync(remove=True)`` would change; without it ``issues`` names what that would remove.
        With ``locked``, what ``sync(locked=True)`` would change. It then raises ``LockMismatchError`` as that sync
        does, except for what a source gives, which only fetching shows.
        """
        return list_changes(self._context, self._context.scope_for(project=project), locked=locked, removes=remove)

    def sync(self, *, locked: bool = False, project: bool = True, remove: bool = False) -> tuple[InstalledSkill, ...]:
        """Make the lock file say what the manifest declares, and the disk equal the lock file; what was installed.

        What the manifest declares no more, and what is in no lock file, stays and is named in ``issues``
        (``declared-no-more``, ``not-in-lock``). ``remove`` takes it away: the former with its entry in the lock file,
        the latter into the backups. Edited installs go to the backups when they are replaced or removed; ``issues``
        names each backup with its path (``backed-up``). What cannot be installed does not stop the rest. It is raised
        at the end, and then nothing is removed.

        With ``locked``, the lock file is not changed, and everything that differs from it raises
        ``LockMismatchError``: a manifest that declares something else, an install that somebody edited or that is in
        no lock file, a source that gives other bytes. A locked sync removes nothing: with ``remove`` as well it raises
        ``SkillError`` (``bad-argument``).
        """
        if locked and remove:
            raise SkillError("a sync with locked=True removes nothing", code="bad-argument")
        return sync_scope(self._context, self._context.scope_for(project=project), locked=locked, removes=remove)
