"""The files of evals: the entries of each with their lines and tasks, and what is wrong with them.

A key that could mean ``should_trigger`` is an error, because a query would be read as its opposite. So is any key that
is nearly the name of one that counts. Others belong to other tools (``id``, ``reason``, ``split``), and are left alone.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.errors import Issue, PathTraversalError, ResourceError, SourceError
from prowess.files.directory import Folder, stat_folder
from prowess.files.read import OpenFile
from prowess.names import EVALS_FOLDER, SKILL_FILE, split_resource_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prowess.limits import Limits


_TASK_KEYS = ("files", "checks", "expectations", "assertions", "expected_output")
_CHECK_SHAPES = ({"text"}, {"file"}, {"file", "contains"}, {"command"})
_CHECKS_MESSAGE = 'a check is {"text"}, {"file"}, {"file", "contains"} or {"command"}, each with a string'


class EvalFile(NamedTuple):
    """A file that is in the working folder when a task begins: its path there, and where its content comes from."""

    path: str
    content: str = ""
    """What it holds, if it is not a copy of another file."""
    folder: str = ""
    """The folder with the file that is copied; ``""``: ``content`` counts."""
    source: str = ""
    """The path of the file that is copied, below ``folder``."""


class EvalCheck(NamedTuple):
    """One thing that must be true after a task. One of ``text``, ``file`` and ``command`` is set.

    ``text`` occurs in the model's last answer. ``file`` exists in the working folder and, if ``contains`` is set, holds
    that text. ``command`` ends with status 0 in the working folder.
    """

    text: str = ""
    file: str = ""
    contains: str = ""
    command: str = ""

    def __str__(self) -> str:
        """Return the check in words."""
        if self.command:
            return f"command {self.command}"
        if self.file:
            return f"file {self.file}" + (f" contains {self.contains}" if self.contains else "")
        return f"answer contains {self.text}"


class EvalTask(NamedTuple):
    """What a model finds when it begins a task, what is checked afterwards, and what another model judges."""

    files: tuple[EvalFile, ...] = ()
    checks: tuple[EvalCheck, ...] = ()
    rubric: tuple[str, ...] = ()


def read_eval_file(file: EvalFile, limits: Limits) -> bytes:
    """Return what a file holds at the beginning; raise ``SourceError`` (``bad-evals``) where its source is missing."""
    if not file.folder:
        return file.content.encode()
    try:
        with OpenFile(file.folder, split_resource_path(file.source)) as opened:
            return opened.read_all(limits.max_file_bytes)
    except (ResourceError, PathTraversalError) as error:
        message = f"cannot read the file {file.source!r} of an eval: {error.message}"
        raise SourceError(message, file.folder, "bad-evals") from None


def _parse_task(entry: Mapping[str, Any], folder: str, file: str, limits: Limits) -> EvalTask | None:
    """Return the task part of an entry, or ``None`` where it has none.

    ``folder``: what the paths of files are relative to. Raises ``SourceError`` (``bad-evals``) for a malformed
    part, and for one beyond the limits; ``file`` is named in it.
    """
    if not any(entry.get(key) for key in _TASK_KEYS):
        return None
    try:
        task = EvalTask(_parse_files(entry.get("files") or [], folder), _parse_checks(entry), _parse_rubric(entry))
    except (ValueError, PathTraversalError, ResourceError) as error:
        raise SourceError(f"the task part of an eval is malformed: {error}", file, "bad-evals") from None
    if len(task.checks) + len(task.rubric) > limits.max_eval_checks:
        raise SourceError(f"an eval has more than {limits.max_eval_checks:,} checks and sentences", file, "bad-evals")
    if len(task.files) > limits.max_files_per_skill:
        raise SourceError(f"an eval has more than {limits.max_files_per_skill:,} files", file, "bad-evals")
    return task


def _parse_files(files: Any, folder: str) -> tuple[EvalFile, ...]:
    if isinstance(files, dict) and all(isinstance(content, str) for content in files.values()):
        made = tuple(EvalFile(path, content) for path, content in files.items())
    elif isinstance(files, list) and all(isinstance(path, str) for path in files):
        made = tuple(EvalFile(os.path.basename(path), "", folder, path) for path in files)
    else:
        raise ValueError("'files' must be a list of paths, or a mapping of paths to strings")
    for file in made:
        split_resource_path(file.source or file.path)
        _check_characters(file.content)
    paths = {file.path for file in made}
    if len(paths) < len(made):
        raise ValueError("two of its files have the same name")
    if any(path.startswith(f"{other}/") for other, path in pairwise(sorted(paths, key=lambda path: path.split("/")))):
        raise ValueError("one of its files is also a folder of another one")
    return made


def _check_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a string has an unpaired surrogate") from None


def _parse_checks(entry: Mapping[str, Any]) -> tuple[EvalCheck, ...]:
    checks = entry.get("checks") or []
    if not isinstance(checks, list) or not all(map(_is_check, checks)):
        raise ValueError(_CHECKS_MESSAGE)
    made = tuple(dict.fromkeys(EvalCheck(**check) for check in checks))
    for check in made:
        if check.file:
            split_resource_path(check.file)
        _check_characters(str(check))
    return made


def _is_check(check: Any) -> bool:
    return (
        isinstance(check, dict)
        and set(check) in _CHECK_SHAPES
        and all(isinstance(value, str) and value for value in check.values())
    )


def _parse_rubric(entry: Mapping[str, Any]) -> tuple[str, ...]:
    expected = entry.get("expected_output") or ""
    lists = [entry.get("expectations") or [], entry.get("assertions") or [], [expected] if expected else []]
    sentences = [each for one in lists if isinstance(one, list) for each in one]
    if not all(isinstance(one, list) for one in lists) or not all(isinstance(one, str) and one for one in sentences):
        raise ValueError("'expectations' and 'assertions' must be lists of sentences, and 'expected_output' a string")
    return tuple(dict.fromkeys(sentences))


TEMPLATE_MARK = "Replace this:"
"""How the queries of a new skill begin. They are not evals until somebody has written others."""
_LIST_KEYS = ("evals", "triggers", "queries", "cases")
_QUERY_KEYS = ("query", "prompt", "should_trigger")
_ENTRY_KEYS = (*_QUERY_KEYS, "skill", *_TASK_KEYS)
_NAME_KEYS = ("skill_name", "skill")
_FILE_KEYS = (*_LIST_KEYS, *_NAME_KEYS)
_MISSPELLED_RATIO = 0.84
_MAX_KEY_CHARS = 40
"""A longer key is like none that is known."""
_WHICH_SKILL_MESSAGE = (
    'which skill is meant? Write "skill": "NAME" in every entry, or {"skill": "NAME", "queries": [...]} around them; '
    "or put the file into evals/ of the skill"
)
_SPACES = " \t\r\n"
_LINE_BREAK = re.compile("\n")


class EvalCase(NamedTuple):
    """A query, the skill that it is about, whether it should find that skill, and the file that says so.

    ``task``: what a model gets and what must come of it, for a case that is also a task; ``None`` for any other.
    """

    query: str
    skill: str
    should_trigger: bool = True
    source: str = ""
    task: EvalTask | None = None


class EvalSet(NamedTuple):
    """What a file of evals has: its cases, the lines of entries that a template wrote, and what is wrong."""

    cases: tuple[EvalCase, ...]
    template_lines: tuple[int, ...]
    errors: tuple[Issue, ...]


class _Member(NamedTuple):
    """A key of a JSON object, or an element of a list with the key ``""``, and where the value is in the text."""

    key: str
    key_at: int
    value: Any
    value_at: int


class _Lines:
    """The lines of a string, by the offsets where they end: counting for each entry anew would take quadratic time."""

    def __init__(self, text: str) -> None:
        self._ends = [match.start() for match in _LINE_BREAK.finditer(text)]

    def find(self, at: int) -> int:
        """Return the number of the line at a place of the text, from 1."""
        return bisect_left(self._ends, at) + 1


def list_eval_files(folder: str, limits: Limits) -> list[str]:
    """Return the JSON files in the ``evals/`` of a skill's folder.

    Raises ``SourceError`` (``bad-evals``) where they have more bytes together than the limit.
    """
    evals = os.path.join(folder, EVALS_FOLDER)
    if stat_folder(evals) is None:
        return []
    with Folder(evals) as opened:
        names = [name for name in opened.list_entries(limits.max_entries_per_skill).files if name.endswith(".json")]
        size = sum(identity[2] for identity in map(opened.file_identity, names) if identity is not None)
    if size > limits.max_eval_bytes:
        raise SourceError(f"the JSON files have more than {limits.max_eval_bytes:,} bytes", evals, "bad-evals")
    return [os.path.join(evals, name) for name in names]


def read_eval_set(file: str, limits: Limits) -> EvalSet | None:
    """Return what a file has, or ``None`` when it holds something else, such as the graded answers of a model.

    Raises ``SourceError`` for a file that cannot be read, or that is not JSON.
    """
    text, data = _read_json(file, limits)
    lines = _Lines(text)
    top = _read_members(text, _skip_spaces(text, 0)) if isinstance(data, dict | list) else []
    entries = _find_entries(top, text) if isinstance(data, dict) else top
    if not any(_is_eval(entry.value) for entry in entries):
        return None
    if len(entries) > limits.max_evals:
        raise SourceError(f"more than {limits.max_evals:,} evals in one file", file, "bad-evals")
    errors = list(_check_keys(top, _FILE_KEYS, lines, file)) if isinstance(data, dict) else []
    names = [one.value for one in top if one.key in _NAME_KEYS and isinstance(one.value, str)]
    named = names[0] if names else ""
    folder = find_enclosing_folder(file)
    cases: list[EvalCase] = []
    template_lines: list[int] = []
    for entry in entries:
        line = lines.find(entry.value_at)
        found = list(_check_entry(entry, text, lines, file))
        if found:
            errors += found
        elif _get_query(entry.value).startswith(TEMPLATE_MARK):
            template_lines.append(line)
        else:
            try:
                # The paths in a task are relative to the folder of the skill; without one, to that of the file.
                task = _parse_task(entry.value, folder or os.path.dirname(file), file, limits)
            except SourceError as error:
                errors.append(Issue(error.code, "", error.message, file, line))
                continue
            skill = entry.value.get("skill", named or os.path.basename(folder))
            trigger = entry.value.get("should_trigger", True)
            cases.append(EvalCase(_get_query(entry.value), skill, trigger, file, task))
    if not all(case.skill for case in cases):
        errors.append(Issue("bad-evals", "skill", _WHICH_SKILL_MESSAGE, file, 1))
    return EvalSet(tuple(cases), tuple(template_lines), tuple(errors))


def read_check_commands(file: str, limits: Limits) -> frozenset[str]:
    """Return the commands in the checks of a file; none where it holds no evals."""
    try:
        found = read_eval_set(file, limits)
    except SourceError:
        return frozenset()
    tasks = [case.task for case in found.cases if case.task is not None] if found is not None else []
    return frozenset(check.command for task in tasks for check in task.checks if check.command)


def find_eval_issues(folder: str, limits: Limits) -> Iterator[Issue]:
    """Yield what is wrong with the evals of a skill, and a warning for each entry that a template wrote."""
    try:
        files = list_eval_files(folder, limits)
    except SourceError as error:
        yield Issue(error.code, "", error.message, error.path)
        return
    for file in files:
        try:
            found = read_eval_set(file, limits)
        except SourceError as error:
            yield Issue(error.code, "", error.message, file, 1)
            continue
        if found is not None:
            yield from found.errors
            for line in found.template_lines:
                message = "the query is still the template's: write what a user says"
                yield Issue("placeholder-text", "evals", message, file, line, "warning")


def find_enclosing_folder(file: str) -> str:
    """Return the folder of the skill that holds a file of evals, directly or in ``evals/``; ``""`` when none does."""
    folder = os.path.dirname(file)
    if not os.path.lexists(os.path.join(folder, SKILL_FILE)) and os.path.basename(folder) == EVALS_FOLDER:
        folder = os.path.dirname(folder)
    return folder if os.path.lexists(os.path.join(folder, SKILL_FILE)) else ""


def _find_entries(top: list[_Member], text: str) -> list[_Member]:
    """Return the elements of the list of evals in an object; without one, those of a list whose key is misspelled."""
    lists = [member for member in top if isinstance(member.value, list)]
    held = [one for one in lists if one.key in _LIST_KEYS] or [one for one in lists if _find_meant(one.key, _LIST_KEYS)]
    return _read_members(text, held[0].value_at) if held else []


# -- one entry ---------------------------------------------------------------------------------------------------------


def _is_eval(entry: object) -> bool:
    """Return whether an element of a list was meant as an eval: it has one of the keys, or nearly one."""
    return isinstance(entry, dict) and any(key in _QUERY_KEYS or _find_meant(key, _QUERY_KEYS) for key in entry)


def _get_query(entry: Mapping[str, Any]) -> str:
    query: str = entry.get("query", entry.get("prompt", ""))
    return query


def _check_entry(entry: _Member, text: str, lines: _Lines, file: str) -> Iterator[Issue]:
    if not isinstance(entry.value, dict):
        message = f'an entry must be an object such as {{"query": …}}, not {_name_type(entry.value)}'
        yield Issue("bad-evals", "", message, file, lines.find(entry.value_at))
        return
    members = _read_members(text, entry.value_at)
    yield from _check_keys(members, _ENTRY_KEYS, lines, file)
    yield from _check_switches(members, lines, file)
    for member in members:
        wanted = {"query": str, "prompt": str, "skill": str, "should_trigger": bool}.get(member.key)
        if wanted is not None and not isinstance(member.value, wanted):
            kind = "true or false" if wanted is bool else "a string"
            message = f"{member.key!r} must be {kind}, not {_name_type(member.value)}"
            yield Issue("bad-evals", member.key, message, file, lines.find(member.key_at))
    if not {"query", "prompt"} & set(entry.value) and not any(_find_meant(key, _QUERY_KEYS[:2]) for key in entry.value):
        message = 'the entry has no query: it needs "query" or "prompt"'
        yield Issue("bad-evals", "query", message, file, lines.find(entry.value_at))


def _check_switches(members: list[_Member], lines: _Lines, file: str) -> Iterator[Issue]:
    """Yield an error for each unknown key that is true or false in an entry that lacks ``should_trigger``."""
    keys = {member.key for member in members}
    if any(key == "should_trigger" or _find_meant(key, ("should_trigger",)) for key in keys):
        return
    for member in members:
        if isinstance(member.value, bool) and member.key not in _ENTRY_KEYS:
            message = f"unknown key {member.key!r}: use 'should_trigger' to say whether the query is for the skill"
            yield Issue("bad-evals", member.key, message, file, lines.find(member.key_at))


def _check_keys(members: list[_Member], known: tuple[str, ...], lines: _Lines, file: str) -> Iterator[Issue]:
    seen: set[str] = set()
    for member in members:
        meant = _find_meant(member.key, known)
        if meant:
            message = f"unknown key {member.key!r}; is {meant!r} meant?"
        elif member.key in known and member.key in seen:
            message = f"the key {member.key!r} occurs twice"
        else:
            seen.add(member.key)
            continue
        yield Issue("bad-evals", member.key, message, file, lines.find(member.key_at))


def _find_meant(key: str, known: tuple[str, ...]) -> str:
    """Return the known key that another one misspells; ``""`` when it is known itself, or like none."""
    if key in known or key in _ENTRY_KEYS or key in _FILE_KEYS or len(key) > _MAX_KEY_CHARS:
        return ""
    from difflib import get_close_matches

    plain = key.lower().replace("-", "_")
    close = get_close_matches(plain, known, n=1, cutoff=_MISSPELLED_RATIO)
    joined = {one.replace("_", ""): one for one in known}
    return close[0] if close else joined.get(plain.replace("_", ""), "")


def _name_type(value: object) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", dict: "an object", list: "a list"}
    if isinstance(value, str):
        return f"the string {value[:40]!r}"
    return "null" if value is None else kinds[type(value)]


# -- JSON with places --------------------------------------------------------------------------------------------------


def _read_json(file: str, limits: Limits) -> tuple[str, object]:
    folder, name = os.path.split(file)
    try:
        with OpenFile(folder, (name,)) as opened:
            data = opened.read_all(limits.max_eval_bytes)
        text = data.decode(json.detect_encoding(data))
        return text, json.loads(text)
    except ResourceError as error:
        raise SourceError(f"cannot read the evals: {error.message}", file, error.code) from None
    except (ValueError, RecursionError) as error:
        raise SourceError(f"not JSON: {error}", file, "bad-evals") from None


def _read_members(text: str, at: int) -> list[_Member]:
    """Return the members of the object, or the elements of the list, that begins at ``at`` of valid JSON."""
    decoder = json.JSONDecoder()
    members: list[_Member] = []
    is_object = text[at] == "{"
    at = _skip_spaces(text, at + 1)
    while text[at] not in "]}":
        key, key_at = "", at
        if is_object:
            key, at = decoder.raw_decode(text, at)
            at = _skip_spaces(text, _skip_spaces(text, at) + 1)
        value, end = decoder.raw_decode(text, at)
        members.append(_Member(key, key_at, value, at))
        at = _skip_spaces(text, end)
        if text[at] == ",":
            at = _skip_spaces(text, at + 1)
    return members


def _skip_spaces(text: str, at: int) -> int:
    while text[at] in _SPACES:
        at += 1
    return at
