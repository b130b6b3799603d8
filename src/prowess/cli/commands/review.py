"""``prowess review``: shows what a skill contains and what changed since it was approved, and writes the approval."""

from __future__ import annotations

import getpass
import os
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

import click

from prowess.changes.change import Change
from prowess.cli.change_flow import ChangeFlags, ChangeView, carry_out, change_options, plan_to_blocks
from prowess.cli.command_class import new_command
from prowess.cli.install_options import network_options
from prowess.cli.options import complete_path
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, Title, diff_to_lines, line
from prowess.files.paths import shorten_path
from prowess.files.projects import user_config_file
from prowess.policy.files import APPROVED_FILE
from prowess.policy.rules import Approval
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date, datetime

    from prowess.install.installer import Installer
    from prowess.install.review import SkillReview


@new_command(
    "review",
    ("prowess review pdf", "an installed skill, at what is locked"),
    ("prowess review acme/skills#v2@pdf --run", "a source; its scripts may run on every machine"),
    ("prowess review pdf --to deploy/approved.toml --expires 2027-06-30", "into a file that you deploy"),
)
@click.argument("source", metavar="NAME|SOURCE", shell_complete=complete_path)
@click.option("--run", "runs", is_flag=True, help="Let its scripts and commands run without a question.")
@click.option(
    "--expires", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help="The last day on which the approval counts."
)
@click.option("--reviewer", metavar="NAME", help="Who reviewed it; by default your user name.")
@click.option(
    "--to",
    "path",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Where to write it, not approved.toml of yours.",
)
@change_options
@network_options
def command(
    source: str,
    *,
    runs: bool,
    expires: datetime | None,
    reviewer: str | None,
    path: str | None,
    flags: ChangeFlags,
    installer: Installer,
) -> int:
    """Show the files of skills, what of them could run, and the difference from what was approved last; then ask.

    A yes writes an entry for each into approved.toml: for this state, by its digest. It counts on every machine that
    has the file in /etc/prowess or in its user's ~/.config/prowess. Nothing is installed.
    Exit status 1: you said no.
    """
    target = os.path.abspath(path) if path is not None else user_config_file(APPROVED_FILE)
    with printer.show_progress("fetching"):
        reviews = installer.review(source, target)
    change = _prepare_review(
        installer,
        reviews,
        target,
        reviewer=reviewer or getpass.getuser(),
        run=runs,
        expires=expires.date() if expires is not None else None,
    )
    view: ChangeView[tuple[Approval, ...]] = ChangeView(
        plan=[*(block for one in reviews for block in _to_blocks(one)), *plan_to_blocks(change.steps)],
        progress_text="writing",
        to_dict=lambda done: {
            "path": target,
            "approved": done is not None,
            "skills": [_to_dict(one, approval) for one, approval in zip(reviews, change.details, strict=True)],
        },
        declined_text="Nothing was approved.",
        question="Approve this, as it is now?" if len(reviews) == 1 else f"Approve these {len(reviews)}?",
    )
    return carry_out(change, view, flags)


def _to_dict(review: SkillReview, approval: Approval) -> dict[str, object]:
    return {
        **approval.to_dict(),
        "approved_before": review.before.to_dict() if review.before is not None else None,
        "files": [*review.files],
        "additions": [asdict(one) for one in review.additions],
        "diff": review.diff,
        "why_unknown": review.why_unknown,
    }


def _to_blocks(review: SkillReview) -> Iterator[Block]:
    yield Title(review.name, f"{review.source}{f' at {review.commit[:12]}' if review.commit else ''}")
    yield line(f"digest: {review.digest}", indent=2)
    before = review.before
    if before is None:
        since = f"never approved: all of its {format_count(len(review.files), 'file')} follow"
    elif review.is_approved:
        since = f"approved already by {before.reviewer or 'somebody'}, in {before.file}"
    else:
        since = f"the lines with - are what {before.reviewer or 'somebody'} approved ({before.digest[:12]})"
    yield line(review.why_unknown or since, indent=2)
    yield from _describe_additions(review, is_new=before is None)
    yield from diff_to_lines(review.diff, indent=2)
    yield Line()


def _describe_additions(review: SkillReview, *, is_new: bool) -> Iterator[Block]:
    shown = [one for one in review.additions if one.kind != "skill"]
    if not shown:
        yield line("nothing of it could run" if is_new else "nothing more of it could run", indent=2)
    for title, group in groupby(shown, lambda addition: addition.title):
        values: Sequence[str] = [" ".join(one.value.split()) for one in group]
        yield line((f"{title}: ", "warn"), ", ".join(values), indent=2)


def _prepare_review(
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
