"""Limits: every bound that Prowess keeps, as a named field of one frozen object, with its reason.

What a host chooses for a conversation is not here: token budgets and ``max_active`` are arguments of ``Toolset`` and
``Session``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any, TypeAlias

from prowess.errors import MAX_LISTED_NAMES, SourceError

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
        "max_upload_attempts",
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
_INFINITE = float("inf")  # the one in math would load a library, which a scan does without

Bound: TypeAlias = int | EllipsisType | None
"""A bound that one call may set: ``...`` stands for the one of ``Limits``, ``None`` for no bound."""


def resolve_bound(given: Bound, usual: int) -> int:
    """Return how many bytes a call may read: ``usual``, its own bound, or no bound for ``None``.

    Raises ``SourceError`` for a bound that is not a whole number from 0.
    """
    if given is None:
        return sys.maxsize
    if isinstance(given, EllipsisType):
        return usual
    if not _is_count(given):
        raise SourceError(
            f"max_bytes must be a whole number from 0, or None for no bound, not {given!r}", code="bad-argument"
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
    """Bytes that are read at a time to find the end of the frontmatter. One page holds nearly every real head."""

    max_frontmatter_bytes: int = 64 * KIB
    """How far the head of a file is read. The largest real frontmatter is smaller than 4 KiB."""

    max_yaml_depth: int = 16
    """How deep YAML collections may be nested. Real files stay below 6."""

    max_yaml_events: int = 4_000
    """YAML events in one frontmatter. This bounds the work before any value is built."""

    max_scalar_chars: int = 64 * KIB
    """Characters in one YAML value."""

    max_lenient_name_chars: int = 256
    """Characters of a name that lenient mode keeps. Names of up to 64 are always kept, longer ones with a warning. A
    folder's name may have 255."""

    max_body_bytes: int = MIB
    """The instructions that are loaded into a conversation. A larger body would not fit into a context window."""

    max_resource_bytes: int = 64 * KIB
    """What ``read_resource`` returns at most, unless the caller sets another bound."""

    max_file_bytes: int = 10 * MIB
    """What ``read_bytes`` returns at most, unless the caller sets another bound."""

    max_digest_bytes: int = 256 * MIB
    """The size of all files of one skill together when it is hashed."""

    max_files_per_skill: int = 2_000
    """Files of one skill that are listed or hashed."""

    max_entries_per_skill: int = 20_000
    """Files, folders and other entries that are looked at while one skill is listed."""

    max_depth_per_skill: int = 16
    """How many levels of folders below a skill's folder are listed."""

    max_dirs_per_root: int = 200_000
    """Folders that are looked at below one scanned root."""

    max_noted_folders: int = 100
    """Folders of one root, skipped by name, that get an issue each. One more issue counts the rest."""

    max_entries_per_folder: int = 250_000
    """Entries of one folder that discovery looks at, files included."""

    max_scan_depth: int = 64
    """How many levels below a root are scanned even with ``max_depth=None``."""

    max_scan_seconds: float = 60.0
    """Time for one scan. It is checked between entries: a call that blocks inside the kernel cannot be interrupted."""

    max_commands: int = 32
    """Commands in the instructions of one skill."""

    max_command_seconds: float = 10.0
    """Time for one command. The instructions wait for it."""

    max_command_output_bytes: int = 64 * KIB
    """What one command may print on each of its two streams. The output becomes part of a context window."""

    max_script_seconds: float = 60.0
    """Time for one script. A model waits for it."""

    max_script_output_bytes: int = 64 * KIB
    """What one script may print on each of its two streams."""

    max_script_input_bytes: int = MIB
    """What a script may be given on its standard input."""

    max_script_memory_bytes: int = 1024 * MIB
    """Memory of a script and of everything that it starts, checked several times a second (Linux)."""

    max_script_processes: int = 64
    """Processes of a script at one time, checked several times a second (Linux)."""

    max_script_disk_bytes: int = 256 * MIB
    """What a script may write into its folders together, and into any single file."""

    max_script_files: int = 10_000
    """Files and folders that a script may create."""

    max_searched_entries: int = 200_000
    """Entries of a working folder that are searched for what a script must not change, which takes about a second
    before each script. Nothing runs in a larger folder."""

    max_protected_entries: int = 1_000
    """Files and folders of a working folder that are protected from a script. With so many, a script starts
    seconds later."""

    max_fork_seconds: float = 600.0
    """Time for a sub-agent that runs as a process."""

    max_fork_output_bytes: int = 256 * KIB
    """What a sub-agent may answer."""

    max_listings: int = 64
    """Prompts and lists of tools that are kept for one catalogue. Each is about as large as the prompt."""

    max_indexed_chars: int = 6_000
    """Characters of a skill's instructions that a search looks at. What a skill is for is at their beginning."""

    max_indexed_description_chars: int = MAX_DESCRIPTION_LENGTH
    """Characters of a description that a search looks at, and of the tags, triggers and keywords beside it together.
    Otherwise a skill could be found by every word that there is."""

    max_indexed_tags: int = 16
    """Tags of one skill that a search, and a selector of tags, look at. Of 1,000 real skills one has more than 11."""

    max_request_terms: int = 32
    """Words of a request that are searched for. Of a longer request, those are taken that the fewest skills have."""

    max_search_indexes: int = 64
    """Libraries whose search index is kept in the cache folder. The one that was not used for longest goes first."""

    max_conversations: int = 1_000
    """Conversations of one agent that an adapter holds with their sessions. Older ones are kept as saved text."""

    max_saved_conversations: int = 10_000
    """Conversations that an adapter keeps as saved text. The one that was not used for longest is forgotten first."""

    max_agent_turns: int = 50
    """Requests to the model in one run of the agent, those of its child agents included. A loop ends there."""

    max_agent_tokens: int = 2_000_000
    """Tokens, sent and received, that one run of the agent may use, those of its child agents included."""

    max_model_answer_chars: int = 4 * MIB
    """One answer of a model to the agent. No model writes as much; a server that never ends would fill the memory."""

    max_model_answer_bytes: int = 256 * MIB
    """One answer of a model as its server sends it to the agent or to a child agent, before it is parsed. An event for
    each token makes it a hundred times as large as its text."""

    max_remembered_runs: int = 1_000
    """Runs of the agent for which Prowess remembers that the user typed ``--tools``. A forgotten run asks again."""

    max_empty_answers: int = 3
    """Answers of a model one after the other, with neither text nor calls, before a run of the agent ends."""

    max_trigger_turns: int = 3
    """Requests to the model in a run of ``prowess eval --with-model`` that only asks which skill it loads. A model
    loads a skill at the beginning, and what it does then costs tokens and shows nothing more."""

    max_failed_runs: int = 3
    """Runs of ``prowess eval --with-model`` that fail one after the other before it stops. Then the trouble will
    last."""

    max_eval_bytes: int = MIB
    """JSON files in the ``evals/`` of one skill together, or one file of evals that is named. A thousand evals fit."""

    max_evals: int = 1_000
    """Evals that one file may have."""

    max_eval_checks: int = 100
    """Checks of one eval, and sentences of it that a model judges."""

    max_eval_file_bytes: int = 64 * MIB
    """Files with which the task of one eval begins, together. They are written again for each run."""

    max_eval_kept_bytes: int = 16 * MIB
    """Files of the working folder of one run that ``prowess eval --results`` keeps. A list names the others."""

    max_judged_bytes: int = 64 * KIB
    """What a model that judges a task sees of the files in the working folder, about 16,000 tokens."""

    max_shown_diff_lines: int = 200
    """Lines of a difference that a person is shown before the agent writes a file: its beginning and its end. A person
    reads no more."""

    max_shown_line_chars: int = 2_000
    """Characters of one such line that a person is shown: its beginning and its end. A screen has about as many."""

    max_parallel_reads: int = 16
    """Calls of models that this process answers at one time, in all conversations together (``acall``)."""

    max_waiting_reads: int = 10_000
    """Calls that wait for their turn, which costs no thread. Further calls are refused with ``busy``."""

    max_parallel_scripts: int = 4
    """Scripts, and skills with commands, that run at one time in this process. Waiting does not count as run time."""

    max_parallel_forks: int = 16
    """Sub-agents that run at one time in threads of this process. Asynchronous runners need no thread."""

    max_waiting_scripts: int = 64
    """Scripts and sub-agents that wait for their turn, each with a thread. Further ones are refused with ``busy``."""

    max_download_bytes: int = 16 * MIB
    """One fetched file or archive, after decoding. Skills with pictures and fonts stay below 10 MiB."""

    max_manifest_bytes: int = 4 * MIB
    """One manifest of an OCI registry. Registries accept no larger ones."""

    max_layers: int = 127
    """Layers of one artifact or image in a registry, and manifests of an index that are compared. Docker makes no more
    layers."""

    max_login_bytes: int = MIB
    """Docker's ``config.json``, and the answer of a token server."""

    max_helper_seconds: float = 30.0
    """How long a credential helper of Docker may take. It may ask the user, or a server."""

    max_upload_attempts: int = 5
    """How often one upload to a registry is tried, with what is missing, while the connection breaks."""

    max_index_bytes: int = 4 * MIB
    """The index of a site, after decoding. Ten thousand entries fit."""

    max_index_entries: int = 10_000
    """Skills that one index may list."""

    max_indexes: int = 64
    """Indexes that one search may ask. A project may name them, and each may be slow."""

    max_redirects: int = 5
    """Redirects that one request follows. More of them are a loop or a mistake."""

    fetch_idle_seconds: float = 30.0
    """How long a server may send nothing."""

    fetch_total_seconds: float = 300.0
    """How long one fetch may take, with its redirects, even if bytes keep arriving."""

    default_cache_seconds: int = 3_600
    """How long a fetched file is fresh if the server does not say."""

    max_cache_seconds: int = 604_800
    """How long a fetched file is fresh at most, whatever the server says. A server's mistake ends within a week."""

    keep_cached_seconds: int = 15_552_000
    """How long the cache keeps what nobody uses: 180 days, so that a project that rests for months works offline."""

    max_cached_bytes: int = 2_048 * MIB
    """Bytes that the cache keeps; beyond, what was used longest ago goes first. That is hundreds of repositories."""

    max_stale_seconds: int = 2_592_000
    """How old a copy may be that is used when a site cannot be reached or offers an older state: 30 days."""

    max_replaced_marks: int = 1_000
    """Replaced states of an index, its entries or a file that are remembered for one URL, so that none comes back."""

    max_unpacked_bytes: int = 64 * MIB
    """Everything that one archive unpacks to. The real bytes are counted, not what the headers claim."""

    max_archive_entries: int = 2_000
    """Files and folders in one archive: as many as a skill may have files."""

    max_archive_ratio: int = 100
    """How many times its own size an archive may unpack to, after the first MiB. Text unpacks to five to ten times."""

    max_compared_skills: int = 1_000
    """Skills that are compared with each other. Every pair is compared."""
    watch_seconds: float = 1.0
    """How often a server looks for changes where the operating system does not report them."""

    max_served_files: int = 512
    """Files of a skill that is served over MCP. The protocol sets this bound; hosts need not load more."""

    max_served_bytes: int = 16 * MIB
    """The size of all files of a skill that is served over MCP. The protocol sets this bound too."""

    max_page_entries: int = 100
    """Entries in one page of a listing over MCP."""

    max_subscribed_uris: int = 1_000
    """Files whose changes one client may subscribe to in one request."""

    max_large_reads: int = 2
    """Files of more than 256 KiB that a server reads at one time. It answers other requests in between."""

    max_awaited_entries: int = 10_000
    """Files and folders up to which the first answer of a server waits for the listing: about a quarter of a second."""

    max_http_body_bytes: int = 4 * MIB
    """One request to a server. Requests are small; only answers may be large."""

    max_http_header_bytes: int = 64 * KIB
    """The headers of one request together."""

    max_http_header_seconds: float = 10.0
    """How long a client may take to send its headers, be silent between two requests, or not read its answer."""

    max_http_body_seconds: float = 30.0
    """How long a client may take to send one request."""

    max_http_connections: int = 512
    """Connections that are open at one time. A new one beyond this closes the one that was idle longest."""

    max_http_waiting_bytes: int = 16 * MIB
    """What all incoming requests together may hold, beyond 64 KiB of each. Further ones are asked to try again."""

    max_http_unsent_bytes: int = 64 * MIB
    """What all unread answers together may hold. Beyond this, the answers that wait longest are dropped."""

    max_http_streams: int = 64
    """Answers that stay open at one time to report changes."""

    max_http_sessions: int = 256
    """Sessions of clients of the older protocol. A new one beyond this ends the one that was idle longest, of the
    address that has the most."""

    max_http_session_seconds: float = 900.0
    """How long a session of the older protocol lives without a request."""

    max_http_requests: int = 1_000
    """Requests from one address that are answered in one second."""

    max_http_wrong_tokens: int = 10
    """Wrong tokens from one address that are only refused. After each further one the address waits twice as long."""

    max_http_token_wait_seconds: float = 300.0
    """The longest such wait. An address that sends nothing for this long starts again."""

    max_page_chars: int = 200_000
    """Characters of one string that a page of the console shows. Browsers are slow with more, and nobody reads it."""

    max_console_plans: int = 100
    """Plans of changes, with their results, that the console remembers. A new one beyond this forgets the oldest."""

    max_open_console_plans: int = 16
    """Plans of the console that are being prepared, made, or wait for a person, whose files are in memory. A new one
    beyond this discards the oldest that waits for a person, and is refused where none does."""

    max_console_result_bytes: int = 4 * MIB
    """The file where the console keeps results. Beyond this the oldest are forgotten."""

    max_mcp_connect_seconds: float = 10.0
    """How long an MCP server may take to start and to answer the first time."""

    max_mcp_call_seconds: float = 30.0
    """How long one request to an MCP server may take."""

    max_mcp_list_seconds: float = 10.0
    """How long a whole listing may take, from connecting to the last page. A catalogue waits no longer."""

    max_mcp_message_bytes: int = 24 * MIB
    """What an MCP server may send for one request: the largest file of a skill, in base64, with room to spare."""

    max_mcp_list_bytes: int = 32 * MIB
    """What an MCP server may send for one listing. Ten thousand ordinary entries fit."""

    max_mcp_skills: int = 10_000
    """Skills that an MCP server may list, and pages that its listing may have."""

    max_mcp_kept_bytes: int = 16 * MIB
    """Files of an MCP server that are kept in memory, by their digests."""

    max_listed_names: int = MAX_LISTED_NAMES
    """Names that an error message lists."""

    max_install_files: int = 10_000
    """Files that are installed from one source. Install a larger repository in parts, by naming its skills."""

    max_plugins: int = 5_000
    """Plugins that the manifests of one source may name. The largest public marketplace names 286."""

    max_install_bytes: int = 64 * MIB
    """All files that are installed together. They are in memory meanwhile."""

    max_tree_entries: int = 200_000
    """Entries in the folders of a repository that are searched for skills."""

    max_fetch_bytes: int = 256 * MIB
    """What git may write to the disk, or print, for one repository."""

    max_fetch_seconds: float = 300.0
    """Time for one call of git. Prowess does not wait for ever for a slow server."""

    max_idle_seconds: float = 60.0
    """Time within which a call of git must make progress."""

    max_lock_seconds: float = 60.0
    """Time to wait for another process that changes the same skills."""

    keep_replaced_seconds: float = 60.0
    """How long a replaced folder is kept, because another process may be reading it."""

    max_diff_lines: int = 4_000
    """Lines, before and after together, that one update compares line by line. The cost grows with their square."""

    max_policy_bytes: int = 4 * MIB
    """The largest policy file that is read. A larger one stops everything, as a malformed one does."""

    max_policy_age_seconds: int = 604_800
    """How long a policy that was fetched counts without being fetched again. An older one stops everything."""

    max_lock_bytes: int = 16 * MIB
    """The largest lock file, manifest or journal that is read. What would become larger is not written."""

    def __post_init__(self) -> None:
        """Raise ``SourceError`` (code ``bad-argument``) for a value that is not a number, or not a sensible bound."""
        for name, kind in self.__annotations__.items():
            _check_bound(name, getattr(self, name), is_whole=kind == "int")


def _check_bound(name: str, given: Any, *, is_whole: bool) -> None:
    """Raise ``SourceError`` unless the value is a finite number from 0, or above 0 for the bounds that cannot be 0."""
    can_be_zero = name not in _NEVER_ZERO
    is_number = isinstance(given, int) if is_whole else isinstance(given, int | float)
    if is_number and not isinstance(given, bool) and (0 < given < _INFINITE or (can_be_zero and given == 0)):
        return
    least = "from 0" if can_be_zero else "from 1" if is_whole else "above 0"
    shown = repr(given)
    shown = shown if len(shown) <= _MAX_SHOWN_CHARS else f"{shown[:_MAX_SHOWN_CHARS]}…"
    raise SourceError(f"{name} must be a {'whole ' if is_whole else ''}number {least}, not {shown}")


def narrow_limits(limits: Limits, by: Limits) -> Limits:
    """Return ``limits`` with every bound of ``by`` that is smaller.

    A bound of ``by`` that is the default does not count, because nobody has chosen it.
    """
    chosen = {name: getattr(by, name) for name in by.__slots__ if getattr(by, name) != getattr(DEFAULT_LIMITS, name)}
    return replace(limits, **{name: min(bound, getattr(limits, name)) for name, bound in chosen.items()})


DEFAULT_LIMITS = Limits()
