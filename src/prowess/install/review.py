"""Reviews: what a source has, beside what was approved last, and the entries that approve it."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from prowess.errors import InstallError, ResourceNotFoundError, SkillError
from prowess.files.read import OpenFile
from prowess.files.syscalls import wrap_os_errors
from prowess.files.tree import digest_tree, hash_files
from prowess.files.write import make_folders, write_atomic
from prowess.install.abilities import OldVersion, UpdateAddition, list_additions
from prowess.install.entry_source import policy_address
from prowess.install.file_diffs import diff_files
from prowess.install.install_tree import InstallTree, refuse_unloadable, trees_for
from prowess.lockfile.read import toml_row
from prowess.policy.files import current_policy, read_approvals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from prowess.addresses.source_spec import SourceSpec
    from prowess.files.write import NewFile
    from prowess.install.source_tree import SourceTree
    from prowess.limits import Limits
    from prowess.policy.rules import Approval

    OpenSource = Callable[[SourceSpec], AbstractContextManager[SourceTree]]

_ENTRY_START = re.compile(r"^[ \t]*\[\[[ \t]*skill[ \t]*\]\]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SkillReview:
    """One skill of a source, for whoever approves it for everybody."""

    name: str
    digest: str
    source: str
    """The address, as ``approved.toml`` has it."""
    commit: str
    files: tuple[str, ...]
    additions: tuple[UpdateAddition, ...]
    """What is new since the last approval and what could run; everything, where there was none."""
    diff: str
    """The difference from the last approval; the whole content where there was none, or it is not known any more."""
    before: Approval | None = None
    """The last approval of a skill of this name from this source."""
    why_unknown: str = ""
    """Why the files of the last approval are not known."""

    @property
    def is_approved(self) -> bool:
        """Whether exactly this state was approved, and the approval still counts."""
        return self.before is not None and self.before.digest == self.digest and self.before.is_valid()


@dataclass(frozen=True, slots=True)
class _State:
    """One skill in one state: its files, by their paths from its folder."""

    name: str
    files: tuple[NewFile, ...]
    commit: str

    @property
    def digest(self) -> str:
        return digest_tree(hash_files(self.files))


def review_source(
    open_source: OpenSource, spec: SourceSpec, approvals: Sequence[Approval], folder: str, limits: Limits
) -> tuple[SkillReview, ...]:
    """Return each skill of a source beside what was approved of it last.

    Raises ``PolicyError`` for a skill that is revoked, and ``InstallError`` for a source without a skill that loads.
    """
    states = [*_read_states(open_source, spec, limits)]
    policy, address = current_policy(folder), policy_address(spec)
    reviews = []
    for state in states:
        policy.check_revoked(state.name, state.digest, address, spec.ref)
        same = [one for one in approvals if one.name == state.name and one.source == address]
        before = next((one for one in same if one.digest == state.digest), same[-1] if same else None)
        reviews.append(_compare(state, before, open_source, spec, limits))
    return tuple(reviews)


def _read_states(open_source: OpenSource, spec: SourceSpec, limits: Limits) -> Iterator[_State]:
    with wrap_os_errors(), open_source(spec) as source:
        trees = trees_for(source, spec, limits)
    refuse_unloadable(trees)
    for tree in trees:
        yield from _split_tree(tree)


def _split_tree(tree: InstallTree) -> Iterator[_State]:
    for name, folder in tree.skills.items():
        prefix = f"{folder}/" if folder else ""
        files = [
            file._replace(path=file.path.removeprefix(prefix)) for file in tree.files if file.path.startswith(prefix)
        ]
        yield _State(name, tuple(files), tree.commit)


def _compare(
    state: _State, before: Approval | None, open_source: OpenSource, spec: SourceSpec, limits: Limits
) -> SkillReview:
    old, why = None, ""
    if before is not None and before.digest != state.digest:
        old = _find_approved(before, open_source, spec, limits) if before.commit else None
        if old is None:
            why = f"what {before.reviewer or 'somebody'} approved ({before.digest[:12]}) is not at its source any more"
    elif before is not None:
        old = state
    hashes, new = {} if old is None else hash_files(old.files), hash_files(state.files)
    files = () if old is None else old.files
    tree = InstallTree(spec, state.commit, state.name, "", "", state.files, {state.name: ""})
    known = OldVersion({} if old is None else {state.name: ""}, hashes, files)
    additions = list_additions(tree, {path for path in new if new[path] != hashes.get(path)}, known, limits)
    diff, paths = diff_files(files, state.files, limits), tuple(file.path for file in state.files)
    address = policy_address(spec)
    return SkillReview(state.name, state.digest, address, state.commit, paths, additions, diff, before, why)


def _find_approved(before: Approval, open_source: OpenSource, spec: SourceSpec, limits: Limits) -> _State | None:
    """Return the state that was approved last, if its source still has it."""
    with suppress(SkillError):
        for state in _read_states(open_source, replace(spec, ref=before.commit), limits):
            if state.digest == before.digest:
                return state
    return None


def write_approvals(path: str, approvals: Sequence[Approval], limits: Limits) -> None:
    """Add approvals to an ``approved.toml``; an entry with the digest of one of them is replaced, and others stay.

    Raises ``PolicyError`` for a file that is malformed, and ``InstallError`` for one that cannot be written.
    """
    read_approvals(path, limits)  # nothing is added to a file that would stop everything
    text = ""
    with suppress(ResourceNotFoundError), OpenFile(os.path.dirname(path), (os.path.basename(path),)) as file:
        text = file.read_all(limits.max_policy_bytes).decode("utf-8")
    starts = [match.start() for match in _ENTRY_START.finditer(text)]
    parts = [text[begin:end] for begin, end in pairwise([*starts, len(text)])]
    digests = {one.digest for one in approvals}
    kept = [part for part in parts if not any(digest in part for digest in digests)]
    head = text[: starts[0]] if starts else text
    texts = ["".join((head, *kept)).rstrip("\n"), *map(_approval_text, approvals)]
    with wrap_os_errors():
        make_folders(os.path.dirname(path))
        write_atomic(path, ("\n\n".join(filter(None, texts)) + "\n").encode(), mode=0o644)
    if {one.digest for one in read_approvals(path, limits)} & digests != digests:
        raise InstallError("the approvals were not written", path, "bad-lock")


def _approval_text(approval: Approval) -> str:
    values = {
        "name": approval.name,
        "digest": approval.digest,
        "source": approval.source,
        "commit": approval.commit,
        "reviewer": approval.reviewer,
        "run": approval.run,
        "expires": approval.expires,
    }
    return "\n".join(("[[skill]]", *(toml_row(key, value) for key, value in values.items() if value not in {"", None})))
