"""What an install is going to do, before anything is fetched: pure, and printable."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from prowess.arguments import check_text
from prowess.discovery.agents import AGENTS
from prowess.files.directory import exists
from prowess.install.agent_links import LinkFolders
from prowess.install.entry_source import local_path, refuse_own_source, source_for_lock
from prowess.spec.skill_ref import SkillRef, check_part
from prowess.spec.source_spec import SourceSpec, parse_source, spec_from_ref, with_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.errors import Issue
    from prowess.install.offer import Offer
    from prowess.install.stage import InstallOptions
    from prowess.lockfile.read import LockEntries
    from prowess.lockfile.scopes import InstallScope, ScopeName

_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Plan:
    """One install to come: from where, to where, linked in which folders, in place of what."""

    spec: SourceSpec
    location: ScopeName
    source: str
    """The source as the lock file will have it."""
    places: tuple[str, ...]
    links: tuple[str, ...]
    """The folders in which each skill is linked, or copied where ``wishes.copy``."""
    wishes: InstallOptions
    replaces: tuple[str, ...] = ()
    unseen_by: tuple[str, ...] = ()
    """The agents that are found here and that will not see the skills, by id."""
    seen_by: tuple[str, ...] = ()
    """The agents that are found here, or that were named, and that will see the skills, by id."""
    manifest: str = ""
    """The file of the manifest that will declare it, where there is one."""
    written: str = ""
    """The source as a person wrote it."""
    declared_agents: tuple[str, ...] = ()
    """The agents that the manifest will name: not those that were found on this machine."""
    issues: tuple[Issue, ...] = ()
    """Why a manifest that is there will not declare it."""
    offer: Offer | None = field(default=None, repr=False, compare=False)
    """What was shown of the source, where something was: that very commit, or those files, are installed."""

    @property
    def names(self) -> tuple[str, ...]:
        """``org/name`` of each install to come, as far as that is known before anything is fetched."""
        return _install_names(self.spec)

    def __str__(self) -> str:
        """A few lines for people."""
        version = f" at {self.spec.ref}" if self.spec.ref else ""
        part = f", folder {self.spec.subpath}" if self.spec.subpath else ""
        rows = [f"fetch {self.source}{version}{part}"]
        rows += [f"put it at {place}" for place in self.places if not self.wishes.copy]
        rows += dict.fromkeys(self._describe_replacement(old) for old in self.replaces)
        how = "copy each skill into" if self.wishes.copy else "link each skill in"
        rows += [f"{how} {folder}" for folder in self.links]
        rows += [f"{AGENTS[agent].title} will not see it (agent {agent})" for agent in self.unseen_by]
        rows.append("record it in prowess.lock")
        return "\n".join([*rows, *([f"declare it in {self.manifest}"] if self.manifest else [])])

    def _describe_replacement(self, old: str) -> str:
        if old == self.source:
            return "replace what is there, which came from the same source"
        return f"replace what came from {old or 'a folder that was adopted'}"


def parse_typed_source(text: str, folder: str = "") -> SourceSpec:
    """The source that people typed; ``GH_HOST`` names an enterprise server of GitHub, as other programs have it.

    ``folder``: where a relative path is meant from, where that is not the working folder.
    """
    check_text(text, "source")

    def is_there(path: str) -> bool:
        return exists(os.path.join(folder, os.path.expanduser(path)))

    return parse_source(text, github=os.environ.get("GH_HOST", ""), is_there=is_there)


def to_spec(ref: str | SkillRef | SourceSpec, select: str | Sequence[str] | None = None) -> SourceSpec:
    """The source that a caller means, with the skills that it chose; raises where the source names others."""
    if isinstance(ref, SkillRef):
        spec = spec_from_ref(SkillRef.parse(str(ref)))
    else:
        spec = ref if isinstance(ref, SourceSpec) else parse_typed_source(ref)
    names = (select,) if isinstance(select, str) else tuple(select or ())
    return with_parts(spec, skills=names)


def with_safe_name(spec: SourceSpec) -> SourceSpec:
    """A source whose name is safe in a path; of ``.`` only the disk knows it."""
    if not spec.local:
        check_part(spec.org)
        check_part(spec.name)
        return spec
    own = spec.name or os.path.basename(local_path(spec))
    return replace(spec, name=check_part(_UNSAFE_CHARACTERS.sub("-", own).strip(".-")))


def plan_install(
    spec: SourceSpec, scope: InstallScope, locked: LockEntries, wishes: InstallOptions, present: Sequence[str] = ()
) -> Plan:
    """The plan for one source in one scope; raises for a source that holds the install base.

    ``present``: the agents that are found here, of which those are named that will see the skills, and those that not.
    """
    refuse_own_source(spec, scope.base)
    names = _install_names(spec)
    replaced = tuple(locked[name].source for name in names if name in locked)
    landings = LinkFolders(scope)
    links = tuple(landings.folders_for(wishes.agents))
    unseen_by = tuple(agent for agent in present if not set(links).intersection(landings.folders_of_agent(agent)))
    return Plan(
        spec,
        scope.location,
        source_for_lock(spec, scope),
        tuple(scope.install_folder(name) for name in names),
        links,
        wishes,
        replaced,
        unseen_by,
        tuple(sorted({*wishes.agents, *present} - {*unseen_by})),
    )


def _install_names(spec: SourceSpec) -> tuple[str, ...]:
    return tuple(f"{spec.org}/{name}" for name in spec.skills) or (spec.full_name,)
