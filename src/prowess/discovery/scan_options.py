"""The options of one scan, and what follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.format.head import LoadPolicy
from prowess.names import SKILL_FILE

if TYPE_CHECKING:
    from prowess.literals import FollowLinks

SKIP_PREFIXES = (".", "_", "node_modules")
MAX_DEPTH = 6


class ScanRules(NamedTuple):
    """The options of one scan."""

    policy: LoadPolicy = LoadPolicy()
    missing: Literal["ignore", "error"] = "ignore"
    max_depth: int | None = MAX_DEPTH
    nested: bool = False
    skip_prefixes: tuple[str, ...] = SKIP_PREFIXES
    filename: str = SKILL_FILE
    follow_links: FollowLinks = False
    invalid: Literal["load", "skip"] = "load"
    """What becomes of a file that breaks a rule of the specification and could be used nevertheless."""

    @property
    def head_policy(self) -> LoadPolicy:
        """The policy by which heads are judged.

        When invalid files are skipped, nothing is overlooked or repaired, except that in lenient mode a name may differ
        from that of its folder.
        """
        if self.invalid == "load":
            return self.policy
        check_dir = self.policy.check_dir and self.policy.mode == "strict"
        return LoadPolicy("strict", repair=False, limits=self.policy.limits, check_dir=check_dir)

    @property
    def raises(self) -> bool:
        """Whether the first bad file ends the scan."""
        return self.policy.mode == "strict" and self.invalid == "load"
