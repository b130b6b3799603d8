"""git as a program: with our settings only, a clean environment, no prompts, and bounds on time and bytes.

The user's own settings are not loaded, but for how to reach servers: credential helpers, the proxy and the certificate
authorities, which are passed on through the environment. Variables that hold tokens are not passed on at all.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from prowess.errors import GitError
from prowess.files.directory import folder_size
from prowess.limits import DEFAULT_LIMITS
from prowess.progress_steps import report_amount
from prowess.spec.hidden_characters import to_one_line
from prowess.spec.quantities import format_size
from prowess.spec.redaction import scrub_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from subprocess import Popen

    from prowess.limits import Limits

SAFE_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.askPass": "",
    "core.sshCommand": "",
    "core.gitProxy": "",
    "core.attributesFile": os.devnull,
    "core.protectNTFS": "true",
    "core.protectHFS": "true",
    "fetch.recurseSubmodules": "false",
    "fetch.unpackLimit": "1",
    "fetch.writeCommitGraph": "false",
    "filter.lfs.smudge": "",
    "filter.lfs.process": "",
    "filter.lfs.required": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
}
"""What every call of git is told; nothing that a repository or a machine says changes it."""

_SSH_COMMAND = (
    "ssh -oBatchMode=yes -oStrictHostKeyChecking=yes -oPermitLocalCommand=no -oForwardAgent=no"
    " -oClearAllForwardings=yes"
)
_FIXED_VARIABLES = {
    "GIT_ASKPASS": "",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_SSH_COMMAND": _SSH_COMMAND,
    "GIT_SSH_VARIANT": "ssh",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_PASSED_VARIABLES = (
    *(
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "TMPDIR",
        "TEMP",
        "TMP",
        "SYSTEMROOT",
        "USERPROFILE",
        "APPDATA",
        "LOCALAPPDATA",
    ),
    *(
        "XDG_CONFIG_HOME",
        "XDG_RUNTIME_DIR",
        "DBUS_SESSION_BUS_ADDRESS",
        "SSH_AUTH_SOCK",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ),
    *("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "http_proxy"),
)
_CONNECTION_KEYS = r"^(credential\..*|http\.(.*\.)?(proxy|sslcainfo))$"
_POLL_SECONDS = 0.1
_CHUNK_BYTES = 1 << 16
_MAX_MESSAGE_CHARS = 400
_IGNORED_LINES = (
    "hint:",
    "warning:",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
)


class GitRunner(Protocol):
    """The seam: runs git with arguments (without the program's name) in a folder and gives what it printed.

    Raises ``GitError`` when it fails.
    """

    def __call__(self, args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        """What git printed."""
        ...


def make_environment(schemes: Sequence[str], settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment for git: fetching by ``schemes`` only, our settings, and the ``settings`` given."""
    env = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    allowed = {f"protocol.{scheme}.allow": "always" for scheme in schemes}
    pairs = [*SAFE_SETTINGS.items(), *allowed.items(), *_split_values(settings or {})]
    env |= _FIXED_VARIABLES | {"GIT_ALLOW_PROTOCOL": ":".join(schemes), "GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env


def _split_values(settings: Mapping[str, str]) -> list[tuple[str, str]]:
    """A key may have several values, one a line."""
    return [(key, value) for key, values in settings.items() for value in values.split("\n")]


def read_connection_settings(git: GitRunner, cwd: str) -> dict[str, str]:
    """The user's credential helpers, proxy and certificate authorities, as git's own configuration has them."""
    env = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ} | {
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    try:
        printed = git(["config", "--null", "--includes", "--get-regexp", _CONNECTION_KEYS], cwd, env)
    except GitError:  # none is set
        return {}
    found: dict[str, str] = {}
    for row in printed.decode("utf-8", "replace").split("\0"):
        key, mark, value = row.partition("\n")
        if mark and "\n" not in value:
            found[key] = f"{found[key]}\n{value}" if key in found else value
    return found


class GitProgram:
    """The git on this machine, guarded."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, printed: int | None = None) -> None:
        self._limits = limits
        self._printed = limits.max_fetch_bytes if printed is None else printed

    def __call__(self, args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        """What git printed; ``GitError`` when it fails, prints or writes too much, or takes too long."""
        import subprocess  # noqa: PLC0415 - only when something is fetched

        try:
            process = subprocess.Popen(  # noqa: S603 - an absolute path, and arguments that were checked
                [_find_git(), *args],
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise GitError(f"git cannot be run: {error.strerror}", code="git-missing") from None
        with process:
            return _WatchedProcess(
                process, cwd, self._limits, self._printed, fetches=args[0] == "fetch"
            ).wait_for_output()


def _find_git() -> str:
    """The absolute path of git; one found in a relative folder of PATH could be anybody's."""
    import shutil  # noqa: PLC0415

    found = shutil.which("git")
    if found is None or not os.path.isabs(found):
        raise GitError("git executable not found", code="git-missing")
    return found


class _WatchedProcess:
    """One run: its output is read by threads, its time and what it writes are watched here.

    They are watched here because whoever is told how much has come is called in the thread that asked.
    """

    def __init__(self, process: Popen[bytes], cwd: str, limits: Limits, most: int, *, fetches: bool) -> None:
        self.process, self.cwd, self.limits, self.most, self.fetches = process, cwd, limits, most, fetches
        self.printed = self.complained = 0
        self.error: GitError | None = None
        self.ended = threading.Event()

    def wait_for_output(self) -> bytes:
        printed: list[bytes] = []
        complaints: list[bytes] = []
        threads = [
            threading.Thread(target=self._read_output, args=(printed,), daemon=True),
            threading.Thread(target=self._drain_errors, args=(complaints,), daemon=True),
        ]
        try:
            for thread in threads:  # an interrupt may come here too, and must not leave git behind
                thread.start()
            self._wait_for_exit()
        finally:
            self._kill()
            for thread in threads:
                if thread.is_alive():
                    thread.join()
        if self.error is not None:
            raise self.error
        if self.process.returncode:
            raise make_git_error(b"".join(complaints).decode("utf-8", "replace"))
        return b"".join(printed)

    def _read_output(self, printed: list[bytes]) -> None:
        assert self.process.stdout is not None  # noqa: S101 - it is a pipe
        try:
            while part := self.process.stdout.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]
                self.printed += len(part)
                if self.printed > self.most:
                    self._stop(GitError(f"git printed more than {self.most} bytes", code="too-many-bytes"))
                    break
                printed.append(part)
        except ValueError:  # closed: the run was interrupted before the first look
            return
        finally:
            self.process.wait()  # it may go on after it has closed its output, and is watched until it ends
            self.ended.set()

    def _drain_errors(self, complaints: list[bytes]) -> None:
        assert self.process.stderr is not None  # noqa: S101 - it is a pipe
        with suppress(ValueError):  # closed: the run was interrupted before the first look
            while part := self.process.stderr.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]
                self.complained += len(part)
                complaints.append(part)
                del complaints[:-4]

    def _wait_for_exit(self) -> None:
        """Return once git has ended: by itself, or because it took too long or wrote too much."""
        begun = moved = time.monotonic()
        at_first = folder_size(self.cwd)
        seen = (0, 0, at_first)
        is_over = False
        while not is_over:
            is_over = self.ended.wait(_POLL_SECONDS)
            now = time.monotonic()
            # Only a fetch writes; the size of a folder takes a walk through it.
            written = folder_size(self.cwd) if self.fetches else at_first
            state = (self.printed, self.complained, written)
            moved, seen = (now, state) if state != seen else (moved, seen)
            if self.fetches:
                report_amount(format_size(max(0, written - at_first)))
            if written > self.limits.max_fetch_bytes:
                self._stop(GitError(f"git wrote more than {self.limits.max_fetch_bytes} bytes", code="too-many-bytes"))
            elif not is_over:
                self._check_time(now - begun, now - moved)

    def _check_time(self, whole: float, idle: float) -> None:
        """End a run that took too long, in all or since it last got anything."""
        most, most_idle = self.limits.max_fetch_seconds, self.limits.max_idle_seconds
        if whole > most:
            self._stop(GitError(f"git took more than {most:g} seconds", code="git-timeout"))
        elif idle > most_idle:
            self._stop(GitError(f"git got nothing for {most_idle:g} seconds", code="git-timeout"))

    def _stop(self, error: GitError) -> None:
        self.error = self.error or error
        self._kill()

    def _kill(self) -> None:
        """End git and whatever it started."""
        try:
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        except (ProcessLookupError, PermissionError):
            return


_ERROR_PATTERNS = (
    (re.compile(r"couldn't find remote ref|not our ref|unadvertised object|invalid refspec"), "unknown-version"),
    (re.compile(r"transport '.*' not allowed"), "bad-scheme"),
)


def make_git_error(complaint: str) -> GitError:
    """The error that git's own words make: cleaned, short, and without secrets."""
    rows = [
        to_one_line(scrub_text(row))
        for row in complaint.splitlines()
        if row.strip() and not row.startswith(_IGNORED_LINES)
    ]
    words = "; ".join(rows[-3:])[:_MAX_MESSAGE_CHARS] or "it does not say why"
    code = next((code for pattern, code in _ERROR_PATTERNS if pattern.search(complaint)), "git-failed")
    return GitError(f"git failed: {words}", code=code)
