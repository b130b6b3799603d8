"""What a skill could do, as facts with file and line, and a few patterns that are seldom harmless.

Static rules find a part of what is malicious, and nothing here says that a skill is safe. The facts are for a person
who decides; the findings are the patterns of ``security_rules``.
"""

from __future__ import annotations

import os
import posixpath
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.authoring.findings import mask_secrets
from prowess.authoring.security_rules import CLAIM, ORDER_IN_COMMENT, RULES
from prowess.errors import Issue, ResourceError, SkillError
from prowess.files.read import OpenFile
from prowess.files.tree import list_tree
from prowess.format.commands import find_commands
from prowess.format.rules import INERT_FIELDS
from prowess.names import SKILL_FILE
from prowess.skills.inventory import list_scripts
from prowess.text.hidden_characters import find_hidden, find_hidden_points
from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Sequence

    from prowess.limits import Limits
    from prowess.skills.skill import Skill

FactKind = Literal["runs", "host", "outside-file", "package", "secret", "hidden-text"]
FACT_TITLES: dict[FactKind, str] = {
    "runs": "could run",
    "host": "names hosts",
    "outside-file": "names files outside of it",
    "package": "installs packages",
    "secret": "names secrets",
    "hidden-text": "has characters that nobody sees",
}
"""What each kind of fact is called, in the order of display."""


@dataclass(frozen=True, slots=True)
class SecurityFact:
    """One thing that a skill could do or touch, where it says so first."""

    kind: FactKind
    value: str
    path: str
    """The file, below the folder of the skill."""
    line: int


@dataclass(frozen=True, slots=True)
class SecurityReport:
    """The facts about one skill, and the findings of the patterns that are seldom harmless."""

    name: str
    location: str
    facts: tuple[SecurityFact, ...]
    issues: tuple[Issue, ...]


class _File(NamedTuple):
    """One file of a skill: its path, its first bytes, and its lines where it is text."""

    path: str
    data: bytes
    text: str | None

    @property
    def suffix(self) -> str:
        return posixpath.splitext(self.path)[1].lower()

    @property
    def is_prose(self) -> bool:
        return self.suffix in _PROSE


_PROSE = frozenset((".md", ".mdx", ".markdown", ".txt", ".rst", ".template", ""))
_PLAIN_DATA = frozenset((".csv", ".tsv", ".svg", ".lock", ".json", ".jsonl", ".css", ".xml", ".xsd", ".map"))
"""Files that name many hosts and run nothing."""
_MAX_LINE = 2_000
"""How much of a line is looked at: a whole program may be one line."""


def examine(skill: Skill, limits: Limits) -> SecurityReport:
    """Return what a skill on this machine could do; files that cannot be read are left out.

    At most ``limits.max_body_bytes`` of each file are read, and ``limits.max_digest_bytes`` of all together.
    """
    files = [*_read_files(skill.folder, limits)]
    facts: dict[tuple[str, str], SecurityFact] = {}
    for fact in _find_facts(skill, files):
        facts.setdefault((fact.kind, fact.value), fact)
    order = [*FACT_TITLES]
    ordered = sorted(facts.values(), key=lambda one: (order.index(one.kind), one.path, one.line, one.value))
    issues = {(one.code, one.path, one.line): one for one in _find_issues(skill, files)}
    return SecurityReport(skill.name, skill.location, tuple(ordered), tuple(issues.values()))


def _read_files(folder: str, limits: Limits) -> Iterator[_File]:
    try:
        paths = list_tree(folder, (), limits).files
    except OSError:
        return
    left = limits.max_digest_bytes
    for path in paths:
        try:
            with OpenFile(folder, tuple(path.split("/"))) as file:
                data = file.read(min(limits.max_body_bytes, left))
        except ResourceError:
            continue
        left -= len(data)
        is_text = b"\0" not in data[:8_192] and not _find_type(data)
        yield _File(path, data, data.decode("utf-8", "replace") if is_text else None)


# -- facts -------------------------------------------------------------------------------------------------------------

_HOST = compile_pattern(
    r"\b(?:https?|wss?|ftp|ssh)://(?:[^\s/@:\"'`<>]{1,100}@)?([A-Za-z0-9.-]{3,100}\.[A-Za-z0-9-]{2,24}|\[[0-9a-f:]{2,45}\])"
)
_OUTSIDE = compile_pattern(
    r"(?<![\w./$}-])((?:~|\$HOME|\$\{HOME\}|%USERPROFILE%|%APPDATA%)/?[\\/][\w.@%+-]{1,60}(?:/[\w.@%+-]{1,60}){0,8}"
    r"|/(?:etc|root|home|var|proc|sys|dev/tcp|Library|private|Users)/[\w.@%+-]{1,60}(?:/[\w.@%+-]{1,60}){0,8})"
)
_PACKAGE = compile_pattern(
    r"\b((?:pip3?|uv pip|pipx|uv tool|poetry|pdm|conda|npm|pnpm|yarn|bun|brew|cargo|go|gem|apt|apt-get|dnf|yum|apk)"
    r" (?:install|add|i|global add)|npx(?: -y| --yes)?|uvx|bunx) ((?:-{1,2}[\w=-]{1,30} ){0,6})"
    r"([@\w][\w@./+:<>=~\[\]^-]{0,80})"
)
_NO_PACKAGE = frozenset(("-r", "and", "the", "to", "it", "is", "from", "with", "for", "or", "if", "then", "in"))
_SECRET_NAME = compile_pattern(
    r"\b([A-Z][A-Z0-9]{1,30}(?:_[A-Z0-9]{1,30}){0,5}_(?:API_KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS|PAT))\b"
)
_NAMED: dict[FactKind, re.Pattern[str]] = {
    "host": _HOST,
    "outside-file": _OUTSIDE,
    "package": _PACKAGE,
    "secret": _SECRET_NAME,
}
_CALL = compile_pattern(
    r"\b(subprocess\.\w{2,20}|os\.(?:system|popen|exec\w{1,3}|spawn\w{1,3})|pty\.spawn|child_process"
    r"|execSync|spawnSync|Runtime\.getRuntime|Invoke-Expression|(?<![\w.])(?:eval|exec)(?=\())"
)


def _find_facts(skill: Skill, files: Sequence[_File]) -> Iterator[SecurityFact]:
    for file in files:
        if file.path == SKILL_FILE and file.text is not None:
            yield from _find_own_runs(skill, file.text)
    for path in list_scripts([file.path for file in files]):
        yield SecurityFact("runs", path, path, 1)
    for file in files:
        if file.text is None:
            if _find_type(file.data) in _PROGRAM_TYPES:
                yield SecurityFact("runs", f"{file.path} ({_find_type(file.data)})", file.path, 1)
            continue
        lines = _Lines(line for _, line in _lines_of(file.text))
        for number, line in enumerate(lines.rows, 1) if not file.text.isascii() else ():
            if find_hidden(line) is not None:
                yield SecurityFact("hidden-text", ", ".join(find_hidden_points(line)[:8]), file.path, number)
        if file.suffix not in _PLAIN_DATA:
            yield from _find_named(file, lines)


def _find_named(file: _File, lines: _Lines) -> Iterator[SecurityFact]:
    """Yield what the text of a file names: hosts, files, packages, secrets and calls of programs."""
    for kind, pattern in _NAMED.items():
        for found in pattern.finditer(lines.text):
            value = found[1].lower().strip(".") if kind == "host" else found[1]
            if kind == "package":
                if found[3].lower() in _NO_PACKAGE:
                    continue
                value = f"{found[1]} {found[3]}".rstrip(".,:")
            line = lines.number_at(found.start())
            if not lines.rows[line - 1].startswith("#!"):
                yield SecurityFact(kind, value, file.path, line)
    for found in () if file.is_prose else _CALL.finditer(lines.text):
        yield SecurityFact("runs", f"{found[1]} in {file.path}", file.path, lines.number_at(found.start()))


def _find_own_runs(skill: Skill, text: str) -> Iterator[SecurityFact]:
    """Yield what the SKILL.md itself asks to run: commands at activation, and keys of its frontmatter."""
    front = skill.peek()
    yield from (
        SecurityFact("runs", f"{key}: in the frontmatter", SKILL_FILE, front.lines.get(key, 1))
        for key in front.extra
        if key in INERT_FIELDS - {"model"}
    )
    for command in find_commands(text):
        line = text.count("\n", 0, max(text.find(command.text), 0)) + 1
        yield SecurityFact("runs", f"!`{mask_secrets(' '.join(command.text.split()))[:200]}`", SKILL_FILE, line)


def _lines_of(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line[:_MAX_LINE]) for number, line in enumerate(text.split("\n"), 1))


class _Lines:
    """Lines as one string, which a pattern searches much faster than each of them, and the line of a place in it."""

    def __init__(self, rows: Iterable[str]) -> None:
        self.rows = [*rows]
        self.text = "\n".join(self.rows)
        self._ends = [*accumulate(len(row) + 1 for row in self.rows)]

    def number_at(self, index: int) -> int:
        return bisect_right(self._ends, index) + 1


# -- findings ----------------------------------------------------------------------------------------------------------


def _find_issues(skill: Skill, files: Sequence[_File]) -> Iterator[Issue]:
    names = {file.path for file in files}
    for file in files:
        findings = [*_find_about_type(file, names)]
        if file.text is not None and file.suffix not in _PLAIN_DATA:
            findings += [*_find_in_comments(file.text), *_find_in_code(file)] if file.is_prose else _find_in_code(file)
        path = os.path.join(skill.folder, *file.path.split("/"))
        yield from (Issue(one.code, "", one.message, path, one.line, "warning") for one in findings)
    claim = CLAIM.search(skill.description)
    if claim is not None:
        message = f"claims every request: {claim[0][:80]!r}"
        line = skill.peek().lines.get("description", 1)
        yield Issue("claims-every-request", "description", message, skill.location, line, "warning")


class _FoundPattern(NamedTuple):
    code: str
    message: str
    line: int


def _find_about_type(file: _File, names: set[str]) -> Iterator[_FoundPattern]:
    kind = _find_type(file.data)
    if kind in _PROGRAM_TYPES and not _has_source(file.path, names):
        yield _FoundPattern("compiled-code", f"is a program ({kind}) without its source", 1)
    is_really = _find_mismatch(file, kind)
    if is_really is not None:
        yield _FoundPattern("misnamed-file", f"is named {file.suffix} and is {is_really}", 1)
    if kind == "a ZIP archive" and _is_locked(file.data):
        yield _FoundPattern("locked-archive", "is an archive with a password, so that nobody can look into it", 1)


def _find_in_comments(text: str) -> Iterator[_FoundPattern]:
    begin = text.find("<!--")
    while begin >= 0 and (end := text.find("-->", begin)) >= 0:
        order = ORDER_IN_COMMENT.search(text, begin, end)
        if order is not None:
            message = f"has instructions in a comment that readers of the page do not see: {order[0][:80]!r}"
            yield _FoundPattern("hidden-instructions", message, text.count("\n", 0, order.start()) + 1)
        begin = text.find("<!--", end)


def _find_in_code(file: _File) -> Iterator[_FoundPattern]:
    lines = _Lines(_lines_that_run(file))
    lowered = lines.text.lower()
    for rule in RULES:
        # Fast path: hardly any file has one of the words without which a rule cannot match.
        if any(word in lowered for word in rule.words):
            found = (match for match in rule.pattern.finditer(lines.text) if not rule.is_harmless(match))
            yield from (_FoundPattern(rule.code, rule.message, lines.number_at(one.start())) for one in found)


_FENCE = compile_pattern(r"[ \t]{0,12}(`{3,20}|~{3,20})[ \t]{0,4}([\w+-]{0,20})")
_DATA_FENCES = frozenset(
    ("json", "yaml", "yml", "toml", "xml", "html", "css", "csv", "diff", "mermaid", "markdown", "md")
)
_INLINE_COMMAND = compile_pattern(r"!`[^`\n]{1,400}`")


def _lines_that_run(file: _File) -> Iterator[str]:
    """Yield the lines of a file, empty but for those that could run: of prose, blocks of code and commands."""
    assert file.text is not None
    fence = language = ""
    is_prose = file.is_prose
    for _, line in _lines_of(file.text):
        if not is_prose:
            yield "" if _is_comment(line) else line
            continue
        match = _FENCE.match(line)
        if match is not None and (not fence or (match[1].startswith(fence) and not match[2])):
            fence, language = ("" if fence else match[1]), match[2].lower()
            yield ""
        elif fence:
            yield "" if language in _DATA_FENCES or _is_comment(line) else line
        else:
            yield " ".join(_INLINE_COMMAND.findall(line))


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith(("#", "//", "--", "* "))


# -- types of files ----------------------------------------------------------------------------------------------------

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x7fELF", "a Linux program"),
    (b"MZ", "a Windows program"),
    (b"\xfe\xed\xfa\xce", "a macOS program"),
    (b"\xfe\xed\xfa\xcf", "a macOS program"),
    (b"\xce\xfa\xed\xfe", "a macOS program"),
    (b"\xcf\xfa\xed\xfe", "a macOS program"),
    (b"\xca\xfe\xba\xbe", "a Java class or a macOS program"),
    (b"\0asm", "a WebAssembly program"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF-", "a PDF"),
)
_PROGRAM_TYPES = frozenset(kind for _, kind in _MAGIC if "program" in kind) | {"compiled Python"}
_ZIPPED = frozenset(
    (
        *(".zip", ".skill", ".docx", ".xlsx", ".pptx", ".dotx", ".xltx", ".potx", ".odt", ".ods", ".odp", ".epub"),
        *(".jar", ".whl", ".apk", ".ipa", ".vsix", ".xpi", ".mcpb", ".nupkg", ".npz", ".kmz", ".3mf", ".usdz"),
        *(".pages", ".numbers", ".key", ".sketch", ".ora"),
    )
)
_SUFFIXES: dict[str, frozenset[str]] = {
    "a PNG picture": frozenset((".png", ".jpg", ".jpeg", ".webp", ".gif", ".ico", ".apng")),
    "a JPEG picture": frozenset((".jpg", ".jpeg", ".png", ".webp", ".jfif", ".gif")),
    "a GIF picture": frozenset((".gif", ".png", ".jpg", ".jpeg", ".webp")),
    "a PDF": frozenset((".pdf", ".ai")),
    "a ZIP archive": _ZIPPED,
    "a gzip archive": frozenset((".gz", ".tgz", ".svgz", ".rds", ".rdata")),
}
"""Kinds of files whose names have one of these suffixes; pictures are often saved under the suffix of another kind."""
_TEXT_SUFFIXES = frozenset(
    (
        ".md",
        ".txt",
        ".py",
        ".sh",
        ".js",
        ".mjs",
        ".ts",
        ".json",
        ".yaml",
        ".yml",
        ".toml",
        ".csv",
        ".html",
        ".css",
        ".svg",
        ".xml",
    )
)
_PICTURE_SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".bmp", ".pdf"))


def _find_type(data: bytes) -> str:
    """Return what the first bytes of a file say that it is; ``""`` for text and what is not known."""
    kind = next((kind for magic, kind in _MAGIC if data.startswith(magic)), "")
    if kind == "a Windows program" and (len(data) < 64 or b"\0" not in data[:64]):  # noqa: PLR2004 - the header of one
        return ""
    if data[2:4] == b"\r\n" and len(data) > 16 and b"\0" in data[4:16]:  # noqa: PLR2004 - the header of a .pyc
        return "compiled Python"
    return kind


def _find_mismatch(file: _File, kind: str) -> str | None:
    """Return what a file is where its name says another kind; ``None`` where the two agree."""
    if kind and file.suffix in _TEXT_SUFFIXES:
        return kind
    if kind and file.suffix in _PICTURE_SUFFIXES and file.suffix not in _SUFFIXES.get(kind, frozenset()):
        return kind
    if file.suffix in _PICTURE_SUFFIXES and file.data.startswith(b"#!"):
        return "a script"
    return None


def _has_source(path: str, names: set[str]) -> bool:
    """Return whether a source that a program could be made from is beside it, or anywhere under its name."""
    stem = posixpath.basename(path).split(".")[0]
    sources = (".c", ".cc", ".cpp", ".rs", ".go", ".py", ".java", ".swift", ".zig", ".ts", ".wat", ".cs", ".kt")
    return any(posixpath.basename(name) == stem + suffix for name in names for suffix in sources)


_ENCRYPTED_BIT = 0x1


def _is_locked(data: bytes) -> bool:
    """Return whether the first entry of a ZIP archive is encrypted."""
    return len(data) > 8 and bool(int.from_bytes(data[6:8], "little") & _ENCRYPTED_BIT)  # noqa: PLR2004 - its flags


def examine_all(skills: Iterable[Skill], limits: Limits) -> tuple[SecurityReport, ...]:
    """Return the reports of some skills; those that cannot be listed are left out."""
    reports = []
    for skill in skills:
        try:
            reports.append(examine(skill, limits))
        except SkillError:
            continue
    return tuple(reports)
