"""``prowess policy``: shows the policy that is in force here, and checks lock files against it."""

from __future__ import annotations

import os
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

import click

from prowess.cli.command_class import CliCommand, CliGroup
from prowess.cli.issues import find_remedy, issue_to_dict, to_github_annotation
from prowess.cli.lock_states import describe_policy
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, Style, Table, line
from prowess.errors import NotInstalledError
from prowess.files.paths import shorten_path
from prowess.installed.policy_check import check_lock_entries
from prowess.installed.scopes import project_scope
from prowess.lockfile.read import LOCK_FILE, read_lock
from prowess.policy.files import (
    APPROVED_FILE,
    current_policy,
    list_policy_files,
    list_uncounted_files,
    load_policy,
    read_local_policy,
)
from prowess.policy.rules import RULES, Mirror, Policy
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.errors import Issue
    from prowess.policy.rules import RuleValue


@click.group(
    "policy",
    cls=CliGroup,
    examples=(
        ("prowess policy show", "what is in force, and from which file"),
        ("prowess policy check", "the lock file of this project, as a gate in CI"),
    ),
)
def command() -> None:
    """Show what the policy files of this machine, you and this project allow, and check lock files.

    A rule of a company counts in /etc/prowess, and yours in ~/.config/prowess. prowess-policy.toml in a project can
    only forbid.
    """


@command.command("show", cls=CliCommand, examples=(("prowess policy show --json", "as data"),))
@json_option
def _show_policy(*, as_data: bool) -> None:
    """Show every rule that is in force, and the file that it comes from."""
    policy = current_policy()
    printer.print_answer(lambda: _to_dict(policy), lambda: _to_blocks(policy), as_data=as_data)


def _to_dict(policy: Policy) -> dict[str, object]:
    return {
        "files": [*policy.files],
        "not_read": [*list_uncounted_files()],
        "rules": [{"rule": rule.key, "value": _to_plain(rule.value), "file": rule.file} for rule in policy.rules],
        "approved": [one.to_dict() for one in policy.approvals],
        "revoked": [one._asdict() for one in policy.revocations],
    }


def _to_plain(value: RuleValue) -> object:
    """Return a value as a policy file has it."""
    if not isinstance(value, tuple):
        return value
    return [{"from": one.origin, "to": one.target} if isinstance(one, Mirror) else one for one in value]


def _to_blocks(policy: Policy) -> Iterator[Block]:
    for path in list_uncounted_files():
        why = "a project grants nothing" if path.endswith(APPROVED_FILE) else "a project's is called prowess-FILE.toml"
        yield line((f"{shorten_path(path)} is not read: {why}.", "warn"))
    if not policy.files:
        yield line("No policy is in force: there is none of these files.")
        yield Table([(shorten_path(path),) for path in list_policy_files()], indent=2)
        return
    rows = [((rule.key, "name"), _format_value(rule.value), shorten_path(rule.file)) for rule in policy.rules]
    yield Table(rows, head=("rule", "value", "file")) if rows else line("Files without rules:")
    if not rows:
        yield Table([(shorten_path(path),) for path in policy.files], indent=2)
    expired = sum(not one.is_valid() for one in policy.approvals)
    yield Line()
    yield line(
        f"{format_count(len(policy.approvals), 'approval')}{f' ({expired} expired)' if expired else ''}, "
        f"{format_count(len(policy.revocations), 'revocation')}."
    )
    missing = [key for key in RULES if not policy.find_rules(key)]
    if missing:
        yield line((f"Without a rule: {', '.join(missing)}.", "dim"))


def _format_value(value: RuleValue) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


@command.command("fetch", cls=CliCommand, examples=(("prowess policy fetch", "what policy-url has now; from cron"),))
@json_option
def _fetch_policies(*, as_data: bool) -> None:
    """Fetch the policy files that a policy-url names, and put them in force. Malformed files are not put in force.

    What was fetched counts for a week: fetch it again before, from cron or a timer.
    """
    from prowess.fetch.policy import fetch_policies  # the other commands of the group fetch nothing

    with printer.show_progress("fetching"):
        urls = fetch_policies(read_local_policy())
    printer.print_answer(
        lambda: {"fetched": [*urls]},
        lambda: [line(f"Fetched the policy of {url}.") for url in urls] or [line("No policy-url is in force.")],
        as_data=as_data,
    )


@command.command(
    "check",
    cls=CliCommand,
    examples=(
        ("prowess policy check", "the lock file of this project"),
        ("prowess policy check --with draft */prowess.lock", "those of many projects: what would new rules refuse?"),
        ("prowess policy check --format github", "annotations for a pull request"),
    ),
)
@click.argument("locks", nargs=-1, type=click.Path(exists=True), metavar="[LOCK]...")
@click.option(
    "--with",
    "drafts",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    metavar="FOLDER",
    help="Also the policy files in this folder: what would they refuse if they were deployed?",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json", "github")),
    default="text",
    help="For people, as data, or as annotations of GitHub.",
)
@json_option
def _check_locks(locks: tuple[str, ...], *, drafts: tuple[str, ...], form: str, as_data: bool) -> int:
    """Check lock files: sources, versions, reviews and revocations. Nothing is fetched.

    Without a LOCK, the lock file of this project is checked. The policy is that of the folder of each lock file.
    Exit status 1: a rule refuses something. 3: there is no lock file here, so that nothing could be checked.
    """
    folders = [_to_folder(lock) for lock in locks] or [project_scope().lock_folder]
    issues: list[Issue] = []
    policies: list[Policy] = []
    count = 0
    draft = reduce(and_, map(load_policy, drafts), Policy())
    for folder in folders:
        scope = project_scope(os.path.join(folder, ".prowess", "skills"))
        if not os.path.lexists(os.path.join(folder, LOCK_FILE)):
            raise NotInstalledError(f"there is no {LOCK_FILE} in {shorten_path(folder)}, so nothing was checked")
        locked = read_lock(folder)
        policies.append(current_policy(folder) & draft)
        count += sum(len(entry.skills) for entry in locked.values())
        issues += check_lock_entries(scope, locked, policies[-1])
    if form == "github" and not as_data:
        for issue in issues:
            printer.print_line(to_github_annotation(issue))
    else:
        printer.print_answer(
            lambda: {"checked": count, "issues": [issue_to_dict(issue) for issue in issues]},
            lambda: [*_describe_check(issues, count, len(folders), policies)],
            as_data=as_data or form == "json",
        )
    return 1 if issues else 0


def _to_folder(lock: str) -> str:
    path = os.path.abspath(lock)
    return path if os.path.isdir(path) else os.path.dirname(path)


def _describe_check(issues: list[Issue], count: int, locks: int, policies: list[Policy]) -> Iterator[Block]:
    files = LOCK_FILE if locks == 1 else f"{locks} lock files"
    if not issues:
        style: Style = "good" if any(policy.files for policy in policies) else "warn"
        yield line((f"The policy allows all {format_count(count, 'skill')} of {files}.", style))
        yield line(describe_policy(policies))
        return
    yield Table(
        [((one.code, "bad"), (one.field, "name"), one.message, (shorten_path(one.path), "dim")) for one in issues]
    )
    for code in dict.fromkeys(issue.code for issue in issues):
        yield line(f"{code}: {find_remedy(code)}")
