"""Whether the files that instructions name are there: else a model is sent to nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import Issue, ResourceError
from prowess.files.read import OpenFile
from prowess.spec.file_references import find_file_references

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.files.tree import TreeListing
    from prowess.limits import Limits
    from prowess.spec.file_references import FileReference


def find_missing_files(where: str, body: int, tree: TreeListing, limits: Limits) -> Iterator[Issue]:
    """A warning for each file that the instructions of a SKILL.md name and its folder does not have.

    ``body``: the byte at which the instructions begin; ``tree``: what is in the folder. A file that is named several
    times is reported where it is named first.
    """
    if tree.bound:  # what was not listed may be there
        return
    known = {*tree.files, *tree.links, *tree.others, *tree.unreadable}
    missing: dict[str, FileReference] = {}
    for mention in _read_mentions(where, body, limits):
        if len(missing) < limits.max_files_per_skill and not _is_known(mention.path, known):
            missing.setdefault(mention.path, mention)
    alike = {_fold_name(path): path for path in tree.files}
    for path, mention in missing.items():
        meant = alike.get(_fold_name(path))
        message = "is no file of the skill" + (f"; there is {meant}" if meant else "")
        yield Issue("missing-reference", mention.written, message, where, mention.line, "warning")


def _read_mentions(where: str, body: int, limits: Limits) -> Iterator[FileReference]:
    folder, name = os.path.split(where)
    try:
        with OpenFile(folder, (name,)) as file:
            data = file.read(limits.max_frontmatter_bytes + limits.max_body_bytes)
    except ResourceError:
        return iter(())
    return find_file_references(data[body:].decode("utf-8", "replace"), data.count(b"\n", 0, body) + 1)


def _is_known(path: str, known: set[str]) -> bool:
    """Whether it is a file, or lies in what a listing does not enter and other findings are about."""
    parts = path.split("/")
    return any("/".join(parts[:count]) in known for count in range(1, len(parts) + 1))


def _fold_name(path: str) -> str:
    return path.rpartition("/")[2].casefold()
