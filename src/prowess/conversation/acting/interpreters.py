"""The interpreter of a script: chosen by extension and first line from an allow-list, found on the search path."""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import NamedTuple

from prowess.errors import SandboxError
from prowess.files.paths import is_really_inside

INTERPRETERS_BY_EXTENSION: dict[str, tuple[str, ...]] = {
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
_ALLOWED = frozenset(name for names in INTERPRETERS_BY_EXTENSION.values() for name in names) | {"dash", "ksh"}
_SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh"))
# Only options that make a shell stricter or more talkative: others, such as -c, would change what runs.
_SHELL_OPTIONS = re.compile(r"-[efux]{1,4}")
_UV_SHEBANG = ["/usr/bin/env", "-S", "uv", "run"]
_INLINE_METADATA = re.compile(rb"^# /// script\s*$", re.MULTILINE)
_REQUIRES_PYTHON = re.compile(rb"^#\s*requires-python\s*=", re.MULTILINE)
_HEAD_BYTES = 4096


class Interpreter(NamedTuple):
    """A program that runs scripts."""

    name: str
    argv: tuple[str, ...]
    """The program and the words before the script."""
    needs: tuple[str, ...] = ()
    """The files and folders that the program must be able to read."""


def find_interpreter(path: str, content: bytes) -> Interpreter:
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


def find_programs(path: str, content: bytes) -> tuple[str, ...]:
    """Return the names of the programs that run a script, best first, whether or not they are on this machine.

    Raises ``SandboxError`` (``unknown-interpreter``) for a kind of script that is not known.
    """
    if b"\0" in content[:_HEAD_BYTES]:
        raise SandboxError(f"{path!r} is not text: programs of skills are scripts", path, "unknown-interpreter")
    return _find_candidates(path, content)[0]


def _find_candidates(path: str, content: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the programs to look for, and the options of the script's first line."""
    known = INTERPRETERS_BY_EXTENSION.get(os.path.splitext(path)[1].lower())
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


def _find_python(content: bytes) -> Interpreter | None:
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
    return Interpreter("python", (python,), folders) if python else _find_on_path("python3")


def _find_on_path(name: str) -> Interpreter | None:
    program = shutil.which(name)
    if program is None:
        return None
    real = os.path.realpath(program)
    # Behind a link both must be readable: the link, and the folder that it leads to.
    needs = tuple(dict.fromkeys((_find_install_folder(real), *((program,) if program != real else ()))))
    return Interpreter(name, (program, *_EXTRA_ARGUMENTS.get(name, ())), needs)


def _find_install_folder(program: str) -> str:
    """Return the folder that a program was installed into, or the program itself if that would show a home folder."""
    prefix = os.path.dirname(os.path.dirname(program))
    shared = os.path.dirname(prefix) == os.path.realpath(os.path.expanduser("~"))  # such as ~/.local
    return program if shared or _has_home_inside(prefix) else prefix


def _has_home_inside(folder: str) -> bool:
    return is_really_inside(os.path.expanduser("~"), folder)
