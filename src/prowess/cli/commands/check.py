"""``prowess check``: prints every finding about skills, and fixes what is mechanical."""

from __future__ import annotations

import os
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import click

from prowess import __version__
from prowess.authoring.check import CheckReport, check, find_skill_files, remove_duplicate_files
from prowess.authoring.fix import Fix, apply_fix, fix
from prowess.authoring.security import FACT_TITLES
from prowess.cli.command_class import new_command
from prowess.cli.issues import to_github_annotation
from prowess.cli.lock_states import LazyLockStates
from prowess.cli.options import T, check_codes, complete_code, complete_skill_or_path, json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, Style, Title, diff_to_lines, line
from prowess.cli.sarif import to_sarif
from prowess.cli.skill_lookup import find_own_paths, find_path, load_cli_settings
from prowess.errors import SkillError, SourceError
from prowess.files.paths import shorten_path
from prowess.installed.scopes import standard_scopes
from prowess.installed.verifier import LockVerifier
from prowess.limits import DEFAULT_LIMITS
from prowess.progress_steps import report_steps
from prowess.text.escapes import dump_json, escape_line
from prowess.text.quantities import format_count, join_first

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.authoring.findings import Finding
    from prowess.authoring.security import SecurityReport
    from prowess.settings import Settings


_STYLES: dict[str, Style] = {"error": "bad", "warning": "warn", "info": "dim"}
_MAX_NAMED = 5
"""How many installed skills a message names."""
_MAX_WIDTH = 160
"""How much of a long line a finding shows: a whole file may be one line."""


def _code_option(name: str, about: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    return click.option(
        name, multiple=True, metavar="CODE", shell_complete=complete_code, callback=check_codes, help=about
    )


@new_command(
    "check",
    ("prowess check", "the skill in this folder, or the project's skills"),
    ("prowess check skills/ --strict", "a collection; warnings count"),
    ("prowess check skills/ --fix", "fix mechanical mistakes, and show how"),
    ("prowess check --spec", "would skills-ref accept it?"),
    ("prowess check --security pdf", "what could it do? before you grant it"),
    ("prowess check --format github", "annotations for a pull request"),
)
@click.argument("paths", nargs=-1, metavar="[PATH|NAME]...", shell_complete=complete_skill_or_path)
@click.option("--strict", is_flag=True, default=None, help="Warnings count as failures.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json", "github", "sarif")),
    default="text",
    show_default=True,
    help="How findings are written.",
)
@click.option("--fix", "fixes_files", is_flag=True, help="Fix mechanical mistakes, and show the difference.")
@click.option("--diff", "only_show", is_flag=True, help="Show what --fix would change, and change nothing.")
@_code_option("--ignore", "Leave out findings of this code (docs/reference/errors.md lists them).")
@_code_option("--only", "Only findings of this code.")
@click.option(
    "--budget", type=click.IntRange(0), metavar="TOKENS", help="How many tokens the listing of all of them may cost."
)
@click.option("--security", is_flag=True, help="Also what each skill could do, and patterns that are seldom harmless.")
@click.option(
    "--spec", is_flag=True, help="Only what skills-ref, the reference validator of the specification, would say."
)
@json_option
def command(
    paths: tuple[str, ...],
    *,
    strict: bool | None,
    form: str,
    fixes_files: bool,
    only_show: bool,
    ignore: tuple[str, ...],
    only: tuple[str, ...],
    budget: int | None,
    security: bool,
    spec: bool,
    as_data: bool,
) -> int:
    """Check skills, and print every finding with its line, the text that it is about, and what to do.

    PATH is the folder of a skill, its SKILL.md, or a folder of skills. If there is no such path, NAME is the name of a
    skill. Several skills are also compared with each other. Without PATH the skill in this folder is checked, or the
    skills of the project. Installed skills are left out, since their authors check them.

    --security lists what each skill could do, with file and line: what runs, hosts, files outside of it, packages,
    secrets by name. Its warnings are for patterns that ordinary skills hardly ever have. It finds a part of what is
    malicious, and does not say that a skill is safe.
    Exit status 1: there is an error, or with --strict a warning.
    """
    settings = load_cli_settings(strict=strict, budget=budget)
    form = "json" if as_data else form
    targets = _find_targets(settings, paths)
    if not targets.checked:
        return _report_only_installs(targets.installed, as_json=form == "json")
    if targets.installed:
        names = join_first(targets.installed, _MAX_NAMED)
        printer.note(f"not checked, since they are installed and their authors check them: {names}")
    with printer.show_progress("checking"):
        # Mended first, so that the findings are those that are left.
        fixes = _fix_files(targets.paths, write=fixes_files) if fixes_files or only_show else []
        report = check(*targets.checked, budget=settings.number("budget"), spec=spec, security=security)
    report = _filter_findings(report, frozenset(only), frozenset(ignore))
    _print_report(report, fixes, form, written=fixes_files)
    return 0 if report.ok(strict=bool(settings["strict"])) else 1


def _print_report(report: CheckReport, fixes: list[Fix], form: str, *, written: bool) -> None:
    if form == "sarif":
        printer.print_own_text(dump_json(to_sarif(report.findings, __version__)) + "\n")
        return
    if form != "github":
        printer.print_answer(
            lambda: _to_dict(report, fixes), lambda: _to_blocks(report, fixes, written=written), as_data=form == "json"
        )
        return
    # Plain lines: a workflow command must begin its line, without colours or wrapping.
    for finding in report.findings:
        printer.print_line(to_github_annotation(finding, finding.column))


class _Targets(NamedTuple):
    """The skills that a command line is about."""

    paths: tuple[str, ...]
    """Everything that was named, or the folders of the project."""
    checked: tuple[str, ...]
    """What of it is checked; empty if all skills are installed ones."""
    installed: list[str]
    """The names of installed skills that are left to their authors."""


def _find_targets(settings: Settings, names: tuple[str, ...]) -> _Targets:
    """Return what was named, or the project's own skills. Raise ``SourceError`` if there are none at all."""
    if names:
        paths = tuple(find_path(settings, name) for name in names)
        return _Targets(paths, paths, [])
    try:
        paths = find_own_paths(settings)
    except SourceError:
        # A clone before 'prowess sync' has no skills, but its lock file records installed ones: that is not a failure.
        recorded = LazyLockStates().find_missing("project")
        if not recorded:
            raise
        return _Targets((), (), recorded)
    own_files, installed = _split_pinned_files(_find_skill_files(paths))
    return _Targets(paths, own_files if installed else paths, installed)


def _find_skill_files(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the SKILL.md files at or below ``paths``, each once."""
    return remove_duplicate_files(file for path in paths for file in find_skill_files(path))


def _report_only_installs(installed: list[str], *, as_json: bool) -> int:
    """Say that all skills here are installed ones. Their authors check them, so the exit status is 0."""
    printer.note(
        f"there are only installed skills ({join_first(installed, _MAX_NAMED)}), which their authors check; "
        "name a folder to check them all the same"
    )
    if as_json:
        printer.print_answer(lambda: _to_dict(CheckReport((), (), 0, {}), []), lambda: iter(()), as_data=True)
    return 0


def _fix_files(paths: tuple[str, ...], *, write: bool) -> list[Fix]:
    fixes: list[Fix] = []
    files, pinned = _split_pinned_files(_find_skill_files(paths))
    if pinned:
        printer.note(f"not fixed, since prowess.lock pins them: {', '.join(pinned)} (fix them at their source)")
    for file in report_steps(files, lambda file: shorten_path(os.path.dirname(file))):
        try:
            found = fix(file)
        except SkillError:  # a file that cannot be read is among the findings already
            continue
        if found:
            fixes.append(found)
        if write:
            apply_fix(found)
    return fixes


def _split_pinned_files(files: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    """Split files into those of the project, and the names of installed skills, which a lock file pins."""
    records = LockVerifier(standard_scopes(os.getcwd(), os.path.expanduser("~"), os.environ), DEFAULT_LIMITS).records
    folders = {file: os.path.realpath(os.path.dirname(file)) for file in files}
    free = tuple(file for file, folder in folders.items() if not any(lock.locate_folder(folder) for lock in records))
    return free, sorted({os.path.basename(os.path.dirname(file)) for file in files if file not in free})


def _filter_findings(report: CheckReport, only: frozenset[str], ignore: frozenset[str]) -> CheckReport:
    findings = (f for f in report.findings if f.code not in ignore and (not only or f.code in only))
    return CheckReport(report.skills, tuple(findings), report.tokens, report.costs, report.security)


def _to_dict(report: CheckReport, fixes: list[Fix]) -> dict[str, object]:
    return {
        "skills": list(report.skills),
        "errors": report.count("error"),
        "warnings": report.count("warning"),
        "infos": report.count("info"),
        "listing_tokens": report.tokens,
        "costs": [{"name": name, "tokens": tokens} for name, tokens in report.costs.items()],
        "findings": [
            {
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
            for finding in report.findings
        ],
        "security": [_report_to_dict(one) for one in report.security],
        "fixes": [{"path": fixed.path, "codes": list(fixed.codes), "diff": fixed.diff()} for fixed in fixes],
    }


def _to_blocks(report: CheckReport, fixes: list[Fix], *, written: bool) -> Iterator[Block]:
    for fixed in fixes:
        yield line(
            (f"{'fixed' if written else 'would fix'} ", "good"),
            (shorten_path(fixed.path), "name"),
            f": {', '.join(fixed.codes)}",
        )
        yield from diff_to_lines(fixed.diff(shorten_path(fixed.path)))
        yield Line()
    for finding in report.findings:
        yield from _finding_to_blocks(finding)
    for one in report.security:
        yield from _report_to_blocks(one)
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
        before, marked, after = _split_around(finding.text, finding.column - 1, finding.length)
        under = ("^" * max(len(escape_line(marked)), 1), _STYLES[finding.severity])
        yield line((f"{number} | ", "dim"), before, marked, after, indent=2, cut=True)
        yield line((f"{margin} | ", "dim"), " " * len(escape_line(before)), under, indent=2, cut=True)
    repairs = " (prowess check --fix repairs it)" if finding.fixable else ""
    if finding.hint:
        yield line((f"{margin} = ", "dim"), finding.hint, (repairs, "good"), indent=2)


def _split_around(text: str, begin: int, length: int) -> tuple[str, str, str]:
    """Return the text before the marked part, that part, and the text after it, cut to fit a screen."""
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
    outcome = ", ".join(counts + notes) or "nothing found"
    style: Style = "bad" if report.count("error") else "warn" if report.count("warning") else "good"
    # Other styles cost less or more, so the number comes with the command that prints this listing.
    cost = f"; listing costs about {report.tokens:,} tokens (prowess prompt --style xml)"
    return line((f"{skills}: {outcome}", style), cost)


_MAX_SHOWN = 12
"""How many facts of a kind are shown; ``--json`` has all of them."""


def _report_to_dict(report: SecurityReport) -> dict[str, object]:
    """Return what a skill could do as data."""
    facts = [{"kind": one.kind, "value": one.value, "path": one.path, "line": one.line} for one in report.facts]
    return {"name": report.name, "location": report.location, "facts": facts}


def _report_to_blocks(report: SecurityReport) -> Iterator[Block]:
    """Return what a skill could do, for people."""
    yield Title(report.name, shorten_path(report.location))
    if not report.facts:
        yield line("it names nothing that it could run, fetch, read or install", indent=2)
    for kind, group in groupby(report.facts, lambda fact: fact.kind):
        facts = [*group]
        yield line((f"{FACT_TITLES[kind]}:", "warn"), indent=2)
        for fact in facts[:_MAX_SHOWN]:
            yield line(" ".join(fact.value.split()), (f"  {fact.path}:{fact.line}", "dim"), indent=4, cut=True)
        if len(facts) > _MAX_SHOWN:
            yield line((f"and {len(facts) - _MAX_SHOWN} more; --json has all of them", "dim"), indent=4)
    yield Line()
