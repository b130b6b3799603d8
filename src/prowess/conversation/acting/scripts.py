"""Running scripts of trusted skills: from a private copy, in a sandbox, within limits."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from prowess.arguments import check_flag, check_instance, check_text, check_texts, raise_bad_argument
from prowess.conversation.acting import sandbox
from prowess.conversation.acting.runner import ScriptJob, check_policy, check_runner, run_elsewhere
from prowess.conversation.acting.snapshot import take_snapshot
from prowess.conversation.acting.supervised import ProcessLimits, make_environment, run_under_supervisor
from prowess.conversation.acting.trust import Trust
from prowess.conversation.acting.trust_request import TrustRequest
from prowess.conversation.consent import Consent
from prowess.conversation.work_pools import get_pools
from prowess.errors import NotTrustedError, ResourceNotFoundError, SandboxError
from prowess.files.contained_open import open_folder_beneath
from prowess.files.delete import temporary_folder
from prowess.files.paths import as_existing_folder, is_really_inside
from prowess.files.read import OpenFile
from prowess.files.syscalls import delete_file
from prowess.files.write import make_folders
from prowess.format.placeholders import FOLDER_NAMES, fill_folder
from prowess.limits import DEFAULT_LIMITS, Limits, narrow_limits
from prowess.names import split_resource_path
from prowess.skills.resources import with_suggestions
from prowess.skills.skill import Skill
from prowess.text.escapes import escape_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prowess.conversation.acting.runner import ScriptRunner
    from prowess.conversation.acting.sandbox import Places, Protected, Sandbox
    from prowess.conversation.acting.snapshot import Snapshot
    from prowess.conversation.acting.supervised import LimitName, ProcessResult


_MAX_ARGUMENTS = 256
_MAX_ARGUMENT_LENGTH = 32_768


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """The outcome of a script."""

    status: int
    """Its exit status. For a script that a signal ended: the negative signal, or in ``bwrap`` 128 plus the signal."""
    stdout: str
    stderr: str
    seconds: float
    sandbox: str
    """``bwrap``, ``landlock``, ``none``, or the name of the host's runner."""
    limit: LimitName = ""
    """Which limit ended it: timeout, output, memory, processes, files, disk, or ``""``."""
    stdout_cut: bool = False
    stderr_cut: bool = False
    sandbox_gaps: tuple[str, ...] = ()
    """What the sandbox cannot prevent with the kernel of this machine, and folders where nothing new can be made.

    Empty where the sandbox prevents everything it should, and nothing else.
    """

    @property
    def ok(self) -> bool:
        """Whether the script ended by itself and without an error."""
        return self.status == 0 and not self.limit


@dataclass(frozen=True, slots=True)
class Scripts:
    """How scripts run: with which sandbox, folder, environment and limits.

    ``sandbox``: ``auto`` (the best that works here; an error if none does), ``bwrap``, ``landlock``, or ``none``.
    ``folder``: an existing folder that scripts work in and may write to; only the size of each file is limited there.
    Without one, scripts work in a new folder that is deleted afterwards. ``env``: variables that scripts see besides
    the allow-list; ``"declared"``: those of the host's that a skill declares, once a person who was shown their names
    has agreed. ``network``: whether scripts may use the network. ``protect``: files and folders in ``folder`` that
    no script in a sandbox may change, besides what is always protected there. ``runner``: a ``ScriptRunner``, which
    runs scripts elsewhere. It counts as no sandbox unless ``sandbox`` is its name.
    """

    sandbox: sandbox.Kind | str = "auto"
    folder: str | os.PathLike[str] | None = None
    env: Mapping[str, str] | Literal["declared"] = field(default_factory=dict)
    network: bool = False
    limits: Limits = DEFAULT_LIMITS
    protect: tuple[str, ...] = ()
    runner: ScriptRunner | None = None

    def __post_init__(self) -> None:
        """Raise ``SourceError`` for an argument that is not as documented; a missing folder is not made.

        Raises ``SandboxError`` (``no-sandbox``) for a runner that counts as no sandbox where one is asked for.
        """
        if self.folder is not None:
            object.__setattr__(self, "folder", as_existing_folder(self.folder, "folder"))
        if not isinstance(self.env, Mapping) and self.env != "declared":
            raise_bad_argument("env", 'must be a mapping of strings, or "declared"', self.env)
        if self.runner is not None:
            check_runner(self.runner, self.sandbox)
        elif self.sandbox not in get_args(sandbox.Kind):
            raise_bad_argument("sandbox", f"must be one of {', '.join(get_args(sandbox.Kind))}", self.sandbox)
        check_flag(self.network, "network")  # a string such as "no" would open the network
        check_instance(self.limits, "limits", Limits, remedy="pass prowess.Limits(…)")
        object.__setattr__(self, "protect", tuple(map(os.path.abspath, check_texts(self.protect, "protect"))))

    def find_protected(self, also: Sequence[str] = ()) -> Protected:
        """Return what scripts in a sandbox may not change in ``folder``, by paths relative to it.

        Without ``folder`` that is nothing. Raises ``SandboxError``: ``unsafe-folder`` for a folder that cannot be
        protected, ``folder-too-large`` for one that is too large to search.
        """
        if self.folder is None:
            return sandbox.Protected()
        return self._find_protected_in(os.path.realpath(self.folder), also)

    def _find_protected_in(self, work: str, also: Sequence[str]) -> Protected:
        from prowess.conversation.acting.sandbox.protection import find_protected

        return find_protected(work, self.limits, (*self.protect, *also))

    def protects(self, path: str) -> bool:
        """Return whether a path in ``folder`` is, by its name or place, what scripts in a sandbox may not change."""
        from prowess.conversation.acting.sandbox.protection import is_protected_path

        if self.folder is None:
            return False
        work = os.path.realpath(self.folder)
        return is_protected_path(os.path.normpath(os.path.join(work, path)), work, self.protect)

    def narrow_by(self, limits: Limits) -> Scripts:
        """Return these scripts with each limit no larger than in ``limits``, where that is not the default."""
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
        """Run a script of a skill that ``trust`` allows; return its outcome.

        ``args``, a list or tuple of strings, reach it as they are, never through a shell; only ``${SKILL_DIR}`` is
        filled with the folder where the script finds the files of its skill. Raises ``NotTrustedError`` (under the
        policy ``defer`` with the request in ``request``), ``SandboxError`` (code ``bad-argument`` for arguments or
        input that no program can be given), ``ResourceError`` when there is no such file, or ``SkillError`` (code
        ``busy``) when ``max_waiting_scripts`` wait for a place already.
        """
        check_instance(skill, "skill", Skill, remedy="pass catalog[name]")
        check_text(script, "script")
        if not isinstance(trust, Consent):
            check_instance(trust, "trust", Trust, optional=True, remedy="pass prowess.Trust()")
        kind = None if self.runner is not None else sandbox.choose_sandbox(self.sandbox)
        if self.runner is not None:
            check_policy(self.runner)
        data = _check_input(args, stdin, self.limits)
        if trust is None:
            raise NotTrustedError(
                f"scripts of {skill.name!r} do not run: no trust was given", skill.location, "no-trust"
            )
        with take_snapshot(skill) as snapshot:
            path = "/".join(split_resource_path(script))
            content = self._read_script(snapshot, path, script)
            shown_input = data.decode("utf-8", "surrogateescape")
            env = self._find_declared(skill)
            shown = (path, tuple(args), snapshot.files, shown_input, tuple(env))
            trust.require(TrustRequest(skill, snapshot.digest, (), *shown))
            if kind is None:
                return self._run_elsewhere(snapshot, path, _find_programs(path, content), env, args=args, stdin=data)
            program = _find_interpreter(path, content)

            # The place is waited for before the clock of the timeout starts.
            def make_argv(places: Places) -> list[str]:
                arguments = (fill_folder(word, places.skill) for word in args)
                return [*program.argv, f"{places.skill}/{path}", *arguments]

            with get_pools(self.limits).scripts.hold_place():
                return self._run_in_sandbox(
                    kind,
                    snapshot.folder,
                    make_argv,
                    needs=program.needs,
                    stdin=data,
                    grants=_find_grants(trust),
                    declared=env,
                )

    def run_command(self, command: str, *, skill_folder: str = "") -> ScriptResult:
        """Run a shell command in the sandbox, within the limits of scripts; return its outcome.

        ``skill_folder``: a folder that the command may read, whose place the variable ``SKILL_DIR`` has. No skill is
        involved and nobody is asked: the caller has to decide whether the command may run. Raises ``SandboxError``:
        ``no-sandbox``, ``bad-argument`` for a command that no program can be given, ``cannot-start`` where there is no
        shell.
        """
        check_text(command, "command")
        _check_input([command], "", self.limits)
        kind = None if self.runner is not None else sandbox.choose_sandbox(self.sandbox)
        if kind is None:
            raise SandboxError(
                f"the runner {self.sandbox!r} runs scripts of skills, and no commands", code="no-sandbox"
            )
        program = _find_interpreter("command.sh", b"")
        with temporary_folder() as empty, get_pools(self.limits).scripts.hold_place():
            folder = skill_folder or empty
            return self._run_in_sandbox(kind, folder, lambda _: [*program.argv, "-c", command], needs=program.needs)

    def _find_declared(self, skill: Skill) -> dict[str, str]:
        """Return the variables of the host that a skill declares and that are set, where scripts see these."""
        if self.env != "declared":
            return {}
        return {name: os.environ[name] for name in skill.requires.all_variables if os.environ.get(name)}

    @property
    def _fixed_env(self) -> Mapping[str, str]:
        return self.env if isinstance(self.env, Mapping) else {}

    def _read_script(self, snapshot: Snapshot, path: str, script: str) -> bytes:
        """Return the content of a script; raise ``ResourceError``, with names that are similar, where it is missing."""
        try:
            with OpenFile(snapshot.folder, tuple(path.split("/"))) as file:
                return file.read_all(self.limits.max_file_bytes)
        except ResourceNotFoundError as error:
            others = (file for file in snapshot.files if file != snapshot.skill.file_name)
            raise with_suggestions(error, script, others) from None

    def _run_elsewhere(
        self,
        snapshot: Snapshot,
        path: str,
        programs: tuple[str, ...],
        declared: Mapping[str, str],
        *,
        args: Sequence[str],
        stdin: bytes,
    ) -> ScriptResult:
        assert self.runner is not None
        limits = ProcessLimits.for_scripts(self.limits)
        work = None if self.folder is None else os.path.realpath(self.folder)
        job = ScriptJob(
            snapshot.skill.name,
            snapshot.digest,
            snapshot.folder,
            path,
            programs,
            tuple(args),
            stdin,
            {**declared, **self._fixed_env},
            limits,
            self.network,
            work,
        )
        with get_pools(self.limits).scripts.hold_place():
            began = time.monotonic()
            result, gaps = run_elsewhere(self.runner, job)
            seconds = time.monotonic() - began
        kept = [text[: limits.output or None] for text in (result.stdout, result.stderr)]
        return ScriptResult(
            result.status,
            kept[0].decode("utf-8", "replace"),
            kept[1].decode("utf-8", "replace"),
            seconds,
            self.sandbox,
            result.limit,
            stdout_cut=len(kept[0]) < len(result.stdout),
            stderr_cut=len(kept[1]) < len(result.stderr),
            sandbox_gaps=gaps,
        )

    def _run_in_sandbox(
        self,
        kind: Sandbox,
        skill_folder: str,
        make_argv: Callable[[Places], list[str]],
        *,
        needs: tuple[str, ...],
        stdin: bytes = b"",
        grants: tuple[str, ...] = (),
        declared: Mapping[str, str] = MappingProxyType({}),
    ) -> ScriptResult:
        with self._open_run_folders() as (parent, *folders):
            work, temporary, shared_memory = folders
            # Searched for each run, since the one before may have made what must not be changed, such as a repository;
            # and in the folder that is mounted, since a link may lead elsewhere when it is resolved again.
            is_protected = self.folder is not None and kind.name != "none"
            protected = self._find_protected_in(work, grants) if is_protected else sandbox.Protected()
            jail = sandbox.Jail(
                skill_folder, work, temporary, shared_memory, needs, self.network, protected, self.folder is not None
            )
            places = sandbox.places(kind.name, jail)
            finished = run_under_supervisor(
                sandbox.confine_command(kind.name, make_argv(places), jail),
                ProcessLimits.for_scripts(self.limits),
                cwd=work,
                # What every script has wins: a skill that declares PATH gets no other one.
                env={**declared, **self._make_environment(places, inside=kind.name != "none")},
                stdin=stdin,
                # The host's own folder may hold gigabytes that are not the script's, so its size is not watched.
                watched=folders if self.folder is None else (temporary, shared_memory),
                # ``none`` mounts nothing: the script runs on the system as it is.
                room=parent if kind.name != "none" else "",
            )
            notes = (*sandbox.describe_closed(kind.name, protected), *_delete_unwelcome(work, protected))
        return _make_result(finished, kind, notes)

    def _make_environment(self, places: Places, *, inside: bool) -> dict[str, str]:
        # The folder of the skill is read-only: without this, Python would try to write there at each import.
        variables = {**dict.fromkeys(FOLDER_NAMES, places.skill), "PYTHONDONTWRITEBYTECODE": "1"}
        if inside:
            variables |= {"HOME": places.work, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), places.temporary)}
        return {**make_environment(variables), **self._fixed_env}

    @contextmanager
    def _open_run_folders(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield a new folder, and in it those for work, temporary files and shared memory; delete it afterwards.

        The folder for work is the host's where it gave one.
        """
        with temporary_folder() as parent:
            new, temporary, shared_memory = (os.path.join(parent, name) for name in ("work", "tmp", "shm"))
            try:
                for folder in (new, temporary, shared_memory):
                    make_folders(folder, 0o700)
            except OSError as error:
                message = f"cannot work in {parent!r}: {error.strerror}; set TMPDIR to a folder that you may write to"
                raise SandboxError(message, parent, "bad-argument") from None
            # Checked again: the folder may have been deleted since the constructor saw it, and only the host makes it.
            work = new if self.folder is None else os.path.realpath(as_existing_folder(self.folder, "folder"))
            yield parent, work, temporary, shared_memory


def _check_input(args: Sequence[str], stdin: str | bytes, limits: Limits) -> bytes:
    """Return the standard input as bytes; raise ``SandboxError`` for arguments or input that no program can take."""
    # A set or mapping has no order of its own, and an iterator would be used up here, before the script gets anything.
    if not isinstance(args, (list, tuple)):
        raise SandboxError(f"args is a list or tuple of strings, not a {type(args).__name__}", code="bad-argument")
    if not all(isinstance(arg, str) for arg in args):
        raise SandboxError(
            "args holds something that is not a string: pass each argument as a string", code="bad-argument"
        )
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
            "args or stdin holds an unpaired surrogate (a lone surrogate): pass whole characters", code="bad-argument"
        ) from None
    if len(data) > limits.max_script_input_bytes:
        raise SandboxError(f"stdin may have at most {limits.max_script_input_bytes:,} bytes", code="bad-argument")
    return data


def _find_grants(trust: Trust | Consent) -> tuple[str, ...]:
    """Return the file of the grants that decided about a run: a script that could write to it would grant itself."""
    found = trust.trust if isinstance(trust, Consent) else trust
    return (found.path,) if found is not None else ()


def _delete_unwelcome(work: str, protected: Protected) -> Iterator[str]:
    """Delete the files that a program should not have made; yield what was done, in words."""
    for path in protected.unwelcome:
        *folder, name = path.split("/")
        with suppress(OSError):
            handle = open_folder_beneath(work, tuple(folder))
            try:
                delete_file(name, folder=handle)
            finally:
                os.close(handle)
            yield f"{escape_line(path)} was deleted: it would lead git to another configuration"


def _make_result(finished: ProcessResult, kind: Sandbox, notes: tuple[str, ...]) -> ScriptResult:
    return ScriptResult(
        finished.status,
        finished.stdout.decode("utf-8", "replace"),
        finished.stderr.decode("utf-8", "replace"),
        finished.seconds,
        kind.name,
        finished.limit,
        finished.stdout_cut,
        finished.stderr_cut,
        (*kind.gaps, *finished.gaps, *notes),
    )


_INTERPRETERS_BY_EXTENSION: dict[str, tuple[str, ...]] = {
    ".py": ("python",),
    ".sh": ("bash", "sh"),
    ".bash": ("bash",),
    ".zsh": ("zsh",),
    ".js": ("node", "bun", "deno"),
    ".mjs": ("node", "bun", "deno"),
    ".cjs": ("node", "bun"),
    ".ts": ("bun", "deno"),
    ".rb": ("ruby",),
    ".pl": ("perl",),
    ".php": ("php",),
    ".lua": ("lua",),
    ".r": ("Rscript",),
    ".ps1": ("pwsh",),
}
"""The programs for each extension, best first; ``python`` is the one that runs Prowess."""

_EXTRA_ARGUMENTS: dict[str, tuple[str, ...]] = {"deno": ("run",), "pwsh": ("-NoProfile", "-File")}
_ALLOWED = frozenset(name for names in _INTERPRETERS_BY_EXTENSION.values() for name in names) | {"dash", "ksh"}
_SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh"))
# Only options that make a shell stricter or more talkative: others, such as -c, would change what runs.
_SHELL_OPTIONS = re.compile(r"-[efux]{1,4}")
_UV_SHEBANG = ["/usr/bin/env", "-S", "uv", "run"]
_INLINE_METADATA = re.compile(rb"^# /// script\s*$", re.MULTILINE)
_REQUIRES_PYTHON = re.compile(rb"^#\s*requires-python\s*=", re.MULTILINE)
_HEAD_BYTES = 4096


class _Interpreter(NamedTuple):
    """A program that runs scripts."""

    name: str
    argv: tuple[str, ...]
    """The program and the words before the script."""
    needs: tuple[str, ...] = ()
    """The files and folders that the program must be able to read."""


def _find_interpreter(path: str, content: bytes) -> _Interpreter:
    """Return the program for a script.

    Raises ``SandboxError``: ``unknown-interpreter`` for a kind of script that is not known, ``cannot-start`` where the
    program is not on this machine.
    """
    if b"\0" in content[:_HEAD_BYTES]:
        raise SandboxError(f"{path!r} is not text: programs of skills are scripts", path, "unknown-interpreter")
    names, options = _find_candidates(path, content)
    for name in names:
        interpreter = _find_python(content) if name == "python" else _find_on_path(name)
        if interpreter is not None:
            return interpreter._replace(argv=(*interpreter.argv, *options))
    raise SandboxError(f"{path!r} needs {' or '.join(names)}, which is not on this machine", path, "cannot-start")


def _find_programs(path: str, content: bytes) -> tuple[str, ...]:
    """Return the names of the programs that run a script, best first, whether or not they are on this machine.

    Raises ``SandboxError`` (``unknown-interpreter``) for a kind of script that is not known.
    """
    if b"\0" in content[:_HEAD_BYTES]:
        raise SandboxError(f"{path!r} is not text: programs of skills are scripts", path, "unknown-interpreter")
    return _find_candidates(path, content)[0]


def _find_candidates(path: str, content: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the programs to look for, and the options of the script's first line."""
    known = _INTERPRETERS_BY_EXTENSION.get(os.path.splitext(path)[1].lower())
    line = content[:_HEAD_BYTES].split(b"\n", 1)[0].rstrip(b"\r").decode("utf-8", "replace")
    if not line.startswith("#!"):
        if known is None:
            raise SandboxError(f"{path!r} is of no known kind of script", path, "unknown-interpreter")
        return known, ()
    name, options = _parse_shebang(path, line[2:].split())
    # The extension is what a person sees in a listing: a first line of another kind would be a surprise.
    if known is not None and name not in known and not (name in _SHELLS and _SHELLS & set(known)):
        raise SandboxError(f"{path!r} says {line[:80]!r}, which is not for its kind", path, "unknown-interpreter")
    return (name,), options


def _parse_shebang(path: str, words: list[str]) -> tuple[str, tuple[str, ...]]:
    """Return the name of the program in the words of a first line, and its options.

    Raises ``SandboxError`` for a program or an option that is not on the allow-list.
    """
    # The line that uv's documentation recommends; _find_python decides whether uv runs the script.
    if words[:4] == _UV_SHEBANG and words[4:] in ([], ["--script"]):
        return "python", ()
    program, *rest = words or [""]
    if os.path.basename(program) == "env" and program.startswith("/"):
        program, *rest = rest or [""]
        if "/" in program:
            program = ""
    # A program elsewhere could be a file of the skill, or of anybody else.
    elif os.path.dirname(program) not in {"/bin", "/usr/bin", "/usr/local/bin"}:
        program = ""
    name = os.path.basename(program)
    name = name if name in _ALLOWED else name.rstrip("0123456789.")
    shell = name in _SHELLS and all(_SHELL_OPTIONS.fullmatch(word) for word in rest)
    if name not in _ALLOWED or (rest and not shell):
        raise SandboxError(f"{path!r} begins with a line that is not allowed", path, "unknown-interpreter")
    return name, tuple(rest)


def _find_python(content: bytes) -> _Interpreter | None:
    """Return the Python that runs Prowess, or ``uv`` for a script with inline metadata where ``uv`` is installed."""
    head = content[: 16 * _HEAD_BYTES]
    # The path may be relative, such as ../venv/bin/python: inside of a sandbox the folder before the .. is missing.
    python = os.path.abspath(sys.executable) if sys.executable else ""
    uv = _find_on_path("uv") if _INLINE_METADATA.search(head) else None
    folders = tuple(path for path in dict.fromkeys((sys.prefix, sys.base_prefix)) if not _has_home_inside(path))
    if uv is not None:
        # A script that names its own version of Python gets that one from uv, not the one of the host.
        version = () if not python or _REQUIRES_PYTHON.search(head) else ("--python", python)
        needs = tuple(dict.fromkeys((*uv.needs, *folders)))
        return uv._replace(argv=(*uv.argv, "run", "--quiet", *version, "--script"), needs=needs)
    return _Interpreter("python", (python,), folders) if python else _find_on_path("python3")


def _find_on_path(name: str) -> _Interpreter | None:
    program = shutil.which(name)
    if program is None:
        return None
    real = os.path.realpath(program)
    # Behind a link both must be readable: the link, and the folder that it leads to.
    needs = tuple(dict.fromkeys((_find_install_folder(real), *((program,) if program != real else ()))))
    return _Interpreter(name, (program, *_EXTRA_ARGUMENTS.get(name, ())), needs)


def _find_install_folder(program: str) -> str:
    """Return the folder that a program was installed into, or the program itself if that would show a home folder."""
    prefix = os.path.dirname(os.path.dirname(program))
    shared = os.path.dirname(prefix) == os.path.realpath(os.path.expanduser("~"))  # such as ~/.local
    return program if shared or _has_home_inside(prefix) else prefix


def _has_home_inside(folder: str) -> bool:
    return is_really_inside(os.path.expanduser("~"), folder)
