"""The tree of errors, and the issue: one finding about one file.

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
    ├── PolicyError                     a policy file refuses it, or is malformed
    ├── SandboxError                    a program cannot run, or not as safely as was asked for
    ├── SourceError                     also a ValueError
    │   └── MissingPackageError         also an ImportError: the package that an adapter needs is missing
    ├── FetchError                      another machine did not send something, or sent something wrong
    ├── ModelError                      a model cannot be used, or did not answer as it should
    └── InstallError                    something could not be installed, updated, removed or verified
        ├── BadReferenceError           also a ValueError: a string that does not name a source
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
from typing import TYPE_CHECKING, Any, Self

from prowess.hints import HINTS as HINTS  # noqa: PLC0414 - given on: whoever catches an error finds its remedy here
from prowess.text.escapes import escape_line
from prowess.text.spelling import MAX_COMPARED_CHARS, sort_by_similarity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.literals import Severity as Severity  # noqa: PLC0414 - given on, for type checkers
else:
    # Frameworks evaluate the annotations of `Issue`, such as for a JSON schema. The exact type would load typing.
    Severity = str

MAX_LISTED_NAMES = 20
"""How many names an error message lists by default. ``Limits`` takes it from here, because it is in a layer above."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One finding: the rule (``code``), the field, the message, the file and line, and the severity.

    ``error`` means that the skill cannot be used in the mode that was asked for, ``warning`` that it loads and should
    be fixed, and ``info`` that something is worth knowing.
    """

    code: str
    field: str
    message: str
    path: str = ""
    line: int = 0
    severity: Severity = "error"

    @property
    def hint(self) -> str:
        """What to do about it; ``""`` when the message itself says that."""
        return HINTS.get(self.code, "")

    def __str__(self) -> str:
        """Return ``path:line: severity code: field: message`` on one line, without the parts that are not known."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        head = f"{place}: " if place else ""
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
        """What to do about it; ``""`` when the message itself says that."""
        return HINTS.get(self.code, "")

    def about(self, what: str, then: str = "") -> Self:
        """Return this error with a message that begins with ``what``, when that is given, and ends with ``then``."""
        self.message = f"{f'{what}: ' if what else ''}{self.message}{then}"
        return self

    def __reduce__(self) -> tuple[type, tuple[object, ...], dict[str, object]]:
        """Return what a pickle needs, so that an error crosses the boundary of a process with all its fields."""
        return type(self), self._made_from, {"message": self.message}

    def __str__(self) -> str:
        """Return the path, the message and the remedy on one line, whatever a path or a message holds."""
        place = f"{self.path}: " if self.path and self.path not in self.message else ""
        remedy = f" ({self.hint})" if self.hint else ""
        return escape_line(f"{place}{self.message}{remedy}")


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
        """The byte at which the body begins, which is unknown for a file that does not load: always 0."""
        return 0

    def __str__(self) -> str:
        """Return the path, then every issue with its line and remedy, all on one line."""
        place = f"{self.path}: " if self.path else ""
        return escape_line(
            place + "; ".join(_describe_issue(i) + (f" ({i.hint})" if i.hint else "") for i in self.issues)
        )


def _describe_issue(issue: Issue) -> str:
    line = f"line {issue.line}: " if issue.line else ""
    return f"{line}{issue.field}: {issue.message}" if issue.field else line + issue.message


class InvalidFrontmatterError(SkillLoadError):
    """Frontmatter that is missing, not closed, not YAML, against the YAML rules, or without a required field."""

    code = "invalid-frontmatter"


def as_load_error(issues: Iterable[Issue], path: str = "") -> SkillLoadError:
    """Return the error for a file with these issues.

    It is an ``InvalidFrontmatterError`` when a required field is missing or not a string, else a ``SkillLoadError``.
    """
    listed = tuple(issues)
    return (InvalidFrontmatterError if any(map(_is_required_field_missing, listed)) else SkillLoadError)(listed, path)


def _is_required_field_missing(issue: Issue) -> bool:
    return issue.field in {"name", "description"} and issue.code in {f"missing-{issue.field}", "wrong-type"}


class NoFrontmatterError(InvalidFrontmatterError):
    """The first line that is not blank is not ``---``."""

    code = "no-frontmatter"


class UnterminatedFrontmatterError(InvalidFrontmatterError):
    """The text ends before a closing ``---`` line."""

    code = "unterminated-frontmatter"


class EmptySkillBodyError(SkillValidationError):
    """Instructions were asked for, and the skill has none."""

    code = "empty-body"


class UnknownSkillError(SkillError, KeyError):
    """There is no skill with that name; the message lists the names that exist, the nearest first."""

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
        self.why = why
        self.available = sort_by_similarity(name, names)
        shown = ", ".join(self.available[:most])
        more = f" and {len(names) - most} more" if len(names) > most else ""
        known = f"available: {shown}{more}" if names else _describe_no_skills(folders, most)
        reason = f"; {why}" if why else ""
        super().__init__(f"unknown skill {name[:MAX_COMPARED_CHARS]!r}{reason}; {known}")
        self._made_from = (name, tuple(names), most, why, folders)

    @property
    def hint(self) -> str:
        """What to do about it; when there are no skills at all, how to get some."""
        return HINTS["unknown-skill" if self.available else "no-skills"]


def _describe_no_skills(folders: tuple[str, ...], most: int) -> str:
    if not folders:
        return "no skills are available"
    more = f" and {len(folders) - most} more" if len(folders) > most else ""
    return f"no skills were found in {', '.join(folders[:most])}{more}"


class DuplicateSkillError(SkillError):
    """Two skills have one name, and the caller asked for an error then."""

    code = "duplicate-name"


class ResourceError(SkillError):
    """A file of a skill that cannot be read."""

    code = "unreadable"


class PathTraversalError(ResourceError):
    """A path that leaves the skill's folder, or that could on some platform."""

    code = "path-escape"


def make_unreadable_error(error: ResourceError, path: str) -> SkillValidationError:
    """Return the error for a SKILL.md that cannot be read; for one that does not exist it is ``missing-skill-md``."""
    code = "missing-skill-md" if isinstance(error, ResourceNotFoundError) else error.code
    return SkillValidationError(f"cannot read the file: {error.message}", path, code)


class ResourceNotFoundError(ResourceError, FileNotFoundError):
    """The skill has no such file."""

    code = "not-found"

    def __init__(self, message: str, path: str = "", code: str = "") -> None:
        super().__init__(message, path, code)
        self.errno = errno.ENOENT


class ResourceTooLargeError(ResourceError):
    """The file is larger than the caller's limit."""

    code = "too-large"


class BinaryResourceError(ResourceError):
    """Text was asked for, and the file is not UTF-8 text."""

    code = "binary"


class ResourceChangedError(ResourceError):
    """The file changed while it was read, so the bytes may be half of two versions."""

    code = "changed-during-read"


class MaxActiveError(SkillError):
    """As many skills are active as the session allows, which is ``limit``."""

    code = "max-active"

    def __init__(self, message: str, path: str = "", code: str = "", limit: int = 0) -> None:
        super().__init__(message, path, code)
        self._made_from = (message, path, code, limit)
        self.limit = limit


class SkillFilteredError(SkillError):
    """The skill exists, and a filter hides it; ``filter`` has the patterns that hold, with commas between them."""

    code = "filtered"

    def __init__(self, message: str, path: str = "", code: str = "", filter: str = "") -> None:
        super().__init__(message, path, code)
        self._made_from = (message, path, code, filter)
        self.filter = filter


class SkillNotActiveError(SkillError):
    """A skill was to be deactivated that is not active."""

    code = "not-active"


class NotTrustedError(SkillError):
    """Something of a skill would run, and no person has granted that.

    ``request`` is the question for a person (a ``TrustRequest``) when the policy is to ask later (``defer``).
    """

    code = "not-trusted"

    def __init__(self, message: str, path: str = "", code: str = "", request: Any = None) -> None:
        super().__init__(message, path, code)
        self._made_from = (message, path, code, request)
        self.request = request


class PolicyError(SkillError):
    """A policy file of the machine, the user or the project refuses something, or cannot be used; ``path`` names it."""

    code = "policy"


class SandboxError(SkillError):
    """A program cannot be run, or not in the isolation that was asked for."""

    code = "no-sandbox"


class SourceError(SkillError, ValueError):
    """An argument, or a place to load skills from, that is invalid."""

    code = "bad-argument"


class MissingPackageError(SourceError, ImportError):  # type: ignore[misc] # both have a path
    """A package that an adapter needs is not installed; the message has the command that installs it."""

    code = "missing-package"


class FetchError(SkillError):
    """Something could not be fetched, may not be fetched, or is not what it should be."""

    code = "fetch-failed"


class ModelError(SkillError):
    """The model of an agent cannot be used, did not answer, or used up what it may use."""

    code = "model-failed"


class InstallError(SkillError):
    """Something could not be installed, updated, removed or proven."""

    code = "install-failed"


class BadReferenceError(InstallError, ValueError):
    """A text that names neither a skill nor a source, or that could do harm."""

    code = "bad-reference"


class AlreadyInstalledError(InstallError):
    """There is something already where the skill would be installed."""

    code = "already-installed"


class NotInstalledError(InstallError):
    """Neither the project nor the user has installed the skill."""

    code = "not-installed"


class NameTakenError(InstallError):
    """The name belongs to a skill that came from another source."""

    code = "name-taken"


class LocalEditsError(InstallError):
    """An update would overwrite what someone changed by hand."""

    code = "local-edits"


class LockMismatchError(InstallError):
    """Files on the disk, or files that were fetched, are not what the lock file says."""

    code = "lock-mismatch"


class BusyError(InstallError):
    """Another process is changing these skills and did not finish in time."""

    code = "busy"


class GitError(InstallError):
    """git is missing, refused the command, failed or took too long."""

    code = "git-failed"


class UnsafeTreeError(InstallError):
    """A tree holds files that no skill may hold: links, submodules, odd names, or too many bytes."""

    code = "unsafe-name"


_NOTE = "logged by prowess: raised in the host's "


def log_host_error(callback: str, error: BaseException) -> bool:
    """Write an exception that the host's ``callback`` raised to the logger ``prowess``, with its traceback.

    Returns ``True`` when it was written, and ``False`` when it had been written before.
    """
    import logging

    # On its way up an exception passes several places that log it. The note on it travels along.
    if any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ())):
        return False
    error.add_note(_NOTE + callback)
    logging.getLogger("prowess").error("the host's %s raised %s", callback, type(error).__name__, exc_info=error)
    return True
