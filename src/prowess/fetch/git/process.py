"""Runs the program git: with our settings, a clean environment, no prompts, and limits on time and bytes.

Of the user's own settings only those that say how to reach servers are passed on (``user_settings.py``). Variables that
hold tokens are not passed on.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from prowess.errors import GitError
from prowess.files.directory import folder_size
from prowess.limits import DEFAULT_LIMITS
from prowess.progress_steps import report_amount
from prowess.text.hidden_characters import to_one_line
from prowess.text.quantities import format_size
from prowess.text.redaction import scrub_text

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
"""Settings for every call of git, which no repository and no configuration file changes.

Together they keep git from running anything: hooks, filters, helpers, and maintenance in the background.
"""

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
PASSED_VARIABLES = (
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
"""The variables of the user that git may see."""
_POLL_SECONDS = 0.1  # how long git may go over a limit before it is stopped
_CHUNK_BYTES = 1 << 16
_MAX_MESSAGE_CHARS = 400
_IGNORED_LINES = (
    "hint:",
    "warning:",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
)


class GitRunner(Protocol):
    """Runs git with arguments (without the program's name) in a folder, and returns what it printed.

    Tests pass one of their own. Raises ``GitError`` when git fails.
    """

    def __call__(self, args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        """Run git and return what it printed."""
        ...


def make_environment(
    schemes: Sequence[str], settings: Sequence[tuple[str, str]] = (), variables: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the whole environment for git: it fetches by ``schemes`` only.

    ``settings`` and ``variables`` are added. Our own settings come after ``settings``, which therefore change none of
    them.
    """
    env = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    allowed = [(f"protocol.{scheme}.allow", "always") for scheme in schemes]
    pairs = [*settings, *SAFE_SETTINGS.items(), *allowed]
    env |= _FIXED_VARIABLES | {"GIT_ALLOW_PROTOCOL": ":".join(schemes), "GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    if variables and "GIT_SSH_COMMAND" in variables:
        del env["GIT_SSH_VARIANT"]  # ours is ssh itself; what the user named may be another program
    return env | dict(variables or {})


class GitProgram:
    """The git on this machine, stopped when it goes over a limit. ``printed`` is the most bytes that it may print."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, printed: int | None = None) -> None:
        self._limits = limits
        self._printed = limits.max_fetch_bytes if printed is None else printed

    def __call__(self, args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        """Run git and return what it printed.

        Raises ``GitError`` when git is missing, fails, prints or writes too much, or takes too long.
        """
        import subprocess

        try:
            process = subprocess.Popen(  # noqa: S603 - an absolute path, and arguments that were checked
                [_find_git(), *args],
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # git starts helpers; as one group they can be ended together
            )
        except OSError as error:
            raise GitError(f"git cannot be run: {error.strerror}", code="git-missing") from None
        with process:
            return _WatchedProcess(
                process, cwd, self._limits, self._printed, fetches=args[0] == "fetch"
            ).wait_for_output()


def _find_git() -> str:
    """Return the absolute path of git; raises ``GitError`` when there is none."""
    path = shutil.which("git")
    # A program in a relative folder of PATH would be one in the working folder, which may be anybody's.
    if path is None or not os.path.isabs(path):
        raise GitError("git executable not found", code="git-missing")
    return path


class _WatchedProcess:
    """One run of git: threads read its output, and the calling thread watches its time and what it writes.

    The calling thread watches because it reports the progress, and callers expect reports in their own thread.
    """

    def __init__(self, process: Popen[bytes], cwd: str, limits: Limits, max_printed: int, *, fetches: bool) -> None:
        self.process, self.cwd, self.limits, self.max_printed, self.fetches = process, cwd, limits, max_printed, fetches
        self.printed = self.complained = 0
        self.error: GitError | None = None
        self.ended = threading.Event()

    def wait_for_output(self) -> bytes:
        """Wait until git ends, and return what it printed; raises ``GitError`` when it failed or was stopped."""
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
        assert self.process.stdout is not None
        try:
            while part := self.process.stdout.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]
                self.printed += len(part)
                if self.printed > self.max_printed:
                    self._stop(GitError(f"git printed more than {self.max_printed} bytes", code="too-many-bytes"))
                    break
                printed.append(part)
        except ValueError:  # closed: the run was interrupted before this thread began
            return
        finally:
            self.process.wait()  # git may go on after it has closed its output
            self.ended.set()

    def _drain_errors(self, complaints: list[bytes]) -> None:
        assert self.process.stderr is not None
        with suppress(ValueError):  # closed: the run was interrupted before this thread began
            while part := self.process.stderr.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]
                self.complained += len(part)
                complaints.append(part)
                del complaints[:-4]  # the last lines say why git failed

    def _wait_for_exit(self) -> None:
        """Wait until git has ended: by itself, or because it took too long or wrote too much."""
        start = last_progress = time.monotonic()
        size_at_start = folder_size(self.cwd)
        last_state = (0, 0, size_at_start)
        is_over = False
        while not is_over:
            is_over = self.ended.wait(_POLL_SECONDS)
            now = time.monotonic()
            # Only a fetch writes; the size of a folder takes a walk through it.
            written = folder_size(self.cwd) if self.fetches else size_at_start
            state = (self.printed, self.complained, written)
            if state != last_state:
                last_progress, last_state = now, state
            if self.fetches:
                report_amount(format_size(max(0, written - size_at_start)))
            if written > self.limits.max_fetch_bytes:
                self._stop(GitError(f"git wrote more than {self.limits.max_fetch_bytes} bytes", code="too-many-bytes"))
            elif not is_over and now - start > self.limits.max_fetch_seconds:
                self._stop(
                    GitError(f"git took more than {self.limits.max_fetch_seconds:g} seconds", code="git-timeout")
                )
            elif not is_over and now - last_progress > self.limits.max_idle_seconds:
                self._stop(
                    GitError(f"git got nothing for {self.limits.max_idle_seconds:g} seconds", code="git-timeout")
                )

    def _stop(self, error: GitError) -> None:
        self.error = self.error or error
        self._kill()

    def _kill(self) -> None:
        """Kill git and the processes that it started."""
        try:
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        except (ProcessLookupError, PermissionError):
            return


DUMB_SERVER = "dumb-server"
"""The code of an error of a server that gives plain files, and cannot leave any out."""
_ERROR_PATTERNS = (
    (re.compile(r"dumb http transport does not support"), DUMB_SERVER),
    (re.compile(r"couldn't find remote ref|not our ref|unadvertised object|invalid refspec"), "unknown-version"),
    (re.compile(r"transport '[^'\n]*+' not allowed"), "bad-scheme"),
    (re.compile(r"The requested URL returned error: 30[1278]"), "git-redirected"),
)


def make_git_error(complaint: str) -> GitError:
    """Return the error for what git complained about: its last lines, without secrets and control characters."""
    lines = [
        to_one_line(scrub_text(line))
        for line in complaint.splitlines()
        if line.strip() and not line.startswith(_IGNORED_LINES)
    ]
    words = "; ".join(lines[-3:])[:_MAX_MESSAGE_CHARS] or "it does not say why"
    code = next((code for pattern, code in _ERROR_PATTERNS if pattern.search(complaint)), "git-failed")
    return GitError(f"git failed: {words}", code=code)
