"""``prowess check``: every finding about skills."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from prowess.authoring.check import CheckReport, check, find_skill_files, remove_duplicate_files
from prowess.authoring.fix import apply_fix, fix
from prowess.cli.command_class import new_command
from prowess.cli.lock_states import LockStates
from prowess.cli.options import (
    check_codes,
    complete_code,
    complete_skill_or_path,
    find_path,
    json_option,
    load_cli_settings,
    shorten_path,
)
from prowess.cli.own_skills import find_own_paths
from prowess.cli.render import printer
from prowess.cli.render.blocks import Line, line
from prowess.errors import SkillError, SourceError
from prowess.escapes import escape_line
from prowess.limits import DEFAULT_LIMITS
from prowess.progress_steps import report_steps
from prowess.spec.quantities import format_count, join_first

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.authoring.findings import Finding
    from prowess.authoring.fix import Fix
    from prowess.cli.options import T
    from prowess.cli.render.blocks import Block, Style

_STYLES: dict[str, Style] = {"error": "bad", "warning": "warn", "info": "dim"}
_MAX_NAMED = 5
"""How many installed skills a message names."""
_GITHUB_LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
_MAX_WIDTH = 160


def _code_option(name: str, about: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    return click.option(
        name, multiple=True, metavar="CODE", shell_complete=complete_code, callback=check_codes, help=about
    )


@new_command(
    "check",
    ("prowess check", "the skill in this folder, or the project's skills"),
    ("prowess check skills/ --strict", "a collection; warnings count"),
    ("prowess check skills/ --fix", "mend what is mechanical, and show how"),
    ("prowess check --spec", "would skills-ref accept it?"),
    ("prowess check --format github", "annotations for a pull request"),
)
@click.argument("paths", nargs=-1, metavar="[PATH|NAME]...", shell_complete=complete_skill_or_path)
@click.option("--strict", is_flag=True, default=None, help="Warnings count as failures.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json", "github")),
    default="text",
    show_default=True,
    help="How findings are written.",
)
@click.option("--fix", "mend", is_flag=True, help="Mend what is mechanical, and show the difference.")
@click.option("--diff", "only_show", is_flag=True, help="Show what --fix would change, and change nothing.")
@_code_option("--ignore", "Leave out findings of this code (docs/reference/errors.md lists them).")
@_code_option("--only", "Only findings of this code.")
@click.option("--budget", type=click.IntRange(0), metavar="TOKENS", help="What listing them all may cost.")
@click.option("--spec", is_flag=True, help="Only the verdict of the specification's reference validator, skills-ref.")
@json_option
def command(
    paths: tuple[str, ...],
    *,
    strict: bool | None,
    form: str,
    mend: bool,
    only_show: bool,
    ignore: tuple[str, ...],
    only: tuple[str, ...],
    budget: int | None,
    spec: bool,
    as_data: bool,
) -> int:
    """Check skills: every finding with its line, the text that it is about, and what to do.

    PATH is a skill's folder, its SKILL.md, or a folder of skills; where nothing of that name lies here, NAME is the
    name of a skill. Several skills are also compared with each other. Without PATH it is the skill in this folder, or
    those of the project but for the installed ones, which their authors check.
    Exit status 1: there is an error, or under --strict a warning.
    """
    settings = load_cli_settings(strict=strict, budget=budget)
    as_json = as_data or form == "json"
    try:
        chosen = tuple(find_path(settings, path) for path in paths) or find_own_paths(settings)
    except SourceError:
        recorded = [] if paths else LockStates().find_missing("project")
        if not recorded:
            raise
        return _report_all_installed(recorded, as_json=as_json)
    own, installed = (chosen, []) if paths else _split_pinned(_find_skill_files(chosen))
    if installed and not own:
        return _report_all_installed(installed, as_json=as_json)
    if installed:
        printer.note(f"left to their authors, since they are installed: {join_first(installed, _MAX_NAMED)}")
    with printer.show_progress("checking"):
        fixes = _fix_files(chosen, write=mend) if mend or only_show else []
        report = check(*(own if installed else chosen), budget=settings.number("budget"), spec=spec)
    report = _filter_findings(report, frozenset(only), frozenset(ignore))
    if form == "github" and not as_json:
        for finding in report.findings:
            printer.print_line(_to_github_annotation(finding))
    else:
        printer.print_answer(
            lambda: _to_dict(report, fixes), lambda: _to_blocks(report, fixes, written=mend), as_data=as_json
        )
    return 0 if report.ok(strict=bool(settings["strict"])) else 1


def _find_skill_files(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The files of the skills at or below ``paths``, each once."""
    return remove_duplicate_files(file for path in paths for file in find_skill_files(path))


def _report_all_installed(installed: list[str], *, as_json: bool) -> int:
    """Say that nothing here is the project's own; what others wrote is theirs to check, so that is no failure."""
    printer.note(
        f"there are only installed skills ({join_first(installed, _MAX_NAMED)}), which their authors check; "
        "name a folder to check them all the same"
    )
    if as_json:
        printer.print_answer(lambda: _to_dict(CheckReport((), (), 0, {}), []), lambda: iter(()), as_data=True)
    return 0


def _fix_files(paths: tuple[str, ...], *, write: bool) -> list[Fix]:
    found: list[Fix] = []
    files, pinned = _split_pinned(_find_skill_files(paths))
    if pinned:
        printer.note(f"left as prowess.lock has them: {', '.join(pinned)} (mend them where they come from)")
    for file in report_steps(files, lambda file: shorten_path(os.path.dirname(file))):
        try:
            mended = fix(file)
        except SkillError:  # what cannot be read is among the findings
            continue
        if mended:
            found.append(mended)
        if write:
            apply_fix(mended)
    return found


def _split_pinned(files: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    """The files that may be changed, and the skills of the others: in an install base, or a copy that is recorded."""
    from prowess.lockfile.pins import LockVerifier  # noqa: PLC0415
    from prowess.lockfile.scopes import standard_scopes  # noqa: PLC0415 - only to mend something

    scopes = standard_scopes(os.getcwd(), os.path.expanduser("~"), os.environ)
    records = LockVerifier(scopes, DEFAULT_LIMITS).records
    folders = {file: os.path.realpath(os.path.dirname(file)) for file in files}
    free = tuple(file for file, folder in folders.items() if not any(one.locate_folder(folder) for one in records))
    return free, sorted({os.path.basename(os.path.dirname(file)) for file in files if file not in free})


def _filter_findings(report: CheckReport, only: frozenset[str], ignore: frozenset[str]) -> CheckReport:
    kept = (f for f in report.findings if f.code not in ignore and (not only or f.code in only))
    return CheckReport(report.skills, tuple(kept), report.tokens, report.costs)


def _to_dict(report: CheckReport, fixes: list[Fix]) -> dict[str, object]:
    return {
        "skills": list(report.skills),
        "errors": report.count("error"),
        "warnings": report.count("warning"),
        "infos": report.count("info"),
        "listing_tokens": report.tokens,
        "costs": [{"name": name, "tokens": tokens} for name, tokens in report.costs.items()],
        "findings": [_finding_to_dict(finding) for finding in report.findings],
        "fixes": [{"path": one.path, "codes": list(one.codes), "diff": one.diff()} for one in fixes],
    }


def _finding_to_dict(finding: Finding) -> dict[str, object]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "field": finding.field,
        "path": finding.path,
        "line": finding.line,
        "column": finding.column,
        "length": finding.length,
        "text": finding.text,
        "hint": finding.hint,
        "fixable": finding.fixable,
    }


def _to_github_annotation(finding: Finding) -> str:
    """A workflow command as GitHub reads it."""
    place = f"file={_escape_property(shorten_path(finding.path))},line={finding.line},col={finding.column}"
    subject = f"{finding.field}: " if finding.field else ""
    message = f"{subject}{_relativize_paths(finding.message)} ({finding.hint})"
    title = _escape_property(finding.code)
    return f"::{_GITHUB_LEVELS[finding.severity]} {place},title={title}::{_escape_message(message)}"


def _relativize_paths(message: str) -> str:
    """A message whose paths below the working folder are relative to it."""
    here = os.getcwd().rstrip(os.sep) + os.sep
    return message.replace(here, "") if here != os.sep else message


def _escape_message(text: str) -> str:
    return escape_line(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _escape_property(text: str) -> str:
    return _escape_message(text).replace(":", "%3A").replace(",", "%2C")


def _to_blocks(report: CheckReport, fixes: list[Fix], *, written: bool) -> Iterator[Block]:
    for one in fixes:
        yield line(
            (f"{'mended' if written else 'would mend'} ", "good"),
            (shorten_path(one.path), "name"),
            f": {', '.join(one.codes)}",
        )
        for row in one.diff(shorten_path(one.path)).splitlines():
            style: Style = "added" if row.startswith("+") else "removed" if row.startswith("-") else "plain"
            yield line((row, style))
        yield Line()
    for finding in report.findings:
        yield from _finding_to_blocks(finding)
    yield _summarize(report)


def _finding_to_blocks(finding: Finding) -> Iterator[Block]:
    subject = f"{finding.field}: " if finding.field else ""
    yield line(
        (f"{shorten_path(finding.path)}:{finding.line}:{finding.column}: ", "name"),
        (f"{finding.severity}[{finding.code}] ", _STYLES[finding.severity]),
        f"{subject}{finding.message}",
    )
    number = str(finding.line)
    margin = " " * len(number)
    if finding.text.strip():
        before, meant, after = _split_around(finding.text, finding.column - 1, finding.length)
        under = ("^" * max(len(escape_line(meant)), 1), _STYLES[finding.severity])
        yield line((f"{number} | ", "dim"), before, meant, after, indent=2, cut=True)
        yield line((f"{margin} | ", "dim"), " " * len(escape_line(before)), under, indent=2, cut=True)
    mends = " (prowess check --fix mends it)" if finding.fixable else ""
    if finding.hint:
        yield line((f"{margin} = ", "dim"), finding.hint, (mends, "good"), indent=2)


def _split_around(text: str, begin: int, length: int) -> tuple[str, str, str]:
    """What stands before the part that is meant, that part, and what follows, of a line that may be very long."""
    first = max(0, begin - _MAX_WIDTH // 2)
    last = first + _MAX_WIDTH
    before = ("…" if first else "") + text[first:begin]
    return (
        before,
        text[begin : min(begin + length, last)],
        text[begin + length : last] + ("…" if len(text) > last else ""),
    )


def _summarize(report: CheckReport) -> Line:
    skills = format_count(len(report.skills), "skill")
    counts = [format_count(report.count(s), s) for s in ("error", "warning") if report.count(s)]
    notes = [f"{report.count('info')} to know"] if report.count("info") else []
    said = ", ".join(counts + notes) or "nothing found"
    style: Style = "bad" if report.count("error") else "warn" if report.count("warning") else "good"
    # Other listings cost less or more: whoever compares the number with that of 'prompt' must know which it is.
    cost = f"; listing costs about {report.tokens:,} tokens (prowess prompt --style xml)"
    return line((f"{skills}: {said}", style), cost)
