"""``prowess diff``: an install as it is here, as the lock file has it, and as its source has it now."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from prowess.cli.command_class import new_command
from prowess.cli.install_options import find_install_refs, installed_arguments, network_options
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Title, line
from prowess.progress_steps import report_steps
from prowess.spec.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.cli.render.blocks import Block, Style
    from prowess.install.installer import Installer

_SHORT_ID_LENGTH = 12


@new_command(
    "diff",
    ("prowess diff pdf", "what you changed, and what its source has changed since"),
    ("prowess diff pdf csv --json", "two of them, as data"),
)
@installed_arguments
@network_options
@json_option
def command(names: tuple[str, ...], *, installer: Installer, as_data: bool) -> int:
    """Show how installed skills differ from what the lock file says: here, and at their sources now.

    Nothing is changed. Exit status 0: nothing differs. 1: something does. 3: nothing that is here differs, and a source
    could not be asked.
    """
    with printer.show_progress("comparing"):
        diffs = [installer.diff(ref) for ref in report_steps(find_install_refs(installer, names), str)]
    printer.print_answer(
        lambda: {"diffs": [{**asdict(one), "path": str(one.path), "differs": one.differs} for one in diffs]},
        lambda: (block for one in diffs for block in _to_blocks(one)),
        as_data=as_data,
    )
    printer.print_issues(installer.issues)
    for one in diffs:
        if one.why_unasked:
            printer.warn(f"{one.name}: its source could not be asked: {one.why_unasked}")
    if any(one.differs for one in diffs):
        return 1
    return 3 if any(one.why_unasked for one in diffs) else 0


def _to_blocks(one: prowess.SkillDiff) -> Iterator[Block]:
    if one.edited_files:
        yield Title(f"What is here of {one.name}", f"{format_count(len(one.edited_files), 'file')} not as locked")
        yield from _diff_to_blocks(one.edits)
    if one.updated_files:
        moved = (
            "" if one.locked == one.newest else f", {one.locked[:_SHORT_ID_LENGTH]} → {one.newest[:_SHORT_ID_LENGTH]}"
        )
        yield Title(f"What its source has now of {one.name}", f"{format_count(len(one.updated_files), 'file')}{moved}")
        yield from _diff_to_blocks(one.updates)
    if not one.differs:
        yield line((one.name, "name"), f" is what prowess.lock says{_describe_source(one)}")


def _describe_source(one: prowess.SkillDiff) -> str:
    """The end of the sentence about an install of which nothing is known to differ."""
    if one.why_unasked:
        return "."
    return ", and what its source has now." if one.has_source else "; it has no source to compare it with."


def _diff_to_blocks(diff: str) -> Iterator[Block]:
    for row in diff.removesuffix("\n").split("\n"):
        style: Style = "added" if row.startswith("+") else "removed" if row.startswith("-") else "plain"
        yield line((row, style), indent=2, cut=True)
