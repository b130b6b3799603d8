"""The quarantine of revoked skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.changes.change import Change
from prowess.files.paths import shorten_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.errors import Issue
    from prowess.install.installer import Installer


def prepare_quarantine(installer: Installer) -> Change[Sequence[Issue]]:
    """Return the change that takes revoked skills off the disk; its details are the skills."""
    found = installer.find_revoked()
    movable = tuple(one for one in found if one.revocation.action == "remove")

    def quarantine() -> Sequence[Issue]:
        installer.quarantine(movable)
        return installer.issues

    return Change(
        steps=[f"move {one.name} in {shorten_path(one.folder)} to the backups" for one in movable],
        apply=quarantine,
        details=found,
        issues=lambda: installer.issues,
    )
