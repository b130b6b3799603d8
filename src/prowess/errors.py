"""The error tree, and the issue: one finding about one file.

::

    SkillError
    ├── SkillValidationError            a skill that cannot be used; also: a file that cannot be read
    │   ├── SkillLoadError              carries every issue of the file
    │   │   └── InvalidFrontmatterError
    │   │       ├── NoFrontmatterError
    │   │       └── UnterminatedFrontmatterError
    │   └── EmptySkillBodyError
    ├── UnknownSkillError               also a KeyError
    ├── DuplicateSkillError             on_duplicate="error"
    ├── ResourceError
    │   ├── PathTraversalError
    │   ├── ResourceNotFoundError       also a FileNotFoundError
    │   ├── ResourceTooLargeError
    │   ├── BinaryResourceError
    │   └── ResourceChangedError        changed while it was read
    ├── MaxActiveError
    ├── SkillFilteredError
    ├── SkillNotActiveError
    ├── NotTrustedError                 something of a skill would run that nobody has granted
    ├── SandboxError                    a program cannot be run, or not as safely as was asked for
    ├── SourceError                     also a ValueError
    ├── FetchError                      what another machine did not give, or gave otherwise than it should
    └── InstallError                    something that could not be installed, updated, removed or proven
        ├── BadReferenceError           also a ValueError: text that names no source
        ├── AlreadyInstalledError
        ├── NotInstalledError
        ├── NameTakenError              the name belongs to a skill from another source
        ├── LocalEditsError             an update would overwrite what someone changed by hand
        ├── LockMismatchError           what is there is not what the lock file says
        ├── BusyError                   another process is changing the same skills
        ├── GitError
        └── UnsafeTreeError             files that no skill may hold

Every error has a kebab-case ``code``, says what is wrong and where, and hints at the remedy.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterable

Severity = Literal["error", "warning", "info"]

HINTS: dict[str, str] = {
    "bad-name": "use lower-case letters, digits and single hyphens, at most 64 characters",
    "reserved-name": "choose a name that is not a device name on any platform",
    "name-mismatch": "rename the folder or the name so that both are equal",
    "missing-name": "add a line 'name: folder-name'",
    "missing-description": "add a line 'description: what it does and when to use it'",
    "description-too-long": "shorten it to 1,024 characters; details belong in the body",
    "compatibility-too-long": "shorten it to 500 characters",
    "blank-field": "give it a value or remove the key",
    "wrong-type": "write it in the form that the field needs",
    "metadata-not-text": "quote the value",
    "unknown-field": "the specification does not know this key; other tools may ignore or refuse it",
    "inert-field": "Prowess keeps it as data and never acts on it",
    "empty-body": "write the instructions below the closing '---'",
    "hidden-text": "remove the invisible characters; they are left out of listings",
    "body-not-text": "save the file as UTF-8",
    "body-too-large": "move details into references/",
    "no-frontmatter": "begin the file with a line '---', the fields, and another line '---'",
    "unterminated-frontmatter": "close the frontmatter with a line '---'",
    "empty-frontmatter": "add at least 'name:' and 'description:'",
    "frontmatter-too-large": "keep the frontmatter small and move text into the body",
    "not-utf8": "save the file as UTF-8",
    "control-character": "remove the control character",
    "line-break": "use LF or CRLF line ends",
    "yaml-syntax": "quote the value, or check indentation and colons",
    "yaml-not-a-mapping": "write 'key: value' lines",
    "yaml-anchor": "write the value out instead of using anchors or aliases",
    "yaml-tag": "remove the '!tag'; every value is text",
    "yaml-merge-key": "write the keys out instead of using '<<'",
    "yaml-directive": "remove the '%' directive",
    "yaml-duplicate-key": "keep one of the two",
    "yaml-complex-key": "use plain text as the key",
    "yaml-too-deep": "flatten the value",
    "yaml-too-many-events": "keep the frontmatter small",
    "yaml-scalar-too-long": "move the text into the body",
    "yaml-documents": "keep one YAML document between the dashes",
    "yaml-surrogate": "write the character itself instead of escaping half of it",
    "repaired-colon": "quote the value",
    "repaired-block-text": "put the text on the next line, indented, or remove the '>' or '|'",
    "repaired-leading-character": "quote the value",
    "repaired-missing-blank": "write a blank after the colon",
    "repaired-brackets": "quote the value",
    "repaired-metadata": "write metadata as indented 'key: value' lines",
    "repaired-quotes": "close the quotes, or remove them",
    "repaired-glued-dashes": "put the closing '---' on a line of its own",
    "repaired-comment": "begin the file with the frontmatter",
    "repaired-code-fence": "remove the code fence around the frontmatter",
    "repaired-name": "add a line 'name: folder-name'",
    "repaired-value": "quote the value",
    "missing-skill-md": "a skill is a folder with a SKILL.md",
    "unreadable": "check that the file exists and may be read",
    "not-a-regular-file": "replace it by a regular file",
    "link-refused": "copy the skill into the scanned folder, or scan the folder that the link leads to",
    "link-in-skill": "links below a skill's folder are never followed: copy the file",
    "link-loop": "remove the link",
    "hard-link": "copy the file, so that it has one name only",
    "bad-file-name": "rename it to a UTF-8 name",
    "special-file": "only regular files belong in a skill",
    "missing-root": "create the folder, or leave it out",
    "not-a-directory": "name a folder",
    "unreadable-directory": "check its permissions",
    "filename-case": "name the file SKILL.md",
    "filename-collision": "keep one of the two files",
    "folder-collision": "rename one: they are one folder on systems that ignore case or Unicode form",
    "duplicate-name": "rename one of the two skills",
    "shadowed-by-project": "rename the project's skill if it is not meant to replace yours",
    "too-many-directories": "scan a smaller folder, or raise Limits.max_dirs_per_root",
    "too-deep": "scan a folder further down, or raise the depth",
    "deadline": "scan a smaller folder, or raise Limits.max_scan_seconds",
    "too-many-files": "keep a skill below the limit, or raise Limits.max_files_per_skill",
    "too-many-bytes": "keep a skill below the limit, or raise Limits.max_digest_bytes",
    "changed-during-read": "try again",
    "path-escape": "name a file below the skill's folder, with '/' between folders",
    "bad-path": "name a file below the skill's folder, with '/' between folders",
    "not-found": "list the skill's files to see which exist",
    "too-large": "read it in parts, or raise max_bytes",
    "binary": "read it with read_bytes",
    "no-files": "only skills in a folder have files",
    "unknown-skill": "use one of the names listed",
    "max-active": "deactivate a skill first",
    "filtered": "use a skill that is listed",
    "not-active": "activate it first, or leave it",
    "unknown-tool": "use one of the tools offered",
    "bad-arguments": "call the tool again with the parameters of its schema",
    "not-for-people": "the skill is for models only",
    "changed-since-saved": "activate it again to see what it says now",
    "missing-since-saved": "install it again, or go on without it",
    "not-trusted": "let a person look at it and grant it: prowess trust grant NAME, or Trust().grant(skill)",
    "no-trust": "give the session trust=prowess.Trust(), then let a person grant it: Trust().grant(skill)",
    "not-local": "only skills in a folder on this machine can be trusted to run anything",
    "trust-store": "check the file and who owns it, or remove it and grant anew",
    "commands-not-run": "let a person look, and grant the skill: prowess trust grant NAME, or Trust().grant(skill)",
    "command-failed": "see the marker in the text for its exit status and what it said",
    "too-many-commands": "put them into one script, or raise Limits.max_commands",
    "no-sandbox": "install bubblewrap, or ask for sandbox='none' by name",
    "cannot-start": "check that the program exists and may be executed",
    "no-answer": "the program ended who watches it, or the machine is overloaded: try again, or do not trust it",
    "unknown-interpreter": "use a script of a known kind, with a matching first line",
    "scripts-off": "give the toolset scripts= and the session trust=",
    "not-forkable": "set 'context: fork' in the skill, or load its instructions instead",
    "fork-off": "give the toolset fork=, a callable or 'host'",
    "fork-failed": "see what the sub-agent said, and try again",
    "server-away": "check that the server's command or address is right, and start it",
    "mcp-timeout": "try again, or raise Limits.max_mcp_connect_seconds, max_mcp_call_seconds or max_mcp_list_seconds",
    "request-refused": "see what the server said; load its skills again if they changed",
    "no-extension": "the server offers no skills; ask it for its tools instead",
    "dynamic-skill": "ask the server's author for files that stay as they are",
    "duplicate-label": "give each MCP server a label of its own",
    "endless-listing": "ask the server's author for a listing that ends, or raise Limits.max_mcp_skills",
    "approval-store": "check the file and who owns it, or remove it and approve anew",
    "token-needed": "put a long random token into PROWESS_MCP_TOKEN or a file, or bind to 127.0.0.1",
    "cannot-listen": "choose another port, or end what uses it",
    "missing-extra": "install Prowess with the extra that is named",
    "fetch-failed": "check the address, the network and the proxy, and try again",
    "fetch-timeout": "try again, or raise Limits.fetch_idle_seconds or fetch_total_seconds",
    "bad-address": "write https://, the host, and a path if need be; no name, password or query",
    "server-busy": "try again later",
    "http-status": "check the address; the server does not give what was asked for",
    "download-too-large": "ask the publisher for less, or raise the field of Limits that is named",
    "digest-mismatch": "do not use it: what the server gives is not what its index announces",
    "redirect-refused": "use the address that it leads to, or name its host in allow_redirects_to",
    "address-refused": "pass allow_private=True if that machine is meant",
    "plain-http": "use https, or pass allow_http=True if the network is trusted",
    "other-origin": "name the host in allow_redirects_to if it is to be trusted",
    "no-index": "the site publishes no skills there; check the address",
    "bad-index": "the publisher has to mend the index",
    "bad-entry": "the publisher has to mend this entry of the index",
    "bad-digest": "the publisher has to give 'sha256:' and 64 hexadecimal digits",
    "shared-digest": "the publisher has to give each skill a file of its own",
    "unknown-schema": "a newer version of the format; update Prowess",
    "unknown-type": "a newer kind of entry; update Prowess",
    "too-many-entries": "ask the publisher for a smaller index, or raise Limits.max_index_entries",
    "stale-index": "the server cannot be reached; what it said before is used",
    "stale-file": "the server cannot be reached; the copy of before is used",
    "differs-from-index": "the publisher has to make the index and the file agree",
    "cache-unusable": "name a folder of your own in cache_dir or PROWESS_CACHE_DIR",
    "bad-archive": "pack it again with regular files only, SKILL.md on top or in one folder",
    "archive-too-large": "pack less, or raise the field of Limits that is named",
    "confusing-name": "rename one of the two",
    "confusing-description": "say in each what only that skill is for",
    "duplicate-description": "say in each what only that skill is for",
    "listing-too-large": "shorten descriptions, or list fewer skills",
    "already-there": "choose another name or folder, or remove what is there",
    "unwritable": "check that the folder exists and may be written to",
    "bad-evals": "see docs/authoring.md for the shapes of evals",
    "bad-setting": "see 'prowess config' for the settings, and docs/cli.md for their values",
    "unknown-setting": "see 'prowess config' for the settings that there are",
    "user-setting": "set it in your own file, by a variable, or by a flag",
    "unknown-agent": "see prowess.AGENTS for the known agents",
    "install-failed": "nothing was changed; mend the cause and try again",
    "write-failed": "check the free space and the permissions of the folder, then try again",
    "bad-reference": "write @org/name[@version], owner/repo, a git address or a path such as ./folder",
    "bad-scheme": "use https or ssh, or name a local folder with ./ or /",
    "bad-version": "name a tag, a branch or a whole commit id",
    "secret-in-address": "leave the user and password out and configure a git credential helper",
    "already-installed": "update it, or install with replace=True",
    "not-installed": "install it first; list shows what is installed",
    "name-taken": "remove the other one, or install with replace=True",
    "near-name": "make sure that this is the skill you mean",
    "local-edits": "keep your changes elsewhere, or update with force=True, which keeps a backup",
    "lock-mismatch": "run sync to make the disk equal the lock file, or update the lock file",
    "lock-outdated": "run sync without locked=True and commit the lock file",
    "changed-since-locked": "run sync to restore it, or install it again",
    "not-in-lock": "install or adopt it, so that the lock file says what it holds",
    "version-mismatch": "update it to the version that you want",
    "bad-lock": "restore the lock file from version control, or delete it and sync",
    "bad-manifest": "see docs/installing.md for what prowess.toml may hold",
    "bad-journal": "look at what it says, then delete it",
    "changed-file": "run sync to restore it, or update to take a newer version",
    "missing-file": "run sync to restore it",
    "extra-file": "remove it, or run sync",
    "missing-skill": "run sync to restore it",
    "broken-link": "run sync to restore it",
    "busy": "wait for the other process, or try again later",
    "git-missing": "install git and make sure that it is on PATH",
    "git-failed": "check the address, the network and your credentials",
    "git-timeout": "try again, or raise Limits.max_fetch_seconds",
    "unknown-version": "list the tags and branches of the repository",
    "unknown-subpath": "name a folder that exists in the repository",
    "missing-blob": "the repository holds a file that is too large to install",
    "submodule": "a submodule is never fetched; ask its author to copy the files",
    "case-collision": "two files differ only in case: rename one of them",
    "unsafe-name": "rename the file to something that is a plain name on every platform",
    "left-out": "links and submodules outside a skill are not installed",
    "bad-argument": "see the documentation of the call",
}
"""What to do about each code: the table behind ``Issue.hint`` and ``SkillError.hint``."""


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
        """``path:line: severity code: field: message``, leaving out what is not known."""
        where = f"{self.path}:{self.line}" if self.line else self.path
        head = f"{where}: " if where else ""
        subject = f"{self.field}: " if self.field else ""
        return f"{head}{self.severity} {self.code}: {subject}{self.message}"


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

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Errors cross process boundaries whole."""
        return type(self), self._made_from

    def __str__(self) -> str:
        """Where, what, and what to do."""
        where = f"{self.path}: " if self.path and self.path not in self.message else ""
        remedy = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.message}{remedy}"


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
        super().__init__("; ".join(_subject(i) for i in self.issues), path, first)
        self._made_from = (self.issues, path)

    @property
    def offset(self) -> int:
        """Where the body begins: unknown, hence 0."""
        return 0

    def __str__(self) -> str:
        """The path, then every issue with its line and remedy."""
        where = f"{self.path}: " if self.path else ""
        return where + "; ".join(_subject(i) + (f" ({i.hint})" if i.hint else "") for i in self.issues)


def _subject(issue: Issue) -> str:
    line = f"line {issue.line}: " if issue.line else ""
    return f"{line}{issue.field}: {issue.message}" if issue.field else line + issue.message


class InvalidFrontmatterError(SkillLoadError):
    """Frontmatter that is missing, not closed, not YAML, or against the YAML rules."""

    code = "invalid-frontmatter"


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
        most: int = DEFAULT_LIMITS.max_listed_names,
        why: str = "",
    ) -> None:
        names = sorted(available)
        self.name = name
        self.available = nearest_first(name, names)
        shown = ", ".join(self.available[:most])
        more = f" and {len(names) - most} more" if len(names) > most else ""
        known = f"available: {shown}{more}" if names else "no skills are available"
        reason = f"; {why}" if why else ""
        super().__init__(f"unknown skill {name[:_LONGEST]!r}{reason}; {known}")
        self._made_from = (name, tuple(names), most, why)


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
    """Something of a skill would run, and no person has granted that."""

    code = "not-trusted"


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


_LONGEST = 128
_COMPARED = 2_000  # spelling distance costs about 20 µs a name


def nearest_first(name: str, names: list[str]) -> list[str]:
    """The names, those spelled like ``name`` in front, the rest in order."""
    from difflib import get_close_matches  # noqa: PLC0415 - only when something went wrong

    begins = [n for n in names if n[:2] == name[:2]] if len(names) > _COMPARED else names
    close = get_close_matches(name[:_LONGEST].lower(), begins[:_COMPARED], n=3, cutoff=0.6)
    return close + [n for n in names if n not in close]
