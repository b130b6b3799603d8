"""Parsing and validation of one SKILL.md: from a string, from a file, or only its head."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from prowess.errors import Issue, ResourceError, SkillLoadError, SkillValidationError, make_unreadable_error
from prowess.files.directory import count_hard_links, stat_folder
from prowess.files.read import OpenFile
from prowess.files.tree import list_tree
from prowess.format.frontmatter.parse import needs_more_bytes
from prowess.format.head import LoadPolicy, check_mode, find_strict_issues, is_repair, read_head
from prowess.format.rules import field_issues
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE
from prowess.skills.resources import git_issues, tree_issues
from prowess.skills.skill import Skill, make_skill_from_document
from prowess.skills.skill_files import InlineFiles, SkillLocation
from prowess.text.hidden_characters import find_hidden_points
from prowess.text.markdown_code import FENCE_LINE, find_code_spans, is_fence_end
from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.files.tree import TreeListing
    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.format.frontmatter.parse import ParsedHead
    from prowess.limits import Limits
    from prowess.literals import Mode
    from prowess.text.spans import Span


_NEVER_REFUSED = frozenset(("empty-body", "hidden-text"))
"""Warnings that strict mode does not refuse either: no rule of the specification is broken."""


class ParsedSkill(NamedTuple):
    """A skill, its body without whitespace at both ends, and the issues of its file: warnings and information."""

    skill: Skill
    body: str
    issues: tuple[Issue, ...]

    @property
    def warnings(self) -> tuple[Issue, ...]:
        """The violations that lenient mode accepts and strict mode refuses; in strict mode there are none."""
        return tuple(i for i in self.issues if i.severity == "warning" and i.code not in _NEVER_REFUSED)


def parse_skill(
    text: str | bytes,
    path: str | os.PathLike[str] | None = None,
    mode: Mode = "strict",
    check_dir: bool = True,
    *,
    repair: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> ParsedSkill:
    """Return the skill that ``text`` holds, as if it were the file at ``path``. Nothing is opened.

    Strict mode raises ``SkillLoadError`` with every violation. Lenient mode returns those that it can accept as issues,
    and repairs what real files get wrong (unless ``repair=False``). ``check_dir``: the name must be the folder's.
    """
    check_mode(mode)
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    file_path = "" if path is None else os.path.abspath(os.fspath(path))
    whole = len(data) <= limits.max_frontmatter_bytes
    return _parse_bytes(data, file_path, LoadPolicy(mode, repair, limits, check_dir), whole=whole)


def _parse_bytes(data: bytes, file_path: str, policy: LoadPolicy, *, whole: bool) -> ParsedSkill:
    """Return the skill in the bytes of a file; ``whole``: they end within the limit for frontmatter."""
    limits = policy.limits
    head = data[: limits.max_frontmatter_bytes]
    folder = os.path.basename(os.path.dirname(file_path)) if file_path else None
    document = read_head(head, quick=False, whole=whole, policy=policy, folder=folder, path=file_path)
    body = _decode_body(data[document.body_offset :], document.body_offset, file_path, limits)
    base, file = os.path.split(file_path)
    inline = SkillLocation(policy=policy, origin="inline", files=InlineFiles(body))
    location = SkillLocation(base, file, policy=policy) if file_path else inline
    issues = (*document.issues, *_body_issues(body, document.front, file_path))
    return ParsedSkill(make_skill_from_document(location, "", document, None), body.strip(), issues)


def _decode_body(data: bytes, at: int, file_path: str, limits: Limits) -> str:
    if len(data) > limits.max_body_bytes:
        raise SkillLoadError(
            [Issue("body-too-large", "body", f"has more than {limits.max_body_bytes} bytes", file_path)], file_path
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the body is not UTF-8: byte 0x{data[error.start]:02X} at byte {at + error.start}"
        raise SkillLoadError([Issue("body-not-text", "body", message, file_path)], file_path) from None


def _body_issues(body: str, front: Frontmatter, file_path: str) -> list[Issue]:
    line = max(front.lines.values(), default=0) + 1
    issues: list[Issue] = []
    if not body.strip():
        issues.append(Issue("empty-body", "body", "there are no instructions", file_path, line, "warning"))
    if points := find_hidden_points(body):
        message = f"holds hidden characters ({', '.join(points[:8])})"
        issues.append(Issue("hidden-text", "body", message, file_path, line, "warning"))
    return issues


def parse_skill_file(
    path: str | os.PathLike[str],
    mode: Mode = "strict",
    check_dir: bool = True,
    *,
    repair: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> ParsedSkill:
    """Return the skill in a SKILL.md (or in a folder that holds one), body included.

    Raises ``SkillValidationError`` when the file cannot be read, ``SkillLoadError`` as ``parse_skill`` does.
    """
    check_mode(mode)
    file_path = _skill_file_path(path)
    policy = LoadPolicy(mode, repair, limits, check_dir)
    data, whole = _read_file(file_path, policy)
    return _parse_bytes(data, file_path, policy, whole=whole)


def _read_file(file_path: str, policy: LoadPolicy) -> tuple[bytes, bool]:
    """The file as far as it is needed, and whether it ends within the limit for frontmatter."""
    try:
        with OpenFile(*_split_path(file_path)) as file:
            data, whole = _read_head(file, policy)
            # Without an end of the frontmatter there is no body to read: the file is refused for its head.
            if whole or not needs_more_bytes(data, repair=policy.repairs):
                data += file.read(policy.limits.max_body_bytes + 1, len(data))  # one byte more shows a body too large
    except ResourceError as error:
        raise make_unreadable_error(error, file_path) from None
    return data, whole


def _read_head(file: OpenFile, policy: LoadPolicy) -> tuple[bytes, bool]:
    limits = policy.limits
    return file.read_head(
        limits.head_step, limits.max_frontmatter_bytes, lambda head: needs_more_bytes(head, repair=policy.repairs)
    )


def read_metadata(
    path: str | os.PathLike[str],
    mode: Mode = "strict",
    check_dir: bool = True,
    *,
    repair: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Skill:
    """Return the skill in a SKILL.md (or a folder that holds one); only the head of the file is read."""
    check_mode(mode)
    file_path = _skill_file_path(path)
    policy = LoadPolicy(mode, repair, limits, check_dir)
    try:
        with OpenFile(*_split_path(file_path)) as file:
            head, whole = _read_head(file, policy)
            identity = file.identity
    except ResourceError as error:
        raise make_unreadable_error(error, file_path) from None
    folder = os.path.basename(os.path.dirname(file_path))
    document = read_head(head, quick=False, whole=whole, policy=policy, folder=folder, path=file_path)
    base, name = os.path.split(file_path)
    return make_skill_from_document(SkillLocation(base, name, policy=policy), "", document, identity)


def validate(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> tuple[Issue, ...]:
    """Return every finding about a skill's folder (or its SKILL.md) under the strict rules.

    A bad skill raises nothing.
    """
    file_path = _skill_file_path(path)
    try:
        issues = list(_file_issues(file_path, limits))
        tree = list_tree(os.path.dirname(file_path), (), limits)
    except SkillValidationError as error:
        return (Issue(error.code, "", error.message, file_path),)
    except OSError as error:
        return (*issues, Issue("unreadable-directory", "", f"cannot be listed: {error.strerror}", file_path))
    return (
        *issues,
        *_missing_reference_issues(file_path, issues, tree, limits),
        *tree_issues(tree, file_path, limits),
        *git_issues(tree, file_path),
        *_hard_link_issues(os.path.dirname(file_path), tree.files, file_path),
    )


def _missing_reference_issues(
    file_path: str, issues: list[Issue], tree: TreeListing, limits: Limits
) -> tuple[Issue, ...]:

    if any(issue.code == "frontmatter-too-large" for issue in issues):  # reading it again would find no body either
        return ()
    try:
        body_offset = read_metadata(file_path, "lenient", limits=limits).body_offset
    except SkillValidationError:  # without a readable head nobody knows where the instructions begin
        return ()
    return tuple(_find_missing_references(file_path, body_offset, tree, limits))


def _hard_link_issues(folder: str, files: list[str], file_path: str) -> list[Issue]:
    """Return a warning for each file with hard links: it changes whenever somebody writes to it under another name."""
    names = [path for path in files if count_hard_links(os.path.join(folder, path)) > 1]
    return [Issue("hard-link", path, "has other names elsewhere", file_path, 0, "warning") for path in names]


def _file_issues(file_path: str, limits: Limits) -> tuple[Issue, ...]:
    try:
        return parse_skill_file(file_path, limits=limits).issues
    except SkillLoadError as error:
        data, whole = _read_file(file_path, LoadPolicy(limits=limits))
        return _with_later_issues(error.issues, data, file_path, limits, whole=whole)


def text_issues(
    text: str | bytes, path: str, *, limits: Limits = DEFAULT_LIMITS, head: ParsedHead | None = None
) -> tuple[Issue, ...]:
    """Return every finding about the text of a SKILL.md under the strict rules, as if it were the file at ``path``.

    ``head`` is its head as lenient mode reads it, where the caller has parsed it already.
    """
    if isinstance(text, bytes) and head is not None and not head.issues:  # strict mode reads the same fields
        issues = field_issues(head.front, mode="strict", folder=os.path.basename(os.path.dirname(path)), path=path)
        with suppress(SkillLoadError):
            body = _decode_body(text[head.body_offset :], head.body_offset, path, limits)
            return (*sorted(issues, key=lambda issue: issue.severity != "error"), *_body_issues(body, head.front, path))
    try:
        return parse_skill(text, path, limits=limits).issues
    except SkillLoadError as error:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return _with_later_issues(error.issues, data, path, limits, whole=len(data) <= limits.max_frontmatter_bytes)


def _with_later_issues(
    first: tuple[Issue, ...], data: bytes, file_path: str, limits: Limits, *, whole: bool
) -> tuple[Issue, ...]:
    """Return the issues that ended strict parsing, and those that a reader finds who goes on after them."""
    folder = os.path.basename(os.path.dirname(file_path))
    rest: list[Issue] = []
    with suppress(SkillValidationError):  # an author learns of as much as can be read
        head, rest = find_strict_issues(
            data[: limits.max_frontmatter_bytes], whole=whole, folder=folder, path=file_path, limits=limits
        )
        rest += _body_issues(
            _decode_body(data[head.body_offset :], head.body_offset, file_path, limits), head.front, file_path
        )
    known = {(issue.code, issue.field) for issue in first}
    # Repairs are not findings here: the fault that needed one is already among the first issues.
    more = (i for i in rest if (i.code, i.field) not in known and not is_repair(i))
    return (*first, *more)


def _skill_file_path(path: str | os.PathLike[str]) -> str:
    file_path = os.path.abspath(os.fspath(path))
    return os.path.join(file_path, SKILL_FILE) if stat_folder(file_path) is not None else file_path


def _split_path(file_path: str) -> tuple[str, tuple[str, ...]]:
    folder, name = os.path.split(file_path)
    return folder, (name,)


def _find_missing_references(file: str, body_offset: int, tree: TreeListing, limits: Limits) -> Iterator[Issue]:
    """Yield a warning for each file that the instructions of a SKILL.md name and its folder does not have.

    ``file``: the path of the SKILL.md; ``body_offset``: the byte at which its instructions begin; ``tree``: what is in
    the folder. A file that is named several times is reported where it is named first.
    """
    if tree.bound:  # the listing stopped at a limit, and the file may be among those that it did not reach
        return
    known = {*tree.files, *tree.links, *tree.others, *tree.unreadable}
    missing: dict[str, FileReference] = {}
    for mention in _read_mentions(file, body_offset, limits):
        # Instructions may name any number of files: the limit keeps what is remembered of them small.
        if len(missing) < limits.max_files_per_skill and not _is_known(mention.path, known):
            missing.setdefault(mention.path, mention)
    by_name = {_fold_name(path): path for path in tree.files}  # another folder or case is the commonest mistake
    for path, mention in missing.items():
        meant = by_name.get(_fold_name(path))
        message = "is not a file of the skill" + (f"; there is {meant}" if meant else "")
        yield Issue("missing-reference", mention.written, message, file, mention.line, "warning")


def _read_mentions(file: str, body_offset: int, limits: Limits) -> Iterator[FileReference]:
    """Return the files that the instructions of a SKILL.md name, each with its line; none where it cannot be read."""
    folder, name = os.path.split(file)
    try:
        with OpenFile(folder, (name,)) as opened:
            data = opened.read(limits.max_frontmatter_bytes + limits.max_body_bytes)
    except ResourceError:
        return iter(())
    first_line = data.count(b"\n", 0, body_offset) + 1
    return find_file_references(data[body_offset:].decode("utf-8", "replace"), first_line)


def _is_known(path: str, known: set[str]) -> bool:
    """Return whether ``path``, or a folder above it, is among the ``known`` paths.

    Below a link or a folder that cannot be read nothing was listed, and other findings report these.
    """
    parts = path.split("/")
    return any("/".join(parts[:count]) in known for count in range(1, len(parts) + 1))


def _fold_name(path: str) -> str:
    return path.rpartition("/")[2].casefold()


# No pattern here can backtrack: a mebibyte of anything is searched in one pass (tests/format/test_file_references.py).
_FOLDERS = frozenset(("scripts", "references", "assets"))
_LINK = compile_pattern(r"\]\([ \t]*+(?:<([^<>]*+)>|([^\s()<>]++))[ \t]*+(?:[\"'(][^\"'()]*+[\"')])?+[ \t]*+\)")
_DEFINITION = compile_pattern(r" {0,3}\[(?!\^)[^\[\]]++\]:[ \t]*+<?([^\s<>]++)")
_COMMENT = compile_pattern(r"(<!--|-->)")
_SCHEME = compile_pattern(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PLAIN = compile_pattern(r"[\w.@+ -]*[\w@+-]")
_ENDING = compile_pattern(r"[A-Za-z][A-Za-z0-9]{0,9}")


class FileReference(NamedTuple):
    """A file that the instructions name: its path in the skill, the text that names it, and the number of the line."""

    path: str
    written: str
    line: int


def find_file_references(text: str, first: int = 1) -> Iterator[FileReference]:
    """Yield the files that Markdown names, line by line; ``first`` is the number of its first line."""
    for number, line in _iter_prose_lines(text, first):
        spans = find_code_spans(line)
        for written in _find_link_targets(_remove_spans(line, spans)):
            if path := _as_file_path(written):
                yield FileReference(path, written, number)
        for begin, end in spans:
            # Only the first word: the arguments of a command may name files of the user's project.
            word = next(iter(line[begin:end].split()), "")
            path = _as_file_path(word)
            if path.partition("/")[0] in _FOLDERS:
                yield FileReference(path, word, number)


def _iter_prose_lines(text: str, first: int) -> Iterator[tuple[int, str]]:
    """Yield the lines outside fenced blocks, each with its number and without its comments."""
    fence, is_in_comment = "", False
    for number, line in enumerate(text.split("\n"), first):
        mark = FENCE_LINE.match(line)
        if fence:
            if is_fence_end(fence, mark):
                fence = ""
        elif mark and not is_in_comment:
            fence = mark[1]
        else:
            shown, is_in_comment = _strip_comments(line, is_in_comment=is_in_comment)
            yield number, shown


def _strip_comments(line: str, *, is_in_comment: bool) -> tuple[str, bool]:
    """Return a line without its comments, and whether a comment is still open at its end."""
    shown: list[str] = []
    for piece in _COMMENT.split(line):
        if piece in {"<!--", "-->"}:
            is_in_comment = piece == "<!--"
        elif not is_in_comment:
            shown.append(piece)
    return "".join(shown), is_in_comment


def _remove_spans(line: str, spans: list[Span]) -> str:
    """Return the line without its code: a link that is shown as code leads nowhere."""
    begins, ends = [0, *(end for _, end in spans)], [*(begin for begin, _ in spans), len(line)]
    return "".join(line[begin:end] for begin, end in zip(begins, ends, strict=True))


def _find_link_targets(line: str) -> Iterator[str]:
    for link in _LINK.finditer(line):
        yield link[1] or link[2] or ""
    if definition := _DEFINITION.match(line):
        yield definition[1]


def _as_file_path(written: str) -> str:
    """Return the path in the skill that a target or a word can mean; ``""`` when it can mean no file."""
    if _SCHEME.match(written):
        return ""
    path = unquote(written.partition("#")[0].partition("?")[0]).removeprefix("./")
    stem, _, ending = path.rpartition("/")[2].rpartition(".")
    is_plain = all(_PLAIN.fullmatch(part) for part in path.split("/"))
    return path if is_plain and stem.strip(".") and _ENDING.fullmatch(ending) else ""
