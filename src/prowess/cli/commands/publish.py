"""``prowess publish``: publishes skills to a folder, an object store or an OCI registry."""

from __future__ import annotations

import click

from prowess.changes.publish import prepare_publish, report_to_dict
from prowess.cli.change_flow import ChangeFlags, ChangeView, carry_out, change_options
from prowess.cli.command_class import new_command
from prowess.cli.options import complete_skill_or_path
from prowess.cli.render import printer
from prowess.publishing.site import PublishReport


@new_command(
    "publish",
    ("prowess publish skills/csv-report --to ./site", "its version is that of its frontmatter"),
    (
        "prowess publish skills/csv-report --version 1.2.0 --alias production --to s3://acme-skills",
        "and let an alias mean it",
    ),
    (
        "prowess publish csv-report@1.1.0 --alias production --to s3://acme-skills",
        "move the alias back; nothing is sent",
    ),
    ("prowess publish skills/* --to ./site --sign ~/.ssh/id_ed25519 --dry-run", "what would be sent where"),
)
@click.argument(
    "skills", metavar="PATH|NAME@VERSION...", nargs=-1, required=True, shell_complete=complete_skill_or_path
)
@click.option("--to", "target", required=True, metavar="ADDRESS", help="A folder, s3://, gs://, az:// or oci://.")
@click.option("--version", default="", help="The version; by default the one in the frontmatter of each skill.")
@click.option("--alias", "aliases", multiple=True, metavar="NAME", help="A name that means these versions from now on.")
@click.option("--sign", default="", metavar="KEY", help="The file of the SSH key that signs the site.")
@click.option("--replace-signer", is_flag=True, help="Sign with another key than before; readers must accept it.")
@click.option("--expires", "expires_days", default=0, metavar="DAYS", help="Readers refuse this state afterwards.")
@click.option("--url", default="", metavar="URL", help="The https address of the site, for marketplace.json.")
@change_options
def command(
    skills: tuple[str, ...],
    *,
    target: str,
    version: str,
    aliases: tuple[str, ...],
    sign: str,
    replace_signer: bool,
    expires_days: int,
    url: str,
    flags: ChangeFlags,
) -> int:
    """Publish the skills of folders, each as a version that never changes, and let aliases mean them.

    Skills with errors are refused: see 'prowess check'. What was sent before is not sent again, and publishing the same
    content again changes nothing. 'prowess install site:ADDRESS' and other clients read what is published; a folder
    needs a web server for them, or none for 'prowess install site:./folder'.

    Exit status 1: you said no.
    """
    with printer.show_progress("packing"):
        change = prepare_publish(
            skills,
            target,
            version=version,
            aliases=aliases,
            sign=sign,
            replace_signer=replace_signer,
            expires_days=expires_days,
            url=url,
        )
    view = ChangeView[PublishReport](
        progress_text="publishing",
        to_dict=lambda done: report_to_dict(done or change.details, done=done is not None),
        declined_text="Nothing was published.",
        question="Publish this?",
    )
    return carry_out(change, view, flags)
