"""Checks skills: each by the rules, and all of them together, with one report."""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prowess.authoring.descriptions import PLACEHOLDER_MESSAGE, description_issues, keyword_issues
from prowess.authoring.eval_files import find_eval_issues
from prowess.authoring.findings import locate_issues, read_lines, read_skill_file, secret_issues
from prowess.authoring.fix import NOT_SERVED, RESPELLED, fix, unquoted_issues
from prowess.authoring.new import is_placeholder_line
from prowess.authoring.security import examine_all
from prowess.authoring.similar import similar_issues
from prowess.discovery.scan import scan
from prowess.errors import Issue, PolicyError, SkillError, SkillValidationError, SourceError
from prowess.files.directory import exists, stat_folder
from prowess.format.frontmatter.fields import SPEC_FIELDS
from prowess.format.frontmatter.yaml_events import YamlError, parse_block_yaml
from prowess.format.rules import EXTENSION_FIELDS
from prowess.limits import DEFAULT_LIMITS, MAX_COMPATIBILITY_LENGTH, MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH
from prowess.names import SKILL_FILE
from prowess.progress_steps import report_steps
from prowess.select.budget import listing_costs, render_catalog
from prowess.skills.mcp_rules import find_refusals
from prowess.skills.parse import read_metadata, text_issues, validate
from prowess.text.quantities import format_count
from prowess.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prowess.authoring.findings import Finding
    from prowess.authoring.security import SecurityReport
    from prowess.errors import Severity
    from prowess.format.frontmatter.yaml_events import Value
    from prowess.limits import Limits
    from prowess.skills.skill import Skill

    FindIssues = Callable[[str, str], Iterable[Issue]]


_MAX_KEY_LENGTH = 128
_SIMILAR_KEY_RATIO = 0.84
"""How similar two keys are, by ``difflib``, from which one counts as a misspelling of the other."""
_SEVERITY_RANK: dict[Severity, int] = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of a check: the skills that were checked, every finding, and what a listing of them costs."""

    skills: tuple[str, ...]
    """The path of the SKILL.md of each skill."""
    findings: tuple[Finding, ...]
    tokens: int
    """About how many tokens a listing of the skills that load costs."""
    costs: Mapping[str, int]
    """About how many tokens each skill costs in a listing, by name."""
    security: tuple[SecurityReport, ...] = ()
    """What each skill could do, where that was asked for."""

    def count(self, severity: Severity) -> int:
        """Return how many findings have that severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def ok(self, *, strict: bool = False) -> bool:
        """Return whether nothing is wrong: there is no error, and under ``strict`` no warning."""
        return not self.count("error") and not (strict and self.count("warning"))


def check(
    *paths: str | os.PathLike[str],
    budget: int | None = None,
    spec: bool = False,
    security: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> CheckReport:
    """Return every finding about the skills at ``paths``: a skill's folder, its SKILL.md, or a folder of skills.

    Several skills are also compared with each other, and the cost of listing them with ``budget`` (tokens). Every
    finding names a line. A skill that is reached in several ways, such as by a link, counts once. With ``spec`` the
    findings are only those of the specification's reference validator, ``skills-ref``, so that ``ok()`` is its verdict.
    With ``security``, all files are examined too: what the skill could do is in ``security``, and patterns that are
    seldom harmless are findings. That finds a part of what is malicious, and never says that a skill is safe.
    Raises ``SourceError`` for a path without a skill.
    """
    files = remove_duplicate_files(file for path in paths for file in find_skill_files(path, limits=limits))
    skills = [skill for file in files if (skill := _load_leniently(file, limits)) is not None]
    tokens = estimate_tokens(render_catalog(skills))

    def judge_by_reference(text: str, path: str) -> Iterable[Issue]:
        return reference_issues(text.encode("utf-8"), folder=_folder_name(path), path=path, limits=limits)

    def judge_by_rules(text: str, path: str) -> Iterable[Issue]:
        return (*text_issues(text, path, limits=limits), *unquoted_issues(text, path, limits=limits))

    if spec:
        issues = [issue for file in report_steps(files, _folder_name) for issue in _find_reference_issues(file, limits)]
    else:
        issues = [*_find_own_issues(files, skills, limits), *_find_budget_issue(skills, tokens, budget)]
    reports = examine_all(skills, limits) if security else ()
    issues += (issue for report in reports for issue in report.issues)
    findings = _make_findings(issues, judge_by_reference if spec else judge_by_rules, limits)
    ordered = sorted(
        findings, key=lambda f: (f.path, f.code != "yaml-syntax", f.line, _SEVERITY_RANK[f.severity], f.code, f.column)
    )
    return CheckReport(files, tuple(ordered), tokens, listing_costs(skills), reports)


def _find_own_issues(files: tuple[str, ...], skills: list[Skill], limits: Limits) -> Iterator[Issue]:
    """Yield what Prowess finds in each skill, and between them."""
    with_errors: set[str] = set()
    for file in report_steps(files, _folder_name):
        issues = [_with_nearest_key(issue) for issue in validate(file, limits=limits)]
        with_errors.update(issue.path for issue in issues if issue.severity == "error")
        yield from issues
    # Every error also keeps a skill from being served. To say so of each would only repeat it.
    for skill in skills:
        try:
            skill.refuse_revoked()
        except PolicyError as error:
            yield Issue(error.code, "", error.message, skill.location, 1)
            with_errors.add(skill.location)
        except SkillError:  # a folder that cannot be hashed has other findings
            pass
        if skill.location not in with_errors:
            yield from _mcp_issues(skill, limits)
    yield from (
        (
            Issue(
                "filename-case", "", f"the file is named {os.path.basename(file)}, not {SKILL_FILE}", file, 1, "warning"
            )
        )
        for file in files
        if os.path.basename(file) != SKILL_FILE
    )
    for file in files:
        yield from _find_placeholder_text(file, limits)
        yield from secret_issues(file, limits)
        yield from find_eval_issues(os.path.dirname(file), limits)
    for skill in skills:
        yield from description_issues(skill)
        yield from keyword_issues(skill, limits)
    yield from similar_issues(skills, limits)


def _with_nearest_key(issue: Issue) -> Issue:
    """Return the issue; when it is about an unknown key, the message also names the known key that is most similar."""
    if issue.code != "unknown-field":
        return issue
    from difflib import get_close_matches

    close = get_close_matches(
        issue.field.lower()[:_MAX_KEY_LENGTH], sorted(SPEC_FIELDS | EXTENSION_FIELDS), n=1, cutoff=_SIMILAR_KEY_RATIO
    )
    return replace(issue, message=f"{issue.message}; is {close[0]!r} meant?") if close else issue


def _mcp_issues(skill: Skill, limits: Limits) -> Iterator[Issue]:
    """Yield why an MCP server with the skills extension leaves out a skill that is valid here."""
    lines = skill.peek().lines
    for reason in find_refusals(skill, skill.folder_name, limits):
        message = f"{reason.message}; the skills extension of an MCP server leaves the skill out"
        line = reason.line or lines.get(reason.field, 1)
        yield Issue(NOT_SERVED, reason.field, message, skill.location, line, "warning")


def _find_reference_issues(file: str, limits: Limits) -> Iterator[Issue]:
    """Yield what the reference validator finds in the skill of this file."""
    name = os.path.basename(file)
    if name not in _REFERENCE_FILENAMES:
        yield Issue("filename-case", "", f"the file is named {name}; skills-ref finds {SKILL_FILE} and skill.md", file)
        return
    try:
        data = read_skill_file(file, limits)
    except SkillValidationError as error:
        yield Issue(error.code, "", error.message, file)
        return
    yield from reference_issues(data, folder=_folder_name(file), path=file, limits=limits)


def find_skill_files(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> tuple[str, ...]:
    """Return the SKILL.md of the skill at ``path``, or of every skill below it, including those that do not load.

    Raises ``SourceError`` when there is no skill.
    """
    target = os.path.abspath(os.fspath(path))
    if stat_folder(target) is None:
        if os.path.basename(target) == SKILL_FILE and exists(target):
            return (target,)
        if not exists(target):
            raise SourceError("there is no such file or folder", target, "missing-skill-md")
        raise SourceError(
            "there is no skill: name a skill's folder, its SKILL.md, or a folder of skills", target, "missing-skill-md"
        )
    if exists(os.path.join(target, SKILL_FILE)):
        return (os.path.join(target, SKILL_FILE),)
    catalog = scan(target, limits=limits)
    files = {*(skill.location for skill in catalog), *(lost.location for lost in catalog.shadowed)}
    files |= {issue.path for issue in catalog.failures if os.path.basename(issue.path).lower() == SKILL_FILE.lower()}
    if not files:
        raise SourceError("there is no skill in this folder", target, "missing-skill-md")
    return tuple(sorted(files))


def remove_duplicate_files(files: Iterable[str]) -> tuple[str, ...]:
    """Return each file once, under the path that came first."""
    by_real_path: dict[str, str] = {}
    for file in files:
        by_real_path.setdefault(os.path.realpath(file), file)
    return tuple(by_real_path.values())


def _folder_name(file: str) -> str:
    """Return the name of the skill's folder, which names the skill in a progress bar."""
    return os.path.basename(os.path.dirname(file))


def _find_placeholder_text(file: str, limits: Limits) -> Iterator[Issue]:
    """Yield a warning for each sentence of the instructions of a new skill that nobody has replaced."""
    for number, line in enumerate(read_lines(*os.path.split(file), limits), 1):
        if is_placeholder_line(line):
            yield Issue("placeholder-text", "body", PLACEHOLDER_MESSAGE, file, number, "warning")


def _load_leniently(file: str, limits: Limits) -> Skill | None:
    try:
        return read_metadata(file, "lenient", limits=limits)
    except SkillError:
        return None


def _find_budget_issue(skills: list[Skill], tokens: int, budget: int | None) -> Iterator[Issue]:
    if budget is not None and tokens > budget and skills:
        cost = "costs" if len(skills) == 1 else "cost"
        message = (
            f"{format_count(len(skills), 'skill')} {cost} about {tokens:,} tokens to list; the budget is {budget:,}"
        )
        yield Issue(
            "listing-too-large", "", message, max(skills, key=lambda s: len(s.description)).location, 1, "warning"
        )


def _make_findings(issues: Iterable[Issue], judge: FindIssues, limits: Limits) -> Iterator[Finding]:
    by_file: dict[str, list[Issue]] = {}
    for issue in issues:
        by_file.setdefault(issue.path, []).append(replace(issue, line=max(issue.line, 1)))
    for path in report_steps([*by_file], _folder_name):
        in_file = by_file[path]
        lines = read_lines(*os.path.split(path), limits)
        if lines and "\0" in lines[0]:
            lines = []  # a program has no lines that a person could read
        yield from locate_issues(in_file, lines, _find_fixable(path, in_file, judge, limits))


def _find_fixable(path: str, issues: list[Issue], judge: FindIssues, limits: Limits) -> frozenset[tuple[str, str]]:
    """Return code and field of each issue that ``fix`` would end: the text has it before the fix and not after."""
    is_skill = os.path.basename(path).lower() == SKILL_FILE.lower()
    if not is_skill or all(issue.severity == "info" and issue.code != RESPELLED for issue in issues):
        return frozenset()
    try:
        fixed = fix(path, limits=limits)
    except SkillError:
        return frozenset()
    if not fixed:
        return frozenset()
    before, after = ({(issue.code, issue.field) for issue in judge(text, path)} for text in (fixed.before, fixed.after))
    renamed = {("filename-case", "")} if fixed.new_path else set()
    return frozenset((before - after) | renamed)


_REFERENCE_FILENAMES = frozenset(("SKILL.md", "skill.md"))
"""The file names under which the reference validator looks for a skill."""

_DASHES = "---"
_BOM = "\ufeff"
_LINE_END = re.compile(r"\r\n?")


def reference_issues(
    data: bytes, *, folder: str | None = None, path: str = "", limits: Limits = DEFAULT_LIMITS
) -> tuple[Issue, ...]:
    """Return every finding of the reference validator about a SKILL.md of these bytes; one error means that it refuses.

    ``folder`` is the name of the skill's folder, which its name must equal; ``None`` leaves that rule out. Text that
    the validator accepts, and reads differently from what its author meant, is an ``info``. Bad text raises nothing.
    """
    return tuple(replace(issue, path=path) for issue in _text_issues(data, folder, limits))


def _text_issues(data: bytes, folder: str | None, limits: Limits) -> Iterator[Issue]:
    try:
        text = _LINE_END.sub("\n", data.decode("utf-8"))
    except UnicodeDecodeError as error:
        message = f"the text is not UTF-8: byte 0x{data[error.start]:02X} at byte {error.start}"
        yield Issue("not-utf8", "", message, line=data.count(b"\n", 0, error.start) + 1)
        return
    if not text.startswith(_DASHES):
        mark = "a byte order mark precedes them" if text.startswith(_BOM) else "the file does not"
        yield Issue("no-frontmatter", "", f"the first three characters must be '---'; {mark}", line=1)
        return
    # The validator looks for dashes and not for a line of dashes, so that those within a value end the frontmatter too.
    end = text.find(_DASHES, len(_DASHES))
    if end < 0:
        yield Issue("unterminated-frontmatter", "", "the closing '---' is missing", line=1)
        return
    # No author means dashes within a line to close the frontmatter.
    line = text[text.rfind("\n", 0, end) + 1 :].partition("\n")[0]
    if line.rstrip() != _DASHES:
        message = "skills-ref reads the frontmatter only up to the first '---', which is within this line"
        yield Issue("dashes-within-line", "", message, line=text.count("\n", 0, end) + 1, severity="info")
    yield from _frontmatter_issues(text[len(_DASHES) : end], folder, limits)


def _frontmatter_issues(text: str, folder: str | None, limits: Limits) -> Iterator[Issue]:
    # A bound of our own: the parser in Python is slow, and the text may come from anybody.
    if len(text) > limits.max_frontmatter_bytes:
        message = f"the frontmatter is longer than {limits.max_frontmatter_bytes} characters"
        yield Issue("frontmatter-too-large", "", message, line=1)
        return
    try:
        values, lines = parse_block_yaml(text, limits)
    except YamlError as error:
        yield Issue(error.code, "", error.message, line=error.line + 1)
        return
    for issue in _field_issues(values, folder):
        yield replace(issue, line=lines.get(issue.field, 0) + 1)


def _field_issues(values: Mapping[str, Value], folder: str | None) -> Iterator[Issue]:
    for key in values:
        if key not in SPEC_FIELDS:
            yield Issue("unknown-field", key, "is not a field of the specification")
    yield from _name_issues(values.get("name", ""), folder)
    yield from _description_issues(values.get("description", ""))
    compatibility = values.get("compatibility", "")
    if not isinstance(compatibility, str):
        yield Issue("wrong-type", "compatibility", "must be text")
    elif len(compatibility) > MAX_COMPATIBILITY_LENGTH:
        message = f"has {len(compatibility)} characters; at most {MAX_COMPATIBILITY_LENGTH} are allowed"
        yield Issue("compatibility-too-long", "compatibility", message)


def _name_issues(value: Value, folder: str | None) -> Iterator[Issue]:
    if not isinstance(value, str):
        yield Issue("wrong-type", "name", "must be text")
        return
    # The validator compares names and folders in this form, so that one letter counts however it is encoded.
    name = unicodedata.normalize("NFKC", value.strip())
    if not name:
        yield Issue("missing-name", "name", "is required")
        return
    if len(name) > MAX_NAME_LENGTH:
        yield Issue("bad-name", "name", f"has {len(name)} characters; at most {MAX_NAME_LENGTH} are allowed")
    if name != name.lower():
        yield Issue("bad-name", "name", "must be in lower case")
    if name.startswith("-") or name.endswith("-") or "--" in name:
        yield Issue("bad-name", "name", "may hold hyphens only singly, between other characters")
    if not all(character.isalnum() or character == "-" for character in name):
        yield Issue("bad-name", "name", "may hold only letters, digits and hyphens")
    if folder is not None and unicodedata.normalize("NFKC", folder) != name:
        yield Issue("name-mismatch", "name", f"is not the name of its folder, {folder!r}")


def _description_issues(value: Value) -> Iterator[Issue]:
    if not isinstance(value, str):
        yield Issue("wrong-type", "description", "must be text")
    elif not value.strip():
        yield Issue("missing-description", "description", "is required")
    elif len(value) > MAX_DESCRIPTION_LENGTH:
        message = f"has {len(value)} characters; at most {MAX_DESCRIPTION_LENGTH} are allowed"
        yield Issue("description-too-long", "description", message)
