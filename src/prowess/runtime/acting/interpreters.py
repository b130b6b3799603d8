"""Which program runs a script: by its extension and its first line, from an allow-list, found on the search path."""

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
"""The programs for each kind of script, best first; ``python`` is the one that runs Prowess."""

_EXTRA_ARGUMENTS: dict[str, tuple[str, ...]] = {"deno": ("run",), "pwsh": ("-NoProfile", "-File")}
_ALLOWED = frozenset(name for names in INTERPRETERS_BY_EXTENSION.values() for name in names) | {"dash", "ksh"}
_SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh"))
_SHELL_OPTIONS = re.compile(r"-[efux]{1,4}")
_UV_SHEBANG = ["/usr/bin/env", "-S", "uv", "run"]
_VERSION_SUFFIX = re.compile(r"[0-9.]+$")
_INLINE_METADATA = re.compile(rb"^# /// script\s*$", re.MULTILINE)
_REQUIRES_PYTHON = re.compile(rb"^#\s*requires-python\s*=", re.MULTILINE)
_HEAD_BYTES = 4096


class Interpreter(NamedTuple):
    """A program, the words before the script, and the folders that it needs to be able to see."""

    name: str
    argv: tuple[str, ...]
    needs: tuple[str, ...] = ()


def find_interpreter(path: str, content: bytes) -> Interpreter:
    """The program for a script; ``SandboxError`` when its kind is not known, or its program not there."""
    if b"\0" in content[:_HEAD_BYTES]:
        raise SandboxError(f"{path!r} is not text: programs of skills are scripts", path, "unknown-interpreter")
    names, options = _find_candidates(path, content)
    for name in names:
        found = _find_python(content) if name == "python" else _find_on_path(name)
        if found is not None:
            return found._replace(argv=(*found.argv, *options))
    raise SandboxError(f"{path!r} needs {' or '.join(names)}, which is not on this machine", path, "cannot-start")


def _find_candidates(path: str, content: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names to look for, and the options of its first line."""
    known = INTERPRETERS_BY_EXTENSION.get(os.path.splitext(path)[1].lower())
    line = content[:_HEAD_BYTES].split(b"\n", 1)[0].rstrip(b"\r").decode("utf-8", "replace")
    if not line.startswith("#!"):
        if known is None:
            raise SandboxError(f"{path!r} is of no known kind of script", path, "unknown-interpreter")
        return known, ()
    name, options = _parse_shebang(path, line[2:].split())
    if known is not None and name not in known and not (name in _SHELLS and _SHELLS & set(known)):
        raise SandboxError(f"{path!r} says {line[:80]!r}, which is not for its kind", path, "unknown-interpreter")
    return (name,), options


def _parse_shebang(path: str, words: list[str]) -> tuple[str, tuple[str, ...]]:
    if words[:4] == _UV_SHEBANG and words[4:] in ([], ["--script"]):
        return "python", ()
    program, *rest = words or [""]
    if os.path.basename(program) == "env" and program.startswith("/"):
        program, *rest = rest or [""]
        if "/" in program:
            program = ""
    elif os.path.dirname(program) not in {"/bin", "/usr/bin", "/usr/local/bin"}:
        program = ""
    name = os.path.basename(program)
    name = name if name in _ALLOWED else _VERSION_SUFFIX.sub("", name)
    shell = name in _SHELLS and all(_SHELL_OPTIONS.fullmatch(word) for word in rest)
    if name not in _ALLOWED or (rest and not shell):
        raise SandboxError(f"{path!r} begins with a line that is not allowed", path, "unknown-interpreter")
    return name, tuple(rest)


def _find_python(content: bytes) -> Interpreter | None:
    """The Python that runs Prowess; with inline metadata, ``uv`` where there is one."""
    head = content[: 16 * _HEAD_BYTES]
    # Somebody may have started it as ../venv/bin/python: inside of a sandbox the folder before the .. is not there.
    python = os.path.abspath(sys.executable) if sys.executable else ""
    uv = _find_on_path("uv") if _INLINE_METADATA.search(head) else None
    folders = tuple(path for path in dict.fromkeys((sys.prefix, sys.base_prefix)) if not _has_home_inside(path))
    if uv is not None:
        own = ("--python", python) if python and not _REQUIRES_PYTHON.search(head) else ()
        needs = tuple(dict.fromkeys((*uv.needs, *folders)))
        return uv._replace(argv=(*uv.argv, "run", "--quiet", *own, "--script"), needs=needs)
    return Interpreter("python", (python,), folders) if python else _find_on_path("python3")


def _find_on_path(name: str) -> Interpreter | None:
    found = shutil.which(name)
    if found is None:
        return None
    real = os.path.realpath(found)
    needs = tuple(dict.fromkeys((_find_install_folder(real), *((found,) if found != real else ()))))
    return Interpreter(name, (found, *_EXTRA_ARGUMENTS.get(name, ())), needs)


def _find_install_folder(program: str) -> str:
    """The folder that a program was installed into, or the program alone where that would show a home folder."""
    prefix = os.path.dirname(os.path.dirname(program))
    shared = os.path.dirname(prefix) == os.path.realpath(os.path.expanduser("~"))  # such as ~/.local
    return program if shared or _has_home_inside(prefix) else prefix


def _has_home_inside(folder: str) -> bool:
    return is_really_inside(os.path.expanduser("~"), folder)
