"""What an install is going to do, before anything is fetched: pure, and printable."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prowess.install.entries import local_path, recorded_source, refuse_own_source
from prowess.install.links import Landings
from prowess.spec.addresses import SourceSpec, chosen, parse_source, spec_of
from prowess.spec.refs import SkillRef, checked_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.errors import Issue
    from prowess.install.apply import Wishes
    from prowess.library.installs import Location, Scope
    from prowess.library.lock import Locked

_ODD = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Plan:
    """One install to come: from where, to where, linked in which folders, in place of what."""

    spec: SourceSpec
    location: Location
    source: str
    """The source as the lock file will have it."""
    places: tuple[str, ...]
    links: tuple[str, ...]
    """The folders in which each skill is linked."""
    wishes: Wishes
    replaces: tuple[str, ...] = ()
    manifest: str = ""
    """The file of the manifest that will declare it, where there is one."""
    written: str = ""
    """The source as a person wrote it."""
    issues: tuple[Issue, ...] = ()
    """Why a manifest that is there will not declare it."""

    def __str__(self) -> str:
        """A few lines for people."""
        version = f" at {self.spec.ref}" if self.spec.ref else ""
        part = f", folder {self.spec.subpath}" if self.spec.subpath else ""
        rows = [f"fetch {self.source}{version}{part}"]
        rows += [f"put it at {place}" for place in self.places]
        rows += [self._replacing(old) for old in self.replaces]
        rows += [f"link each skill in {folder}" for folder in self.links]
        rows.append("record it in prowess.lock")
        return "\n".join([*rows, *([f"declare it in {self.manifest}"] if self.manifest else [])])

    def _replacing(self, old: str) -> str:
        return (
            "replace what is there, which came from the same source"
            if old == self.source
            else f"replace what came from {old}"
        )


def source_from(text: str) -> SourceSpec:
    """The source that people typed; ``GH_HOST`` names an enterprise server of GitHub, as other programs have it."""
    return parse_source(text, github=os.environ.get("GH_HOST", ""))


def spec_for(ref: str | SkillRef | SourceSpec, select: str | Sequence[str] | None = None) -> SourceSpec:
    """The source that a caller means, with the skills that it chose."""
    if isinstance(ref, SkillRef):
        spec = spec_of(SkillRef.parse(str(ref)))
    else:
        spec = ref if isinstance(ref, SourceSpec) else source_from(ref)
    names = (select,) if isinstance(select, str) else tuple(select or ())
    return chosen(spec, names)


def with_name(spec: SourceSpec) -> SourceSpec:
    """A source whose name is safe in a path; of ``.`` only the disk knows it."""
    if not spec.local:
        checked_part(spec.org)
        checked_part(spec.name)
        return spec
    own = spec.name or os.path.basename(local_path(spec))
    return replace(spec, name=checked_part(_ODD.sub("-", own).strip(".-")))


def plan_install(spec: SourceSpec, scope: Scope, locked: Locked, wishes: Wishes) -> Plan:
    """The plan for one source in one scope; raises for a source that holds the install base."""
    refuse_own_source(spec, scope.base)
    names = [f"{spec.org}/{name}" for name in spec.skills] or [spec.full_name]
    replaced = tuple(locked[name].source for name in names if name in locked)
    return Plan(
        spec,
        scope.location,
        recorded_source(spec, scope),
        tuple(scope.place(name) for name in names),
        tuple(Landings(scope).folders(wishes.agents)),
        wishes,
        replaced,
    )
