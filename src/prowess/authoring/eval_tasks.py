"""The task part of an eval: files to begin with, and what must be true when a model has carried out the prompt.

``files`` is a list of paths in the folder of the skill, or a mapping of paths to texts. ``checks`` is a list of
``{"text"}``, ``{"file"}``, ``{"file", "contains"}`` and ``{"command"}``. ``expectations``, ``assertions`` and
``expected_output`` are sentences that another model judges.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.errors import PathTraversalError, ResourceError, SourceError
from prowess.files.read import OpenFile
from prowess.names import split_resource_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.limits import Limits

TASK_KEYS = ("files", "checks", "expectations", "assertions", "expected_output")
_CHECK_SHAPES = ({"text"}, {"file"}, {"file", "contains"}, {"command"})
_CHECKS_MESSAGE = 'a check is {"text"}, {"file"}, {"file", "contains"} or {"command"}, each with a text'


class EvalFile(NamedTuple):
    """A file that lies in the working folder when a task begins: its path there, and where its content comes from."""

    path: str
    content: str = ""
    """What it holds, if it is no copy of another file."""
    folder: str = ""
    """The folder with the file that is copied; ``""``: ``content`` counts."""
    source: str = ""
    """The path of the file that is copied, below ``folder``."""


class EvalCheck(NamedTuple):
    """One thing that must be true after a task. One of ``text``, ``file`` and ``command`` is set.

    ``text`` stands in the model's last answer. ``file`` exists in the working folder and, if ``contains`` is set, holds
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


def parse_task(entry: Mapping[str, Any], folder: str, file: str, limits: Limits) -> EvalTask | None:
    """Return the task part of an entry, or ``None`` where it has none.

    ``folder``: what the paths of files are relative to. Raises ``SourceError`` (``bad-evals``) for a malformed
    part, and for one beyond the limits; ``file`` is named in it.
    """
    if not any(entry.get(key) for key in TASK_KEYS):
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
        raise ValueError("'files' is a list of paths, or a mapping of paths to texts")
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
        raise ValueError("a text has half of a character") from None


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
        raise ValueError("'expectations' and 'assertions' are lists of sentences, and 'expected_output' is a text")
    return tuple(dict.fromkeys(sentences))
