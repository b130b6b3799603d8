"""Naive code: the obvious way to do what Prowess does, without any protection.

Each hostile case has a twin, a test that runs this code on the attack and sees the attack succeed. That proves that the
tests of Prowess can fail. Prowess uses nothing of this module.
"""

from __future__ import annotations

import io
import json
import os
import re
import socket
import subprocess
import tarfile
import urllib.request
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable

    Loader = type[yaml.SafeLoader | yaml.UnsafeLoader | yaml.CSafeLoader]


def frontmatter(text: str, loader: Loader = yaml.SafeLoader) -> dict[str, Any]:
    """Return the fields by a pattern that backtracks, and by YAML with its types, anchors and repeated keys."""
    match = re.match(r"^---\s*\n(.*?)\n---\s*\n", text, re.DOTALL)
    if match is None:
        raise ValueError("no frontmatter")
    values: dict[str, Any] = yaml.load(match.group(1), Loader=loader)  # noqa: S506 - that is the point
    return values


def skill(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the fields and the text of a file, read whole, whatever it is."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        text = file.read()
    return {**frontmatter(text), "path": str(path), "text": text}


def scan(*roots: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Return every SKILL.md below the roots. Links are followed, the last of a name wins, no error is caught."""
    skills: dict[str, dict[str, Any]] = {}
    for root in roots:
        for folder, _, files in os.walk(root, followlinks=True):
            for name in files:
                if name.lower() == "skill.md":
                    one = skill(os.path.join(folder, name))  # noqa: PTH118
                    skills[one["name"]] = one
    return skills


def render(skills: Iterable[dict[str, Any]], template: str = "Skills:\n{skills_list}") -> str:
    """Return a listing with the fields pasted into markup unescaped, and the result into a template."""
    fields = [(skill["name"], skill["description"]) for skill in skills]
    entries = "".join(f"<skill><name>{n}</name><description>{d}</description></skill>\n" for n, d in fields)
    return template.replace("{skills_list}", f"<available_skills>\n{entries}</available_skills>")


def read(folder: str | os.PathLike[str], path: str) -> str:
    """Return the text of the file at the joined path, without any check."""
    with open(os.path.join(folder, path), encoding="utf-8") as file:  # noqa: PTH118, PTH123
        return file.read()


def checked_read(folder: str | os.PathLike[str], path: str) -> str:
    """Return the text of a file after its resolved path was checked. A swap after the check is not noticed."""
    base = Path(folder).resolve()
    full = (base / path).resolve()
    if not full.is_relative_to(base):
        raise PermissionError(path)
    return full.read_text(encoding="utf-8")


def files(folder: str | os.PathLike[str]) -> list[str]:
    """Return every file of a tree by recursion, without limits."""
    listed: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            listed += files(entry.path) if entry.is_dir() else [entry.path]
    return listed


def place(root: str | os.PathLike[str], values: dict[str, Any]) -> str:
    """Return the folder for a skill with that name, wherever the name leads."""
    return os.path.normpath(os.path.join(root, str(values["name"])))  # noqa: PTH118


def unzip(data: bytes, folder: str | os.PathLike[str]) -> None:
    """Write every entry of a zip archive where its name says. A link becomes a link."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            path = Path(os.path.join(folder, info.filename))  # noqa: PTH118 - that is the point
            path.parent.mkdir(parents=True, exist_ok=True)
            if info.external_attr >> 28 == 0o12:
                path.symlink_to(archive.read(info).decode())
            elif not info.is_dir():
                path.write_bytes(archive.read(info))


def untar(data: bytes, folder: str | os.PathLike[str]) -> None:
    """Write everything that a tar archive holds, where and as it says."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        # Python 3.11.3 and earlier has no filters, and does the same without one.
        archive.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
        archive.extractall(folder)  # noqa: S202 - that is the point


def fetch(url: str, headers: dict[str, str] | None = None, most: int | None = None) -> bytes:
    """Return what the address gives, redirects followed: everything, or silently cut after ``most`` bytes."""
    request = urllib.request.Request(url, headers=headers or {})  # noqa: S310 - any address, that is the point
    parts: list[bytes] = []
    with urllib.request.urlopen(request) as response:  # noqa: S310
        while part := response.read(most or 1 << 16):
            parts.append(part)
            if most:
                break
    return b"".join(parts)


def checked_fetch(url: str) -> bytes:
    """Return what the address gives after its host was checked. A later answer of the name service is not."""
    host = urlsplit(url).hostname
    if socket.getaddrinfo(host, 80)[0][4][0] in {"127.0.0.1", "::1"}:
        raise PermissionError(host)
    return fetch(url)


def index(url: str) -> list[dict[str, Any]]:
    """Return the entries of an index, of any size and depth."""
    skills: list[dict[str, Any]] = json.loads(fetch(url))["skills"]
    return skills


def mirror(base: str, folder: str | os.PathLike[str]) -> None:
    """Write every file that an index lists under the name that the index gives."""
    for entry in index(f"{base}/.well-known/skills/index.json"):
        for file in entry["files"]:
            path = Path(os.path.join(folder, entry["name"], file))  # noqa: PTH118 - that is the point
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(fetch(f"{base}/.well-known/skills/skill/file"))


def settings(host: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the host, overridden by the fields of the skill."""
    return {**host, **values}


_COMMAND = re.compile(r"!`([^`]+)`")


def expand(text: str, cwd: str | os.PathLike[str], arguments: str = "") -> str:
    """Return the text with arguments inserted and every command run in a shell, until no command is left."""
    text = text.replace("$ARGUMENTS", arguments)
    while match := _COMMAND.search(text):
        done = subprocess.run(match[1], shell=True, cwd=cwd, capture_output=True, encoding="utf-8", check=False)  # noqa: S602
        text = text[: match.start()] + done.stdout + text[match.end() :]
    return text


def expand_trusted(path: str | os.PathLike[str], trusted: set[str], cwd: str | os.PathLike[str]) -> str:
    """Run the commands of a file whose path is trusted, whatever the file says today."""
    text = Path(path).read_text(encoding="utf-8")
    return expand(text, cwd) if str(path) in trusted else text


def run_script(folder: str | os.PathLike[str], path: str, *args: str, cwd: str | os.PathLike[str]) -> str:
    """Run the file at the joined path by the program that its first line names, and return its output."""
    command = [os.path.join(folder, path), *args]  # noqa: PTH118
    return subprocess.run(command, cwd=cwd, capture_output=True, encoding="utf-8", check=True).stdout
