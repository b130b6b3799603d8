"""``prowess audit``: finds revoked skills on this disk, and takes them out of every agent's sight."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from prowess.changes.change import Change
from prowess.cli.change_flow import ChangeFlags, ChangeView, carry_out
from prowess.cli.command_class import new_command
from prowess.cli.issues import issue_to_dict
from prowess.cli.lock_states import describe_policy
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Table, line
from prowess.files.paths import shorten_path
from prowess.files.projects import NATIVE_PROJECT
from prowess.install.installer import Installer
from prowess.policy.files import current_policy
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.errors import Issue
    from prowess.install.quarantine import RevokedSkill


@new_command(
    "audit",
    ("prowess audit", "is anything revoked on this disk?"),
    ("prowess audit --fix", "take it off; works from cron"),
    ("prowess audit ~/work/* --fix", "in many projects"),
)
@click.argument("projects", nargs=-1, type=click.Path(exists=True, file_okay=False), metavar="[PROJECT]...")
@click.option("--fix", is_flag=True, help="Move what is revoked to the backups, and remove the links to it.")
@json_option
def command(projects: tuple[str, ...], *, fix: bool, as_data: bool) -> int:
    """Hash every skill of this project, of you, and in the folders of all agents, and name those that are revoked.

    With PROJECT, other projects are meant. The revocations that count are those of the machine, yours, and a project's
    own for that project.

    What is revoked is in revoked.toml: see 'prowess policy show'. With --fix nobody is asked: the skills go to the
    backups ('prowess backups'), links to them are removed, and their commits leave the cache. Lock files stay.

    Exit status 1: something revoked is here still.
    """
    folders = [os.path.abspath(one) for one in projects]
    installers = [Installer(project_dir=os.path.join(folder, NATIVE_PROJECT)) for folder in folders] or [Installer()]
    with printer.show_progress("hashing"):
        change = _prepare_quarantine(installers)
    found: tuple[RevokedSkill, ...] = change.details
    policies = [current_policy(installer.project.root) for installer in installers]
    flags = ChangeFlags(dry_run=not fix, yes=True, as_data=as_data)
    view: ChangeView[Sequence[Issue]] = ChangeView(
        plan=[*_to_blocks(found)],
        progress_text="moving",
        to_dict=lambda done: {
            "revoked": [{**one._asdict(), "revocation": one.revocation._asdict()} for one in found],
            "fixed": done is not None and bool(found),
            "issues": [issue_to_dict(issue) for issue in done or ()],
        },
        report=lambda _: (
            [line((f"Moved {format_count(len(found), 'revoked skill')} to the backups.", "good"))] if found else []
        ),
        declined_text="",
        idle_text=f"Nothing on this disk is revoked. {describe_policy(policies)}",
        dry_status=1 if found else 0,
    )
    return carry_out(change, view, flags)


def _to_blocks(found: Sequence[RevokedSkill]) -> Iterator[Block]:
    if found:
        yield Table(
            [(("revoked", "bad"), (one.name, "name"), shorten_path(one.folder), one.revocation.reason) for one in found]
        )


def _prepare_quarantine(installers: Sequence[Installer]) -> Change[Sequence[Issue]]:
    """Return the change that takes revoked skills off the disk, and their grants back; its details are the skills.

    Each installer is one project. What is the user's own is in reach of all of them, and counts once.
    """
    found: dict[str, tuple[RevokedSkill, Installer]] = {}
    for installer in installers:
        for one in installer.find_revoked():
            found.setdefault(one.folder, (one, installer))
    movable = [(one, installer) for one, installer in found.values() if one.revocation.action == "remove"]

    def quarantine() -> Sequence[Issue]:
        from prowess.conversation.acting.trust import Trust  # a plain look needs no conversation

        for installer in installers:
            mine = [one for one, owner in movable if owner is installer]
            if mine:
                installer.quarantine(mine)
        trust = Trust()
        for digest in {one.digest for one, _ in found.values()}:
            trust.revoke(digest)
        return list_issues()

    def list_issues() -> Sequence[Issue]:
        return [issue for installer in installers for issue in installer.issues]

    return Change(
        steps=[f"move {one.name} in {shorten_path(one.folder)} to the backups" for one, _ in movable],
        apply=quarantine,
        details=tuple(one for one, _ in found.values()),
        issues=list_issues,
    )
