"""Isolation for scripts: which kinds this machine has, and how a program is confined by one.

``bwrap`` (bubblewrap, Linux): a view of the system of its own. ``landlock`` (Linux): the system as it is, with most of
it closed; for hosts that refuse namespaces. ``none``: no isolation at all, only when it is asked for by name. The kinds
are tried best first, and ``auto`` takes the first that works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from prowess.errors import SandboxError
from prowess.runtime.acting.sandbox.bwrap import bwrap_command, places_in_bwrap, probe_bwrap
from prowess.runtime.acting.sandbox.landlock import landlock_command, probe_landlock
from prowess.runtime.acting.sandbox.layout import Confined, Jail, Places, Sandbox

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Confined", "Jail", "Kind", "Places", "Sandbox", "available", "choose_sandbox", "confine_command", "places"]

Kind = Literal["auto", "bwrap", "landlock", "none"]

_NONE = Sandbox("none", usable=True, why="no isolation: only when it is asked for by name", automatic=False)


def available() -> tuple[Sandbox, ...]:
    """Return the kinds of isolation, best first, and what each lacks here."""
    return probe_bwrap(), probe_landlock(), _NONE


def choose_sandbox(kind: Kind) -> Sandbox:
    """Return the sandbox to use; raise ``SandboxError`` when the one asked for does not work, or none does."""
    if kind not in get_args(Kind):
        raise SandboxError(f"unknown sandbox {kind!r}; one of {', '.join(get_args(Kind))}", code="bad-argument")
    if kind == "none":
        return _NONE
    reasons: list[str] = []
    for probe in (probe_bwrap, probe_landlock):
        candidate = probe()
        if candidate.usable and (candidate.name == kind or (kind == "auto" and candidate.automatic)):
            return candidate
        if kind in {candidate.name, "auto"}:
            reasons.append(candidate.why)
    raise SandboxError(f"no sandbox: {'; '.join(reasons)}")


def places(kind: str, jail: Jail) -> Places:
    """Return the names that a program in a sandbox has for the folders of its jail."""
    return places_in_bwrap() if kind == "bwrap" else Places(jail.skill, jail.work, jail.temporary)


def confine_command(kind: str, argv: Sequence[str], jail: Jail) -> Confined:
    """Return how ``argv`` is run in a sandbox of a kind that works here."""
    if kind == "bwrap":
        return bwrap_command(argv, jail)
    return landlock_command(argv, jail) if kind == "landlock" else Confined(list(argv))
