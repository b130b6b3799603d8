"""The plan of an install: what it is going to do, in a form that can be printed, before anything is fetched."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.discovery.agents import AGENTS
from prowess.errors import InstallError, Issue
from prowess.files.syscalls import wrap_os_errors
from prowess.install.agent_links import LinkFolders, choose_preset_agents, find_present_agents
from prowess.install.context import refuse_other_offer
from prowess.install.entry_source import refuse_own_source, source_for_lock
from prowess.install.manifest import ManifestDefaults, load_manifest
from prowess.install.manifest_edits import declare_source
from prowess.install.name_conflicts import find_displaced_installs, refuse_taken
from prowess.install.store import TakenNames, open_store_read_only
from prowess.install.typed_source import to_spec
from prowess.installed.placed import PlacedTrees
from prowess.lockfile.read import COPY_MODE
from prowess.names import link_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.addresses.skill_ref import SkillRef
    from prowess.addresses.source_spec import SourceSpec
    from prowess.install.context import InstallContext
    from prowess.install.manifest import ProjectManifest
    from prowess.install.offer import Offer
    from prowess.installed.scopes import InstallScope, ScopeName
    from prowess.lockfile.read import LockEntries


@dataclass(frozen=True, slots=True)
class Plan:
    """One install to come: its source, its places, the folders where it is linked, and what it replaces."""

    spec: SourceSpec
    location: ScopeName
    source: str
    """The source as the lock file will have it."""
    places: tuple[str, ...]
    """The folders in the install base; nothing goes there where ``options.copy``."""
    links: tuple[str, ...]
    """The folders where each skill is linked, or copied where ``options.copy``."""
    options: InstallOptions
    """What the caller and the manifest ask for."""
    replaces: tuple[str, ...] = ()
    """The sources of the installs that give way."""
    unseen_by: tuple[str, ...] = ()
    """The agents on this machine that will not see the skills, by id."""
    seen_by: tuple[str, ...] = ()
    """The agents on this machine, and those that somebody named, that will see the skills, by id."""
    manifest: str = ""
    """The file of the manifest that will declare the source; ``""`` when none will."""
    written: str = ""
    """The source as a person typed it; ``""`` when a program named it."""
    declared_agents: tuple[str, ...] = ()
    """The agents that the manifest will name. What is on this machine is not what the project needs."""
    issues: tuple[Issue, ...] = ()
    """Why an existing manifest will not declare the source."""
    offer: Offer | None = field(default=None, repr=False, compare=False)
    """What a person saw of the source before deciding: exactly that commit, or those files, are installed."""

    @property
    def names(self) -> tuple[str, ...]:
        """``org/name`` of each install to come, as far as it is known before anything is fetched."""
        return _install_names(self.spec)

    def __str__(self) -> str:
        """The plan in a few lines for people."""
        version = f" at {self.spec.ref}" if self.spec.ref else ""
        part = f", folder {self.spec.subpath}" if self.spec.subpath else ""
        rows = [f"fetch {self.source}{version}{part}"]
        rows += [f"put it at {place}" for place in self.places if not self.options.copy]
        rows += dict.fromkeys(self._describe_replacement(old) for old in self.replaces)
        how = "copy each skill into" if self.options.copy else "link each skill in"
        rows += [f"{how} {folder}" for folder in self.links]
        rows += [f"{AGENTS[agent].title} will not see it (agent {agent})" for agent in self.unseen_by]
        rows.append("record it in prowess.lock")
        return "\n".join([*rows, *([f"declare it in {self.manifest}"] if self.manifest else [])])

    def _describe_replacement(self, old: str) -> str:
        if old == self.source:
            return "replace what is there, which came from the same source"
        return f"replace what came from {old or 'a folder that was adopted'}"


def make_plan(
    context: InstallContext,
    ref: str | SkillRef | SourceSpec,
    scope: InstallScope,
    options: InstallOptions,
    *,
    select: str | Sequence[str] | None,
    offer: Offer | None,
) -> Plan:
    """Return the plan for what a caller of ``Installer.plan`` asks for; nothing is fetched or changed.

    Raises ``AlreadyInstalledError`` or ``NameTakenError`` when a place is taken and ``replace`` was not asked for.
    """
    context.begin_read(scope)
    spec = to_spec(ref, select)
    locked = context.read_lock(scope)
    manifest = load_manifest(scope.lock_folder, context.limits)
    # The defaults also count for a skill that a person installs with a command: a project has one truth.
    defaults = manifest.defaults if manifest is not None else ManifestDefaults()
    options = options._replace(
        agents=tuple(dict.fromkeys((*defaults.agents, *options.agents))),
        copy=options.copy or defaults.mode == COPY_MODE,
        replace_foreign=options.replace,
    )
    # The edit of the manifest is tried here: a person sees before the install whether it can be declared.
    saving: dict[str, Any] = {}
    if options.save and manifest is not None:
        options, saving = _with_declaration(spec, scope, options, manifest, ref if isinstance(ref, str) else "")
    # After the declaration: a manifest does not name agents only because this machine has them.
    present = find_present_agents(context, project=scope.location == "project")
    preset = choose_preset_agents(scope, manifest, present) if options.preset else ()
    options = options._replace(agents=tuple(dict.fromkeys((*options.agents, *preset))))
    plan = replace(_plan_install(spec, scope, locked, options, present), **saving)
    # As early as possible: a place that is taken is refused before anything is fetched.
    if not options.replace:
        taken = TakenNames(scope, locked, PlacedTrees(scope.base, context.limits))
        for name in plan.names:
            refuse_taken(name, plan.source, scope, locked, taken)
    return plan if offer is None else _with_offer(context, scope, plan, offer)


def _with_declaration(
    spec: SourceSpec, scope: InstallScope, options: InstallOptions, manifest: ProjectManifest, written: str
) -> tuple[InstallOptions, dict[str, Any]]:
    """Return the options of an install that the manifest will declare, and the fields of the plan that say so.

    An entry of the manifest keeps the agents that it names already. When the manifest cannot be edited, the fields are
    the issue that says why.
    """
    mode = COPY_MODE if options.copy else ""
    try:
        declared = declare_source(manifest, scope, spec, options.agents, mode=mode, written=written).declaration
    except InstallError as error:
        return options, {"issues": (Issue(error.code, "", error.message, error.path, 0, "warning"),)}
    if declared is not None:
        options = options._replace(declared=declared.text, agents=declared.agents, declared_agents=declared.agents)
    return options, {"manifest": manifest.file, "written": written, "declared_agents": options.agents}


def _plan_install(
    spec: SourceSpec, scope: InstallScope, locked: LockEntries, options: InstallOptions, present: Sequence[str]
) -> Plan:
    """Return the plan for one source in one scope; ``present`` are the agents on this machine.

    Raises ``InstallError`` (``own-source``) for a source that holds the install base.
    """
    refuse_own_source(spec, scope.base)
    names = _install_names(spec)
    link_folders = LinkFolders(scope)
    links = tuple(link_folders.folders_for(options.agents))
    # An agent may look in several folders; a link in any one of them is enough.
    unseen_by = tuple(agent for agent in present if not set(links).intersection(link_folders.folders_of_agent(agent)))
    return Plan(
        spec,
        scope.location,
        source_for_lock(spec, scope),
        tuple(scope.install_folder(name) for name in names),
        links,
        options,
        tuple(locked[name].source for name in names if name in locked),
        unseen_by,
        tuple(sorted({*options.agents, *present} - {*unseen_by})),
    )


def _with_offer(context: InstallContext, scope: InstallScope, plan: Plan, offer: Offer) -> Plan:
    """Return the plan for what an offer showed, with the further installs that give way to it.

    The offer has the names of the skills, so a name that is taken raises ``NameTakenError`` before anything is
    fetched.
    """
    spec = plan.spec
    refuse_other_offer(offer, spec)
    names = [skill.name for skill in offer.chosen(spec.skills)]
    installs = {name: f"{spec.org}/{link_name(name)}" if spec.skills else spec.full_name for name in names}
    # The plan is shown to a person who then decides, so it names what the install would take from others.
    with wrap_os_errors(), open_store_read_only(scope, context.limits) as store:
        displaced = find_displaced_installs(store, installs, plan.source, plan.options)
    replaces = tuple(dict.fromkeys((*plan.replaces, *(entry.source for entry in displaced))))
    return replace(plan, offer=offer, replaces=replaces)


def _install_names(spec: SourceSpec) -> tuple[str, ...]:
    return tuple(f"{spec.org}/{name}" for name in spec.skills) or (spec.full_name,)


class InstallOptions(NamedTuple):
    """How a source is installed: what the caller asked for, and what the manifest and the lock file add to that."""

    agents: tuple[str, ...] = ()
    """The agents, by id, in whose folders the skills are linked or copied."""
    replace: bool = False
    """True when every install that is in the way gives way."""
    copy: bool = False
    """True when real files go where agents look, and nothing goes into the install base."""
    save: bool = True
    """True when a manifest, if there is one, declares the source from then on."""
    preset: bool = False
    """True when the skills are also linked for the agents that an install without named agents chooses."""
    declared: str = ""
    """What the manifest declares the install as (``Declaration.text``); ``""`` when it does not declare it."""
    declared_agents: tuple[str, ...] = ()
    """Those of the agents that the manifest declares the install for; a person asked for the others."""
    replaceable: frozenset[str] = frozenset()
    """The installs that give way although ``replace`` is false."""
    replace_foreign: bool = False
    """True when the caller also gives up what Prowess did not put where agents look; it goes to the backups.

    A lock file never sets this: it may have come with a clone, so it cannot speak for the user.
    """
    accepted_signer: str = ""
    """The key that the user accepts in place of the one that the lock file pins; a lock file never sets this."""
    extra_agents: Mapping[str, tuple[str, ...]] = {}
    """Further agents of single installs, by the install's name: a person linked the install for them."""

    def agents_of(self, name: str) -> tuple[str, ...]:
        """Return the agents that the install with that name is linked for."""
        # An agent that is named twice gets one link.
        return tuple(dict.fromkeys((*self.agents, *self.extra_agents.get(name, ()))))

    def may_replace(self, name: str) -> bool:
        """Return whether the install with that name gives way."""
        return self.replace or name in self.replaceable
