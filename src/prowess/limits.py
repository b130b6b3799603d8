"""Limits: every bound that Prowess keeps, as a named field of one frozen object, with its reason."""

from __future__ import annotations

import sys
from math import inf
from types import EllipsisType

from prowess.errors import MAX_LISTED_NAMES, SourceError
from prowess.records import dataclass, replace

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, TypeAlias

KIB = 1024
MIB = 1024 * KIB

MAX_NAME_LENGTH = 64
MAX_DESCRIPTION_LENGTH = 1024
MAX_COMPATIBILITY_LENGTH = 500

# These cannot be 0. Without a place for a call everybody would wait for ever, without a step nothing would be read, and
# without a pause a processor would always be busy. The watchers of scripts take 0 for no limit. Everywhere else, 0
# means that nothing of the kind is permitted.
_NEVER_ZERO = frozenset(
    (
        "head_step",
        "max_parallel_reads",
        "max_parallel_scripts",
        "max_parallel_forks",
        "max_large_reads",
        "max_page_entries",
        "max_script_memory_bytes",
        "max_script_processes",
        "max_script_disk_bytes",
        "max_script_files",
        "watch_seconds",
        "fetch_idle_seconds",
    )
)
_MAX_SHOWN_CHARS = 80

Bound: TypeAlias = int | EllipsisType | None
"""A bound that one call may set: ``...`` stands for the one of ``Limits``, ``None`` for no bound."""


def resolve_bound(given: Bound, usual: int) -> int:
    """Return how many bytes a call may read: ``usual``, its own bound, or no bound for ``None``.

    Raises ``SourceError`` for a bound that is no whole number from 0.
    """
    if given is None:
        return sys.maxsize
    if isinstance(given, EllipsisType):
        return usual
    if not _is_count(given):
        raise SourceError(
            f"max_bytes is a whole number from 0, or None for no bound, not {given!r}", code="bad-argument"
        )
    return given


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one call; pass a changed copy as ``limits=`` where the defaults do not fit.

    No bound depends on the input, so a hostile file costs what an ordinary one costs.
    """

    head_step: int = 4 * KIB
    """Bytes read at a time while looking for the end of the frontmatter: one page holds nearly every real head."""

    max_frontmatter_bytes: int = 64 * KIB
    """The furthest that the head of a file is read; the largest real frontmatter is below 4 KiB."""

    max_yaml_depth: int = 16
    """Nesting of YAML collections; real files stay below 6."""

    max_yaml_events: int = 4_000
    """YAML events in one frontmatter: bounds the work before anything is built."""

    max_scalar_chars: int = 64 * KIB
    """One YAML value, in characters."""

    max_body_bytes: int = MIB
    """Instructions that are loaded into a conversation; a larger body could not fit a context window."""

    max_resource_bytes: int = 64 * KIB
    """What ``read_resource`` returns unless the caller names another bound."""

    max_file_bytes: int = 10 * MIB
    """What ``read_bytes`` returns unless the caller names another bound."""

    max_digest_bytes: int = 256 * MIB
    """All files of one skill together, when it is hashed."""

    max_files_per_skill: int = 2_000
    """Files listed or hashed in one skill."""

    max_entries_per_skill: int = 20_000
    """Directory entries looked at while listing one skill, files or not."""

    max_depth_per_skill: int = 16
    """Folders below a skill's folder that a listing enters."""

    max_dirs_per_root: int = 200_000
    """Folders looked at below one scanned root."""

    max_noted_folders: int = 100
    """Folders, skipped by their names, that are reported one by one; for the rest of a root the number is reported."""

    max_entries_per_folder: int = 250_000
    """Entries of one folder that discovery looks at, files included."""

    max_scan_depth: int = 64
    """Folders below a scanned root that are entered even with ``max_depth=None``."""

    max_scan_seconds: float = 60.0
    """Time for one scan, checked between entries; a call that blocks inside the kernel cannot be interrupted."""

    max_commands: int = 32
    """Commands in the instructions of one skill."""

    max_command_seconds: float = 10.0
    """Time for one command: instructions wait for it."""

    max_command_output_bytes: int = 64 * KIB
    """What one command may print, on each of its two streams: it becomes part of a context window."""

    max_script_seconds: float = 60.0
    """Time for one script: a model waits for it."""

    max_script_output_bytes: int = 64 * KIB
    """What one script may print, on each of its two streams."""

    max_script_input_bytes: int = MIB
    """What a script is given on its standard input."""

    max_script_memory_bytes: int = 1024 * MIB
    """Memory of a script and everything that it starts, looked at several times a second (Linux)."""

    max_script_processes: int = 64
    """Processes of a script at one time, looked at several times a second (Linux)."""

    max_script_disk_bytes: int = 256 * MIB
    """What a script may write into its folders, and into any one file."""

    max_script_files: int = 10_000
    """Files and folders that a script may make."""

    max_fork_seconds: float = 600.0
    """Time for a sub-agent that is a process."""

    max_fork_output_bytes: int = 256 * KIB
    """What a sub-agent may answer."""

    max_listings: int = 64
    """Prompts, and lists of tools, that are kept for one catalogue: each is about as large as the prompt."""

    max_parallel_reads: int = 16
    """Calls of models that are answered at one time in this process, all conversations together (``acall``)."""

    max_waiting_reads: int = 10_000
    """Calls that wait for their turn, which costs no thread; further ones are refused as ``busy``."""

    max_parallel_scripts: int = 4
    """Scripts, and skills with commands, that run at one time in this process; what waits is not timed yet."""

    max_parallel_forks: int = 16
    """Sub-agents that run at one time in threads of this process; asynchronous runners need none."""

    max_waiting_scripts: int = 64
    """Scripts and sub-agents that wait for a place, each with a thread; further ones are refused as ``busy``."""

    max_download_bytes: int = 16 * MIB
    """One file or archive that is fetched, after decoding; skills with pictures and fonts stay below 10 MiB."""

    max_index_bytes: int = 4 * MIB
    """The index of a site, after decoding: ten thousand entries fit."""

    max_index_entries: int = 10_000
    """Skills that one index may announce."""

    max_indexes: int = 64
    """Indexes that one search asks: a project may name them, and each may take its time."""

    max_redirects: int = 5
    """Redirects that one request follows; more is a loop or a maze."""

    fetch_idle_seconds: float = 30.0
    """How long a server may say nothing."""

    fetch_total_seconds: float = 300.0
    """How long one fetch may take, redirects included, even while bytes keep coming."""

    default_cache_seconds: int = 3_600
    """How long a fetched file is fresh when the server does not say."""

    max_cache_seconds: int = 604_800
    """The longest freshness that a server may ask for, so that its mistakes end within a week."""

    max_kept_commits: int = 8
    """Commits of one repository whose files are kept in the cache: the installed one, and those of a few updates."""

    max_stale_seconds: int = 2_592_000
    """How old a copy may be that stands in for a site that is away, or that gives older news: 30 days."""

    max_replaced_marks: int = 1_000
    """Replaced states (of an index, its entries, a file) that are remembered for one URL, so that none comes back."""

    max_unpacked_bytes: int = 64 * MIB
    """Everything that comes out of one archive, counted as it comes out, whatever its headers claim."""

    max_archive_entries: int = 2_000
    """Files and folders in one archive: as many files as a skill may have."""

    max_archive_ratio: int = 100
    """How often its own size an archive may unpack to, beyond the first mebibyte; text packs five to ten times."""

    max_compared_skills: int = 1_000
    """Skills of a collection that are compared with each other: every pair is looked at."""
    watch_seconds: float = 1.0
    """How often a server looks for changes where the system does not tell of them."""

    max_served_files: int = 512
    """Files of a skill that is served over MCP: the protocol's own bound, beyond which hosts need not load."""

    max_served_bytes: int = 16 * MIB
    """The bytes of all files of a skill that is served over MCP: also a bound of the protocol."""

    max_page_entries: int = 100
    """Entries in one page of a listing over MCP."""

    max_subscribed_uris: int = 1_000
    """Files to whose changes one client may subscribe, in one request."""

    max_large_reads: int = 2
    """Files of more than 256 KiB that a server reads at one time: others are answered in between."""

    max_awaited_entries: int = 1_500
    """Files and folders that a served library may have so that the first answer always waits for its listing."""

    max_handshake_seconds: float = 0.5
    """How long a first answer waits for the listing of a larger library (at most a tenth of the start)."""

    max_http_body_bytes: int = 4 * MIB
    """One request to a server: questions are small, and only answers may be large."""

    max_http_header_bytes: int = 64 * KIB
    """The headers of one request, all together."""

    max_http_header_seconds: float = 10.0
    """How long a client may take to send its headers, say nothing between two requests, or take none of its answer."""

    max_http_body_seconds: float = 30.0
    """How long a client may take to send one request."""

    max_http_connections: int = 512
    """Connections that are open at one time; for a further one, that which was idle for longest is closed."""

    max_http_waiting_bytes: int = 16 * MIB
    """What all requests may hold while they come in, beyond 64 KiB of each; further ones are refused as busy."""

    max_http_unsent_bytes: int = 64 * MIB
    """What all answers together may hold that nobody takes; beyond it those that wait for longest are given up."""

    max_http_streams: int = 64
    """Answers that stay open to tell of changes, at one time."""

    max_http_sessions: int = 256
    """Sessions of clients of the older protocol, at one time; for a further one, the longest idle session ends."""

    max_http_session_seconds: float = 900.0
    """How long a session of the older protocol lives without a request."""

    max_http_requests: int = 1_000
    """Requests of one address that are answered in one second."""

    max_http_wrong_tokens: int = 10
    """Wrong tokens of one address that are only refused; after each further one it must wait, twice as long."""

    max_http_token_wait_seconds: float = 300.0
    """The longest wait after wrong tokens; an address that is quiet for as long begins anew."""

    max_mcp_connect_seconds: float = 10.0
    """How long an MCP server may take to start and to answer the first time."""

    max_mcp_call_seconds: float = 30.0
    """How long one request to an MCP server may take."""

    max_mcp_list_seconds: float = 10.0
    """How long a listing may take in all, from connecting to the last page: a catalogue waits for no server longer."""

    max_mcp_message_bytes: int = 24 * MIB
    """The bytes that an MCP server may send for one request: the largest file of a skill, in base64, and more.

    Each value in it counts as 32 bytes more, since that is what small values take once they are parsed.
    """

    max_mcp_list_bytes: int = 32 * MIB
    """The bytes that an MCP server may send for one listing, counted as above: ten thousand ordinary entries fit."""

    max_mcp_skills: int = 10_000
    """Skills that an MCP server may list, and pages on which it may list them."""

    max_mcp_kept_bytes: int = 16 * MIB
    """The bytes of files of an MCP server that are kept in memory, by their digests."""

    max_listed_names: int = MAX_LISTED_NAMES
    """Names that an error message lists."""

    max_install_files: int = 10_000
    """Files of one tree that is installed; a repository with more is installed in parts, by naming its skills."""

    max_install_bytes: int = 64 * MIB
    """All files of a tree that is installed together; they are held in memory meanwhile."""

    max_tree_entries: int = 200_000
    """Entries of a repository's folders that are looked at for skills."""

    max_fetch_bytes: int = 256 * MIB
    """What git may write to the disk, or print, for one repository."""

    max_fetch_seconds: float = 300.0
    """Time for one call of git: a server that answers slowly for ever is not waited for."""

    max_idle_seconds: float = 60.0
    """Time in which a call of git must show some progress."""

    max_lock_seconds: float = 60.0
    """Time to wait for another process that changes the same skills."""

    keep_replaced_seconds: float = 60.0
    """Time for which a replaced tree is kept, since another process may be in the middle of reading it."""

    max_diff_lines: int = 4_000
    """Lines, before and after together, that one update compares line by line: that costs the square of them."""

    max_lock_bytes: int = 16 * MIB
    """The largest lock file, manifest or journal that is read."""

    def __post_init__(self) -> None:
        """Raise ``SourceError`` (code ``bad-argument``) for a value that is no number, or makes no sense as a bound."""
        for name, kind in self.__annotations__.items():
            _check_bound(name, getattr(self, name), is_whole=kind == "int")


def _check_bound(name: str, given: Any, *, is_whole: bool) -> None:  # noqa: ANN401 - whatever a program passed
    """Raise ``SourceError`` unless the value is a finite number from 0, or above 0 for the bounds that cannot be 0."""
    can_be_zero = name not in _NEVER_ZERO
    is_number = isinstance(given, int) if is_whole else isinstance(given, int | float)
    if is_number and not isinstance(given, bool) and (0 < given < inf or (can_be_zero and given == 0)):
        return
    least = "from 0" if can_be_zero else "from 1" if is_whole else "above 0"
    shown = repr(given)
    shown = shown if len(shown) <= _MAX_SHOWN_CHARS else f"{shown[:_MAX_SHOWN_CHARS]}…"
    raise SourceError(f"{name} is a {'whole ' if is_whole else ''}number {least}, not {shown}")


def narrow_limits(limits: Limits, by: Limits) -> Limits:
    """Return ``limits`` with every bound of ``by`` that is smaller.

    A bound of ``by`` that is the default does not count, because nobody has chosen it.
    """
    chosen = {name: getattr(by, name) for name in by.__slots__ if getattr(by, name) != getattr(DEFAULT_LIMITS, name)}
    return replace(limits, **{name: min(bound, getattr(limits, name)) for name, bound in chosen.items()})


DEFAULT_LIMITS = Limits()
