"""``prowess check``: every finding about skills."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from prowess.authoring.check import CheckReport, check, distinct, skill_files
from prowess.authoring.fix import apply_fix, fix
from prowess.cli import output
from prowess.cli.blocks import Line, line
from prowess.cli.command import command as new_command
from prowess.cli.options import (
    complete_code,
    complete_skill_or_path,
    find_path,
    home_relative,
    json_option,
    known_codes,
    settings_of,
)
from prowess.cli.own_skills import find_own_paths
from prowess.cli.verified import Verified
from prowess.errors import SkillError, SourceError
from prowess.escapes import escape_line
from prowess.limits import DEFAULT_LIMITS
from prowess.spec.counted import counted, join_some
from prowess.steps import stepped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.authoring.findings import Finding
    from prowess.authoring.fix import Fix
    from prowess.cli.blocks import Block, Style
    from prowess.cli.options import T

_STYLES: dict[str, Style] = {"error": "bad", "warning": "warn", "info": "dim"}
_NAMED = 5
"""How many installed skills a message names."""
_GITHUB = {"error": "error", "warning": "warning", "info": "notice"}
_WIDEST = 160


def _code_option(name: str, about: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    return click.option(
        name, multiple=True, metavar="CODE", shell_complete=complete_code, callback=known_codes, help=about
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
    settings = settings_of(strict=strict, budget=budget)
    as_json = as_data or form == "json"
    try:
        chosen = tuple(find_path(settings, path) for path in paths) or find_own_paths(settings)
    except SourceError:
        recorded = [] if paths else Verified().absent("project")
        if not recorded:
            raise
        return _leave_to_authors(recorded, as_json=as_json)
    own, installed = (chosen, []) if paths else _without_pinned(_files_of(chosen))
    if installed and not own:
        return _leave_to_authors(installed, as_json=as_json)
    if installed:
        output.note(f"left to their authors, since they are installed: {join_some(installed, _NAMED)}")
    with output.busy("checking"):
        fixes = _fixes(chosen, write=mend) if mend or only_show else []
        report = check(*(own if installed else chosen), budget=settings.number("budget"), spec=spec)
    report = _narrowed(report, frozenset(only), frozenset(ignore))
    if form == "github" and not as_json:
        for finding in report.findings:
            output.plain_line(_annotation(finding))
    else:
        output.answer(lambda: _data(report, fixes), lambda: _blocks(report, fixes, written=mend), as_data=as_json)
    return 0 if report.ok(strict=bool(settings["strict"])) else 1


def _files_of(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The files of the skills at or below ``paths``, each once."""
    return distinct(file for path in paths for file in skill_files(path))


def _leave_to_authors(installed: list[str], *, as_json: bool) -> int:
    """Say that nothing here is the project's own; what others wrote is theirs to check, so that is no failure."""
    output.note(
        f"there are only installed skills ({join_some(installed, _NAMED)}), which their authors check; "
        "name a folder to check them all the same"
    )
    if as_json:
        output.answer(lambda: _data(CheckReport((), (), 0, {}), []), lambda: iter(()), as_data=True)
    return 0


def _fixes(paths: tuple[str, ...], *, write: bool) -> list[Fix]:
    found: list[Fix] = []
    files, pinned = _without_pinned(_files_of(paths))
    if pinned:
        output.note(f"left as prowess.lock has them: {', '.join(pinned)} (mend them where they come from)")
    for file in stepped(files, lambda file: home_relative(os.path.dirname(file))):
        try:
            mended = fix(file)
        except SkillError:  # what cannot be read is among the findings
            continue
        if mended:
            found.append(mended)
        if write:
            apply_fix(mended)
    return found


def _without_pinned(files: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    """The files that may be changed, and the skills of the others: in an install base, or a copy that is recorded."""
    from prowess.library.installs import standard_scopes  # noqa: PLC0415 - only to mend something
    from prowess.library.pins import Pins  # noqa: PLC0415

    scopes = standard_scopes(os.getcwd(), os.path.expanduser("~"), os.environ)
    records = Pins(scopes, DEFAULT_LIMITS).records
    folders = {file: os.path.realpath(os.path.dirname(file)) for file in files}
    free = tuple(file for file, folder in folders.items() if not any(one.where(folder) for one in records))
    return free, sorted({os.path.basename(os.path.dirname(file)) for file in files if file not in free})


def _narrowed(report: CheckReport, only: frozenset[str], ignore: frozenset[str]) -> CheckReport:
    kept = (f for f in report.findings if f.code not in ignore and (not only or f.code in only))
    return CheckReport(report.skills, tuple(kept), report.tokens, report.costs)


def _data(report: CheckReport, fixes: list[Fix]) -> dict[str, object]:
    return {
        "skills": list(report.skills),
        "errors": report.count("error"),
        "warnings": report.count("warning"),
        "infos": report.count("info"),
        "listing_tokens": report.tokens,
        "costs": [{"name": name, "tokens": tokens} for name, tokens in report.costs.items()],
        "findings": [_finding_data(finding) for finding in report.findings],
        "fixes": [{"path": one.path, "codes": list(one.codes), "diff": one.diff()} for one in fixes],
    }


def _finding_data(finding: Finding) -> dict[str, object]:
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


def _annotation(finding: Finding) -> str:
    """A workflow command as GitHub reads it."""
    place = f"file={_property(home_relative(finding.path))},line={finding.line},col={finding.column}"
    subject = f"{finding.field}: " if finding.field else ""
    message = f"{subject}{_relative(finding.message)} ({finding.hint})"
    return f"::{_GITHUB[finding.severity]} {place},title={_property(finding.code)}::{_escaped(message)}"


def _relative(message: str) -> str:
    """A message whose paths below the working folder are relative to it."""
    here = os.getcwd().rstrip(os.sep) + os.sep
    return message.replace(here, "") if here != os.sep else message


def _escaped(text: str) -> str:
    return escape_line(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _blocks(report: CheckReport, fixes: list[Fix], *, written: bool) -> Iterator[Block]:
    for one in fixes:
        yield line(
            (f"{'mended' if written else 'would mend'} ", "good"),
            (home_relative(one.path), "name"),
            f": {', '.join(one.codes)}",
        )
        for row in one.diff(home_relative(one.path)).splitlines():
            style: Style = "added" if row.startswith("+") else "removed" if row.startswith("-") else "plain"
            yield line((row, style))
        yield Line()
    for finding in report.findings:
        yield from _shown(finding)
    yield _summary(report)


def _shown(finding: Finding) -> Iterator[Block]:
    subject = f"{finding.field}: " if finding.field else ""
    yield line(
        (f"{home_relative(finding.path)}:{finding.line}:{finding.column}: ", "name"),
        (f"{finding.severity}[{finding.code}] ", _STYLES[finding.severity]),
        f"{subject}{finding.message}",
    )
    number = str(finding.line)
    margin = " " * len(number)
    if finding.text.strip():
        before, meant, after = _window(finding.text, finding.column - 1, finding.length)
        under = ("^" * max(len(escape_line(meant)), 1), _STYLES[finding.severity])
        yield line((f"{number} | ", "dim"), before, meant, after, indent=2, cut=True)
        yield line((f"{margin} | ", "dim"), " " * len(escape_line(before)), under, indent=2, cut=True)
    mends = " (prowess check --fix mends it)" if finding.fixable else ""
    if finding.hint:
        yield line((f"{margin} = ", "dim"), finding.hint, (mends, "good"), indent=2)


def _window(text: str, begin: int, length: int) -> tuple[str, str, str]:
    """What stands before the part that is meant, that part, and what follows, of a line that may be very long."""
    first = max(0, begin - _WIDEST // 2)
    last = first + _WIDEST
    before = ("…" if first else "") + text[first:begin]
    return (
        before,
        text[begin : min(begin + length, last)],
        text[begin + length : last] + ("…" if len(text) > last else ""),
    )


def _summary(report: CheckReport) -> Line:
    skills = counted(len(report.skills), "skill")
    counts = [counted(report.count(s), s) for s in ("error", "warning") if report.count(s)]
    notes = [f"{report.count('info')} to know"] if report.count("info") else []
    said = ", ".join(counts + notes) or "nothing found"
    style: Style = "bad" if report.count("error") else "warn" if report.count("warning") else "good"
    # Other listings cost less or more: whoever compares the number with that of 'prompt' must know which it is.
    cost = f"; listing costs about {report.tokens:,} tokens (prowess prompt --style xml)"
    return line((f"{skills}: {said}", style), cost)
