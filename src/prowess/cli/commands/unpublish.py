"""``prowess unpublish``: withdraws versions of published skills."""

from __future__ import annotations

import click

from prowess.changes.publish import prepare_unpublish, report_to_dict
from prowess.cli.change_flow import ChangeFlags, ChangeView, carry_out, change_options
from prowess.cli.command_class import new_command
from prowess.publishing.site import PublishReport


@new_command(
    "unpublish",
    ("prowess unpublish csv-report@1.1.0 --from ./site --reason 'wrong totals'", "no new install gets it"),
    ("prowess unpublish csv-report@1.1.0 --from ./site --reason 'a password in it' --purge", "delete its bytes"),
)
@click.argument("references", metavar="NAME@VERSION...", nargs=-1, required=True)
@click.option("--from", "target", required=True, metavar="ADDRESS", help="A folder, s3://, gs:// or az://.")
@click.option("--reason", required=True, help="Why; whoever has the version reads it.")
@click.option("--purge", is_flag=True, help="Delete the bytes, and let readers refuse this content from now on.")
@click.option("--sign", default="", metavar="KEY", help="The file of the SSH key that signs the site.")
@change_options
def command(
    references: tuple[str, ...], *, target: str, reason: str, purge: bool, sign: str, flags: ChangeFlags
) -> int:
    """Withdraw versions: no new install gets them, and a lock file that has one still works, with a warning.

    With --purge their bytes are deleted, and nobody can install this content any more, under any version.

    Exit status 1: you said no.
    """
    change = prepare_unpublish(references, target, reason=reason, purge=purge, sign=sign)
    view = ChangeView[PublishReport](
        progress_text="withdrawing",
        to_dict=lambda done: report_to_dict(done or change.details, done=done is not None),
        declined_text="Nothing was withdrawn.",
        question="Withdraw this for good?" if purge else "Withdraw this?",
    )
    return carry_out(change, view, flags)
