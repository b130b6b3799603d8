"""The approval of skills for everybody who has the file that it is written to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.changes.change import Change
from prowess.files.paths import shorten_path
from prowess.policy.rules import Approval

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from prowess.install.installer import Installer
    from prowess.install.review import SkillReview


def prepare_review(
    installer: Installer,
    reviews: Sequence[SkillReview],
    path: str,
    *,
    reviewer: str,
    run: bool,
    expires: date | None,
) -> Change[tuple[Approval, ...]]:
    """Return the change that approves the reviewed skills in an ``approved.toml``; its details are the approvals."""
    approvals = tuple(
        Approval(one.digest, one.name, one.source, one.commit, reviewer, run, expires, path) for one in reviews
    )
    runs = "its scripts and commands run without a question" if run else "what it runs needs a grant of the user"
    until = f" until {expires.isoformat()}" if expires else ""

    def approve() -> tuple[Approval, ...]:
        installer.write_approvals(path, approvals)
        return approvals

    return Change(
        steps=[
            f"approve {one.name} ({one.digest[:12]}){until} in {shorten_path(path)}: where that file counts, {runs}"
            for one in approvals
        ],
        apply=approve,
        describe=lambda done: [f"Approved {one.name} ({one.digest[:12]}) in {shorten_path(path)}." for one in done],
        details=approvals,
        issues=lambda: installer.issues,
    )
