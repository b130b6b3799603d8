"""The error tree, and the issue: one finding about one file.

::

    SkillError
    ├── SkillValidationError            a skill that cannot be used, or a file that cannot be read
    │   ├── SkillLoadError              has every issue of the file
    │   │   └── InvalidFrontmatterError also if the name or the description is missing
    │   │       ├── NoFrontmatterError
    │   │       └── UnterminatedFrontmatterError
    │   └── EmptySkillBodyError
    ├── UnknownSkillError               also a KeyError
    ├── DuplicateSkillError             two skills have one name, with on_duplicate="error"
    ├── ResourceError
    │   ├── PathTraversalError
    │   ├── ResourceNotFoundError       also a FileNotFoundError
    │   ├── ResourceTooLargeError
    │   ├── BinaryResourceError
    │   └── ResourceChangedError        a file changed while it was read
    ├── MaxActiveError                  too many skills are active
    ├── SkillFilteredError              a filter hides the skill
    ├── SkillNotActiveError             the skill is not active
    ├── NotTrustedError                 nobody has granted what a skill would run
    ├── SandboxError                    a program cannot run, or not as safely as was asked for
    ├── SourceError                     also a ValueError
    ├── FetchError                      another machine did not send something, or sent something wrong
    └── InstallError                    something could not be installed, updated, removed or verified
        ├── BadReferenceError           also a ValueError: a text does not name a source
        ├── AlreadyInstalledError
        ├── NotInstalledError
        ├── NameTakenError              the name belongs to a skill from another source
        ├── LocalEditsError             an update would overwrite what somebody changed by hand
        ├── LockMismatchError           the disk is not what the lock file says
        ├── BusyError                   another process is changing the same skills
        ├── GitError
        └── UnsafeTreeError             a skill contains files that are not allowed

Every error has a kebab-case ``code``, says what is wrong and where, and hints at the remedy.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from prowess.escapes import escape_line
from prowess.hints import HINTS as HINTS  # noqa: PLC0414 - given on: whoever catches an error finds its remedy here

if TYPE_CHECKING:
    from collections.abc import Iterable

Severity = Literal["error", "warning", "info"]

MAX_LISTED_NAMES = 20
"""Names that an error message lists where no ``Limits`` say otherwise; they cannot be asked here, being above."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One finding: which rule (``code``), which field, what, in which file and line, and how bad.

    ``error``: the skill is not usable (under the mode that was asked for); ``warning``: it loads, and something
    should be mended; ``info``: worth knowing.
    """

    code: str
    field: str
    message: str
    path: str = ""
    line: int = 0
    severity: Severity = "error"

    @property
    def hint(self) -> str:
        """What to do about it."""
        return HINTS.get(self.code, "")

    def __str__(self) -> str:
        """``path:line: severity code: field: message`` on one line, leaving out what is not known."""
        where = f"{self.path}:{self.line}" if self.line else self.path
        head = f"{where}: " if where else ""
        subject = f"{self.field}: " if self.field else ""
        return escape_line(f"{head}{self.severity} {self.code}: {subject}{self.message}")


class SkillError(Exception):
    """The root of every error that Prowess raises."""

    code = "skill-error"

    def __init__(self, message: str, path: str = "", code: str = "") -> None:
        super().__init__(message)
        self._made_from: tuple[object, ...] = (message, path, code)
        self.message = message
        self.path = path
        if code:
            self.code = code

    @property
    def hint(self) -> str:
        """What to do about it."""
        return HINTS.get(self.code, "")

    def about(self, what: str, then: str = "") -> Self:
        """The same error, saying first what it is about, where that is given, and last what else is to be known."""
        self.message = f"{f'{what}: ' if what else ''}{self.message}{then}"
        return self

    def __reduce__(self) -> tuple[type, tuple[object, ...], dict[str, object]]:
        """Errors cross process boundaries whole."""
        return type(self), self._made_from, {"message": self.message}

    def __str__(self) -> str:
        """Where, what, and what to do, on one line whatever a path or a message holds."""
        where = f"{self.path}: " if self.path and self.path not in self.message else ""
        remedy = f" ({self.hint})" if self.hint else ""
        return escape_line(f"{where}{self.message}{remedy}")


class SkillValidationError(SkillError):
    """A skill that cannot be used, or a file of it that cannot be read."""

    code = "unreadable"


class SkillLoadError(SkillValidationError):
    """Every violation of one SKILL.md, in ``issues``."""

    code = "invalid-skill"

    def __init__(self, issues: Iterable[Issue], path: str = "") -> None:
        self.issues = tuple(issues)
        path = path or next((i.path for i in self.issues if i.path), "")
        first = next((i.code for i in self.issues if i.severity == "error"), self.code)
        super().__init__("; ".join(_describe_issue(i) for i in self.issues), path, first)
        self._made_from = (self.issues, path)

    @property
    def offset(self) -> int:
        """Where the body begins: unknown, hence 0."""
        return 0

    def __str__(self) -> str:
        """The path, then every issue with its line and remedy, all on one line."""
        where = f"{self.path}: " if self.path else ""
        return escape_line(
            where + "; ".join(_describe_issue(i) + (f" ({i.hint})" if i.hint else "") for i in self.issues)
        )


def _describe_issue(issue: Issue) -> str:
    line = f"line {issue.line}: " if issue.line else ""
    return f"{line}{issue.field}: {issue.message}" if issue.field else line + issue.message


class InvalidFrontmatterError(SkillLoadError):
    """Frontmatter that is missing, not closed, not YAML, against the YAML rules, or without a required field."""

    code = "invalid-frontmatter"


def as_load_error(issues: Iterable[Issue], path: str = "") -> SkillLoadError:
    """The error for a file with these issues: an ``InvalidFrontmatterError`` if it lacks a required field as text."""
    found = tuple(issues)
    return (InvalidFrontmatterError if any(map(_is_required_field_missing, found)) else SkillLoadError)(found, path)


def _is_required_field_missing(issue: Issue) -> bool:
    return issue.field in {"name", "description"} and issue.code in {f"missing-{issue.field}", "wrong-type"}


class NoFrontmatterError(InvalidFrontmatterError):
    """The first line that is not blank is no ``---``."""

    code = "no-frontmatter"


class UnterminatedFrontmatterError(InvalidFrontmatterError):
    """The text ends before a closing ``---`` line."""

    code = "unterminated-frontmatter"


class EmptySkillBodyError(SkillValidationError):
    """Instructions were asked for, and there are none."""

    code = "empty-body"


class UnknownSkillError(SkillError, KeyError):
    """No skill of that name; the message lists those that exist, nearest first."""

    code = "unknown-skill"

    def __init__(
        self,
        name: str,
        available: Iterable[str] = (),
        most: int = MAX_LISTED_NAMES,
        why: str = "",
        looked_in: Iterable[str] = (),
    ) -> None:
        folders = tuple(looked_in)
        names = sorted(available)
        self.name = name
        self.available = sort_by_similarity(name, names)
        shown = ", ".join(self.available[:most])
        more = f" and {len(names) - most} more" if len(names) > most else ""
        known = f"available: {shown}{more}" if names else _describe_no_skills(folders, most)
        reason = f"; {why}" if why else ""
        super().__init__(f"unknown skill {name[:_MAX_COMPARED_CHARS]!r}{reason}; {known}")
        self._made_from = (name, tuple(names), most, why, folders)

    @property
    def hint(self) -> str:
        """What to do about it: where there are no skills, none is to be chosen."""
        return HINTS["unknown-skill" if self.available else "no-skills"]


def _describe_no_skills(folders: tuple[str, ...], most: int) -> str:
    if not folders:
        return "no skills are available"
    more = f" and {len(folders) - most} more" if len(folders) > most else ""
    return f"no skills were found in {', '.join(folders[:most])}{more}"


class DuplicateSkillError(SkillError):
    """Two skills of one name where that was not allowed."""

    code = "duplicate-name"


class ResourceError(SkillError):
    """A file of a skill that cannot be read."""

    code = "unreadable"


class PathTraversalError(ResourceError):
    """A path that leaves the skill's folder, or that could on some platform."""

    code = "path-escape"


class ResourceNotFoundError(ResourceError, FileNotFoundError):
    """No such file in the skill."""

    code = "not-found"

    def __init__(self, message: str, path: str = "", code: str = "") -> None:
        super().__init__(message, path, code)
        self.errno = errno.ENOENT


class ResourceTooLargeError(ResourceError):
    """The file is larger than the caller's bound."""

    code = "too-large"


class BinaryResourceError(ResourceError):
    """Text was asked for, and the file is not UTF-8 text."""

    code = "binary"


class ResourceChangedError(ResourceError):
    """The file changed while it was read, so what was read is not what it holds."""

    code = "changed-during-read"


class MaxActiveError(SkillError):
    """As many skills are active as the session allows."""

    code = "max-active"


class SkillFilteredError(SkillError):
    """The skill exists, and is not available in this state."""

    code = "filtered"


class SkillNotActiveError(SkillError):
    """Only an active skill can be deactivated."""

    code = "not-active"


class NotTrustedError(SkillError):
    """Something of a skill would run, and no person has granted that.

    ``request`` is what a person can be asked (a ``TrustRequest``), where the policy is to ask later (``defer``).
    """

    code = "not-trusted"

    def __init__(self, message: str, path: str = "", code: str = "", request: Any = None) -> None:  # noqa: ANN401 - a layer above
        super().__init__(message, path, code)
        self._made_from = (message, path, code, request)
        self.request = request


class SandboxError(SkillError):
    """A program cannot be run, or not in the isolation that was asked for."""

    code = "no-sandbox"


class SourceError(SkillError, ValueError):
    """A place to load skills from that makes no sense."""

    code = "bad-argument"


class FetchError(SkillError):
    """Something could not be fetched, may not be fetched, or is not what it should be."""

    code = "fetch-failed"


class InstallError(SkillError):
    """Something could not be installed, updated, removed or proven."""

    code = "install-failed"


class BadReferenceError(InstallError, ValueError):
    """A text that names no skill and no source, or that could do harm."""

    code = "bad-reference"


class AlreadyInstalledError(InstallError):
    """There is something where the skill would go."""

    code = "already-installed"


class NotInstalledError(InstallError):
    """Neither the project nor the user has it."""

    code = "not-installed"


class NameTakenError(InstallError):
    """The name belongs to a skill that came from another source."""

    code = "name-taken"


class LocalEditsError(InstallError):
    """An update would overwrite what someone changed by hand."""

    code = "local-edits"


class LockMismatchError(InstallError):
    """What is there, or what came, is not what the lock file says."""

    code = "lock-mismatch"


class BusyError(InstallError):
    """Another process is changing the same skills and did not finish in time."""

    code = "busy"


class GitError(InstallError):
    """git is missing, refused, failed or took too long."""

    code = "git-failed"


class UnsafeTreeError(InstallError):
    """A tree with files that no skill may hold: links, submodules, odd names, too much."""

    code = "unsafe-name"


_MAX_COMPARED_CHARS = 128
_MAX_SUGGESTIONS = 3
_SUGGESTION_CUTOFF = 0.72  # below it suggestions are more often wrong than right: csv-report, folder-report
_MAX_COMPARED_NAMES = 2_000  # spelling distance costs about 20 µs a name


def sort_by_similarity(name: str, names: list[str]) -> list[str]:
    """The names, those spelled like ``name`` in front, the rest in order."""
    first = find_close_names(name, names)
    return first + [known for known in names if known not in first]


def find_close_names(name: str, names: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """The names that are spelled like ``name``, the nearest first; empty where none is.

    ``cutoff``: how alike they have to be, 1 being the same. Case and Unicode form count for nothing: names that differ
    in them alone come first of all.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only when something went wrong

    wanted = fold_name(name[:_MAX_COMPARED_CHARS])
    folded: dict[str, list[str]] = {}
    for known in names:
        folded.setdefault(fold_name(known), []).append(known)
    keys = list(folded)
    begins = [key for key in keys if key[:2] == wanted[:2]] if len(keys) > _MAX_COMPARED_NAMES else keys
    close = get_close_matches(wanted, begins[:_MAX_COMPARED_NAMES], n=3, cutoff=cutoff)
    return [known for key in dict.fromkeys((wanted, *close)) for known in folded.get(key, ())]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """``did you mean a or b?`` with the names spelled like ``name``; ``""`` where there are none."""
    close = find_close_names(name, names, _SUGGESTION_CUTOFF)[:_MAX_SUGGESTIONS]
    return f"did you mean {' or '.join(close)}?" if close else ""


def fold_name(name: str) -> str:
    """The name without what people do not hear: case, and the Unicode form of its characters."""
    from unicodedata import normalize  # noqa: PLC0415 - only when something went wrong

    return normalize("NFKC", normalize("NFKC", name).casefold())
