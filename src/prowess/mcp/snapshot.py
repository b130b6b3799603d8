"""A snapshot: everything that answers the requests of clients from one load of the skills."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prowess.mcp.handlers import SkillHandlers
from prowess.mcp.prompts import Prompts
from prowess.mcp.tools import ModelTools

if TYPE_CHECKING:
    from prowess.limits import Limits
    from prowess.mcp.manifests import ManifestCache
    from prowess.mcp.options import ServeOptions
    from prowess.mcp.served_skills import ServedSkills


class ServerSnapshot(NamedTuple):
    """Everything that answers requests from one load of the skills."""

    handlers: SkillHandlers
    tools: ModelTools
    prompts: Prompts


def make_snapshot(
    served: ServedSkills, manifests: ManifestCache, options: ServeOptions, limits: Limits
) -> ServerSnapshot:
    """Return the snapshot of these skills; ``manifests`` keeps the digests of their files between snapshots."""
    tools = ModelTools(served, options)
    return ServerSnapshot(SkillHandlers(served, manifests, limits), tools, Prompts(served, tools, limits))
