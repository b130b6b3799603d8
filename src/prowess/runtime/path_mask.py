"""Absolute paths of the host taken out of text for a model (``Toolset(hide_paths=True)``)."""

from __future__ import annotations

import os
import re
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.runtime.session import Session


def mask_paths(text: str, folders: Iterable[str]) -> str:
    """``text`` in which paths below one of ``folders`` are relative to it, and the folder itself is ``.``."""
    roots = sorted({folder.rstrip("/\\") for folder in folders if os.path.isabs(folder)}, key=len, reverse=True)
    known = "|".join(re.escape(root) for root in roots if root)
    if not known:
        return text
    # A name that only begins alike is another folder: ``/srv/skills2`` is none of ``/srv/skills``.
    return re.sub(rf"(?:{known})(?:([/\\])|(?![\w-]|\.\w))", lambda match: "" if match[1] else ".", text)


def host_folders(session: Session) -> set[str]:
    """The folders whose paths say something about the host: those of skills, of the project, the home, temporary ones.

    Found anew each time, since catalogues and environments change; for 500 skills that takes well below a millisecond.
    """
    parents = {os.path.dirname(skill.folder) for skill in session.catalog if skill.is_local}
    folders = {*parents, session.base_dir, os.path.expanduser("~"), tempfile.gettempdir()}
    return folders | {os.path.realpath(folder) for folder in folders}
