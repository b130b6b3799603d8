"""The function that prepares each kind of change, by the name of the kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.web.planning.install import prepare_skill_adoption, prepare_source_install
from prowess.web.planning.links import prepare_link, prepare_unlink
from prowess.web.planning.lock import prepare_lock_merge
from prowess.web.planning.sync import prepare_scope_sync, prepare_verification
from prowess.web.planning.trust import prepare_revocation, prepare_skill_grant
from prowess.web.planning.update import prepare_source_update

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from prowess.changes.change import Change
    from prowess.web.library import Library
    from prowess.web.planning.fields import Fields

PREPARATIONS: Mapping[str, Callable[[Library, Fields], Change[Any]]] = {
    "install": prepare_source_install,
    "adopt": prepare_skill_adoption,
    "update": prepare_source_update,
    "sync": prepare_scope_sync,
    "verify": prepare_verification,
    "link": prepare_link,
    "unlink": prepare_unlink,
    "trust": prepare_skill_grant,
    "revoke": prepare_revocation,
    "lock": prepare_lock_merge,
}
