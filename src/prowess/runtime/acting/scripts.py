"""Scripts of skills: run for content that a person trusts, from a private copy, in a sandbox, within limits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from prowess.arguments import as_existing_folder, check_flag, check_instance, check_text, raise_bad_argument
from prowess.errors import NotTrustedError, ResourceNotFoundError, SandboxError
from prowess.files.read import OpenFile
from prowess.files.temp import temporary_folder
from prowess.files.write import make_folders
from prowess.limits import DEFAULT_LIMITS, Limits, narrow_limits
from prowess.names import split_resource_path
from prowess.runtime.acting import sandbox
from prowess.runtime.acting.interpreters import find_interpreter
from prowess.runtime.acting.snapshot import take_snapshot
from prowess.runtime.acting.supervised import ProcessLimits, make_environment, run_under_supervisor
from prowess.runtime.acting.trust import Trust, TrustRequest
from prowess.runtime.concurrency import get_pools
from prowess.runtime.consent import Consent
from prowess.skills.resources import with_suggestions
from prowess.skills.skill import Skill
from prowess.spec.placeholders import FOLDER_NAMES, fill_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.runtime.acting.interpreters import Interpreter
    from prowess.runtime.acting.sandbox import Places, Sandbox
    from prowess.runtime.acting.snapshot import Snapshot
    from prowess.runtime.acting.supervised import LimitName, ProcessResult

_MAX_ARGUMENTS = 256
_MAX_ARGUMENT_LENGTH = 32_768


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """What came of a script."""

    status: int
    """Its exit status; ended by a signal: negative, or 128 and the signal in ``bwrap``."""
    stdout: str
    stderr: str
    seconds: float
    sandbox: str
    """``bwrap``, ``landlock`` or ``none``."""
    limit: LimitName = ""
    """Which limit ended it: timeout, output, memory, processes, files, disk; ``""`` for none."""
    stdout_cut: bool = False
    stderr_cut: bool = False
    sandbox_gaps: tuple[str, ...] = ()
    """What this machine's kernel keeps the sandbox from promising; empty where it keeps every promise."""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself and without an error."""
        return self.status == 0 and not self.limit


@dataclass(frozen=True, slots=True)
class Scripts:
    """How scripts are run: in which sandbox, with which folder, environment and limits.

    ``sandbox``: ``auto`` (the best there is, or none at all: an error), ``bwrap``, ``landlock``, or ``none``.
    ``folder``: where they work and may write, only the size of each file limited; it has to be there. Without one they
    work in a new folder that is deleted afterwards. ``env``: variables that they see besides the allow-list.
    ``network``: whether they may use it.
    """

    sandbox: sandbox.Kind = "auto"
    folder: str | os.PathLike[str] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    limits: Limits = DEFAULT_LIMITS

    def __post_init__(self) -> None:
        """Raise ``SourceError`` for what is not as it should be: a folder that is not there is not made."""
        if self.folder is not None:
            object.__setattr__(self, "folder", as_existing_folder(self.folder, "folder"))
        if not isinstance(self.env, Mapping):
            raise_bad_argument("env", "is a mapping of texts", self.env)
        check_flag(self.network, "network")  # a text such as "no" would open the network
        check_instance(self.limits, "limits", Limits, remedy="pass prowess.Limits(…)")

    def narrow_by(self, limits: Limits) -> Scripts:
        """These scripts, each bound no larger than in ``limits``, where that is not the default."""
        return replace(self, limits=narrow_limits(self.limits, limits))

    def run(
        self,
        skill: Skill,
        script: str,
        args: Sequence[str] = (),
        *,
        stdin: str | bytes = "",
        trust: Trust | Consent | None,
    ) -> ScriptResult:
        """Run a script of a skill that ``trust`` grants.

        ``args``, a list or tuple of texts, reach it as they are, never through a shell; only ``${SKILL_DIR}`` is filled
        with the folder in which the script finds the files of its skill. Raises ``NotTrustedError``
        (under the policy ``defer`` with the request in ``request``), ``SandboxError`` (code ``bad-argument``: arguments
        or input that are not what a program can be given), ``ResourceError`` when there is no such file, or
        ``SkillError`` (code ``busy``) when ``max_waiting_scripts`` wait for a place already.
        """
        check_instance(skill, "skill", Skill, remedy="pass catalog[name]")
        check_text(script, "script")
        if not isinstance(trust, Consent):
            check_instance(trust, "trust", Trust, optional=True, remedy="pass prowess.Trust()")
        kind = sandbox.choose_sandbox(self.sandbox)
        given = _check_input(args, stdin, self.limits)
        if trust is None:
            raise NotTrustedError(
                f"scripts of {skill.name!r} do not run: no trust was given", skill.location, "no-trust"
            )
        with take_snapshot(skill) as taken:
            path = "/".join(split_resource_path(script))
            try:
                with OpenFile(taken.folder, tuple(path.split("/"))) as file:
                    content = file.read_all(self.limits.max_file_bytes)
            except ResourceNotFoundError as error:
                raise with_suggestions(
                    error, script, (file for file in taken.files if file != skill.file_name)
                ) from None
            read = given.decode("utf-8", "surrogateescape")
            call = TrustRequest(skill, taken.digest, (), path, tuple(args), taken.files, read)
            trust.require(call)
            program = find_interpreter(path, content)
            with get_pools(self.limits).scripts.hold_place():  # before the clock of its timeout starts
                return self._run_in_sandbox(kind, taken, program, [path, *args], given)

    def _run_in_sandbox(
        self, kind: Sandbox, taken: Snapshot, program: Interpreter, words: list[str], stdin: bytes
    ) -> ScriptResult:
        with self._open_run_folders() as (own, *folders):
            work, temporary, shared_memory = folders
            jail = sandbox.Jail(taken.folder, work, temporary, shared_memory, program.needs, self.network)
            places = sandbox.places(kind.name, jail)
            given = (fill_folder(word, places.skill) for word in words[1:])
            argv = [*program.argv, f"{places.skill}/{words[0]}", *given]
            finished = run_under_supervisor(
                sandbox.confine_command(kind.name, argv, jail),
                ProcessLimits.for_scripts(self.limits),
                cwd=work,
                env=self._make_environment(places, inside=kind.name != "none"),
                stdin=stdin,
                watched=folders if self.folder is None else (temporary, shared_memory),
                room=own if kind.name != "none" else "",
            )
        return _make_result(finished, kind)

    def _make_environment(self, places: Places, *, inside: bool) -> dict[str, str]:
        own = {**dict.fromkeys(FOLDER_NAMES, places.skill), "PYTHONDONTWRITEBYTECODE": "1"}
        if inside:
            own |= {"HOME": places.work, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), places.temporary)}
        return {**make_environment(own), **self.env}

    @staticmethod
    def _make_folder(folder: str) -> None:
        try:
            make_folders(folder, 0o700)
        except OSError as error:
            message = f"cannot work in {folder!r}: {error.strerror}; pass a folder that you may write to"
            raise SandboxError(message, folder, "bad-argument") from None

    @contextmanager
    def _open_run_folders(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield a new folder, and those to work in, for temporary files and for shared memory; delete what was made."""
        with temporary_folder() as own:
            new, temporary, shared_memory = (os.path.join(own, name) for name in ("work", "tmp", "shm"))
            for folder in (new, temporary, shared_memory):
                self._make_folder(folder)
            # Looked at again: it may have gone since the constructor saw it, and it is the caller's to make.
            work = new if self.folder is None else as_existing_folder(self.folder, "folder")
            yield own, work, temporary, shared_memory


def _check_input(args: Sequence[str], stdin: str | bytes, limits: Limits) -> bytes:
    # A set or mapping has no order of its own, and an iterator would be used up here, before the script gets anything.
    if not isinstance(args, (list, tuple)):
        raise SandboxError(f"args is a list or tuple of texts, not a {type(args).__name__}", code="bad-argument")
    if not all(isinstance(arg, str) for arg in args):
        raise SandboxError("args holds something that is no text: pass each argument as a text", code="bad-argument")
    if not isinstance(stdin, (str, bytes)):
        raise SandboxError(f"stdin is text or bytes, not {type(stdin).__name__}", code="bad-argument")
    if len(args) > _MAX_ARGUMENTS or any(len(arg) > _MAX_ARGUMENT_LENGTH or "\0" in arg for arg in args):
        message = (
            f"a script takes at most {_MAX_ARGUMENTS:,} arguments of {_MAX_ARGUMENT_LENGTH:,} characters, without NUL"
        )
        raise SandboxError(message, code="bad-argument")
    try:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        os.fsencode("".join(args))
    except UnicodeEncodeError:
        raise SandboxError(
            "what a script is given holds half a character (a lone surrogate): pass whole ones", code="bad-argument"
        ) from None
    if len(data) > limits.max_script_input_bytes:
        raise SandboxError(f"stdin may have at most {limits.max_script_input_bytes:,} bytes", code="bad-argument")
    return data


def _make_result(finished: ProcessResult, kind: Sandbox) -> ScriptResult:
    return ScriptResult(
        finished.status,
        finished.stdout.decode("utf-8", "replace"),
        finished.stderr.decode("utf-8", "replace"),
        finished.seconds,
        kind.name,
        finished.limit,
        finished.stdout_cut,
        finished.stderr_cut,
        (*kind.gaps, *finished.gaps),
    )
