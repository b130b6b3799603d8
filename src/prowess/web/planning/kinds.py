"""The function that prepares each kind of change, by the name of the kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.web.planning.install import prepare_adoption, prepare_install
from prowess.web.planning.links import prepare_link, prepare_unlink
from prowess.web.planning.lock import prepare_merge
from prowess.web.planning.sync import prepare_sync, prepare_verification
from prowess.web.planning.trust import prepare_grant, prepare_revocation
from prowess.web.planning.update import prepare_update

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prowess.web.library import Library
    from prowess.web.planning.prepared import Fields, PreparedChange

PREPARATIONS: Mapping[str, Callable[[Library, Fields], PreparedChange]] = {
    "install": prepare_install,
    "adopt": prepare_adoption,
    "update": prepare_update,
    "sync": prepare_sync,
    "verify": prepare_verification,
    "link": prepare_link,
    "unlink": prepare_unlink,
    "trust": prepare_grant,
    "revoke": prepare_revocation,
    "lock": prepare_merge,
}
