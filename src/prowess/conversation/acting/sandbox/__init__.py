"""Sandboxes for scripts: which kinds work on this machine, and how a program is confined by each.

``bwrap`` (bubblewrap, Linux): the program has its own view of the system. ``landlock`` (Linux): the program sees the
system as it is, but may open little of it; for hosts that refuse namespaces. ``none``: no isolation at all, only when
it is asked for by name. ``auto`` takes the first of the others that works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from prowess.conversation.acting.sandbox.bwrap import bwrap_command, places_in_bwrap, probe_bwrap
from prowess.conversation.acting.sandbox.landlock import closed_folders, landlock_command, probe_landlock
from prowess.conversation.acting.sandbox.layout import Confined, Jail, Places, Protected, Sandbox
from prowess.errors import SandboxError
from prowess.policy.files import current_policy
from prowess.text.escapes import escape_line

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Confined",
    "Jail",
    "Kind",
    "Places",
    "Protected",
    "Sandbox",
    "available",
    "choose_sandbox",
    "confine_command",
    "describe_closed",
    "places",
]

Kind = Literal["auto", "bwrap", "landlock", "none"]

_MAX_SHOWN = 5
_NONE = Sandbox("none", usable=True, why="no isolation: only when it is asked for by name", automatic=False)


def available() -> tuple[Sandbox, ...]:
    """Return the kinds of sandbox, best first, each with whether it works here and what it cannot prevent."""
    return probe_bwrap(), probe_landlock(), _NONE


def choose_sandbox(kind: Kind | str) -> Sandbox:
    """Return the sandbox to use.

    Raises ``SandboxError`` when the one asked for does not work, or none does; ``PolicyError`` for one that a policy
    file does not allow.
    """
    if kind not in get_args(Kind):
        raise SandboxError(f"unknown sandbox {kind!r}; one of {', '.join(get_args(Kind))}", code="bad-argument")
    policy = current_policy()
    if kind != "auto":
        policy.check_sandbox(kind)
    if kind == "none":
        return _NONE
    # One after the other, since each probe starts a program: the second is not tried where the first works.
    reasons: list[str] = []
    for probe in (probe_bwrap, probe_landlock):
        candidate = probe()
        if candidate.usable and (candidate.name == kind or (kind == "auto" and candidate.automatic)):
            if kind == "auto" and not policy.allows_sandbox(candidate.name):
                reasons.append(f"the policy does not allow {candidate.name}")
                continue
            return candidate
        if kind in {candidate.name, "auto"}:
            reasons.append(candidate.why)
    raise SandboxError(f"no sandbox: {'; '.join(reasons)}")


def places(kind: str, jail: Jail) -> Places:
    """Return the paths that a program in a sandbox has for the folders of its jail."""
    return places_in_bwrap() if kind == "bwrap" else Places(jail.skill, jail.work, jail.temporary)


def confine_command(kind: str, argv: Sequence[str], jail: Jail) -> Confined:
    """Return how ``argv`` is run in a sandbox of a kind that works here."""
    if kind == "bwrap":
        return bwrap_command(argv, jail)
    return landlock_command(argv, jail) if kind == "landlock" else Confined(list(argv))


def describe_closed(kind: str, protected: Protected) -> tuple[str, ...]:
    """Return what a program cannot do in its working folder because of what is protected there, in at most one string.

    It is not a weakness of the sandbox, but a program that fails by it cannot find out why.
    """
    folders = closed_folders(protected) if kind == "landlock" else protected.closed if kind == "bwrap" else ()
    if not folders:
        return ()
    shown = ", ".join(escape_line(folder) or "the working folder" for folder in folders[:_MAX_SHOWN])
    more = f" and {len(folders) - _MAX_SHOWN} more folders" if len(folders) > _MAX_SHOWN else ""
    return (f"nothing can be made, renamed or deleted directly in {shown}{more}, because of protected entries there",)
