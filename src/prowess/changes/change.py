"""A prepared change: its steps, the states of the files that it is based on, and the function that applies it."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from prowess.errors import ResourceError
from prowess.files.directory import exists, stat_folder
from prowess.files.paths import is_link, read_link
from prowess.files.tree import digest_tree, hash_file, hash_tree
from prowess.lockfile.read import LOCK_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from prowess.errors import Issue
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits


T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Change(Generic[T]):
    """What a change would do. Nothing of it is done yet. ``T`` is what making it returns."""

    steps: Sequence[str] = ()
    """What is going to be done, a sentence each; empty where there is nothing to do."""
    apply: Callable[[], T]
    """Makes the change."""
    describe: Callable[[T], Sequence[str]] = lambda _: ()
    """Returns what was done, a sentence each."""
    issues: Callable[[], Sequence[Issue]] = tuple
    """Returns what was noticed so far."""
    states: Mapping[str, str] = field(default_factory=dict)
    """What ``read_states`` returned before the steps were found out: the plan holds for these states alone."""
    read_states: Callable[[], Mapping[str, str]] = dict
    """Returns the current state of every file that the plan names, by what people call it."""
    open_block: Callable[[], AbstractContextManager[object]] = nullcontext
    """Returns the block that reads the states again and makes the change."""
    choose: Callable[[Any], Change[T]] | None = None
    """Where a person has to choose something first: returns the change for what was chosen."""
    details: Any = None
    """What is shown beside the steps; each kind of change has its own."""
    idle_text: str = "Nothing to do."
    """What is reported without any step."""

    def without_work(self) -> Change[Any]:
        """Return what of this change is worth remembering: without the functions, which hold on to all of its files."""
        return idle_change(steps=self.steps, states=self.states, details=self.details, idle_text=self.idle_text)


def idle_change(**fields: Any) -> Change[Sequence[str]]:
    """Return a change that does nothing, with these fields."""
    return Change(**{"apply": tuple, **fields})


def read_file_states(paths: Iterable[str], limits: Limits) -> dict[str, str]:
    """Return a string for each path that changes with every byte at that path; for a link, its target."""
    return {path: _read_state(path, limits) for path in paths}


def list_scope_files(scope: InstallScope) -> list[str]:
    """Return the lock file and the manifest of a scope, which every change of its installs goes by."""
    from prowess.install.manifest import MANIFEST_FILE  # late: `trust` makes a change without the installer

    return [os.path.join(scope.lock_folder, name) for name in (LOCK_FILE, MANIFEST_FILE)]


def _read_state(path: str, limits: Limits) -> str:
    if is_link(path):
        return f"a link to {read_link(path)}"
    if not exists(path):
        return "missing"
    try:
        if stat_folder(path) is not None:
            return f"a folder, {digest_tree(hash_tree(path, limits).files)}"
        return f"a file, {hash_file(os.path.dirname(path), (os.path.basename(path),), limits.max_digest_bytes).sha256}"
    except (OSError, ResourceError) as error:
        return f"unreadable: {error}"
