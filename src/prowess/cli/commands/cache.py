"""``prowess cache``: shows, verifies and prunes what was fetched and kept, and the backups with it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import click

from prowess.changes.change import Change
from prowess.cli.change_flow import ChangeFlags, ChangeView, carry_out, change_options
from prowess.cli.command_class import new_command
from prowess.cli.install_options import find_location, read_cache_limits
from prowess.cli.options import AskedLocation, location_options
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Table, line
from prowess.errors import GitError
from prowess.fetch.cache import Cache, sha256_hex
from prowess.fetch.git.objects import load_objects
from prowess.files.delete import delete_tree
from prowess.files.paths import shorten_path
from prowess.files.syscalls import wrap_os_errors
from prowess.install.installer import Installer
from prowess.limits import DEFAULT_LIMITS
from prowess.progress_steps import report_steps
from prowess.text.quantities import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.fetch.cache import CachedFile
    from prowess.limits import Limits


_HEAD = ("kept", "how many", "size", "used last")
_WORDS = {"git": "commits", "archives": "archives", "sha256": "files of sites"}


class _Kept(NamedTuple):
    """Something that is kept: what it is, where, its size, and when it was used last."""

    what: str
    path: str
    size: int
    used_at: float
    file: CachedFile | None
    """The file of the cache; ``None`` for a backup."""


@new_command(
    "cache",
    ("prowess cache", "what is kept, and how large it is"),
    ("prowess cache --verify", "every file hashed; exit status 1 if one is damaged"),
    ("prowess cache --prune", "delete what was not used for half a year, and what is damaged"),
)
@click.option("--verify", is_flag=True, help="Hash every file of the cache, and name those that are damaged.")
@click.option("--prune", is_flag=True, help="Delete what nobody used for long, what is too much, and what is damaged.")
@location_options
@change_options
def command(*, verify: bool, prune: bool, asked: AskedLocation, flags: ChangeFlags) -> int:
    """Show what was fetched and kept, and the backups of replaced skills; verify it, and delete what is old.

    The cache is that of PROWESS_CACHE_DIR, or in your cache folder. It prunes itself once a day: it keeps what was used
    in the last 180 days, up to 2 GiB; the settings cache_days and cache_megabytes change that. Backups are deleted by
    --prune alone, and only those that are older. Inside a project its backups are meant, and elsewhere your own.

    Exit status 1: a file of the cache is damaged, and --prune did not delete it; or you said no.
    """
    cache, installer = Cache(), Installer()
    backups = [
        _Kept("backups", str(backup.path), backup.bytes, backup.when.timestamp(), None)
        for backup in installer.backups(location=find_location(installer, asked))
    ]
    kept = [*(_to_kept(cache, file) for file in cache.list_files()), *backups]
    damaged: list[_Kept] = []
    if verify or prune:
        with printer.show_progress("hashing"):
            damaged = [_to_kept(cache, file) for file in _find_damaged(cache, DEFAULT_LIMITS)]
    due: list[_Kept] = []
    if prune:
        limits = read_cache_limits()
        expires = time.time() - limits.keep_cached_seconds
        old = [_to_kept(cache, file) for file in cache.find_prunable(limits)]
        due = [*dict.fromkeys((*damaged, *old)), *(one for one in backups if one.used_at < expires)]
    return carry_out(*_plan_change(cache, kept, damaged, due), flags)


def _to_kept(cache: Cache, file: CachedFile) -> _Kept:
    return _Kept(_WORDS[file.kind], cache.path_of(file), file.size, file.used_at, file)


def _plan_change(
    cache: Cache, kept: Sequence[_Kept], damaged: Sequence[_Kept], due: Sequence[_Kept]
) -> tuple[Change[list[_Kept]], ChangeView[list[_Kept]]]:
    """Return the change that deletes what is due, and how it is shown."""

    def delete() -> list[_Kept]:
        gone = {*cache.delete_files(one.file for one in due if one.file is not None)}
        with wrap_os_errors():
            for one in due:
                if one.file is None:
                    delete_tree(one.path)
        return [one for one in due if one.file is None or one.file in gone]

    def to_dict(deleted: Sequence[_Kept] | None) -> dict[str, object]:
        return {
            "folder": cache.folder,
            "kept": [
                {"what": what, "count": len(those), "bytes": sum(one.size for one in those)}
                for what, those in _group(kept)
            ],
            "damaged": [one.path for one in damaged],
            "due": [one.path for one in due],
            "deleted": [one.path for one in deleted or ()],
        }

    def find_status(deleted: Sequence[_Kept]) -> int:
        return 1 if {*damaged} - {*deleted} else 0

    return Change(apply=delete, idle_text=""), ChangeView(
        plan=[*_to_blocks(cache, kept, damaged, due)],
        needs_consent=bool(due),
        progress_text="deleting",
        to_dict=to_dict,
        report=lambda deleted: [_describe_deleted(deleted)] if deleted else [],
        declined_text="Nothing was deleted.",
        question=f"Delete {len(due)}?",
        status=find_status,
        dry_status=find_status(()),
    )


def _group(kept: Sequence[_Kept]) -> Iterator[tuple[str, list[_Kept]]]:
    for what in (*_WORDS.values(), "backups"):
        yield what, [one for one in kept if one.what == what]


def _to_blocks(cache: Cache, kept: Sequence[_Kept], damaged: Sequence[_Kept], due: Sequence[_Kept]) -> Iterator[Block]:
    yield line("The cache is in ", (shorten_path(cache.folder), "name"), ".")
    rows = [
        (what, str(len(those)), format_size(sum(one.size for one in those)), _format_day(those))
        for what, those in _group(kept)
    ]
    yield Table(rows, head=_HEAD, right=frozenset((1, 2)))
    for one in damaged:
        yield line(("damaged ", "bad"), (shorten_path(one.path), "name"))
    for one in due:
        yield line(("delete ", "warn"), f"{one.what}: ", (shorten_path(one.path), "name"), f" {format_size(one.size)}")


def _format_day(kept: Sequence[_Kept]) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(max(one.used_at for one in kept))) if kept else "-"


def _describe_deleted(deleted: Sequence[_Kept]) -> Block:
    return line((f"Deleted {len(deleted)}, {format_size(sum(one.size for one in deleted))}.", "good"))


def _find_damaged(cache: Cache, limits: Limits) -> list[CachedFile]:
    """Return the files of the cache that are damaged; every file is read and hashed."""
    max_bytes = max(limits.max_fetch_bytes, limits.max_download_bytes, limits.max_install_bytes)
    found = []
    for file in report_steps(cache.list_files(), lambda file: file.kind):
        data = cache.read_file(file, max_bytes)
        if data is None or not _is_intact(file, data):
            found.append(file)
    return found


def _is_intact(file: CachedFile, data: bytes) -> bool:
    if file.kind == "git":
        try:
            return file.parts[-1] in load_objects(data)  # which compares each object with its id
        except GitError:
            return False
    name = "".join(file.parts[1:]) if file.kind == "sha256" else file.parts[-1]
    return sha256_hex(data) == name
