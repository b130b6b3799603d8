"""``Installer``: brings skills here, pins them, proves that they are unchanged."""

from __future__ import annotations

import dataclasses
import os
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace as replaced
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from prowess.arguments import as_optional_absolute, check_text, check_texts
from prowess.discovery.agents import find_agents, get_agent
from prowess.errors import InstallError, Issue, NotInstalledError, SkillError
from prowess.files.directory import exists
from prowess.install import stage
from prowess.install.adopt import adopt_skills
from prowess.install.agent_links import LinkFolders
from prowess.install.backups import Backup, list_backups
from prowess.install.compare_source import SkillDiff, compare_sides
from prowess.install.copy_into import copy_trees_into, refuse_taken_places
from prowess.install.coverage import find_coverage
from prowess.install.entry_source import refuse_own_source
from prowess.install.fetch_source import LastOpenSource, SourceAccess
from prowess.install.index_search import IndexSearch, search_indexes
from prowess.install.install_all import install_trees, to_installed_skill
from prowess.install.manifest import ManifestDefaults, load_manifest, read_declarations
from prowess.install.manifest_edits import declare_source, declare_version, save_edit, undeclare_places
from prowess.install.plan import Plan, plan_install, to_spec, with_safe_name
from prowess.install.relink import add_links, remove_links
from prowess.install.stage import InstallOptions, InstallRequest
from prowess.install.store import check_scope_folders, open_store, open_store_read_only, recover_scope
from prowess.install.sync import (
    compare_manifest,
    find_still_declared,
    finish_sync,
    refuse_manifest_diff,
    refuse_remaining_differences,
    restore_installs,
)
from prowess.install.sync_manifest import SyncContext, install_declared, list_changes
from prowess.install.system_errors import wrap_os_errors
from prowess.install.tree import trees_for
from prowess.install.update import Outdated, Update, try_find_newer, update_all, update_one, with_version
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.compare import verify_scope
from prowess.lockfile.journal import find_interrupted_change, interrupted_error
from prowess.lockfile.read import COPY_MODE, read_lock
from prowess.lockfile.scopes import (
    InstalledSkill,
    InstallScope,
    find_install,
    list_copied_installs,
    list_installs,
    locate_install,
    project_scope,
    user_scope,
)
from prowess.progress_steps import report_steps
from prowess.spec.address_check import DEFAULT_SCHEMES
from prowess.spec.skill_ref import SkillRef, link_name
from prowess.spec.source_spec import SourceSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from prowess.fetch.git.process import GitRunner
    from prowess.install.coverage import Coverage
    from prowess.install.manifest import ProjectManifest
    from prowess.install.manifest_edits import ManifestEdit
    from prowess.install.offer import Offer
    from prowess.install.store import Store
    from prowess.install.tree import SourceFiles
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry


class Installer:
    """Installs, updates, removes and verifies skills, for the project or for the user.

    Every change is all or nothing, whenever the process ends; what was interrupted is finished, or taken back, by
    the next command. Commands wait for each other; readers never wait.
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
        """``user_dir``, ``project_dir``: the bases. ``git``: called as ``git(args, cwd, env)`` in place of the program.

        Without ``project_dir`` it is that of the project around the working folder: of the nearest folder upwards with
        ``prowess.lock``, ``prowess.toml``, ``.prowess/skills`` or ``.git``, else of the working folder itself.
        ``schemes``: how sources may be reached; neither ``http`` nor ``git`` is encrypted. ``allow_private``: archives
        and indexes may also come from machines that are not public.
        """
        self.user = user_scope(as_optional_absolute(user_dir, "user_dir"))
        self.project = project_scope(as_optional_absolute(project_dir, "project_dir"))
        self._limits = limits or DEFAULT_LIMITS
        self._access = SourceAccess(
            check_texts(schemes, "schemes"), getattr(git, "run", git), self._limits, allow_private
        )
        self._kept_source: LastOpenSource | None = None
        self.issues: tuple[Issue, ...] = ()
        """What the last command found worth saying, though it went on."""

    def __repr__(self) -> str:
        """The two bases."""
        return f"Installer({self.user.base!r}, {self.project.base!r})"

    def _scope_for(self, project: bool) -> InstallScope:  # noqa: FBT001 - as in the public calls
        """The scope that a command is about."""
        return self.project if project else self.user

    def _begin_change(self, *scopes: InstallScope, keep_lock: bool = False) -> None:
        """Begin a command that changes scopes: what was interrupted there is ended first."""
        self.issues = ()
        for scope in scopes:
            with wrap_os_errors():
                check_scope_folders(scope)
                self.issues += recover_scope(scope, self._limits, keep_lock=keep_lock)

    def _begin_read(self, *scopes: InstallScope) -> None:
        """Begin a command that only looks: what was interrupted there is left, and said."""
        self.issues = tuple(issue for scope in scopes for issue in find_interrupted_change(scope, self._limits))

    def recover(self) -> None:
        """Finish what an interrupted command began, for the user and for the project, or take it back.

        Every call that changes something does so by itself; those that only look say in ``issues`` that it waits.
        """
        self._begin_change(self.user, self.project)

    # -- installing --------------------------------------------------------------------------------------------------

    def plan(
        self,
        ref: str | SkillRef | SourceSpec,
        project: bool = False,  # noqa: FBT001, FBT002 - the public signature
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

        ``preset``: it is linked for ``preset_agents`` too. A manifest does not name those that were found: what is on
        this machine is not what the project needs. ``offer``: what the source has, as ``offers`` told it. Then a skill
        whose name is taken is refused too, and ``apply`` installs what the offer showed, also when the source has
        changed since.
        """
        scope = self._scope_for(project)
        self._begin_read(scope)
        spec = with_safe_name(to_spec(ref, select))
        locked = read_lock(scope.lock_folder, limits=self._limits)
        # What the manifest says for all skills counts for one that is installed by hand, too: one truth for a project.
        manifest = load_manifest(scope.lock_folder, self._limits)
        defaults = manifest.defaults if manifest is not None else ManifestDefaults()
        named = tuple(dict.fromkeys((*defaults.agents, *check_texts(agents, "agents"))))
        wishes = InstallOptions(named, replace, replace_foreign=replace, copy=copy or defaults.mode == COPY_MODE)
        saving: dict[str, Any] = {}
        if save and manifest is not None:
            wishes, saving = self._with_declaration(spec, scope, wishes, manifest, ref if isinstance(ref, str) else "")
        found = self.preset_agents(project=project) if preset else ()
        wishes = wishes._replace(agents=tuple(dict.fromkeys((*wishes.agents, *found))))
        plan = plan_install(spec, scope, locked, wishes, self._present_agents(project=project))
        plan = dataclasses.replace(plan, **saving)
        if not replace:
            for name in plan.names:
                stage.refuse_taken(name, plan.source, scope, locked)
        return plan if offer is None else self._with_offer(plan, offer)

    def _with_offer(self, plan: Plan, offer: Offer) -> Plan:
        """The plan for what an offer showed, with whatever else gives way to it; raises when a name is taken."""
        spec = plan.spec
        _refuse_other_offer(offer, spec)
        names = [skill.name for skill in offer.chosen(spec.skills)]
        installs = {name: f"{spec.org}/{link_name(name)}" if spec.skills else spec.full_name for name in names}
        with wrap_os_errors(), open_store_read_only(self._scope_for(plan.location == "project"), self._limits) as store:
            displaced = stage.find_displaced_installs(store, installs, plan.source, plan.wishes)
        replaces = tuple(dict.fromkeys((*plan.replaces, *(entry.source for entry in displaced))))
        return dataclasses.replace(plan, offer=offer, replaces=replaces)

    def offers(self, ref: str | SkillRef | SourceSpec, select: str | Sequence[str] | None = None) -> Offer:
        """Fetch what ``ref`` names and say what there is, for a person who decides; nothing is changed.

        ``select``: only these of its skills. Raises what ``install`` raises for a source that cannot be reached, has
        no skill, or has none of a name that was chosen.
        """
        spec = with_safe_name(to_spec(ref, select))
        self.issues = ()
        from prowess.install.offer import make_offer  # noqa: PLC0415 - loads the checks of authors

        with wrap_os_errors(), self._open_source(spec, None) as bundle:
            return make_offer(bundle, spec, self._limits)

    @staticmethod
    def _with_declaration(
        spec: SourceSpec, scope: InstallScope, wishes: InstallOptions, manifest: ProjectManifest, written: str
    ) -> tuple[InstallOptions, dict[str, Any]]:
        """The wishes of an install that the manifest will declare, and the fields of the plan that say so.

        Where the manifest cannot be written these are an issue. The agents that the entry names already stay.
        """
        mode = COPY_MODE if wishes.copy else ""
        try:
            declared = declare_source(manifest, scope, spec, wishes.agents, mode=mode, written=written).declaration
        except InstallError as error:
            return wishes, {"issues": (Issue(error.code, "", error.message, error.path, 0, "warning"),)}
        if declared is not None:
            wishes = wishes._replace(declared=declared.text, agents=declared.agents)
        return wishes, {"manifest": manifest.file, "written": written, "declared_agents": wishes.agents}

    def _save_manifest(self, scope: InstallScope, change: Callable[[ProjectManifest], ManifestEdit | None]) -> None:
        """Change the manifest of a scope, where there is one; an issue says where it could not be changed."""
        try:
            manifest = load_manifest(scope.lock_folder, self._limits)
            edit = change(manifest) if manifest is not None else None
            if edit is not None:
                save_edit(edit, scope, self._limits)
        except InstallError as error:
            self.issues += (Issue(error.code, "", error.message, error.path, 0, "warning"),)

    def install(
        self,
        ref: str | SkillRef | SourceSpec,
        project: bool = False,  # noqa: FBT001, FBT002 - the public signature
        *,
        select: str | Sequence[str] | None = None,
        agents: Sequence[str] = (),
        replace: bool = False,
        copy: bool = False,
        save: bool = True,
    ) -> Path:
        """Fetch what ``ref`` names and install it; where it is then (of several skills chosen, the first).

        ``select``: of a source with many skills, only these, each in a place of its own. ``agents``: in whose folders
        they are linked, besides ``.agents/skills``. ``replace``: take the place of what is there. ``copy``: real files
        go there instead of links, to be committed with a project; the lock file says so, and updates renew them.
        ``save``: where there is a manifest, it declares it from then on.
        """
        self._begin_change(self._scope_for(project))
        noticed = self.issues
        plan = self.plan(ref, project, select=select, agents=agents, replace=replace, copy=copy, save=save)
        path = self.apply(plan)[0].path
        self.issues = (*noticed, *self.issues)
        return path

    def preset_agents(self, *, project: bool = False) -> tuple[str, ...]:
        """The agents that skills are worth linking for when nobody names any, by id.

        Those that the project's manifest names for all skills; else those that are found, by a folder of their own in
        the home folder or, for a project, in either. Of agents that look in one folder the first is named; those that
        look in the shared folder need no link.
        """
        scope = self._scope_for(project)
        manifest = load_manifest(scope.lock_folder, self._limits) if project else None
        named = manifest.defaults.agents if manifest is not None else ()
        landings = LinkFolders(scope)
        folders = {landings.shared: ""}
        for agent in named or self._present_agents(project=project):
            for folder in landings.folders_of_agent(agent)[:1]:
                folders.setdefault(folder, agent)
        return tuple(agent for agent in folders.values() if agent)

    def _present_agents(self, *, project: bool) -> tuple[str, ...]:
        home = self.user.root
        env = os.environ if home == os.path.expanduser("~") else {}
        return find_agents(self.project.root if project else "", home, env)

    def coverage(self, agents: Sequence[str] = (), *, project: bool = True) -> Coverage:
        """Which agent has which skill: linked, copied, missing, shadowed or edited; nothing is changed.

        The agents are those that are found, that skills are installed for, and ``agents``. ``project``: the project's
        skills too, not only the user's.
        """
        named = [get_agent(name).id for name in check_texts(agents, "agents")]
        present = self._present_agents(project=project)
        scopes = (self.project, self.user) if project else (self.user,)
        with wrap_os_errors():
            return find_coverage(scopes, (*present, *named), self._limits)

    def apply(self, plan: Plan) -> tuple[InstalledSkill, ...]:
        """Do what a plan says, with what its offer showed, where it has one: nothing is fetched a second time."""
        scope = self._scope_for(plan.location == "project")
        self._begin_change(scope)
        before = read_lock(scope.lock_folder, limits=self._limits)
        with wrap_os_errors(), self._open_source(plan.spec, plan.offer) as bundle:
            trees = trees_for(bundle, plan.spec, self._limits)
            arrival = InstallRequest(plan.spec, bundle.commit, plan.wishes)
            done, issues = install_trees(scope, trees, arrival, scopes=(self.user, self.project), limits=self._limits)
        self.issues += (*plan.issues, *issues)
        if plan.manifest:
            agents, mode = plan.declared_agents, COPY_MODE if plan.wishes.copy else ""
            gone = before.keys() - read_lock(scope.lock_folder, limits=self._limits).keys()
            self._save_manifest(
                scope,
                lambda now: declare_source(now, scope, plan.spec, agents, mode=mode, written=plan.written, gone=gone),
            )
        replaced_entries = [before.get(one.full_name) for one in done]
        self.issues += tuple(find_still_declared(scope, replaced_entries, self._limits))
        return done

    def _open_source(self, spec: SourceSpec, offer: Offer | None) -> AbstractContextManager[SourceFiles]:
        """A source as an offer showed it, or, without one, as it is now; raises for an offer of another source."""
        if offer is None:
            return (
                self._access.open_source(spec)
                if self._kept_source is None
                else nullcontext(self._kept_source.open_source(spec))
            )
        _refuse_other_offer(offer, spec)
        if offer.in_memory is not None:
            return nullcontext(offer.in_memory)
        if self._kept_source is not None and self._kept_source.is_open_at(offer.spec, offer.commit):
            return nullcontext(self._kept_source.open_source(offer.spec))
        return self._access.open_source(replaced(spec, ref=offer.commit))

    @contextmanager
    def keeping_source(self) -> Iterator[None]:
        """Have the last source that the block looks at stay open, so that what an offer showed is not fetched again."""
        with LastOpenSource(self._access) as source:
            self._kept_source = source
            try:
                yield
            finally:
                self._kept_source = None

    def install_local(
        self,
        path: str | os.PathLike[str],
        project: bool = False,  # noqa: FBT001, FBT002 - the public signature
        *,
        select: str | Sequence[str] | None = None,
        agents: Sequence[str] = (),
        replace: bool = False,
        copy: bool = False,
        save: bool = True,
    ) -> Path:
        """Copy a folder (or an archive) of this machine and install it as ``@local/<its name>``."""
        spec = _local_source(path)
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

        ``offer``: what was shown of the source, of which exactly that is copied. Of several skills chosen, the first
        one's place is returned.
        """
        spec = with_safe_name(to_spec(ref, select))
        where = os.path.abspath(os.fspath(folder))
        refuse_own_source(spec, where)
        refuse_taken_places(spec, where)
        with wrap_os_errors(), self._open_source(spec, offer) as bundle:
            trees = trees_for(bundle, spec, self._limits)
            return Path(copy_trees_into(where, trees, self._limits)[0])

    def install_local_into(
        self,
        path: str | os.PathLike[str],
        folder: str | os.PathLike[str],
        *,
        select: str | Sequence[str] | None = None,
    ) -> Path:
        """Copy a folder (or an archive) of this machine into ``<folder>/<its name>``."""
        return self.install_into(_local_source(path), folder, select=select)

    # -- looking -----------------------------------------------------------------------------------------------------

    def list(self) -> tuple[InstalledSkill, ...]:
        """Everything that is installed: the project's, then the user's, by ``org/name``."""
        return (*self._list_installed(self.project), *self._list_installed(self.user))

    def _list_installed(self, scope: InstallScope) -> Sequence[InstalledSkill]:
        locked: LockEntries = {}
        with suppress(InstallError):  # a lock file that makes no sense is told by every command that needs it
            locked = read_lock(scope.lock_folder, limits=self._limits)
        installs = {one.full_name: one for one in (*list_copied_installs(scope, locked), *list_installs(scope))}
        return [installs[name] for name in sorted(installs)]

    def resolve(self, ref: str | SkillRef) -> Path:
        """Where a skill is installed, the project's first; the version does not matter."""
        return Path(find_install(ref, (self.project, self.user))[1])

    def backups(self) -> tuple[Backup, ...]:
        """Everything that commands kept, because no source could give it back: the project's, then the user's."""
        return (*list_backups(self.project), *list_backups(self.user))

    def verify(self) -> tuple[Issue, ...]:
        """Every file and link that is not what the lock files say; nothing when all is well.

        Nothing is changed: a change that was interrupted is one of the issues.
        """
        issues: list[Issue] = []
        for scope in (self.user, self.project):
            with wrap_os_errors(), open_store_read_only(scope, self._limits) as store:
                issues += (
                    *store.issues,
                    *verify_scope(scope, store.locked, store.link_folders.path_of_link, self._limits),
                )
        return tuple(issues)

    def outdated(self) -> tuple[Outdated, ...]:
        """The installs whose source has something newer than what is here, by name; nothing is changed.

        One whose source could not be asked is among them with the status ``"failed"``, and in ``issues``.
        """
        self._begin_read(self.user, self.project)
        found: list[Outdated] = []
        issues = [*self.issues]
        entries = self._list_entries()
        reach = self._access.for_entries(entry for _, entry in entries)
        for scope, entry in report_steps(entries, lambda pair: pair[1].name):
            for one in try_find_newer(entry, scope, reach):
                if isinstance(one, Issue):
                    issues.append(one)
                else:
                    found.append(one)
        self.issues = tuple(issues)
        return tuple(found)

    def find(self, query: str, indexes: Sequence[str], limit: int = 10) -> IndexSearch:
        """The skills that fit the words of ``query``, best first, among all that some indexes have.

        ``indexes``: addresses of sites that publish skills, and of repositories. The words stay on this machine. An
        index that does not answer is told in ``unanswered``, and hides no other. Raises ``SourceError`` for more than
        ``Limits.max_indexes``.
        """
        check_text(query, "query")
        return search_indexes(query, check_texts(indexes, "indexes"), self._access, limit)

    def diff(self, ref: str | SkillRef) -> SkillDiff:
        """One install three ways: here and at its source now, each against what the lock file says.

        Nothing is changed. A source that cannot be asked is said in ``why_unasked``, and what is here is compared all
        the same. Raises ``NotInstalledError``.
        """
        self._begin_read(self.user, self.project)
        name = (ref if isinstance(ref, SkillRef) else SkillRef.parse(ref)).full_name
        scope, _ = self._find_recorded(ref, name)
        return compare_sides(scope, self._read_entry(scope, name), self._access)

    # -- changing ----------------------------------------------------------------------------------------------------

    @overload
    def remove(self, ref: str | SkillRef, *, save: bool = True) -> Path: ...  # type: ignore[overload-overlap]  # a text
    @overload
    def remove(self, ref: Sequence[str | SkillRef], *, save: bool = True) -> tuple[Path, ...]: ...
    def remove(self, ref: str | SkillRef | Sequence[str | SkillRef], *, save: bool = True) -> Path | tuple[Path, ...]:
        """Take a skill, its links and its lock entry away, the project's first; where it was.

        Of several, those of the project go together or not at all, and so do the user's. An entry whose folder is
        missing goes as well. ``save``: a manifest declares it no more from then on.
        """
        self._begin_change(self.user, self.project)
        several = (ref,) if isinstance(ref, str | SkillRef) else tuple(ref)
        places: list[Path] = []
        names: dict[InstallScope, dict[str, str]] = {}
        for one in several:
            name = (one if isinstance(one, SkillRef) else SkillRef.parse(one)).full_name
            scope, place = self._find_recorded(one, name)
            names.setdefault(scope, {})[name] = place
            places.append(Path(place))
        for scope, chosen in names.items():
            self._remove_from(scope, chosen, save=save)
        return places[0] if isinstance(ref, str | SkillRef) else tuple(places)

    def _remove_from(self, scope: InstallScope, places: Mapping[str, str], *, save: bool) -> None:
        """Remove installs of one scope; ``places``: by name, where each of them is."""
        with wrap_os_errors(), open_store(scope, self._limits) as store:
            for name, place in places.items():
                if not exists(place) and name not in store.locked:
                    raise NotInstalledError(f"skill {name} is not installed")
            before = [store.locked.get(name) for name in places]
            stage.remove_installs(store, places.keys())
        self.issues += store.issues
        if save:
            self._save_manifest(scope, lambda now: undeclare_places(now, scope, places.keys()))
        self.issues += tuple(find_still_declared(scope, before, self._limits))

    def _find_recorded(self, ref: str | SkillRef, name: str) -> tuple[InstallScope, str]:
        """The scope that has a skill, or at least an entry of it in its lock file, and its folder there."""
        try:
            return find_install(ref, (self.project, self.user))
        except NotInstalledError:
            for scope in (self.project, self.user):
                entry = read_lock(scope.lock_folder, limits=self._limits).get(name)
                if entry is not None:
                    return scope, locate_install(entry, scope, name)
            raise

    def update(
        self,
        ref: str | SkillRef | Sequence[str | SkillRef] | None = None,
        *,
        force: bool = False,
        dry_run: bool = False,
        allow_rollback: bool = False,
        save: bool = True,
    ) -> tuple[Update, ...]:
        """Bring one skill, several, or all, to what their sources have now; each with a diff.

        Of several, or all, what keeps one from being updated is its status; what can be is put in place together.

        A reference with a version moves the skill to that version, and with ``save`` the manifest that declares it.
        What someone changed by hand is kept: naming such
        a skill raises ``LocalEditsError``, and among all it is passed over; ``force`` overwrites it and keeps a
        backup. ``dry_run`` only says what would change. A source that went back behind what is installed is not
        followed, which is an issue (``rolled-back``), unless ``allow_rollback``.
        """
        if dry_run:
            self._begin_read(self.user, self.project)
        else:
            self._begin_change(self.user, self.project)
        reach = self._access._replace(allow_rollback=allow_rollback)
        if ref is not None and not isinstance(ref, str | SkillRef):
            return self._update_several(ref, reach, force=force, dry_run=dry_run, save=save)
        if ref is not None:
            wanted = ref if isinstance(ref, SkillRef) else SkillRef.parse(ref)
            scope, _ = self._find_recorded(wanted, wanted.full_name)
            entry = self._read_entry(scope, wanted.full_name)
            update, issues = update_one(scope, with_version(entry, wanted.version), reach, force, dry_run)
            self.issues += issues
            self._record_version(scope, entry, wanted.version, update, save=save)
            return (update,)
        entries = self._list_entries()
        reach = reach.for_entries(entry for _, entry in entries)
        came = update_all(entries, reach, force, dry_run)
        self.issues += tuple(issue for _, issues in came for issue in issues)
        return tuple(update for update, _ in came)

    def _update_several(
        self, refs: Sequence[str | SkillRef], reach: SourceAccess, *, force: bool, dry_run: bool, save: bool
    ) -> tuple[Update, ...]:
        wanted = [ref if isinstance(ref, SkillRef) else SkillRef.parse(ref) for ref in refs]
        recorded = {scope: read_lock(scope.lock_folder, limits=self._limits) for scope in (self.project, self.user)}
        known: dict[int, tuple[InstallScope, LockEntry]] = {}
        updates: dict[int, Update] = {}
        for at, one in enumerate(wanted):
            try:
                scope, _ = self._find_recorded(one, one.full_name)
                known[at] = scope, _require_entry(recorded[scope], scope, one.full_name)
            except SkillError as error:
                updates[at] = Update(one.full_name, "failed", "", why=error.message)
        moved = [(scope, with_version(entry, wanted[at].version)) for at, (scope, entry) in known.items()]
        came = update_all(moved, reach.for_entries(entry for _, entry in moved), force, dry_run)
        for (at, (scope, entry)), (update, issues) in zip(known.items(), came, strict=True):
            updates[at] = update
            self.issues += issues
            self._record_version(scope, entry, wanted[at].version, update, save=save)
        return tuple(updates[at] for at in range(len(wanted)))

    def _record_version(
        self, scope: InstallScope, entry: LockEntry, version: str, update: Update, *, save: bool
    ) -> None:
        """Have the manifest say the version that a skill was moved to, or tell that it says another one."""
        if not version or update.status != "updated":
            return
        if save and entry.declared:
            self._save_manifest(scope, lambda now: declare_version(now, scope, entry, version))
        self.issues += tuple(find_still_declared(scope, [entry], self._limits))

    @contextmanager
    def asking_once(self) -> Iterator[None]:
        """Have the updates in the block ask each repository once, so that all of them see one state of it."""
        before = self._access
        self._access = before.for_entries(entry for _, entry in self._list_entries())
        try:
            yield
        finally:
            self._access = before

    def _list_entries(self) -> Sequence[tuple[InstallScope, LockEntry]]:
        """Everything in the lock files, the project's first."""
        scopes = (self.project, self.user)
        return [
            (scope, entry) for scope in scopes for entry in read_lock(scope.lock_folder, limits=self._limits).values()
        ]

    def _read_entry(self, scope: InstallScope, name: str) -> LockEntry:
        return _require_entry(read_lock(scope.lock_folder, limits=self._limits), scope, name)

    def link(self, ref: str | SkillRef | Sequence[str | SkillRef], agents: Sequence[str]) -> tuple[str, ...]:
        """Link an installed skill, or several, for further agents; the links that were made, as the lock file has them.

        Of several in one scope, all are linked or none; every one has to be installed before anything happens.
        """
        return self._change_links(ref, agents, add_links)

    def unlink(self, ref: str | SkillRef | Sequence[str | SkillRef], agents: Sequence[str]) -> tuple[str, ...]:
        """Take the links of an installed skill, or several, for those agents away; which are gone. Shared ones stay."""
        return self._change_links(ref, agents, remove_links)

    def _change_links(
        self,
        ref: str | SkillRef | Sequence[str | SkillRef],
        agents: Sequence[str],
        change: Callable[[Store, Sequence[str], Sequence[str]], tuple[str, ...]],
    ) -> tuple[str, ...]:
        self._begin_change(self.user, self.project)
        names: dict[InstallScope, list[str]] = {}
        for one in (ref,) if isinstance(ref, str | SkillRef) else ref:
            scope, _ = find_install(one, (self.project, self.user))
            names.setdefault(scope, []).append((one if isinstance(one, SkillRef) else SkillRef.parse(one)).full_name)
        links: list[str] = []
        for scope, chosen in names.items():
            with wrap_os_errors(), open_store(scope, self._limits) as store:
                entries = [store.locked.get(name) for name in chosen]
                links += change(store, chosen, check_texts(agents, "agents"))
            self.issues += store.issues
            self.issues += tuple(find_still_declared(scope, entries, self._limits))
        return tuple(links)

    def difference(self, *, project: bool = True, locked: bool = False, remove: bool = False) -> tuple[str, ...]:
        """What ``sync`` would change, a line each; nothing is fetched or changed.

        ``remove``: what ``sync(remove=True)`` would; without it ``issues`` names what that would take away.
        ``locked``: what ``sync(locked=True)`` would; raises ``LockMismatchError`` as that does, but for what a source
        gives, which only fetching tells.
        """
        scope = self._scope_for(project)
        self._begin_read(scope)
        if any(issue.code == "interrupted-change" for issue in self.issues):
            if locked:
                raise interrupted_error(scope)
            return ("end the change that was interrupted here; what else is to be done shows then",)
        rows, issues = list_changes(scope, self._access, locked=locked, removes=remove)
        self.issues += issues
        return rows

    def sync(self, *, locked: bool = False, project: bool = True, remove: bool = False) -> tuple[InstalledSkill, ...]:
        """Make the disk equal the lock file, and the lock file what the manifest declares; what was installed.

        What the manifest declares no more, and what is in no lock file, stays and is named in ``issues``
        (``declared-no-more``, ``not-in-lock``). ``remove`` takes it away: the former with its entry in the lock file,
        the latter into the backups. Edited installs go to the backups when they are replaced or removed; ``issues``
        names each backup with its path (``backed-up``). What cannot be brought does not stop the rest; it is raised
        when that is done, and then nothing is removed.

        ``locked``: the lock file is not changed, and whatever differs from it raises ``LockMismatchError``: a manifest
        that declares something else, an install that someone edited or that is in no lock file, a source that gives
        other bytes. It removes nothing: with ``remove`` as well it raises ``SkillError`` (``bad-argument``).
        """
        if locked and remove:
            raise SkillError("a sync with locked=True removes nothing", code="bad-argument")
        scope = self._scope_for(project)
        self._begin_change(scope, keep_lock=locked)
        declared = read_declarations(scope.lock_folder, self._limits)
        recorded = read_lock(scope.lock_folder, limits=self._limits)
        found = compare_manifest(declared, recorded, scope)
        if locked and found:
            refuse_manifest_diff(found, recorded, scope)
        texts = {one.text for one in declared or ()}
        reach = self._access.for_entries(recorded.values())
        order = SyncContext(reach, (self.user, self.project), texts, remove, [], [])
        done = install_declared(scope, found.missing, order)
        with wrap_os_errors():
            if not locked:  # before anything is put back: what is declared no more need not be fetched again
                self.issues += finish_sync(scope, declared, self._limits, removes=remove and not order.errors)
            # A locked sync has not changed the lock file, which takes long to parse where it records thousands.
            names, issues = restore_installs(scope, reach, order.errors, recorded if locked else None, locked=locked)
            if locked:
                refuse_remaining_differences(scope, self._limits, changed=bool(names))
        self.issues += (*order.issues, *issues)
        after = read_lock(scope.lock_folder, limits=self._limits) if names else {}
        done += (to_installed_skill(scope, name, after) for name in names)
        if order.errors:
            raise _summarize_errors(order.errors, done)
        return tuple(done)

    def adopt(self, *names: str, project: bool = True) -> tuple[InstalledSkill, ...]:
        """Take over skills that lie in ``.agents/skills`` or ``.claude/skills`` as they are, without fetching them.

        Their source is what ``skills-lock.json`` says, else nothing; the folders become links, and what stood there
        is kept as a backup. A project's skill without a source is taken over only where it is named: nothing could
        bring it back to a clone.
        """
        scope = self._scope_for(project)
        self._begin_change(scope)
        with wrap_os_errors():
            adopted, issues = adopt_skills(scope, names, self._limits)
        self.issues += tuple(issues)
        return tuple(to_installed_skill(scope, name, {}) for name in adopted)


def _refuse_other_offer(offer: Offer, spec: SourceSpec) -> None:
    if offer.spec.address != spec.address:
        raise SkillError(f"the offer is of {offer.spec}, not of {spec}", code="bad-argument")


def _require_entry(locked: LockEntries, scope: InstallScope, name: str) -> LockEntry:
    entry = locked.get(name)
    if entry is None:
        raise InstallError(
            f"{name} is in no lock file, so its source is not known", scope.install_folder(name), "not-in-lock"
        )
    return entry


def _summarize_errors(errors: Sequence[SkillError], done: Sequence[InstalledSkill]) -> SkillError:
    """The first of several errors, which says how many more there are, and what was done all the same."""
    more = f"; {len(errors) - 1} more could not be synced" if len(errors) > 1 else ""
    names = ", ".join(one.full_name for one in done)
    return errors[0].about("", f"{more}{f'; installed all the same: {names}' if names else ''}")


def _local_source(path: str | os.PathLike[str]) -> SourceSpec:
    """A folder or archive that the caller named as a path, however it is written."""
    written = os.fspath(path)
    found = to_spec(os.path.abspath(os.path.expanduser(written)))
    return SourceSpec("archive" if found.kind == "archive" else "folder", written, "local", found.name, local=True)
