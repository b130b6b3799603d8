"""``prowess outdated``: installed skills whose source has something newer."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from prowess.cli.command_class import new_command
from prowess.cli.install_options import issue_to_dict, network_options, note_missing_lock
from prowess.cli.main import FAILED
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Table, line

_HEAD = ("skill", "asked for", "here", "there", "newer")

if TYPE_CHECKING:
    from prowess.install.installer import Installer


@new_command("outdated", ("prowess outdated", "what 'prowess update' would change, and later versions"))
@network_options
@json_option
def command(*, installer: Installer, as_data: bool) -> int:
    """List the installed skills whose source has something newer, and those whose source could not be asked.

    Exit status 1: there is something newer, or a source went back. 3: a source could not be asked, whatever the others
    said.

    Newer is the latest tag that is written like the version asked for: v1.2.0 for v1.0.0. 'prowess update' stays with
    the version asked for, 'prowess update NAME@v1.2.0' moves to another.
    """
    with printer.show_progress("asking the sources"):
        found = installer.outdated()
    went_back = any(issue.code == "rolled-back" for issue in installer.issues)
    unknown = any(one.status == "failed" for one in found)
    rows = [
        ((one.name, "name"), one.ref or "-", one.current[:12], one.newest[:12] or "not known", one.newer or "-")
        for one in found
    ]
    printer.print_answer(
        lambda: {"outdated": [asdict(one) for one in found], "issues": [issue_to_dict(i) for i in installer.issues]},
        lambda: [Table(rows, head=_HEAD)] if rows else [line(_summarize_empty(installer))],
        as_data=as_data,
    )
    printer.print_issues(installer.issues)
    note_missing_lock(installer)
    return FAILED if unknown else 1 if found or went_back else 0


def _summarize_empty(installer: Installer) -> str:
    """The sentence for a list of nothing: what is warned of may hide something newer."""
    return "Nothing newer was found; see the warnings." if installer.issues else "Everything is current."
