"""The naive twins: what the guarded functions would be if nobody had thought of the cases.

Each is the obvious code, as one finds it everywhere. The tests run them on the same cases and see them fail, which
proves that the cases are real. Nothing here is used by the engine.
"""

from __future__ import annotations

import io
import json
import os
import re
import socket
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
    """A pattern that backtracks, then YAML with all its types, anchors and last-one-wins keys."""
    match = re.match(r"^---\s*\n(.*?)\n---\s*\n", text, re.DOTALL)
    if match is None:
        raise ValueError("no frontmatter")
    values: dict[str, Any] = yaml.load(match.group(1), Loader=loader)  # noqa: S506 - that is the point
    return values


def skill(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The whole file, whatever it is, and its fields as they come."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        text = file.read()
    return {**frontmatter(text), "path": str(path), "text": text}


def scan(*roots: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Every SKILL.md anywhere below, links followed; the last of a name wins; no error is expected."""
    skills: dict[str, dict[str, Any]] = {}
    for root in roots:
        for folder, _, files in os.walk(root, followlinks=True):
            for name in files:
                if name.lower() == "skill.md":
                    one = skill(os.path.join(folder, name))  # noqa: PTH118
                    skills[one["name"]] = one
    return skills


def render(skills: Iterable[dict[str, Any]], template: str = "Skills:\n{skills_list}") -> str:
    """Fields pasted into markup, and the result into a template."""
    fields = [(skill["name"], skill["description"]) for skill in skills]
    entries = "".join(f"<skill><name>{n}</name><description>{d}</description></skill>\n" for n, d in fields)
    return template.replace("{skills_list}", f"<available_skills>\n{entries}</available_skills>")


def read(folder: str | os.PathLike[str], path: str) -> str:
    """Joined and opened."""
    with open(os.path.join(folder, path), encoding="utf-8") as file:  # noqa: PTH118, PTH123
        return file.read()


def checked_read(folder: str | os.PathLike[str], path: str) -> str:
    """Resolved, checked, and then opened: right until somebody swaps the file in between."""
    base = Path(folder).resolve()
    full = (base / path).resolve()
    if not full.is_relative_to(base):
        raise PermissionError(path)
    return full.read_text(encoding="utf-8")


def files(folder: str | os.PathLike[str]) -> list[str]:
    """The whole tree by recursion."""
    listed: list[str] = []
    with os.scandir(folder) as found:
        for entry in found:
            listed += files(entry.path) if entry.is_dir() else [entry.path]
    return listed


def place(root: str | os.PathLike[str], values: dict[str, Any]) -> str:
    """Where a skill of that name would be put."""
    return os.path.normpath(os.path.join(root, str(values["name"])))  # noqa: PTH118


def unzip(data: bytes, folder: str | os.PathLike[str]) -> None:
    """Every entry read whole and written where its name says; a link becomes one."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            path = Path(os.path.join(folder, info.filename))  # noqa: PTH118 - that is the point
            path.parent.mkdir(parents=True, exist_ok=True)
            if info.external_attr >> 28 == 0o12:
                path.symlink_to(archive.read(info).decode())
            elif not info.is_dir():
                path.write_bytes(archive.read(info))


def untar(data: bytes, folder: str | os.PathLike[str]) -> None:
    """Everything that the archive holds, as it says."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(folder, filter="fully_trusted")  # noqa: S202 - that is the point


def fetch(url: str, headers: dict[str, str] | None = None, most: int | None = None) -> bytes:
    """Whatever the address gives, redirects followed, as much as comes or as is wanted."""
    request = urllib.request.Request(url, headers=headers or {})  # noqa: S310 - any address, that is the point
    parts: list[bytes] = []
    with urllib.request.urlopen(request) as response:  # noqa: S310
        while part := response.read(most or 1 << 16):
            parts.append(part)
            if most:
                break
    return b"".join(parts)


def checked_fetch(url: str) -> bytes:
    """Resolved and checked, and then fetched: right until the name service changes its mind."""
    host = urlsplit(url).hostname
    if socket.getaddrinfo(host, 80)[0][4][0] in {"127.0.0.1", "::1"}:
        raise PermissionError(host)
    return fetch(url)


def index(url: str) -> list[dict[str, Any]]:
    """The entries of an index."""
    skills: list[dict[str, Any]] = json.loads(fetch(url))["skills"]
    return skills


def mirror(base: str, folder: str | os.PathLike[str]) -> None:
    """Every file that an index lists, written under the name that it gives."""
    for entry in index(f"{base}/.well-known/skills/index.json"):
        for file in entry["files"]:
            path = Path(os.path.join(folder, entry["name"], file))  # noqa: PTH118 - that is the point
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(fetch(f"{base}/.well-known/skills/skill/file"))


def settings(host: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The host's settings with whatever the skill asks for."""
    return {**host, **values}
