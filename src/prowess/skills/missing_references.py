"""The check that the files which instructions name exist: a model that is sent to a missing file gets nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import Issue, ResourceError
from prowess.files.read import OpenFile
from prowess.format.file_references import find_file_references

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.files.tree import TreeListing
    from prowess.format.file_references import FileReference
    from prowess.limits import Limits


def find_missing_references(file: str, body_offset: int, tree: TreeListing, limits: Limits) -> Iterator[Issue]:
    """A warning for each file that the instructions of a SKILL.md name and its folder does not have.

    ``file``: the path of the SKILL.md; ``body_offset``: the byte at which its instructions begin; ``tree``: what is in
    the folder. A file that is named several times is reported where it is named first.
    """
    if tree.bound:  # the listing stopped at a limit, and the file may be among those that it did not reach
        return
    known = {*tree.files, *tree.links, *tree.others, *tree.unreadable}
    missing: dict[str, FileReference] = {}
    for mention in _read_mentions(file, body_offset, limits):
        # Instructions may name any number of files: the limit keeps what is remembered of them small.
        if len(missing) < limits.max_files_per_skill and not _is_known(mention.path, known):
            missing.setdefault(mention.path, mention)
    by_name = {_fold_name(path): path for path in tree.files}  # another folder or case is the commonest mistake
    for path, mention in missing.items():
        meant = by_name.get(_fold_name(path))
        message = "is not a file of the skill" + (f"; there is {meant}" if meant else "")
        yield Issue("missing-reference", mention.written, message, file, mention.line, "warning")


def _read_mentions(file: str, body_offset: int, limits: Limits) -> Iterator[FileReference]:
    """The files that the instructions of a SKILL.md name, each with its line; none where it cannot be read."""
    folder, name = os.path.split(file)
    try:
        with OpenFile(folder, (name,)) as opened:
            data = opened.read(limits.max_frontmatter_bytes + limits.max_body_bytes)
    except ResourceError:
        return iter(())
    first_line = data.count(b"\n", 0, body_offset) + 1
    return find_file_references(data[body_offset:].decode("utf-8", "replace"), first_line)


def _is_known(path: str, known: set[str]) -> bool:
    """True when ``path``, or a folder above it, is among the ``known`` paths.

    Below a link or a folder that cannot be read nothing was listed, and other findings report these.
    """
    parts = path.split("/")
    return any("/".join(parts[:count]) in known for count in range(1, len(parts) + 1))


def _fold_name(path: str) -> str:
    return path.rpartition("/")[2].casefold()
